//! Whether a Work that is being deleted takes the member's object with it.
//!
//! A member's object is deleted only if its template is gone or going by the server's own word, if the gate released the
//! removal, if a failover purges directly, or if an unjoin was told to. A Work that somebody deleted by hand is made again, as it was,
//! and the member is not touched.

use lockgate_api::{Cluster, Condition, Work, keys};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::Claim;
use lockgate_engine::cluster::Workloads;
use lockgate_engine::failover;
use lockgate_engine::gate::{self, Removal};
use lockgate_engine::observe;
use serde_json::Value;

use super::dispatching::SendError;
use crate::cache::Key;
use crate::head::head;
use crate::namespaces;
use crate::state::{self, State};
use crate::template::{self, Presence, owning};

/// What happens to the member's object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It is deleted, or kept without our marks where the Work says so.
    Remove,
    /// It is kept without our marks: the cluster leaves.
    Keep,
    /// It is not touched, and the Work is made again as it was: whether it can be rendered now is another matter.
    Untouched,
    /// Nobody has to do with it here.
    Nothing,
    /// Nobody can tell yet.
    NotYet(String),
}

/// Whether a Work of a cluster that leaves may go. Where it takes the member's object with it, the copies that come
/// elsewhere in its place are there first; what has nowhere to go was told to go all the same.
pub(crate) fn may_leave(state: &State, cluster: &Cluster, work: &Work) -> Result<(), SendError> {
    let name = &cluster.metadata.name;
    let manifest = work.spec.workload.manifests.first();
    let (Workloads::Delete, Some(manifest)) = (Workloads::of(cluster), manifest) else {
        return Ok(());
    };
    let id = template_behind(state, work, manifest);
    if template::is_namespace(&id) {
        // It would take everything in it along.
        let inside = state
            .caches
            .works
            .list_in(&work.metadata.namespace)
            .iter()
            .filter_map(|cached| head(cached)?.id)
            .any(|other| other.namespace == id.name);
        return if inside {
            Err(SendError::NotYet(format!(
                "the namespace {} is not empty yet",
                id.name
            )))
        } else {
            Ok(())
        };
    }
    let binding = state.binding(&template::binding_key(&id)).filter(|binding| {
        template::is_for(binding, &id)
            && !binding.metadata.deleting()
            && Claim::on_binding(&binding.metadata).is_some()
    });
    let Some(binding) = binding else { return Ok(()) };
    if template::targets(&binding).contains(name.as_str()) {
        let verdicts = state.verdicts.lock();
        let verdict = verdicts.get(&id);
        let is_placed = |verdict: &template::Verdict| {
            verdict.unplaced.is_none() && verdict.scheduled.as_ref().is_some_and(|(ok, ..)| *ok)
        };
        if verdict.is_none_or(is_placed) {
            return Err(SendError::NotYet(format!("{id} is about to be placed elsewhere")));
        }
        return Ok(());
    }
    match template::removal(state, &id, &binding) {
        // Where every cluster has all of it, one that refuses its copy keeps no other from leaving while somebody has one.
        Removal::WaitFor(clusters)
            if !gate::divides(&binding.spec)
                && gate::wanted(&binding.spec).len() > clusters.len()
                && clusters.iter().all(|cluster| is_refused(state, &id, cluster)) =>
        {
            Ok(())
        }
        Removal::WaitFor(clusters) => Err(SendError::NotYet(format!(
            "removal waits until {} has its copy",
            clusters.join(", ")
        ))),
        Removal::Remove | Removal::Hold => Ok(()),
    }
}

/// Whether a cluster was told of a copy and refused it.
fn is_refused(state: &State, id: &TemplateId, cluster: &str) -> bool {
    owning::work_on(state, id, cluster).is_some_and(|(_, head)| {
        let applied = Condition::find(&head.work.status.conditions, observe::APPLIED);
        applied.is_some_and(|applied| !applied.is_true())
    })
}

/// The template whose copy goes with a Work. A copy that somebody made another object by hand stands for that.
fn template_behind(state: &State, work: &Work, manifest: &Value) -> TemplateId {
    let copy = TemplateId::of(manifest);
    let id = template::of_work(state, &work.metadata, copy.clone());
    let names = |id: &TemplateId| (id.kind.clone(), id.namespace.clone(), id.name.clone());
    if names(&id) == names(&copy) { id } else { copy }
}

/// What happens to the member's object when its Work goes.
pub(crate) async fn due(state: &State, cluster: &str, work: &Work) -> Result<Due, SendError> {
    match state.cluster(cluster) {
        None => return Ok(Due::Nothing),
        Some(cluster) if cluster.metadata.deleting() => {
            let delete = cluster.metadata.annotation(keys::UNJOIN_WORKLOADS) == Some("delete");
            return Ok(if delete { Due::Remove } else { Due::Keep });
        }
        Some(_) => {}
    }
    let Some(manifest) = work.spec.workload.manifests.first() else {
        return Ok(Due::Nothing);
    };
    let id = template_behind(state, work, manifest);
    let binding = state
        .binding(&template::binding_key(&id))
        .filter(|binding| template::is_for(binding, &id));
    if let Some(binding) = binding.as_ref().filter(|binding| !binding.metadata.deleting()) {
        if template::targets(binding).contains(cluster) {
            return Ok(Due::Untouched);
        }
        if template::is_namespace(&id) {
            return Ok(left_namespace(state, &id));
        }
        let mut tasks = binding.spec.graceful_eviction_tasks.iter();
        if tasks.any(|task| task.from_cluster == cluster && failover::is_direct(task)) {
            if template::is_failover_paused(state, binding, cluster) {
                return Ok(Due::NotYet(
                    "removal waits while the workload is suspended".to_owned(),
                ));
            }
            // It goes before anything comes elsewhere, as was asked for.
            return Ok(Due::Remove);
        }
        return Ok(match template::removal(state, &id, binding) {
            Removal::Remove => Due::Remove,
            Removal::Hold => Due::Untouched,
            Removal::WaitFor(clusters) => Due::NotYet(format!(
                "removal waits until {} has its copy",
                clusters.join(", ")
            )),
        });
    }
    // A Work may be older than the template: one that was made again takes over the copies of the one before.
    let made = binding
        .as_ref()
        .map_or(&work.metadata, |binding| &binding.metadata);
    match template::presence(state, &id, made)
        .await
        .map_err(SendError::Hub)?
    {
        Presence::Gone => Ok(Due::Remove),
        Presence::There { .. } => Ok(Due::Untouched),
        Presence::Going => Ok(Due::NotYet(format!(
            "the namespace {} is being deleted, and something is left in it",
            id.name
        ))),
        Presence::Unknown => Ok(Due::NotYet(format!(
            "nobody can tell whether somebody deleted {id}: its kind is not served, or was defined anew"
        ))),
    }
}

/// What happens to a namespace that a placement leaves. It would take everything in it along, whoever put it there; so it is
/// never deleted for that.
fn left_namespace(state: &State, id: &TemplateId) -> Due {
    let namespace = state.kinds.served(&id.api_version, &id.kind).and_then(|kind| {
        let cached = kind.cache.get(&Key::new("", &id.name))?;
        state::parse::<Value>(&cached)
    });
    match namespace {
        Some(namespace) if !namespaces::is_sent(state, &namespace) => Due::Keep,
        // It is made again by whoever sends it everywhere.
        _ => Due::Nothing,
    }
}
