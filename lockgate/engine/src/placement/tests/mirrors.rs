//! The ManagedCluster of a Cluster.

use lockgate_api::{Cluster, Condition};

use super::super::mirror::{mirror, unjoined};
use super::*;

fn member(change: Value) -> Cluster {
    let mut object = json!({
        "metadata": {"name": "member1", "labels": {"tier": "gold", "cluster.open-cluster-management.io/clusterset": "no"}},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://member1:6443", "region": "eu", "id": "abc"},
        "status": {"kubernetesVersion": "v1.31.0", "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady"}]},
    });
    machinery_value::merge_patch::apply(&mut object, &change);
    serde_json::from_value(object).unwrap()
}

fn at(minute: u8) -> Timestamp {
    format!("2026-01-01T00:{minute:02}:00Z").parse().unwrap()
}

fn condition(cluster: &ManagedCluster, kind: &str) -> String {
    let condition = Condition::find(&cluster.status.conditions, kind).unwrap();
    format!("{} {}", condition.status, condition.reason)
}

#[test]
fn a_cluster_that_joined() {
    let made = mirror(&member(json!({})), None, at(0)).unwrap();
    let value = serde_json::to_value(&made).unwrap();
    assert_eq!(
        value["metadata"],
        json!({"name": "member1",
            "labels": {"tier": "gold", "cluster.open-cluster-management.io/clusterset": "default",
                "open-cluster-management.io/cluster-name": "member1"},
            "annotations": {"lockgate.karmada.io/copied-labels": "tier"}})
    );
    assert_eq!(
        value["spec"],
        json!({"hubAcceptsClient": true, "managedClusterClientConfigs": [{"url": "https://member1:6443"}]})
    );
    assert_eq!(
        condition(&made, "HubAcceptedManagedCluster"),
        "True HubClusterAdminAccepted"
    );
    assert_eq!(
        condition(&made, "ManagedClusterJoined"),
        "True ManagedClusterJoined"
    );
    assert_eq!(
        condition(&made, "ManagedClusterConditionAvailable"),
        "True ManagedClusterAvailable"
    );
    assert_eq!(
        value["status"]["clusterClaims"],
        json!([
            {"name": "id.k8s.io", "value": "abc"},
            {"name": "kubeversion.open-cluster-management.io", "value": "v1.31.0"},
            {"name": "region.open-cluster-management.io", "value": "eu"},
        ])
    );
    assert_eq!(value["status"]["version"], json!({"kubernetes": "v1.31.0"}));
    // Looking again changes nothing, whenever that is.
    assert_eq!(mirror(&member(json!({})), Some(&made), at(5)), Some(made));
    assert_eq!(
        mirror(&member(json!({"status": null})), None, at(0)),
        None,
        "nothing is known of it yet"
    );
}

#[test]
fn labels_follow_the_cluster_and_the_rest_is_its_own() {
    let mut made = mirror(&member(json!({})), None, at(0)).unwrap();
    for (key, value) in [
        ("mine", "yes"),
        ("cluster.open-cluster-management.io/clusterset", "prod"),
        ("tier", "lead"),
    ] {
        made.metadata.labels.insert(key.to_owned(), value.to_owned());
    }
    made.spec.hub_accepts_client = false;
    made.status
        .cluster_claims
        .push(serde_json::from_value(json!({"name": "rack", "value": "7"})).unwrap());
    let cluster = member(json!({"metadata": {"labels": {"tier": "silver", "zone": "a"}}}));
    let next = mirror(&cluster, Some(&made), at(1)).unwrap();
    let label = |cluster: &ManagedCluster, key: &str| cluster.metadata.label(key).map(str::to_owned);
    assert_eq!(label(&next, "tier").as_deref(), Some("silver"));
    assert_eq!(label(&next, "zone").as_deref(), Some("a"));
    assert_eq!(label(&next, "mine").as_deref(), Some("yes"));
    assert_eq!(
        label(&next, "cluster.open-cluster-management.io/clusterset").as_deref(),
        Some("prod")
    );
    assert!(
        !next.spec.hub_accepts_client,
        "who was denied is not accepted again"
    );
    assert_eq!(
        condition(&next, "HubAcceptedManagedCluster"),
        "False HubClusterAdminDenied"
    );
    assert!(
        next.status
            .cluster_claims
            .iter()
            .any(|claim| claim.name == "rack")
    );
    // Nor where somebody, or a backup, lost what it said of itself or the keys of what was copied.
    for lost in [
        json!({"status": null}),
        json!({"metadata": {"annotations": null}}),
    ] {
        let mut object = serde_json::to_value(&next).unwrap();
        machinery_value::merge_patch::apply(&mut object, &lost);
        let restored: ManagedCluster = serde_json::from_value(object).unwrap();
        let again = mirror(&cluster, Some(&restored), at(2)).unwrap();
        assert!(!again.spec.hub_accepts_client, "{lost}");
        assert_eq!(
            condition(&again, "HubAcceptedManagedCluster"),
            "False HubClusterAdminDenied"
        );
    }
    // A label that goes there goes here; one that was never copied stays.
    let bare = mirror(
        &member(json!({"metadata": {"labels": {"tier": null}}})),
        Some(&next),
        at(2),
    )
    .unwrap();
    assert_eq!((label(&bare, "tier"), label(&bare, "zone")), (None, None));
    assert_eq!(label(&bare, "mine").as_deref(), Some("yes"));
}

#[test]
fn taints_follow_readiness_and_keep_their_time() {
    let ready = |status: &str, reason: &str| {
        member(
            json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "m"}]}}),
        )
    };
    let made = mirror(&ready("True", "ClusterReady"), None, at(0)).unwrap();
    let taints = |cluster: &ManagedCluster| serde_json::to_value(&cluster.spec.taints).unwrap();
    assert_eq!(taints(&made), json!([]));
    let gone = mirror(&ready("False", "ClusterNotReachable"), Some(&made), at(1)).unwrap();
    let unreachable = json!({"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect",
        "timeAdded": "2026-01-01T00:01:00Z"});
    assert_eq!(taints(&gone), json!([unreachable]));
    assert_eq!(
        condition(&gone, "ManagedClusterConditionAvailable"),
        "Unknown ManagedClusterUnreachable"
    );
    let still = mirror(&ready("False", "ClusterNotReachable"), Some(&gone), at(9)).unwrap();
    assert_eq!(taints(&still), json!([unreachable]));
    let mut tainted = mirror(&ready("False", "ClusterNotReady"), Some(&still), at(10)).unwrap();
    assert_eq!(
        taints(&tainted)[0]["key"],
        "cluster.open-cluster-management.io/unavailable"
    );
    tainted
        .spec
        .taints
        .push(serde_json::from_value(json!({"key": "gpu", "effect": "NoSelect"})).unwrap());
    let back = mirror(&ready("True", "ClusterReady"), Some(&tainted), at(11)).unwrap();
    let gpu = json!([{"key": "gpu", "effect": "NoSelect", "timeAdded": "2026-01-01T00:11:00Z"}]);
    assert_eq!(taints(&back), gpu, "that of people stays, and counts from now");
}

#[test]
fn a_managed_cluster_without_a_cluster_says_how_to_join() {
    let present: ManagedCluster = serde_json::from_value(json!({"metadata": {"name": "far"}})).unwrap();
    let next = unjoined(&present, at(0));
    let joined = Condition::find(&next.status.conditions, "ManagedClusterJoined").unwrap();
    assert_eq!(joined.status, "False");
    assert!(
        joined.message.contains("lockgate join far --member-kubeconfig"),
        "{}",
        joined.message
    );
    assert_eq!(unjoined(&next, at(7)), next);
    // One that joins later is accepted.
    let cluster = member(json!({"metadata": {"name": "far"}}));
    let joined = mirror(&cluster, Some(&next), at(8)).unwrap();
    assert!(joined.joined() && joined.spec.hub_accepts_client);
}
