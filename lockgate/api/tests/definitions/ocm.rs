//! What is accepted of OCM's kinds, what is filled in, what tables show, and who may accept and bind.

use lockgate_api::ocm::COPIED_LABELS;
use serde_json::{Value, json};

use crate::harness::{NAMESPACE, Server, path, sample};

pub(crate) async fn check(server: &Server) {
    defaults(server).await;
    accepted(server).await;
    names(server).await;
    statuses(server).await;
    taint_times(server).await;
    rights(server).await;
}

async fn defaults(server: &Server) {
    let exclusive = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    let cases = [
        (
            "ManagedCluster",
            json!({}),
            json!({"hubAcceptsClient": false, "leaseDurationSeconds": 60}),
        ),
        ("ManagedClusterSet", json!({}), exclusive),
        (
            "Placement",
            json!({}),
            json!({"sortBy": "ClusterName", "scoreRateLimit": "1m"}),
        ),
        (
            "Placement",
            json!({
                "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Steady"}}]},
                "tolerations": [{"key": "a"}],
                "decisionStrategy": {"groupStrategy": {}},
                "spreadPolicy": {"spreadConstraints": [{"topologyKey": "a", "topologyKeyType": "Label"}]},
            }),
            json!({
                "prioritizerPolicy": {"mode": "Additive", "configurations": [
                    {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 1}]},
                "tolerations": [{"key": "a", "operator": "Equal"}],
                "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}},
                "spreadPolicy": {"spreadConstraints": [{
                    "topologyKey": "a", "topologyKeyType": "Label", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
                "sortBy": "ClusterName", "scoreRateLimit": "1m",
            }),
        ),
    ];
    for (kind, spec, wanted) in cases {
        let made = server.try_create(&sample(kind, &spec)).await.granted();
        assert_eq!(made["spec"], wanted, "{kind} {spec}");
    }
    // Without a spec at all.
    for kind in ["ManagedCluster", "ManagedClusterSet", "Placement"] {
        let mut object = sample(kind, &json!({}));
        object.as_object_mut().unwrap().remove("spec");
        server.try_create(&object).await.granted();
    }
}

/// The other side of each refusal, and as large as the bounds allow.
async fn accepted(server: &Server) {
    let groups = |value: Value| json!({"decisionStrategy": {"groupStrategy": value}});
    let many = |count: usize, item: &dyn Fn(usize) -> Value| (0..count).map(item).collect::<Vec<Value>>();
    let requirement = json!({"key": "example.com/key", "operator": "In", "values": ["a", "b"]});
    let cases: Vec<(&str, Value)> = vec![
        (
            "Placement",
            json!({"numberOfClusters": 0, "clusterSets": ["a", "b"]}),
        ),
        ("Placement", groups(json!({"clustersPerDecisionGroup": 1}))),
        ("Placement", groups(json!({"clustersPerDecisionGroup": "1%"}))),
        ("Placement", groups(json!({"clustersPerDecisionGroup": "100%"}))),
        (
            "Placement",
            groups(
                json!({"decisionGroups": [{"groupName": "g1", "groupClusterSelector": {
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                "claimSelector": {"matchExpressions": [{"key": "a.b", "operator": "In", "values": ["x y"]}]}}}]}),
            ),
        ),
        // Told by a condition.
        (
            "Placement",
            json!({"prioritizerPolicy": {"mode": "Sometimes", "configurations": [{}]}}),
        ),
        (
            "Placement",
            json!({"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "tolerationSeconds": 5, "effect": "NoSelect"}]}),
        ),
        (
            "Placement",
            json!({
                "predicates": many(64, &|i| json!({"requiredClusterSelector": {
                    "labelSelector": {"matchExpressions": vec![requirement.clone(); 8]},
                    "claimSelector": {"matchExpressions": vec![requirement.clone(); 8]},
                    "celSelector": {"celExpressions": [format!("managedCluster.metadata.name != 'c{i}'")]}}})),
                "tolerations": many(256, &|i| json!({"key": format!("example.com/taint-{i}"), "operator": "Exists"})),
                "decisionStrategy": {"groupStrategy": {"decisionGroups": many(256, &|i| json!({
                    "groupName": format!("group-{i}"),
                    "groupClusterSelector": {"labelSelector": {"matchExpressions": vec![requirement.clone(); 8]}}}))}},
            }),
        ),
        (
            "ManagedCluster",
            json!({"managedClusterClientConfigs": [{"url": "https://a:443/b", "caBundle": "YQ=="}], "taints": [
                {"key": "a", "effect": "NoSelect", "timeAdded": null},
                {"key": "example.com/a", "value": "b", "effect": "NoSelectIfNew", "timeAdded": "2026-01-02T03:04:05Z"}]}),
        ),
        (
            "ManagedClusterSet",
            json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}, "managedNamespaces": [{"name": "a"}]}),
        ),
    ];
    for (kind, spec) in cases {
        let answer = server.try_create(&sample(kind, &spec)).await;
        let brief: String = answer.message().chars().take(1000).collect();
        assert_eq!(answer.code, 201, "{kind} {:.200}: {brief}", spec.to_string());
    }
}

async fn names(server: &Server) {
    for (kind, name, good) in [
        ("ManagedCluster", "a".repeat(63), true),
        ("ManagedCluster", "a".repeat(64), false),
        ("ManagedCluster", "a.b".to_owned(), false),
        ("Placement", "a".repeat(63), true),
        ("Placement", "a".repeat(64), false),
    ] {
        let mut object = sample(kind, &json!({}));
        object["metadata"]["name"] = json!(name);
        let answer = server.try_create(&object).await;
        assert_eq!(
            answer.code,
            if good { 201 } else { 422 },
            "{kind} {name} {}",
            answer.body
        );
    }
}

/// Kinds with a status alone, and what tables show.
async fn statuses(server: &Server) {
    let decision = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": "web-decision-1", "namespace": NAMESPACE},
    });
    let mut decision = server.create(&decision).await.granted();
    decision["status"] = json!({"decisions": [{"clusterName": "member1", "reason": ""}]});
    let decision = server.replace(&decision, "/status").await.granted();
    let mut large = decision.clone();
    let clusters: Vec<Value> = (0..101)
        .map(|i| json!({"clusterName": format!("c{i}"), "reason": ""}))
        .collect();
    large["status"]["decisions"] = json!(clusters);
    assert_eq!(
        server.replace(&large, "/status").await.code,
        422,
        "more than a hundred"
    );

    let score = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore",
        "metadata": {"name": "usage", "namespace": NAMESPACE},
    });
    let mut score = server.create(&score).await.granted();
    score["status"] =
        json!({"scores": [{"name": "cpu", "value": 100}], "validUntil": "2026-01-02T03:04:05Z"});
    let mut score = server.replace(&score, "/status").await.granted();
    score["status"]["scores"][0]["value"] = json!(101);
    assert_eq!(
        server.replace(&score, "/status").await.code,
        422,
        "more than the best"
    );

    let mut placement = server.create(&sample("Placement", &json!({}))).await.granted();
    placement["status"] = json!({
        "numberOfSelectedClusters": 2,
        "decisionGroups": [{"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["a"], "clusterCount": 2}],
        "conditions": [{"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled",
            "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
    });
    server.replace(&placement, "/status").await.granted();
    let mut cluster = sample(
        "ManagedCluster",
        &json!({"managedClusterClientConfigs": [{"url": "https://a:443"}]}),
    );
    cluster["metadata"]["name"] = json!("shown");
    let mut cluster = server.create(&cluster).await.granted();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"});
    cluster["status"] = json!({
        "conditions": [condition("ManagedClusterJoined"), condition("ManagedClusterConditionAvailable")],
        "allocatable": {"cpu": "4", "memory": "8Gi"}, "clusterClaims": [{"name": "a", "value": "b"}],
    });
    server.replace(&cluster, "/status").await.granted();
    server
        .create(&sample("ManagedClusterSet", &json!({})))
        .await
        .granted();

    let policy = json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "metadata": {"name": "shown", "namespace": NAMESPACE},
        "spec": {"disabled": false, "remediationAction": "enforce", "policy-templates": [{"objectDefinition": {}}]},
    });
    let mut policy = server.create(&policy).await.granted();
    policy["status"] = json!({"compliant": "NonCompliant", "rolloutStatus": "Progressing"});
    server.replace(&policy, "/status").await.granted();

    let group = "/apis/cluster.open-cluster-management.io";
    for (path, columns, cells) in [
        (
            format!("/apis/policy.open-cluster-management.io/v1/namespaces/{NAMESPACE}/policies/shown"),
            "Name Remediation action Compliance state Rollout status Age",
            json!(["shown", "enforce", "NonCompliant", "Progressing"]),
        ),
        (
            format!("{group}/v1/managedclusters/shown"),
            "Name Hub Accepted Managed Cluster URLs Joined Available Age",
            json!(["shown", false, "https://a:443", "True", "True"]),
        ),
        (
            format!("{group}/v1beta2/managedclustersets/sample"),
            "Name Empty Age",
            json!(["sample", null]),
        ),
        (
            format!("{group}/v1beta1/namespaces/{NAMESPACE}/placements/sample"),
            "Name Succeeded Reason SelectedClusters",
            json!(["sample", "True", "AllDecisionsScheduled", 2]),
        ),
    ] {
        let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
        let answer = server.send("GET", &path, &table, None).await.granted();
        let found: Vec<&str> = answer["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        assert_eq!(found.join(" "), columns, "{path}");
        let mut shown = answer["rows"][0]["cells"].as_array().unwrap().clone();
        if found.last() == Some(&"Age") {
            shown.pop();
        }
        assert_eq!(Value::Array(shown), cells, "{path}");
    }
}

/// When a taint counts from is not up to who writes it: one that is new or changed gets its time from the controllers.
async fn taint_times(server: &Server) {
    let taint = |effect: &str, time: Value| {
        let mut taint = json!({"key": "gpu", "value": "yes", "effect": effect});
        if !time.is_null() {
            taint["timeAdded"] = time;
        }
        taint
    };
    let (then, later) = ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z");
    let taints = |taints: Value| json!({"spec": {"taints": taints}});
    let object = sample(
        "ManagedCluster",
        &json!({"taints": [taint("NoSelect", json!(then))]}),
    );
    let cluster = server.create(&object).await.granted();
    let system = json!({"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect", "timeAdded": later});
    for (change, good) in [
        (taints(json!([taint("NoSelect", json!(then))])), true),
        (taints(json!([taint("NoSelect", json!(later))])), false),
        (taints(json!([taint("NoSelectIfNew", json!(then))])), false),
        (taints(json!([taint("NoSelectIfNew", Value::Null)])), true),
        // What the controllers write.
        (taints(json!([taint("NoSelectIfNew", json!(later))])), true),
        (
            taints(json!([taint("NoSelectIfNew", json!(later)), system])),
            true,
        ),
        (json!({"metadata": {"labels": {"a": "b"}}}), true),
        (
            taints(json!([{"key": "new", "effect": "NoSelect", "timeAdded": later}])),
            false,
        ),
        (taints(json!([{"key": "new", "effect": "NoSelect"}])), true),
        (taints(Value::Null), true),
    ] {
        let answer = server.merge(&cluster, &change, None).await;
        assert_eq!(
            answer.code,
            if good { 200 } else { 422 },
            "{change} {}",
            answer.body
        );
        assert!(
            good || answer.message().contains("spec.taints[].timeAdded"),
            "{}",
            answer.message()
        );
    }
    server.delete(&cluster).await.granted();
}

/// Whoever accepts a cluster or binds a set needs the right to do so.
async fn rights(server: &Server) {
    let group = "cluster.open-cluster-management.io";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "half"},
        "rules": [
            {"apiGroups": [group], "resources": ["managedclusters", "managedclustersetbindings"], "verbs": ["*"]},
            {"apiGroups": [group], "resources": ["managedclustersets/bind"], "resourceNames": ["allowed"], "verbs": ["create"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "half"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "half"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "half"}],
    });
    server.create(&role).await.granted();
    server.create(&binding).await.granted();
    let named = |kind: &str, name: &str, spec: Value| {
        let mut object = sample(kind, &spec);
        object["metadata"]["name"] = json!(name);
        object
    };
    let accepted = named("ManagedCluster", "wanted", json!({"hubAcceptsClient": true}));
    let cases = [
        (named("ManagedCluster", "wanted", json!({})), true),
        (accepted, false),
        (
            named(
                "ManagedClusterSetBinding",
                "allowed",
                json!({"clusterSet": "allowed"}),
            ),
            true,
        ),
        (
            named(
                "ManagedClusterSetBinding",
                "other",
                json!({"clusterSet": "other"}),
            ),
            false,
        ),
    ];
    for (object, good) in cases {
        let try_it = async || {
            let collection = path(&object);
            let collection = collection.rsplit_once('/').unwrap().0;
            let headers = [("content-type", "application/json"), ("impersonate-user", "half")];
            server
                .send(
                    "POST",
                    &format!("{collection}?dryRun=All"),
                    &headers,
                    Some(&object),
                )
                .await
        };
        let wanted = if good { 201 } else { 403 };
        // A real server learns of roles and admission policies a moment later.
        server
            .until("rights", async || (try_it().await.code == wanted).then_some(()))
            .await;
    }
    // To delete one that was denied after it joined is to accept it: the controllers make it again.
    let delete = async |name: &str, annotations: Value| {
        let mut object = named("ManagedCluster", name, json!({}));
        object["metadata"]["annotations"] = annotations;
        server.create(&object).await.granted();
        let headers = [("impersonate-user", "half")];
        server.send("DELETE", &path(&object), &headers, None).await.code
    };
    assert_eq!(delete("never-joined", json!({})).await, 200);
    assert_eq!(delete("denied", json!({COPIED_LABELS: "a"})).await, 403);
    server
        .delete(&named("ManagedCluster", "denied", json!({})))
        .await
        .granted();
}
