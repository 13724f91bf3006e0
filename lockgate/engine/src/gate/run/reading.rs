//! What a Work says of a rollout: what its member was told, and how it is with that.

use jiff::Timestamp;
use lockgate_api::{Condition, ObjectMeta, Work, keys};
use serde_json::Value;

use super::{Marks, Seen};
use crate::observe::{Health, is_applied, is_behind};

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

/// How a member is with what its Work holds. What it said of anything older does not count.
pub fn seen(work: &Work) -> Seen {
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
    match Health::parse(&object.health) {
        Health::Healthy => Seen::Well,
        Health::Unknown => Seen::Applied,
        Health::Unhealthy if object.status.as_ref().is_some_and(has_given_up) => Seen::Bad,
        Health::Unhealthy => Seen::UnderWay,
    }
}

/// Whether an object says that it will not become well by itself.
fn has_given_up(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "Progressing"
            && condition["status"] == "False"
            && condition["reason"] == "ProgressDeadlineExceeded"
            || condition["type"] == "Failed" && condition["status"] == "True"
    })
}
