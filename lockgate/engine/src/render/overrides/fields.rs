//! Changes inside documents that are kept in strings, such as the files of a ConfigMap.

use lockgate_api::overrides::{FieldOverrider, FieldPatch};
use machinery_value::decode::{from_json, from_yaml};
use machinery_value::encode::{to_vec, to_yaml};
use serde_json::Value;

use super::{Misfit, patch};

/// Reads the string at the path as JSON or YAML, changes it, and writes it back.
pub(super) fn apply(manifest: &mut Value, overrider: &FieldOverrider) -> Result<(), Misfit> {
    let path = &overrider.field_path;
    let misfit = |message: String| Misfit::new(path, message);
    let Some(field) = manifest.pointer_mut(path) else {
        return Err(misfit("there is nothing".to_owned()));
    };
    let Value::String(text) = field else {
        return Err(misfit("this is not a string".to_owned()));
    };
    let changed = match (overrider.json.is_empty(), overrider.yaml.is_empty()) {
        (true, true) => return Ok(()),
        (false, false) => return Err(misfit("is it json or yaml? The rule says both".to_owned())),
        (false, true) => {
            let mut document = from_json(text.as_bytes()).map_err(|error| misfit(error.to_string()))?;
            change(&mut document.value, path, &overrider.json)?;
            String::from_utf8_lossy(&to_vec(&document.value)).into_owned()
        }
        (true, false) => {
            let mut document = from_yaml(text.as_bytes()).map_err(|error| misfit(error.to_string()))?;
            change(&mut document.value, path, &overrider.yaml)?;
            to_yaml(&document.value)
        }
    };
    *text = changed;
    Ok(())
}

fn change(document: &mut Value, path: &str, patches: &[FieldPatch]) -> Result<(), Misfit> {
    let operations = patches.iter().map(|patch| {
        (
            patch.sub_path.as_str(),
            patch.operator.as_str(),
            patch.value.as_ref(),
        )
    });
    patch(document, operations)
        .map_err(|inner| Misfit::new(format!("{path} at {}", inner.path), inner.message))
}
