//! Deployments, replica sets, stateful sets, daemon sets and replication controllers.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::{IMMUTABLE, Report};
use super::{claim, counts, meta, pod, selector, shown};
use crate::access::{is_empty, items, object_at, same, text};

/// A selector that must be there and must not be empty.
fn required_selector(spec: &Value, kind: &str, path: &FieldPath, report: &mut Report) {
    let path = path.child("selector");
    if spec["selector"].is_null() {
        report.required(&path, "");
        return;
    }
    selector::check(&spec["selector"], &path, report);
    if selector::matches_all(&spec["selector"]) {
        let detail = format!("empty selector is invalid for {kind}");
        report.invalid_shown(&path, &shown::selector(&spec["selector"]), &detail);
    }
}

/// The selector does not change.
fn fixed_selector(new: &Value, old: &Value, report: &mut Report) {
    let (new, old) = (&new["spec"]["selector"], &old["spec"]["selector"]);
    if !same(new, old) {
        report.invalid_shown(
            &FieldPath::new("spec").child("selector"),
            &shown::selector(new),
            IMMUTABLE,
        );
    }
}

/// The selector, if it selects at all, selects the template.
fn labels_match(spec: &Value, path: &FieldPath, report: &mut Report) {
    let labels = &spec["template"]["metadata"]["labels"];
    if selector::matches(&spec["selector"], labels) == Some(false) {
        let detail = "`selector` does not match template `labels`";
        report.invalid(&path.child("metadata").child("labels"), labels, detail);
    }
}

/// Pods of a workload that keeps them running are always restarted and have no deadline.
fn lasting(spec: &Value, kind: &str, path: &FieldPath, report: &mut Report) {
    let pod = &spec["template"]["spec"];
    let path = path.child("spec");
    if text(&pod["restartPolicy"]) != "Always" {
        let value = text(&pod["restartPolicy"]).into();
        report.not_supported(&path.child("restartPolicy"), &value, &["Always"]);
    }
    if !pod["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        report.forbidden(&path.child("activeDeadlineSeconds"), detail);
    }
}

fn replica_template(spec: &Value, path: &FieldPath, report: &mut Report) {
    // A malformed selector is only said to be so.
    if selector::matches(&spec["selector"], &Value::Null).is_none() {
        let shown = shown::selector(&spec["selector"]);
        report.invalid_shown(&path.child("selector"), &shown, "invalid label selector");
        return;
    }
    let path = path.child("template");
    labels_match(spec, &path, report);
    pod::template(&spec["template"], &[], &path, report);
    lasting(spec, "ReplicaSet", &path, report);
}

/// A Deployment.
pub(super) fn deployment(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    report.nonnegative(&path.child("replicas"), &spec["replicas"]);
    required_selector(spec, "deployment", &path, report);
    replica_template(spec, &path, report);
    deployment_strategy(&spec["strategy"], &path.child("strategy"), report);
    report.nonnegative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    report.nonnegative(&path.child("revisionHistoryLimit"), &spec["revisionHistoryLimit"]);
    let deadline = &spec["progressDeadlineSeconds"];
    report.nonnegative(&path.child("progressDeadlineSeconds"), deadline);
    let ready = spec["minReadySeconds"].as_i64().unwrap_or_default();
    if deadline.as_i64().is_some_and(|seconds| seconds <= ready) {
        report.invalid(
            &path.child("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
}

/// A Deployment that changes.
pub(super) fn deployment_update(new: &Value, old: &Value, report: &mut Report) {
    deployment(new, report);
    fixed_selector(new, old, report);
}

fn deployment_strategy(strategy: &Value, path: &FieldPath, report: &mut Report) {
    let rolling = &strategy["rollingUpdate"];
    let at = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "Recreate" if rolling.is_null() => {}
        "Recreate" => report.forbidden(&at, "may not be specified when strategy `type` is 'Recreate'"),
        "RollingUpdate" if rolling.is_null() => {
            report.required(&at, "this should be defaulted and never be nil")
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            let at_unavailable = at.child("maxUnavailable");
            counts::number_or_percent(unavailable, &at_unavailable, report);
            counts::number_or_percent(surge, &at.child("maxSurge"), report);
            if counts::value(unavailable) == 0 && counts::value(surge) == 0 {
                report.invalid(&at_unavailable, unavailable, "may not be 0 when `maxSurge` is 0");
            }
            counts::at_most_all(unavailable, &at_unavailable, report);
        }
        _ => report.not_supported_shown(path, &strategy_shown(strategy), &["Recreate", "RollingUpdate"]),
    }
}

/// Inside the server the fields of a strategy have no JSON names.
fn strategy_shown(strategy: &Value) -> String {
    let rolling = &strategy["rollingUpdate"];
    let rolling = if rolling.is_null() {
        "null".to_owned()
    } else {
        format!(
            "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
            rolling["maxUnavailable"], rolling["maxSurge"]
        )
    };
    format!(
        "{{\"Type\":{},\"RollingUpdate\":{rolling}}}",
        Value::from(text(&strategy["type"]))
    )
}

/// A ReplicaSet.
pub(super) fn replica_set(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    report.nonnegative(&path.child("replicas"), &spec["replicas"]);
    report.nonnegative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    // The server says "deployment" here, too.
    required_selector(spec, "deployment", &path, report);
    replica_template(spec, &path, report);
}

/// A ReplicaSet that changes.
pub(super) fn replica_set_update(new: &Value, old: &Value, report: &mut Report) {
    replica_set(new, report);
    fixed_selector(new, old, report);
}

/// A StatefulSet.
pub(super) fn stateful_set(object: &Value, creating: bool, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    match text(&spec["podManagementPolicy"]) {
        "" => report.required(&path.child("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        _ => {
            let value = &spec["podManagementPolicy"];
            report.invalid(
                &path.child("podManagementPolicy"),
                value,
                "must be 'OrderedReady' or 'Parallel'",
            );
        }
    }
    stateful_strategy(&spec["updateStrategy"], &path.child("updateStrategy"), report);
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    if !spec["persistentVolumeClaimRetentionPolicy"].is_null() {
        for key in ["whenDeleted", "whenScaled"] {
            let value: Value = text(&spec["persistentVolumeClaimRetentionPolicy"][key]).into();
            report.optional_choice(&retention.child(key), &value, &["Retain", "Delete"]);
        }
    }
    let claims = items(&spec["volumeClaimTemplates"]);
    if creating {
        for (index, template) in claims.iter().enumerate() {
            let path = path.child("volumeClaimTemplates").index(index).child("spec");
            claim::spec(&template["spec"], &path, report);
        }
    }
    report.nonnegative(&path.child("replicas"), &spec["replicas"]);
    report.nonnegative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    report.nonnegative(&path.child("ordinals.start"), &spec["ordinals"]["start"]);
    if creating && !is_empty(&spec["serviceName"]) {
        report.dns_label(&path.child("serviceName"), &spec["serviceName"]);
    }
    required_selector(spec, "statefulset", &path, report);
    stateful_template(spec, claims, &path, report);
}

fn stateful_template(spec: &Value, claims: &[Value], path: &FieldPath, report: &mut Report) {
    if selector::matches(&spec["selector"], &Value::Null).is_none() {
        report.invalid_shown(&path.child("selector"), &shown::selector(&spec["selector"]), "");
    } else {
        let at = path.child("template");
        labels_match(spec, &at, report);
        let names: Vec<&str> = claims
            .iter()
            .map(|claim| text(&claim["metadata"]["name"]))
            .collect();
        let mut template = spec["template"].clone();
        if let Some(pod) = object_at(&mut template, "spec") {
            // The controller sets these two itself.
            pod.remove("hostname");
            pod.remove("subdomain");
        }
        pod::template(&template, &names, &at, report);
        // Once more, by the kind itself.
        report.labels(&at.child("labels"), &template["metadata"]["labels"]);
        meta::annotations(
            &template["metadata"]["annotations"],
            &at.child("annotations"),
            report,
        );
    }
    lasting(spec, "StatefulSet", &path.child("template"), report);
}

fn stateful_strategy(strategy: &Value, path: &FieldPath, report: &mut Report) {
    let rolling = &strategy["rollingUpdate"];
    let at = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "" => report.required(path, ""),
        "OnDelete" if rolling.is_null() => {}
        "OnDelete" => {
            let (partition, most) = (&rolling["partition"], &rolling["maxUnavailable"]);
            let partition = partition.as_i64().unwrap_or_default();
            let shown = format!("{{\"Partition\":{partition},\"MaxUnavailable\":{most}}}");
            report.invalid_shown(&at, &shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "RollingUpdate" => {
            report.nonnegative(&at.child("partition"), &rolling["partition"]);
            let unavailable = &rolling["maxUnavailable"];
            if !unavailable.is_null() {
                let at = at.child("maxUnavailable");
                counts::number_or_percent(unavailable, &at, report);
                if counts::value(unavailable) == 0 {
                    report.invalid(&at, unavailable, "cannot be 0");
                }
                counts::at_most_all(unavailable, &at, report);
            }
        }
        _ => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", strategy["type"]);
            report.invalid_shown(path, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// A StatefulSet that changes.
pub(super) fn stateful_set_update(new: &Value, old: &Value, report: &mut Report) {
    stateful_set(new, false, report);
    const FREE: [&str; 7] = [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ];
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|key, _| !FREE.contains(&key.as_str()));
        }
        spec
    };
    if !same(&fixed(new), &fixed(old)) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        report.forbidden(&FieldPath::new("spec"), detail);
    }
}

/// A DaemonSet.
pub(super) fn daemon_set(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    let template = path.child("template");
    selector::check(&spec["selector"], &path.child("selector"), report);
    labels_match(spec, &template, report);
    if !spec["selector"].is_null() && selector::matches_all(&spec["selector"]) {
        let shown = shown::selector(&spec["selector"]);
        report.invalid_shown(
            &path.child("selector"),
            &shown,
            "empty selector is invalid for daemonset",
        );
    }
    pod::template(&spec["template"], &[], &template, report);
    lasting(spec, "DaemonSet", &template, report);
    report.nonnegative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    daemon_strategy(&spec["updateStrategy"], &path.child("updateStrategy"), report);
    report.nonnegative(&path.child("revisionHistoryLimit"), &spec["revisionHistoryLimit"]);
}

fn daemon_strategy(strategy: &Value, path: &FieldPath, report: &mut Report) {
    let rolling = &strategy["rollingUpdate"];
    let at = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_null() => report.required(&at, ""),
        "RollingUpdate" => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            for (key, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                counts::number_or_percent(value, &at.child(key), report);
            }
            for (key, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                counts::at_most_all(value, &at.child(key), report);
            }
            match (counts::value(unavailable) != 0, counts::value(surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    report.invalid(&at.child("maxSurge"), surge, detail);
                }
                (false, false) => {
                    report.required(&at.child("maxUnavailable"), "cannot be 0 when maxSurge is 0");
                }
                _ => {}
            }
        }
        _ => report.not_supported_shown(path, &strategy_shown(strategy), &["RollingUpdate", "OnDelete"]),
    }
}

/// A DaemonSet that changes.
pub(super) fn daemon_set_update(new: &Value, old: &Value, report: &mut Report) {
    fixed_selector(new, old, report);
    daemon_set(new, report);
}

/// A ReplicationController.
pub(super) fn replication_controller(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    report.nonnegative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    if is_empty(&spec["selector"]) {
        report.required(&path.child("selector"), "");
    }
    report.nonnegative(&path.child("replicas"), &spec["replicas"]);
    let at = path.child("template");
    if spec["template"].is_null() {
        report.required(&at, "");
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !crate::access::entries(&spec["selector"]).all(|(key, value)| labels[key] == *value) {
        let detail = "`selector` does not match template `labels`";
        report.invalid(&at.child("metadata").child("labels"), labels, detail);
    }
    pod::template(&spec["template"], &[], &at, report);
    lasting(spec, "ReplicationController", &at, report);
}
