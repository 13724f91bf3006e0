//! Decision groups: how they are cut, and how they are found.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_api::placement::LabelSelector;
use lockgate_engine::gate::grouping::{GroupingError, NamedGroup, Selected, cut, decision_parts};
use lockgate_engine::gate::groups::{DecisionGroup, Groups};
use serde_json::{Map, Value, json};

use crate::texts::keys;
use crate::{expected, same};

/// Groups as the cases write them.
pub(crate) fn groups(groups: &Value) -> Groups {
    let group = |group: &Value| DecisionGroup {
        index: u32::try_from(group["index"].as_u64().unwrap()).unwrap(),
        name: group["name"].as_str().unwrap_or_default().to_owned(),
        clusters: serde_json::from_value(group["clusters"].clone()).unwrap(),
    };
    Groups::new(groups.as_array().unwrap().iter().map(group))
}

pub(crate) fn group_lookup(case: &Value) -> Result<(), String> {
    if let Some(before) = case.get("before") {
        let before: Vec<String> = serde_json::from_value(before.clone()).unwrap();
        let before: BTreeSet<&str> = before.iter().map(String::as_str).collect();
        let groups = groups(&case["decisions"]);
        let (added, deleted) = groups.changes_since(&before);
        same("added", &json!(added), &case["expect_added"])?;
        return same("deleted", &json!(deleted), &case["expect_deleted"]);
    }
    let groups = groups(&case["groups"]);
    let named = groups.named_by(&keys(&case["keys"]));
    let indices = |wanted: bool| -> Value {
        let of = groups.iter().zip(&named).filter(|(_, named)| **named == wanted);
        of.map(|(group, _)| json!(group.index)).collect()
    };
    same("selected", &indices(true), &case["expect_selected_indices"])?;
    let rest = case
        .get("recommended_rest_indices")
        .unwrap_or(&case["expect_rest_indices"]);
    same("rest", &indices(false), rest)
}

fn selected(clusters: &Value) -> Vec<Selected> {
    let labels = |labels: &Value| -> BTreeMap<String, String> {
        serde_json::from_value(labels.clone()).unwrap_or_default()
    };
    if let Some(clusters) = clusters.as_array() {
        let selected = clusters.iter().map(|cluster| Selected {
            name: cluster["name"].as_str().unwrap().to_owned(),
            labels: labels(&cluster["labels"]),
            claims: labels(&cluster["claims"]),
        });
        return selected.collect();
    }
    let prefix = clusters["prefix"].as_str().unwrap();
    let named = (1..=clusters["count"].as_u64().unwrap()).map(|number| Selected {
        name: format!("{prefix}{number}"),
        ..Selected::default()
    });
    named.collect()
}

/// The selectors of a group are the fields that begin with `match_`.
fn named_group(group: &Value) -> NamedGroup {
    let selector = |labels: &str, expressions: &str| -> Option<LabelSelector> {
        let mut selector = Map::new();
        for (field, name) in [(labels, "matchLabels"), (expressions, "matchExpressions")] {
            if let Some(value) = group.get(field) {
                selector.insert(name.to_owned(), value.clone());
            }
        }
        (!selector.is_empty()).then(|| serde_json::from_value(selector.into()).unwrap())
    };
    NamedGroup {
        name: group["name"].as_str().unwrap().to_owned(),
        labels: selector("match_labels", "match_expressions"),
        claims: selector("match_claims", "match_claim_expressions"),
    }
}

pub(crate) fn decision_grouping(case: &Value) -> Result<(), String> {
    let selected = selected(&case["clusters"]);
    let named = case["decision_groups"].as_array().into_iter().flatten();
    let named: Vec<NamedGroup> = named.map(named_group).collect();
    let size = serde_json::from_value::<Option<_>>(case["clusters_per_group"].clone()).unwrap();
    let groups = match cut(&selected, &named, size.as_ref()) {
        Ok(groups) => groups,
        Err(GroupingError::Size(_)) => return same("answer", &json!({ "error": "percent" }), expected(case)),
        Err(error) if expected(case).get("error").is_none() => return Err(error.to_string()),
        Err(GroupingError::Selector { .. }) => return Ok(()),
    };
    let parts = decision_parts(&groups);
    let mut found: Vec<Value> = Vec::new();
    for group in groups.iter() {
        let decisions = parts.iter().filter(|part| part.group == group).map(|part| {
            let suffix = format!("-decision-{}", part.number);
            json!({ "suffix": suffix, "count": part.clusters.len() })
        });
        found.push(
            json!({ "index": group.index, "name": group.name, "clusters": group.clusters,
            "count": group.clusters.len(), "decisions": decisions.collect::<Value>() }),
        );
    }
    let Some(wanted) = expected(case)["groups"].as_array() else {
        return same("groups", &json!(found), expected(case));
    };
    // Long lists of clusters are left out of what is expected.
    for (found, wanted) in found.iter_mut().zip(wanted) {
        let found = found.as_object_mut().unwrap();
        found.retain(|field, _| wanted.get(field).is_some());
    }
    same("groups", &json!(found), &json!(wanted))
}
