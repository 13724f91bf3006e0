//! What goes when something goes: finalizers, owners and dependents, namespaces.

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, JSON_PATCH, MERGE, Server};

fn owned(name: &str, owner: &Value, block: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block}]}})
}

#[tokio::test]
async fn a_finalizer_holds_an_object() {
    let server = Server::start().await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    server.post(CONFIG_MAPS, body).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let going = server.delete(&path, json!({})).await.expect(200);
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 0);
    // Twice is as good as once, and nothing new may hold it.
    server.delete(&path, json!({})).await.expect(200);
    let more = json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/more"}]);
    assert_eq!(server.patch(&path, JSON_PATCH, more).await.refusal().0, 422);
    let less = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"}, {"op": "remove", "path": "/metadata/finalizers/0"}]);
    server.patch(&path, JSON_PATCH, less).await.expect(200);
    assert_eq!(server.get(&path).await.code, 404);
}

#[tokio::test]
async fn preconditions_protect_a_namesake() {
    let server = Server::start().await;
    let made = server.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}});
    assert_eq!(server.delete(&path, wrong).await.refusal().0, 409);
    let stale = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(server.delete(&path, stale).await.refusal().0, 409);
    let right = json!({"preconditions": {"uid": made["metadata"]["uid"]}});
    let status = server.delete(&path, right).await.expect(200);
    assert_eq!(status["details"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let server = Server::start().await;
    let owner = server.config_map("owner", json!({})).await;
    server
        .post(CONFIG_MAPS, owned("child", &owner, false))
        .await
        .expect(201);
    server
        .delete(
            &format!("{CONFIG_MAPS}/owner"),
            json!({"propagationPolicy": "Background"}),
        )
        .await
        .expect(200);
    server.gone(CONFIG_MAPS, "child").await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_waits() {
    let server = Server::start().await;
    let owner = server.config_map("owner", json!({})).await;
    let mut child = owned("child", &owner, true);
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(CONFIG_MAPS, child).await.expect(201);
    let going = server
        .delete(
            &format!("{CONFIG_MAPS}/owner"),
            json!({"propagationPolicy": "Foreground"}),
        )
        .await
        .expect(200);
    assert_eq!(going["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    server
        .until(CONFIG_MAPS, "child", |c| {
            c["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
    assert_eq!(
        server.get(&format!("{CONFIG_MAPS}/owner")).await.code,
        200,
        "its dependent is still there"
    );
    server
        .patch(
            &format!("{CONFIG_MAPS}/child"),
            MERGE,
            json!({"metadata": {"finalizers": null}}),
        )
        .await
        .expect(200);
    server.gone(CONFIG_MAPS, "owner").await;
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let server = Server::start().await;
    let owner = server.config_map("owner", json!({})).await;
    server
        .post(CONFIG_MAPS, owned("child", &owner, false))
        .await
        .expect(201);
    server
        .delete(
            &format!("{CONFIG_MAPS}/owner"),
            json!({"propagationPolicy": "Orphan"}),
        )
        .await
        .expect(200);
    server.gone(CONFIG_MAPS, "owner").await;
    let child = server.get(&format!("{CONFIG_MAPS}/child")).await.expect(200);
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn one_living_owner_is_enough() {
    let server = Server::start().await;
    let (one, two) = (
        server.config_map("one", json!({})).await,
        server.config_map("two", json!({})).await,
    );
    let mut child = owned("child", &one, false);
    let second = owned("child", &two, false)["metadata"]["ownerReferences"][0].clone();
    child["metadata"]["ownerReferences"]
        .as_array_mut()
        .unwrap()
        .push(second);
    server.post(CONFIG_MAPS, child).await.expect(201);
    server
        .delete(&format!("{CONFIG_MAPS}/one"), json!({}))
        .await
        .expect(200);
    let child = server
        .until(CONFIG_MAPS, "child", |c| {
            c["metadata"]["ownerReferences"].as_array().unwrap().len() == 1
        })
        .await;
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "two");
}

#[tokio::test]
async fn an_owner_of_an_unknown_kind_proves_nothing() {
    let server = Server::start().await;
    let mut child = owned("child", &json!({"metadata": {"name": "x", "uid": "u"}}), false);
    child["metadata"]["ownerReferences"][0]["apiVersion"] = json!("example.com/v1");
    child["metadata"]["ownerReferences"][0]["kind"] = json!("Nonesuch");
    server.post(CONFIG_MAPS, child).await.expect(201);
    // A second orphan whose owner is known to be missing goes: by then the first was looked at too.
    server
        .post(
            CONFIG_MAPS,
            owned(
                "orphan",
                &json!({"metadata": {"name": "gone", "uid": "u2"}}),
                false,
            ),
        )
        .await
        .expect(201);
    server.gone(CONFIG_MAPS, "orphan").await;
    server.get(&format!("{CONFIG_MAPS}/child")).await.expect(200);
    // As soon as its kind is served, it is known to be missing.
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "nonesuches.example.com"}, "spec": {
            "group": "example.com", "names": {"kind": "Nonesuch", "plural": "nonesuches"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, definition).await.expect(201);
    server.gone(CONFIG_MAPS, "child").await;
}

#[tokio::test]
async fn a_namespace_takes_its_content_along() {
    let server = Server::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    server.post("/api/v1/namespaces", namespace).await.expect(201);
    let inside = "/api/v1/namespaces/shop/configmaps";
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    server.post(inside, body).await.expect(201);
    server
        .post(
            inside,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "free"}}),
        )
        .await
        .expect(201);
    let going = server
        .delete("/api/v1/namespaces/shop", json!({}))
        .await
        .expect(200);
    assert_eq!(going["status"]["phase"], "Terminating");
    server.gone(inside, "free").await;
    let late = server
        .post(
            inside,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}),
        )
        .await;
    assert_eq!(late.refusal().0, 403);
    assert!(late.refusal().2.contains("because it is being terminated"));
    let told = |n: &Value| n["status"]["conditions"].to_string().contains("example.com/hold");
    server.until("/api/v1/namespaces", "shop", told).await;
    server
        .patch(
            &format!("{inside}/held"),
            MERGE,
            json!({"metadata": {"finalizers": null}}),
        )
        .await
        .expect(200);
    server.gone("/api/v1/namespaces", "shop").await;
}

#[tokio::test]
async fn the_default_namespace_stays() {
    let server = Server::start().await;
    assert_eq!(
        server
            .delete("/api/v1/namespaces/default", json!({}))
            .await
            .refusal()
            .0,
        403
    );
}

/// More than go in one turn, and one that a policy keeps: it holds up none of the others, and the namespace says why it is there.
#[tokio::test]
async fn a_large_namespace_goes_but_for_what_is_refused() {
    let server = Server::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}});
    server.post("/api/v1/namespaces", namespace).await.expect(201);
    let config_maps = "/api/v1/namespaces/large/configmaps";
    for number in 0..1_200 {
        let name = if number == 0 {
            "a-kept".to_owned()
        } else {
            format!("c{number}")
        };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        server.post(config_maps, object).await.expect(201);
    }
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]});
    let validation =
        json!({"expression": "oldObject.metadata.name != 'a-kept'", "message": "it is dear to us"});
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    server
        .post(&format!("{group}/validatingadmissionpolicies"), policy)
        .await
        .expect(201);
    let bindings = format!("{group}/validatingadmissionpolicybindings");
    server.post(&bindings, binding).await.expect(201);
    server
        .delete("/api/v1/namespaces/large", json!({}))
        .await
        .expect(200);
    let told = |namespace: &Value| {
        let conditions = namespace["status"]["conditions"].to_string();
        conditions.contains("it is dear to us") && conditions.contains("configmaps. has 1 resource instances")
    };
    server.until("/api/v1/namespaces", "large", told).await;
    server
        .delete(&format!("{bindings}/p"), json!({}))
        .await
        .expect(200);
    server.gone("/api/v1/namespaces", "large").await;
}
