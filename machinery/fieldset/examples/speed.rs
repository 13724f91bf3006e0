//! What ownership costs: `cargo run --release -p machinery-fieldset --example speed`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement may end where it likes, and prints"
)]

use std::time::{Duration, Instant};

use machinery_fieldset::{Reset, Shape, Time, Write, apply, update};
use machinery_kinds::Gvk;
use machinery_value::{Value, encode};
use serde_json::json;

fn deployment() -> Value {
    let container = |name: &str| {
        let env: Vec<Value> = (0..14)
            .map(|i| json!({"name": format!("VARIABLE_{i}"), "value": format!("value-{i}")}))
            .collect();
        json!({"name": name, "image": "registry.example/team/app:1.2.3", "env": env,
            "ports": [{"containerPort": 80}, {"containerPort": 443}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 80}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/config"}]})
    };
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ns", "labels": {"app": "a"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [container("one"), container("two"), container("three")],
                "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "c"}}]}}}});
    object = machinery_wire::decode(
        machinery_wire::lookup("apps", "v1", "Deployment").unwrap(),
        object,
    )
    .unwrap()
    .value;
    machinery_kinds::defaults::apply("apps", "v1", "Deployment", &mut object);
    object
}

fn best(mut run: impl FnMut()) -> Duration {
    (0..2000)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let schema = machinery_kinds::schemas::schema(Gvk::new("apps", "v1", "Deployment")).unwrap();
    let versions: &[(&str, Shape<'_>)] = &[("apps/v1", Shape::built_in(schema))];
    let ty = machinery_wire::lookup("apps", "v1", "Deployment").unwrap();
    let empty = machinery_wire::decode(ty, json!({})).unwrap().value;
    let reset = Reset::built_in("apps", "Deployment", "");
    let write = Write {
        versions: &versions,
        api_version: "apps/v1",
        kind: "Deployment",
        subresource: "",
        reset: &reset,
        manager: "m",
        now: Time::from_seconds(1_700_000_000).unwrap(),
        empty: &empty,
    };
    let object = deployment();
    let mut created = object.clone();
    update(&write, &empty, &mut created);
    created["metadata"]["uid"] = json!("u");
    let mut changed = created.clone();
    changed["spec"]["replicas"] = json!(4);

    let clone = best(|| drop(created.clone()));
    let create = best(|| update(&write, &empty, &mut object.clone()));
    let change = best(|| update(&write, &created, &mut changed.clone()));
    let wanted = changed_without_owners(&changed);
    let first = best(|| drop(apply(&write, &created, &wanted, true)));
    let owned = apply(&write, &created, &wanted, true).unwrap().object;
    let again = best(|| drop(apply(&write, &owned, &wanted, true)));
    let mut less = wanted.clone();
    less["spec"]["template"]["spec"]["volumes"] = json!([]);
    let fewer = best(|| drop(apply(&write, &owned, &less, true)));
    println!(
        "{} bytes, {} with owners: create {create:?}, update {change:?}, first apply {first:?}, the same \
         again {again:?}, less {fewer:?} (clone {clone:?})",
        encode::encoded_len(&object),
        encode::encoded_len(&created),
    );
}

fn changed_without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
        meta.remove("uid");
    }
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("Deployment");
    object
}
