//! CustomResourceDefinitions: from a stored definition to resources that are served.

use std::sync::Arc;

use machinery_store::Range;
use machinery_value::Value;
use machinery_value::hash::canonical_hash;
use serde_json::json;

use crate::custom::CustomVersion;
use crate::indexes::DEFINITIONS;
use crate::registry::{Catalog, Registry};
use crate::resource::{Names, Resource, Source, Subresource, key_prefix};
use crate::server::Inner;

/// Serves every stored definition.
pub(crate) fn load(server: &Inner) {
    let _guard = server.indexes.definitions.lock();
    let prefix = key_prefix(DEFINITIONS.0, DEFINITIONS.1);
    let Ok(page) = server.store.range(Range {
        prefix: &prefix,
        after: None,
        limit: 0,
        at: None,
    }) else {
        return;
    };
    let mut all: Vec<Arc<Resource>> = Vec::new();
    for entry in &page.entries {
        all.extend(resources(&entry.value.content(), &all, &[]));
    }
    server
        .registry
        .set_custom(Catalog::from_shared(all), server.now());
}

/// Serves the definition at `key` as it is now, or no longer.
pub(crate) fn refresh(server: &Inner, key: &str) {
    let _guard = server.indexes.definitions.lock();
    let name = key.rsplit('/').next().unwrap_or(key);
    let custom = server.registry.custom();
    let is_own = |r: &Arc<Resource>| definition_name(r) == name;
    let (before, mut served): (Vec<_>, Vec<_>) = custom.resources().iter().cloned().partition(is_own);
    if let Some(stored) = server.store.get(key) {
        served.extend(resources(&stored.value.content(), &served, &before));
    }
    // Before anything is written in the new shape, so that whoever watches in the old one cannot meet it.
    let revision = server.store.revision();
    for version in before.iter().filter_map(|r| r.custom()) {
        if !served
            .iter()
            .filter_map(|r| r.custom())
            .any(|v| Arc::ptr_eq(v, version))
        {
            version.retire(revision);
        }
    }
    server
        .registry
        .set_custom(Catalog::from_shared(served), server.now());
}

/// The name of the definition behind a custom resource.
pub(crate) fn definition_name(resource: &Resource) -> String {
    format!("{}.{}", resource.plural, resource.group)
}

/// The best of the served versions that are newer than the given one and not deprecated.
fn successor<'a>(spec: &'a Value, version: &Value) -> Option<&'a str> {
    let rank = |version: &Value| crate::discovery::rank(version["name"].as_str().unwrap_or(""));
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .filter(|v| v["served"] == json!(true) && v["deprecated"] != json!(true) && rank(v) > rank(version))
        .max_by_key(|v| rank(v))
        .and_then(|v| v["name"].as_str())
}

/// The served versions of a definition whose names are free. What was made `before` from the same spec stays: a change of
/// labels or status is nothing to those who read objects.
fn resources(definition: &Value, others: &[Arc<Resource>], before: &[Arc<Resource>]) -> Vec<Arc<Resource>> {
    let spec = &definition["spec"];
    let made_from = canonical_hash(spec);
    let known = |version: &Value| {
        let mut versions = before
            .iter()
            .filter(|r| version["name"] == r.version.as_str())
            .filter_map(|r| r.custom());
        versions.find(|v| v.is_of(&made_from)).cloned()
    };
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let (group, kind) = (text(&spec["group"]), text(&names["kind"]));
    if name_conflict(definition, others).is_some() {
        return Vec::new();
    }
    let list = |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(text).collect() };
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let storage_version = versions()
        .find(|v| v["storage"] == json!(true))
        .map(|v| text(&v["name"]))
        .unwrap_or_default();
    let mut served = Vec::new();
    for version in versions() {
        if version["served"] != json!(true) {
            continue;
        }
        let make = || {
            let names = (group.as_str(), kind.as_str());
            CustomVersion::new(
                names,
                made_from,
                &storage_version,
                version,
                successor(spec, version),
            )
        };
        let custom = match known(version).map_or_else(|| make().map(Arc::new), Ok) {
            Ok(custom) => custom,
            Err(error) => {
                // Definitions are checked on admission; one that an older program stored may still fail here.
                tracing::error!(%group, %kind, %error, "a version of a definition cannot be served");
                continue;
            }
        };
        let resource_names = Names {
            group: group.clone(),
            version: text(&version["name"]),
            plural: text(&names["plural"]),
            singular: text(&names["singular"]),
            kind: kind.clone(),
            list_kind: names["listKind"]
                .as_str()
                .map_or_else(|| format!("{kind}List"), str::to_owned),
        };
        let subresources = subresources(&resource_names, &custom);
        let mut resource = Resource::new(
            resource_names,
            spec["scope"] == "Namespaced",
            Source::Custom(custom),
        );
        resource.short_names = list(&names["shortNames"]);
        resource.categories = list(&names["categories"]);
        resource.verbs = [
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ]
        .map(str::to_owned)
        .to_vec();
        resource.subresources = subresources;
        resource.is_going = !definition["metadata"]["deletionTimestamp"].is_null();
        served.push(Arc::new(resource));
    }
    served
}

fn subresources(names: &Names, custom: &CustomVersion) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut all = Vec::new();
    if custom.has_status {
        all.push(Subresource {
            name: "status".into(),
            group: names.group.clone(),
            version: names.version.clone(),
            kind: names.kind.clone(),
            verbs: verbs(),
        });
    }
    if custom.scale.is_some() {
        all.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: verbs(),
        });
    }
    all
}

/// A name of this definition that another one of the same group has already.
fn name_conflict(definition: &Value, others: &[Arc<Resource>]) -> Option<(&'static str, String)> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let group = text(&spec["group"]);
    let own = format!("{}.{group}", text(&names["plural"]));
    let same_group = || {
        others
            .iter()
            .filter(|r| r.group == group && definition_name(r) != own)
    };
    let kind = text(&names["kind"]);
    if same_group().any(|r| r.kind == kind) {
        return Some(("KindConflict", format!("\"{kind}\" is already in use")));
    }
    let list_kind = names["listKind"]
        .as_str()
        .map_or_else(|| format!("{kind}List"), str::to_owned);
    if same_group().any(|r| r.list_kind == list_kind) {
        return Some(("ListKindConflict", format!("\"{list_kind}\" is already in use")));
    }
    let mut wanted = vec![
        ("PluralConflict", text(&names["plural"])),
        ("SingularConflict", text(&names["singular"])),
    ];
    wanted.extend(
        names["shortNames"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|n| ("ShortNamesConflict", text(n))),
    );
    for (reason, name) in wanted {
        let taken =
            |r: &Arc<Resource>| r.plural == name || r.singular == name || r.short_names.contains(&name);
        if !name.is_empty() && same_group().any(taken) {
            return Some((reason, format!("\"{name}\" is already in use")));
        }
    }
    None
}

/// The status that a definition should have, given what is served beside it.
pub(crate) fn status(registry: &Registry, definition: &Value, now: &str) -> Value {
    let spec = &definition["spec"];
    let custom = registry.custom();
    let conflict = name_conflict(definition, custom.resources());
    let mut status = definition["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    let mut stored: Vec<Value> = status["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in spec["versions"].as_array().into_iter().flatten() {
        if version["storage"] == json!(true) && !stored.contains(&version["name"]) {
            stored.push(version["name"].clone());
        }
    }
    status["storedVersions"] = Value::Array(stored);
    let accepted = match &conflict {
        None => {
            status["acceptedNames"] = spec["names"].clone();
            ("True", "NoConflicts", "no conflicts found".to_owned())
        }
        Some((reason, message)) => ("False", *reason, message.clone()),
    };
    let established = match &conflict {
        None => (
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted".to_owned(),
        ),
        Some(_) => ("False", "NotAccepted", "not all names are accepted".to_owned()),
    };
    set_condition(&mut status, "NamesAccepted", accepted, now);
    let was_established = status["conditions"].as_array().is_some_and(|list| {
        list.iter()
            .any(|c| c["type"] == "Established" && c["status"] == "True")
    });
    if !was_established {
        set_condition(&mut status, "Established", established, now);
    }
    status
}

/// Sets a condition; its transition time moves only with its status.
pub(crate) fn set_condition(
    status: &mut Value,
    kind: &str,
    (value, reason, message): (&str, &str, String),
    now: &str,
) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(list) = status["conditions"].as_array_mut() else {
        return;
    };
    let mut condition = json!({
        "type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": now,
    });
    match list.iter_mut().find(|c| c["type"] == kind) {
        Some(present) => {
            if present["status"] == value {
                condition["lastTransitionTime"] = present["lastTransitionTime"].clone();
            }
            *present = condition;
        }
        None => list.push(condition),
    }
}
