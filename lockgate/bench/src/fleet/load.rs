//! The objects of the load, and who sends them.

use std::time::Instant;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Method;
use kube::client::Body;
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::progress::Progress;

/// Where everything of the load is.
pub(crate) const NAMESPACE: &str = "bench";
/// The label that a touch changes.
pub(crate) const STAMP: &str = "stamp";
/// The replicas of every Deployment.
pub(crate) const REPLICAS: i64 = 2;
/// The policy's name.
pub(crate) const POLICY: &str = "bench";

/// The name of the policy that preempts it.
pub(crate) const PREEMPTING: &str = "preempting";

pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/bench/deployments";
pub(crate) const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/bench/propagationpolicies";

const ROLLOUTS: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/bench/rolloutpolicies";
pub(crate) const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
/// The label of clusters that says in which stage they are.
const STAGE: &str = "stage";

/// The name of the n-th object.
pub(crate) fn name(number: usize) -> String {
    format!("d{number}")
}

/// The number in such a name.
pub(crate) fn number(name: &str) -> Option<usize> {
    name.strip_prefix('d')?.parse().ok()
}

/// The n-th object as it is sent.
pub(crate) fn deployment(number: usize) -> Value {
    let name = name(number);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "web",
                    "image": "nginx:1.19.0",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "100m"}},
                }]},
            },
        },
    })
}

fn policy(clusters: &[String]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": POLICY, "namespace": NAMESPACE},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    })
}

/// Sends the load to the hub.
#[derive(Clone)]
pub(crate) struct Driver {
    client: kube::Client,
    concurrency: usize,
}

impl Driver {
    pub(crate) fn new(client: kube::Client, concurrency: u32) -> Self {
        Self {
            client,
            concurrency: concurrency as usize,
        }
    }

    /// The namespace and the policy.
    pub(crate) async fn prepare(&self, clusters: &[String]) -> Result<(), BenchError> {
        self.create_namespace().await?;
        self.create_policy(clusters).await
    }

    pub(crate) async fn create_namespace(&self) -> Result<(), BenchError> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.send(Method::POST, "/api/v1/namespaces", &namespace).await
    }

    pub(crate) async fn create_policy(&self, clusters: &[String]) -> Result<(), BenchError> {
        self.send(Method::POST, POLICIES, &policy(clusters)).await
    }

    pub(crate) async fn delete_policy(&self) -> Result<(), BenchError> {
        let path = format!("{POLICIES}/{POLICY}");
        self.send(Method::DELETE, &path, &json!({})).await
    }

    /// Other clusters for everything.
    pub(crate) async fn retarget(&self, clusters: &[String]) -> Result<(), BenchError> {
        self.edit_policy(&json!({"placement": {"clusterAffinity": {"clusterNames": clusters}}}))
            .await
    }

    /// Holds everything back, or lets it go.
    pub(crate) async fn suspend(&self, suspended: bool) -> Result<(), BenchError> {
        let suspension = if suspended {
            json!({"dispatching": true})
        } else {
            Value::Null
        };
        self.edit_policy(&json!({"suspension": suspension})).await
    }

    /// Changes fields of the policy's spec.
    pub(crate) async fn edit_policy(&self, spec: &Value) -> Result<(), BenchError> {
        let change = json!({ "spec": spec });
        self.send(Method::PATCH, &format!("{POLICIES}/{POLICY}"), &change)
            .await
    }

    /// A policy that takes the first objects from the other.
    pub(crate) async fn preempt(&self, count: usize, clusters: &[String]) -> Result<(), BenchError> {
        let selector = |number| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name(number)});
        let mut policy = policy(clusters);
        policy["metadata"]["name"] = json!(PREEMPTING);
        policy["spec"]["resourceSelectors"] = (0..count).map(selector).collect();
        policy["spec"]["priority"] = json!(10);
        policy["spec"]["preemption"] = json!("Always");
        self.send(Method::POST, POLICIES, &policy).await
    }

    /// Takes that policy away.
    pub(crate) async fn stop_preempting(&self) -> Result<(), BenchError> {
        let path = format!("{POLICIES}/{PREEMPTING}");
        self.send(Method::DELETE, &path, &json!({})).await
    }

    pub(crate) async fn create(&self, number: usize) -> Result<(), BenchError> {
        self.send(Method::POST, DEPLOYMENTS, &deployment(number)).await
    }

    pub(crate) async fn delete(&self, number: usize) -> Result<(), BenchError> {
        let path = format!("{DEPLOYMENTS}/{}", name(number));
        self.send(Method::DELETE, &path, &json!({})).await
    }

    /// Creates objects, several at a time; when each was sent.
    pub(crate) async fn create_all(
        &self,
        count: usize,
        progress: &Progress,
    ) -> Result<Vec<Instant>, BenchError> {
        self.each(count, progress, async |number| self.create(number).await)
            .await
    }

    /// Changes a label of every object; when each was sent.
    pub(crate) async fn touch_all(
        &self,
        count: usize,
        stamp: u32,
        progress: &Progress,
    ) -> Result<Vec<Instant>, BenchError> {
        let change = json!({"metadata": {"labels": {STAMP: stamp.to_string()}}});
        let change = &change;
        self.each(count, progress, async |number| {
            let path = format!("{DEPLOYMENTS}/{}", name(number));
            self.send(Method::PATCH, &path, change).await
        })
        .await
    }

    /// Changes a label and the pods of every object.
    pub(crate) async fn restamp_all(
        &self,
        count: usize,
        stamp: u32,
        progress: &Progress,
    ) -> Result<Vec<Instant>, BenchError> {
        let stamp = json!({STAMP: stamp.to_string()});
        let change = json!({
            "metadata": {"labels": stamp},
            "spec": {"template": {"metadata": {"annotations": stamp}}},
        });
        let change = &change;
        self.each(count, progress, async |number| {
            let path = format!("{DEPLOYMENTS}/{}", name(number));
            self.send(Method::PATCH, &path, change).await
        })
        .await
    }

    /// Puts a cluster into a stage.
    pub(crate) async fn label_cluster(&self, cluster: &str, stage: &str) -> Result<(), BenchError> {
        let change = json!({"metadata": {"labels": {STAGE: stage}}});
        self.send(Method::PATCH, &format!("{CLUSTERS}/{cluster}"), &change)
            .await
    }

    /// From now on everything goes by these stages.
    pub(crate) async fn roll_out(&self, stages: &[&str]) -> Result<(), BenchError> {
        let groups: Vec<Value> = stages
            .iter()
            .map(|stage| {
                json!({
                    "groupName": stage,
                    "groupClusterSelector": {"labelSelector": {"matchLabels": {STAGE: stage}}},
                })
            })
            .collect();
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "RolloutPolicy",
            "metadata": {"name": POLICY, "namespace": NAMESPACE},
            "spec": {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "strategy": {"type": "ProgressivePerGroup", "decisionGroups": groups},
            },
        });
        self.send(Method::POST, ROLLOUTS, &policy).await
    }

    /// Does something for each number, several at a time; when each was begun.
    pub(crate) async fn each(
        &self,
        count: usize,
        progress: &Progress,
        act: impl AsyncFn(usize) -> Result<(), BenchError>,
    ) -> Result<Vec<Instant>, BenchError> {
        let act = &act;
        stream::iter(0..count)
            .map(|number| async move {
                let sent = Instant::now();
                act(number).await?;
                progress.advance(1);
                Ok(sent)
            })
            .buffered(self.concurrency)
            .try_collect()
            .await
    }

    /// Sends one request.
    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Result<(), BenchError> {
        let failed = |reason: String| BenchError::Request {
            request: format!("{method} {path}"),
            reason,
        };
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method.clone())
            .uri(path)
            .header(http::header::CONTENT_TYPE, content)
            .body(Body::from(body.to_string().into_bytes()))
            .map_err(|e| failed(e.to_string()))?;
        let response = self
            .client
            .send(request)
            .await
            .map_err(|e| failed(e.to_string()))?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(failed(format!("answered {}", response.status())))
    }
}
