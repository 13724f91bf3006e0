//! What comes back to a member after it was removed. A leader that was stopped between its look at the lease and its request
//! sends that one request when it goes on; if it is a create, nothing else keeps it from making again what another leader has
//! removed since. The one that removed it knows, for a while, and removes it once more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::keys;
use lockgate_engine::object;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::dispatching::{SendError, Sent, member_resource, object_key};
use super::lane::Lane;
use super::withdrawing::{self, Preserve};
use crate::state::{self, State};

/// How long is remembered what was removed, and of how many Works of a member.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
const REMEMBERED: usize = 1_000;

/// What was removed lately, by the name of its Work.
#[derive(Default)]
pub(crate) struct Removed(Mutex<HashMap<String, Removal>>);

#[derive(Clone)]
struct Removal {
    at: Timestamp,
    uid: String,
    /// As much of the manifest as it takes to know the object.
    manifest: Value,
}

impl Removal {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.duration_since(self.at).unsigned_abs() < REMEMBERED_FOR
    }
}

impl Removed {
    /// Remembers that the object of a manifest was removed.
    pub(super) fn note(&self, manifest: &Value, uid: &str, now: Timestamp) {
        let Some(work) = object::annotation(manifest, keys::WORK_NAME) else {
            return;
        };
        let mut removed = self.0.lock();
        if removed.len() >= REMEMBERED {
            removed.retain(|_, removal| removal.is_fresh(now));
        }
        if removed.len() >= REMEMBERED {
            return;
        }
        let annotations = [keys::WORK_NAME, keys::WORK_NAMESPACE]
            .map(|key| (key.to_owned(), object::annotation(manifest, key).into()));
        let removal = Removal {
            at: now,
            uid: uid.to_owned(),
            manifest: json!({
                "apiVersion": manifest["apiVersion"],
                "kind": manifest["kind"],
                "metadata": {
                    "name": object::meta_text(manifest, "name"),
                    "namespace": object::meta_text(manifest, "namespace"),
                    "annotations": Value::Object(annotations.into_iter().collect()),
                },
            }),
        };
        removed.insert(work.to_owned(), removal);
    }

    fn find(&self, work: &str, now: Timestamp) -> Option<Removal> {
        let removed = self.0.lock();
        removed.get(work).filter(|removal| removal.is_fresh(now)).cloned()
    }
}

/// There is no Work of a name. If what it sent was removed lately and is there again, it is removed again.
pub(super) async fn pass(state: &State, lane: &Arc<Lane>, work: &str) -> Result<Sent, SendError> {
    let Some(removal) = lane.removed.find(work, state.clock.now()) else {
        return Ok(Sent::Settled);
    };
    let manifest = &removal.manifest;
    let resource = state
        .cluster(&lane.cluster)
        .and_then(|cluster| member_resource(&cluster, manifest));
    let (Some(resource), Some(link)) = (resource, lane.link()) else {
        return Ok(Sent::Settled);
    };
    let live: Option<Value> = lane
        .objects
        .known(&resource)
        .and_then(|objects| objects.get(&object_key(manifest)))
        .and_then(|cached| state::parse(&cached));
    if live.is_none_or(|live| object::meta_text(&live, "uid") == removal.uid) {
        return Ok(Sent::Settled);
    }
    tracing::warn!(cluster = %lane.cluster, work, "what was removed came back without its Work; it is removed again");
    withdrawing::withdraw(state, lane, &link, manifest, Preserve::Nothing).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_remembered_for_a_while_and_not_without_end() {
        let removed = Removed::default();
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let manifest = |name: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"large": "content"}, "metadata": {
                "name": name, "namespace": "shop", "annotations": {keys::WORK_NAME: name, keys::WORK_NAMESPACE: "ns"}}})
        };
        removed.note(&manifest("a"), "1", at(1_000));
        let found = removed.find("a", at(1_599)).unwrap();
        assert_eq!(found.uid, "1");
        assert_eq!(found.manifest["data"], Value::Null);
        assert_eq!(
            object::annotation(&found.manifest, keys::WORK_NAMESPACE),
            Some("ns")
        );
        assert!(removed.find("a", at(1_600)).is_none());
        assert!(removed.find("b", at(1_000)).is_none());
        for number in 0..2 * REMEMBERED {
            removed.note(&manifest(&number.to_string()), "2", at(1_001));
        }
        assert_eq!(removed.0.lock().len(), REMEMBERED);
        // Room is made by what is old.
        removed.note(&manifest("late"), "3", at(2_000));
        assert!(removed.find("late", at(2_000)).is_some());
        assert_eq!(removed.0.lock().len(), 1);
    }
}
