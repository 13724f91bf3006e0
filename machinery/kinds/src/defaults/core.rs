//! The smaller kinds of the core group.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::pod;
use crate::access::{Object, each, is_empty, make, set, set_text, text, with};

/// A ReplicationController: its selector and labels come from its template.
pub(super) fn replication_controller(object: &mut Object) {
    make(object, "spec", |spec| {
        set(spec, "replicas", 1);
        if spec.contains_key("template") {
            pod::template(spec);
        }
    });
    make(object, "status", |status| set(status, "replicas", 0));
    let labels = object
        .get("spec")
        .map(|spec| &spec["template"]["metadata"]["labels"])
        .cloned();
    let Some(labels) = labels.filter(|labels| !is_empty(labels)) else {
        return;
    };
    with(object, "spec", |spec| {
        if spec.get("selector").is_none_or(is_empty) {
            spec.insert("selector".to_owned(), labels.clone());
        }
    });
    make(object, "metadata", |metadata| {
        if metadata.get("labels").is_none_or(is_empty) {
            metadata.insert("labels".to_owned(), labels);
        }
    });
}

/// Endpoints.
pub(super) fn endpoints(object: &mut Object) {
    each(object, "subsets", |subset| {
        each(subset, "ports", |port| set_text(port, "protocol", "TCP"))
    });
}

/// A Namespace: it carries its own name as a label.
pub(super) fn namespace(object: &mut Object) {
    make(object, "metadata", |metadata| {
        let name = metadata.get("name").map(text).unwrap_or_default().to_owned();
        if !name.is_empty() {
            make(metadata, "labels", |labels| {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
            });
        }
    });
    make(object, "spec", |_| {});
    make(object, "status", |status| set_text(status, "phase", "Active"));
}

/// What a node always tells of itself, even if it is nothing.
const NODE_INFO: [&str; 10] = [
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

/// A Node: what it has is what it can give, unless it says otherwise.
pub(super) fn node(object: &mut Object) {
    make(object, "spec", |_| {});
    make(object, "status", |status| {
        make(status, "daemonEndpoints", |ends| {
            make(ends, "kubeletEndpoint", |end| set(end, "Port", 0))
        });
        make(status, "nodeInfo", |info| {
            for key in NODE_INFO {
                set(info, key, "");
            }
        });
        if let Some(capacity) = status.get("capacity").cloned() {
            set(status, "allocatable", capacity);
        }
    });
}

/// A Secret: `stringData` is only a way to write `data`.
pub(super) fn secret(object: &mut Object) {
    set_text(object, "type", "Opaque");
    if let Some(Value::Object(texts)) = object.remove("stringData")
        && !texts.is_empty()
    {
        make(object, "data", |data| {
            for (key, value) in texts {
                data.insert(key, STANDARD.encode(text(&value)).into());
            }
        });
    }
}

/// A LimitRange: limits of containers follow from each other.
pub(super) fn limit_range(object: &mut Object) {
    with(object, "spec", |spec| {
        each(spec, "limits", |limit| {
            if limit.get("type").map(text) != Some("Container") {
                return;
            }
            // The order matters: requests follow from limits that were just filled in.
            fill_from(limit, "default", "max");
            fill_from(limit, "defaultRequest", "default");
            fill_from(limit, "defaultRequest", "min");
        });
    });
}

fn fill_from(limit: &mut Object, target: &str, source: &str) {
    let Some(Value::Object(source)) = limit.get(source) else {
        return;
    };
    let source = source.clone();
    let target = limit.entry(target).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(target) = target {
        for (name, amount) in source {
            target.entry(name).or_insert(amount);
        }
    }
}

/// A ResourceQuota.
pub(super) fn quota(object: &mut Object) {
    make(object, "status", |_| {});
}

/// An Event of the core group: some fields are always there.
pub(super) fn event(object: &mut Object) {
    make(object, "involvedObject", |_| {});
    make(object, "source", |_| {});
    set(object, "reportingComponent", "");
    set(object, "reportingInstance", "");
}

/// An Event of events.k8s.io.
pub(super) fn new_event(object: &mut Object) {
    make(object, "deprecatedSource", |_| {});
    make(object, "regarding", |_| {});
}

/// A PodDisruptionBudget.
pub(super) fn budget(object: &mut Object) {
    make(object, "status", |status| {
        for key in [
            "currentHealthy",
            "desiredHealthy",
            "disruptionsAllowed",
            "expectedPods",
        ] {
            set(status, key, 0);
        }
    });
}

/// A Lease.
pub(super) fn lease(object: &mut Object) {
    make(object, "spec", |_| {});
}

/// A TokenRequest: an hour.
pub(super) fn token_request(object: &mut Object) {
    make(object, "spec", |spec| set(spec, "expirationSeconds", 3600));
}
