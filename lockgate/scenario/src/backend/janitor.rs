//! What a cluster's own controllers would do on a real API server that runs without them, as far as scenarios need it:
//! end namespaces, and delete what has lost its owners.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use lockgate_hub::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::server::{Problem, Server, Written};

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
    written: Changes,
    task: JoinHandle<()>,
}

/// The newest change of each resource that was made here, of objects that are managed and of others.
type Changes = Arc<Mutex<HashMap<(String, bool), Written>>>;

impl Drop for Janitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Janitor {
    pub(crate) fn start(server: Server) -> Self {
        let (quiet, passes): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let written = Changes::default();
        let (told, counted, changes) = (quiet.clone(), passes.clone(), written.clone());
        let task = tokio::spawn(async move {
            loop {
                match pass(&server, &changes).await {
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
        Self {
            quiet,
            passes,
            written,
            task,
        }
    }

    /// Something is owed until a whole pass, begun after the question, has found nothing: two quiet ones in a row.
    pub(crate) fn owed(&self) -> Option<String> {
        (self.quiet.load(Ordering::Acquire) < 2)
            .then(|| "namespaces and owners are being looked after".to_owned())
    }

    /// The changes that were made here: controllers must have seen them before anything is checked.
    pub(crate) fn written(&self) -> Vec<Written> {
        self.written.lock().values().cloned().collect()
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
async fn pass(server: &Server, changes: &Changes) -> Result<bool, Problem> {
    let mut acted = false;
    for namespace in server.items("/api/v1/namespaces").await? {
        if namespace["metadata"]["deletionTimestamp"].is_string() {
            acted |= end(server, &namespace, changes).await?;
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
            delete(server, &resource, &item, changes).await?;
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
async fn end(server: &Server, namespace: &Value, changes: &Changes) -> Result<bool, Problem> {
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
            // Something that may not be deleted is no work that is left to do.
            acted |= delete(server, &resource, &item, changes).await?;
        }
    }
    if !left {
        let mut ended = namespace.clone();
        ended["apiVersion"] = "v1".into();
        ended["kind"] = "Namespace".into();
        ended["spec"]["finalizers"] = json!([]);
        let path = format!("/api/v1/namespaces/{name}/finalize");
        let answer = server
            .send(Method::PUT, &path, "application/json", ended.to_string())
            .await;
        note(server, &Resource::namespaces(), namespace, answer, changes).await?;
        acted = true;
    }
    Ok(acted)
}

/// Deletes exactly this object; says whether that was done.
async fn delete(
    server: &Server,
    resource: &Resource,
    item: &Value,
    changes: &Changes,
) -> Result<bool, Problem> {
    let text = |key: &str| item["metadata"][key].as_str().unwrap_or("");
    let path = resource.object(text("namespace"), text("name"));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": text("uid")}});
    let answer = server
        .send(Method::DELETE, &path, "application/json", options.to_string())
        .await;
    note(server, resource, item, answer, changes).await
}

/// Notes what became of an object that was to end; says whether that was done. Others are at work too: what is gone or has
/// changed is seen by the next pass.
async fn note(
    server: &Server,
    resource: &Resource,
    item: &Value,
    answer: Result<Value, Problem>,
    changes: &Changes,
) -> Result<bool, Problem> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Problem::Refused { .. }) => return Ok(false),
        Err(problem) => return Err(problem),
    };
    let written = server.ended(resource.clone(), item, &answer).await?;
    changes
        .lock()
        .insert((resource.to_string(), written.managed), written);
    Ok(true)
}
