//! The definitions install, in order, without a warning, and twice.

use lockgate_api::definitions;
use serde_json::{Value, json};

use crate::harness::{NAMESPACE, Server, path, sample};

pub(crate) async fn check(server: &Server) {
    for definition in definitions::definitions() {
        server.apply(&definition).await.granted();
    }
    for crd in definitions::crds() {
        let conditions = server
            .until("established", async || {
                let conditions = server.get(&path(&crd)).await.granted()["status"]["conditions"].clone();
                (status_of(&conditions, "Established") == Some("True")).then_some(conditions)
            })
            .await;
        assert_eq!(
            status_of(&conditions, "NonStructuralSchema"),
            None,
            "{conditions}"
        );
        assert_eq!(
            status_of(&conditions, "NamesAccepted"),
            Some("True"),
            "{conditions}"
        );
    }
    // The second time changes nothing.
    for definition in definitions::definitions() {
        let before = server.get(&path(&definition)).await.granted();
        let after = server.apply(&definition).await.granted();
        assert_eq!(
            before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"],
            "{}",
            definition["metadata"]["name"]
        );
    }
    for namespace in [
        NAMESPACE,
        "karmada-es-member1",
        "karmada-es-member2",
        "karmada-es-member3",
    ] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        server.create(&namespace).await.granted();
    }
    in_force(server).await;
}

/// Waits until the definitions are served and the admission policies count, which on a real server takes a moment.
async fn in_force(server: &Server) {
    for kind in [
        "PropagationPolicy",
        "ClusterPropagationPolicy",
        "OverridePolicy",
        "ClusterOverridePolicy",
        "RolloutPolicy",
        "ClusterRolloutPolicy",
        "ResourceBinding",
        "ClusterResourceBinding",
        "Work",
        "Cluster",
        "ManagedCluster",
        "ManagedClusterSet",
        "ManagedClusterSetBinding",
        "Placement",
    ] {
        server
            .until(kind, async || {
                let answer = server.try_create(&sample(kind, &json!({}))).await;
                (answer.code == 201).then_some(())
            })
            .await;
    }
    let mut protected = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "probe", "namespace": NAMESPACE, "labels": {
            "resourcetemplate.karmada.io/deletion-protected": "Always"}},
    });
    server.create(&protected).await.granted();
    let mut labelled = sample("PropagationPolicy", &json!({}));
    labelled["metadata"]["labels"] = json!({"propagationpolicy.karmada.io/permanent-id": "a"});
    labelled["metadata"]["name"] = json!("probe");
    server.create(&labelled).await.granted();
    labelled["metadata"]["labels"] = json!({});

    let other_namespace = json!([{"apiVersion": "v1", "kind": "Secret", "namespace": "other"}]);
    let mut binding = sample("ResourceBinding", &json!({}));
    binding["metadata"]["annotations"] = json!({"resourcebinding.karmada.io/dependencies": "{}"});
    let probes: [(&str, Value); 4] = [
        (
            "lockgate-selector-namespace",
            sample("OverridePolicy", &json!({"resourceSelectors": other_namespace})),
        ),
        (
            "lockgate-override-values",
            sample(
                "OverridePolicy",
                &json!({"overriders": {"labelsOverrider": [
                {"operator": "add", "value": {"a b": "c"}}]}}),
            ),
        ),
        (
            "lockgate-resource-models",
            sample(
                "Cluster",
                &json!({"resourceModels": [{"grade": 1, "ranges": []}]}),
            ),
        ),
        ("lockgate-dependencies", binding),
    ];
    for (policy, probe) in &probes {
        server
            .until(policy, async || {
                let answer = server.try_create(probe).await;
                answer.message().contains(policy).then_some(())
            })
            .await;
    }
    server
        .until("lockgate-permanent-id", async || {
            let path = format!("{}?dryRun=All", path(&labelled));
            let patch = json!({"metadata": {"labels": null}});
            let headers = [("content-type", "application/merge-patch+json")];
            let answer = server.send("PATCH", &path, &headers, Some(&patch)).await;
            answer.message().contains("lockgate-permanent-id").then_some(())
        })
        .await;
    server
        .until("lockgate-deletion-protected", async || {
            let path = format!("{}?dryRun=All", path(&protected));
            let answer = server.send("DELETE", &path, &[], None).await;
            answer
                .message()
                .contains("lockgate-deletion-protected")
                .then_some(())
        })
        .await;
    protected["metadata"]["labels"] = json!({});
    server.replace(&protected, "").await.granted();
    server.delete(&protected).await.granted();
    server.delete(&labelled).await.granted();
}

fn status_of<'a>(conditions: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = conditions.as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
    condition["status"].as_str()
}
