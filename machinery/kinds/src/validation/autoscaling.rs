//! Horizontal pod autoscalers.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{items, text};

const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// A HorizontalPodAutoscaler of either version.
pub(super) fn autoscaler(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    let min = spec["minReplicas"].as_i64();
    let max = spec["maxReplicas"].as_i64().unwrap_or_default();
    if min.is_some_and(|min| min < 1) {
        report.invalid(
            &path.child("minReplicas"),
            &spec["minReplicas"],
            "must be greater than or equal to 1",
        );
    }
    let at = path.child("maxReplicas");
    if max < 1 {
        report.invalid(&at, &max.into(), "must be greater than 0");
    }
    if min.is_some_and(|min| max < min) {
        report.invalid(&at, &max.into(), "must be greater than or equal to `minReplicas`");
    }
    reference(&spec["scaleTargetRef"], &path.child("scaleTargetRef"), report);
    for (index, metric) in items(&spec["metrics"]).iter().enumerate() {
        metric_spec(metric, &path.child("metrics").index(index), report);
    }
    let from_zero = |metric: &Value| matches!(text(&metric["type"]), "Object" | "External");
    if min == Some(0) && !items(&spec["metrics"]).iter().any(from_zero) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        report.forbidden(&path.child("metrics"), detail);
    }
    for key in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][key];
        if !rules.is_null() {
            scaling_rules(rules, &path.child("behavior").child(key), report);
        }
    }
}

fn reference(target: &Value, path: &FieldPath, report: &mut Report) {
    for key in ["kind", "name"] {
        match text(&target[key]) {
            "" => report.required(&path.child(key), ""),
            value => report.messages(&path.child(key), value, rules::path_segment(value, false)),
        }
    }
}

fn metric_spec(metric: &Value, path: &FieldPath, report: &mut Report) {
    let kind = text(&metric["type"]);
    let kinds = SOURCES.map(|(kind, _)| kind);
    let at = path.child("type");
    if kind.is_empty() {
        report.required(&at, "must specify a metric source type");
    }
    let known = SOURCES.iter().find(|(name, _)| *name == kind);
    if known.is_none() {
        report.not_supported(&at, &kind.into(), &kinds);
    }
    let present: Vec<&str> = SOURCES
        .iter()
        .map(|(_, key)| *key)
        .filter(|key| !metric[*key].is_null())
        .collect();
    if let [only] = present.as_slice() {
        source(only, &metric[*only], &path.child(only), report);
    }
    match known {
        Some((_, key)) if metric[*key].is_null() => {
            report.required(
                &path.child(key),
                "must populate information for the given metric source",
            );
        }
        Some(_) => {}
        None => report.not_supported(&at, &kind.into(), &kinds),
    }
    if present.len() != 1 {
        for key in present
            .iter()
            .filter(|key| known.is_none_or(|(_, own)| own != *key))
        {
            report.forbidden(&path.child(key), "must populate the given metric source only");
        }
    }
}

fn source(kind: &str, source: &Value, path: &FieldPath, report: &mut Report) {
    if matches!(kind, "resource" | "containerResource") && text(&source["name"]).is_empty() {
        report.required(&path.child("name"), "must specify a resource name");
    }
    if kind == "containerResource" && text(&source["container"]).is_empty() {
        report.required(&path.child("container"), "must specify a container");
    }
    if matches!(kind, "object" | "external" | "pods") && text(&source["metric"]["name"]).is_empty() {
        report.required(&path.child("metric").child("name"), "must specify a metric name");
    }
    let target = &source["target"];
    let at = path.child("target");
    if text(&target["type"]).is_empty() {
        report.required(&at.child("type"), "must specify a metric target type");
    }
    let kinds = ["AverageValue", "Utilization", "Value"];
    if !kinds.contains(&text(&target["type"])) {
        let value: Value = text(&target["type"]).into();
        let detail = "must be either Utilization, Value, or AverageValue";
        report.invalid(&at.child("type"), &value, detail);
    }
    let (utilization, average, value) = (
        &target["averageUtilization"],
        &target["averageValue"],
        &target["value"],
    );
    if utilization.as_i64().is_some_and(|percent| percent < 1) {
        report.invalid(
            &at.child("averageUtilization"),
            utilization,
            "must be greater than 0",
        );
    }
    let at_average = at.child("averageValue");
    match (kind, !value.is_null(), !average.is_null(), !utilization.is_null()) {
        ("resource" | "containerResource", _, false, false) => {
            let detail = "must set either a target raw value or a target utilization";
            report.required(&at.child("averageUtilization"), detail);
        }
        ("resource" | "containerResource", _, true, true) => {
            report.forbidden(
                &at_average,
                "may not set both a target raw value and a target utilization",
            );
        }
        ("pods", _, false, _) => report.required(&at_average, "must specify a positive target averageValue"),
        ("object", false, false, _) => {
            report.required(&at_average, "must set either a target value or averageValue")
        }
        ("external", false, false, _) => {
            report.required(
                &at_average,
                "must set either a target value for metric or a per-pod target",
            );
        }
        ("external", true, true, _) => {
            report.forbidden(
                &at.child("value"),
                "may not set both a target value for metric and a per-pod target",
            );
        }
        _ => {}
    }
}

fn scaling_rules(rules: &Value, path: &FieldPath, report: &mut Report) {
    let window = &rules["stabilizationWindowSeconds"];
    let at = path.child("stabilizationWindowSeconds");
    if window.as_i64().is_some_and(|seconds| seconds < 0) {
        report.invalid(&at, window, "must be greater than or equal to zero");
    }
    if window.as_i64().is_some_and(|seconds| seconds > 3600) {
        report.invalid(&at, window, "must be less than or equal to 3600");
    }
    report.optional_choice(
        &path.child("selectPolicy"),
        &rules["selectPolicy"],
        &["Disabled", "Max", "Min"],
    );
    let policies = items(&rules["policies"]);
    if policies.is_empty() {
        report.required(&path.child("policies"), "must specify at least one Policy");
    }
    for (index, policy) in policies.iter().enumerate() {
        let path = path.child("policies").index(index);
        let kind: Value = text(&policy["type"]).into();
        report.optional_choice(&path.child("type"), &kind, &["Percent", "Pods"]);
        for key in ["value", "periodSeconds"] {
            let number = policy[key].as_i64().unwrap_or_default();
            if number <= 0 {
                report.invalid(&path.child(key), &number.into(), "must be greater than zero");
            }
        }
        let period = &policy["periodSeconds"];
        if period.as_i64().is_some_and(|seconds| seconds > 1800) {
            report.invalid(
                &path.child("periodSeconds"),
                period,
                "must be less than or equal to 1800",
            );
        }
    }
}
