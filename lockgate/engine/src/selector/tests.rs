//! Which templates selectors and policies match, and which clusters affinities do.

use lockgate_api::placement::{FieldSelector, SelectorRequirement};
use lockgate_api::{Cluster, ClusterAffinity, PropagationPolicy, ResourceSelector};
use serde_json::{Value, json};

use super::*;

fn template() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "namespace": "a", "name": "x", "labels": { "app": "n" } },
    })
}

fn selector(text: Value) -> ResourceSelector {
    let mut selector: ResourceSelector = serde_json::from_value(text).unwrap();
    if selector.api_version.is_empty() {
        selector.api_version = "apps/v1".into();
    }
    if selector.kind.is_empty() {
        selector.kind = "Deployment".into();
    }
    selector
}

#[test]
fn closeness_of_selectors() {
    let by = |labels: Value| json!({ "labelSelector": labels });
    let table = [
        (json!({ "name": "x" }), Some(3)),
        (
            json!({ "name": "x", "labelSelector": { "matchLabels": { "app": "other" } } }),
            Some(3),
        ),
        (
            json!({ "name": "y", "labelSelector": { "matchLabels": { "app": "n" } } }),
            None,
        ),
        (by(json!({ "matchLabels": { "app": "n" } })), Some(2)),
        (by(json!({ "matchLabels": { "app": "other" } })), None),
        (by(json!({})), Some(2)),
        (json!({}), Some(1)),
        (json!({ "namespace": "a" }), Some(1)),
        (json!({ "namespace": "b" }), None),
        (json!({ "apiVersion": "apps/v1beta1" }), None),
        (json!({ "kind": "DaemonSet" }), None),
        (
            by(json!({ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] })),
            Some(2),
        ),
        (
            by(json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["n"] }] })),
            None,
        ),
        // What cannot be read matches nothing.
        (
            by(json!({ "matchExpressions": [{ "key": "app", "operator": "In" }] })),
            None,
        ),
        (
            by(json!({ "matchExpressions": [{ "key": "app", "operator": "Near", "values": ["n"] }] })),
            None,
        ),
        (
            by(json!({ "matchLabels": { "app": "n", "not a key": "" } })),
            None,
        ),
    ];
    for (text, expected) in table {
        let got = selector_priority(&selector(text.clone()), &template());
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn the_best_selector_of_several_counts() {
    let selectors = [json!({}), json!({ "name": "x" }), json!({ "labelSelector": {} })].map(selector);
    assert_eq!(best_priority(&selectors, &template()), Some(BY_NAME));
    assert_eq!(best_priority(&selectors[..1], &template()), Some(BY_KIND));
    assert_eq!(best_priority(&[], &template()), None);
}

#[test]
fn scope_of_policies() {
    let cluster_role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "r" } });
    let roles = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole" });
    let gone = json!({ "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let table = [
        (
            "its own namespace",
            json!({ "namespace": "a" }),
            json!({}),
            template(),
            Some(1),
        ),
        (
            "another namespace",
            json!({ "namespace": "b" }),
            json!({}),
            template(),
            None,
        ),
        (
            "a selector cannot widen it",
            json!({ "namespace": "b" }),
            json!({ "namespace": "a" }),
            template(),
            None,
        ),
        (
            "a selector may narrow it",
            json!({ "namespace": "a" }),
            json!({ "namespace": "b" }),
            template(),
            None,
        ),
        ("cluster policy", json!({}), json!({}), template(), Some(1)),
        (
            "cluster policy for a namespace",
            json!({}),
            json!({ "namespace": "a" }),
            template(),
            Some(1),
        ),
        (
            "never cluster-scoped",
            json!({ "namespace": "a" }),
            roles.clone(),
            cluster_role.clone(),
            None,
        ),
        (
            "cluster-scoped",
            json!({}),
            roles.clone(),
            cluster_role.clone(),
            Some(1),
        ),
        ("being deleted", gone, json!({}), template(), None),
    ];
    for (case, metadata, wanted, template, expected) in table {
        let policy: PropagationPolicy = serde_json::from_value(json!({
            "metadata": metadata, "spec": { "resourceSelectors": [selector(wanted)] },
        }))
        .unwrap();
        assert_eq!(policy_match(&policy, &template), expected, "{case}");
    }
}

fn cluster() -> Cluster {
    serde_json::from_value(json!({
        "metadata": { "name": "m1", "labels": { "env": "prod" } },
        "spec": { "provider": "p", "region": "", "zones": ["z1", "z2"] },
    }))
    .unwrap()
}

#[test]
fn clusters_of_affinities() {
    let field = |key: &str, operator: &str, values: &[&str]| json!({ "fieldSelector": { "matchExpressions": [{ "key": key, "operator": operator, "values": values }] } });
    let table = [
        (json!({}), None),
        (json!({ "clusterNames": ["m2", "m1"] }), None),
        (
            json!({ "clusterNames": ["m2"] }),
            Some("the cluster is not one of those that it names"),
        ),
        (
            json!({ "clusterNames": ["m1"], "exclude": ["m1"] }),
            Some("it excludes the cluster by name"),
        ),
        (
            json!({ "labelSelector": { "matchLabels": { "env": "prod" } } }),
            None,
        ),
        (
            json!({ "labelSelector": { "matchLabels": { "env": "test" } } }),
            Some("it asks for the label env=test, and the cluster has env=prod"),
        ),
        (
            json!({ "labelSelector": { "matchExpressions": [{ "key": "tier", "operator": "Exists" }] } }),
            Some("it asks for the label tier, and the cluster has no label tier"),
        ),
        // Every part must match.
        (
            json!({ "clusterNames": ["m1"], "labelSelector": { "matchLabels": { "env": "test" } } }),
            Some("it asks for the label env=test, and the cluster has env=prod"),
        ),
        (field("provider", "In", &["p", "q"]), None),
        (
            field("provider", "NotIn", &["p"]),
            Some("it asks for a provider not in (p), and the cluster's is p"),
        ),
        // An empty region counts as absent.
        (
            field("region", "In", &[""]),
            Some("it asks for a region in (), and the cluster has no region"),
        ),
        (field("region", "NotIn", &["r"]), None),
        // One zone in common is enough, or too much.
        (field("zone", "In", &["z2", "z9"]), None),
        (
            field("zone", "NotIn", &["z2", "z9"]),
            Some("it asks for a zone not in (z2,z9), and the cluster's is z1,z2"),
        ),
        (
            field("zone", "In", &["z9"]),
            Some("it asks for a zone in (z9), and the cluster's is z1,z2"),
        ),
        // What cannot be read matches nothing.
        (
            field("zone", "Exists", &[]),
            Some("its field selector is not valid: \"Exists\" is not In or NotIn"),
        ),
        (
            field("planet", "In", &["x"]),
            Some("its field selector is not valid: \"planet\" is not provider, region or zone"),
        ),
        (
            field("zone", "NotIn", &[]),
            Some("its field selector is not valid: zone has no values"),
        ),
        (
            json!({ "labelSelector": { "matchExpressions": [{ "key": "env", "operator": "Near" }] } }),
            Some("its label selector is not valid: \"Near\" is not a valid label selector operator"),
        ),
    ];
    for (text, expected) in table {
        let affinity: ClusterAffinity = serde_json::from_value(text.clone()).unwrap();
        let compiled = CompiledAffinity::new(&affinity);
        let found = compiled.why_not(&cluster());
        assert_eq!(found.as_ref().map(|(why, _)| why.as_str()), expected, "{text}");
        assert!(found.is_none_or(|(_, help)| !help.is_empty()), "{text}");
        assert_eq!(
            matches_cluster(&affinity, &cluster()),
            expected.is_none(),
            "{text}"
        );
    }
}

#[test]
fn the_older_zone_counts_where_zones_is_not_set() {
    let affinity = |operator: &str| ClusterAffinity {
        field_selector: Some(FieldSelector {
            match_expressions: vec![SelectorRequirement {
                key: "zone".into(),
                operator: operator.into(),
                values: vec!["old".into()],
            }],
        }),
        ..ClusterAffinity::default()
    };
    let mut cluster = cluster();
    cluster.spec.zone = "old".into();
    assert!(!matches_cluster(&affinity("In"), &cluster));
    cluster.spec.zones.clear();
    assert!(matches_cluster(&affinity("In"), &cluster));
    cluster.spec.zone.clear();
    assert!(!matches_cluster(&affinity("In"), &cluster));
    assert!(matches_cluster(&affinity("NotIn"), &cluster));
}
