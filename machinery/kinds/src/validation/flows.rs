//! Flow schemas: which requests belong to which priority level.

use std::collections::BTreeSet;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{rules, shown};
use crate::access::{is_empty, items, same, text};
use crate::flows::mandatory_spec;

mod levels;

pub(super) use levels::priority_level;

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// A FlowSchema.
pub(super) fn flow_schema(object: &Value, report: &mut Report) {
    let name = text(&object["metadata"]["name"]);
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    precedence(
        name,
        &spec["matchingPrecedence"],
        &path.child("matchingPrecedence"),
        report,
    );
    let method = &spec["distinguisherMethod"];
    if !method.is_null() && !matches!(text(&method["type"]), "ByNamespace" | "ByUser") {
        let shown = format!("{{\"Type\":{}}}", Value::from(text(&method["type"])));
        let at = path.child("distinguisherMethod").child("type");
        report.not_supported_shown(&at, &shown, &["ByNamespace", "ByUser"]);
    }
    let level = &spec["priorityLevelConfiguration"]["name"];
    let at = path.child("priorityLevelConfiguration").child("name");
    if text(level).is_empty() {
        report.required(&at, "must reference a priority level");
    } else {
        report.dns_subdomain(&at, level);
    }
    for (index, rule) in items(&spec["rules"]).iter().enumerate() {
        rule_with_subjects(rule, &path.child("rules").index(index), report);
    }
    if mandatory_spec("FlowSchema", name).is_some_and(|fixed| !same(spec, fixed)) {
        let detail = format!("spec of '{name}' must equal the fixed value");
        report.invalid_shown(&path, &shown::flow_schema(spec), &detail);
    }
    conditions(object, report);
}

fn precedence(name: &str, value: &Value, path: &FieldPath, report: &mut Report) {
    let number = value.as_i64().unwrap_or_default();
    let mut refuse = |detail: &str| report.invalid(path, &number.into(), detail);
    if number <= 0 {
        refuse("must be a positive value");
    }
    if number > 10_000 {
        refuse("must not be greater than 10000");
    }
    if number == 1 && name != "exempt" {
        refuse("only the schema named 'exempt' may have matchingPrecedence 1");
    }
}

fn rule_with_subjects(rule: &Value, path: &FieldPath, report: &mut Report) {
    let subjects = items(&rule["subjects"]);
    if subjects.is_empty() {
        report.required(
            &path.child("subjects"),
            "subjects must contain at least one value",
        );
    }
    for (index, one) in subjects.iter().enumerate() {
        subject(one, &path.child("subjects").index(index), report);
    }
    let (resources, paths) = (items(&rule["resourceRules"]), items(&rule["nonResourceRules"]));
    if resources.is_empty() && paths.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        report.required(path, detail);
    }
    for (index, rule) in resources.iter().enumerate() {
        resource_rule(rule, &path.child("resourceRules").index(index), report);
    }
    for (index, rule) in paths.iter().enumerate() {
        path_rule(rule, &path.child("nonResourceRules").index(index), report);
    }
}

/// The kinds of subjects, and where each says who it is.
const SUBJECTS: [(&str, &str); 3] = [
    ("Group", "group"),
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
];

fn subject(subject: &Value, path: &FieldPath, report: &mut Report) {
    let kind = text(&subject["kind"]);
    let Some((_, key)) = SUBJECTS.iter().find(|(known, _)| *known == kind) else {
        report.not_supported(
            &path.child("kind"),
            &kind.into(),
            &["Group", "ServiceAccount", "User"],
        );
        return;
    };
    let at = path.child(key);
    let who = &subject[*key];
    if who.is_null() {
        report.required(&at, &format!("{key} is required when subject kind is '{kind}'"));
    } else {
        let name = text(&who["name"]);
        if name.is_empty() {
            report.required(&at.child("name"), "");
        } else if kind == "ServiceAccount" && name != "*" {
            report.dns_subdomain(&at.child("name"), &who["name"]);
        }
        if kind == "ServiceAccount" {
            if text(&who["namespace"]).is_empty() {
                let detail = "must specify namespace for service account";
                report.required(&at.child("namespace"), detail);
            } else {
                report.dns_label(&at.child("namespace"), &who["namespace"]);
            }
        }
    }
    // The order in which the server looks at what should not be there.
    for other in ["serviceAccount", "user", "group"] {
        let Some((kind, _)) = SUBJECTS.iter().find(|(_, key)| *key == other) else {
            continue;
        };
        if other != *key && !subject[other].is_null() {
            let detail = format!("{other} is forbidden when subject kind is not '{kind}'");
            report.forbidden(&path.child(other), detail);
        }
    }
}

fn has_wildcard(list: &Value) -> bool {
    items(list).iter().any(|one| text(one) == "*")
}

fn verbs(rule: &Value, path: &FieldPath, report: &mut Report) {
    let path = path.child("verbs");
    let list = &rule["verbs"];
    if is_empty(list) {
        report.required(&path, "verbs must contain at least one value");
    } else if has_wildcard(list) {
        if items(list).len() > 1 {
            report.invalid(&path, list, "if '*' is present, must not specify other verbs");
        }
    } else if !items(list).iter().all(|verb| VERBS.contains(&text(verb))) {
        report.not_supported(&path, list, &VERBS);
    }
}

fn resource_rule(rule: &Value, path: &FieldPath, report: &mut Report) {
    verbs(rule, path, report);
    for (key, one, others) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = &rule[key];
        if is_empty(list) {
            let detail = format!("resource rules must supply at least one {one}");
            report.required(&path.child(key), &detail);
        } else if items(list).len() > 1 && has_wildcard(list) {
            let detail = format!("if '*' is present, must not specify other {others}");
            report.invalid(&path.child(key), list, detail);
        }
    }
    let path = path.child("namespaces");
    let namespaces = &rule["namespaces"];
    if is_empty(namespaces) {
        if rule["clusterScope"] != Value::Bool(true) {
            let detail = "resource rules that are not cluster scoped must supply at least one namespace";
            report.required(&path, detail);
        }
    } else if has_wildcard(namespaces) {
        if items(namespaces).len() > 1 {
            report.invalid(
                &path,
                namespaces,
                "if '*' is present, must not specify other namespaces",
            );
        }
    } else {
        for (index, namespace) in items(namespaces).iter().enumerate() {
            for message in rules::dns_label(text(namespace)) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                report.invalid(&path.index(index), namespace, detail);
            }
        }
    }
}

fn path_rule(rule: &Value, path: &FieldPath, report: &mut Report) {
    verbs(rule, path, report);
    let path = path.child("nonResourceURLs");
    let list = &rule["nonResourceURLs"];
    if is_empty(list) {
        report.required(&path, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(list) {
        if items(list).len() > 1 {
            let detail = "if '*' is present, must not specify other non-resource URLs";
            report.invalid(&path, list, detail);
        }
    } else {
        for (index, url) in items(list).iter().enumerate() {
            if let Some(problem) = url_problem(text(url)) {
                report.invalid(&path.index(index), url, problem);
            }
        }
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ => match url.matches('*').count() {
            0 => None,
            1 if url.ends_with("/*") => None,
            _ => Some("wildcard can only do suffix matching"),
        },
    }
}

/// The conditions of a flow schema or a priority level: each type once, and none without.
pub(super) fn conditions(object: &Value, report: &mut Report) {
    let path = FieldPath::new("status").child("conditions");
    let mut seen = BTreeSet::new();
    for (index, condition) in items(&object["status"]["conditions"]).iter().enumerate() {
        let at = path.index(index).child("type");
        let r#type = text(&condition["type"]);
        if !seen.insert(r#type) {
            report.duplicate(&at, &r#type.into());
        }
        if r#type.is_empty() {
            report.required(&at, "");
        }
    }
}
