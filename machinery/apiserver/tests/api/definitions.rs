//! Custom resources: served at once, pruned, defaulted, validated, in several versions, gone with their definition.

use serde_json::{Value, json};

use crate::harness::{MERGE, Server, version};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/lab.io/v1/namespaces/default/widgets";

fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "color": {"type": "string", "enum": ["red", "green"]},
            "replicas": {"type": "integer", "default": 1, "maximum": 10}},
            "x-kubernetes-validations": [{"rule": "self.replicas != 7", "message": "seven is taken"},
                {"rule": "self.replicas >= oldSelf.replicas", "message": "never down"}]},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.lab.io"},
        "spec": {"group": "lab.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema,
                 "selectableFields": [{"jsonPath": ".spec.color"}],
                 "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}],
                 "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}},
                {"name": "v1beta1", "served": true, "storage": false, "deprecated": true, "schema": schema}]}})
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "lab.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let server = Server::start().await;
    assert_eq!(server.get(WIDGETS).await.code, 404);
    server.post(DEFINITIONS, definition()).await.expect(201);
    let made = server
        .post(WIDGETS, widget("w", json!({"color": "red", "bogus": 1})))
        .await;
    assert_eq!(
        made.headers["warning"],
        "299 - \"unknown field \\\"spec.bogus\\\"\""
    );
    assert_eq!(made.expect(201)["spec"], json!({"color": "red", "replicas": 1}));
    let established = |d: &Value| d["status"]["conditions"].to_string().contains("Established");
    let told = server.until(DEFINITIONS, "widgets.lab.io", established).await;
    assert_eq!(told["status"]["storedVersions"], json!(["v1"]));
    let group = server.get("/apis/lab.io/v1").await.expect(200);
    assert!(group.to_string().contains("widgets/scale"));
    let documents = server.get("/openapi/v3").await.expect(200);
    assert!(documents["paths"].get("apis/lab.io/v1").is_some());
}

#[tokio::test]
async fn a_document_is_named_by_its_content() {
    let mut addresses = Vec::new();
    for color in ["red", "red", "blue"] {
        // Each is the first definition of its server.
        let server = Server::start().await;
        let mut definition = definition();
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"]["properties"]["color"]["description"] = json!(color);
        server.post(DEFINITIONS, definition).await.expect(201);
        let documents = server.get("/openapi/v3").await.expect(200);
        let address = &documents["paths"]["apis/lab.io/v1"]["serverRelativeURL"];
        let address = address.as_str().unwrap().to_owned();
        let document = server.get(&address).await.expect(200);
        assert!(document.to_string().contains(color));
        addresses.push(address);
    }
    assert_eq!(addresses[0], addresses[1]);
    assert_ne!(addresses[0], addresses[2]);
}

#[tokio::test]
async fn conversion_by_a_webhook_is_refused() {
    let server = Server::start().await;
    let mut definition = definition();
    definition["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://example.com/convert"}},
    });
    let answer = server.post(DEFINITIONS, definition).await;
    let (code, _, message) = answer.refusal();
    assert_eq!(code, 422);
    assert!(
        message.contains("spec.conversion.strategy: Forbidden: this server calls no webhooks"),
        "{message}"
    );
}

#[tokio::test]
async fn objects_are_held_to_their_schema() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition()).await.expect(201);
    for (spec, says) in [
        (
            json!({"color": "blue"}),
            "spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\"",
        ),
        (
            json!({"replicas": "x"}),
            "spec.replicas in body must be of type integer",
        ),
        (
            json!({"replicas": 11}),
            "spec.replicas in body should be less than or equal to 10",
        ),
        (json!({"replicas": 7}), "seven is taken"),
    ] {
        let answer = server.post(WIDGETS, widget("w", spec)).await;
        let (code, _, message) = answer.refusal();
        assert_eq!(code, 422);
        assert!(message.contains(says), "{message}");
    }
    server
        .post(WIDGETS, widget("w", json!({"replicas": 5})))
        .await
        .expect(201);
    let answer = server
        .patch(&format!("{WIDGETS}/w"), MERGE, json!({"spec": {"replicas": 2}}))
        .await;
    assert!(answer.refusal().2.contains("never down"), "{}", answer.value);
}

#[tokio::test]
async fn versions_are_views_of_one_object() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition()).await.expect(201);
    let old = "/apis/lab.io/v1beta1/namespaces/default/widgets";
    let mut body = widget("w", json!({"color": "green"}));
    body["apiVersion"] = json!("lab.io/v1beta1");
    let answer = server.post(old, body).await;
    assert_eq!(
        answer.headers["warning"],
        "299 - \"lab.io/v1beta1 Widget is deprecated; use lab.io/v1 Widget\""
    );
    let made = answer.expect(201);
    let read = server.get(&format!("{WIDGETS}/w")).await.expect(200);
    assert_eq!(
        (read["apiVersion"].as_str(), version(&read)),
        (Some("lab.io/v1"), version(&made))
    );
    assert_eq!(read["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn a_new_default_shows_in_old_objects() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition()).await.expect(201);
    let made = server.post(WIDGETS, widget("w", json!({}))).await.expect(201);
    let mut changed = server
        .get(&format!("{DEFINITIONS}/widgets.lab.io"))
        .await
        .expect(200);
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] =
        json!({"type": "integer", "default": 3});
    loop {
        // The definition's own controller may write its status in between.
        let answer = server
            .put(&format!("{DEFINITIONS}/widgets.lab.io"), changed.clone())
            .await;
        if answer.code == 200 {
            break;
        }
        assert_eq!(answer.code, 409);
        let now = server
            .get(&format!("{DEFINITIONS}/widgets.lab.io"))
            .await
            .expect(200);
        changed["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    }
    let read = server.get(&format!("{WIDGETS}/w")).await.expect(200);
    assert_eq!(read["spec"]["size"], 3);
    assert_eq!(
        version(&read),
        version(&made),
        "the object itself was not written"
    );
    let listed = server.get(WIDGETS).await.expect(200);
    assert_eq!(listed["items"][0]["spec"]["size"], 3);
}

#[tokio::test]
async fn declared_fields_select_and_columns_print() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition()).await.expect(201);
    server
        .post(WIDGETS, widget("r", json!({"color": "red"})))
        .await
        .expect(201);
    server
        .post(WIDGETS, widget("g", json!({"color": "green"})))
        .await
        .expect(201);
    let list = server
        .get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dred"))
        .await
        .expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        server
            .get(&format!("{WIDGETS}?fieldSelector=spec.replicas%3D1"))
            .await
            .code,
        400
    );
}

#[tokio::test]
async fn objects_go_with_their_definition() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition()).await.expect(201);
    server.post(WIDGETS, widget("w", json!({}))).await.expect(201);
    server
        .delete(&format!("{DEFINITIONS}/widgets.lab.io"), json!({}))
        .await
        .expect(200);
    server.gone(DEFINITIONS, "widgets.lab.io").await;
    assert_eq!(server.get(WIDGETS).await.code, 404);
    server.post(DEFINITIONS, definition()).await.expect(201);
    assert!(
        server.get(WIDGETS).await.expect(200)["items"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_definition_that_makes_no_sense_is_refused() {
    let server = Server::start().await;
    let mut body = definition();
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.nonsense +"}]);
    let answer = server.post(DEFINITIONS, body).await;
    assert_eq!(answer.refusal().0, 422, "{}", answer.value);
    let mut body = definition();
    body["metadata"]["name"] = json!("gadgets.lab.io");
    assert_eq!(server.post(DEFINITIONS, body).await.refusal().0, 422);
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_says_something_new() {
    let server = Server::start().await;
    server.post(DEFINITIONS, definition()).await.expect(201);
    let established = |d: &Value| d["status"]["conditions"].to_string().contains("Established");
    let before = server.until(DEFINITIONS, "widgets.lab.io", established).await;
    let made = server
        .post(WIDGETS, widget("w", json!({"color": "red"})))
        .await
        .expect(201);
    let from = |version: &str| format!("{WIDGETS}?watch=1&resourceVersion={version}");
    let mut watch = server.watch(&from(version(&made))).await;
    // A label is nothing new to those who read widgets.
    let path = format!("{DEFINITIONS}/widgets.lab.io");
    server
        .patch(&path, MERGE, json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .expect(200);
    let one = format!("{WIDGETS}/w");
    let green = server
        .patch(&one, MERGE, json!({"spec": {"color": "green"}}))
        .await
        .expect(200);
    assert_eq!(watch.brief().await, "MODIFIED w");
    // A field is.
    let mut spec = before["spec"].clone();
    spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] =
        json!({"type": "integer"});
    server
        .patch(&path, MERGE, json!({"spec": spec}))
        .await
        .expect(200);
    server
        .patch(&one, MERGE, json!({"spec": {"size": 3}}))
        .await
        .expect(200);
    assert_eq!(watch.next().await, None);
    let mut resumed = server.watch(&from(version(&green))).await;
    let event = resumed.next().await.unwrap();
    assert_eq!(event["object"]["spec"]["size"], 3);
    // Its end is told after the end of its objects.
    server.delete(&path, json!({})).await.expect(200);
    assert_eq!(resumed.brief().await, "DELETED w");
    assert_eq!(resumed.next().await, None);
}

/// What `kubectl explain` reads aloud.
#[tokio::test]
async fn people_are_told_what_kinds_and_fields_are() {
    let server = Server::start().await;
    let apps = server.get("/openapi/v3/apis/apps/v1").await.expect(200);
    let schemas = &apps["components"]["schemas"];
    let told = |schema: &Value| {
        schema["description"]
            .as_str()
            .is_some_and(|text| text.ends_with('.'))
    };
    assert!(told(&schemas["io.k8s.api.apps.v1.Deployment"]));
    let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"];
    assert!(told(spec));
    for field in ["replicas", "selector", "template", "strategy", "paused"] {
        assert!(told(&spec["properties"][field]), "{field}");
    }
    server.post(DEFINITIONS, definition()).await.expect(201);
    let lab = server.get("/openapi/v3/apis/lab.io/v1").await.expect(200);
    let widget = &lab["components"]["schemas"]["io.lab.v1.Widget"]["properties"];
    assert!(told(&widget["metadata"]) && told(&widget["kind"]));
}
