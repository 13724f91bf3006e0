//! Every example is what it says it is: the hub takes it without a warning, and each of its policies is about one of its
//! own objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use lockgate_api::{OverridePolicy, PropagationPolicy, RolloutPolicy};
use lockgate_engine::gate::is_about;
use lockgate_engine::selector::{best_priority, policy_match};
use lockgate_hub::{Link, discover};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a file is a strategy for the Deployment of another one.
fn is_strategy(file: &Path) -> bool {
    file.parent()
        .is_some_and(|directory| directory.ends_with("examples/rollout"))
}

/// The files, in the order in which somebody applies them.
fn files() -> Vec<PathBuf> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"),
        &mut found,
    );
    found.sort();
    found
}

fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.split("\n---\n")
        .map(|document| {
            machinery_value::decode::from_yaml(document.as_bytes())
                .unwrap()
                .value
        })
        .collect()
}

/// A hub with our definitions.
async fn hub() -> (ApiServer, kube::Client) {
    let server = ApiServer::start(Options::new(Arc::new(Pki::ephemeral().unwrap())))
        .await
        .unwrap();
    let user = UserInfo::new("admin", ["system:masters"]).authenticated();
    let client = kube::Client::new(server.as_user(user.clone()), "default");
    let local = server.local(user);
    for definition in lockgate_api::definitions::definitions() {
        local.create(definition).await.unwrap();
    }
    (server, client)
}

/// Applies an object as `kubectl apply --server-side` does, with every field checked. Its kind may be a moment old.
async fn apply(client: &kube::Client, object: &Value) -> Result<(), String> {
    let (api_version, kind) = (
        object["apiVersion"].as_str().unwrap(),
        object["kind"].as_str().unwrap(),
    );
    let resource = tokio::time::timeout(PATIENCE, async {
        loop {
            let discovery = discover(&Link::new(client.clone())).await.unwrap();
            if let Some(resource) = discovery.get(api_version, kind) {
                return resource.clone();
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .map_err(|_| format!("{api_version} {kind} is not served"))?;
    let metadata = &object["metadata"];
    // As kubectl does with what names no namespace.
    let unsaid = if resource.namespaced { "default" } else { "" };
    let namespace = metadata["namespace"].as_str().unwrap_or(unsaid);
    let path = resource.object(namespace, metadata["name"].as_str().unwrap());
    let request = http::Request::patch(format!("{path}?fieldManager=kubectl&fieldValidation=Strict"))
        .header("content-type", "application/apply-patch+yaml")
        .body(Body::from(object.to_string().into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let (status, warning) = (response.status(), response.headers().get("warning").cloned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    if status.is_success() && warning.is_none() {
        return Ok(());
    }
    Err(format!("{status} {warning:?} {}", String::from_utf8_lossy(&body)))
}

#[tokio::test]
async fn the_hub_takes_every_example() {
    let (server, client) = hub().await;
    let files = files();
    assert!(files.len() >= 8, "{files:?}");
    // A second time changes nothing, and is as good.
    for file in files.iter().chain(&files) {
        for object in documents(file) {
            if let Err(error) = apply(&client, &object).await {
                panic!(
                    "{}: {} {}: {error}",
                    file.display(),
                    object["kind"],
                    object["metadata"]["name"]
                );
            }
        }
    }
    server.stop().await;
}

/// Each file by itself on a new hub; only an object of a kind of our own needs the file before it, and a strategy for what
/// another file has needs that one.
#[tokio::test]
async fn every_example_is_complete_in_itself() {
    let follows = |file: &&PathBuf| file.ends_with("2-object.yaml") || is_strategy(file);
    for file in files().iter().filter(|file| !follows(file)) {
        let (server, client) = hub().await;
        for object in documents(file) {
            apply(&client, &object)
                .await
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        }
        server.stop().await;
    }
}

#[test]
fn every_policy_is_about_an_object_of_its_file() {
    for file in files() {
        let mut objects = documents(&file);
        if is_strategy(&file) {
            // It is about the Deployment of another file, and says so.
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            objects.extend(documents(&root.join("examples/first-steps.yaml")));
        }
        for object in &objects {
            let reaches: Box<dyn Fn(&Value) -> bool> = match object["kind"].as_str().unwrap() {
                "PropagationPolicy" | "ClusterPropagationPolicy" => {
                    let policy: PropagationPolicy = serde_json::from_value(object.clone()).unwrap();
                    Box::new(move |template| policy_match(&policy, template).is_some())
                }
                "OverridePolicy" | "ClusterOverridePolicy" => {
                    let policy: OverridePolicy = serde_json::from_value(object.clone()).unwrap();
                    Box::new(move |template| {
                        best_priority(&policy.spec.resource_selectors, template).is_some()
                    })
                }
                "RolloutPolicy" | "ClusterRolloutPolicy" => {
                    let policy: RolloutPolicy = serde_json::from_value(object.clone()).unwrap();
                    Box::new(move |template| is_about(&policy, template))
                }
                _ => continue,
            };
            assert!(objects.iter().any(&reaches), "{}: {object}", file.display());
        }
    }
}

/// What the files and their README tell people to type names files that are there.
#[test]
fn commands_name_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = files();
    texts.extend(["examples/README.md", "README.md"].map(|file| root.join(file)));
    for text in texts {
        for word in std::fs::read_to_string(&text).unwrap().split_whitespace() {
            if word.starts_with("examples/") && word.ends_with(".yaml") {
                assert!(root.join(word).exists(), "{} speaks of {word}", text.display());
            }
        }
    }
}
