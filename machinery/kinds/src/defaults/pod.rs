//! Pods, and the pod specs inside of workloads.

use serde_json::{Map, Value};

use super::volume;
use crate::access::{Object, each, empty, make, set, set_nonzero, set_text, with};

/// A Pod: what every pod spec gets, and what only pods get.
pub(super) fn pod(object: &mut Object) {
    make(object, "spec", |spec| {
        pod_spec(spec);
        for key in ["containers", "initContainers"] {
            each(spec, key, |container| {
                make(container, "resources", requests_from_limits)
            });
        }
        with(spec, "resources", requests_from_limits);
        set(spec, "enableServiceLinks", true);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            host_ports(spec);
        }
    });
}

/// A PodTemplate.
pub(super) fn pod_template(object: &mut Object) {
    template(object);
}

/// The pod template at `template` of a workload's spec.
pub(super) fn template(owner: &mut Object) {
    make(owner, "template", |template| {
        set(template, "metadata", empty());
        make(template, "spec", pod_spec);
    });
}

fn pod_spec(spec: &mut Object) {
    set_text(spec, "dnsPolicy", "ClusterFirst");
    set_text(spec, "restartPolicy", "Always");
    set(spec, "securityContext", empty());
    set(spec, "terminationGracePeriodSeconds", 30);
    set_text(spec, "schedulerName", "default-scheduler");
    if let Some(account) = spec
        .get("serviceAccountName")
        .or_else(|| spec.get("serviceAccount"))
        .cloned()
    {
        // The two are one field with two names.
        spec.insert("serviceAccountName".to_owned(), account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
    each(spec, "volumes", volume::volume);
    for key in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, key, container);
    }
}

fn container(container: &mut Object) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    set_text(container, "imagePullPolicy", policy);
    set_text(container, "terminationMessagePath", "/dev/termination-log");
    set_text(container, "terminationMessagePolicy", "File");
    make(container, "resources", |_| {});
    each(container, "ports", |port| set_text(port, "protocol", "TCP"));
    each(container, "env", |env| {
        with(env, "valueFrom", |from| {
            with(from, "fieldRef", |field| set_text(field, "apiVersion", "v1"));
            with(from, "resourceFieldRef", |field| set_text(field, "divisor", "0"));
            with(from, "fileKeyRef", |file| set(file, "optional", false));
        });
    });
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        with(container, key, probe);
    }
    with(container, "lifecycle", |lifecycle| {
        for key in ["postStart", "preStop"] {
            with(lifecycle, key, |handler| with(handler, "httpGet", http_get));
        }
    });
}

fn probe(probe: &mut Object) {
    set_nonzero(probe, "timeoutSeconds", 1);
    set_nonzero(probe, "periodSeconds", 10);
    set_nonzero(probe, "successThreshold", 1);
    set_nonzero(probe, "failureThreshold", 3);
    with(probe, "httpGet", http_get);
    with(probe, "grpc", |grpc| set(grpc, "service", ""));
}

fn http_get(get: &mut Object) {
    set_text(get, "path", "/");
    set_text(get, "scheme", "HTTP");
}

fn requests_from_limits(resources: &mut Object) {
    let Some(Value::Object(limits)) = resources.get("limits") else {
        return;
    };
    let limits = limits.clone();
    let requests = resources
        .entry("requests")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(requests) = requests {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

fn host_ports(spec: &mut Object) {
    for key in ["containers", "initContainers"] {
        each(spec, key, |container| {
            each(container, "ports", |port| {
                if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
                    set_nonzero(port, "hostPort", number);
                }
            });
        });
    }
}

/// `Always` for the tag `latest`, which an image without tag and digest has; else `IfNotPresent`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, false), |(name, _)| (name, true));
    // A colon before the last slash belongs to the registry's port.
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = match last.split_once(':') {
        Some((_, tag)) => tag,
        None if digest => "",
        None => "latest",
    };
    if tag == "latest" && !image.is_empty() {
        "Always"
    } else {
        "IfNotPresent"
    }
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn the_tag_decides_the_pull_policy() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("registry:5000/nginx", "Always"),
            ("registry:5000/a/nginx:1.2", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("nginx:latest@sha256:abc", "Always"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
