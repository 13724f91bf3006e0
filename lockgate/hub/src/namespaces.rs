//! The pass over one namespace: every member gets it, so that what is sent into it finds it there.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::meta::OwnerReference;
use lockgate_api::ocm::CLUSTER_NAMESPACE;
use lockgate_api::{BindingSpec, Cluster, ObjectMeta, Work, keys, names};
use lockgate_engine::claim::{self, Claim};
use lockgate_engine::gate::{Holds, ReleaseInput};
use lockgate_engine::render::RenderError;
use lockgate_engine::{object, render};
use serde_json::Value;

use crate::cache::Key;
use crate::events::EventTarget;
use crate::head::head;
use crate::state::{self, State};
use crate::template::{self, PassError, Suspended, derived_id, owning, put_rendered};

/// Sends one namespace to every member.
pub(crate) async fn pass(state: &State, name: &str, again: bool) -> Result<(), PassError> {
    let Some(kind) = state.kinds.served("v1", "Namespace") else {
        return Ok(());
    };
    let Some(namespace) = kind
        .cache
        .get(&Key::new("", name))
        .and_then(|cached| state::parse::<Value>(&cached))
        .filter(|namespace| !object::deleting(namespace))
    else {
        return gone(state, name).await;
    };
    if !is_sent(state, &namespace) {
        tell_reserved(state, &namespace, name);
        return Ok(());
    }
    let overrides = state.overrides.read().list();
    let rollouts = state.rollouts.read().about(&namespace);
    // No policy places it, so that only rollout policies can hold it back.
    let spec = BindingSpec::default();
    let holds = Holds::of(&ReleaseInput {
        spec: &spec,
        rollouts: &rollouts,
        referrers: &[],
    });
    let mut failed = Ok(());
    let mut unmade = BTreeMap::new();
    for cluster in state
        .clusters()
        .iter()
        .filter(|cluster| !cluster.metadata.deleting())
    {
        let suspended = Suspended::on(&holds, &cluster.metadata.name);
        let work = match work(state, &namespace, name, cluster, &overrides, suspended, again) {
            Ok(Some(work)) => work,
            Ok(None) => continue,
            Err(error) => {
                unmade.insert(cluster.metadata.name.clone(), error);
                continue;
            }
        };
        if let Err(error) = template::write_work(state, &work).await {
            failed = Err(error);
        }
    }
    tell_unmade(state, &namespace, name, &unmade);
    failed
}

/// Tells that nothing in a namespace is sent, which a cluster is named like that did not make it.
fn tell_reserved(state: &State, namespace: &Value, name: &str) {
    if is_skipped(state, namespace, name) || state.cluster(name).is_none() {
        return;
    }
    let message = claim::in_cluster_namespace(name);
    let now = BTreeMap::from([(name.to_owned(), message.clone())]);
    if state
        .unsent_namespaces
        .lock()
        .insert(name.to_owned(), now.clone())
        != Some(now)
    {
        let target = EventTarget::of_value(namespace);
        state.events.warn(&target, "NamespaceReserved", &message);
    }
}

/// Tells why clusters do not get a namespace. What was told is not told again.
fn tell_unmade(state: &State, namespace: &Value, name: &str, unmade: &BTreeMap<String, RenderError>) {
    let mut told = state.unsent_namespaces.lock();
    let before = told.remove(name).unwrap_or_default();
    let mut now = BTreeMap::new();
    for (cluster, error) in unmade {
        let (reason, message) = match error {
            RenderError::Override(_) => ("ApplyOverridePolicyFailed", error.to_string()),
            _ => ("SyncWorkFailed", error.to_string()),
        };
        if before.get(cluster) != Some(&message) {
            let target = EventTarget::of_value(namespace);
            state.events.warn(&target, reason, &message);
        }
        now.insert(cluster.clone(), message);
    }
    if !now.is_empty() {
        told.insert(name.to_owned(), now);
    }
}

/// Whether a namespace is sent to every member by itself, whatever policies say of it.
pub(crate) fn is_sent(state: &State, namespace: &Value) -> bool {
    let name = object::meta_text(namespace, "name");
    !is_skipped(state, namespace, name) && state.cluster(name).is_none()
}

/// The same of a namespace of that name, if it is known.
pub(crate) fn is_sent_by_name(state: &State, name: &str) -> bool {
    let kind = state.kinds.served("v1", "Namespace");
    let cached = kind.and_then(|kind| kind.cache.get(&Key::new("", name)));
    let namespace = cached.and_then(|cached| state::parse::<Value>(&cached));
    namespace.is_some_and(|namespace| is_sent(state, &namespace))
}

/// Whether a namespace is not sent to members by itself.
fn is_skipped(state: &State, namespace: &Value, name: &str) -> bool {
    names::is_reserved(name)
        || name == "default"
        || state.kinds.skips.skip_namespace(name)
        || object::label(namespace, keys::SKIP_AUTO_PROPAGATION) == Some("true")
        // That of a cluster, perhaps of one that has left.
        || object::label(namespace, CLUSTER_NAMESPACE).is_some()
}

/// The Work of one cluster as it should be, if it is not so.
fn work(
    state: &State,
    namespace: &Value,
    name: &str,
    cluster: &Cluster,
    overrides: &[Arc<lockgate_api::OverridePolicy>],
    suspended: Suspended,
    again: bool,
) -> Result<Option<Work>, RenderError> {
    let execution = names::execution_namespace(&cluster.metadata.name);
    let id = lockgate_engine::TemplateId::of(namespace);
    let key = Key::new(&execution, &owning::work_name(&id));
    let cached = state.caches.works.get(&key);
    let known = cached.as_ref().and_then(|cached| head(cached));
    if let Some(owner) = owning::taken_by(state, &id, &key, known.as_ref()) {
        return Err(RenderError::NameTaken {
            work: key.name.to_string(),
            owner: owner.to_string(),
        });
    }
    let old: Option<Work> = cached.and_then(|cached| state::parse(&cached));
    if let Some(old) = &old
        && (old.metadata.deleting()
            || old.metadata.label(keys::CRB_ID).is_some()
                && is_placed(state, namespace, &cluster.metadata.name))
    {
        // A policy that names the namespace decides about it.
        return Ok(None);
    }
    let uid = object::meta_text(namespace, "uid");
    let work_id = old
        .as_ref()
        .and_then(|work| work.metadata.label(keys::WORK_ID))
        .map_or_else(|| derived_id(uid, &cluster.metadata.name), str::to_owned);
    let digest = render::namespace_digest(namespace, cluster, overrides);
    let mut work = old.clone().unwrap_or_default();
    if !suspended.is_said_by(&work) {
        suspended.put(&mut work);
    }
    if work.metadata.annotation(keys::RENDERED_FROM) == Some(&digest) && !again {
        return Ok((old.as_ref() != Some(&work)).then_some(work));
    }
    let rendered = render::render_namespace(namespace, &work_id, cluster, overrides)?;
    let same = old.as_ref().is_some_and(|old| {
        old.metadata.annotation(keys::RENDERED_FROM).is_none()
            && old.spec.workload.manifests.first() == Some(&rendered.manifest)
    });
    if same {
        return Ok((old.as_ref() != Some(&work)).then_some(work));
    }
    // A policy may have decided about it before.
    for key in [keys::CRB_NAME, keys::CONFLICT_RESOLUTION] {
        work.metadata.annotations.remove(key);
    }
    if work.metadata.labels.remove(keys::CRB_ID).is_some() {
        work.spec.preserve_resources_on_deletion = None;
    }
    put_rendered(&mut work, rendered, &cluster.metadata.name);
    work.metadata.owner_references = vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
    Ok((old.as_ref() != Some(&work)).then_some(work))
}

/// Whether somebody places a namespace on a cluster. Where nobody does any more it goes as all namespaces do: it is taken over
/// as it is, for a member's namespace takes everything in it along when it goes.
fn is_placed(state: &State, namespace: &Value, cluster: &str) -> bool {
    let id = lockgate_engine::TemplateId::of(namespace);
    let binding = state
        .binding(&template::binding_key(&id))
        .filter(|binding| template::is_for(binding, &id) && !binding.metadata.deleting());
    // Claimed, and waiting for its policy or to be bound again.
    let claimed = Claim::on_template(namespace).is_some();
    match binding {
        None => claimed,
        Some(binding) => {
            let mut required = binding.spec.required_by.iter().flat_map(|by| &by.clusters);
            let owned = claimed || Claim::on_binding(&binding.metadata).is_some();
            template::targets(&binding).contains(cluster)
                && (owned || required.any(|target| target.name == cluster))
        }
    }
}

/// The namespace is not in memory, or going: its Works go if it is gone by the server's own word, or nothing is left in it.
/// Whatever is still there, because somebody protects it or has not let it go, keeps its copies.
async fn gone(state: &State, name: &str) -> Result<(), PassError> {
    let works: Vec<_> = state
        .works_named(&names::work_name("Namespace", "", name))
        .into_iter()
        .filter(|cached| {
            state::parse::<Work>(cached).is_some_and(|work| {
                work.metadata.label(keys::CRB_ID).is_none()
                    && work
                        .metadata
                        .controller()
                        .is_some_and(|o| o.kind == "Namespace" && o.name == name)
            })
        })
        .collect();
    if works.is_empty() {
        return Ok(());
    }
    let id = lockgate_engine::TemplateId {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    // No definition stands behind a Namespace, whenever its Works were made.
    if template::presence(state, &id, &ObjectMeta::default()).await? != template::Presence::Gone {
        return Ok(());
    }
    for cached in works {
        if cached.terminating {
            // Somebody deleted it before, and the member waited for this.
            state.members.wake(&cached.key);
        } else {
            template::delete_work(state, &cached.key).await?;
        }
    }
    Ok(())
}
