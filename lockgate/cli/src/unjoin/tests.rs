use clap::Parser;

use super::*;
use crate::join::tests::Fleet;

async fn leave(fleet: &Fleet, workloads: Workloads, seconds: u64) -> Result<String, String> {
    let patience = Duration::from_secs(seconds);
    unjoin(&fleet.hub, "https://hub", "m1", workloads, patience)
        .await
        .map_err(|failure| failure.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_leaves_and_what_remains_is_said() {
    let fleet = Fleet::start().await;
    let said = leave(&fleet, Workloads::Keep, 1).await.unwrap_err();
    assert_eq!(said, "there is no cluster \"m1\"; no cluster has joined");
    let _controllers = fleet.controllers();
    fleet.join("m1", &[]).await.unwrap();
    let patience = Duration::from_secs(60);
    let other = unjoin(&fleet.hub, "https://hub", "m2", Workloads::Keep, patience).await;
    assert_eq!(
        other.unwrap_err().to_string(),
        "there is no cluster \"m2\"; there are m1"
    );
    let said = leave(&fleet, Workloads::Keep, 60).await.unwrap();
    assert!(said.contains("stay and run on"), "{said}");
    // What remains is named as it is named in the member.
    for name in [
        "clusterrole lockgate:m1",
        "serviceaccount lockgate-m1",
        "secret lockgate-m1-token",
    ] {
        assert!(said.contains(name), "{said}");
    }
    let account = "/api/v1/namespaces/karmada-cluster/serviceaccounts/lockgate-m1";
    assert!(fleet.member.get(account).await.is_ok());
    fleet.join("m1", &["--timeout", "0"]).await.unwrap();
}

/// A binding of `shop/web` that says what it waits for.
async fn copy_that_is_waited_for(fleet: &Fleet) {
    let definitions = lockgate_api::definitions::crds();
    let definition = definitions
        .iter()
        .find(|definition| definition["metadata"]["name"] == "resourcebindings.work.karmada.io")
        .unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = fleet.hub.create(path, definition.to_string().into_bytes());
    created.await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let created = fleet
        .hub
        .create("/api/v1/namespaces", namespace.to_string().into_bytes());
    created.await.unwrap();
    let binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"namespace": "shop", "name": "web-deployment"},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}}});
    let resource = Resource::resource_bindings();
    let collection = resource.collection("shop");
    let created = fleet.hub.create(&collection, binding.to_string().into_bytes());
    created.await.unwrap();
    let condition = json!({"type": "Removed", "status": "False", "reason": "WaitingForCopies",
        "message": "m1 kept until m2 has its copy", "lastTransitionTime": "2026-11-18T09:00:00Z"});
    let status = json!({"status": {"conditions": [condition]}});
    let path = resource.status("shop", "web-deployment");
    let told = fleet.hub.merge_patch(&path, status.to_string().into_bytes());
    told.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_does_not_leave_says_why() {
    let fleet = Fleet::start().await;
    let controllers = fleet.controllers();
    fleet.join("m1", &[]).await.unwrap();
    let work = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"namespace": "karmada-es-m1", "name": "w"}, "spec": {"workload": {"manifests": []}}});
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}});
    let waits = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"namespace": "karmada-es-m1", "name": "x"}, "spec": {"workload": {"manifests": [manifest]}}});
    let collection = Resource::works().collection("karmada-es-m1");
    for work in [work, waits] {
        let created = fleet.hub.create(&collection, work.to_string().into_bytes());
        created.await.unwrap();
    }
    copy_that_is_waited_for(&fleet).await;
    let said = leave(&fleet, Workloads::Delete, 1).await.unwrap_err();
    assert!(
        said.contains(
            "m1 has not left after 1 s: 2 Works are left: \
             Deployment shop/web (m1 kept until m2 has its copy), Work w; it leaves as soon as"
        ),
        "{said}"
    );
    let annotations = &fleet.cluster("m1").await["metadata"]["annotations"];
    assert_eq!(annotations[keys::UNJOIN_WORKLOADS], "delete");
    // Another word is heard as long as it is there.
    assert!(
        leave(&fleet, Workloads::Keep, 0)
            .await
            .unwrap()
            .contains("asked to leave")
    );
    let annotations = &fleet.cluster("m1").await["metadata"]["annotations"];
    assert_eq!(annotations[keys::UNJOIN_WORKLOADS], "keep");
    drop(controllers);
}

#[test]
fn what_becomes_of_the_objects_has_no_default() {
    #[derive(Debug, Parser)]
    struct Whole {
        #[command(flatten)]
        unjoin: UnjoinArguments,
    }
    let error = Whole::try_parse_from(["unjoin", "m1"]).unwrap_err().to_string();
    assert!(error.contains("--workloads <WORKLOADS>"), "{error}");
    let whole = Whole::try_parse_from(["unjoin", "m1", "--workloads", "keep"]).unwrap();
    assert_eq!(whole.unjoin.workloads, Workloads::Keep);
}

#[test]
fn the_wait_is_explained() {
    let ready = |status: &str| Condition {
        status: status.into(),
        message: "cluster is not reachable".into(),
        ..Condition::default()
    };
    let cases = [
        (Some(1), None, "1 Work is left"),
        (Some(3), Some(ready("True")), "3 Works are left"),
        (
            Some(3),
            Some(ready("False")),
            "3 Works are left, and cluster is not reachable",
        ),
        (None, None, "its Works cannot be counted"),
    ];
    for (left, ready, expected) in cases {
        assert_eq!(state(left, ready.as_ref()), expected);
    }
}

#[test]
fn what_has_a_reason_is_told_first() {
    let left = |what: &str, why: Option<&str>| Left {
        what: what.to_owned(),
        why: why.map(str::to_owned),
    };
    let some = [left("A", None), left("B", Some("no copy"))];
    assert_eq!(tell(&some), "B (no copy), A");
    let many = [
        left("A", None),
        left("B", None),
        left("C", Some("x")),
        left("D", None),
    ];
    assert_eq!(tell(&many), "C (x), A, B, …");
}
