//! How a Cluster goes: when no Work is left, its execution namespace and its Secret are deleted and the finalizer is dropped.
//! What becomes of the objects in the member was decided by whoever removed the Works.

use std::time::Duration;

use lockgate_api::cluster::SecretReference;
use lockgate_api::{Cluster, keys, names};
use lockgate_engine::cluster::{Leaving, READY, Remains, Step, Workloads, leaving, next_step};
use serde_json::Value;

use super::task::Task;
use super::write::Part;
use super::{ClusterChange, is_own_secret};
use crate::link::{DeleteOptions, LinkError};
use crate::resource::Resource;

/// How often the Works that are left are counted, when nobody says that their number changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Task {
    /// Goes as far as it can; says when to look again.
    pub(super) async fn leave(&mut self, cluster: &Cluster) -> Result<Duration, LinkError> {
        let now = self.now();
        let Some(how) = leaving(cluster, now) else {
            return Ok(LOOK_EVERY);
        };
        if self.goes_by_mistake(cluster).await? {
            return Ok(LOOK_EVERY);
        }
        let before = self.shared.update(&self.name, |state| state.leaving.replace(how));
        if before != Some(Some(how)) {
            self.shared.tell(&ClusterChange::Leaving(self.name.clone()));
        }
        if !cluster
            .metadata
            .finalizers
            .iter()
            .any(|f| f == keys::CLUSTER_FINALIZER)
        {
            return Ok(LOOK_EVERY);
        }
        loop {
            let remains = self.remains(cluster).await?;
            match next_step(remains) {
                Step::AwaitWorks(left) => {
                    self.explain_wait(cluster, how, left);
                    return Ok(LOOK_EVERY);
                }
                Step::RemoveNamespace => self.remove_space().await?,
                Step::RemoveSecrets => {
                    for secret in self.own_secrets(cluster) {
                        self.remove_secret(&secret).await?;
                    }
                }
                Step::DropFinalizer => {
                    self.write(Part::Main, |cluster| {
                        cluster
                            .metadata
                            .finalizers
                            .retain(|f| f != keys::CLUSTER_FINALIZER);
                    })
                    .await?;
                    return Ok(LOOK_EVERY);
                }
            }
        }
    }

    /// Whether nobody asked this cluster to leave: the definition of Clusters is being deleted, and all of them with it. Then
    /// nothing is done until somebody says what is to become of the objects there.
    async fn goes_by_mistake(&mut self, cluster: &Cluster) -> Result<bool, LinkError> {
        let decided = self.shared.update(&self.name, |state| state.leaving).flatten();
        if decided.is_some() || cluster.metadata.annotation(keys::UNJOIN_WORKLOADS).is_some() {
            return Ok(false);
        }
        let resource = Resource::clusters();
        let definition = SecretReference {
            namespace: String::new(),
            name: format!("{}.{}", resource.plural, resource.group),
        };
        // The server says so before it deletes the first of them; a cache may hear of that later.
        let definition = self.object(&Resource::crds(), &definition).await?;
        let going = definition.is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null());
        if going {
            self.warn(
                "UnjoinNotAskedFor",
                format!(
                    "the definition of Clusters is being deleted, and nobody asked {0} to leave: nothing is done in the \
                     member. To let it leave: kubectl annotate cluster {0} {1}=keep (or delete). To stay with the member, drop \
                     the finalizers of the Cluster, and join it again when the definition is back: lockgate join {0}",
                    self.name,
                    keys::UNJOIN_WORKLOADS
                ),
            );
        }
        Ok(going)
    }

    fn explain_wait(&mut self, cluster: &Cluster, how: Leaving, left: Option<usize>) {
        let ready = lockgate_api::Condition::find(&cluster.status.conditions, READY);
        if ready.is_some_and(lockgate_api::Condition::is_true) || left.is_none() {
            return;
        }
        if how.abandon {
            self.warn(
                "UnjoinMemberUnreachable",
                "the member does not answer: it is left as it is, and the labels and annotations of the control plane \
                 stay on its objects"
                    .to_owned(),
            );
        } else if how.workloads == Workloads::Delete {
            self.warn(
                "UnjoinMemberUnreachable",
                format!(
                    "the member does not answer, and its objects cannot be deleted: the cluster stays until it answers. \
                     To leave them there: kubectl annotate --overwrite cluster {} {}=keep",
                    self.name,
                    keys::UNJOIN_WORKLOADS
                ),
            );
        }
    }

    async fn remains(&self, cluster: &Cluster) -> Result<Remains, LinkError> {
        let mut secrets = false;
        for secret in self.own_secrets(cluster) {
            secrets = secrets || self.object(&Resource::secrets(), &secret).await?.is_some();
        }
        let space = SecretReference {
            namespace: String::new(),
            name: names::execution_namespace(&self.name),
        };
        let namespace = self.object(&Resource::namespaces(), &space).await?;
        let works = match (self.shared.options.works)(&self.name) {
            // A cache may be behind, and this is the last moment to find out.
            Some(0) if namespace.is_some() => Some(self.works_now().await?),
            other => other,
        };
        Ok(Remains {
            works,
            // A namespace that is going already needs nothing more from us; on a hub without a controller for namespaces
            // it would never be gone.
            namespace: namespace
                .is_some_and(|namespace| namespace["metadata"]["deletionTimestamp"].is_null()),
            secrets,
        })
    }

    /// The Works that the hub knows right now; 1 stands for any number.
    async fn works_now(&self) -> Result<usize, LinkError> {
        let works = Resource::works().collection(&names::execution_namespace(&self.name));
        match self.shared.options.hub.get(&format!("{works}?limit=1")).await {
            Ok(body) => {
                let page: Value =
                    serde_json::from_slice(&body).map_err(|e| LinkError::BadAnswer(e.to_string()))?;
                Ok(page["items"].as_array().map_or(0, Vec::len))
            }
            Err(LinkError::NotServed) => Ok(0),
            Err(error) => Err(error),
        }
    }

    async fn object(&self, resource: &Resource, at: &SecretReference) -> Result<Option<Value>, LinkError> {
        match self
            .shared
            .options
            .hub
            .get(&resource.object(&at.namespace, &at.name))
            .await
        {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|e| LinkError::BadAnswer(e.to_string())),
            Err(LinkError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The Secrets that were made for this cluster and that no other one uses.
    fn own_secrets(&self, cluster: &Cluster) -> Vec<SecretReference> {
        let shared_with_another = |secret: &SecretReference| {
            let states = self.shared.states.read();
            states.iter().any(|(name, state)| {
                let spec = &state.cluster.spec;
                *name != self.name
                    && (spec.secret_ref.as_ref() == Some(secret)
                        || spec.impersonator_secret_ref.as_ref() == Some(secret))
            })
        };
        [&cluster.spec.secret_ref, &cluster.spec.impersonator_secret_ref]
            .into_iter()
            .flatten()
            .filter(|secret| is_own_secret(secret, &self.name) && !shared_with_another(secret))
            .cloned()
            .collect()
    }

    async fn remove_space(&mut self) -> Result<(), LinkError> {
        let name = names::execution_namespace(&self.name);
        let path = Resource::namespaces().object("", &name);
        self.shared.update(&self.name, |state| state.space = false);
        match self
            .shared
            .options
            .hub
            .delete(&path, &DeleteOptions::default())
            .await
        {
            Ok(()) | Err(LinkError::NotFound) => {
                self.success(
                    "RemoveExecutionSpaceSucceed",
                    format!("Removed execution space({name}) for cluster({}).", self.name),
                );
                Ok(())
            }
            Err(error) => {
                self.warn(
                    "RemoveExecutionSpaceFailed",
                    format!(
                        "Failed to remove execution space({name}) for cluster({}): {error}",
                        self.name
                    ),
                );
                Err(error)
            }
        }
    }

    async fn remove_secret(&self, secret: &SecretReference) -> Result<(), LinkError> {
        let path = Resource::secrets().object(&secret.namespace, &secret.name);
        match self
            .shared
            .options
            .hub
            .delete(&path, &DeleteOptions::default())
            .await
        {
            Ok(()) | Err(LinkError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
