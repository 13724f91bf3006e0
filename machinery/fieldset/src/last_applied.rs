//! The annotation of client-side apply, `kubectl.kubernetes.io/last-applied-configuration`.
//!
//! An object that kubectl applied on the client's side, and now applies on the server's side, is its own: what the
//! annotation says is not in conflict, and the annotation is kept up to date for clients of the old kind.

use machinery_value::Value;

use crate::apply::{ApplyError, Conflicts, annotation_text};
use crate::check::check;
use crate::compare::compare;
use crate::extract::field_set;
use crate::set::FieldSet;
use crate::update::Write;

/// The manager whose applies know the annotation.
pub(crate) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The most bytes that the annotations of an object may have, names included.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Whether all conflicts are about fields that the annotation covers; otherwise those that are left.
pub(crate) fn forgive(write: &Write<'_>, live: &Value, conflicts: Conflicts) -> Result<(), ApplyError> {
    let Some(covered) = covered(write, live) else {
        return Err(ApplyError::Conflicts(conflicts));
    };
    let left: Vec<_> = conflicts
        .0
        .into_iter()
        .filter(|conflict| !covered.has(&conflict.path))
        .collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(ApplyError::Conflicts(Conflicts(left)))
    }
}

/// The fields of the annotation that are still as it says.
fn covered(write: &Write<'_>, live: &Value) -> Option<FieldSet> {
    let shape = write.versions.shape(write.api_version)?;
    let text = text_of(live)?;
    check(shape, live, false).ok()?;
    let last = machinery_value::decode::from_json(text.as_bytes()).ok()?.value;
    if last.get("apiVersion").and_then(Value::as_str) != Some(write.api_version) {
        return None;
    }
    check(shape, &last, false).ok()?;
    let comparison = compare(shape, &last, live);
    Some(
        field_set(shape, &last)
            .difference(&comparison.modified)
            .difference(&comparison.added)
            .difference(&comparison.removed),
    )
}

fn text_of(object: &Value) -> Option<&str> {
    let annotation = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?;
    annotation.as_str().filter(|text| !text.is_empty())
}

/// Writes what was applied into the annotation, if the object has it. One that no longer fits is removed.
pub(crate) fn refresh(object: &mut Value, applied: &Value) {
    if text_of(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = annotations_mut(&mut applied) {
        annotations.remove(ANNOTATION);
    }
    let text = annotation_text(&applied);
    if let Some(annotations) = annotations_mut(object) {
        let others: usize = annotations
            .iter()
            .filter(|(name, _)| *name != ANNOTATION)
            .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
            .sum();
        if others + ANNOTATION.len() + text.len() > MAX_ANNOTATIONS {
            annotations.remove(ANNOTATION);
        } else {
            annotations.insert(ANNOTATION.to_owned(), Value::from(text));
        }
    }
}

fn annotations_mut(object: &mut Value) -> Option<&mut machinery_value::Map<String, Value>> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .as_object_mut()
}
