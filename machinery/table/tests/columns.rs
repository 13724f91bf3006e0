//! Our columns against those of a real server, for every resource whose columns are on record.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::path::Path;

use machinery_table::columns;
use serde_json::{Value, json};

fn data(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kinds/data")
        .join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn columns_are_those_of_a_real_server() {
    let recorded = data("columns.json");
    let mut unseen: Vec<&String> = recorded.as_object().unwrap().keys().collect();
    for group in data("discovery.json")["items"].as_array().unwrap() {
        let group_name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in group["versions"].as_array().unwrap() {
            let version_name = version["version"].as_str().unwrap_or_default();
            for resource in version["resources"].as_array().unwrap() {
                let plural = resource["resource"].as_str().unwrap();
                let path = match group_name {
                    "" => format!("api/{version_name}/{plural}"),
                    _ => format!("apis/{group_name}/{version_name}/{plural}"),
                };
                let Some(want) = recorded.get(&path) else { continue };
                let kind = resource["responseKind"]["kind"].as_str().unwrap();
                let got: Vec<Value> = columns(group_name, version_name, kind)
                    .iter()
                    .map(|c| json!({"name": c.name, "type": c.r#type, "format": c.format, "priority": c.priority}))
                    .collect();
                assert_eq!(&Value::Array(got), want, "{path}");
                unseen.retain(|seen| **seen != path);
            }
        }
    }
    assert!(unseen.is_empty(), "discovery does not know {unseen:?}");
    assert!(recorded.as_object().unwrap().len() > 40);
}
