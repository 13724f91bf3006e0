//! Where bindings go: tables for each step, and properties of the whole.

mod groups;
mod neighbours;
mod properties;
mod rooms;
mod spread;
mod triggers;

use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::{BindingSpec, Cluster, Placement};
use serde_json::{Value, json};

use super::*;

/// A fleet of clusters that serve Deployments and ConfigMaps; `change` makes them differ.
fn fleet(names: &[&str], change: impl Fn(&str, &mut Cluster)) -> Vec<Arc<Cluster>> {
    let cluster = |name: &&str| {
        let mut cluster: Cluster = serde_json::from_value(json!({
            "metadata": { "name": name },
            "status": { "apiEnablements": [
                { "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] },
                { "groupVersion": "v1", "resources": [{ "name": "configmaps", "kind": "ConfigMap" }] },
            ] },
        }))
        .unwrap();
        change(name, &mut cluster);
        Arc::new(cluster)
    };
    names.iter().map(cluster).collect()
}

fn plain(names: &[&str]) -> Vec<Arc<Cluster>> {
    fleet(names, |_, _| {})
}

fn spec(value: Value) -> BindingSpec {
    let mut spec: BindingSpec = serde_json::from_value(value).unwrap();
    spec.resource.api_version = "apps/v1".into();
    spec.resource.kind = "Deployment".into();
    spec
}

fn input<'a>(spec: &'a BindingSpec, clusters: &'a [Arc<Cluster>]) -> PlaceInput<'a> {
    PlaceInput {
        spec,
        applied_placement: None,
        observed_affinity: "",
        last_scheduled: None,
        rebalanced: None,
        clusters,
        rooms: None,
        neighbours: None,
        gates: Gates::default(),
    }
}

/// The clusters as `a:2 b:1`, or the message of a failure.
fn told(placed: &Placed) -> String {
    match &placed.verdict {
        Verdict::Unchanged => "unchanged".to_owned(),
        Verdict::Clusters(targets) => {
            let target = |target: &TargetCluster| format!("{}:{}", target.name, target.replicas);
            targets.iter().map(target).collect::<Vec<_>>().join(" ")
        }
        Verdict::NoClusterFit { message, .. } | Verdict::Unschedulable { message } => message.clone(),
    }
}

fn why(placed: &Placed, cluster: &str) -> String {
    let rejection = placed
        .rejected
        .iter()
        .find(|rejection| rejection.cluster == cluster);
    rejection.map_or(String::new(), |rejection| {
        format!("{}: {}", rejection.reason.as_str(), rejection.message)
    })
}

#[test]
fn strategies() {
    let weighted = |rules: &[(&str, i64)]| {
        let rule = |(name, weight): &(&str, i64)| json!({ "targetCluster": { "clusterNames": [name] }, "weight": weight });
        let rules: Vec<Value> = rules.iter().map(rule).collect();
        json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": { "staticWeightList": rules } })
    };
    let requests = json!({ "resourceRequest": { "cpu": "1" } });
    let divided = json!({ "replicaSchedulingType": "Divided" });
    let aggregated = json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated" });
    let dynamic = json!({ "replicaSchedulingType": "Divided",
        "weightPreference": { "dynamicWeight": "AvailableReplicas" } });
    let full = "Clusters available replicas 0 are not enough to schedule: 2 replicas are to be placed.";
    let table = [
        ("no strategy", 2, json!({}), "a:2 b:2 c:2".to_owned()),
        (
            "duplicated",
            2,
            json!({ "replicaScheduling": { "replicaSchedulingType": "Duplicated" } }),
            "a:2 b:2 c:2".to_owned(),
        ),
        (
            "a strategy without a type",
            4,
            json!({ "replicaScheduling": {} }),
            "a:2 b:1 c:1".to_owned(),
        ),
        (
            "divided without weights",
            4,
            json!({ "replicaScheduling": divided }),
            "a:2 b:1 c:1".to_owned(),
        ),
        (
            "by weights",
            9,
            json!({ "replicaScheduling": weighted(&[("a", 1), ("b", 2)]) }),
            "a:3 b:6".to_owned(),
        ),
        (
            "the largest weight counts",
            9,
            json!({ "replicaScheduling": weighted(&[("a", 1), ("b", 1), ("b", 2)]) }),
            "a:3 b:6".to_owned(),
        ),
        (
            "weights that name nobody",
            3,
            json!({ "replicaScheduling": weighted(&[("z", 5)]) }),
            "a:1 b:1 c:1".to_owned(),
        ),
        (
            "nobody without a replica",
            1,
            json!({ "replicaScheduling": weighted(&[("a", 1), ("b", 1)]) }),
            "a:1".to_owned(),
        ),
        (
            "no replicas",
            0,
            json!({ "replicaScheduling": weighted(&[("a", 1)]) }),
            "a:0 b:0 c:0".to_owned(),
        ),
        (
            "aggregated, where nobody has said what there is room for",
            2,
            json!({ "replicaScheduling": aggregated }),
            full.to_owned(),
        ),
        (
            "dynamic, where nobody has said what there is room for",
            2,
            json!({ "replicaScheduling": dynamic }),
            full.to_owned(),
        ),
        (
            "aggregated without replicas",
            0,
            json!({ "replicaScheduling": aggregated }),
            "a:0 b:0 c:0".to_owned(),
        ),
    ];
    let clusters = plain(&["a", "b", "c"]);
    for (case, replicas, placement, expected) in table {
        let spec = spec(json!({ "replicas": replicas, "placement": placement }));
        assert_eq!(told(&place(&input(&spec, &clusters))), expected, "{case}");
    }
    // Several components are never divided, and carry no replicas.
    let parts = json!([{ "name": "x", "replicas": 1 }, { "name": "y", "replicas": 2 }]);
    let several = spec(json!({ "replicas": 3, "components": parts,
        "placement": { "replicaScheduling": weighted(&[("a", 1)]) } }));
    assert_eq!(told(&place(&input(&several, &clusters))), "a:0 b:0 c:0");
    // Scaled to nothing: what is there stays, and what is not there does not come.
    let scaled = |present: Value| {
        spec(
            json!({ "replicas": 0, "replicaRequirements": requests, "clusters": present,
            "placement": { "replicaScheduling": weighted(&[("a", 1), ("b", 2)]) } }),
        )
    };
    for (present, expected) in [
        (json!([{ "name": "b", "replicas": 2 }]), "b:0"),
        (json!([]), ""),
        // What is there must go, and something must take its place.
        (json!([{ "name": "gone", "replicas": 2 }]), "a:0 b:0 c:0"),
    ] {
        let spec = scaled(present);
        assert_eq!(told(&place(&input(&spec, &clusters))), expected);
    }
    let one =
        spec(json!({ "replicas": 1, "placement": { "replicaScheduling": weighted(&[("a", 2), ("b", 1)]) } }));
    let placed = place(&input(&one, &clusters));
    assert_eq!(why(&placed, "a"), "");
    assert_eq!(
        why(&placed, "b"),
        "NoReplicas: its share of 1 replicas comes to none"
    );
    assert_eq!(why(&placed, "c"), "NoReplicas: no static weight names it");
}

#[test]
fn filters() {
    let taint = |effect: &str| json!([{ "key": "k", "value": "v", "effect": effect }]);
    let going =
        |cluster: &mut Cluster| cluster.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
    let tainted = |effect: &'static str| {
        move |cluster: &mut Cluster| cluster.spec.taints = serde_json::from_value(taint(effect)).unwrap()
    };
    let silent = |cluster: &mut Cluster| cluster.status.api_enablements.clear();
    let without = |cluster: &mut Cluster| {
        cluster.status.api_enablements.remove(0);
    };
    let unready = |cluster: &mut Cluster| {
        let conditions = json!([{ "type": "Ready", "status": "False" }]);
        cluster.status.conditions = serde_json::from_value(conditions).unwrap();
    };
    let same = |_: &mut Cluster| {};
    let not_tolerated = "Taint: it has the taint k=v:NoSchedule, which the placement does not tolerate";
    type Change<'a> = &'a dyn Fn(&mut Cluster);
    // The change of cluster b, the placement, and why b is left out when new, and when the template is there already.
    let table: &[(&str, Change<'_>, Value, &str, &str)] = &[
        ("nothing", &same, json!({}), "", ""),
        ("readiness is no filter", &unready, json!({}), "", ""),
        (
            "terminating",
            &going,
            json!({}),
            "Terminating: it is being removed from the fleet",
            "Terminating: it is being removed from the fleet",
        ),
        ("a taint", &tainted("NoSchedule"), json!({}), not_tolerated, ""),
        (
            "a harder taint",
            &tainted("NoExecute"),
            json!({}),
            "Taint: it has the taint k=v:NoExecute, which the placement does not tolerate",
            "",
        ),
        ("a soft taint", &tainted("PreferNoSchedule"), json!({}), "", ""),
        (
            "tolerated",
            &tainted("NoSchedule"),
            json!({ "clusterTolerations": [{ "key": "k", "value": "v", "effect": "NoSchedule" }] }),
            "",
            "",
        ),
        (
            "all tolerated",
            &tainted("NoSchedule"),
            json!({ "clusterTolerations": [{ "operator": "Exists" }] }),
            "",
            "",
        ),
        (
            "another value",
            &tainted("NoSchedule"),
            json!({ "clusterTolerations": [{ "key": "k", "operator": "Equal", "value": "w" }] }),
            not_tolerated,
            "",
        ),
        (
            "another effect",
            &tainted("NoSchedule"),
            json!({ "clusterTolerations": [{ "key": "k", "operator": "Exists", "effect": "NoExecute" }] }),
            not_tolerated,
            "",
        ),
        (
            "an unknown operator",
            &tainted("NoSchedule"),
            json!({ "clusterTolerations": [{ "key": "k", "operator": "Gt", "value": "v" }] }),
            not_tolerated,
            "",
        ),
        (
            "kind",
            &without,
            json!({}),
            "MissingApi: it does not serve Deployment of apps/v1",
            "",
        ),
        (
            "no kinds yet",
            &silent,
            json!({}),
            "MissingApi: it has not yet said which kinds it serves",
            "",
        ),
        (
            "affinity",
            &same,
            json!({ "clusterAffinity": { "exclude": ["b"] } }),
            "ClusterAffinity: the placement's cluster affinity does not include it: it excludes the cluster by name",
            "ClusterAffinity: the placement's cluster affinity does not include it: it excludes the cluster by name",
        ),
        (
            "spread by a field",
            &same,
            json!({ "spreadConstraints": [{ "spreadByField": "zone" }, { "spreadByField": "cluster" }] }),
            "SpreadField: the placement spreads by zone, and the cluster has none",
            "SpreadField: the placement spreads by zone, and the cluster has none",
        ),
    ];
    for (case, change, placement, new, present) in table {
        let clusters = fleet(&["a", "b"], |name, cluster| match name {
            "b" => change(cluster),
            _ => cluster.spec.zones = vec!["z".into()],
        });
        for (there, expected) in [
            (json!([]), new),
            (json!([{ "name": "b", "replicas": 1 }]), present),
        ] {
            let spec = spec(json!({ "replicas": 1, "clusters": there, "placement": placement }));
            let placed = place(&input(&spec, &clusters));
            assert_eq!(
                why(&placed, "b"),
                *expected,
                "{case}, present: {}",
                !spec.clusters.is_empty()
            );
            let targets = if expected.is_empty() { "a:1 b:1" } else { "a:1" };
            assert_eq!(told(&placed), targets, "{case}");
        }
    }
    // Where workloads leave because of taints, a toleration that ends brings nothing new there.
    let leaving = fleet(&["a", "b"], |name, cluster| {
        if name == "b" {
            tainted("NoExecute")(cluster);
        }
    });
    let for_a_while = json!({ "clusterTolerations": [{ "operator": "Exists", "tolerationSeconds": 60 }] });
    let spec_of = |there: Value| spec(json!({ "replicas": 1, "clusters": there, "placement": for_a_while }));
    let (new, present) = (
        spec_of(json!([])),
        spec_of(json!([{ "name": "b", "replicas": 1 }])),
    );
    let gates = Gates {
        failover: true,
        ..Gates::default()
    };
    let with_gate = |spec| {
        told(&place(&PlaceInput {
            gates,
            ..input(spec, &leaving)
        }))
    };
    assert_eq!(with_gate(&new), "a:1");
    assert_eq!(with_gate(&present), "a:1 b:1");
    assert_eq!(told(&place(&input(&new, &leaving))), "a:1 b:1");
    // A cluster that is being left does not come back, present or not.
    let evicted = spec(
        json!({ "replicas": 1, "clusters": [{ "name": "b", "replicas": 1 }], "placement": {},
        "gracefulEvictionTasks": [{ "fromCluster": "b" }] }),
    );
    let placed = place(&input(&evicted, &plain(&["a", "b"])));
    assert_eq!(
        why(&placed, "b"),
        "Eviction: it is being left: an eviction from it is under way"
    );
}

#[test]
fn no_cluster_fits() {
    let tainted = |name: &str, cluster: &mut Cluster| match name {
        "a" => cluster.metadata.labels = [("env".to_owned(), "test".to_owned())].into(),
        "b" | "c" => {
            let taints = json!([{ "key": "k", "effect": "NoSchedule" }]);
            cluster.spec.taints = serde_json::from_value(taints).unwrap();
        }
        _ => cluster.status.api_enablements.clear(),
    };
    let clusters = fleet(&["a", "b", "c", "d"], tainted);
    let labels = json!({ "matchExpressions": [{ "key": "env", "operator": "DoesNotExist" }] });
    let nowhere =
        spec(json!({ "replicas": 1, "placement": { "clusterAffinity": { "labelSelector": labels } } }));
    let placed = place(&input(&nowhere, &clusters));
    let message = "0/4 clusters are available: 1 cluster(s) did not have the API resource, \
        1 cluster(s) did not match the placement cluster affinity constraint, \
        2 cluster(s) had untolerated taint {k:NoSchedule}.";
    assert_eq!(
        placed.verdict,
        Verdict::NoClusterFit {
            message: message.to_owned(),
            keep: true
        }
    );
    assert_eq!(placed.rejected.len(), 4);
    let removes = Gates {
        no_cluster_fit_removes: true,
        ..Gates::default()
    };
    let placed = place(&PlaceInput {
        gates: removes,
        ..input(&nowhere, &[])
    });
    assert_eq!(
        placed.verdict,
        Verdict::NoClusterFit {
            message: "0/0 clusters are available: no cluster exists.".to_owned(),
            keep: false
        }
    );
}

#[test]
fn spread_over_clusters() {
    let few = "the number of feasible clusters is less than spreadConstraint.MinGroups: 4 wanted, 3 fit";
    let weighted = json!({ "replicaSchedulingType": "Divided" });
    let table = [
        (
            "at most",
            json!({ "spreadConstraints": [{ "spreadByField": "cluster", "maxGroups": 2 }] }),
            "a:1 c:1",
        ),
        (
            "neither field nor label",
            json!({ "spreadConstraints": [{ "maxGroups": 2 }] }),
            "a:1 c:1",
        ),
        (
            "no maximum",
            json!({ "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 2 }] }),
            "a:1 b:1 c:1",
        ),
        (
            "a large maximum",
            json!({ "spreadConstraints": [{ "spreadByField": "cluster", "maxGroups": 9 }] }),
            "a:1 b:1 c:1",
        ),
        (
            "too few",
            json!({ "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 4 }] }),
            few,
        ),
        (
            "weights need no spread",
            json!({ "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 4 }], "replicaScheduling": weighted }),
            "a:1",
        ),
        (
            "region",
            json!({ "spreadConstraints": [{ "spreadByField": "cluster" }, { "spreadByField": "region" }] }),
            "a:1 b:1 c:1",
        ),
        (
            "zone alone",
            json!({ "spreadConstraints": [{ "spreadByField": "zone" }] }),
            "a:1 b:1 c:1",
        ),
        (
            "label",
            json!({ "spreadConstraints": [{ "spreadByLabel": "env" }] }),
            "spreading by the label env is not supported: use spreadByField",
        ),
    ];
    let clusters = fleet(&["a", "b", "c"], |_, cluster| {
        cluster.spec.region = "r".into();
        cluster.spec.zones = vec!["z".into()];
    });
    for (case, placement, expected) in table {
        // The template is on c, so that c comes first.
        let there = json!([{ "name": "c", "replicas": 1 }]);
        let spec = spec(json!({ "replicas": 1, "clusters": there, "placement": placement }));
        let placed = place(&input(&spec, &clusters));
        assert_eq!(told(&placed), expected, "{case}");
        if expected == "a:1 c:1" {
            let full = "SpreadLimit: the placement's spread takes 2 clusters, and others come first";
            assert_eq!(why(&placed, "b"), full);
        }
    }
}
