//! What waits, and what it would do if it were activated now: for those who look, not for those who act.
//!
//! It follows from stored objects alone, as the controllers left them, so that it is the same whoever asks, and also when
//! nobody runs the controllers. What the controllers are about to do anyway does not wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::binding::TargetCluster;
use lockgate_api::{Binding, BindingSpec, Cluster, PropagationPolicy};
use serde_json::Value;

use crate::claim::{self, Change, Claim, ContentHashes, Record};
use crate::gates::Gates;
use crate::object::{self, TemplateId};
use crate::place::{self, LastPlaced, PlaceInput, Verdict};
use crate::selector::PolicyIndex;

/// The name under which policies ask for us to place things.
const SCHEDULER: &str = "default-scheduler";

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct PendingInput<'a> {
    /// The template as it is stored.
    pub template: &'a Value,
    /// Its binding, if it has one.
    pub binding: Option<&'a Binding>,
    /// All policies.
    pub policies: &'a PolicyIndex,
    /// All clusters, sorted by name.
    pub clusters: &'a [Arc<Cluster>],
    /// The feature gates.
    pub gates: Gates,
}

/// A template that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Which template.
    pub id: TemplateId,
    /// What was activated last; nothing if nothing ever was.
    pub applied: Option<Applied>,
    /// The policy that owns it now; nobody if absent.
    pub current: Option<Arc<PropagationPolicy>>,
    /// Whether the user has changed the template since, so that the change waits for a policy.
    pub changed: bool,
    /// What an activation would do; absent if there is no policy that could.
    pub effect: Option<Effect>,
}

/// What was activated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The policy, if it is still known by name.
    pub claim: Option<Claim>,
    /// Its permanent id.
    pub id: String,
    /// Its generation; 0 if nobody knows it.
    pub generation: i64,
}

/// What an activation would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Clusters that it would come to.
    pub added: Vec<TargetCluster>,
    /// Clusters that it would leave, with the replicas there.
    pub removed: Vec<TargetCluster>,
    /// Clusters where the number of replicas would change.
    pub resized: Vec<Resized>,
    /// What else of the binding would change, as fields of a policy.
    pub fields: Vec<&'static str>,
    /// Why it would go nowhere new, if it would not.
    pub trouble: Option<String>,
}

/// Another number of replicas on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resized {
    /// Its name.
    pub cluster: String,
    /// What it has.
    pub from: i64,
    /// What it would have.
    pub to: i64,
}

impl Effect {
    /// Whether nothing on any cluster comes, goes or changes its size.
    pub fn moves_nothing(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.resized.is_empty()
    }
}

/// What waits for a template; `None` if nothing does.
pub fn pending(input: &PendingInput<'_>) -> Option<Pending> {
    let template = input.template;
    let uid = object::meta_text(template, "uid");
    let binding = input
        .binding
        .filter(|binding| binding.spec.resource.uid == uid && !binding.metadata.deleting());
    let owner = Claim::on_template(template).and_then(|claim| {
        let policy = input.policies.get(&claim.namespace, &claim.name)?;
        (policy.permanent_id() == claim.id && !policy.metadata.deleting()).then(|| policy.clone())
    });
    let record = Record::find(template, binding).filter(|record| record.is_of(template));
    let waits = match (&owner, binding) {
        (Some(policy), Some(binding)) => claim::would_wait(policy, binding),
        // Without a binding, only what waits for an activation is recorded with another policy than its owner, or none.
        (Some(policy), None) => record
            .as_ref()
            .is_some_and(|record| record.policy != policy.permanent_id()),
        (None, Some(_)) => true,
        (None, None) => false,
    };
    waits.then(|| describe(input, binding, owner, record.as_ref()))
}

/// A template as if it waited, whether it does or not: for those who want it activated all the same.
pub fn as_if(input: &PendingInput<'_>) -> Pending {
    pending(input).unwrap_or_else(|| {
        let owner = Claim::on_template(input.template)
            .and_then(|claim| input.policies.get(&claim.namespace, &claim.name).cloned());
        let record = Record::find(input.template, input.binding);
        describe(input, input.binding, owner, record.as_ref())
    })
}

fn describe(
    input: &PendingInput<'_>,
    binding: Option<&Binding>,
    owner: Option<Arc<PropagationPolicy>>,
    record: Option<&Record>,
) -> Pending {
    let template = input.template;
    // Somebody without an owner is matched from scratch when it is activated.
    let policy = owner.clone().or_else(|| input.policies.best(template).cloned());
    Pending {
        id: TemplateId::of(template),
        applied: applied(input.policies, binding, record),
        changed: record
            .is_some_and(|record| record.compare(template, &ContentHashes::of(template)) == Change::ByUser),
        effect: policy.map(|policy| effect(input, binding, &policy)),
        current: owner,
    }
}

fn applied(policies: &PolicyIndex, binding: Option<&Binding>, record: Option<&Record>) -> Option<Applied> {
    binding?;
    let claim = binding.and_then(|binding| Claim::on_binding(&binding.metadata));
    let id = record
        .map(|record| record.policy.clone())
        .filter(|id| !id.is_empty())
        .or_else(|| claim.as_ref().map(|claim| claim.id.clone()))?;
    let known = || policies.iter().find(|policy| policy.permanent_id() == id);
    Some(Applied {
        claim: claim
            .filter(|claim| claim.id == id)
            .or_else(|| known().map(|policy| Claim::by(policy))),
        generation: record.map_or(0, |record| record.policy_generation),
        id,
    })
}

/// Why nothing is placed here, if it is left to somebody else or to a later time.
pub fn left_unplaced(spec: &BindingSpec) -> Option<String> {
    if spec.suspension.as_ref().and_then(|s| s.scheduling) == Some(true) {
        return Some("placing it is suspended".to_owned());
    }
    let others = !spec.scheduler_name.is_empty() && spec.scheduler_name != SCHEDULER;
    others.then(|| format!("the scheduler {:?} places it", spec.scheduler_name))
}

/// What activating a policy would do to a template.
fn effect(input: &PendingInput<'_>, binding: Option<&Binding>, policy: &PropagationPolicy) -> Effect {
    let before = binding.map(|binding| &binding.spec);
    let spec = claim::activated_spec(policy, input.template, before);
    let mut effect = Effect {
        fields: before.map_or_else(Vec::new, |before| fields(before, &spec)),
        ..Effect::default()
    };
    effect.trouble = left_unplaced(&spec);
    if effect.trouble.is_some() {
        return effect;
    }
    let last = binding.map(LastPlaced::of).unwrap_or_default();
    let placed = place::place(&PlaceInput {
        spec: &spec,
        applied_placement: last.placement.as_ref(),
        observed_affinity: &last.affinity,
        last_scheduled: last.at,
        rebalanced: last.rebalanced,
        clusters: input.clusters,
        rooms: None,
        neighbours: None,
        gates: input.gates,
    });
    match placed.verdict {
        Verdict::Unchanged => {}
        Verdict::Clusters(targets) => compare(&spec.clusters, &targets, &mut effect),
        Verdict::NoClusterFit { message, keep } => {
            if !keep {
                compare(&spec.clusters, &[], &mut effect);
            }
            effect.trouble = Some(message);
        }
        Verdict::Unschedulable { message } => effect.trouble = Some(message),
    }
    effect
}

fn compare(before: &[TargetCluster], after: &[TargetCluster], effect: &mut Effect) {
    let by_name = |targets: &[TargetCluster]| -> BTreeMap<String, i64> {
        targets
            .iter()
            .map(|target| (target.name.clone(), target.replicas))
            .collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let target = |(name, replicas): (&String, &i64)| TargetCluster {
        name: name.clone(),
        replicas: *replicas,
    };
    let without = |all: &BTreeMap<String, i64>, others: &BTreeMap<String, i64>| {
        let left = all.iter().filter(|(name, _)| !others.contains_key(*name));
        left.map(target).collect()
    };
    effect.added = without(&new, &old);
    effect.removed = without(&old, &new);
    effect.resized = new
        .iter()
        .filter_map(|(name, to)| {
            let from = *old.get(name)?;
            (from != *to).then(|| Resized {
                cluster: name.clone(),
                from,
                to: *to,
            })
        })
        .collect();
}

/// The fields of a policy that a binding would follow.
fn fields(before: &BindingSpec, after: &BindingSpec) -> Vec<&'static str> {
    let table = [
        ("placement", before.placement != after.placement),
        ("propagateDeps", before.propagate_deps != after.propagate_deps),
        ("schedulerName", before.scheduler_name != after.scheduler_name),
        ("failover", before.failover != after.failover),
        (
            "conflictResolution",
            before.conflict_resolution != after.conflict_resolution,
        ),
        (
            "preserveResourcesOnDeletion",
            before.preserve_resources_on_deletion != after.preserve_resources_on_deletion,
        ),
        ("suspension", before.suspension != after.suspension),
    ];
    table
        .into_iter()
        .filter(|(_, differs)| *differs)
        .map(|(name, _)| name)
        .collect()
}

/// Since when a template may wait: when a user last wrote the policy, or when the controllers last wrote the template's
/// claim. Both must have managedFields.
pub fn since(template: &Value, policy: Option<&PropagationPolicy>) -> Option<Timestamp> {
    let edited = policy.and_then(|policy| {
        let metadata = serde_json::to_value(&policy.metadata).ok()?;
        claim::last_written(&serde_json::json!({ "metadata": metadata }))
    });
    let entries = template["metadata"]["managedFields"].as_array();
    let claimed = entries
        .into_iter()
        .flatten()
        .filter(|entry| object::text(entry, "subresource").is_empty())
        .filter(|entry| !claim::is_users(object::text(entry, "manager"), ""))
        .filter_map(|entry| object::text(entry, "time").parse().ok())
        .max();
    edited.max(claimed)
}

#[cfg(test)]
mod tests;
