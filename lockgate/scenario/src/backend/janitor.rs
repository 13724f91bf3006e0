//! What a cluster's own controllers would do on a real API server that runs without them, as far as scenarios need it:
//! end namespaces, and delete what has lost its owners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::server::{Problem, Server};

/// The rest between two passes: they cost a handful of requests.
const REST: Duration = Duration::from_millis(50);
/// Groups whose objects are owned by others in scenarios.
const OWNED_GROUPS: &[&str] = &[
    "apps",
    "cluster.open-cluster-management.io",
    "policy.open-cluster-management.io",
    "work.karmada.io",
];

/// Does this for one server until it is dropped.
pub(crate) struct Janitor {
    /// Passes that found nothing to do since something was done.
    quiet: Arc<AtomicU64>,
    passes: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Janitor {
    pub(crate) fn start(server: Server) -> Self {
        let (quiet, passes): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let (told, counted) = (quiet.clone(), passes.clone());
        let task = tokio::spawn(async move {
            loop {
                match pass(&server).await {
                    Ok(false) => {
                        told.fetch_add(1, Ordering::AcqRel);
                    }
                    Ok(true) => {
                        told.store(0, Ordering::Release);
                        counted.fetch_add(1, Ordering::AcqRel);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a pass over a real server broke off");
                        told.store(0, Ordering::Release);
                    }
                }
                tokio::time::sleep(REST).await;
            }
        });
        Self { quiet, passes, task }
    }

    /// Something is owed until a whole pass, begun after the question, has found nothing: two quiet ones in a row.
    pub(crate) fn owed(&self) -> Option<String> {
        (self.quiet.load(Ordering::Acquire) < 2)
            .then(|| "namespaces and owners are being looked after".to_owned())
    }

    /// A change was made from outside: look again before anything is called quiet.
    pub(crate) fn stir(&self) {
        self.quiet.store(0, Ordering::Release);
    }

    /// How many passes did something.
    pub(crate) fn passes(&self) -> u64 {
        self.passes.load(Ordering::Acquire)
    }
}

/// One look at everything; says whether something was done, or is being done by the server.
async fn pass(server: &Server) -> Result<bool, Problem> {
    let mut acted = false;
    for namespace in server.items("/api/v1/namespaces").await? {
        if namespace["metadata"]["deletionTimestamp"].is_string() {
            acted |= end(server, &namespace).await?;
        }
    }
    // The server itself deletes what a definition that ends has defined; that takes it a while.
    let definitions = server
        .items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .await?;
    acted |= definitions
        .iter()
        .any(|definition| definition["metadata"]["deletionTimestamp"].is_string());
    for resource in server.known_listable() {
        if !OWNED_GROUPS.contains(&resource.group.as_str()) {
            continue;
        }
        let items = match server.items(&resource.collection("")).await {
            // Its definition is gone, and with it everything that it defined.
            Err(problem) if problem.code() == 404 => continue,
            items => items?,
        };
        for item in items {
            if item["metadata"]["deletionTimestamp"].is_string() || !is_orphan(server, &item).await? {
                continue;
            }
            let text = |key: &str| item["metadata"][key].as_str().unwrap_or("").to_owned();
            let path = resource.object(&text("namespace"), &text("name"));
            let options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": text("uid")}});
            tolerate(
                server
                    .send(Method::DELETE, &path, "application/json", options.to_string())
                    .await,
            )?;
            acted = true;
        }
    }
    Ok(acted)
}

/// Whether an object has owners and all of them are gone.
async fn is_orphan(server: &Server, item: &Value) -> Result<bool, Problem> {
    let owners = item["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for owner in &owners {
        let named = json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "metadata": {"name": owner["name"], "namespace": item["metadata"]["namespace"]},
        });
        let path = match server.locate(&named).await {
            Ok((_, path)) => path,
            Err(Problem::NotServed(_)) => continue,
            Err(problem) => return Err(problem),
        };
        match server.send(Method::GET, &path, "", String::new()).await {
            Ok(found) if found["metadata"]["uid"] == owner["uid"] => return Ok(false),
            Ok(_) | Err(Problem::Refused { code: 404, .. }) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(!owners.is_empty())
}

/// Deletes what is in a namespace, and ends the namespace when nothing is left.
async fn end(server: &Server, namespace: &Value) -> Result<bool, Problem> {
    let name = namespace["metadata"]["name"].as_str().unwrap_or("");
    let (mut acted, mut left) = (false, false);
    for resource in server
        .listable()
        .await?
        .into_iter()
        .filter(|resource| resource.namespaced)
    {
        for item in server.items(&resource.collection(name)).await? {
            left = true;
            if item["metadata"]["deletionTimestamp"].is_string() {
                continue;
            }
            let path = resource.object(name, item["metadata"]["name"].as_str().unwrap_or(""));
            // Something that may not be deleted is no work that is left to do.
            acted |= tolerate(server.send(Method::DELETE, &path, "", String::new()).await)?;
        }
    }
    if !left {
        let mut ended = namespace.clone();
        ended["apiVersion"] = "v1".into();
        ended["kind"] = "Namespace".into();
        ended["spec"]["finalizers"] = json!([]);
        let path = format!("/api/v1/namespaces/{name}/finalize");
        tolerate(
            server
                .send(Method::PUT, &path, "application/json", ended.to_string())
                .await,
        )?;
        acted = true;
    }
    Ok(acted)
}

/// Others are at work too: what is gone or has changed is seen by the next pass. Says whether it was done.
fn tolerate(answer: Result<Value, Problem>) -> Result<bool, Problem> {
    match answer {
        Ok(_) => Ok(true),
        Err(Problem::Refused { .. }) => Ok(false),
        Err(problem) => Err(problem),
    }
}
