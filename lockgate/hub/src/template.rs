//! The pass over one template: claim, place, render and gate, and every write that follows, removals last. The only writer of
//! claims, bindings and Works.
//!
//! A pass starts from what is in memory and ends when nothing differs. It may be cut off after any write: the next one sees
//! what was written and goes on from there.

mod aggregating;
mod brief;
mod departures;
pub(crate) mod disputes;
mod envelope;
mod gating;
mod gone;
mod holding;
mod interpreting;
pub(crate) mod keepsakes;
mod leaving;
mod needed;
pub(crate) mod owning;
mod placing;
pub(crate) mod priority;
pub(crate) mod refusals;
mod report;
mod reserved;
pub(crate) mod revisions;
mod versions;
mod works;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use lockgate_api::binding::TargetCluster;
use lockgate_api::meta::OwnerReference;
use lockgate_api::{Binding, Condition, PropagationPolicy, keys, names};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{self, Act, Claim, ClaimInput, Decision};
use lockgate_engine::gate::record::Refused;
use lockgate_engine::interpret::Interpreter;
use lockgate_engine::object;
use lockgate_engine::place;
use serde_json::Value;

use crate::cache::Key;
use crate::chores::Chore;
use crate::events::EventTarget;
use crate::kinds::Kind;
use crate::link::LinkError;
use crate::neighbours;
use crate::policies;
use crate::resource::Resource;
use crate::state::{self, State, WALK};
pub(crate) use departures::Departures;
pub(crate) use gone::{Presence, presence};
pub(crate) use holding::{Suspended, is_failover_paused, wake_after};
pub(crate) use leaving::{Left, WAITING_FOR_TURN};
pub(crate) use owning::of_work;
pub(crate) use report::report;
pub(crate) use revisions::Stored;
pub use works::derived_id;
pub(crate) use works::{placed, put_rendered, removal, targets};
pub(crate) use writes::{
    delete, delete_work, encode, encode_status, make_work_again, refresh, refresh_work, release_work,
    replace_status, write_work, write_work_status,
};

/// How long a status waits for more to tell.
pub(crate) const REPORT_AFTER: std::time::Duration = std::time::Duration::from_millis(50);

/// Why a pass did not reach its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    /// Somebody else has written the object; the newest is in memory now.
    #[error("the object has changed meanwhile")]
    Again,
    /// A server said no.
    #[error("{what}: {error}")]
    Link {
        /// What was tried.
        what: &'static str,
        /// What it answered.
        error: LinkError,
    },
    /// Something is missing that may come.
    #[error("{0}")]
    NotYet(String),
}

/// What the last pass decided about where a template goes, for its status.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    /// The `Scheduled` condition: status, reason, message. Absent where nothing was placed.
    pub(crate) scheduled: Option<(bool, &'static str, String)>,
    /// Clusters whose manifest could not be rendered, with the reason.
    pub(crate) unrendered: BTreeMap<String, String>,
    /// What the hub did not take of that, until it does. A rollout keeps in its record what counts of it.
    pub(crate) refused: BTreeMap<String, Refused>,
    /// Clusters that keep more replicas than they are to have, with how many, until others have theirs.
    pub(crate) keeping: Vec<(String, i64)>,
    /// Why it is not placed at all.
    pub(crate) unplaced: Option<String>,
    /// Whether it is waited for until its copies are well.
    pub(crate) waits_for_health: bool,
    /// The clusters that it leaves in this pass.
    pub(crate) left: Option<Left>,
    /// Why it stays on a cluster that it should leave: a reason, and a message.
    pub(crate) staying: Option<(&'static str, String)>,
    /// Why nothing of it is activated any more: nobody owns it.
    pub(crate) orphaned: Option<Condition>,
    /// What is wrong with the scripts that read it.
    pub(crate) uninterpreted: Option<String>,
    /// What those who need it do not agree on.
    pub(crate) disagreement: Option<String>,
    /// Why nothing is done for a policy that selects it in a version that is not the template.
    pub(crate) elsewhere: Option<String>,
    /// Why nothing of it is sent, whoever selects it: a cluster has the name of its namespace.
    pub(crate) reserved: Option<String>,
}

/// What a policy means for a template, once that is written.
enum Applied {
    /// Nobody owns it.
    Unowned,
    /// What was sent stays as it is.
    Frozen,
    /// It is sent where the binding says.
    Bound,
}

/// A template on its way through the stations.
struct Walk<'a> {
    state: &'a State,
    id: &'a TemplateId,
    resource: Resource,
    template: Value,
    /// When a user last wrote the template.
    written: Option<Timestamp>,
    binding: Option<Arc<Binding>>,
    /// How it is read, if in a way of its own.
    interpreter: Option<Arc<Interpreter>>,
    /// Whether Works are rendered again although no input changed: somebody edited one by hand.
    render: bool,
}

/// Walks one template through the stations.
pub(crate) async fn walk(state: &State, id: &TemplateId, render: bool) -> Result<(), PassError> {
    let Some(kind) = state.kinds.served(&id.api_version, &id.kind) else {
        // Nothing can be said of a kind that is not served, or not known well enough yet.
        owning::give_up_unserved_name(state, id);
        return Ok(());
    };
    // One that goes in the midst of this pass has another pass look.
    let was_held = owning::holds_name(state, id);
    let result = walk_served(state, id, &kind, render).await;
    departures::settle(state, id);
    if was_held && result.is_ok() {
        owning::give_up_name(state, id);
    }
    result
}

async fn walk_served(state: &State, id: &TemplateId, kind: &Kind, render: bool) -> Result<(), PassError> {
    let key = Key::new(&id.namespace, &id.name);
    let Some(cached) = kind.cache.get(&key) else {
        if state.bindings(&id.namespace).0.get(&binding_key(id)).is_none() {
            neighbours::settle(state, id, None);
        }
        policies::forget(state, id);
        return gone::gone(state, id, &kind.resource).await;
    };
    let Some(template) = state::parse::<Value>(&cached) else {
        return Ok(());
    };
    if object::deleting(&template) {
        policies::forget(state, id);
        return gone::gone(state, id, &kind.resource).await;
    }
    let binding = state.binding(&binding_key(id));
    let own = binding.as_deref().filter(|binding| is_for(binding, id));
    let is_left_alone = state.kinds.skips.skip_template(&template).is_some()
        || reserved::is_reserved(state, id, &template, own);
    if is_left_alone {
        policies::forget(state, id);
        let is_due = match own {
            Some(own) => own.metadata.deleting(),
            None => binding.is_none() && state.lost_bindings.lock().contains_key(id),
        };
        if !is_due {
            return Ok(());
        }
    } else if let Some(other) = owning::binding_taken_by(state, id, binding.as_deref()) {
        // Names of bindings carry no group, so that two kinds of one name share them. The first keeps it.
        let message = format!(
            "binding {} belongs to {} {}; rename one of the two objects",
            binding_key(id).name,
            other.api_version,
            other.kind
        );
        state
            .events
            .warn(&EventTarget::of_value(&template), "ApplyPolicyFailed", &message);
        return Ok(());
    }
    if !is_left_alone && versions::is_elsewhere(state, id, &template, binding.as_deref()) {
        policies::forget(state, id);
        return Ok(());
    }
    let mut walk = Walk {
        state,
        id,
        resource: kind.resource.clone(),
        template,
        written: state::written(&cached),
        binding,
        interpreter: state.interpreter(&id.api_version, &id.kind),
        render,
    };
    walk.settle_binding().await?;
    if is_left_alone {
        // What was sent stays as it is, and so does what says so.
        return Ok(());
    }
    let result = walk.run().await;
    // A write whose answer did not come may have happened.
    if !matches!(result, Err(PassError::Link { .. })) {
        neighbours::settle(state, id, walk.binding.as_deref());
    }
    result
}

/// Where a template's binding is.
pub(crate) fn binding_key(id: &TemplateId) -> Key {
    Key::new(&id.namespace, &names::binding_name(&id.kind, &id.name))
}

/// Whether a binding is of this template, or of one that had its name before.
pub(crate) fn is_for(binding: &Binding, id: &TemplateId) -> bool {
    let resource = &binding.spec.resource;
    let group = |api_version: &str| {
        api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
            .to_owned()
    };
    resource.kind == id.kind && resource.name == id.name && group(&resource.api_version) == id.group()
}

impl Walk<'_> {
    async fn run(&mut self) -> Result<(), PassError> {
        let begun = Instant::now();
        let decision = claim::claim(&ClaimInput {
            template: &self.template,
            policies: &self.state.policies.read(),
            binding: self.owned(),
            gates: self.state.gates,
            written: self.written,
        });
        self.state.metrics.match_policy(begun.elapsed());
        let result = self.carry_out(&decision).await;
        if !matches!(result, Err(PassError::Again)) {
            policies::note(self.state, self.id, &self.template, &decision, result.is_ok());
        }
        result
    }

    async fn carry_out(&mut self, decision: &Decision) -> Result<(), PassError> {
        let begun = Instant::now();
        let applied = self.apply(decision).await;
        let activates = matches!(decision.act, Act::Activate(_));
        if activates && matches!(applied, Err(PassError::Link { .. } | PassError::NotYet(_))) {
            self.state.metrics.apply_policy(false, begun.elapsed());
        }
        match applied? {
            Applied::Unowned => self.release(decision).await,
            Applied::Frozen => self.attend().await,
            Applied::Bound => self.send().await,
        }
    }

    /// Claims the template for its policy, and binds it.
    async fn apply(&mut self, decision: &Decision) -> Result<Applied, PassError> {
        let activates = matches!(decision.act, Act::Activate(_));
        if let (Some(policy), true) = (&decision.holder, activates && self.owned().is_none()) {
            // Nothing is claimed for the first time before it can be sent.
            self.check_dependent_overrides(policy)?;
        }
        self.claim(decision).await?;
        let Some(policy) = decision.holder.clone() else {
            return Ok(Applied::Unowned);
        };
        if activates {
            self.check_dependent_overrides(&policy)?;
        }
        if self.owned().is_none() && !activates {
            return Ok(Applied::Frozen);
        }
        self.bind(decision, &policy).await?;
        Ok(match self.binding.as_deref().is_none_or(is_frozen) {
            true => Applied::Frozen,
            false => Applied::Bound,
        })
    }

    /// Writes the claim to the template, if it is not there.
    async fn claim(&mut self, decision: &Decision) -> Result<(), PassError> {
        let Some(template) = decision.mark(&self.template, self.owned()) else {
            return Ok(());
        };
        if let Some(recorded) = decision.record_first(&self.template, self.owned()) {
            self.write_binding(recorded).await?;
        }
        let claimed = self.replace_template(&template).await;
        if let (Some(from), Some(policy)) = (&decision.preempted, &decision.holder) {
            self.tell_preempted(policy, from, &claimed);
        }
        self.template = claimed?;
        Ok(())
    }

    /// Tells how a preemption went. One that met a change of the template is tried again, and told then.
    fn tell_preempted(&self, policy: &PropagationPolicy, from: &Claim, claimed: &Result<Value, PassError>) {
        let preemption = format!(
            "Policy({}) preempted policy({})",
            named(policy),
            joined(&from.namespace, &from.name)
        );
        let (ok, reason, message) = match claimed {
            Ok(_) => (true, "PreemptPolicySucceed", format!("{preemption} succeed")),
            Err(error @ PassError::Link { .. }) => (
                false,
                "PreemptPolicyFailed",
                format!("{preemption} failed: {error}"),
            ),
            Err(_) => return,
        };
        self.state.metrics.preempt_policy(ok);
        let target = EventTarget::of_value(&self.template);
        let events = &self.state.events;
        if ok {
            events.notice(&target, reason, &message);
        } else {
            events.warn(&target, reason, &message);
        }
    }

    /// Nobody owns the template: its binding loses the claim, and everything stays where it is.
    async fn release(&mut self, decision: &Decision) -> Result<(), PassError> {
        if let Some(binding) = self.owned() {
            let mut frozen = binding.clone();
            decision.bind(&self.template, &mut frozen);
            if frozen != *binding {
                self.write_binding(frozen).await?;
            }
            self.orphan(decision);
            self.state.reports.add_soon(self.id.clone(), 1, REPORT_AFTER);
            if is_namespace(self.id) {
                // It goes as it would without a policy.
                self.state.namespaces.add(self.id.name.clone(), 1);
            }
        }
        self.attend().await
    }

    /// Keeps in mind what is to be said of a template that nobody owns, or that somebody owns again.
    fn orphan(&self, decision: &Decision) {
        let candidate = self.state.policies.read().best(&self.template).cloned();
        let (gates, now) = (self.state.gates, self.state.clock.now());
        let orphaned = claim::orphaned(&decision.act, candidate.as_deref(), gates, now);
        self.state
            .verdicts
            .lock()
            .entry(self.id.clone())
            .or_default()
            .orphaned = orphaned;
    }

    fn check_dependent_overrides(&self, policy: &PropagationPolicy) -> Result<(), PassError> {
        let overrides = self.state.overrides.read();
        let missing: Vec<&str> = policy
            .spec
            .dependent_overrides
            .iter()
            .filter(|name| !overrides.contains(&policy.metadata.namespace, name))
            .map(String::as_str)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("waiting for dependent overrides: {}", missing.join(", "));
        let target = EventTarget::of_value(&self.template);
        self.state.events.warn(&target, "ApplyPolicyFailed", &message);
        Err(PassError::NotYet(message))
    }

    /// Brings the binding to what was activated, placed.
    async fn bind(&mut self, decision: &Decision, policy: &Arc<PropagationPolicy>) -> Result<(), PassError> {
        let begun = Instant::now();
        let before = self.binding.clone();
        let before = before.as_deref();
        let mut binding = before.cloned().unwrap_or_default();
        self.identify(&mut binding);
        if before.is_none() {
            self.inherit(&mut binding);
        }
        self.forget_carried(&mut binding);
        decision.bind(&self.template, &mut binding);
        let (mut uninterpreted, mut stored, mut left) = (None, None, None);
        if !is_frozen(&binding) {
            stored = self.way_back(&mut binding).await?;
            let sent = stored
                .as_ref()
                .map_or(&self.template, |stored| &stored.revision.template);
            uninterpreted = self.interpret(before, &mut binding, sent)?;
            let required = self.required(before).await?;
            self.follow(&required, &mut binding);
        }
        let told = self
            .state
            .verdicts
            .lock()
            .get(self.id)
            .cloned()
            .unwrap_or_default();
        if is_frozen(&binding) {
            self.orphan(decision);
            self.state.reports.add_soon(self.id.clone(), 1, REPORT_AFTER);
        } else if let Some(stored) = stored {
            // What was given up is not placed; what is sent in its place goes where it went, as far as that is still there.
            let is_there = |target: &&TargetCluster| {
                let cluster = self.state.cluster(&target.name);
                cluster.is_some_and(|cluster| !cluster.metadata.deleting())
            };
            let clusters = stored.revision.clusters.iter().filter(is_there);
            let clusters: Vec<TargetCluster> = clusters.cloned().collect();
            if binding.spec.clusters != clusters {
                binding.spec.clusters = clusters;
                binding.metadata.annotations.remove(keys::APPLIED_PLACEMENT);
            }
            let mut verdicts = self.state.verdicts.lock();
            verdicts.entry(self.id.clone()).or_insert_with(|| told.clone());
        } else {
            let activates = matches!(decision.act, Act::Activate(_));
            if activates || !policy.spec.is_lazy() {
                self.prioritize(policy, &mut binding, activates)?;
            }
            if activates {
                let placement = &policy.spec.placement;
                let groups = self.state.gates.workload_affinity;
                let groups = groups.then(|| place::affinity_groups(placement, &self.template));
                binding.spec.workload_affinity_groups = groups.flatten();
            }
            let mut verdict = self.place(&mut binding, &told)?;
            verdict.unrendered.clone_from(&told.unrendered);
            verdict.refused.clone_from(&told.refused);
            verdict.keeping.clone_from(&told.keeping);
            verdict.uninterpreted = uninterpreted;
            left = verdict.left.take();
            self.state.verdicts.lock().insert(self.id.clone(), verdict);
        }
        if before == Some(&binding) {
            self.tell_unplaced(&binding, &told);
            return Ok(());
        }
        let moved = before.is_none_or(|before| before.spec.clusters != binding.spec.clusters);
        let written = self.write_binding(binding).await;
        if let Some(left) = &left {
            self.count_left(left, written.is_ok());
        }
        if let Err(error) = written {
            // What could not be said of it is said the next time.
            if let Some(verdict) = self.state.verdicts.lock().get_mut(self.id) {
                verdict.scheduled = told.scheduled;
            }
            return Err(error);
        }
        keepsakes::forget_binding(self.state, self.id).await?;
        if let Some(binding) = &self.binding {
            if moved && !binding.spec.clusters.is_empty() {
                self.tell_placed(binding);
            }
            if let Some(left) = &left {
                self.tell_left(binding, left);
            }
            self.tell_unplaced(binding, &told);
        }
        for name in self.state.rebalances.read().naming(self.id) {
            self.state.chores.add(Chore::Rebalance(name), 1);
        }
        if matches!(decision.act, Act::Activate(_)) {
            let message = format!("Apply policy({}) succeed", named(policy));
            let target = EventTarget::of_value(&self.template);
            self.state.events.success(&target, "ApplyPolicySucceed", &message);
            self.state.metrics.apply_policy(true, begun.elapsed());
        }
        Ok(())
    }

    /// What makes a binding this template's.
    fn identify(&self, binding: &mut Binding) {
        let key = binding_key(self.id);
        let metadata = &mut binding.metadata;
        metadata.name = key.name.to_string();
        metadata.namespace = key.namespace.to_string();
        let uid = object::meta_text(&self.template, "uid");
        let (id_label, finalizer) = scope_keys(self.id);
        metadata
            .labels
            .entry(id_label.to_owned())
            .or_insert_with(|| uid.to_owned());
        if !metadata.finalizers.iter().any(|f| f == finalizer) {
            metadata.finalizers.push(finalizer.to_owned());
        }
        if metadata.controller().is_none_or(|owner| owner.uid != uid) {
            metadata.owner_references = vec![OwnerReference {
                api_version: self.id.api_version.clone(),
                kind: self.id.kind.clone(),
                name: self.id.name.clone(),
                uid: uid.to_owned(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }];
        }
    }
}

/// Whether a template is a Namespace, which goes to every member by itself.
pub(crate) fn is_namespace(id: &TemplateId) -> bool {
    id.kind == "Namespace" && id.api_version == "v1"
}

/// The template of a binding.
pub(crate) fn template_of(binding: &Binding) -> TemplateId {
    let resource = &binding.spec.resource;
    TemplateId {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        namespace: resource.namespace.clone(),
        name: resource.name.clone(),
    }
}

/// Whether nobody's intent is in a binding: it is not placed, and what was sent stays. One whose new owner waits is frozen
/// until the owner's intent is activated.
fn is_frozen(binding: &Binding) -> bool {
    Claim::on_binding(&binding.metadata).is_none()
}

/// The label that carries a binding's id, and its finalizer.
pub(crate) fn scope_keys(id: &TemplateId) -> (&'static str, &'static str) {
    if id.namespace.is_empty() {
        (keys::CRB_ID, keys::CRB_FINALIZER)
    } else {
        (keys::RB_ID, keys::RB_FINALIZER)
    }
}

/// The id of a binding, which its Works carry.
pub(crate) fn binding_id<'a>(binding: &'a Binding, id: &TemplateId) -> &'a str {
    binding.metadata.label(scope_keys(id).0).unwrap_or_default()
}

fn set_annotation(template: &mut Value, key: &str, value: &str) -> bool {
    if object::annotation(template, key) == Some(value) {
        return false;
    }
    template["metadata"]["annotations"][key] = Value::String(value.to_owned());
    true
}

fn named(policy: &PropagationPolicy) -> String {
    joined(&policy.metadata.namespace, &policy.metadata.name)
}

fn joined(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// Asks for another walk over a template.
pub(crate) fn wake(state: &State, id: TemplateId) {
    state.templates.add(id, WALK);
}
