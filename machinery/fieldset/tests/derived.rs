//! Vectors made by the field manager that kube-apiserver uses; `derive/run` writes them.

#![allow(clippy::unwrap_used, reason = "tests")]

use machinery_fieldset::{
    ApplyError, FieldSet, Reset, Shape, Time, Write, apply, check, codec, compare, extract, merge, update,
};
use machinery_kinds::Gvk;
use machinery_schema::CustomSchema;
use machinery_value::Value;
use serde_json::json;

fn gadgets() -> CustomSchema {
    let script: Value = serde_json::from_str(include_str!("golden/gadget.json")).unwrap();
    CustomSchema::new(&script["definition"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).unwrap()
}

fn shape<'a>(gadgets: &'a CustomSchema, api_version: &str, kind: &str) -> Shape<'a> {
    if kind == "Gadget" {
        return Shape::custom(gadgets.root());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Shape::built_in(machinery_kinds::schemas::schema(Gvk::new(group, version, kind)).unwrap())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Numbers are written as Go writes them, where 1.0 is 1.
fn written(value: &Value) -> String {
    String::from_utf8(machinery_value::encode::to_vec(value)).unwrap()
}

/// Fields are checked in no particular order there, so that problems come in any.
fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

struct Differences(Vec<String>);

impl Differences {
    fn values(&mut self, what: &str, ours: &Value, real: &Value) {
        if written(ours) != written(real) {
            self.0.push(format!(
                "{what}:\n  ours {}\n  real {}",
                written(ours),
                written(real)
            ));
        }
    }

    fn texts(&mut self, what: &str, ours: &str, real: &str) {
        if sorted_lines(ours) != sorted_lines(real) {
            self.0.push(format!("{what}:\n  ours {ours}\n  real {real}"));
        }
    }

    fn none(self) {
        let shown: Vec<&str> = self.0.iter().take(20).map(String::as_str).collect();
        assert!(
            self.0.is_empty(),
            "{} differ\n{}",
            self.0.len(),
            shown.join("\n\n")
        );
    }
}

#[test]
fn walks_are_those_of_the_original() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("data/walks.json")).unwrap();
    assert!(vectors.len() > 200);
    let gadgets = gadgets();
    let mut found = Differences(Vec::new());
    let mut walked = 0;
    for (index, vector) in vectors.iter().enumerate() {
        let shape = shape(&gadgets, text(&vector["apiVersion"]), text(&vector["kind"]));
        let (left, right) = (&vector["left"], &vector["right"]);
        let what = |walk: &str| format!("{index}, {walk} of {left} and {right}");
        let problem = |value: &Value, duplicates: bool| match check::check(shape, value, duplicates) {
            Ok(()) => String::new(),
            Err(misfit) => misfit.to_string(),
        };
        let problems = (problem(left, true), problem(right, false));
        found.texts(&what("check"), &problems.0, text(&vector["leftError"]));
        found.texts(&what("check"), &problems.1, text(&vector["rightError"]));
        if !problems.0.is_empty() || !problems.1.is_empty() {
            continue;
        }
        walked += 1;
        let mut set = |name: &str, ours: &FieldSet| {
            found.values(&what(name), &codec::encode(ours), &vector[name]);
            assert_eq!(
                codec::decode(&vector[name]).as_ref(),
                Ok(ours),
                "{name} is read back"
            );
        };
        set("leftSet", &extract::field_set(shape, left));
        set("rightSet", &extract::field_set(shape, right));
        let comparison = compare::compare(shape, left, right);
        set("removed", &comparison.removed);
        set("modified", &comparison.modified);
        set("added", &comparison.added);
        found.values(
            &what("merge"),
            &merge::merge(shape, left, right),
            &vector["merged"],
        );
        let without = extract::remove_items(shape, left, &extract::field_set(shape, right));
        found.values(&what("remove"), &without, &vector["without"]);
    }
    assert!(walked * 2 > vectors.len(), "only {walked} fit their schemas");
    found.none();
}

#[test]
fn writes_are_those_of_the_original() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("data/writes.json")).unwrap();
    assert!(vectors.len() > 50);
    let gadgets = gadgets();
    let mut found = Differences(Vec::new());
    let mut done = 0;
    for (index, vector) in vectors.iter().enumerate() {
        let kind = text(&vector["kind"]);
        let mut live = json!({});
        for (number, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
            let before = live.to_string();
            let what = |what: &str| format!("{index}.{number}, {what} after {step}\n  live {before}");
            let api_version = text(&step["apiVersion"]);
            let own = shape(&gadgets, api_version, kind);
            let versions: &[(&str, Shape<'_>)] = match kind {
                "Gadget" => &[("golden.test/v1", own), ("golden.test/v1beta1", own)],
                _ => &[(api_version, own)],
            };
            let subresource = text(&step["subresource"]);
            let reset = match kind {
                "Gadget" => Reset::custom(true, subresource),
                _ => Reset::default(),
            };
            let write = Write {
                versions: &versions,
                api_version,
                kind,
                subresource,
                reset: &reset,
                manager: text(&step["manager"]),
                now: Time::parse(text(&step["now"])).unwrap(),
                empty: &json!({}),
            };
            if let Some(object) = live.as_object_mut() {
                object.insert("apiVersion".to_owned(), json!(api_version));
                object.insert("kind".to_owned(), json!(kind));
            }
            let sent = &step["object"];
            let result = if step["operation"] == "Apply" {
                apply(&write, &live, sent, step["force"] == true).map(|applied| applied.object)
            } else {
                let mut new = sent.clone();
                update(&write, &live, &mut new);
                if step.get("error").is_some() {
                    // A server that cannot tell who owns what says nothing about it.
                    assert!(new["metadata"].get("managedFields").is_none());
                    continue;
                }
                Ok(new)
            };
            match result {
                Ok(mut object) => {
                    done += 1;
                    object["metadata"]["uid"] = json!("u");
                    found.values(&what("result"), &object, &step["result"]);
                    live = step["result"].clone();
                }
                Err(error) => {
                    let code = match error {
                        ApplyError::Conflicts(_) => 409,
                        ApplyError::BadRequest(_) => 400,
                        ApplyError::Failed(_) => 500,
                    };
                    if step["code"] != code {
                        found.0.push(what(&format!("{code} {error}")));
                    }
                    found.texts(&what("error"), &error.to_string(), text(&step["error"]));
                }
            }
        }
    }
    assert!(done > 300, "only {done} writes succeed");
    found.none();
}
