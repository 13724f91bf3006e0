//! Changes of labels and annotations.

use lockgate_api::overrides::LabelAnnotationOverrider;
use serde_json::{Map, Value};

use super::{Misfit, unknown_operator};

/// Changes the object's own labels or annotations; those of its pods stay. What is not there is neither replaced nor
/// removed.
pub(super) fn apply(
    manifest: &mut Value,
    field: &'static str,
    overrider: &LabelAnnotationOverrider,
) -> Result<(), Misfit> {
    let place = |key: &str| format!("/metadata/{field}/{}", key.replace('~', "~0").replace('/', "~1"));
    let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Err(Misfit::new("/metadata", "this is not a map"));
    };
    let map = metadata.entry(field).or_insert(Value::Null);
    if map.is_null() {
        *map = Value::Object(Map::new());
    }
    let Some(map) = map.as_object_mut() else {
        return Err(Misfit::new(format!("/metadata/{field}"), "this is not a map"));
    };
    for (key, value) in &overrider.value {
        match overrider.operator.as_str() {
            "add" => {
                map.insert(key.clone(), Value::String(value.clone()));
            }
            "replace" => {
                if let Some(old) = map.get_mut(key) {
                    *old = Value::String(value.clone());
                }
            }
            "remove" => {
                map.remove(key);
            }
            other => return Err(Misfit::new(place(key), unknown_operator(other))),
        }
    }
    Ok(())
}
