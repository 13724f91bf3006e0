//! What tells of a rollout: the binding of a template, or a root policy with its replicas.

use std::collections::BTreeMap;

use lockgate_api::binding::AggregatedStatusItem;
use lockgate_api::ocm::policy::{CONDITION_ACCEPTED, ROOT_POLICY};
use lockgate_api::ocm::{POLICY_GROUP, Policy};
use lockgate_api::rollout_policy::{RolloutRun, RunCluster};
use lockgate_api::{Binding, Condition, ObjectMeta, names};
use lockgate_engine::TemplateId;
use lockgate_engine::governance::replica::replica_name;
use lockgate_hub::{Link, Resource};
use serde::Deserialize;

use super::command::{argument, unreadable};
use super::compliance::{compliance, summary};
use crate::connect::Connection;
use crate::exit::Failure;

/// What tells of a rollout.
pub(crate) enum Holder {
    /// The binding of a template.
    Binding(Box<Binding>),
    /// A root policy, with its replicas by cluster.
    Policy(Box<Policy>, BTreeMap<String, Policy>),
}

#[derive(Deserialize)]
struct Replicas {
    items: Vec<Policy>,
}

/// Whether a resource is a policy of Open Cluster Management.
pub(crate) fn is_policy(id: &TemplateId) -> bool {
    id.kind == "Policy" && id.group() == POLICY_GROUP
}

impl Holder {
    /// What tells of a resource's rollout now; none if it is gone.
    pub(crate) async fn read(hub: &Connection, id: &TemplateId) -> Result<Option<Self>, Failure> {
        if !is_policy(id) {
            let binding: Option<Binding> = hub.get(&binding_path(id)).await?;
            return Ok(binding.map(|binding| Self::Binding(Box::new(binding))));
        }
        let policies = Resource::policies();
        let Some(root) = hub.get(&policies.object(&id.namespace, &id.name)).await? else {
            return Ok(None);
        };
        let path = format!(
            "{}?labelSelector={}%3D{}",
            policies.collection(""),
            ROOT_POLICY.replace('/', "%2F"),
            replica_name(&id.namespace, &id.name)
        );
        let body = Link::new(hub.client.clone())
            .get(&path)
            .await
            .map_err(|error| unreadable(hub, "replicas", &error))?;
        let listed: Replicas = serde_json::from_slice(&body)
            .map_err(|error| Failure::Other(format!("the list of replicas cannot be read: {error}")))?;
        let replicas = listed.items.into_iter();
        let replicas = replicas.map(|replica| (replica.metadata.namespace.clone(), replica));
        Ok(Some(Self::Policy(Box::new(root), replicas.collect())))
    }

    /// The metadata that hold the record.
    pub(crate) fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Binding(binding) => &binding.metadata,
            Self::Policy(root, _) => &root.metadata,
        }
    }

    /// The rollout, if one is told.
    pub(crate) fn rollout(&self) -> Option<&RolloutRun> {
        match self {
            Self::Binding(binding) => binding.status.rollout.as_ref(),
            Self::Policy(root, _) => root.status.as_ref()?.rollout.as_ref(),
        }
    }

    /// Why nothing is told, if nothing is: what the root says of itself.
    pub(crate) fn untold(&self, id: &TemplateId) -> String {
        let Self::Policy(root, _) = self else {
            return format!(
                "{id} follows no strategy: its changes go to all clusters at once.\n\n\
                 Next: a RolloutPolicy with spec.strategy, see docs/rollout.md\n"
            );
        };
        let mut text = format!("{id} is on no cluster.\n");
        if root.spec.disabled {
            text.push_str("  because    spec.disabled is true\n");
        }
        for condition in self.notes() {
            text.push_str(&format!("  because    {}\n", condition.message));
        }
        format!("{text}\nNext: kubectl describe {}\n", argument(id))
    }

    /// Whether what is said of a cluster tells it apart from others of the same state.
    pub(crate) fn tells_apart(&self) -> bool {
        matches!(self, Self::Policy(..))
    }

    /// How it is in a cluster, in lines.
    pub(crate) fn said(&self, cluster: &RunCluster) -> Vec<String> {
        match self {
            Self::Binding(binding) => object(&binding.status.aggregated_status, cluster)
                .into_iter()
                .collect(),
            Self::Policy(root, replicas) => {
                compliance(root, replicas.get(&cluster.name), &cluster.state).lines()
            }
        }
    }

    /// How it is in many clusters, in a line.
    pub(crate) fn summary<'a>(&self, clusters: impl Iterator<Item = &'a RunCluster>) -> Option<String> {
        match self {
            Self::Binding(_) => None,
            Self::Policy(root, replicas) => {
                let of = |cluster: &RunCluster| compliance(root, replicas.get(&cluster.name), &cluster.state);
                Some(summary(clusters.map(of)))
            }
        }
    }

    /// What is wrong with a root policy, or ignored of it.
    pub(crate) fn notes(&self) -> &[Condition] {
        match self {
            Self::Binding(_) => &[],
            Self::Policy(root, _) => root.status.as_ref().map_or(&[], |status| &status.conditions),
        }
    }

    /// Whether a root policy, as it is now, is followed by nobody: then nothing moves until somebody edits it.
    pub(crate) fn is_refused(&self) -> bool {
        let Self::Policy(root, _) = self else {
            return false;
        };
        let observed = root.status.as_ref().and_then(|status| status.observed_generation);
        let accepted = Condition::find(self.notes(), CONDITION_ACCEPTED);
        observed == Some(root.metadata.generation)
            && accepted.is_some_and(|accepted| accepted.status == "False")
    }
}

/// How the object is in a cluster that others wait for.
fn object(items: &[AggregatedStatusItem], cluster: &RunCluster) -> Option<String> {
    if !matches!(cluster.state.as_str(), "Progressing" | "Failed" | "TimeOut") {
        return None;
    }
    let item = items.iter().find(|item| item.cluster_name == cluster.name)?;
    if !item.applied && !item.applied_message.is_empty() {
        return Some(format!("not applied: {}", item.applied_message));
    }
    let status = item.status.as_ref();
    let count = |field: &str| status.and_then(|status| status[field].as_i64());
    let ready = match (
        count("readyReplicas").or(Some(0)),
        count("replicas"),
        count("updatedReplicas"),
    ) {
        (Some(ready), Some(all), updated) => {
            format!(", {ready}/{all} ready, {} updated", updated.unwrap_or(0))
        }
        _ => String::new(),
    };
    Some(format!("{}{ready}", item.health.to_lowercase()))
}

fn binding_path(id: &TemplateId) -> String {
    let bindings = if id.namespace.is_empty() {
        Resource::cluster_resource_bindings()
    } else {
        Resource::resource_bindings()
    };
    bindings.object(&id.namespace, &names::binding_name(&id.kind, &id.name))
}
