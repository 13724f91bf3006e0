//! Pods, and templates of Pods.

use std::collections::{BTreeMap, BTreeSet};

use machinery_value::field::FieldPath;
use machinery_value::quantity::Quantity;
use serde_json::Value;

use crate::access::{entries, items, text};

/// Labels of nodes that have another name by now.
const NODE_LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// Annotations that nothing reads any more.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Volumes that nothing mounts any more.
const VOLUMES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const NO_POD: &str = "a null labelSelector results in matching no pod";

/// What is odd about a Pod, or about a template at `path`.
pub(super) fn warnings(path: &FieldPath, template: &Value) -> Vec<String> {
    let spec_path = path.child("spec");
    let (spec, at) = (&template["spec"], |name: &str| spec_path.child(name));
    let mut found = Vec::new();
    let named = |list: &[(&str, &str)], key: &str| {
        list.iter()
            .find(|(known, _)| *known == key)
            .map(|(_, told)| (*told).to_owned())
    };
    for (label, _) in entries(&spec["nodeSelector"]) {
        if let Some(told) = named(&NODE_LABELS, label) {
            found.push(format!("{}: {told}", at("nodeSelector").key(label)));
        }
    }
    for (index, constraint) in items(&spec["topologySpreadConstraints"]).iter().enumerate() {
        let place = at("topologySpreadConstraints").index(index);
        let key = text(&constraint["topologyKey"]);
        if let Some(told) = named(&NODE_LABELS, key) {
            found.push(format!("{}: {key} is {told}", place.child("topologyKey")));
        }
        if constraint["labelSelector"].is_null() {
            found.push(format!("{}: {NO_POD}", place.child("labelSelector")));
        }
    }
    for (key, told) in ANNOTATIONS {
        if !template["metadata"]["annotations"][key].is_null() {
            let place = path.child("metadata").child("annotations").key(key);
            found.push(format!("{place}: {told}"));
        }
    }
    for (index, volume) in items(&spec["volumes"]).iter().enumerate() {
        for (kind, told) in VOLUMES {
            if !volume[kind].is_null() {
                found.push(format!("{}: {told}", at("volumes").index(index).child(kind)));
            }
        }
    }
    repeated(&spec["hostAliases"], "ip", &at("hostAliases"), &mut found);
    repeated(
        &spec["imagePullSecrets"],
        "name",
        &at("imagePullSecrets"),
        &mut found,
    );
    for (index, secret) in items(&spec["imagePullSecrets"]).iter().enumerate() {
        if text(&secret["name"]).is_empty() {
            let place = at("imagePullSecrets").index(index).child("name");
            found.push(format!("{place}: invalid empty name \"\""));
        }
    }
    amounts(&spec["overhead"], &at("overhead"), &mut found);
    for (place, container) in containers(spec, &spec_path) {
        // Memory of both comes before storage of both.
        for resource in ["memory", "ephemeral-storage"] {
            for kind in ["limits", "requests"] {
                let place = place.child("resources").child(kind);
                amount(&container["resources"][kind], resource, &place, &mut found);
            }
        }
        variables(&container["env"], &place.child("env"), &mut found);
    }
    ports(spec, &spec_path, &mut found);
    if spec["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|grace| grace < 0)
    {
        let place = at("terminationGracePeriodSeconds");
        found.push(format!(
            "{place}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        affinity(&spec["affinity"][kind], &at("affinity").child(kind), &mut found);
    }
    found
}

/// The containers of a Pod, with where they are.
fn containers<'a>(
    spec: &'a Value,
    path: &'a FieldPath,
) -> impl Iterator<Item = (FieldPath, &'a Value)> + use<'a> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |kind| {
            let numbered = items(&spec[kind]).iter().enumerate();
            numbered.map(move |(index, container)| (path.child(kind).index(index), container))
        })
}

fn repeated(list: &Value, key: &str, path: &FieldPath, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items(list).iter().enumerate() {
        let value = text(&item[key]);
        if !seen.insert(value) {
            found.push(format!(
                "{}: duplicate {key} {value:?}",
                path.index(index).child(key)
            ));
        }
    }
}

fn amounts(list: &Value, path: &FieldPath, found: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        amount(list, resource, path, found);
    }
}

/// Nothing has a part of a byte.
fn amount(list: &Value, resource: &str, path: &FieldPath, found: &mut Vec<String>) {
    let value = text(&list[resource]);
    if Quantity::parse(value).is_ok_and(|amount| amount.milli() % 1000 != 0) {
        let place = path.key(resource);
        found.push(format!(
            "{place}: fractional byte value {value:?} is invalid, must be an integer"
        ));
    }
}

/// A variable that is set twice is fine if the second value uses the first.
fn variables(list: &Value, path: &FieldPath, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, variable) in items(list).iter().enumerate() {
        let (name, value) = (text(&variable["name"]), text(&variable["value"]));
        if seen.insert(name) {
            continue;
        }
        let before = format!("$({name})");
        if !variable["valueFrom"].is_null() || value == before || !value.contains(&before) {
            let place = path.index(index);
            found.push(format!(
                "{place}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

/// Containers of a Pod share their ports, and the names of them.
fn ports(spec: &Value, path: &FieldPath, found: &mut Vec<String>) {
    let mut seen: BTreeMap<(i64, &str), Vec<(FieldPath, &Value)>> = BTreeMap::new();
    let all = || {
        containers(spec, path).flat_map(|(place, container)| {
            let numbered = items(&container["ports"]).iter().enumerate();
            numbered.map(move |(index, port)| (place.child("ports").index(index), port))
        })
    };
    let host = |port: &Value| port["hostPort"].as_i64().unwrap_or(0);
    for (place, port) in all() {
        let (address, number) = (text(&port["hostIP"]), host(port));
        let (inside, protocol) = (
            port["containerPort"].as_i64().unwrap_or(0),
            text(&port["protocol"]),
        );
        if !address.is_empty() && number == 0 {
            let name = text(&port["name"]);
            found.push(format!(
                "{place}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{inside} Protocol:{protocol} \
                 HostIP:{address}}}"
            ));
        }
        let others = seen.entry((inside, protocol)).or_default();
        for (other, known) in others.iter() {
            let (its_address, its_number) = (text(&known["hostIP"]), host(known));
            let how = if (address, number) == (its_address, its_number) {
                "duplicate"
            } else if number == 0 || its_number == 0 {
                "overlapping"
            } else if number == its_number && address.is_empty() != its_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            found.push(format!("{place}: {how} port definition with {other}"));
        }
        others.push((place, port));
    }
    let mut names: BTreeMap<&str, FieldPath> = BTreeMap::new();
    for (place, port) in all() {
        let name = text(&port["name"]);
        match names.get(name) {
            _ if name.is_empty() => {}
            None => {
                names.insert(name, place);
            }
            Some(other) => found.push(format!(
                "{place}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
            )),
        }
    }
}

fn affinity(affinity: &Value, path: &FieldPath, found: &mut Vec<String>) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in items(&affinity[required]).iter().enumerate() {
        if term["labelSelector"].is_null() {
            let place = path.child(required).index(index).child("labelSelector");
            found.push(format!("{place}: {NO_POD}"));
        }
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in items(&affinity[preferred]).iter().enumerate() {
        if term["podAffinityTerm"]["labelSelector"].is_null() {
            let place = path.child(preferred).index(index).child("podAffinityTerm");
            found.push(format!("{}: {NO_POD}", place.child("labelSelector")));
        }
    }
}
