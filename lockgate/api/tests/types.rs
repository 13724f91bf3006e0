//! The types keep everything that the schemas name: an object that is read and written back loses nothing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

use lockgate_api::{
    Binding, Cluster, InterpreterCustomization, OverridePolicy, PropagationPolicy, RolloutPolicy, Work,
    definitions, ocm,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A value in which every property of the schema is there, and none has the value that is left out.
fn full(schema: &Value) -> Value {
    if let Some(words) = schema["enum"].as_array() {
        // The first that is not empty.
        return words.iter().find(|word| *word != "").unwrap().clone();
    }
    if let Some(properties) = schema["properties"].as_object() {
        return properties
            .iter()
            .map(|(name, property)| (name.clone(), full(property)))
            .collect::<Map<_, _>>()
            .into();
    }
    if schema["additionalProperties"].is_object() {
        return json!({"key": full(&schema["additionalProperties"])});
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("1Gi");
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({"any": {"thing": [1, null]}});
    }
    match schema["type"].as_str() {
        Some("string") if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        Some("string") => json!("text"),
        Some("integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([full(&schema["items"])]),
        _ => panic!("no value for {schema}"),
    }
}

fn check<T: DeserializeOwned + Serialize>(kind: &str) {
    let crd = definitions::crds()
        .into_iter()
        .find(|crd| crd["spec"]["names"]["kind"] == kind)
        .unwrap();
    let mut schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    // Kind and version are known from where the object is, and the server has the schema of metadata.
    let properties = schema["properties"].as_object_mut().unwrap();
    properties.retain(|name, _| matches!(name.as_str(), "spec" | "status"));
    let mut object = full(&schema);
    object["metadata"] = json!({"name": "a", "labels": {"b": "c"}});
    let read: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{kind}: {error}"));
    let written = serde_json::to_value(&read).unwrap();
    let mut lost = Vec::new();
    differences("", &object, &written, &mut lost);
    assert!(lost.is_empty(), "{kind} loses {lost:#?}");
}

fn differences(at: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                differences(&format!("{at}.{name}"), value, &after[name.as_str()], found);
            }
            found.extend(
                after
                    .keys()
                    .filter(|name| !before.contains_key(*name))
                    .map(|name| format!("{at}.{name} (new)")),
            );
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                differences(&format!("{at}[{index}]"), before, after, found);
            }
        }
        _ if before == after => {}
        _ => found.push(format!("{at}: {before} became {after}")),
    }
}

#[test]
fn every_property_survives() {
    check::<PropagationPolicy>("PropagationPolicy");
    check::<PropagationPolicy>("ClusterPropagationPolicy");
    check::<OverridePolicy>("OverridePolicy");
    check::<ocm::ManagedCluster>("ManagedCluster");
    check::<ocm::ManagedClusterSet>("ManagedClusterSet");
    check::<ocm::ManagedClusterSetBinding>("ManagedClusterSetBinding");
    check::<ocm::Placement>("Placement");
    check::<ocm::PlacementDecision>("PlacementDecision");
    check::<ocm::AddOnPlacementScore>("AddOnPlacementScore");
    check::<OverridePolicy>("ClusterOverridePolicy");
    check::<RolloutPolicy>("RolloutPolicy");
    check::<RolloutPolicy>("ClusterRolloutPolicy");
    check::<Binding>("ResourceBinding");
    check::<Binding>("ClusterResourceBinding");
    check::<Work>("Work");
    check::<Cluster>("Cluster");
    check::<InterpreterCustomization>("ResourceInterpreterCustomization");
}

/// Everybody reads the descriptions in `kubectl explain`.
#[test]
fn every_property_is_described() {
    fn walk(at: &str, schema: &Value, missing: &mut Vec<String>) {
        if schema["description"].as_str().is_none_or(str::is_empty) {
            missing.push(at.to_owned());
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{at}.{name}"), property, missing);
        }
        if schema["items"]["properties"].is_object() {
            walk(&format!("{at}[]"), &schema["items"], missing);
        }
    }
    for crd in definitions::crds() {
        let mut missing = Vec::new();
        let mut schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        // The server describes it.
        schema["properties"].as_object_mut().unwrap().remove("metadata");
        walk("", &schema, &mut missing);
        assert!(missing.is_empty(), "{}: {missing:?}", crd["metadata"]["name"]);
    }
}

/// The text is what the command prints and people apply.
#[test]
fn the_yaml_stream_says_the_same() {
    let text = definitions::to_yaml_stream();
    let read: Vec<Value> = text
        .split("---\n")
        .filter(|document| !document.is_empty())
        .map(|document| {
            machinery_value::decode::from_yaml(document.as_bytes())
                .unwrap()
                .value
        })
        .collect();
    assert_eq!(read, definitions::definitions());
}
