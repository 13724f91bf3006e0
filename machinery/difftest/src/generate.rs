//! Scripts made from a seed: random operations on random ConfigMaps, Deployments, Services and custom resources, by several
//! managers. Half of the scripts compare who owns which field, too.
//!
//! The same seed makes the same scripts, and the n-th script of a seed does not depend on how many are made, so that a
//! failure is repeated with the seed and the script's name alone.

mod applies;
mod objects;
mod patches;
mod protobuf;
mod random;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::script::{Body, PatchType, Script, ScriptError, Step};
use objects::Kind;
use random::Random;

const WIDGETS: &str = include_str!("../fixtures/widgets.yaml");
/// Mostly what is there from the start.
const NAMES: [&str; 6] = ["a", "a", "a", "b", "b", "c"];

/// The first `count` scripts of a seed.
pub fn scripts(seed: u64, count: usize) -> Result<Vec<Script>, ScriptError> {
    (0..count).map(|index| script(seed, index)).collect()
}

/// The n-th script of a seed.
pub fn script(seed: u64, index: usize) -> Result<Script, ScriptError> {
    let kind = Kind::ALL[index % Kind::ALL.len()];
    let mut random = Random::new(seed, index as u64);
    let mut script = if kind == Kind::Widget {
        Script::parse("fixtures/widgets.yaml", WIDGETS)?
    } else {
        Script::default()
    };
    script.name = format!("seed-{seed}-{index}");
    // Every other round of kinds, so that differences in ownership do not hide the others.
    script.managed_fields = index / Kind::ALL.len() % 2 == 1;
    script.about = format!("Random operations on {kind:?}s.");
    script.names.insert("objects".to_owned(), kind.path().to_owned());
    // Captures may find nothing; these are what they then stand for.
    script.names.insert("rv".to_owned(), "1".to_owned());
    script.names.insert("uid".to_owned(), "none".to_owned());
    script.names.insert("next".to_owned(), "none".to_owned());
    script.steps.push(Step {
        capture: [("start", "/metadata/resourceVersion")].map(owned).into(),
        ..get("")
    });
    random.careful = true;
    for name in ["a", "b"] {
        script.steps.push(create(kind, name, &mut random));
    }
    random.careful = false;
    for _ in 0..12 + random.below(6) {
        script.steps.extend(operation(kind, &mut random));
    }
    script.steps.push(get(""));
    // What a finalizer holds would hold its definition too, and with that the server's cleaning up.
    for name in ["a", "b", "c"] {
        script.steps.push(Step {
            patch: Some(PatchType::Merge),
            body: Some(Body::Json(json!({"metadata": {"finalizers": null}}))),
            ..request("PATCH", &format!("/{name}"))
        });
    }
    script.steps.push(Step {
        accept: Some("table".to_owned()),
        ..get("")
    });
    script
        .steps
        .push(get("?watch=1&timeoutSeconds=1&resourceVersion=<start>"));
    if random.one_in(2) {
        // Objects come and go as they begin and cease to match.
        let selector = random.pick(&["app=a", "app", "!app", "app in (a, b),tier!=c", "tier notin (a)"]);
        script.steps.push(Step {
            query: [("labelSelector", selector)].map(owned).into(),
            accept: random.one_in(4).then(|| "table".to_owned()),
            ..get("?watch=1&timeoutSeconds=1&resourceVersion=<start>")
        });
    }
    Ok(script)
}

/// One operation, or two that belong together.
fn operation(kind: Kind, random: &mut Random) -> Vec<Step> {
    let name = random.pick(&NAMES);
    random.mistaken = false;
    let one = match random.below(30) {
        26 => replace_status(kind, name, random),
        27 => replace_scale(kind, name, random),
        28 => return pages(random),
        29 => Step {
            query: [("limit", random.pick(&["1", "2"])), ("continue", "<next>")]
                .map(owned)
                .into(),
            ..get("")
        },
        0 | 1 => create(kind, name, random),
        2..=4 => update(kind, name, random),
        5..=11 => patch(kind, name, random),
        12 => status(kind, name, random),
        13 => scale(kind, name, random),
        14 => delete(name, random),
        20..=25 => applies::apply(kind, name, random),
        15 => Step {
            query: [("labelSelector", "app=a")].map(owned).into(),
            ..request(if random.one_in(2) { "DELETE" } else { "GET" }, "")
        },
        16 => list(random),
        _ => Step {
            try_capture: [("rv", "/metadata/resourceVersion"), ("uid", "/metadata/uid")]
                .map(owned)
                .into(),
            ..get(&format!("/{name}"))
        },
    };
    vec![one]
}

/// The first page of a list and the next; that one's continuation may be asked for after other changes.
fn pages(random: &mut Random) -> Vec<Step> {
    let limit = random.pick(&["1", "1", "2"]);
    let page = |query: &[(&str, &str)]| Step {
        query: query.iter().copied().map(owned).collect(),
        try_capture: [("next", "/metadata/continue")].map(owned).into(),
        ..get("")
    };
    let selector = random.pick(&["", "", "app", "!app"]);
    let with = |mut query: Vec<(&'static str, &'static str)>| {
        if !selector.is_empty() {
            query.push(("labelSelector", selector));
        }
        query
    };
    vec![
        page(&with(vec![("limit", limit)])),
        page(&with(vec![("limit", limit), ("continue", "<next>")])),
    ]
}

/// The body of a create or an update, in one of the forms that clients send.
fn body_of(kind: Kind, object: Value, random: &mut Random) -> Step {
    let media_type = |name: &str| [("content-type", name)].map(owned).into();
    match random.below(8) {
        0 => Step {
            body: Some(Body::Raw(machinery_value::encode::to_yaml(&object))),
            headers: media_type("application/yaml"),
            ..Step::default()
        },
        1 | 2 if kind == Kind::ConfigMap => match protobuf::config_map(&object) {
            Some(bytes) => Step {
                bytes: Some(bytes),
                headers: media_type("application/vnd.kubernetes.protobuf"),
                ..Step::default()
            },
            None => Step {
                body: Some(Body::Json(object)),
                ..Step::default()
            },
        },
        _ => Step {
            body: Some(Body::Json(object)),
            ..Step::default()
        },
    }
}

fn create(kind: Kind, name: &str, random: &mut Random) -> Step {
    let object = kind.object(name, random);
    Step {
        query: write_options(random),
        request: request("POST", "").request,
        ..body_of(kind, object, random)
    }
}

fn update(kind: Kind, name: &str, random: &mut Random) -> Step {
    let mut object = kind.object(name, random);
    match random.below(4) {
        0 => {}
        1 => object["metadata"]["uid"] = json!("<uid>"),
        _ => object["metadata"]["resourceVersion"] = json!("<rv>"),
    }
    Step {
        query: write_options(random),
        try_capture: [("rv", "/metadata/resourceVersion")].map(owned).into(),
        request: request("PUT", &format!("/{name}")).request,
        ..body_of(kind, object, random)
    }
}

fn patch(kind: Kind, name: &str, random: &mut Random) -> Step {
    let (patch, mut body) = patches::patch(kind, random);
    if body.is_object() && random.one_in(6) {
        body["metadata"]["resourceVersion"] = json!("<rv>");
    }
    Step {
        patch: Some(patch),
        body: Some(Body::Json(body)),
        query: write_options(random),
        ..request("PATCH", &format!("/{name}"))
    }
}

fn some_status(kind: Kind, random: &mut Random) -> Value {
    match kind {
        Kind::Deployment => json!({"replicas": random.below(3), "observedGeneration": 1}),
        Kind::Service => {
            json!({"conditions": [{"type": "A", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}]})
        }
        _ => {
            json!({"replicas": random.below(3), "selector": "a=b", "conditions": [{"type": "Ready", "status": "True"}]})
        }
    }
}

/// A whole object to the status, of which the status alone counts. Not of Services: the real server makes those that are
/// missing, without the addresses that they need.
fn replace_status(kind: Kind, name: &str, random: &mut Random) -> Step {
    if kind == Kind::Service {
        return status(kind, name, random);
    }
    let mut object = kind.object(name, random);
    object["status"] = some_status(kind, random);
    if !random.one_in(3) {
        object["metadata"]["resourceVersion"] = json!("<rv>");
    }
    Step {
        body: Some(Body::Json(object)),
        query: write_options(random),
        try_capture: [("rv", "/metadata/resourceVersion")].map(owned).into(),
        ..request("PUT", &format!("/{name}/status"))
    }
}

fn replace_scale(kind: Kind, name: &str, random: &mut Random) -> Step {
    let path = format!("/{name}/scale");
    if !matches!(kind, Kind::Deployment | Kind::Widget) {
        return get(&path);
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": name, "namespace": "<ns>"},
        "spec": {"replicas": random.below(6)},
    });
    match random.below(8) {
        0 => scale["spec"]["replicas"] = json!(-1),
        1 => scale["metadata"]["name"] = json!("other"),
        2 => scale["spec"]["bogus"] = json!(1),
        3 => scale["metadata"]["resourceVersion"] = json!("<rv>"),
        4 => scale["spec"] = json!({}),
        _ => {}
    }
    Step {
        body: Some(Body::Json(scale)),
        query: write_options(random),
        ..request("PUT", &path)
    }
}

fn status(kind: Kind, name: &str, random: &mut Random) -> Step {
    let status = some_status(kind, random);
    Step {
        patch: Some(PatchType::Merge),
        body: Some(Body::Json(
            json!({"status": status, "spec": {"replicas": 9}, "metadata": {"labels": {"by": "status"}}}),
        )),
        ..request("PATCH", &format!("/{name}/status"))
    }
}

fn scale(kind: Kind, name: &str, random: &mut Random) -> Step {
    let path = format!("/{name}/scale");
    if !matches!(kind, Kind::Deployment | Kind::Widget) || random.one_in(3) {
        return get(&path);
    }
    let body: Value = json!({"spec": {"replicas": random.below(6)}});
    Step {
        patch: Some(PatchType::Merge),
        body: Some(Body::Json(body)),
        ..request("PATCH", &path)
    }
}

fn delete(name: &str, random: &mut Random) -> Step {
    let options = match random.below(7) {
        5 => json!({"propagationPolicy": "Orphan"}),
        6 => json!({"gracePeriodSeconds": random.pick(&[0, 5, -1]), "propagationPolicy": "Sideways"}),
        0 => json!({"propagationPolicy": "Foreground"}),
        1 => json!({"preconditions": {"uid": "<uid>"}}),
        2 => json!({"preconditions": {"resourceVersion": "<rv>"}}),
        3 => json!({"dryRun": ["All"]}),
        _ => json!({"propagationPolicy": "Background"}),
    };
    Step {
        body: Some(Body::Json(options)),
        ..request("DELETE", &format!("/{name}"))
    }
}

fn list(random: &mut Random) -> Step {
    let fields = [
        ("fieldSelector", "metadata.name=a"),
        ("fieldSelector", "metadata.name!=a"),
        ("fieldSelector", "metadata.namespace=<ns>,metadata.name=b"),
        ("fieldSelector", "spec.color=red"),
        ("fieldSelector", "metadata.name in (a)"),
        ("fieldSelector", "status.phase!=x"),
        ("limit", "1"),
    ];
    let (key, value) = owned(random.pick(&fields));
    let query = if random.one_in(2) {
        [("labelSelector".to_owned(), selector(random))].into()
    } else {
        [(key, value)].into()
    };
    let accept = random.pick(&["application/json", "table", "metadatalist"]);
    Step {
        query,
        accept: Some(accept.to_owned()),
        ..get("")
    }
}

/// A label selector, mostly a good one.
fn selector(random: &mut Random) -> String {
    let terms = (0..1 + random.below(3)).map(|_| {
        let key = random.pick(&["app", "tier", "example.com/zone", "by"]);
        let values = random.some(&["a", "b", "c", ""]).join(random.pick(&[",", ", "]));
        match random.below(10) {
            0 => key.to_owned(),
            1 => format!("!{key}"),
            2 | 3 => format!("{key}={}", random.pick(&["a", "b", ""])),
            4 => format!("{key}!={}", random.pick(&["a", "b", ""])),
            5 | 6 => format!("{key} in ({values})"),
            7 => format!("{key} notin ({values})"),
            8 => format!("{key}{}{}", random.pick(&[">", "<"]), random.pick(&["1", "x"])),
            _ => random
                .pick(&[
                    "a=b=c",
                    "!",
                    "app in",
                    "in (a)",
                    "-x",
                    "a,,b",
                    "app==",
                    "app = not a value",
                    "x/y/z=a",
                ])
                .to_owned(),
        }
    });
    let terms: Vec<String> = terms.collect();
    terms.join(",")
}

fn write_options(random: &mut Random) -> BTreeMap<String, String> {
    let options: &[(&str, &str)] = match random.below(10) {
        0 => &[("dryRun", "All")],
        1 | 2 => &[("fieldValidation", "Strict")],
        3 => &[("fieldValidation", "Ignore")],
        _ => &[],
    };
    options.iter().copied().map(owned).collect()
}

fn get(path: &str) -> Step {
    request("GET", path)
}

fn request(method: &str, path: &str) -> Step {
    Step {
        request: format!("{method} <objects>{path}"),
        ..Step::default()
    }
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(scripts: &[Script]) -> Vec<String> {
        scripts
            .iter()
            .map(|script| serde_json::to_string(script).unwrap())
            .collect()
    }

    #[test]
    fn a_seed_says_it_all() {
        let ten = text(&scripts(7, 10).unwrap());
        assert_eq!(
            ten[..4],
            text(&scripts(7, 4).unwrap()),
            "a script does not depend on how many follow"
        );
        assert_ne!(ten, text(&scripts(8, 10).unwrap()));
    }

    #[test]
    fn scripts_are_varied_enough() {
        let scripts = scripts(1, 16).unwrap();
        let steps: usize = scripts.iter().map(|script| script.steps.len()).sum();
        assert!(steps >= 100, "{steps} exchanges");
        let all = text(&scripts).concat();
        for word in [
            "\"POST <objects>",
            "PUT <objects>",
            "\"patch\":\"json\"",
            "\"merge\"",
            "\"strategic\"",
            "DELETE <objects>",
            "/status",
            "/scale",
            "dryRun",
            "\"patch\":\"apply\"",
            "\"force\":\"true\"",
            "ownerReferences",
            "labelSelector",
            "managed_fields",
            "/status\",",
            "application/yaml",
            "vnd.kubernetes.protobuf",
            "\"continue\":\"<next>\"",
            "\"kind\":\"Scale\"",
        ] {
            assert!(all.contains(word), "{word}");
        }
    }
}
