//! Taking back what a Work made.

use lockgate_api::keys;
use serde_json::{Map, Value};

use super::is_managed;
use crate::object;

/// Keys with these prefixes are ours; so is [`keys::MANAGED`].
const OURS: [&str; 8] = [
    "propagationpolicy.karmada.io/",
    "clusterpropagationpolicy.karmada.io/",
    "resourcebinding.karmada.io/",
    "clusterresourcebinding.karmada.io/",
    "resourcetemplate.karmada.io/",
    "work.karmada.io/",
    "policy.karmada.io/",
    "lockgate.karmada.io/",
];

/// What must be written when a Work goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Withdraw {
    /// Delete the object, if it is still this one.
    Delete {
        /// Its uid.
        uid: String,
        /// Its version when this was decided.
        resource_version: String,
    },
    /// Write this: the object as it is, without our marks. The member keeps it.
    Strip(Value),
    /// There is nothing of this Work.
    Nothing,
}

/// Decides what becomes of a member's object when the Work behind it goes.
///
/// Only an object that this Work made is touched: one that has our mark, and that names this Work. What is preserved
/// stays as the member has it, and so does a namespace with something preserved in it; what the Work holds and never sent is
/// not sent now.
pub fn withdraw(manifest: &Value, live: Option<&Value>, preserve: bool) -> Withdraw {
    let Some(live) = live else {
        return Withdraw::Nothing;
    };
    if object::deleting(live) || !is_managed(live) || !is_made_by_this(manifest, live) {
        return Withdraw::Nothing;
    }
    if preserve || object::annotation(live, keys::KEEPS_PRESERVED).is_some() {
        return Withdraw::Strip(stripped(live));
    }
    Withdraw::Delete {
        uid: object::meta_text(live, "uid").to_owned(),
        resource_version: object::meta_text(live, "resourceVersion").to_owned(),
    }
}

/// What a member's namespace is to be before something in it is preserved: one that stays. None if nothing must be written.
pub fn keeping(namespace: &Value) -> Option<Value> {
    let stays = object::deleting(namespace)
        || !is_managed(namespace)
        || object::annotation(namespace, keys::KEEPS_PRESERVED).is_some();
    if stays {
        return None;
    }
    let mut marked = namespace.clone();
    marked["metadata"]["annotations"][keys::KEEPS_PRESERVED] = "true".into();
    Some(marked)
}

/// Whether the object names the Work that the manifest is of. Somebody may have removed the names; the id will do.
fn is_made_by_this(manifest: &Value, live: &Value) -> bool {
    let names = [keys::WORK_NAMESPACE, keys::WORK_NAME];
    let of = |object| names.map(|key| object::annotation(object, key));
    match of(live) {
        [None, None] => {
            let id = object::label(live, keys::WORK_ID);
            id.is_some() && id == object::label(manifest, keys::WORK_ID)
        }
        named => named == of(manifest),
    }
}

/// The object without our marks.
fn stripped(live: &Value) -> Value {
    let mut object = live.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        strip(metadata, "labels");
        strip(metadata, "annotations");
    }
    object
}

fn strip(metadata: &mut Map<String, Value>, field: &str) {
    let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
        return;
    };
    map.retain(|key, _| key != keys::MANAGED && !OURS.iter().any(|prefix| key.starts_with(prefix)));
    if map.is_empty() {
        metadata.remove(field);
    }
}
