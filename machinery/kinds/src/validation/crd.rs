//! Definitions of custom resources: everything but their schemas.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{is_empty, items, same, text};
/// A CustomResourceDefinition.
fn definition(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    let group = text(&spec["group"]);
    let at = path.child("group");
    let messages = rules::dns_subdomain(group);
    if group.is_empty() {
        report.required(&at, "");
    } else if !messages.is_empty() {
        report.invalid(&at, &group.into(), messages.join(","));
    } else if !group.contains('.') {
        report.invalid(&at, &group.into(), "should be a domain with at least one dot");
    }
    report.choice(&path.child("scope"), &spec["scope"], &["Cluster", "Namespaced"]);
    versions(spec, &path.child("versions"), report);
    let names = &spec["names"];
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(&names[key]).is_empty() {
            report.required(&path.child("names").child(key), "");
        }
    }
    self::names(names, &path.child("names"), report);
    let strategy = &spec["conversion"]["strategy"];
    report.choice(
        &path.child("conversion").child("strategy"),
        strategy,
        &["None", "Webhook"],
    );
    let protected = group.ends_with(".k8s.io")
        || group.ends_with(".kubernetes.io")
        || matches!(group, "k8s.io" | "kubernetes.io");
    let key = "api-approved.kubernetes.io";
    if protected && text(&object["metadata"]["annotations"][key]).is_empty() {
        let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", \
                      see https://github.com/kubernetes/enhancements/pull/1111";
        report.required(&FieldPath::new("metadata").child("annotations").key(key), detail);
    }
}

fn versions(spec: &Value, path: &FieldPath, report: &mut Report) {
    let all = items(&spec["versions"]);
    for (index, version) in all.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            report.required(&path.index(index).child("schema").child("openAPIV3Schema"), "");
        }
    }
    let mut names = std::collections::BTreeSet::new();
    let mut unique = true;
    for (index, version) in all.iter().enumerate() {
        let name = text(&version["name"]);
        unique &= names.insert(name);
        version_name(name, &path.index(index).child("name"), report);
    }
    // The server shows the versions in its internal form, without what they have in common.
    let shown: Vec<String> = all.iter().map(version_shown).collect();
    let shown = if spec["versions"].is_null() {
        "null".to_owned()
    } else {
        format!("[{}]", shown.join(","))
    };
    if !unique {
        report.invalid_shown(path, &shown, "must contain unique version names");
    }
    if all
        .iter()
        .filter(|version| version["storage"] == Value::Bool(true))
        .count()
        != 1
    {
        report.invalid_shown(
            path,
            &shown,
            "must have exactly one version marked as storage version",
        );
    }
    if let Some(first) = all.first() {
        version_name(
            text(&first["name"]),
            &FieldPath::new("spec").child("version"),
            report,
        );
    }
    for (key, check) in PARTS {
        // What all versions have in common the server holds, and blames, once for all.
        if all.iter().all(|version| same(&version[key], &all[0][key])) {
            if let Some(first) = all.first() {
                check(&first[key], &FieldPath::new("spec").child(key), report);
            }
            continue;
        }
        for (index, version) in all.iter().enumerate() {
            check(&version[key], &path.index(index).child(key), report);
        }
    }
}

type Check = fn(&Value, &FieldPath, &mut Report);
const PARTS: [(&str, Check); 2] = [
    ("subresources", subresources),
    ("additionalPrinterColumns", columns),
];

fn version_name(name: &str, path: &FieldPath, report: &mut Report) {
    let messages = rules::dns_1035_label(name);
    if !messages.is_empty() {
        report.invalid(path, &name.into(), messages.join(","));
    }
}

fn version_shown(version: &Value) -> String {
    let flag = |key: &str| version[key] == Value::Bool(true);
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\
         \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        Value::from(text(&version["name"])),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        version["deprecationWarning"]
    )
}

fn columns(list: &Value, path: &FieldPath, report: &mut Report) {
    const KINDS: &str = "must be one of boolean,date,integer,number,string";
    for (index, column) in items(list).iter().enumerate() {
        let path = path.index(index);
        if text(&column["name"]).is_empty() {
            report.required(&path.child("name"), "");
        }
        match text(&column["type"]) {
            "" => report.required(&path.child("type"), KINDS),
            "boolean" | "date" | "integer" | "number" | "string" => {}
            other => report.invalid(&path.child("type"), &other.into(), KINDS),
        }
        match text(&column["jsonPath"]) {
            "" => report.required(&path.child("JSONPath"), ""),
            value => {
                simple_path(value, &path.child("JSONPath"), report);
            }
        }
    }
}

/// Whether a path begins with a dot.
fn simple_path(value: &str, path: &FieldPath, report: &mut Report) -> bool {
    let good = value.starts_with('.');
    if !good {
        report.invalid(path, &value.into(), "must be a simple json path starting with .");
    }
    good
}

fn subresources(subresources: &Value, path: &FieldPath, report: &mut Report) {
    let scale = &subresources["scale"];
    if scale.is_null() {
        return;
    }
    let path = path.child("scale");
    for (key, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let value = text(&scale[key]);
        let at = path.child(key);
        if value.is_empty() {
            report.required(&at, "");
        } else if simple_path(value, &at, report) && !value.starts_with(root) {
            let under = root.trim_end_matches('.');
            report.invalid(&at, &value.into(), format!("should be a json path under {under}"));
        }
    }
    let value = text(&scale["labelSelectorPath"]);
    let at = path.child("labelSelectorPath");
    if !value.is_empty()
        && simple_path(value, &at, report)
        && !value.starts_with(".spec.")
        && !value.starts_with(".status.")
    {
        report.invalid(
            &at,
            &value.into(),
            "should be a json path under either .spec or .status",
        );
    }
}

fn names(names: &Value, path: &FieldPath, report: &mut Report) {
    for key in ["plural", "singular", "kind", "listKind"] {
        let value = text(&names[key]);
        let messages = rules::dns_1035_label(&value.to_lowercase());
        let exact = rules::dns_1035_label(value);
        let mixed = matches!(key, "kind" | "listKind");
        let problems = if mixed { messages } else { exact };
        if value.is_empty() || problems.is_empty() {
            continue;
        }
        let lead = if mixed {
            "may have mixed case, but should otherwise match: "
        } else {
            ""
        };
        report.invalid(
            &path.child(key),
            &value.into(),
            format!("{lead}{}", problems.join(",")),
        );
    }
    list(names, "shortNames", path, report);
    let kind = text(&names["kind"]);
    if !kind.is_empty() && kind == text(&names["listKind"]) {
        report.invalid(
            &path.child("listKind"),
            &names["listKind"],
            "kind and listKind may not be the same",
        );
    }
    list(names, "categories", path, report);
}

fn list(names: &Value, key: &str, path: &FieldPath, report: &mut Report) {
    for (index, name) in items(&names[key]).iter().enumerate() {
        let messages = rules::dns_1035_label(text(name));
        if !messages.is_empty() {
            report.invalid(&path.child(key).index(index), name, messages.join(","));
        }
    }
}

/// A CustomResourceDefinition that is created.
pub(super) fn definition_create(object: &Value, report: &mut Report) {
    definition(object, report);
    if object["spec"]["preserveUnknownFields"] == Value::Bool(true) {
        let at = FieldPath::new("spec").child("preserveUnknownFields");
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        report.invalid(&at, &Value::Bool(true), detail);
    }
    if is_empty(&object["status"]["storedVersions"]) {
        let at = FieldPath::new("status").child("storedVersions");
        report.invalid(&at, &Value::Null, "must have at least one stored version");
    }
}

/// A CustomResourceDefinition that changes.
pub(super) fn definition_update(new: &Value, old: &Value, report: &mut Report) {
    definition(new, report);
    let path = FieldPath::new("spec");
    let (now, before) = (&new["spec"], &old["spec"]);
    let established = items(&old["status"]["conditions"])
        .iter()
        .any(|one| text(&one["type"]) == "Established" && text(&one["status"]) == "True");
    let names = path.child("names");
    if established {
        report.immutable_text(&path.child("scope"), &now["scope"], &before["scope"]);
        report.immutable_text(
            &names.child("kind"),
            &now["names"]["kind"],
            &before["names"]["kind"],
        );
    }
    report.immutable_text(&path.child("group"), &now["group"], &before["group"]);
    report.immutable_text(
        &names.child("plural"),
        &now["names"]["plural"],
        &before["names"]["plural"],
    );
    for (index, version) in items(&new["status"]["storedVersions"]).iter().enumerate() {
        if items(&now["versions"]).iter().any(|one| one["name"] == *version) {
            continue;
        }
        let name = text(version);
        let at = FieldPath::new("status").child("storedVersions").index(index);
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        report.invalid(&at, version, detail);
    }
}
