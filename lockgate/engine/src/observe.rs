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
mod size;
mod template;
mod work;

use jiff::Timestamp;
use lockgate_api::work::{ManifestStatus, ResourceIdentifier};
use machinery_value::encode::encoded_len;
use serde_json::Value;

use crate::interpret::{InterpretError, Interpreter};
use crate::object::TemplateId;

pub use binding::{NOT_YET, Scheduled, WorkView, aggregate_works, fully_applied, is_failing, scheduled};
pub use compliance::overall_compliance;
pub use health::has_rule;
pub use size::{STATUS_BYTES, fit};
pub(crate) use template::is_behind;
pub use template::{Counts, MemberReport, aggregate_template, aggregate_template_as, is_still_elsewhere};
pub use work::{
    APPLIED, OBSERVED, RECREATE_FAILED, UNDISPUTED, applied, dispatching, disputed, has_copy, is_applied,
    is_observed, suspended, unobserved,
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

/// Why nobody can say what a member object reports, or how it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Why, in one word.
    pub reason: &'static str,
    /// The reason of the event that tells it.
    pub event: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

impl Trouble {
    /// A script does not say it.
    fn of_script(error: &InterpretError) -> Self {
        Self {
            reason: "ScriptFailed",
            event: match error.field {
                "statusReflection" => REFLECT_FAILED,
                _ => "InterpretHealthFailed",
            },
            message: error.to_string(),
        }
    }

    /// The status is too long to be kept.
    fn too_long(bytes: usize) -> Self {
        Self {
            reason: "StatusTooLong",
            event: REFLECT_FAILED,
            message: format!(
                "the status of the member's object has {bytes} bytes, of which at most {STATUS_BYTES} are kept: a \
                 ResourceInterpreterCustomization may say which part of it is (statusReflection)"
            ),
        }
    }

    /// The hub does not store the status, for this reason.
    pub fn refused(why: &str) -> Self {
        Self {
            reason: "StatusRefused",
            event: REFLECT_FAILED,
            message: format!("the hub refuses the status of the member's object: {why}"),
        }
    }
}

/// The reason of the event about a status that is not kept.
const REFLECT_FAILED: &str = "ReflectStatusFailed";

/// What is to be said of a live member object.
pub fn observe(live: &Value) -> Observed {
    observe_by(live, None).0
}

/// As [`observe`], by scripts where there are some. What a script does not answer is not known. How an object does is seen on
/// the object itself, also where its status cannot be kept: a failure is not hidden by what is written beside it.
pub fn observe_by(live: &Value, interpreter: Option<&Interpreter>) -> (Observed, Option<Trouble>) {
    let reflected = match interpreter.and_then(|interpreter| interpreter.reflect(live)) {
        None => reflected(live),
        Some(told) => told.map_err(|error| Trouble::of_script(&error)),
    };
    let (status, unreflected) = match reflected {
        Ok(status) => (status, None),
        Err(trouble) => (None, Some(trouble)),
    };
    let (health, unjudged) = match interpreter.and_then(|interpreter| interpreter.health(live)) {
        None => (health::health(live), None),
        Some(Ok(health)) => (health, None),
        Some(Err(error)) => (Health::Unknown, Some(Trouble::of_script(&error))),
    };
    (Observed { status, health }, unreflected.or(unjudged))
}

/// The part of the status that is kept by what is known of its kind.
fn reflected(live: &Value) -> Result<Option<Value>, Trouble> {
    let status = reflect::reflect(live);
    match status.as_ref().map_or(0, encoded_len) {
        0..=STATUS_BYTES => Ok(status),
        bytes => Err(Trouble::too_long(bytes)),
    }
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

/// As [`manifest_status`], by scripts where there are some; and what is wrong.
pub fn manifest_status_by(
    live: &Value,
    ordinal: i64,
    interpreter: Option<&Interpreter>,
) -> (ManifestStatus, Option<Trouble>) {
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
