//! Which clusters a root has, through which bindings.

use lockgate_api::ocm::PlacementBinding;
use lockgate_api::ocm::policy_binding::Reference;

use super::*;

fn binding(value: Value) -> PlacementBinding {
    serde_json::from_value(value).unwrap()
}

fn simple(name: &str, placement: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "placementRef": {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": placement},
        "subjects": [{"apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "pods"}],
    })
}

fn selected(bindings: &[Value], sets: &[PolicySet], takes_turns: bool) -> Selection {
    let bindings: Vec<PlacementBinding> = bindings.iter().cloned().map(binding).collect();
    let bindings: Vec<&PlacementBinding> = bindings.iter().collect();
    let root = root(json!({}), "inform");
    let chosen = |reference: &Reference| -> Option<Chosen> {
        let group = |index, name: &str, clusters: &[&str]| DecisionGroup {
            index,
            name: name.to_owned(),
            clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
        };
        let groups = match reference.name.as_str() {
            "first" => vec![group(0, "canary", &["c"]), group(1, "", &["a"])],
            "second" => vec![group(0, "", &["b", "c"])],
            // As decisions come by name: the tenth before the second, and one group in two parts.
            "many" => vec![
                group(0, "", &["b"]),
                group(9, "", &["z"]),
                group(1, "", &["d"]),
                group(1, "", &["e"]),
            ],
            "lost" => vec![group(0, "", &["b"])],
            "empty" => vec![],
            "stale" => vec![group(0, "", &["gone"])],
            _ => return None,
        };
        Some(Chosen {
            groups: Groups::new(groups),
            lacks: reference.name == "lost",
        })
    };
    select(&Sources {
        root: &root,
        bindings: &bindings,
        set: &|name| sets.iter().find(|set| set.metadata.name == name),
        chosen: &chosen,
        is_known: &|cluster| cluster != "gone",
        takes_turns,
    })
}

fn names(selection: &Selection) -> Vec<String> {
    let groups = selection.groups.iter();
    groups
        .map(|group| format!("{}{} {}", group.index, group.name, group.clusters.join(",")))
        .collect()
}

#[test]
fn the_groups_of_one_placement_come_before_those_of_the_next() {
    // The names of bindings have no meaning.
    let selection = selected(&[simple("x", "second"), simple("y", "first")], &[], true);
    assert_eq!(names(&selection), ["0canary c", "1 a", "2 b"]);
    assert_eq!(selection.unplaced, None);
    let placements: Vec<&str> = selection
        .placements
        .iter()
        .map(|placement| placement.placement.as_str())
        .collect();
    assert_eq!(placements, ["second", "first"]);
}

#[test]
fn overrides_count_where_nobody_takes_turns() {
    let mut enforcing = simple("x", "second");
    enforcing["bindingOverrides"] = json!({"remediationAction": "enforce"});
    let mut restricted = enforcing.clone();
    restricted["metadata"]["name"] = json!("z");
    restricted["subFilter"] = json!("restricted");

    let selection = selected(&[enforcing.clone(), simple("y", "first")], &[], false);
    let enforced: Vec<&str> = selection.enforced.iter().map(String::as_str).collect();
    assert_eq!(enforced, ["b", "c"]);
    assert_eq!(selection.ignored, None);

    // A restricted binding adds no cluster, and enforces where another adds it.
    let selection = selected(&[simple("y", "first"), restricted.clone()], &[], false);
    assert_eq!(names(&selection), ["0canary c", "1 a"]);
    let enforced: Vec<&str> = selection.enforced.iter().map(String::as_str).collect();
    assert_eq!(enforced, ["c"]);

    // Where clusters take turns both are ignored, which never adds a cluster.
    let selection = selected(&[simple("y", "first"), enforcing, restricted], &[], true);
    assert_eq!(names(&selection), ["0canary c", "1 a", "2 b"]);
    assert!(selection.enforced.is_empty());
    let ignored = selection.ignored.unwrap();
    assert!(ignored.contains("x, z"), "{ignored}");
}

#[test]
fn sets_place_their_policies_and_leave_clusters_out() {
    let set: PolicySet = serde_json::from_value(json!({
        "metadata": {"name": "all"},
        "spec": {"policies": ["pods", "other"], "exclusions": [{"policyName": "pods", "clusterNames": ["c"]}]},
    }))
    .unwrap();
    let mut through = simple("x", "second");
    through["subjects"] =
        json!([{"apiGroup": "policy.open-cluster-management.io", "kind": "PolicySet", "name": "all"}]);
    let selection = selected(&[through], std::slice::from_ref(&set), false);
    assert_eq!(names(&selection), ["0 b"]);
    assert_eq!(selection.placements[0].policy_set, "all");
    assert_eq!(selection.placements[0].exclusions[0].cluster_name, "c");
    assert!(!selection.excludes_all);
    // Whoever leaves out all of them means it: that is no placement that selects nothing.
    let mut none = set.clone();
    none.spec.exclusions[0].cluster_names.push("b".to_owned());
    let through = |placement: &str| {
        let mut through = simple("x", placement);
        through["subjects"] =
            json!([{"apiGroup": "policy.open-cluster-management.io", "kind": "PolicySet", "name": "all"}]);
        through
    };
    let selection = selected(&[through("second")], std::slice::from_ref(&none), false);
    assert!(selection.excludes_all && !selection.has_clusters());
    assert_eq!(selection.unplaced, None);
    // One that nobody leaves out, or of which nobody knows, is another matter.
    let more = selected(
        &[through("second"), simple("y", "first")],
        std::slice::from_ref(&none),
        false,
    );
    assert!(!more.excludes_all && more.has_clusters());
    for placement in ["empty", "missing", "lost", "stale"] {
        let selection = selected(
            &[through("second"), simple("y", placement)],
            std::slice::from_ref(&none),
            false,
        );
        assert!(!selection.excludes_all, "{placement}");
    }
}

#[test]
fn what_selects_nothing_says_so() {
    let reason = |bindings: &[Value]| selected(bindings, &[], false).unplaced.unwrap().0;
    assert_eq!(reason(&[]), "NotBound");
    assert_eq!(reason(&[simple("x", "missing")]), "PlacementNotFound");
    assert_eq!(reason(&[simple("x", "empty")]), "NoClusters");
    let stale = selected(&[simple("x", "stale"), simple("y", "first")], &[], false);
    assert!(stale.unknown.contains("gone"));
    assert_eq!(stale.groups.cluster_count(), 2);
}

#[test]
fn groups_are_counted_by_index_and_their_parts_are_one() {
    let selection = selected(&[simple("x", "many"), simple("y", "first")], &[], true);
    assert_eq!(names(&selection), ["0canary c", "1 a", "2 b", "3 d,e", "4 z"]);
}

#[test]
fn one_binding_that_leads_nowhere_is_named_and_the_others_are_followed() {
    for (placement, reason) in [
        ("missing", "PlacementNotFound"),
        ("empty", "NoClusters"),
        ("lost", "DecisionsMissing"),
    ] {
        let selection = selected(&[simple("x", "first"), simple("y", placement)], &[], true);
        assert!(selection.has_clusters());
        let (told, message) = selection.unplaced.unwrap();
        assert_eq!(told, reason);
        assert!(
            message.starts_with(&format!("Placement {placement} (binding y)")),
            "{message}"
        );
        assert!(!message.contains("binding x"), "{message}");
    }
}
