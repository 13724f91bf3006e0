//! Field sets, managed fields, server-side apply.

use machinery_fieldset::{ApplyError, ManagedFields, Reset, Shape, Time, Write, apply, codec, update};
use machinery_kinds::Gvk;
use machinery_value::{Value, encode};
use serde_json::json;

use super::{documents, hold, nth, seeds, shape, way};
use crate::{Outcome, Target};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "field-set",
        about: "field sets as JSON",
        seeds: || {
            seeds(&[
                r#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}},"i:3":{}},"f:flags":{"v:\"x\"":{},"v:1.5":{},"v:null":{}}}}"#,
                r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
            ])
        },
        run: field_set,
    },
    Target {
        name: "apply",
        about: "a live object, what one manager applies to it, and what another one updates it to",
        seeds: || {
            seeds(&[
                r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","uid":"u","managedFields":[{"manager":"m","operation":"Update","apiVersion":"apps/v1","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}}}}}]},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}
---
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}],"ports":[{"containerPort":80,"protocol":"TCP"}]},{"name":"d"}]}}}}
---
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","uid":"u","finalizers":["f"]},"spec":{"replicas":2}}"#,
            ])
        },
        run: apply_and_update,
    },
];

fn field_set(input: &[u8]) -> Outcome {
    let value = nth(&documents(input), 0);
    let set = match codec::decode(&value) {
        Ok(set) => set,
        Err(error) => return Ok(way(&error.to_string())),
    };
    let written = codec::encode(&set);
    let again = codec::decode(&written).map_err(|error| format!("{written} cannot be read back: {error}"))?;
    hold(again == set, "a set is another when it is read back")?;
    hold(
        codec::encode(&again) == written,
        "a set is written differently the second time",
    )?;
    Ok(shape(&written))
}

fn apply_and_update(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let (live, applied, mut next) = (nth(&documents, 0), nth(&documents, 1), nth(&documents, 2));
    let deployment =
        machinery_kinds::schemas::schema(Gvk::new("apps", "v1", "Deployment")).ok_or("no schema")?;
    let mut outcome = 0;
    for shape in [Shape::built_in(deployment), Shape::deduced()] {
        let versions = [("apps/v1", shape)];
        let write = Write {
            versions: &versions.as_slice(),
            api_version: "apps/v1",
            kind: "Deployment",
            subresource: "",
            reset: &Reset::built_in("apps", "Deployment", ""),
            manager: "fuzz",
            now: Time::from_seconds(1_600_000_000).ok_or("no time")?,
            empty: &json!({}),
        };
        outcome ^= match apply(&write, &live, &applied, false) {
            Ok(done) => repeated(&write, &done.object, &applied)?,
            Err(ApplyError::Conflicts(conflicts)) => {
                hold(!conflicts.0.is_empty(), "a conflict without any")?;
                match apply(&write, &live, &applied, true) {
                    Ok(done) => repeated(&write, &done.object, &applied)?,
                    Err(ApplyError::Conflicts(_)) => return Err("force meets a conflict".to_owned()),
                    Err(error) => way(&error.to_string()),
                }
            }
            Err(error) => way(&error.to_string()),
        };
        if live.is_object() && next.is_object() {
            update(&write, &live, &mut next);
            if let Err(error) = ManagedFields::of(&next) {
                return Err(format!("managed fields that cannot be read back: {error}"));
            }
        }
    }
    Ok(outcome)
}

/// The same once more changes nothing, and what it wrote can be read.
fn repeated(write: &Write<'_>, object: &Value, applied: &Value) -> Outcome {
    ManagedFields::of(object).map_err(|error| format!("managed fields that cannot be read back: {error}"))?;
    match apply(write, object, applied, false) {
        Ok(again) => {
            hold(
                !again.changed && encode::to_vec(&again.object) == encode::to_vec(object),
                "applying it again changes something",
            )?;
            Ok(shape(object))
        }
        Err(error) => Err(format!("cannot be applied again: {error}")),
    }
}
