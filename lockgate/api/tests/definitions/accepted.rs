//! What is accepted, and what it looks like afterwards.

use std::path::Path;

use machinery_value::decode;
use serde_json::{Map, Value, json};

use crate::harness::{NAMESPACE, Server, path, sample};

pub(crate) async fn check(server: &Server) {
    samples(server).await;
    variants(server).await;
    large(server).await;
    defaults(server).await;
    recorded(server).await;
}

fn data(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(text: &str) -> Value {
    decode::from_yaml(text.as_bytes()).unwrap().value
}

/// The policies of the proposals.
async fn samples(server: &Server) {
    for document in data("samples.yaml").split("\n---\n") {
        let mut object = yaml(document);
        let kind = object["kind"].as_str().unwrap();
        if matches!(kind, "PropagationPolicy" | "RolloutPolicy") {
            object["metadata"]["namespace"] = json!("default");
        }
        server.try_create(&object).await.granted();
    }
}

/// The other side of each refusal.
async fn variants(server: &Server) {
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "namespace": NAMESPACE});
    let overflow = |scheduling: Value| {
        json!({"placement": {"replicaScheduling": scheduling, "clusterAffinities": [
            {"affinityName": "a", "clusterNames": ["m"], "overflowAffinities": [
                {"affinityName": "example.com/b"}, {"affinityName": "c"}]},
            {"affinityName": "b"}]}})
    };
    let placement = |placement: Value| json!({"placement": placement});
    let rule = |overriders: Value| json!({"overrideRules": [{"overriders": overriders}]});
    let cases: Vec<(&[&str], Value)> = vec![
        (
            PROPAGATION,
            json!({"preemption": "Always", "resourceSelectors": [deployment]}),
        ),
        // Whether other kinds have a namespace is not known here.
        (
            &["ClusterPropagationPolicy"],
            json!({"preemption": "Always", "resourceSelectors": [
                {"apiVersion": "example.com/v1", "kind": "Deployment", "name": "a"},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "a"},
                {"apiVersion": "v1", "kind": "Namespace", "name": "a"}]}),
        ),
        (
            PROPAGATION,
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "namespace": "", "labelSelector": {
            "matchLabels": {"a": "b"}, "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["b"]}, {"key": "example.com/a", "operator": "DoesNotExist"}]}}]}),
        ),
        (
            PROPAGATION,
            json!({"resourceSelectors": [
                {"apiVersion": "v1", "kind": "Pod", "labelSelector": {
                    "matchLabels": {"a": "", "Example_1.a-b": "C_d.e-1", "my-domain.example.com/a": "a".repeat(63), "b".repeat(63): "1"},
                    "matchExpressions": [{"key": "a", "operator": "In", "values": ["", "b"]}]}},
                {"apiVersion": "v1", "kind": "Pod", "name": "a", "labelSelector": {"matchLabels": {"a b": "c"}}},
                {"apiVersion": "networking.istio.io/v1alpha3", "kind": "VirtualService"},
                {"apiVersion": "my--group.x-k8s.io/v1beta1-2", "kind": "foo-Bar1"}]}),
        ),
        (
            PROPAGATION,
            json!({"suspension": {"dispatching": false, "dispatchingOnClusters": {"clusterNames": ["a"]}}}),
        ),
        (
            PROPAGATION,
            json!({"suspension": {"dispatching": true, "dispatchingOnClusters": {"clusterNames": []}}}),
        ),
        (
            PROPAGATION,
            json!({"suspension": {"dispatching": false, "suspendDispatchingOnClusters": {"clusterNames": ["a"]}}}),
        ),
        (ROLLOUT, json!({})),
        (ROLLOUT, json!({"suspension": {}})),
        (
            ROLLOUT,
            json!({"strategy": {"type": "All"}, "moves": "BreakBeforeMake", "onFailure": "Pause"}),
        ),
        (
            ROLLOUT,
            json!({"strategy": {
                "type": "Progressive",
                "progressive": {
                    "maxConcurrency": "25%", "maxFailures": 0, "minSuccessTime": "1h30m", "progressDeadline": "None",
                    "mandatoryDecisionGroups": [{"groupName": "canary"}, {"groupIndex": 0}, {}],
                },
                "decisionGroups": [{
                    "groupName": "canary",
                    "groupClusterSelector": {"labelSelector": {"matchLabels": {"tier": "canary"}}},
                }],
                "clustersPerDecisionGroup": 3,
            }}),
        ),
        (
            ROLLOUT,
            json!({"suspension": {"dispatching": true, "reason": "a".repeat(1024)}}),
        ),
        (
            ROLLOUT,
            json!({"suspension": {"suspendDispatching": false, "dispatchingOnClusters": {"clusterNames": ["a"]}, "reason": ""}}),
        ),
        (
            &["ClusterRolloutPolicy"],
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "namespace": "other"}]}),
        ),
        (
            PROPAGATION,
            json!({"priority": -2_147_483_648_i64, "association": true, "dependentOverrides": ["a"],
            "preserveResourcesOnDeletion": true,
            "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "a"}}),
        ),
        (
            PROPAGATION,
            json!({"propagateDeps": true, "failover": {
            "application": {"decisionConditions": {"tolerationSeconds": 0}, "gracePeriodSeconds": 1, "statePreservation": {
                "rules": [{"aliasLabelName": "example.com/a", "jsonPath": "{.a}"}]}},
            "cluster": {"purgeMode": "Directly"}}}),
        ),
        (
            PROPAGATION,
            json!({"propagateDeps": true, "failover": {
            "application": {"decisionConditions": {}, "purgeMode": "Graciously", "gracePeriodSeconds": 1}}}),
        ),
        (
            PROPAGATION,
            overflow(json!({"replicaDivisionPreference": "Aggregated"})),
        ),
        (
            PROPAGATION,
            overflow(json!({"weightPreference": {"dynamicWeight": "AvailableReplicas"}})),
        ),
        (
            PROPAGATION,
            placement(json!({"clusterAffinity": {
            "fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]},
            "labelSelector": {"matchLabels": {"a": "b"}}, "clusterNames": ["a"], "exclude": ["b"]}})),
        ),
        (
            PROPAGATION,
            placement(json!({"clusterTolerations": [
            {"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}]})),
        ),
        (PROPAGATION, placement(json!({"spreadConstraints": [{}]}))),
        (
            PROPAGATION,
            placement(json!({"spreadConstraints": [{"spreadByLabel": "a"}, {"spreadByLabel": "b"}]})),
        ),
        (
            PROPAGATION,
            placement(json!({"spreadConstraints": [
            {"spreadByField": "region", "minGroups": 2, "maxGroups": 2}, {"spreadByField": "cluster", "maxGroups": 0}]})),
        ),
        (
            PROPAGATION,
            placement(json!({"spreadConstraints": [{"spreadByField": "provider"}, {}]})),
        ),
        (
            PROPAGATION,
            placement(json!({"workloadAffinity": {
            "affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "example.com/a"}}})),
        ),
        (OVERRIDE, json!({})),
        (
            OVERRIDE,
            json!({"overriders": {}, "overrideRules": [{"overriders": {}, "targetCluster": {}}]}),
        ),
        (
            OVERRIDE,
            json!({"targetCluster": {"clusterNames": ["a"]}, "overriders": {"labelsOverrider": [
            {"operator": "remove", "value": {"a": ""}}]}}),
        ),
        (
            OVERRIDE,
            rule(json!({
                "plaintext": [{"path": "/metadata/annotations/example.com~1a", "operator": "add", "value": {"any": [1, "b", null]}},
                    {"path": "/spec/replicas", "operator": "replace", "value": 3}, {"path": "/a", "operator": "remove"}],
                "imageOverrider": [{"component": "Registry", "operator": "replace", "value": "example.com", "predicate": {"path": "/spec/image"}},
                    {"component": "Tag", "operator": "remove"}],
                "commandOverrider": [{"containerName": "a", "operator": "add", "value": ["b"]}],
                "argsOverrider": [{"containerName": "a", "operator": "remove"}],
                "labelsOverrider": [{"operator": "add", "value": {"example.com/A_b.c": "D"}}],
                "annotationsOverrider": [{"operator": "replace", "value": {"Example.com/a": "any text\n"}}],
                "fieldOverrider": [
                    {"fieldPath": "/data/a", "json": [{"subPath": "", "operator": "replace", "value": {"a": 1}}]},
                    {"fieldPath": "/data/b", "yaml": [{"subPath": "/a/0", "operator": "remove"},
                        {"subPath": "/b", "operator": "add", "value": false}], "json": []}],
            })),
        ),
        (
            &["Cluster"],
            json!({"apiEndpoint": "http://[::1]:80/a@b", "proxyURL": "socks5://user:pass@proxy:1080",
            "proxyHeader": {"a": "b"}, "zone": "a", "zones": ["a"], "provider": "", "taints": [
                {"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]}),
        ),
        // A copy says what its policy said when it was accepted.
        (
            &["ResourceBinding", "ClusterResourceBinding"],
            json!({"placement": {
                "clusterAffinity": {"labelSelector": {"matchLabels": {"a b": "c d"}, "matchExpressions": [
                    {"key": "a b", "operator": "In", "values": ["c d"]}]}},
                "clusterAffinities": [{"affinityName": "a b", "labelSelector": {"matchLabels": {"": "a".repeat(64)}}}]}}),
        ),
        (
            &["Placement"],
            json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"a b": "c d"}}}}]}),
        ),
        (
            &["Cluster"],
            json!({"apiEndpoint": "", "proxyURL": "", "resourceModels": []}),
        ),
        (
            &["Cluster"],
            json!({"resourceModels": [
            {"grade": 0, "ranges": [{"name": "cpu", "min": 0, "max": "500m"}, {"name": "memory", "min": "0Gi", "max": "1Gi"}]},
            {"grade": 1, "ranges": [{"name": "memory", "min": "1024Mi", "max": "9223372036854775807"},
                {"name": "cpu", "min": 0.5.to_string(), "max": "9223372036854775807"}]}]}),
        ),
    ];
    let mut wrong = Vec::new();
    for (kinds, spec) in cases {
        for kind in kinds {
            let answer = server.try_create(&sample(kind, &spec)).await;
            if answer.code != 201 || !answer.warnings.is_empty() {
                wrong.push(format!(
                    "{kind} {spec}\n  answer: {} {}",
                    answer.code,
                    answer.message()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As large as the bounds allow: the rules must not cost more than a server spends on one object.
async fn large(server: &Server) {
    let many = |count: usize, item: &dyn Fn(usize) -> Value| (0..count).map(item).collect::<Vec<Value>>();
    let requirement = json!({"key": "example.com/key", "operator": "In", "values": ["a", "b"]});
    let labels = |count: usize| -> Map<String, Value> {
        (0..count)
            .map(|i| (format!("topology.example.com/label-{i}"), json!("value")))
            .collect()
    };
    let affinity =
        json!({"labelSelector": {"matchLabels": labels(2), "matchExpressions": vec![requirement; 8]}});
    let term = |name: String| {
        let mut term = affinity.clone();
        term["affinityName"] = json!(name);
        term
    };
    let cases: Vec<(&str, Value)> = vec![
        (
            "ClusterPropagationPolicy",
            json!({"preemption": "Always", "resourceSelectors": many(1000, &|i| json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "namespace": NAMESPACE, "name": format!("name-{i}")}))}),
        ),
        (
            "ClusterPropagationPolicy",
            json!({"resourceSelectors": many(100, &|_| json!({
                "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": labels(64)}}))}),
        ),
        (
            "ClusterPropagationPolicy",
            json!({"placement": {"replicaScheduling": {"weightPreference": {"staticWeightList": many(1000, &|i| json!({
                "targetCluster": affinity, "weight": i + 1}))}}}}),
        ),
        (
            "ClusterPropagationPolicy",
            json!({"placement": {"replicaScheduling": {"weightPreference": {"staticWeightList": many(5000, &|i| json!({
                "targetCluster": {"clusterNames": [format!("member{i}")]}, "weight": i + 1}))}}}}),
        ),
        (
            "ClusterPropagationPolicy",
            json!({"placement": {
            "replicaScheduling": {"replicaDivisionPreference": "Aggregated"},
            "clusterAffinities": many(64, &|i| {
                let mut group = term(format!("group-{i}"));
                group["overflowAffinities"] = Value::Array(many(16, &|j| term(format!("overflow-{j}"))));
                group
            })}}),
        ),
        (
            "ClusterRolloutPolicy",
            json!({
                "resourceSelectors": many(1000, &|i| json!({
                    "apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": format!("name-{i}")})),
                "suspension": {"dispatchingOnClusters": {"clusterNames": many(5000, &|i| json!(format!("member{i}")))}},
            }),
        ),
        (
            "OverridePolicy",
            json!({"overrideRules": many(1000, &|i| json!({
            "targetCluster": {"clusterNames": [format!("member{i}")]},
            "overriders": {
                "labelsOverrider": [{"operator": "add", "value": {"example.com/region": format!("region-{i}")}}],
                "fieldOverrider": [{"fieldPath": "/data/a", "json": [{"subPath": "/a", "operator": "add", "value": i}]}],
            }}))}),
        ),
        (
            "Cluster",
            json!({
                "taints": many(64, &|i| json!({"key": format!("example.com/taint-{i}"), "effect": "NoSchedule"})),
                "resourceModels": many(64, &|i| json!({"grade": i, "ranges": many(16, &|j| json!({
                    "name": format!("resource-{j}"), "min": i,
                    "max": if i == 63 { json!("9223372036854775807") } else { json!(i + 1) }}))})),
            }),
        ),
    ];
    for (kind, spec) in cases {
        let answer = server.try_create(&sample(kind, &spec)).await;
        let brief: String = answer.message().chars().take(2000).collect();
        assert_eq!(answer.code, 201, "{kind} {:.100}: {brief}", spec.to_string());
    }
}

const PROPAGATION: &[&str] = &["PropagationPolicy", "ClusterPropagationPolicy"];
const ROLLOUT: &[&str] = &["RolloutPolicy", "ClusterRolloutPolicy"];
const OVERRIDE: &[&str] = &["OverridePolicy", "ClusterOverridePolicy"];

/// What is filled in where nothing was said.
async fn defaults(server: &Server) {
    let selectors = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    let policy = |rest: Value| {
        let mut whole = json!({
            "resourceSelectors": selectors, "priority": 0, "preemption": "Never",
            "schedulerName": "default-scheduler", "conflictResolution": "Abort",
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        whole
    };
    let cases = [
        (PROPAGATION, json!({}), policy(json!({}))),
        (
            PROPAGATION,
            json!({"placement": {"replicaScheduling": {}, "spreadConstraints": [{"maxGroups": 2}]}}),
            policy(json!({"placement": {
                "replicaScheduling": {"replicaSchedulingType": "Divided"},
                "spreadConstraints": [{"maxGroups": 2, "minGroups": 1}]}})),
        ),
        (
            PROPAGATION,
            json!({"propagateDeps": true, "failover": {"application": {"decisionConditions": {}}, "cluster": {}}}),
            policy(json!({"propagateDeps": true, "failover": {
                "application": {"decisionConditions": {"tolerationSeconds": 300}, "purgeMode": "Gracefully"},
                "cluster": {"purgeMode": "Gracefully"}}})),
        ),
        (OVERRIDE, json!({}), json!({})),
        (
            &["ResourceBinding", "ClusterResourceBinding"],
            json!({}),
            json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "conflictResolution": "Abort"}),
        ),
        (&["Work"], json!({}), json!({})),
    ];
    for (kinds, spec, wanted) in cases {
        for kind in kinds {
            let answer = server.try_create(&sample(kind, &spec)).await.granted();
            assert_eq!(answer["spec"], wanted, "{kind} {spec}");
        }
    }
    // A cluster without models gets those that the recorded ones have.
    let recorded = yaml(&data("recorded/hub-clusters.yaml"))["items"][0]["spec"].clone();
    let answer = server.try_create(&sample("Cluster", &json!({}))).await.granted();
    assert_eq!(
        answer["spec"],
        json!({"syncMode": "Push", "resourceModels": recorded["resourceModels"]})
    );
}

/// Objects of a running control plane: they are taken as they are and nothing of them is lost.
async fn recorded(server: &Server) {
    for file in [
        "hub-templates",
        "hub-cluster-role",
        "hub-cluster-policy",
        "hub-policies-and-bindings",
        "hub-cluster-bindings",
        "hub-clusters",
        "hub-works-member1",
        "hub-works-member2",
        "hub-works-member3",
    ] {
        let document = yaml(&data(&format!("recorded/{file}.yaml")));
        let items = match document["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![document],
        };
        for item in items {
            as_applied(server, &item).await;
            as_stored(server, item).await;
        }
    }
}

/// What the user applied gets the recorded defaults.
async fn as_applied(server: &Server, item: &Value) {
    let Some(applied) =
        item["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str()
    else {
        return;
    };
    let applied: Value = serde_json::from_str(applied).unwrap();
    let answer = server.try_create(&applied).await.granted();
    if !item["apiVersion"]
        .as_str()
        .unwrap()
        .starts_with("policy.karmada.io/")
    {
        return;
    }
    for field in ["conflictResolution", "preemption", "priority", "schedulerName"] {
        assert_eq!(
            answer["spec"][field], item["spec"][field],
            "{field} of {}",
            item["metadata"]["name"]
        );
    }
}

/// What was stored can be restored, status and all.
async fn as_stored(server: &Server, mut item: Value) {
    let metadata = item["metadata"].as_object_mut().unwrap();
    // Given by the server, and owners that are not here.
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "ownerReferences",
    ] {
        metadata.remove(field);
    }
    let wanted = item.clone();
    let made = server.create(&item).await.granted();
    let name = format!("{} {}", item["kind"], item["metadata"]["name"]);
    assert_eq!(made["spec"], wanted["spec"], "{name}");
    assert_eq!(made["metadata"]["labels"], wanted["metadata"]["labels"], "{name}");
    assert_eq!(
        made["metadata"]["annotations"], wanted["metadata"]["annotations"],
        "{name}"
    );
    if wanted["status"]
        .as_object()
        .is_some_and(|status| !status.is_empty())
    {
        item["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
        server.replace(&item, "/status").await.granted();
        let now = server.get(&path(&item)).await.granted();
        assert_eq!(now["status"], wanted["status"], "{name}");
        assert_eq!(now["spec"], wanted["spec"], "{name}");
    }
}
