//! What tells of a rollout: the binding of a template, or a root policy with its replicas.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lockgate_api::binding::AggregatedStatusItem;
use lockgate_api::ocm::policy::{NON_COMPLIANT, PENDING, ROOT_POLICY};
use lockgate_api::ocm::{POLICY_GROUP, Policy};
use lockgate_api::rollout_policy::{RolloutRun, RunCluster};
use lockgate_api::{Binding, ObjectMeta, names};
use lockgate_engine::TemplateId;
use lockgate_engine::governance::replica::{is_inform, replica_name};
use lockgate_engine::governance::revision::{Mark, evaluated};
use lockgate_hub::{Link, Resource};
use serde::Deserialize;

use super::command::{argument, unreadable};
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
        let conditions = match self {
            Self::Binding(_) => {
                return format!(
                    "{id} follows no strategy: its changes go to all clusters at once.\n\n\
                     Next: a RolloutPolicy with spec.strategy, see docs/rollout.md\n"
                );
            }
            Self::Policy(root, _) => root.status.as_ref().map(|status| &status.conditions),
        };
        let mut text = format!("{id} is on no cluster.\n");
        for condition in conditions.into_iter().flatten() {
            text.push_str(&format!("  because    {}\n", condition.message));
        }
        format!("{text}\nNext: kubectl describe {}\n", argument(id))
    }

    /// Whether what is said of a cluster tells it apart from others of the same state.
    pub(crate) fn tells_apart(&self) -> bool {
        matches!(self, Self::Policy(..))
    }

    /// How it is in a cluster.
    pub(crate) fn said(&self, cluster: &RunCluster) -> Option<String> {
        match self {
            Self::Binding(binding) => object(&binding.status.aggregated_status, cluster),
            Self::Policy(root, replicas) => Some(match replicas.get(&cluster.name) {
                Some(replica) => compliance(root, replica, &cluster.state),
                None => "has no replica yet".to_owned(),
            }),
        }
    }
}

/// How a replica of a cluster in this state is: what it does, and what was last said of it.
fn compliance(root: &Policy, replica: &Policy, state: &str) -> String {
    let mark = Mark::of(replica);
    let waits = mark.as_ref().is_some_and(|mark| mark.revision == 0);
    let enforces = !is_inform(&root.spec.remediation_action);
    let does = match (waits, enforces) {
        (true, true) => "enforces nothing now; ",
        (false, true) if state == "ToApply" && mark.is_some() => "keeps the previous version; ",
        _ => "",
    };
    let Some(status) = evaluated(replica) else {
        return match mark.and_then(|mark| hindrance(replica, &mark)) {
            Some(why) => format!("{does}not evaluated yet: {why}"),
            None => format!("{does}not evaluated yet"),
        };
    };
    let bad = |state: &str| status.details.iter().find(|template| template.compliant == state);
    match bad(NON_COMPLIANT).or_else(|| bad(PENDING)) {
        None if waits => format!("{does}compliant: nothing would change"),
        None => format!("{does}compliant"),
        Some(template) => {
            let said = template.history.first().map_or("", |entry| bare(&entry.message));
            let would = if waits { "would change" } else { "non-compliant" };
            let state = if template.compliant == PENDING {
                "pending"
            } else {
                would
            };
            format!("{does}{state}: {said} ({})", template.template_meta.name)
        }
    }
}

/// Why what a replica holds is not evaluated: what was said of it since it is held, or of the cluster, which is not said twice.
fn hindrance(replica: &Policy, mark: &Mark) -> Option<String> {
    let status = replica.status.as_ref()?;
    let newest = status
        .details
        .iter()
        .filter(|template| template.compliant == NON_COMPLIANT)
        .find_map(|template| template.history.first())?;
    // Times of history have whole seconds.
    let at: Timestamp = newest.last_timestamp.as_ref()?.parse().ok()?;
    let said = bare(&newest.message);
    let of_cluster = said.starts_with(&format!("cluster {} ", replica.metadata.namespace));
    (of_cluster || at.as_second() >= mark.at.as_second()).then(|| said.to_owned())
}

/// A message without the words that its state says already.
fn bare(message: &str) -> &str {
    let said = message.split_once("; ").map_or(message, |(_, said)| said);
    said.strip_prefix("violation - ")
        .or_else(|| said.strip_prefix("template-error; "))
        .unwrap_or(said)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(value: serde_json::Value) -> Policy {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_a_cluster_does_and_what_it_says() {
        let replica = |revision: &str, evaluated: &str, state: &str| {
            policy(serde_json::json!({
                "metadata": {"annotations": {"policy.open-cluster-management.io/rollout-revision": revision}},
                "spec": {"policy-templates": [{"objectDefinition": {}}]},
                "status": {"evaluatedRevision": evaluated, "details": [{
                    "templateMeta": {"name": "one"}, "compliant": state, "history": [
                        {"message": format!("{state}; violation - pods [x] not found in namespace y")}]}]},
            }))
        };
        let root = policy(serde_json::json!({"spec": {"remediationAction": "enforce"}}));
        let said = |revision, evaluated, state| {
            compliance(&root, &replica(revision, evaluated, state), "Progressing")
        };
        assert_eq!(
            said("0.a.1", "0.a.1", "NonCompliant"),
            "enforces nothing now; would change: pods [x] not found in namespace y (one)"
        );
        assert_eq!(
            said("0.a.1", "0.a.1", "Compliant"),
            "enforces nothing now; compliant: nothing would change"
        );
        // What was said of something older is not told.
        assert_eq!(
            said("0.a.2", "0.a.1", "Compliant"),
            "enforces nothing now; not evaluated yet"
        );
        assert_eq!(said("1.a.1", "1.a.1", "Compliant"), "compliant");
        assert_eq!(
            said("1.a.1", "1.a.1", "NonCompliant"),
            "non-compliant: pods [x] not found in namespace y (one)"
        );
        assert_eq!(
            compliance(&root, &replica("1.a.1", "1.a.1", "Compliant"), "ToApply"),
            "keeps the previous version; compliant"
        );
    }

    #[test]
    fn what_keeps_a_cluster_from_looking_is_told() {
        let root = policy(serde_json::json!({"spec": {"remediationAction": "enforce"}}));
        let refused = |at: &str, message: &str| {
            policy(serde_json::json!({
                "metadata": {"namespace": "member1", "annotations": {
                    "policy.open-cluster-management.io/rollout-revision": "2.a.1000000500000"}},
                "spec": {"policy-templates": [{"objectDefinition": {}}]},
                "status": {"evaluatedRevision": "", "details": [{
                    "templateMeta": {"name": "one"}, "compliant": "NonCompliant", "history": [{"lastTimestamp": at,
                        "message": format!("NonCompliant; template-error; {message}")}]}]},
            }))
        };
        assert_eq!(
            compliance(
                &root,
                &refused("1970-01-12T13:46:40Z", "no such kind"),
                "Progressing"
            ),
            "not evaluated yet: no such kind"
        );
        // What was said of something older is not told, unless it is about the cluster.
        assert_eq!(
            compliance(
                &root,
                &refused("1970-01-12T13:46:39Z", "no such kind"),
                "Progressing"
            ),
            "not evaluated yet"
        );
        let refuses = "cluster member1 refuses the definitions of policies";
        assert_eq!(
            compliance(&root, &refused("1970-01-12T13:46:39Z", refuses), "Progressing"),
            format!("not evaluated yet: {refuses}")
        );
    }
}
