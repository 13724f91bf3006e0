//! Random patches of random objects.

use serde_json::{Value, json};

use super::objects::{Kind, container, labels};
use super::random::Random;
use crate::script::PatchType;

/// A patch that fits the kind, or nearly.
pub(super) fn patch(kind: Kind, random: &mut Random) -> (PatchType, Value) {
    let types = [PatchType::Json, PatchType::Merge, PatchType::Strategic];
    match random.pick(&types) {
        PatchType::Json => (PatchType::Json, json_patch(kind, random)),
        PatchType::Strategic if kind != Kind::Widget || random.one_in(6) => {
            (PatchType::Strategic, strategic(kind, random))
        }
        _ => (PatchType::Merge, merge(kind, random)),
    }
}

/// Part of another object, with some fields taken away.
fn merge(kind: Kind, random: &mut Random) -> Value {
    let mut patch = Value::Object(kind.content(random));
    if random.one_in(3) {
        patch["metadata"]["labels"] = match random.below(3) {
            0 => Value::Null,
            1 => json!({"app": null, "tier": "patched"}),
            _ => labels(random),
        };
    }
    remove_some(&mut patch, random);
    patch
}

/// Replaces a field here and there by null.
fn remove_some(value: &mut Value, random: &mut Random) {
    if let Value::Object(map) = value {
        for child in map.values_mut() {
            if random.one_in(8) {
                *child = Value::Null;
            } else {
                remove_some(child, random);
            }
        }
    }
}

fn json_patch(kind: Kind, random: &mut Random) -> Value {
    let places: &[&str] = match kind {
        Kind::ConfigMap => &["/data/a", "/data/b", "/data", "/data/new", "/binaryData/bin"],
        Kind::Deployment => &[
            "/spec/replicas",
            "/spec/template/spec/containers/0/image",
            "/spec/template/spec/containers/0/env",
            "/spec/template/spec/containers/-",
            "/spec/template/spec/containers/1",
            "/spec/paused",
        ],
        Kind::Service => &[
            "/spec/ports/0/port",
            "/spec/ports/-",
            "/spec/ports/-1",
            "/spec/selector/app",
            "/spec/type",
        ],
        Kind::Widget => &[
            "/spec/replicas",
            "/spec/color",
            "/spec/flags",
            "/spec/flags/-",
            "/spec/ports/0",
            "/spec/free/any/3/deep",
        ],
    };
    let common = [
        "/metadata/labels",
        "/metadata/labels/app",
        "/metadata/annotations/note",
        "/nope",
        "/metadata/finalizers",
    ];
    let operations = (0..1 + random.below(3)).map(|_| {
        let path = if random.one_in(3) {
            random.pick(&common)
        } else {
            random.pick(places)
        };
        match random.below(16) {
            0 => json!({"op": "test", "path": path, "value": value_for(path, random)}),
            1 => json!({"op": "test", "path": path, "value": null}),
            2 | 3 => json!({"op": "remove", "path": path}),
            4 => json!({"op": "copy", "from": path, "path": "/metadata/annotations/note"}),
            5..=8 => json!({"op": "replace", "path": path, "value": value_for(path, random)}),
            _ => json!({"op": "add", "path": path, "value": value_for(path, random)}),
        }
    });
    operations.collect()
}

fn value_for(path: &str, random: &mut Random) -> Value {
    match path {
        "/data" | "/metadata/labels" => json!({"fresh": random.pick(&["x", "y"])}),
        "/metadata/finalizers" => json!(["example.com/other"]),
        "/spec/replicas" => json!(random.below(5)),
        "/spec/ports/0/port" => json!(8000 + random.below(3)),
        "/spec/ports/-" | "/spec/ports/-1" => json!({"port": 9000, "name": "extra"}),
        "/spec/ports/0" => json!({"name": "z", "port": 1}),
        "/spec/template/spec/containers/-" | "/spec/template/spec/containers/1" => container("extra", random),
        "/spec/template/spec/containers/0/env" => json!([{"name": "N", "value": "v"}]),
        "/spec/paused" => json!(true),
        "/spec/flags" => json!(["x"]),
        "/spec/type" => json!(random.pick(&["ClusterIP", "NodePort"])),
        "/spec/color" => json!(random.pick(&["red", "blue"])),
        "/binaryData/bin" => json!("AAEC"),
        _ => json!(random.pick(&["one", "two"])),
    }
}

fn strategic(kind: Kind, random: &mut Random) -> Value {
    if random.one_in(4) {
        return match random.below(4) {
            0 => json!({"metadata": {"labels": {"$patch": "replace", "only": "this"}}}),
            1 => json!({"metadata": {"finalizers": ["example.com/more"]}}),
            2 => json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}),
            _ => json!({"metadata": {"labels": null, "annotations": {"note": null, "added": "x"}}}),
        };
    }
    match kind {
        Kind::Deployment => json!({"spec": {"template": {"spec": containers(random)}}}),
        Kind::Service => match random.below(4) {
            0 => json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}),
            1 => json!({"spec": {"ports": [{"port": 81, "name": "b"}, {"port": 80, "name": "a"}]}}),
            2 => json!({"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}),
            _ => {
                json!({"spec": {"ports": [{"$patch": "replace"}, {"port": 99}], "selector": {"app": null, "b": "c"}}})
            }
        },
        Kind::ConfigMap => match random.below(3) {
            0 => json!({"data": {"$patch": "replace", "z": "z"}}),
            1 => json!({"data": {"a": null, "b": "strategic"}}),
            _ => json!({"data": null}),
        },
        Kind::Widget => json!({"spec": {"color": "red"}}),
    }
}

fn containers(random: &mut Random) -> Value {
    match random.below(8) {
        0 => json!({"containers": [container("main", random)]}),
        1 => json!({"containers": [container("fresh", random)]}),
        2 => json!({"containers": [{"name": "side", "$patch": "delete"}]}),
        3 => {
            json!({"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}, {"name": "D", "value": "4"}]}]})
        }
        4 => json!({
            "containers": [container("fresh", random)],
            "$setElementOrder/containers": [{"name": "fresh"}, {"name": "main"}, {"name": "side"}]
        }),
        5 => {
            json!({"containers": [{"name": "main", "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 82}]}]})
        }
        6 => json!({"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}),
        _ => json!({"tolerations": [{"key": random.pick(&["a", "b"]), "operator": "Exists"}]}),
    }
}
