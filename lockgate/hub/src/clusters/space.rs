//! The execution namespace of a cluster: where its Works are. Whoever deletes it finds it made again.

use lockgate_api::{keys, names};
use serde_json::{Value, json};

use super::ClusterChange;
use super::task::Task;
use crate::link::LinkError;
use crate::resource::Resource;

impl Task {
    /// Makes sure that the execution namespace is there; whether it is.
    pub(super) async fn ensure_space(&mut self) -> Result<bool, LinkError> {
        let there = self.make_space().await;
        let is_there = *there.as_ref().unwrap_or(&false);
        let before = self
            .shared
            .update(&self.name, |state| std::mem::replace(&mut state.space, is_there));
        if is_there && before == Some(false) {
            self.shared.tell(&ClusterChange::Joined(self.name.clone()));
        }
        if let Err(error) = &there {
            let message = format!(
                "Failed to create execution space({}) for cluster({}): {error}",
                names::execution_namespace(&self.name),
                self.name
            );
            self.warn("CreateExecutionSpaceFailed", message);
        }
        there
    }

    async fn make_space(&mut self) -> Result<bool, LinkError> {
        let name = names::execution_namespace(&self.name);
        let cache = &self.caches.namespaces.cache;
        if let Some(cached) = cache.find("", &name) {
            if cached.terminating {
                self.warn("CreateExecutionSpaceFailed", still_going(&name, &self.name));
            }
            return Ok(!cached.terminating);
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
                return Ok(true);
            }
            Err(LinkError::AlreadyExists) => {}
            Err(error) => return Err(error),
        }
        // It has lost its label, or the watch is behind.
        let path = resource.object("", &name);
        let present: Value = match hub.get(&path).await {
            Ok(body) => serde_json::from_slice(&body).map_err(|e| LinkError::BadAnswer(e.to_string()))?,
            Err(LinkError::NotFound) => return Ok(false),
            Err(error) => return Err(error),
        };
        if !present["metadata"]["deletionTimestamp"].is_null() {
            self.warn("CreateExecutionSpaceFailed", still_going(&name, &self.name));
            return Ok(false);
        }
        let patch = json!({"metadata": {"labels": labels}});
        let answer = hub.merge_patch(&path, patch.to_string().into_bytes()).await?;
        self.caches.namespaces.cache.learn(&answer)?;
        Ok(true)
    }
}

fn still_going(namespace: &str, cluster: &str) -> String {
    format!(
        "Failed to create execution space({namespace}) for cluster({cluster}): the former one is still being deleted"
    )
}
