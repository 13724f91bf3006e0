//! Runs a recorded script against this crate, in the order in which a server does things.

use std::collections::HashMap;

use machinery_fieldset::{
    ApplyError, Path, Reset, Shape, Time, Versions, Write, apply, keep_times, manager_name, scale, update,
};
use machinery_kinds::Gvk;
use machinery_schema::CustomSchema;
use machinery_value::{Value, encode, json_patch, merge_patch, strategic};
use serde_json::json;

/// A script, and the objects as they are after the steps so far.
pub(crate) struct Replay<'s> {
    script: &'s Value,
    schemas: HashMap<String, CustomSchema>,
    objects: HashMap<String, Value>,
    last: Value,
    pub(crate) differences: Vec<String>,
}

/// What a step is about.
struct Target<'s> {
    api_version: &'s str,
    kind: &'s str,
    subresource: &'s str,
}

impl Target<'_> {
    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    fn gvk(&self) -> Gvk<'_> {
        let version = self.api_version.rsplit('/').next().unwrap_or_default();
        Gvk::new(self.group(), version, self.kind)
    }
}

struct Kinds<'r> {
    replay: &'r Replay<'r>,
    kind: &'r str,
}

impl Versions for Kinds<'_> {
    fn shape(&self, api_version: &str) -> Option<Shape<'_>> {
        if let Some(schema) = self.replay.schemas.get(api_version) {
            return Some(Shape::custom(schema.root()));
        }
        let target = Target {
            api_version,
            kind: self.kind,
            subresource: "",
        };
        machinery_kinds::schemas::schema(target.gvk()).map(Shape::built_in)
    }
}

impl<'s> Replay<'s> {
    pub(crate) fn new(script: &'s Value) -> Self {
        let mut schemas = HashMap::new();
        let spec = &script["definition"]["spec"];
        for version in spec["versions"].as_array().into_iter().flatten() {
            let name = format!("{}/{}", text(&spec["group"]), text(&version["name"]));
            let schema = CustomSchema::new(&version["schema"]["openAPIV3Schema"]).unwrap();
            schemas.insert(name, schema);
        }
        Self {
            script,
            schemas,
            objects: HashMap::new(),
            last: Value::Null,
            differences: Vec::new(),
        }
    }

    /// Runs all steps and returns how many there are.
    pub(crate) fn run(&mut self) -> usize {
        let steps = self.script["steps"].as_array().unwrap();
        for (number, step) in steps.iter().enumerate() {
            let before = self.differences.len();
            self.step(step);
            for found in &mut self.differences[before..] {
                *found = format!(
                    "step {number} ({} {}): {found}",
                    text(&step["do"]),
                    text(&step["at"])
                );
            }
        }
        steps.len()
    }

    fn step(&mut self, step: &'s Value) {
        let mut at = text(&step["at"]).split('/');
        let (_, name, subresource) = (at.next(), at.next(), at.next().unwrap_or_default());
        let name = name.unwrap_or_else(|| text(&step["body"]["metadata"]["name"]));
        let or = |field: &str| step.get(field).unwrap_or(&self.script[field]);
        let target = Target {
            api_version: text(or("version")),
            kind: text(or("kind")),
            subresource,
        };
        let object_key = format!("{}/{name}", target.kind);
        let answer = &step["answer"];
        let code = step["code"].as_u64().unwrap();
        match (text(&step["do"]), subresource) {
            // Controllers of the server may have written to it meanwhile.
            ("GET", _) if step["settled"] == true => {}
            ("GET", _) => {
                let known = self.objects.get(&object_key).cloned().unwrap_or_default();
                self.compare_owners("the object read", &known, answer);
            }
            (_, "scale") => {
                if let Some(live) = self.objects.get(&object_key).cloned() {
                    let scaled = self.scale(&target, step, live, code);
                    self.objects.insert(object_key, scaled);
                }
                return;
            }
            _ => self.write(&target, step, self.objects.get(&object_key).cloned(), code),
        }
        if code < 300 {
            self.objects.insert(object_key, answer.clone());
            self.last = answer.clone();
        }
    }

    fn write(&mut self, target: &Target<'_>, step: &Value, live: Option<Value>, code: u64) {
        let answer = &step["answer"];
        let empty = self.complete(target, json!({}));
        let created = live.is_none();
        let mut live = live.unwrap_or_else(|| empty.clone());
        retype(&mut live, target);
        let reset = self.reset(target);
        let found = {
            let kinds = Kinds {
                replay: self,
                kind: target.kind,
            };
            let manager = manager_name(text(&step["manager"]), "recorder/1");
            let write = Write {
                versions: &kinds,
                api_version: target.api_version,
                kind: target.kind,
                subresource: target.subresource,
                reset: &reset,
                manager: &manager,
                now: Time::parse(text(&step["now"])).unwrap(),
                empty: &empty,
            };
            if step["patch"] == "apply" {
                let force = step["force"] == "true";
                apply(&write, &live, &step["body"], force)
                    .map(|applied| self.complete(target, applied.object))
            } else {
                self.wanted(target, step, &live).map(|mut new| {
                    update(&write, &live, &mut new);
                    new
                })
            }
        };
        match found {
            Ok(mut new) => {
                if code >= 300 {
                    // What is refused later is not for ownership to refuse.
                    if code != 422 {
                        self.differences
                            .push(format!("was not refused with {}", answer["message"]));
                    }
                    return;
                }
                if !created {
                    self.prepare(target, &live, &mut new);
                    keep_times(&live, &mut new);
                }
                self.compare_owners("owners", &new, answer);
                // Much of services and jobs is allocated later.
                if step["patch"] == "apply" && !matches!(target.kind, "Service" | "Job") {
                    self.compare_content(target, &new, answer);
                }
            }
            Err(error) => self.compare_refusal(&error, code, answer),
        }
    }

    /// The object that the client wants.
    fn wanted(&self, target: &Target<'_>, step: &Value, live: &Value) -> Result<Value, ApplyError> {
        let mut object = live.clone();
        let body = &step["body"];
        match step["patch"].as_str() {
            Some("merge") => merge_patch::apply(&mut object, body),
            Some("json") => json_patch::apply(&mut object, body).unwrap(),
            Some("strategic") => {
                let schema = machinery_kinds::schemas::schema(target.gvk()).unwrap();
                strategic::apply(schema, &mut object, body).unwrap();
            }
            _ if step.get("sent").is_some() => {
                object = self.last.clone();
                merge_patch::apply(&mut object, &step["sent"]);
            }
            _ => object = body.clone(),
        }
        // An empty list of owners means something, so that it must survive decoding.
        let owners = object["metadata"].get("managedFields").cloned();
        let mut object = self.complete(target, object);
        if let Some(owners) = owners {
            object["metadata"]["managedFields"] = owners;
        }
        if target.kind == "DaemonSet" && object["metadata"]["uid"].is_null() {
            // Written by the server's own conversion, ahead of everything else.
            object["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = json!("0");
        }
        Ok(object)
    }

    /// The object decoded and defaulted.
    fn complete(&self, target: &Target<'_>, mut object: Value) -> Value {
        let gvk = target.gvk();
        if let Some(schema) = self.schemas.get(target.api_version) {
            schema.prune(&mut object);
            schema.apply_defaults(&mut object);
        } else if let Some(ty) = machinery_wire::lookup(gvk.group, gvk.version, gvk.kind) {
            let empty = object == json!({});
            object = machinery_wire::decode(ty, object).unwrap().value;
            if !empty {
                machinery_kinds::defaults::apply(gvk.group, gvk.version, gvk.kind, &mut object);
            }
        }
        object
    }

    fn prepare(&self, target: &Target<'_>, live: &Value, new: &mut Value) {
        let status = target.subresource == "status";
        if self.schemas.contains_key(target.api_version) {
            let kept = if status { "spec" } else { "status" };
            new[kept] = live[kept].clone();
            if new[kept].is_null() {
                new.as_object_mut().unwrap().remove(kept);
            }
        } else if status {
            machinery_kinds::strategy::prepare_status_update(target.gvk(), new, live);
        } else {
            machinery_kinds::strategy::prepare_update(target.gvk(), new, live);
        }
    }

    fn reset(&self, target: &Target<'_>) -> Reset {
        if self.schemas.contains_key(target.api_version) {
            Reset::custom(true, target.subresource)
        } else {
            Reset::built_in(target.group(), target.kind, target.subresource)
        }
    }

    /// A write to the scale; the answer is a Scale, so that the object is compared when it is next read.
    fn scale(&mut self, target: &Target<'_>, step: &Value, mut live: Value, code: u64) -> Value {
        let custom = self.schemas.contains_key(target.api_version);
        let field = if custom { "count" } else { "replicas" };
        let path = Path::of_fields(&["spec", field]);
        let beta = Path::of_fields(&["spec", field]);
        let paths = [
            (target.api_version, Some(path)),
            ("golden.test/v1beta1", (!custom).then_some(beta)),
        ];
        let fields = scale::to_scale(live["metadata"].get("managedFields"), &paths).unwrap();
        let old = json!({
            "metadata": {"name": "d", "uid": live["metadata"]["uid"], "managedFields": fields},
            "spec": {"replicas": live["spec"][field]},
        });
        let scale = Target {
            api_version: scale::SCALE_VERSION,
            kind: "Scale",
            subresource: "scale",
        };
        let empty = self.complete(&scale, json!({}));
        let manager = manager_name(text(&step["manager"]), "recorder/1");
        let new = {
            let kinds = Kinds {
                replay: self,
                kind: "Scale",
            };
            let write = Write {
                versions: &kinds,
                api_version: scale.api_version,
                kind: scale.kind,
                subresource: "scale",
                reset: &Reset::default(),
                manager: &manager,
                now: Time::parse(text(&step["now"])).unwrap(),
                empty: &empty,
            };
            let mut old = old;
            retype(&mut old, &scale);
            if step["patch"] == "apply" {
                apply(&write, &old, &step["body"], step["force"] == "true").map(|applied| applied.object)
            } else {
                self.wanted(&scale, step, &old).map(|mut new| {
                    update(&write, &old, &mut new);
                    new
                })
            }
        };
        match new {
            Ok(new) => {
                assert!(code < 300);
                let fields = scale::to_object(
                    live["metadata"].get("managedFields"),
                    new["metadata"].get("managedFields"),
                    target.api_version,
                    &paths,
                );
                live["metadata"]["managedFields"] = Value::Array(fields.unwrap());
                live["spec"][field] = new["spec"]["replicas"].clone();
            }
            Err(error) => self.compare_refusal(&error, code, &step["answer"]),
        }
        live
    }

    fn compare_owners(&mut self, what: &str, found: &Value, answer: &Value) {
        let owners = |object: &Value| object["metadata"]["managedFields"].clone();
        if owners(found) != owners(answer) {
            self.differences.push(format!(
                "{what}:\n  ours {}\n  real {}",
                owners(found),
                owners(answer)
            ));
        }
    }

    fn compare_content(&mut self, target: &Target<'_>, found: &Value, answer: &Value) {
        let content = |object: &Value| {
            let mut object = object.clone();
            let skipped = if target.subresource == "status" {
                "spec"
            } else {
                "status"
            };
            object.as_object_mut().unwrap().remove(skipped);
            for field in ["apiVersion", "kind"] {
                object.as_object_mut().unwrap().remove(field);
            }
            let meta = object["metadata"].as_object_mut().unwrap();
            for field in [
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "generation",
                "namespace",
                "managedFields",
            ] {
                meta.remove(field);
            }
            if target.subresource == "status" {
                meta.remove("labels");
            }
            if target.kind == "Pod" {
                // Filled in on the way to the store.
                for field in ["priority", "preemptionPolicy", "tolerations"] {
                    object["spec"].as_object_mut().unwrap().remove(field);
                }
            }
            object
        };
        // Numbers are written as Go writes them, where 1.0 is 1.
        let written = |object: &Value| String::from_utf8(encode::to_vec(&content(object))).unwrap();
        let (ours, real) = (written(found), written(answer));
        if ours != real {
            self.differences
                .push(format!("the object:\n  ours {ours}\n  real {real}"));
        }
    }

    fn compare_refusal(&mut self, error: &ApplyError, code: u64, answer: &Value) {
        let expected = match error {
            ApplyError::Conflicts(_) => 409,
            ApplyError::BadRequest(_) => 400,
            ApplyError::Failed(_) => 500,
        };
        // Fields of an object are checked in no particular order there, so that its lines come in any.
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let same = lines(&error.to_string()) == lines(text(&answer["message"]));
        if expected != code || !same {
            self.differences.push(format!(
                "refusal:\n  ours {expected} {error}\n  real {code} {}",
                text(&answer["message"])
            ));
        }
        if let ApplyError::Conflicts(conflicts) = error {
            let mut ours: Vec<(String, String)> = conflicts.causes().collect();
            let mut real: Vec<(String, String)> = answer["details"]["causes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|cause| {
                    (
                        text(&cause["message"]).to_owned(),
                        text(&cause["field"]).to_owned(),
                    )
                })
                .collect();
            ours.sort();
            real.sort();
            if ours != real {
                self.differences
                    .push(format!("causes: ours {ours:?}, real {real:?}"));
            }
        }
    }
}

fn retype(object: &mut Value, target: &Target<'_>) {
    object["apiVersion"] = json!(target.api_version);
    object["kind"] = json!(target.kind);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
