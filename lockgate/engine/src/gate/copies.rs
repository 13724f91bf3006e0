//! Who still waits for a copy, or for replicas: what removals, and fewer replicas, wait for.
//!
//! A cluster that has had its copy for long is waited for by nobody, whatever of a later change it has not got: it may be
//! down, suspended or refusing for ever. Where replicas are divided, or overrides say how many, those that left one cluster are
//! another's: one that is to have more is waited for until it has them.

use lockgate_api::{BindingSpec, Work};

use crate::observe;
use crate::place;
use crate::render;

/// Whether a cluster has not got what others may go for: its copy, and where replicas move from one to another, these. It is
/// told its Work with the manifest; none if there is no Work.
pub fn lacks(moves: bool, work: Option<&Work>) -> bool {
    let Some(work) = work else { return true };
    if observe::is_applied(work) {
        return false;
    }
    if !observe::has_copy(work) {
        return true;
    }
    if !moves {
        return false;
    }
    let manifest = work.spec.workload.manifests.first();
    let given = manifest.and_then(render::workload).map(|given| given.replicas);
    let has = work.status.last_applied.as_ref().and_then(|last| last.replicas);
    // What nobody counted may be too few.
    !matches!((given, has), (Some(given), Some(has)) if given <= has)
}

/// Whether the replicas that one cluster loses are given to others.
pub fn divides(spec: &BindingSpec) -> bool {
    let scheduling = spec
        .placement
        .as_ref()
        .and_then(|placement| placement.replica_scheduling.as_ref());
    place::is_workload(spec)
        && scheduling.is_some_and(|scheduling| scheduling.replica_scheduling_type != "Duplicated")
}

#[cfg(test)]
mod tests {
    use lockgate_api::work::{LastApplied, Workload};
    use serde_json::{Value, json};

    use super::*;

    const AT: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

    /// A Work that gives so many replicas; what was said of it, and what its member had then.
    fn work(gives: i64, said: Option<Result<i64, &str>>, had: Option<Option<i64>>) -> Work {
        let mut work = Work::default();
        work.metadata.generation = 2;
        work.spec.workload = Workload {
            manifests: vec![json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": gives },
            })],
        };
        match said {
            Some(Ok(generation)) => {
                observe::applied(Ok(()), false, generation, AT).put(&mut work.status.conditions);
            }
            Some(Err(why)) => observe::applied(Err(why), false, 2, AT).put(&mut work.status.conditions),
            None => {}
        }
        work.status.last_applied = had.map(|replicas| LastApplied {
            work_generation: 1,
            uid: "a".into(),
            version: "gen:1".into(),
            replicas,
        });
        work
    }

    fn spec(scheduling: Value) -> BindingSpec {
        serde_json::from_value(json!({
            "replicas": 4, "placement": { "replicaScheduling": scheduling },
        }))
        .unwrap()
    }

    #[test]
    fn who_has_had_its_copy_is_waited_for_only_if_replicas_move_to_it() {
        let duplicated = spec(json!({ "replicaSchedulingType": "Duplicated" }));
        let divided = spec(json!({ "replicaSchedulingType": "Divided" }));
        let plain: BindingSpec = serde_json::from_value(json!({ "placement": {} })).unwrap();
        for (name, work, waited, waited_if_divided) in [
            ("no Work", None, true, true),
            ("nothing sent", Some(work(2, None, None)), true, true),
            (
                "refused at once",
                Some(work(2, Some(Err("no")), None)),
                true,
                true,
            ),
            ("applied", Some(work(2, Some(Ok(2)), Some(Some(2)))), false, false),
            (
                "down since an edit",
                Some(work(2, Some(Ok(1)), Some(Some(2)))),
                false,
                false,
            ),
            (
                "refuses an edit",
                Some(work(2, Some(Err("no")), Some(Some(2)))),
                false,
                false,
            ),
            (
                "is to have more",
                Some(work(3, Some(Ok(1)), Some(Some(2)))),
                false,
                true,
            ),
            (
                "is to have fewer",
                Some(work(1, Some(Ok(1)), Some(Some(2)))),
                false,
                false,
            ),
            (
                "nobody counted",
                Some(work(2, Some(Ok(1)), Some(None))),
                false,
                true,
            ),
            (
                "sent by another control plane",
                Some(work(2, Some(Ok(1)), None)),
                false,
                true,
            ),
        ] {
            assert_eq!(lacks(divides(&duplicated), work.as_ref()), waited, "{name}");
            assert_eq!(lacks(divides(&plain), work.as_ref()), waited, "{name}");
            assert_eq!(
                lacks(divides(&divided), work.as_ref()),
                waited_if_divided,
                "{name}, divided"
            );
        }
    }
}
