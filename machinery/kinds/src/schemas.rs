//! The schemas of the built-in kinds: what OpenAPI publishes, and merge keys and list types for patches.
//!
//! They come from a real server's answers (`data/openapi.json`) and are shared by everybody in the process.

use std::collections::HashMap;
use std::sync::OnceLock;

use machinery_schema::{SchemaRef, SchemaSet};
use serde_json::Value;

use crate::Gvk;

static OPENAPI: &[u8] = include_bytes!("../data/openapi.json");

/// The components of the OpenAPI document, by name; parsed anew each time, since hardly anybody asks twice.
pub fn components() -> Value {
    let mut document: Value = serde_json::from_slice(OPENAPI).unwrap_or_default();
    document.get_mut("schemas").map(Value::take).unwrap_or_default()
}

/// The same with what there is to say about kinds and fields, for people.
pub fn described() -> Value {
    let mut components = components();
    crate::words::describe(&mut components);
    components
}

struct Schemas {
    set: SchemaSet,
    names: HashMap<String, String>,
}

fn schemas() -> Option<&'static Schemas> {
    static SCHEMAS: OnceLock<Option<Schemas>> = OnceLock::new();
    SCHEMAS
        .get_or_init(|| {
            let components = components();
            let set = SchemaSet::from_components(&components).ok()?;
            let mut names = HashMap::new();
            for (name, schema) in components.as_object()? {
                for gvk in schema["x-kubernetes-group-version-kind"]
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    let text = |key: &str| gvk[key].as_str().unwrap_or("");
                    names.insert(
                        key(Gvk::new(text("group"), text("version"), text("kind"))),
                        name.clone(),
                    );
                }
            }
            Some(Schemas { set, names })
        })
        .as_ref()
}

fn key(gvk: Gvk<'_>) -> String {
    format!("{}/{}/{}", gvk.group, gvk.version, gvk.kind)
}

/// The schema of a built-in kind.
pub fn schema(gvk: Gvk<'_>) -> Option<SchemaRef<'static>> {
    let schemas = schemas()?;
    schemas.set.root(schemas.names.get(&key(gvk))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_merged_by_name() {
        let deployment = schema(Gvk::new("apps", "v1", "Deployment")).unwrap();
        let pod = ["spec", "template", "spec"]
            .iter()
            .fold(deployment, |s, field| s.field(field).unwrap());
        assert_eq!(pod.field("containers").unwrap().patch_merge_key(), Some("name"));
        assert_eq!(pod.field("tolerations").unwrap().patch_merge_key(), None);
    }
}
