//! The dispatch station: what must be written so that a member agrees with its Work.
//!
//! What always holds:
//! - An object that does not carry our mark is changed only if the manifest says `overwrite`, and never deleted.
//! - What the member gave an object (addresses, volumes, nodes, keys that nobody here wrote) survives every write.
//! - An object that agrees is not written.

mod corrections;
mod difference;
mod fights;
mod managers;
mod retain;
mod withdraw;

use lockgate_api::work::LastApplied;
use lockgate_api::{Work, keys, names};
use serde_json::Value;

use crate::interpret::Interpreter;
use crate::object::{self, TemplateId};

pub use corrections::Corrections;
pub use difference::{differing_path, differing_paths};
pub use fights::{Fight, Fights};
pub use managers::{OWN_MANAGER, manager_of};
pub use withdraw::{Withdraw, keeping, withdraw};

/// One manifest, and what the member has.
#[derive(Clone, Copy, Debug)]
pub struct DispatchInput<'a> {
    /// The manifest of the Work.
    pub manifest: &'a Value,
    /// The member's object, if there is one.
    pub live: Option<&'a Value>,
    /// What was sent last, if anything was.
    pub last_applied: Option<&'a LastApplied>,
    /// The Work's generation.
    pub work_generation: i64,
    /// How the object is read, if in a way of its own.
    pub interpreter: Option<&'a Interpreter>,
}

/// What must be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Dispatch {
    /// The member has no such object.
    Create(Value),
    /// The member's object differs. The new one is whole, and names the version that it replaces.
    Update(Value, Option<Drift>),
    /// The member agrees.
    Nothing,
    /// The member's object is being deleted; it is made again when it is gone.
    Wait,
    /// Nothing may be written.
    Refuse {
        /// One word for programs.
        reason: RefuseReason,
        /// A sentence for people.
        message: String,
    },
}

/// Why nothing may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// The member's object is not ours.
    Conflict,
    /// The manifest names no object.
    Invalid,
    /// A script does not say what the member's object keeps.
    Script,
}

/// Somebody changed what we had sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Where, such as `spec.replicas`. Values are not told: they may be secret.
    pub path: String,
}

/// Decides what must be written for one manifest.
///
/// An update may turn out to change nothing, because a server writes some values in its own way; then the answer has the
/// resourceVersion that the object already had, and no drift was corrected.
pub fn dispatch(input: &DispatchInput<'_>) -> Dispatch {
    let DispatchInput { manifest, live, .. } = *input;
    if let Some(missing) = what_is_missing(manifest) {
        let message = format!("the manifest has no {missing}");
        return Dispatch::Refuse {
            reason: RefuseReason::Invalid,
            message,
        };
    }
    let Some(live) = live else {
        return Dispatch::Create(manifest.clone());
    };
    if object::deleting(live) {
        return Dispatch::Wait;
    }
    if !is_managed(live) && object::annotation(manifest, keys::CONFLICT_RESOLUTION) != Some("overwrite") {
        return Dispatch::Refuse {
            reason: RefuseReason::Conflict,
            message: conflict_message(manifest),
        };
    }
    let sent = input
        .last_applied
        .filter(|last| last.work_generation == input.work_generation);
    let unchanged = sent
        .is_some_and(|last| last.uid == object::meta_text(live, "uid") && last.version == version_of(live));
    if unchanged && has_our_keys(manifest, live) {
        return Dispatch::Nothing;
    }
    let desired = match retain::retain(manifest, live, input.interpreter) {
        Ok(desired) => desired,
        Err(error) => {
            return Dispatch::Refuse {
                reason: RefuseReason::Script,
                message: error.to_string(),
            };
        }
    };
    match differing_path(&desired, live) {
        None => Dispatch::Nothing,
        // What was never sent, or sent before the Work changed, is no drift.
        Some(path) => Dispatch::Update(desired, sent.map(|_| Drift { path })),
    }
}

/// The version of an object that moves when its content does: `gen:N` for kinds with a generation, else `rv:N`.
pub fn version_of(live: &Value) -> String {
    match object::counted_generation(live) {
        ..=0 => format!("rv:{}", object::meta_text(live, "resourceVersion")),
        generation => format!("gen:{generation}"),
    }
}

/// What is said of a Work that somebody else wrote.
pub const STRANGER: &str = "no binding and no namespace stands behind this Work, so that this control plane did not write it: nothing of \
                            it is sent, and nothing in the member is touched when it goes. Write the object to the hub, with a \
                            policy that names it";

/// Whether somebody else wrote a Work: what it holds follows from nothing that is known here, so that nobody could tell when
/// it is to go again.
pub fn is_stranger(work: &Work) -> bool {
    let metadata = &work.metadata;
    let bound = [keys::RB_ID, keys::CRB_ID]
        .iter()
        .any(|key| metadata.label(key).is_some());
    !bound
        && metadata
            .controller()
            .is_none_or(|owner| owner.kind != "Namespace")
}

/// Whether an object carries our mark.
pub fn is_managed(live: &Value) -> bool {
    object::label(live, keys::MANAGED) == Some("true")
}

/// Whether all labels and annotations of the manifest are there. They may change without moving the generation.
fn has_our_keys(manifest: &Value, live: &Value) -> bool {
    let within = |wanted: Option<&serde_json::Map<String, Value>>,
                  found: Option<&serde_json::Map<String, Value>>| {
        let mut wanted = wanted.into_iter().flatten();
        wanted.all(|(key, value)| found.and_then(|found| found.get(key)) == Some(value))
    };
    within(object::labels(manifest), object::labels(live))
        && within(object::annotations(manifest), object::annotations(live))
}

fn what_is_missing(manifest: &Value) -> Option<&'static str> {
    let parts = [
        ("apiVersion", object::text(manifest, "apiVersion")),
        ("kind", object::text(manifest, "kind")),
        ("metadata.name", object::meta_text(manifest, "name")),
    ];
    parts
        .into_iter()
        .find(|(_, text)| text.is_empty())
        .map(|(name, _)| name)
}

/// The words that clients know.
fn conflict_message(manifest: &Value) -> String {
    let TemplateId {
        kind,
        namespace,
        name,
        ..
    } = TemplateId::of(manifest);
    let execution = object::annotation(manifest, keys::WORK_NAMESPACE).unwrap_or_default();
    let cluster = names::cluster_of(execution).unwrap_or_default();
    format!(
        "resource(kind={kind}, {namespace}/{name}) already exists in the cluster {cluster} and the {} strategy value is \
         empty, Karmada will not manage this resource",
        keys::CONFLICT_RESOLUTION,
    )
}

#[cfg(test)]
mod tests;
