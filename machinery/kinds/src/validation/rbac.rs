//! Roles and their bindings.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{rules, selector, shown};
use crate::access::{items, text};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A Role or ClusterRole.
pub(super) fn role(object: &Value, namespaced: bool, report: &mut Report) {
    for (index, rule) in items(&object["rules"]).iter().enumerate() {
        policy_rule(rule, namespaced, &FieldPath::new("rules").index(index), report);
    }
    let aggregation = &object["aggregationRule"];
    if !namespaced && !aggregation.is_null() {
        let path = FieldPath::new("aggregationRule").child("clusterRoleSelectors");
        let selectors = items(&aggregation["clusterRoleSelectors"]);
        if selectors.is_empty() {
            report.required(
                &path,
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            );
        }
        for (index, one) in selectors.iter().enumerate() {
            selector::check(one, &path.index(index), report);
        }
    }
}

fn policy_rule(rule: &Value, namespaced: bool, path: &FieldPath, report: &mut Report) {
    let there = |key: &str| !items(&rule[key]).is_empty();
    if !there("verbs") {
        report.required(&path.child("verbs"), "verbs must contain at least one value");
    }
    if there("nonResourceURLs") {
        let at = path.child("nonResourceURLs");
        let urls = &rule["nonResourceURLs"];
        if namespaced {
            report.invalid(&at, urls, "namespaced rules cannot apply to non-resource URLs");
        }
        if there("apiGroups") || there("resources") || there("resourceNames") {
            report.invalid(
                &at,
                urls,
                "rules cannot apply to both regular resources and non-resource URLs",
            );
        }
        return;
    }
    if !there("apiGroups") {
        report.required(
            &path.child("apiGroups"),
            "resource rules must supply at least one api group",
        );
    }
    if !there("resources") {
        report.required(
            &path.child("resources"),
            "resource rules must supply at least one resource",
        );
    }
}

/// A RoleBinding or ClusterRoleBinding.
pub(super) fn binding(object: &Value, namespaced: bool, report: &mut Report) {
    let path = FieldPath::new("roleRef");
    let role = &object["roleRef"];
    let group: Value = text(&role["apiGroup"]).into();
    report.optional_choice(&path.child("apiGroup"), &group, &[GROUP]);
    let kinds = ["Role", "ClusterRole"];
    let kind: Value = text(&role["kind"]).into();
    report.optional_choice(
        &path.child("kind"),
        &kind,
        if namespaced { &kinds } else { &kinds[1..] },
    );
    match text(&role["name"]) {
        "" => report.required(&path.child("name"), ""),
        name => report.messages(&path.child("name"), name, rules::path_segment(name, false)),
    }
    for (index, one) in items(&object["subjects"]).iter().enumerate() {
        subject(one, namespaced, &FieldPath::new("subjects").index(index), report);
    }
}

fn subject(subject: &Value, namespaced: bool, path: &FieldPath, report: &mut Report) {
    let name = text(&subject["name"]);
    if name.is_empty() {
        report.required(&path.child("name"), "");
    }
    let group: Value = text(&subject["apiGroup"]).into();
    match text(&subject["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                report.messages(&path.child("name"), name, rules::dns_subdomain(name));
            }
            report.optional_choice(&path.child("apiGroup"), &group, &[""]);
            if !namespaced && text(&subject["namespace"]).is_empty() {
                report.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" => report.optional_choice(&path.child("apiGroup"), &group, &[GROUP]),
        kind => report.not_supported(
            &path.child("kind"),
            &kind.into(),
            &["ServiceAccount", "User", "Group"],
        ),
    }
}

/// The role of a binding stays.
pub(super) fn binding_update(new: &Value, old: &Value, report: &mut Report) {
    let (new, old) = (&new["roleRef"], &old["roleRef"]);
    if ["apiGroup", "kind", "name"]
        .iter()
        .any(|key| text(&new[*key]) != text(&old[*key]))
    {
        report.invalid_shown(
            &FieldPath::new("roleRef"),
            &shown::role_ref(new),
            "cannot change roleRef",
        );
    }
}
