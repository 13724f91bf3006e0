//! What `kubectl get` prints.

use serde_json::{Value, json};

use crate::harness::{Server, sample};

pub(crate) async fn check(server: &Server) {
    let mut held = sample(
        "RolloutPolicy",
        &json!({"suspension": {"dispatchingOnClusters": {"clusterNames": ["member2"]}, "reason": "checking"}}),
    );
    held["metadata"]["name"] = json!("held");
    let mut held = server.create(&held).await.granted();
    held["status"] = json!({"suspended": "member2"});
    server.replace(&held, "/status").await.granted();
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    // Path, wanted columns (those of -o wide in brackets), a row's name, and its cells but for name and age.
    let cases: [(&str, &str, &str, Value); 8] = [
        (
            "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies",
            "Name CONFLICT-RESOLUTION PRIORITY CLAIMED UP-TO-DATE PENDING FAILING AGE",
            "web",
            json!(["Abort", "0", null, null, null, null]),
        ),
        (
            "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies",
            "Name CONFLICT-RESOLUTION PRIORITY CLAIMED UP-TO-DATE PENDING FAILING AGE",
            "roles",
            json!(["Abort", "0", null, null, null, null]),
        ),
        (
            "/apis/policy.karmada.io/v1alpha1/namespaces/shop/overridepolicies",
            "Name Age",
            "web-image",
            json!([]),
        ),
        (
            "/apis/policy.karmada.io/v1alpha1/namespaces/shop/rolloutpolicies",
            "Name STRATEGY ROLLOUTS SUSPENDED REASON AGE",
            "held",
            json!([null, null, "member2", "checking"]),
        ),
        (
            "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings",
            "Name SCHEDULED FULLYAPPLIED ROLLOUT POLICY-GENERATION AGE",
            "api-deployment",
            json!(["True", "False", null, null]),
        ),
        (
            "/apis/work.karmada.io/v1alpha2/clusterresourcebindings",
            "Name SCHEDULED FULLYAPPLIED ROLLOUT POLICY-GENERATION AGE",
            "shop-reader-clusterrole",
            json!(["True", "True", null, "3"]),
        ),
        (
            "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works",
            "Name WORKLOAD-KIND APPLIED AGE",
            "api-84bb5b647b",
            json!(["Deployment", "True"]),
        ),
        (
            "/apis/cluster.karmada.io/v1alpha1/clusters",
            "Name Version Mode Ready Age [Zones] [Region] [Provider] [API-Endpoint] [Proxy-URL]",
            "member1",
            json!([
                "v0.0.0-master+$Format:%H$",
                "Push",
                "True",
                null,
                null,
                null,
                "https://127.0.0.1:7001",
                null
            ]),
        ),
    ];
    // What the recorded objects cannot have: it is ours.
    let record = json!({"metadata": {"annotations": {lockgate_api::keys::ACTIVATED_GENERATION: "3"}}});
    let path = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings/shop-reader-clusterrole";
    let patch = [("content-type", "application/merge-patch+json")];
    server.send("PATCH", path, &patch, Some(&record)).await.granted();
    for (path, columns, name, cells) in cases {
        let answer = server.send("GET", path, &table, None).await.granted();
        let found: Vec<String> = answer["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| {
                let name = column["name"].as_str().unwrap();
                if column["priority"] == 0 {
                    name.to_owned()
                } else {
                    format!("[{name}]")
                }
            })
            .collect();
        assert_eq!(found.join(" "), columns, "{path}");
        let age = found
            .iter()
            .position(|column| column.eq_ignore_ascii_case("age"))
            .unwrap();
        let row = answer["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["cells"][0] == name)
            .unwrap_or_else(|| panic!("{path}: no {name} in {answer}"));
        let mut shown = row["cells"].as_array().unwrap().clone();
        shown.remove(age);
        shown.remove(0);
        assert_eq!(Value::Array(shown), cells, "{path}");
    }
}
