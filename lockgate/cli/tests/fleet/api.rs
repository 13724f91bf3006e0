//! A small client of one server, and waiting.

use std::path::Path;
use std::time::{Duration, Instant};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

/// Nothing here takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Api(Client);

impl Api {
    pub(crate) async fn connect(kubeconfig: &Path) -> Self {
        // The binary does the same; whoever is first wins.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        Self(Client::try_from(config).unwrap())
    }

    async fn send(&self, method: &str, path: &str, body: &Value, media: &str) -> Result<Value, String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(if body.is_null() {
                Vec::new()
            } else {
                body.to_string().into_bytes()
            })
            .unwrap();
        self.0
            .request::<Value>(request)
            .await
            .map_err(|error| error.to_string())
    }

    /// What is at a path, if anything is.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        self.send("GET", path, &Value::Null, "application/json")
            .await
            .ok()
    }

    /// The objects at a path; none where nothing is served.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.get(path).await.unwrap_or_default();
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        self.send("POST", path, object, "application/json").await.unwrap()
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Value {
        self.send("PATCH", path, patch, "application/merge-patch+json")
            .await
            .unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send("DELETE", path, &Value::Null, "application/json")
            .await
            .unwrap();
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "not after {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{what}: after {:.1} s", begun.elapsed().as_secs_f64());
}

/// Whether an object's condition is of this status.
pub(crate) fn has(object: &Value, condition: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|c| c["type"] == condition && c["status"] == status)
    })
}

pub(crate) fn deployment(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
            },
        },
    })
}

/// A policy for the Deployments of a namespace that carry a label `group`.
pub(crate) fn policy(namespace: &str, group: &str, clusters: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": group, "namespace": namespace},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"group": group}},
            }],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    })
}

pub(crate) fn deployments(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments")
}

pub(crate) fn policies(namespace: &str) -> String {
    format!("/apis/policy.karmada.io/v1alpha1/namespaces/{namespace}/propagationpolicies")
}

pub(crate) fn bindings(namespace: &str) -> String {
    format!("/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings")
}

pub(crate) fn works(cluster: &str) -> String {
    format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works")
}
