//! Where pods may run: tolerations, affinity, spread and gates.

use std::collections::BTreeSet;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{rules, selector};
use crate::access::{items, same, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The tolerations of a pod.
pub(super) fn tolerations(list: &Value, path: &FieldPath, report: &mut Report) {
    for (index, toleration) in items(list).iter().enumerate() {
        let path = path.index(index);
        let (key, operator) = (text(&toleration["key"]), text(&toleration["operator"]));
        let (value, effect) = (text(&toleration["value"]), text(&toleration["effect"]));
        if !key.is_empty() {
            report.qualified_name(&path.child("key"), key);
        } else if operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            report.invalid(&path.child("operator"), &operator.into(), detail);
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            report.invalid(&path.child("effect"), &effect.into(), detail);
        }
        match operator {
            "Equal" | "" => {
                let messages = rules::label_value(value);
                if !messages.is_empty() {
                    report.invalid(&path.child("operator"), &value.into(), messages.join(";"));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                let detail = "value must be empty when `operator` is 'Exists'";
                report.invalid(&path.child("operator"), &value.into(), detail);
            }
            "Lt" | "Gt" => {
                let supported = ["Equal", "Exists", "Lt", "Gt"];
                report.not_supported(&path.child("operator"), &operator.into(), &supported);
            }
            _ => report.not_supported(&path.child("operator"), &operator.into(), &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            report.optional_choice(&path.child("effect"), &toleration["effect"], &EFFECTS);
        }
    }
}

/// Old tolerations stay, except for their seconds.
pub(super) fn only_added_tolerations(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) {
    let unlike = |left: &Value, right: &Value| {
        ["key", "operator", "value", "effect"]
            .iter()
            .any(|key| text(&left[*key]) != text(&right[*key]))
    };
    let now = items(&new["tolerations"]);
    if items(&old["tolerations"])
        .iter()
        .any(|before| now.iter().all(|now| unlike(now, before)))
    {
        report.forbidden(
            path,
            "existing toleration can not be modified except its tolerationSeconds",
        );
        return;
    }
    tolerations(&new["tolerations"], path, report);
}

/// Gates of scheduling have distinct qualified names.
pub(super) fn gates(list: &Value, path: &FieldPath, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, gate) in items(list).iter().enumerate() {
        let name = text(&gate["name"]);
        report.qualified_name(&path.index(index), name);
        if !seen.insert(name) {
            report.duplicate(&path.index(index), &name.into());
        }
    }
}

/// Gates go, they do not come.
pub(super) fn only_removed_gates(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) {
    let before: BTreeSet<&str> = items(&old["schedulingGates"])
        .iter()
        .map(|gate| text(&gate["name"]))
        .collect();
    for (index, gate) in items(&new["schedulingGates"]).iter().enumerate() {
        let name = text(&gate["name"]);
        if !before.contains(name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            report.forbidden(&path.index(index).child("name"), detail);
        }
    }
}

/// Topology spread constraints.
pub(super) fn spread(list: &Value, path: &FieldPath, report: &mut Report) {
    let all = items(list);
    for (index, constraint) in all.iter().enumerate() {
        let path = path.index(index);
        let skew = constraint["maxSkew"].as_i64().unwrap_or_default();
        if skew <= 0 {
            report.invalid(&path.child("maxSkew"), &skew.into(), "must be greater than zero");
        }
        if text(&constraint["topologyKey"]).is_empty() {
            report.required(&path.child("topologyKey"), "can not be empty");
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        let action: Value = text(&constraint["whenUnsatisfiable"]).into();
        report.optional_choice(&path.child("whenUnsatisfiable"), &action, &actions);
        let twin = |other: &&Value| {
            ["topologyKey", "whenUnsatisfiable"]
                .iter()
                .all(|key| same(&other[*key], &constraint[*key]))
        };
        if all.iter().skip(index + 1).any(|other| twin(&other)) {
            let shown = format!(
                "{{{}, {}}}",
                text(&constraint["topologyKey"]),
                text(&constraint["whenUnsatisfiable"])
            );
            report.duplicate(&path.child("{topologyKey, whenUnsatisfiable}"), &shown.into());
        }
        selector::check(&constraint["labelSelector"], &path.child("labelSelector"), report);
    }
}

/// Node, pod and anti-affinity.
pub(super) fn affinity(affinity: &Value, path: &FieldPath, report: &mut Report) {
    let node = &affinity["nodeAffinity"];
    let node_path = path.child("nodeAffinity");
    let required = &node["requiredDuringSchedulingIgnoredDuringExecution"];
    if !required.is_null() {
        let path = node_path
            .child("requiredDuringSchedulingIgnoredDuringExecution")
            .child("nodeSelectorTerms");
        node_terms(&required["nodeSelectorTerms"], &path, report);
    }
    let path_preferred = node_path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (index, term) in items(&node["preferredDuringSchedulingIgnoredDuringExecution"])
        .iter()
        .enumerate()
    {
        weight(term, &path_preferred.index(index), report);
        node_term(
            &term["preference"],
            &path_preferred.index(index).child("preference"),
            report,
        );
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let path = path.child(key);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in items(&affinity[key][required]).iter().enumerate() {
            pod_term(term, &path.child(required).index(index), report);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in items(&affinity[key][preferred]).iter().enumerate() {
            let path = path.child(preferred).index(index);
            weight(term, &path, report);
            pod_term(&term["podAffinityTerm"], &path.child("podAffinityTerm"), report);
        }
    }
}

/// The terms of a node selector.
pub(super) fn node_terms(terms: &Value, path: &FieldPath, report: &mut Report) {
    if items(terms).is_empty() {
        report.required(path, "must have at least one node selector term");
    }
    for (index, term) in items(terms).iter().enumerate() {
        node_term(term, &path.index(index), report);
    }
}

fn weight(term: &Value, path: &FieldPath, report: &mut Report) {
    let weight = term["weight"].as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        report.invalid(
            &path.child("weight"),
            &weight.into(),
            "must be in the range 1-100",
        );
    }
}

fn node_term(term: &Value, path: &FieldPath, report: &mut Report) {
    for (index, rule) in items(&term["matchExpressions"]).iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = items(&rule["values"]);
        match text(&rule["operator"]) {
            "In" | "NotIn" if values.is_empty() => {
                report.required(
                    &path.child("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                report.forbidden(&path.child("values"), detail);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                report.required(&path.child("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => report.invalid(
                &path.child("operator"),
                &other.into(),
                "not a valid selector operator",
            ),
        }
        report.qualified_name(&path.child("key"), text(&rule["key"]));
    }
}

fn pod_term(term: &Value, path: &FieldPath, report: &mut Report) {
    selector::check(&term["labelSelector"], &path.child("labelSelector"), report);
    selector::check(
        &term["namespaceSelector"],
        &path.child("namespaceSelector"),
        report,
    );
    for (index, namespace) in items(&term["namespaces"]).iter().enumerate() {
        report.dns_label(&path.child("namespaces").index(index), namespace);
    }
    let key = text(&term["topologyKey"]);
    if key.is_empty() {
        report.required(&path.child("topologyKey"), "can not be empty");
    }
    report.qualified_name(&path.child("topologyKey"), key);
}
