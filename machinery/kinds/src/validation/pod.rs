//! Pods and pod templates.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{container, ephemeral, meta, scheduling, volume};
use crate::Gvk;
use crate::access::{is_empty, items, same, text};

/// A pod that is created.
pub(super) fn create(pod: &Value, report: &mut Report) {
    whole(pod, report);
    let path = FieldPath::new("spec");
    if !items(&pod["spec"]["ephemeralContainers"]).is_empty() {
        report.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(&pod["spec"]["nodeName"]).is_empty() && !items(&pod["spec"]["schedulingGates"]).is_empty() {
        report.forbidden(
            &path.child("nodeName"),
            "cannot be set until all schedulingGates have been cleared",
        );
    }
}

pub(super) fn whole(pod: &Value, report: &mut Report) {
    meta::create(Gvk::new("", "v1", "Pod"), true, pod, report);
    let path = FieldPath::new("spec");
    spec(&pod["spec"], &[], &path, report);
    if text(&pod["spec"]["serviceAccountName"]).is_empty() {
        for (index, volume) in items(&pod["spec"]["volumes"]).iter().enumerate() {
            for (part, source) in items(&volume["projected"]["sources"]).iter().enumerate() {
                if !source["serviceAccountToken"].is_null() {
                    let at = path
                        .child("volumes")
                        .index(index)
                        .child("projected")
                        .child("sources")
                        .index(part);
                    let detail = "must not be specified when serviceAccountName is not set";
                    report.forbidden(&at.child("serviceAccountToken"), detail);
                }
            }
        }
    }
    for key in ["containers", "initContainers"] {
        for (index, container) in items(&pod["spec"][key]).iter().enumerate() {
            let image = text(&container["image"]);
            if image.trim() != image {
                let at = path.child(key).index(index).child("image");
                report.invalid(&at, &image.into(), "must not have leading or trailing whitespace");
            }
        }
    }
}

/// Whether a pod stands for one that its node read from a file.
pub(super) fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null()
}

/// A pod template of a workload; `claims` are the volumes that the workload adds.
pub(super) fn template(template: &Value, claims: &[&str], path: &FieldPath, report: &mut Report) {
    // The server leaves out `metadata` in these two paths.
    report.labels(&path.child("labels"), &template["metadata"]["labels"]);
    meta::annotations(
        &template["metadata"]["annotations"],
        &path.child("annotations"),
        report,
    );
    let path = path.child("spec");
    spec(&template["spec"], claims, &path, report);
    if !items(&template["spec"]["ephemeralContainers"]).is_empty() {
        report.forbidden(
            &path.child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

fn spec(spec: &Value, claims: &[&str], path: &FieldPath, report: &mut Report) {
    if spec["terminationGracePeriodSeconds"].is_null() {
        report.required(&path.child("terminationGracePeriodSeconds"), "");
    }
    let volumes = volume::volumes(spec, claims, &path.child("volumes"), report);
    container::regular(spec, &volumes, &path.child("containers"), report);
    container::init(spec, &volumes, &path.child("initContainers"), report);
    ephemeral::containers(spec, &volumes, &path.child("ephemeralContainers"), report);
    host_network(spec, path, report);
    report.choice(
        &path.child("restartPolicy"),
        &spec["restartPolicy"],
        &["Always", "OnFailure", "Never"],
    );
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    report.choice(&path.child("dnsPolicy"), &spec["dnsPolicy"], &policies);
    report.labels(&path.child("nodeSelector"), &spec["nodeSelector"]);
    security(&spec["securityContext"], &path.child("securityContext"), report);
    scheduling::affinity(&spec["affinity"], &path.child("affinity"), report);
    dns_config(spec, &path.child("dnsConfig"), report);
    for (index, gate) in items(&spec["readinessGates"]).iter().enumerate() {
        report.qualified_name(
            &path.child("readinessGates").index(index),
            text(&gate["conditionType"]),
        );
    }
    scheduling::gates(&spec["schedulingGates"], &path.child("schedulingGates"), report);
    scheduling::spread(
        &spec["topologySpreadConstraints"],
        &path.child("topologySpreadConstraints"),
        report,
    );
    report.optional_subdomain(&path.child("serviceAccountName"), &spec["serviceAccountName"]);
    report.optional_subdomain(&path.child("nodeName"), &spec["nodeName"]);
    let deadline = &spec["activeDeadlineSeconds"];
    if deadline
        .as_i64()
        .is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds))
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        report.invalid(&path.child("activeDeadlineSeconds"), deadline, detail);
    }
    for key in ["hostname", "subdomain"] {
        if !is_empty(&spec[key]) {
            report.dns_label(&path.child(key), &spec[key]);
        }
    }
    scheduling::tolerations(&spec["tolerations"], &path.child("tolerations"), report);
    report.optional_subdomain(&path.child("priorityClassName"), &spec["priorityClassName"]);
    report.optional_subdomain(&path.child("runtimeClassName"), &spec["runtimeClassName"]);
    let policies = ["PreemptLowerPriority", "Never"];
    report.optional_choice(
        &path.child("preemptionPolicy"),
        &spec["preemptionPolicy"],
        &policies,
    );
    match text(&spec["os"]["name"]) {
        _ if spec["os"].is_null() => {}
        "" => report.required(&path.child("os").child("name"), ""),
        "linux" | "windows" => {}
        other => report.not_supported(&path.child("os"), &other.into(), &["linux", "windows"]),
    }
}

fn host_network(spec: &Value, path: &FieldPath, report: &mut Report) {
    if spec["hostNetwork"] != Value::Bool(true) {
        return;
    }
    for (index, container) in items(&spec["containers"]).iter().enumerate() {
        let path = path.child("containers").index(index).child("ports");
        for (index, port) in items(&container["ports"]).iter().enumerate() {
            let host = port["hostPort"].as_i64().unwrap_or_default();
            if host != 0 && host != port["containerPort"].as_i64().unwrap_or_default() {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                report.invalid(&path.index(index).child("hostPort"), &host.into(), detail);
            }
        }
    }
}

fn security(context: &Value, path: &FieldPath, report: &mut Report) {
    for key in ["runAsUser", "runAsGroup", "fsGroup"] {
        container::id(&context[key], &path.child(key), report);
    }
    for (index, group) in items(&context["supplementalGroups"]).iter().enumerate() {
        container::id(group, &path.child("supplementalGroups").index(index), report);
    }
    let policies = ["Always", "OnRootMismatch"];
    report.optional_choice(
        &path.child("fsGroupChangePolicy"),
        &context["fsGroupChangePolicy"],
        &policies,
    );
}

fn dns_config(spec: &Value, path: &FieldPath, report: &mut Report) {
    let config = &spec["dnsConfig"];
    if text(&spec["dnsPolicy"]) == "None" {
        if config.is_null() {
            report.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if items(&config["nameservers"]).is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            report.required(&path.child("nameservers"), detail);
            return;
        }
    }
    let servers = items(&config["nameservers"]);
    if servers.len() > 3 {
        report.invalid(
            &path.child("nameservers"),
            &config["nameservers"],
            "must not have more than 3 nameservers",
        );
    }
    for (index, server) in servers.iter().enumerate() {
        let messages = super::rules::ip(text(server));
        report.messages(&path.child("nameservers").index(index), text(server), messages);
    }
}

/// A pod that changes: only images, deadlines, tolerations and gates may.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    meta::update_known(Gvk::new("", "v1", "Pod"), new, old, report);
    whole(new, report);
    let path = FieldPath::new("spec");
    let (new, old) = (&new["spec"], &old["spec"]);
    for key in ["containers", "initContainers"] {
        let (now, before) = (items(&new[key]), items(&old[key]));
        if now.len() != before.len() {
            report.forbidden(&path.child(key), "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in now.iter().enumerate() {
            let image = text(&container["image"]);
            let at = path.child(key).index(index).child("image");
            if image.is_empty() {
                report.required(&at, "");
            }
            if image.trim() != image {
                report.invalid(&at, &image.into(), "must not have leading or trailing whitespace");
            }
        }
    }
    if !deadline(new, old, &path.child("activeDeadlineSeconds"), report) {
        return;
    }
    scheduling::only_added_tolerations(new, old, &path.child("tolerations"), report);
    scheduling::only_removed_gates(new, old, &path.child("schedulingGates"), report);
    if !same(&allowed_changes_undone(new, old), old) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                      `spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        report.forbidden(&path, detail);
    }
}

/// Whether the rest is still to be checked.
fn deadline(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) -> bool {
    let (now, before) = (
        new["activeDeadlineSeconds"].as_i64(),
        old["activeDeadlineSeconds"].as_i64(),
    );
    match (now, before) {
        (Some(now), _) if !(0..=i64::from(i32::MAX)).contains(&now) => {
            report.invalid(path, &now.into(), "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(now), Some(before)) if before < now => {
            report.invalid(path, &now.into(), "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            report.invalid(
                path,
                &Value::Null,
                "must not update from a positive integer to nil value",
            );
            true
        }
        _ => true,
    }
}

/// The new spec with everything that may change put back.
fn allowed_changes_undone(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    let Some(fields) = spec.as_object_mut() else {
        return spec;
    };
    for key in ["containers", "initContainers"] {
        if let Some(Value::Array(list)) = fields.get_mut(key) {
            for (container, before) in list.iter_mut().zip(items(&old[key])) {
                put_back(container, before, "image");
            }
        }
    }
    let gated = !items(&old["schedulingGates"]).is_empty();
    let mut free = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    if gated {
        free.extend(["nodeSelector", "affinity"]);
    }
    let forced_down = old["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds < 0)
        && new["terminationGracePeriodSeconds"].as_i64() == Some(1);
    if forced_down {
        free.push("terminationGracePeriodSeconds");
    }
    for key in free {
        put_back(&mut spec, old, key);
    }
    spec
}

fn put_back(target: &mut Value, source: &Value, key: &str) {
    let Some(target) = target.as_object_mut() else {
        return;
    };
    match source.get(key) {
        Some(value) => target.insert(key.to_owned(), value.clone()),
        None => target.remove(key),
    };
}
