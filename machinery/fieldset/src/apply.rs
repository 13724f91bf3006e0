//! Server-side apply: an object is merged with what a manager wants of it, and the manager owns what it wants.
//!
//! What the manager wanted before and no longer wants is removed, unless somebody else owns it.

use std::fmt;

use machinery_value::{Map, Value};
use thiserror::Error;

use crate::check::check;
use crate::extract::{field_set, remove_items, with_declared};
use crate::managed::{Identity, ManagedFields, Operation, Owned, clear};
use crate::merge::merge;
use crate::path::Path;
use crate::set::FieldSet;
use crate::shape::Shape;
use crate::update::{Write, reconcile_all, strip, track, transfer};
use crate::value::same;
use crate::{go, last_applied};

/// The manager of what was there before the first apply of an object without managed fields.
const BEFORE_APPLY: &str = "before-first-apply";

/// A field that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who.
    pub manager: Identity,
    /// Which field.
    pub path: Path,
}

/// The fields that somebody else owns. Shown as the message of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Conflict { manager, path }] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut sorted: Vec<(String, &Conflict)> = self
            .0
            .iter()
            .map(|conflict| (conflict.manager.sort_key(), conflict))
            .collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        write!(f, "Apply failed with {} conflicts: ", sorted.len())?;
        let mut previous = "";
        for (index, (key, Conflict { manager, path })) in sorted.iter().enumerate() {
            if previous != key {
                let newline = if index > 0 { "\n" } else { "" };
                write!(f, "{newline}conflicts with {manager}:")?;
                previous = key;
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}

impl Conflicts {
    /// The causes of the answer, each with its message (`conflict with "m1"`) and field (`.data.a`); their type is
    /// `FieldManagerConflict`.
    pub fn causes(&self) -> impl Iterator<Item = (String, String)> {
        self.0
            .iter()
            .map(|Conflict { manager, path }| (format!("conflict with {manager}"), path.to_string()))
    }
}

/// Why an object cannot be applied. The texts are those of the answers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// Somebody else owns fields that would change: a 409.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The request is wrong: a 400.
    #[error("{0}")]
    BadRequest(String),
    /// The object does not fit the schema: a 500, as the server has it.
    #[error("{0}")]
    Failed(String),
}

/// What an apply comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The object with its managed fields, apiVersion and kind; it still has to be decoded, defaulted and validated.
    pub object: Value,
    /// Whether anything but managed fields differs from the live object.
    pub changed: bool,
}

/// Applies `applied`, as the client sent it, to the stored object, or to [`Write::empty`] for a create.
pub fn apply(write: &Write<'_>, live: &Value, applied: &Value, force: bool) -> Result<Applied, ApplyError> {
    let managed = ManagedFields::of(live)
        .map_err(|error| ApplyError::Failed(format!("failed to decode managed fields: {error}")))?;
    check_type(write, applied)?;
    let live = with_type(write, live);

    let mut done = if write.manager == last_applied::KUBECTL {
        match attempt(write, &live, applied, managed.clone(), force) {
            Err(ApplyError::Conflicts(conflicts)) => {
                last_applied::forgive(write, &live, conflicts)?;
                attempt(write, &live, applied, managed, true)?
            }
            other => other?,
        }
    } else {
        attempt(write, &live, applied, managed, force)?
    };
    if write.manager == last_applied::KUBECTL {
        last_applied::refresh(&mut done.object, applied);
    }
    Ok(done)
}

fn attempt(
    write: &Write<'_>,
    live: &Value,
    applied: &Value,
    mut managed: ManagedFields,
    force: bool,
) -> Result<Applied, ApplyError> {
    if managed.entries.is_empty() {
        let empty = with_type(write, write.empty);
        if !track(write, &empty, live, &mut managed, BEFORE_APPLY) {
            return Err(ApplyError::Failed(
                "failed to create manager for existing fields".to_owned(),
            ));
        }
    }
    let sent = applied.get("metadata").and_then(|meta| meta.get("managedFields"));
    if matches!(sent, Some(Value::Array(_))) {
        return Err(ApplyError::BadRequest(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    let name = || described(write, applied);
    let shape = write.versions.shape(write.api_version).ok_or_else(|| {
        ApplyError::Failed(format!(
            "failed to create typed patch object ({}): no corresponding type for {}",
            name(),
            gvk(write.api_version, write.kind)
        ))
    })?;
    check(shape, applied, false).map_err(|error| {
        ApplyError::Failed(format!(
            "failed to create typed patch object ({}): {error}",
            name()
        ))
    })?;
    check(shape, live, true).map_err(|error| {
        let name = described(write, live);
        ApplyError::Failed(format!("failed to create typed live object ({name}): {error}"))
    })?;

    reconcile_all(write, &mut managed);
    let merged = merge(shape, live, applied);
    let identity = Identity::new(
        write.manager,
        Operation::Apply,
        write.api_version,
        write.subresource,
    );
    let last = managed.entries.remove(&identity);
    let wanted = write.reset.filter(field_set(shape, applied));
    let owned = Owned {
        fields: wanted.clone(),
        api_version: write.api_version.to_owned(),
        time: last.as_ref().and_then(|last| last.time),
    };
    managed.entries.insert(identity.clone(), owned);
    // Nothing is given up by one who wants all that it wanted before, which is what most applies are.
    let gives_up = |last: &Owned| {
        last.api_version != write.api_version || !last.fields.clone().difference(&wanted).is_empty()
    };
    let merged = match last {
        Some(last) if gives_up(&last) => prune(write, merged, &managed, &last),
        _ => merged,
    };
    transfer(
        write,
        shape,
        live,
        &merged,
        &mut managed,
        Some((&identity, force)),
    )
    .map_err(ApplyError::Conflicts)?;

    if let Some(owned) = managed.entries.get_mut(&identity) {
        owned.fields = strip(std::mem::take(&mut owned.fields));
        if owned.fields.is_empty() {
            managed.entries.remove(&identity);
        }
    }
    let changed = !same(live, &merged);
    if changed && let Some(owned) = managed.entries.get_mut(&identity) {
        owned.time = Some(write.now);
    }
    let mut object = merged;
    clear(&mut object);
    managed.store(&mut object);
    Ok(Applied { object, changed })
}

/// Removes what the manager owned before and does not own now, unless somebody else does.
fn prune(write: &Write<'_>, merged: Value, managed: &ManagedFields, last: &Owned) -> Value {
    let own = write.api_version;
    let version = last.api_version.as_str();
    let Some(shape) = write.versions.shape(version) else {
        return merged;
    };
    let converted = write.versions.convert(&merged, own, version).into_owned();
    let last_fields = with_declared(Some(shape), &last.fields);
    let mut pruned = remove_items(shape, &converted, &last_fields);

    // What anybody owns comes back: first in the version that was pruned, so that conversions find what they need.
    let mut versions: Vec<&str> = managed
        .entries
        .values()
        .map(|owned| owned.api_version.as_str())
        .collect();
    versions.sort_unstable();
    versions.dedup();
    versions.sort_by_key(|other| *other != version);
    let mut at = version.to_owned();
    let mut whole = converted.clone();
    for other in versions {
        let Some(shape) = write.versions.shape(other) else {
            continue;
        };
        whole = write.versions.convert(&whole, &at, other).into_owned();
        pruned = write.versions.convert(&pruned, &at, other).into_owned();
        at = other.to_owned();
        let owned = managed
            .entries
            .values()
            .filter(|owned| owned.api_version == other)
            .fold(FieldSet::new(), |set, owned| set.union(owned.fields.clone()));
        let kept = declared_fields(shape, &pruned).union(with_declared(Some(shape), &owned));
        pruned = remove_items(shape, &whole, &declared_fields(shape, &whole).difference(&kept));
    }
    // And what the manager did not own before was not its to remove.
    let pruned = write.versions.convert(&pruned, &at, version);
    let gone = declared_fields(shape, &converted)
        .difference(&declared_fields(shape, &pruned))
        .intersection(&last_fields);
    let pruned = remove_items(shape, &converted, &gone);
    write.versions.convert(&pruned, version, own).into_owned()
}

fn declared_fields(shape: Shape<'_>, value: &Value) -> FieldSet {
    with_declared(Some(shape), &field_set(shape, value))
}

fn check_type(write: &Write<'_>, applied: &Value) -> Result<(), ApplyError> {
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == write.api_version && kind == write.kind {
        return Ok(());
    }
    Err(ApplyError::BadRequest(format!(
        "invalid object type: {}",
        gvk(api_version, kind)
    )))
}

/// A kind as the server names it: `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` in core.
fn gvk(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => "/, Kind=".to_owned(),
        Some(_) => format!("{api_version}, Kind={kind}"),
        None => format!("/{api_version}, Kind={kind}"),
    }
}

/// An object as the server names it: `ns/name; apps/v1, Kind=Deployment`.
fn described(write: &Write<'_>, object: &Value) -> String {
    let text = |field: &str| {
        let meta = object.get("metadata");
        meta.and_then(|meta| meta.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!(
        "{}/{}; {}",
        text("namespace"),
        text("name"),
        gvk(write.api_version, write.kind)
    )
}

/// The object with its apiVersion and kind, which stored contents may be without.
fn with_type(write: &Write<'_>, object: &Value) -> Value {
    let mut map = match object {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    map.insert("apiVersion".to_owned(), Value::from(write.api_version));
    map.insert("kind".to_owned(), Value::from(write.kind));
    Value::Object(map)
}

/// The text of an applied object as an annotation holds it.
pub(crate) fn annotation_text(object: &Value) -> String {
    go::json(object) + "\n"
}

#[cfg(test)]
mod tests;
