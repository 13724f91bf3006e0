//! Admission from outside: what is refused with a reason, what policies say, and what their status tells.

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, MERGE, Server};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn named(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn policy(name: &str, validations: Value) -> Value {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    named(
        "ValidatingAdmissionPolicy",
        name,
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations}),
    )
}

fn binding(name: &str, policy: &str, action: &str) -> Value {
    named(
        "ValidatingAdmissionPolicyBinding",
        name,
        json!({"policyName": policy, "validationActions": [action]}),
    )
}

#[tokio::test]
async fn webhooks_are_refused_whichever_way_they_come() {
    let server = Server::start().await;
    for (plural, kind) in [
        (
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        ),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    ] {
        let collection = format!("{GROUP}/{plural}");
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "hook"}, "webhooks": []});
        let one = format!("{collection}/hook");
        let answers = [
            server.post(&collection, object.clone()).await,
            server
                .send(
                    "PATCH",
                    &format!("{one}?fieldManager=t"),
                    "application/apply-patch+yaml",
                    object.to_string(),
                )
                .await,
        ];
        for answer in answers {
            let (code, reason, message) = answer.refusal();
            assert_eq!((code, reason), (403, "Forbidden"), "{message}");
            assert!(message.contains("calls no webhooks"), "{message}");
            assert!(message.contains("ValidatingAdmissionPolicy"), "{message}");
        }
        // There is none that could be changed into one that counts.
        assert_eq!(server.put(&one, object).await.code, 404);
        assert_eq!(server.get(&one).await.code, 404);
    }
}

#[tokio::test]
async fn a_policy_says_in_its_status_what_is_suspicious() {
    let server = Server::start().await;
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    let validations = json!([
        {"expression": "object.data.size() > 0"},
        {"expression": "object.spec.replicas > 1", "messageExpression": "'x' + string(object.data)"},
    ]);
    server
        .post(&policies, policy("odd", validations))
        .await
        .expect(201);
    let observed = |generation: i64| move |o: &Value| o["status"]["observedGeneration"] == generation;
    let odd = server.until(&policies, "odd", observed(1)).await;
    let kind = "/v1, Kind=ConfigMap";
    assert_eq!(
        odd["status"]["typeChecking"]["expressionWarnings"],
        json!([
            {
                "fieldRef": "spec.validations[1].expression",
                "warning": format!(
                    "{kind}: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.replicas > 1\n | ......^\n"
                ),
            },
            {
                "fieldRef": "spec.validations[1].messageExpression",
                "warning": format!(
                    "{kind}: ERROR: <input>:1:13: found no matching overload for 'string' applied to '(map(string, string))'\n \
                     | 'x' + string(object.data)\n | ............^\n"
                ),
            },
        ])
    );
    let mut mended = policy("odd", json!([{"expression": "object.data.size() > 0"}]));
    mended["metadata"]["resourceVersion"] = odd["metadata"]["resourceVersion"].clone();
    server.put(&format!("{policies}/odd"), mended).await.expect(200);
    let odd = server.until(&policies, "odd", observed(2)).await;
    assert_eq!(odd["status"]["typeChecking"], json!({}));
}

#[tokio::test]
async fn a_refusal_tells_what_others_warn_of() {
    let server = Server::start().await;
    let (policies, bindings) = (
        format!("{GROUP}/validatingadmissionpolicies"),
        format!("{GROUP}/validatingadmissionpolicybindings"),
    );
    server.config_map("old", json!({})).await;
    let never = |message: &str| json!([{"expression": "false", "message": message}]);
    server.post(&policies, policy("p", never("no"))).await.expect(201);
    server
        .post(&bindings, binding("denies", "p", "Deny"))
        .await
        .expect(201);
    server
        .post(&bindings, binding("warns", "p", "Warn"))
        .await
        .expect(201);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
    for answer in [
        server.post(CONFIG_MAPS, object).await,
        server.delete(&format!("{CONFIG_MAPS}/old"), json!({})).await,
    ] {
        let (code, _, message) = answer.refusal();
        assert_eq!(code, 422);
        assert!(
            message.ends_with("with binding 'denies' denied request: no"),
            "{message}"
        );
        assert_eq!(
            answer.headers["warning"],
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'warns': no\""
        );
    }
}

#[tokio::test]
async fn a_change_of_the_scale_is_judged_as_a_scale() {
    let server = Server::start().await;
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"]});
    let validation = json!({"expression": "object.spec.replicas < 10", "messageExpression":
        "request.subResource + ' ' + object.kind + ' from ' + string(oldObject.spec.replicas)"});
    let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]});
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    server
        .post(&policies, named("ValidatingAdmissionPolicy", "p", spec))
        .await
        .expect(201);
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    server
        .post(&bindings, binding("b", "p", "Deny"))
        .await
        .expect(201);
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let container = json!({"name": "c", "image": "i"});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec});
    server.post(deployments, deployment).await.expect(201);
    let scale = format!("{deployments}/d/scale");
    let to = |replicas: u32| json!({"spec": {"replicas": replicas}});
    let answer = server.patch(&scale, MERGE, to(12)).await;
    let (code, _, message) = answer.refusal();
    assert_eq!(code, 422);
    assert!(
        message.ends_with("denied request: scale Scale from 2"),
        "{message}"
    );
    server.patch(&scale, MERGE, to(9)).await.expect(200);
    // The object itself is another matter.
    let whole = format!("{deployments}/d");
    server.patch(&whole, MERGE, to(12)).await.expect(200);
}

/// A policy with a binding: `rule` may be done only if `expression` holds.
async fn guard(server: &Server, name: &str, rule: Value, expression: &str) {
    let spec =
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]});
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    server
        .post(&policies, named("ValidatingAdmissionPolicy", name, spec))
        .await
        .expect(201);
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    server
        .post(&bindings, binding(name, name, "Deny"))
        .await
        .expect(201);
}

#[tokio::test]
async fn a_rule_about_definitions_does_not_keep_them_from_being_served_or_removed() {
    let server = Server::start().await;
    let only_tester = "request.userInfo.username == 'tester'";
    let definitions = json!({"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["customresourcedefinitions"]});
    guard(&server, "definitions", definitions, only_tester).await;
    let gadgets =
        json!({"apiGroups": ["lab.io"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*"]});
    guard(&server, "gadgets", gadgets, "false").await;
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.lab.io"}, "spec": {"group": "lab.io", "scope": "Cluster",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    server.post(collection, definition).await.expect(201);
    let established = |d: &Value| d["status"]["conditions"].to_string().contains("Established");
    server.until(collection, "gadgets.lab.io", established).await;
    let gadget = json!({"apiVersion": "lab.io/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    server.post("/apis/lab.io/v1/gadgets", gadget).await.expect(201);
    server
        .delete(&format!("{collection}/gadgets.lab.io"), json!({}))
        .await
        .expect(200);
    server.gone(collection, "gadgets.lab.io").await;
}

#[tokio::test]
async fn a_rule_about_namespaces_does_not_keep_them_from_going() {
    let server = Server::start().await;
    let namespaces = json!({"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["namespaces"]});
    guard(&server, "namespaces", namespaces, "false").await;
    // Known by its account, as on a cluster.
    let secrets =
        json!({"apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["secrets"]});
    let by_cluster = "request.userInfo.username == 'system:serviceaccount:kube-system:namespace-controller' \
                      && 'system:serviceaccounts:kube-system' in request.userInfo.groups";
    guard(&server, "secrets", secrets, by_cluster).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    server.post("/api/v1/namespaces", namespace).await.expect(201);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    server
        .post("/api/v1/namespaces/n/secrets", secret)
        .await
        .expect(201);
    let refused = server.delete("/api/v1/namespaces/n/secrets/s", json!({})).await;
    assert_eq!(refused.refusal().0, 422);
    server.delete("/api/v1/namespaces/n", json!({})).await.expect(200);
    server.gone("/api/v1/namespaces", "n").await;
}

#[tokio::test]
async fn what_lost_its_owner_goes_in_the_name_of_the_garbage_collector() {
    let server = Server::start().await;
    let maps = json!({"apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["configmaps"]});
    let by_collector =
        "request.userInfo.username == 'system:serviceaccount:kube-system:generic-garbage-collector'";
    guard(&server, "maps", maps, by_collector).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owner"}});
    let (secrets, maps) = (
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/configmaps",
    );
    let owner = server.post(secrets, secret).await.expect(201);
    let reference =
        json!({"apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": owner["metadata"]["uid"]});
    let owned = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "owned", "ownerReferences": [reference]}});
    server.post(maps, owned).await.expect(201);
    let refused = server.delete(&format!("{maps}/owned"), json!({})).await;
    assert_eq!(refused.refusal().0, 422);
    server
        .delete(&format!("{secrets}/owner"), json!({}))
        .await
        .expect(200);
    server.gone(maps, "owned").await;
}
