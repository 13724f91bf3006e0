//! The execution namespace of a cluster: where its Works are. Whoever deletes it finds it made again.

use lockgate_api::{keys, names};
use serde_json::{Value, json};

use super::ClusterChange;
use super::task::Task;
use crate::link::LinkError;
use crate::resource::Resource;

/// What became of an execution namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It was there.
    There,
    /// It was made.
    Made,
    /// The former one is still being deleted.
    Going,
}

impl Task {
    /// Makes sure that the execution namespace is there; whether it is.
    pub(super) async fn ensure_space(&mut self) -> Result<bool, LinkError> {
        let found = self.make_space().await;
        let is_there = matches!(found, Ok(Found::There | Found::Made));
        let before = self
            .shared
            .update(&self.name, |state| std::mem::replace(&mut state.space, is_there));
        // One that was deleted and made again between two passes has lost its Works all the same.
        if is_there && (before == Some(false) || matches!(found, Ok(Found::Made))) {
            self.shared.tell(&ClusterChange::Joined(self.name.clone()));
        }
        if let Err(error) = &found {
            let message = format!(
                "Failed to create execution space({}) for cluster({}): {error}",
                names::execution_namespace(&self.name),
                self.name
            );
            self.warn("CreateExecutionSpaceFailed", message);
        }
        found.map(|_| is_there)
    }

    async fn make_space(&mut self) -> Result<Found, LinkError> {
        let name = names::execution_namespace(&self.name);
        let cache = &self.caches.namespaces.cache;
        if let Some(cached) = cache.find("", &name) {
            if cached.terminating {
                self.warn("CreateExecutionSpaceFailed", still_going(&name, &self.name));
                return Ok(Found::Going);
            }
            return Ok(Found::There);
        }
        let hub = &self.shared.options.hub;
        let resource = Resource::namespaces();
        let labels = json!({keys::SYSTEM: "true"});
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        match hub
            .create(&resource.collection(""), object.to_string().into_bytes())
            .await
        {
            Ok(answer) => {
                cache.learn(&answer)?;
                self.success(
                    "CreateExecutionSpaceSucceed",
                    format!("Created execution space({name}) for cluster({}).", self.name),
                );
                return Ok(Found::Made);
            }
            Err(LinkError::AlreadyExists) => {}
            Err(error) => return Err(error),
        }
        // It has lost its label, or the watch is behind.
        let path = resource.object("", &name);
        let present: Value = match hub.get(&path).await {
            Ok(body) => serde_json::from_slice(&body).map_err(|e| LinkError::BadAnswer(e.to_string()))?,
            Err(LinkError::NotFound) => return Ok(Found::Going),
            Err(error) => return Err(error),
        };
        if !present["metadata"]["deletionTimestamp"].is_null() {
            self.warn("CreateExecutionSpaceFailed", still_going(&name, &self.name));
            return Ok(Found::Going);
        }
        let patch = json!({"metadata": {"labels": labels}});
        let answer = hub.merge_patch(&path, patch.to_string().into_bytes()).await?;
        self.caches.namespaces.cache.learn(&answer)?;
        Ok(Found::There)
    }
}

fn still_going(namespace: &str, cluster: &str) -> String {
    format!(
        "Failed to create execution space({namespace}) for cluster({cluster}): the former one is still being deleted"
    )
}
