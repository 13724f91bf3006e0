//! The scale subresource: the one field of a Scale that is a field of the object it scales.
//!
//! A write to the scale is a write of a Scale with managed fields of its own, made from those of the object by
//! [`to_scale`]; afterwards [`to_object`] takes them back.

use std::collections::BTreeMap;

use machinery_value::Value;

use crate::managed::{Identity, ManagedError, ManagedFields, Owned};
use crate::path::Path;
use crate::set::FieldSet;

/// The version of Scale.
pub const SCALE_VERSION: &str = "autoscaling/v1";

/// Where the number of replicas is, in every version of a kind; `None` in versions that cannot be scaled.
pub type ReplicasPaths<'a> = &'a [(&'a str, Option<Path>)];

fn replicas() -> Path {
    Path::of_fields(&["spec", "replicas"])
}

/// The managed fields of the Scale of an object with these managed fields.
pub fn to_scale(object_fields: Option<&Value>, paths: ReplicasPaths<'_>) -> Result<Vec<Value>, ManagedError> {
    let managed = ManagedFields::decode(object_fields)?;
    let mut scale = ManagedFields::default();
    for (identity, owned) in managed.entries {
        if let Some((_, Some(path))) = find(paths, &owned.api_version)
            && owned.fields.has(path)
        {
            scale
                .entries
                .insert(identity, only_replicas(replicas(), SCALE_VERSION, &owned));
        }
    }
    Ok(scale.encode())
}

/// The managed fields of an object, after a write has left its Scale with `scale_fields`; the object is in version
/// `api_version`.
pub fn to_object(
    object_fields: Option<&Value>,
    scale_fields: Option<&Value>,
    api_version: &str,
    paths: ReplicasPaths<'_>,
) -> Result<Vec<Value>, ManagedError> {
    let object = ManagedFields::decode(object_fields)?;
    let mut scale = ManagedFields::decode(scale_fields)?.entries;
    let mut out = ManagedFields::default();
    let times: BTreeMap<Identity, _> = object
        .entries
        .iter()
        .map(|(identity, owned)| (identity.clone(), owned.time))
        .collect();
    for (identity, mut owned) in object.entries {
        let Some((_, path)) = find(paths, &owned.api_version) else {
            continue;
        };
        if let Some(path) = path.as_ref().filter(|path| owned.fields.has(path))
            && scale.remove(&identity).is_none()
        {
            let mut taken = FieldSet::new();
            taken.insert(path);
            owned.fields = owned.fields.difference(&taken);
            if owned.fields.is_empty() {
                continue;
            }
        }
        out.entries.insert(identity, owned);
    }
    let Some((_, Some(path))) = find(paths, api_version) else {
        return Ok(out.encode());
    };
    for (identity, owned) in scale {
        if owned.fields.has(&replicas()) {
            let mut owned = only_replicas(path.clone(), api_version, &owned);
            owned.time = times.get(&identity).copied().flatten();
            out.entries.insert(identity, owned);
        }
    }
    Ok(out.encode())
}

fn find<'p>(paths: ReplicasPaths<'p>, api_version: &str) -> Option<&'p (&'p str, Option<Path>)> {
    paths.iter().find(|(version, _)| *version == api_version)
}

fn only_replicas(path: Path, api_version: &str, from: &Owned) -> Owned {
    let mut fields = FieldSet::new();
    fields.insert(&path);
    Owned {
        fields,
        api_version: api_version.to_owned(),
        time: from.time,
    }
}
