//! The observe station: what happened in the members, and what the hub says about it.
//!
//! ```text
//! member object ─▶ Work.status ─▶ binding.status.aggregatedStatus ─▶ template.status
//!     observe       MemberReport       aggregate_works           aggregate_template
//! ```
//!
//! What always holds: nothing here is said that no member said; a status whose only news would be a time is not
//! written; and clients that wait for a template (`kubectl rollout status`, `kubectl wait`) end when every cluster that
//! was counted is ready, and not before.

mod binding;
mod compliance;
mod health;
mod kind;
mod reflect;
mod template;
mod work;

use jiff::Timestamp;
use lockgate_api::work::{ManifestStatus, ResourceIdentifier};
use serde_json::Value;

use crate::interpret::{InterpretError, Interpreter};
use crate::object::TemplateId;

pub use binding::{Scheduled, WorkView, aggregate_works, fully_applied, is_failing, scheduled};
pub use compliance::overall_compliance;
pub use health::has_rule;
pub(crate) use template::is_behind;
pub use template::{Counts, MemberReport, aggregate_template, aggregate_template_as};
pub use work::{
    APPLIED, OBSERVED, RECREATE_FAILED, UNDISPUTED, applied, dispatching, disputed, has_copy, is_applied,
    suspended, unobserved,
};

/// How a member object does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It does what it should.
    Healthy,
    /// It does not, or not yet.
    Unhealthy,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl Health {
    /// As it is written in statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
            Self::Unknown => "Unknown",
        }
    }

    /// From how it is written in statuses.
    pub fn parse(text: &str) -> Self {
        match text {
            "Healthy" => Self::Healthy,
            "Unhealthy" => Self::Unhealthy,
            _ => Self::Unknown,
        }
    }
}

/// What was seen of a member object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The part of its status that is of use on the hub; none if it has no status.
    pub status: Option<Value>,
    /// How it does.
    pub health: Health,
}

/// What is to be said of a live member object.
pub fn observe(live: &Value) -> Observed {
    Observed {
        status: reflect::reflect(live),
        health: health::health(live),
    }
}

/// As [`observe`], by scripts where there are some. What a script does not answer is not known.
pub fn observe_by(live: &Value, interpreter: Option<&Interpreter>) -> (Observed, Option<InterpretError>) {
    let Some(interpreter) = interpreter else {
        return (observe(live), None);
    };
    let mut trouble = None;
    let status = match interpreter.reflect(live) {
        None => reflect::reflect(live),
        Some(Ok(status)) => status,
        Some(Err(error)) => {
            trouble = Some(error);
            None
        }
    };
    let health = match interpreter.health(live) {
        None => health::health(live),
        Some(Ok(health)) => health,
        Some(Err(error)) => {
            trouble.get_or_insert(error);
            Health::Unknown
        }
    };
    (Observed { status, health }, trouble)
}

/// Names the manifest at this place of a Work.
pub fn identifier(manifest: &Value, ordinal: i64) -> ResourceIdentifier {
    let id = TemplateId::of(manifest);
    let version = id
        .api_version
        .split_once('/')
        .map_or(&*id.api_version, |(_, version)| version);
    ResourceIdentifier {
        ordinal,
        group: id.group().to_owned(),
        version: version.to_owned(),
        kind: id.kind,
        resource: String::new(),
        namespace: id.namespace,
        name: id.name,
    }
}

/// What a Work says of one live member object, which is that of the manifest at this place.
pub fn manifest_status(live: &Value, ordinal: i64) -> ManifestStatus {
    manifest_status_by(live, ordinal, None).0
}

/// As [`manifest_status`], by scripts where there are some; and what is wrong with them.
pub fn manifest_status_by(
    live: &Value,
    ordinal: i64,
    interpreter: Option<&Interpreter>,
) -> (ManifestStatus, Option<InterpretError>) {
    let (observed, trouble) = observe_by(live, interpreter);
    let status = ManifestStatus {
        identifier: identifier(live, ordinal),
        status: observed.status,
        health: observed.health.as_str().to_owned(),
    };
    (status, trouble)
}

/// A time as statuses carry it: whole seconds.
pub(crate) fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A count; 0 if it is not there, or is none.
fn count(object: &Value, field: &str) -> i64 {
    object.get(field).and_then(Value::as_i64).unwrap_or(0).max(0)
}

/// The condition of this type.
fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status
        .get("conditions")?
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Whether the condition of this type is `True`.
fn is_true(status: &Value, kind: &str) -> bool {
    condition(status, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A text, cut to a length that fits in a status.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    text.char_indices()
        .nth(limit)
        .map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests;
