//! Random objects: mostly good ones, each with at most one mistake. Two mistakes at once would be reported in an order that
//! the real server takes from a hash map.

use serde_json::{Map, Value, json};

use super::random::Random;

/// The kinds that scripts are generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    Deployment,
    Service,
    Widget,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::ConfigMap, Kind::Deployment, Kind::Service, Kind::Widget];

    /// The name of its collection in the scripts' `let`.
    pub(super) fn path(self) -> &'static str {
        match self {
            Kind::ConfigMap => "/api/v1/namespaces/<ns>/configmaps",
            Kind::Deployment => "/apis/apps/v1/namespaces/<ns>/deployments",
            Kind::Service => "/api/v1/namespaces/<ns>/services",
            Kind::Widget => "/apis/<group>/v1/namespaces/<ns>/widgets",
        }
    }

    fn type_meta(self) -> (&'static str, &'static str) {
        match self {
            Kind::ConfigMap => ("v1", "ConfigMap"),
            Kind::Deployment => ("apps/v1", "Deployment"),
            Kind::Service => ("v1", "Service"),
            Kind::Widget => ("<group>/v1", "Widget"),
        }
    }

    /// A whole object of this kind.
    pub(super) fn object(self, name: &str, random: &mut Random) -> Value {
        let (api_version, kind) = self.type_meta();
        let mut object = self.content(random);
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        object.insert("metadata".to_owned(), metadata(name, random));
        Value::Object(object)
    }

    /// Everything of it but type and metadata.
    pub(super) fn content(self, random: &mut Random) -> Map<String, Value> {
        let content = match self {
            Kind::ConfigMap => config_map(random),
            Kind::Deployment => json!({"spec": deployment(random)}),
            Kind::Service => json!({"spec": service(random)}),
            Kind::Widget => json!({"spec": widget(random)}),
        };
        content.as_object().cloned().unwrap_or_default()
    }
}

fn metadata(name: &str, random: &mut Random) -> Value {
    let mut metadata = json!({"name": name});
    if random.one_in(2) {
        metadata["labels"] = labels(random);
    }
    if random.one_in(3) {
        metadata["annotations"] = json!({"note": random.pick(&["x", "", "long text with spaces"])});
    }
    if random.one_in(8) {
        metadata["finalizers"] = json!(["example.com/hold"]);
    }
    if random.one_in(8) {
        metadata["ownerReferences"] = owners(random);
    }
    metadata
}

/// One owner, or two. Nobody collects what they leave behind: the real server runs without controllers.
fn owners(random: &mut Random) -> Value {
    let mut owners = vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "<uid>"})];
    if random.one_in(2) {
        owners[0]["controller"] = json!(random.one_in(2));
    }
    if random.one_in(3) {
        owners.push(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": "other",
            "blockOwnerDeletion": true, "controller": random.mistake(3) == 0,
        }));
    }
    Value::Array(owners)
}

/// Any value, up to a depth.
fn anything(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => json!(random.pick(&["", "text", "é", "true", "1"])),
        1 => json!(random.below(1000)),
        2 => json!(random.one_in(2)),
        3 => json!(random.pick(&[0.5, -2.25, 1e21, 1.0])),
        4 => Value::Null,
        5 => (0..random.below(4))
            .map(|_| anything(random, depth - 1))
            .collect(),
        _ => {
            let keys = random.some(&["a", "b", "c.d", "e/f", "UPPER", ""]);
            let map: Map<String, Value> = keys
                .into_iter()
                .map(|key| (key.to_owned(), anything(random, depth - 1)))
                .collect();
            Value::Object(map)
        }
    }
}

/// Labels of which at most one is refused.
pub(super) fn labels(random: &mut Random) -> Value {
    let mut labels = Map::new();
    for key in random.some(&["app", "tier", "example.com/zone"]) {
        labels.insert(key.to_owned(), random.pick(&["a", "b", "c", ""]).into());
    }
    if random.mistake(20) == 0 {
        labels.insert("app".to_owned(), "not a label value".into());
    }
    Value::Object(labels)
}

fn config_map(random: &mut Random) -> Value {
    let mut object = Map::new();
    let mut data = Map::new();
    for key in random.some(&["a", "b", "key.x", "UPPER_case"]) {
        data.insert(
            key.to_owned(),
            random
                .pick(&["", "1", "two\nlines", "ünï", "true", "{\"json\": 1}"])
                .into(),
        );
    }
    match random.mistake(20) {
        0 => data.insert("bad key".to_owned(), "x".into()),
        1 => data.insert("a".to_owned(), json!(5)),
        _ => None,
    };
    if !data.is_empty() || random.one_in(2) {
        object.insert("data".to_owned(), Value::Object(data));
    }
    if random.one_in(6) {
        object.insert(
            "binaryData".to_owned(),
            json!({"bin": random.pick(&["AAEC", "", "AA=="])}),
        );
    }
    if random.mistake(15) == 0 {
        object.insert("immutable".to_owned(), json!(random.one_in(2)));
    }
    if random.mistake(15) == 0 {
        object.insert("unknown".to_owned(), json!({"x": 1}));
    }
    Value::Object(object)
}

/// A container named `name`.
pub(super) fn container(name: &str, random: &mut Random) -> Value {
    let mut container =
        json!({"name": name, "image": random.pick(&["nginx", "nginx:1.27", "example.com/app@sha256:0"])});
    if random.one_in(2) {
        container["env"] = env(random);
    }
    if random.one_in(2) {
        container["ports"] = json!([{"containerPort": random.pick(&[80, 81])}]);
    }
    if random.one_in(3) {
        container["resources"] = json!({
            "requests": {"cpu": random.pick(&["100m", "0.1", "1"]), "memory": random.pick(&["64Mi", "1e6", "0.5Gi"])}
        });
    }
    if random.one_in(4) {
        container["command"] = json!(["sh", "-c", "exit 0"]);
    }
    container
}

fn env(random: &mut Random) -> Value {
    let variables = random.some(&["A", "B", "C"]);
    variables
        .iter()
        .map(|name| json!({"name": name, "value": random.pick(&["1", "2", ""])}))
        .collect()
}

fn deployment(random: &mut Random) -> Value {
    let containers: Vec<Value> = ["main", "side"]
        .iter()
        .take(1 + random.below(2))
        .map(|name| container(name, random))
        .collect();
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}},
    });
    if random.one_in(2) {
        spec["replicas"] = json!(random.below(4));
    }
    if random.one_in(4) {
        spec["strategy"] = random.pick(&[0, 1, 2]).pipe(|choice| match choice {
            0 => json!({"type": "Recreate"}),
            1 => json!({"rollingUpdate": {"maxSurge": "50%"}}),
            _ => json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}),
        });
    }
    match random.mistake(24) {
        0 => spec["replicas"] = json!(-1),
        1 => spec["template"]["metadata"]["labels"] = json!({"app": "other"}),
        2 => spec["replicas"] = json!("three"),
        3 => spec["template"]["spec"]["containers"][0]["image"] = json!(""),
        4 => spec["bogus"] = json!(true),
        _ => {}
    }
    spec
}

fn service(random: &mut Random) -> Value {
    let mut spec = json!({
        "selector": {"app": random.pick(&["a", "b"])},
        "ports": random.pick(&[0, 1, 2]).pipe(|choice| match choice {
            0 => json!([{"port": 80}]),
            1 => json!([{"port": 80, "name": "a", "targetPort": "http"}, {"port": 81, "name": "b", "protocol": "UDP"}]),
            _ => json!([{"port": 443, "targetPort": 8443, "appProtocol": "https"}]),
        }),
    });
    match random.below(6) {
        0 => spec["clusterIP"] = json!("None"),
        1 => spec["type"] = json!("NodePort"),
        2 => spec = json!({"type": "ExternalName", "externalName": "example.com"}),
        3 => spec["sessionAffinity"] = json!("ClientIP"),
        _ => {}
    }
    match random.mistake(20) {
        0 => spec["ports"] = json!([{"port": 70000}]),
        1 => spec["type"] = json!("Sideways"),
        2 => spec["sessionAffinity"] = json!("Sometimes"),
        _ => {}
    }
    spec
}

fn widget(random: &mut Random) -> Value {
    let mut spec = Map::new();
    for field in random.some(&[
        "replicas", "color", "size", "code", "port", "maybe", "flags", "ports", "limits", "nested", "free",
    ]) {
        let value = match field {
            "replicas" => json!(random.below(6)),
            "color" => json!(random.pick(&["red", "green", "blue"])),
            "size" => random
                .pick(&[0, 1, 2])
                .pipe(|choice| [json!(0.5), json!(3), json!(9.25)][choice].clone()),
            "code" => json!(random.pick(&["AB", "ABCD"])),
            "port" => [json!(80), json!("http"), json!("50%")][random.below(3)].clone(),
            "maybe" => [Value::Null, json!("text")][random.below(2)].clone(),
            "flags" => json!(random.some(&["x", "y", "z"])),
            "ports" => random
                .some(&["p", "q"])
                .iter()
                .map(|name| json!({"name": name, "port": random.below(100)}))
                .collect(),
            "limits" => json!({"cpu": random.below(9)}),
            "nested" => {
                [json!({}), json!({"depth": 7}), json!({"on": false, "extra": 1})][random.below(3)].clone()
            }
            _ if random.one_in(2) => json!({"any": [1, 2.5, null, {"deep": "x"}]}),
            _ => json!({"any": anything(random, 4), "b": anything(random, 2)}),
        };
        spec.insert(field.to_owned(), value);
    }
    match random.mistake(20) {
        0 => spec.insert("replicas".to_owned(), json!(101)),
        1 => spec.insert("color".to_owned(), json!("purple")),
        2 => spec.insert("bogus".to_owned(), json!([1])),
        3 => spec.insert("flags".to_owned(), json!(["x", "x"])),
        4 => spec.insert("size".to_owned(), json!(9.5)),
        5 => spec.insert("ports".to_owned(), json!([{"name": "p"}, {"name": "p"}])),
        6 => spec.insert("code".to_owned(), json!("lower")),
        _ => None,
    };
    Value::Object(spec)
}

/// Lets a choice be followed by what is made of it.
trait Pipe: Sized {
    fn pipe<T>(self, make: impl FnOnce(Self) -> T) -> T {
        make(self)
    }
}

impl Pipe for usize {}
