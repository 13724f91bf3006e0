//! Compares defaults, strategies and validation with the recorded answers of a real kube-apiserver.
//!
//! See `golden/README.md` for the files and how to record them anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use machinery_kinds::{Gvk, defaults, strategy, validation};
use machinery_value::field::FieldError;
use serde_json::{Value, json};

const BASES: &str = include_str!("golden/bases.json");
const CASES: &str = include_str!("golden/cases.jsonl");
const ANSWERS: &str = include_str!("golden/answers.jsonl");

fn lines(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// RFC 7396, as the recorder does it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let fields = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Go writes absent lists and times as null; here they are absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k, without_nulls(v)))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn gvk(object: &Value) -> (String, String, String) {
    let api = object["apiVersion"].as_str().unwrap();
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    (
        group.to_owned(),
        version.to_owned(),
        object["kind"].as_str().unwrap().to_owned(),
    )
}

/// What admission plugins of the real server add, which this crate does not have: only where nothing was sent.
fn add_admission(object: &mut Value, expected: &Value) {
    if !expected.is_object() {
        return;
    }
    let added: &[&str] = match object["kind"].as_str().unwrap() {
        "Pod" => &["/spec/tolerations", "/spec/priority", "/spec/preemptionPolicy"],
        "PersistentVolume" | "PersistentVolumeClaim" => &["/metadata/finalizers"],
        // Who asks is known to the server, not to this crate.
        "CertificateSigningRequest" => &["/spec/username", "/spec/groups", "/spec/uid", "/spec/extra"],
        _ => &[],
    };
    for path in added {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let value = expected.pointer(path).cloned().unwrap_or_default();
        let parent = object.pointer_mut(parent).unwrap();
        if parent[key].is_null() {
            parent[key] = value;
        }
    }
    if object["kind"] == "Node" {
        let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
        let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.push(taint);
        object["spec"]["taints"] = taints.into();
    }
}

/// A job's template is shown in an internal form by the server, and in its JSON form here.
fn without_template(field: &Value, message: &str) -> Value {
    let fixed = message.starts_with("Invalid value: {") && message.ends_with("}: field is immutable");
    if field == "spec.template" && fixed {
        "(template): field is immutable".into()
    } else {
        message.into()
    }
}

fn causes(errors: &[FieldError]) -> Vec<Value> {
    let mut all: Vec<Value> = errors
        .iter()
        .map(|error| {
            let field = Value::from(error.field.as_str());
            let message = without_template(&field, &error.message);
            json!([error.kind.reason(), field, message])
        })
        .collect();
    all.sort_by_key(Value::to_string);
    all
}

fn expected_causes(answer: &Value) -> Vec<Value> {
    let mut all = answer["causes"].as_array().unwrap().clone();
    for cause in &mut all {
        // Differences of internal structures are not told here, and uids are not known.
        let message = cause[2].as_str().unwrap().split("\n@@").next().unwrap();
        let message = without_uids(message);
        cause[2] = without_template(&cause[1].clone(), &message);
    }
    all.sort_by_key(Value::to_string);
    all
}

/// Replaces every uid by the one that refused objects have in this test.
fn without_uids(text: &str) -> String {
    let mut rest = text;
    let mut result = String::new();
    while let Some(at) = rest.find('-') {
        let uid = at
            .checked_sub(8)
            .and_then(|start| rest.get(start..start + 36))
            .filter(|uid| is_uid(uid));
        match uid {
            Some(uid) => {
                result.push_str(&rest[..at - 8]);
                result.push_str("some-uid");
                rest = &rest[at - 8 + uid.len()..];
            }
            None => {
                result.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
    }
    result + rest
}

fn is_uid(text: &str) -> bool {
    text.char_indices().all(|(at, c)| {
        if [8, 13, 18, 23].contains(&at) {
            c == '-'
        } else {
            c.is_ascii_hexdigit()
        }
    })
}

struct Differences(Vec<String>);

impl Differences {
    fn judge(&mut self, what: &str, object: &Value, errors: &[FieldError], answer: &Value) {
        if answer["object"].is_null() {
            let (ours, theirs) = (causes(errors), expected_causes(answer));
            if ours != theirs {
                let only = |a: &[Value], b: &[Value]| -> String {
                    a.iter()
                        .filter(|x| !b.contains(x))
                        .map(|x| format!("\n    {x}"))
                        .collect()
                };
                let (missing, extra) = (only(&theirs, &ours), only(&ours, &theirs));
                let counts = format!("{} and {}", ours.len(), theirs.len());
                self.0.push(format!(
                    "{what}: {counts} causes\n  only real:{missing}\n  only ours:{extra}"
                ));
            }
            return;
        }
        if !errors.is_empty() {
            self.0.push(format!("{what}: refused with {:?}", causes(errors)));
        }
        let strip = |value: &Value| {
            let mut value = without_nulls(value.clone());
            let meta = value["metadata"].as_object_mut().unwrap();
            meta.remove("resourceVersion");
            meta.remove("managedFields");
            value
        };
        let (ours, theirs) = (strip(object), strip(&answer["object"]));
        if ours != theirs {
            let mut found = Vec::new();
            differ("", &ours, &theirs, &mut found);
            self.0.push(format!("{what}:{}", found.concat()));
        }
    }
}

fn differ(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differ(&format!("{path}.{key}"), &ours[key], &theirs[key], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if ours != theirs => found.push(format!("\n  {path}: ours {ours}, real {theirs}")),
        _ => {}
    }
}

#[test]
fn answers_are_those_of_the_real_server() {
    let bases: Value = serde_json::from_str(BASES).unwrap();
    let mut differences = Differences(Vec::new());
    for (number, (case, answers)) in lines(CASES).zip(lines(ANSWERS)).enumerate() {
        let name = case["name"].as_str().unwrap();
        assert_eq!(case["name"], answers["name"], "answers are not of these cases");
        let base = &bases[case["base"].as_str().unwrap()];
        let mut object = base["object"].clone();
        if !case["create"].is_null() {
            merge(&mut object, &case["create"]);
        }
        if object["metadata"]["name"] == "base" {
            object["metadata"]["name"] = format!("case-{number}").into();
        }
        let (group, version, kind) = gvk(&object);
        let gvk = Gvk::new(&group, &version, &kind);
        let answer = &answers["create"];
        if base["api"].as_str().unwrap().contains("/namespaces/golden/") {
            object["metadata"]["namespace"] = "golden".into();
        }
        let given = &answer["object"]["metadata"];
        object["metadata"]["uid"] = if given.is_null() {
            "some-uid".into()
        } else {
            given["uid"].clone()
        };
        object["metadata"]["creationTimestamp"] = if given.is_null() {
            "2026-01-01T00:00:00Z".into()
        } else {
            given["creationTimestamp"].clone()
        };
        defaults::apply(&group, &version, &kind, &mut object);
        add_admission(&mut object, &answer["object"]);
        strategy::prepare_create(gvk, &mut object);
        let mut object = without_nulls(object);
        let errors = validation::validate_create(gvk, &object);
        if kind == "Service" && errors.is_empty() {
            let spec = &answer["object"]["spec"];
            let mut ports: Vec<u16> = spec["ports"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|port| &port["nodePort"])
                .chain([&spec["healthCheckNodePort"]])
                .filter_map(|port| u16::try_from(port.as_u64()?).ok())
                .rev()
                .collect();
            let address = spec["clusterIP"].as_str().map(str::to_owned);
            strategy::allocate_service(&mut object, || address, || ports.pop());
        }
        differences.judge(&format!("{name}, create"), &object, &errors, answer);
        let live = if answers["live"].is_null() {
            &answer["object"]
        } else {
            &answers["live"]["object"]
        };
        let old = without_nulls(live.clone());
        for step in ["update", "status"] {
            if case[step].is_null() || answers[step].is_null() {
                continue;
            }
            let mut new = live.clone();
            merge(&mut new, &case[step]);
            let mut new = without_nulls(new);
            defaults::apply(&group, &version, &kind, &mut new);
            let errors = if step == "update" {
                strategy::prepare_update(gvk, &mut new, &old);
                validation::validate_update(gvk, &new, &old)
            } else {
                strategy::prepare_status_update(gvk, &mut new, &old);
                validation::validate_status_update(gvk, &new, &old)
            };
            differences.judge(&format!("{name}, {step}"), &new, &errors, &answers[step]);
        }
    }
    let count = differences.0.len();
    assert!(count == 0, "{count} differences:\n{}", differences.0.join("\n"));
}
