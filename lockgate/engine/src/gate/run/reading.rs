//! What a Work says of a rollout: what its member was told, and how it is with that.

use jiff::Timestamp;
use lockgate_api::work::ManifestStatus;
use lockgate_api::{Condition, ObjectMeta, Work, keys};
use serde_json::Value;

use super::{Marks, Seen};
use crate::observe::{Health, has_rule, is_applied, is_behind, is_observed};

/// What a member was told, as its Work says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Which content.
    pub digest: String,
    /// The revision in which a rollout told it so; 0: no rollout did.
    pub revision: i64,
    /// When.
    pub released_at: Option<Timestamp>,
    /// Since when it has been well.
    pub healthy_since: Option<Timestamp>,
    /// Since when it has not been well any more.
    pub failed_since: Option<Timestamp>,
}

impl Told {
    /// What a Work says.
    pub fn of(work: &ObjectMeta) -> Self {
        let time = |key| work.annotation(key).and_then(|text| text.parse().ok());
        let revision = work.annotation(keys::REVISION).and_then(|text| text.parse().ok());
        Self {
            digest: work
                .annotation(keys::RENDERED_FROM)
                .unwrap_or_default()
                .to_owned(),
            revision: revision.unwrap_or(0),
            released_at: time(keys::RELEASED_AT),
            healthy_since: time(keys::HEALTHY_SINCE),
            failed_since: time(keys::FAILED_SINCE),
        }
    }

    /// Its marks, if a rollout told it anything.
    pub fn marks(&self) -> Option<Marks> {
        (self.revision > 0).then_some(Marks {
            released_at: self.released_at,
            healthy_since: self.healthy_since,
            failed_since: self.failed_since,
        })
    }
}

impl Marks {
    /// Makes a Work carry them.
    pub fn put(&self, work: &mut ObjectMeta) {
        for (key, time) in [
            (keys::RELEASED_AT, self.released_at),
            (keys::HEALTHY_SINCE, self.healthy_since),
            (keys::FAILED_SINCE, self.failed_since),
        ] {
            match time {
                Some(time) => drop(work.annotations.insert(key.to_owned(), time.to_string())),
                None => drop(work.annotations.remove(key)),
            }
        }
    }
}

/// How a member is with what its Work holds. What it said of anything older does not count. `judged`: whether a script says
/// how such objects are.
pub fn seen(work: &Work, judged: bool) -> Seen {
    if !is_applied(work) {
        let refused = Condition::find(&work.status.conditions, "Applied").is_some_and(|condition| {
            !condition.is_true() && condition.observed_generation == Some(work.metadata.generation)
        });
        return if refused { Seen::Bad } else { Seen::Unknown };
    }
    let Some(object) = work.status.manifest_statuses.first() else {
        // The object is gone, or nobody has seen it yet.
        return Seen::Unknown;
    };
    if is_behind(work, object.status.as_ref()) {
        return Seen::Unknown;
    }
    if !is_observed(work) {
        // Nobody can say of what its health speaks, so that it is no success and no recovery. That it is not well counts.
        return match Health::parse(&object.health) {
            Health::Unhealthy => Seen::UnderWay,
            Health::Healthy | Health::Unknown => Seen::Unknown,
        };
    }
    match Health::parse(&object.health) {
        Health::Unhealthy if object.status.as_ref().is_some_and(has_given_up) => Seen::Bad,
        Health::Unhealthy => Seen::UnderWay,
        // While old replicas are there, it may be they that are well.
        _ if !judged && is_replacing(object) => Seen::UnderWay,
        // A Job that failed is not well, although no rule says so.
        _ if !judged && object.status.as_ref().is_some_and(has_failed) => Seen::Bad,
        Health::Healthy if judged || says_how_it_is(object) => Seen::Well,
        Health::Healthy | Health::Unknown => Seen::Applied,
    }
}

/// Whether a Deployment still has replicas of what it was before.
fn is_replacing(object: &ManifestStatus) -> bool {
    let count = |field: &str| {
        let status = object.status.as_ref();
        status.and_then(|status| status[field].as_i64()).unwrap_or(0)
    };
    object.identifier.group == "apps"
        && object.identifier.kind == "Deployment"
        && count("replicas") > count("updatedReplicas")
}

/// Whether there is a rule for objects of a kind, or the object itself says how it is.
fn says_how_it_is(object: &ManifestStatus) -> bool {
    let mut said = object.status.iter().flat_map(conditions);
    has_rule(&object.identifier.group, &object.identifier.kind)
        || said.any(|condition| {
            matches!(
                condition["type"].as_str(),
                Some("Ready" | "Available" | "Complete")
            ) && condition["status"] == "True"
        })
}

/// Whether an object says that it will not become well by itself.
fn has_given_up(status: &Value) -> bool {
    has_failed(status)
        || conditions(status).any(|condition| {
            condition["type"] == "Progressing"
                && condition["status"] == "False"
                && condition["reason"] == "ProgressDeadlineExceeded"
        })
}

fn has_failed(status: &Value) -> bool {
    conditions(status).any(|condition| condition["type"] == "Failed" && condition["status"] == "True")
}

fn conditions(status: &Value) -> impl Iterator<Item = &Value> {
    status["conditions"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::observe::{STATUS_BYTES, observe_by, unobserved};

    fn work(kind: &str, health: &str, status: &Value) -> Work {
        let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
        let work = json!({
            "metadata": {"generation": 1},
            "status": {
                "conditions": [{"type": "Applied", "status": "True", "observedGeneration": 1}],
                "manifestStatuses": [{
                    "identifier": {"group": group, "kind": kind}, "status": status, "health": health,
                }],
            },
        });
        serde_json::from_value(work).unwrap()
    }

    #[test]
    fn what_nobody_can_say_is_no_success() {
        let live = |ready: &str, log: usize| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ark"},
                "status": {"conditions": [{"type": "Ready", "status": ready}], "log": "x".repeat(log)},
            })
        };
        for (ready, log, judged, expected) in [
            ("True", 0, false, Seen::Well),
            ("False", 0, false, Seen::UnderWay),
            ("Unknown", 0, false, Seen::Applied),
            ("True", STATUS_BYTES, false, Seen::Unknown),
            ("True", STATUS_BYTES, true, Seen::Unknown),
            ("Unknown", STATUS_BYTES, false, Seen::Unknown),
            // It failed, and what it writes beside that does not hide it.
            ("False", STATUS_BYTES, false, Seen::UnderWay),
        ] {
            let (observed, trouble) = observe_by(&live(ready, log), None);
            let status = observed.status.unwrap_or_default();
            let mut work = work("example.com/Boat", observed.health.as_str(), &status);
            let told = trouble.map(|trouble| unobserved(&trouble, Timestamp::UNIX_EPOCH));
            work.status.conditions.extend(told);
            assert_eq!(seen(&work, judged), expected, "{ready} {log} {judged}");
        }
    }

    #[test]
    fn who_has_no_rule_and_says_nothing_is_applied() {
        let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        for (kind, health, status, judged, expected) in [
            ("apps/Deployment", "Healthy", json!({}), false, Seen::Well),
            ("apps/Deployment", "Unhealthy", json!({}), false, Seen::UnderWay),
            (
                "apps/Deployment",
                "Healthy",
                json!({"replicas": 2, "updatedReplicas": 1}),
                false,
                Seen::UnderWay,
            ),
            ("ConfigMap", "Healthy", json!({}), false, Seen::Applied),
            ("example.com/Boat", "Healthy", json!({}), false, Seen::Applied),
            ("example.com/Boat", "Healthy", json!({}), true, Seen::Well),
            ("example.com/Boat", "Healthy", ready, false, Seen::Well),
            ("example.com/Boat", "Unknown", json!({}), false, Seen::Applied),
            ("batch/Job", "Healthy", json!({"active": 1}), false, Seen::Applied),
            ("batch/Job", "Healthy", complete, false, Seen::Well),
            ("batch/Job", "Healthy", failed.clone(), false, Seen::Bad),
            ("batch/Job", "Healthy", failed, true, Seen::Well),
        ] {
            assert_eq!(
                seen(&work(kind, health, &status), judged),
                expected,
                "{kind} {health} {judged}"
            );
        }
    }
}
