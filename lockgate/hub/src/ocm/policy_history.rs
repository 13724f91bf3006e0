//! The revisions of a root policy that one can go back to.

use lockgate_api::binding::TargetCluster;
use lockgate_api::ocm::{POLICY_GROUP, Policy};
use lockgate_engine::TemplateId;
use lockgate_engine::gate::record::{Good, Request, RolloutRecord, Verb};
use lockgate_engine::gate::revision::Revision;
use serde_json::Value;

use crate::cache::Key;
use crate::state::State;
use crate::template::{PassError, derived_id, revisions};

/// What the revisions of a root policy carry as a label.
pub fn policy_history_id(namespace: &str, name: &str) -> String {
    derived_id(&format!("{namespace}/{name}"), "policy")
}

fn id(root: &Key) -> (TemplateId, String) {
    let id = TemplateId {
        api_version: format!("{POLICY_GROUP}/v1"),
        kind: "Policy".to_owned(),
        namespace: root.namespace.to_string(),
        name: root.name.to_string(),
    };
    (id, policy_history_id(&root.namespace, &root.name))
}

/// What is sent in the place of the root, if what it says was given up. A revision that somebody deleted cannot be sent:
/// clusters stay as they are, then.
pub(super) async fn sent(
    state: &State,
    root: &Key,
    record: &mut RolloutRecord,
    intent: &str,
) -> Result<Option<Policy>, PassError> {
    let (id, history) = id(root);
    let Some(to) = record.back(intent).and_then(|back| back.to.clone()) else {
        state.ways_back.lock().remove(&id);
        return Ok(None);
    };
    let stored = revisions::read(state, &id, &history, &to.digest).await?;
    let policy = stored.and_then(|stored| serde_json::from_value(stored.revision.template.clone()).ok());
    if policy.is_none()
        && let Some(back) = &mut record.back
    {
        back.to = None;
        back.why.push_str(" (the revision to go back to is gone)");
    }
    Ok(policy)
}

/// Keeps the current revision of a root, and drops what is older than anybody goes back to.
pub(super) async fn keep(
    state: &State,
    root: &Key,
    value: &Value,
    clusters: impl Iterator<Item = &str>,
    record: &RolloutRecord,
) -> Result<(), PassError> {
    let mut template = value.clone();
    if let Some(object) = template.as_object_mut() {
        object.remove("status");
        object.remove("metadata");
    }
    let target = |name: &str| TargetCluster {
        name: name.to_owned(),
        ..TargetCluster::default()
    };
    let revision = Revision {
        template,
        clusters: clusters.map(target).collect(),
        ..Revision::default()
    };
    let (id, history) = id(root);
    revisions::keep(state, &id, &history, &record.current(), &revision).await?;
    if usize::try_from(record.revision).is_ok_and(|number| number > revisions::KEPT) {
        prune(state, root, record).await?;
    }
    Ok(())
}

/// Drops what is older than anybody goes back to.
pub(super) async fn prune(state: &State, root: &Key, record: &RolloutRecord) -> Result<(), PassError> {
    let (id, history) = id(root);
    let back = record.back.iter().filter_map(|back| back.to.as_ref());
    let good = record.good.iter().chain(back);
    let mut needed: Vec<&str> = good.map(|good| good.digest.as_str()).collect();
    needed.push(&record.digest);
    revisions::prune(state, &id, &history, &needed).await
}

/// Says of the revision that is given up now that it was: a choice of an operator gives nothing up.
pub(super) async fn give_up(
    state: &State,
    root: &Key,
    before: &RolloutRecord,
    next: &RolloutRecord,
) -> Result<(), PassError> {
    let back = next.back.as_ref().filter(|_| next.back != before.back);
    let Some(back) = back.filter(|back| !back.forward && back.from == next.revision) else {
        return Ok(());
    };
    if back.to.as_ref().is_some_and(|to| to.digest == next.digest) {
        return Ok(());
    }
    let (id, history) = id(root);
    revisions::give_up(state, &id, &history, &next.digest).await
}

/// The revision that an operator wants to go to; none if there is no such revision, or nobody wants that.
pub(super) async fn chosen(
    state: &State,
    root: &Key,
    request: Option<&Request>,
    record: &RolloutRecord,
) -> Result<Option<Good>, PassError> {
    let Some(request) = request.filter(|request| request.verb == Verb::Undo) else {
        return Ok(None);
    };
    let (id, history) = id(root);
    let entries = revisions::list(state, &id, &history).await?;
    let found = match request.to {
        Some(number) => entries.into_iter().find(|entry| entry.number == number),
        // The one before, of those that nobody has given up.
        None => entries
            .into_iter()
            .find(|entry| entry.digest != record.digest && !entry.given_up),
    };
    Ok(found.map(|entry| Good {
        revision: entry.number,
        digest: entry.digest,
    }))
}

/// Forgets the revisions of a root that is gone.
pub(super) async fn forget(state: &State, root: &Key) -> Result<(), PassError> {
    let (id, history) = id(root);
    revisions::forget(state, &id, &history).await
}
