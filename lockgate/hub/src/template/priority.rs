//! The order in which templates are placed: the priority class that their policy names, as a number on the binding.
//!
//! The queue knows the number from the binding, also after a restart, and before there is a binding from the policy. Classes
//! are followed once a policy names one, and not before. A class that does not exist counts as none, and is told;
//! when it comes, its number does too.

use std::sync::Arc;

use lockgate_api::{Binding, PropagationPolicy};
use lockgate_engine::TemplateId;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{PassError, Walk};
use crate::cache::{Cache, Cached, Change, Key};
use crate::events::EventTarget;
use crate::intake;
use crate::resource::Resource;
use crate::state::{self, State, WALK};
use crate::watch::Following;

impl Walk<'_> {
    /// Gives the binding its place in the order; says so if there is no such class.
    pub(super) fn prioritize(
        &self,
        policy: &PropagationPolicy,
        binding: &mut Binding,
        tell: bool,
    ) -> Result<(), PassError> {
        let Some(wanted) = &policy.spec.schedule_priority else {
            if binding.spec.schedule_priority.take().is_some() {
                self.state.templates.rank(self.id, 0);
            }
            return Ok(());
        };
        let classes = self
            .state
            .priority_classes
            .get_or_init(|| follow_classes(self.state));
        if !classes.cache().synced() {
            // Whoever finds them complete in between finds it waiting, or it finds them complete.
            self.state.unranked.lock().insert(self.id.clone());
            if !classes.cache().synced() {
                return Err(PassError::NotYet("priority classes are not known yet".to_owned()));
            }
            self.state.unranked.lock().remove(self.id);
        }
        let name = &wanted.priority_class_name;
        let priority = number(classes.cache(), name);
        if tell && priority.is_none() {
            let message = format!(
                "the priority class {name:?} does not exist, and counts as none: create it, or correct \
                 spec.schedulePriority of the policy"
            );
            let target = EventTarget::of_value(&self.template);
            self.state.events.warn(&target, "ApplyPolicyFailed", &message);
        }
        let rank = rank_of(priority);
        binding.spec.schedule_priority = priority.map(|priority| json!({ "priority": priority }));
        self.state.templates.rank(self.id, rank);
        Ok(())
    }
}

/// The place in the order that a policy gives to what it owns; `None` if it says nothing, or that is not known yet.
pub(crate) fn rank_by(state: &State, policy: &PropagationPolicy) -> Option<i32> {
    let wanted = policy.spec.schedule_priority.as_ref()?;
    let classes = state.priority_classes.get_or_init(|| follow_classes(state));
    if !classes.cache().synced() {
        return None;
    }
    Some(rank_of(number(classes.cache(), &wanted.priority_class_name)))
}

/// Gives a template the place in the order that its binding says it has.
pub(crate) fn note(state: &State, id: &TemplateId, before: Option<&Binding>, now: Option<&Binding>) {
    let priority = |binding: Option<&Binding>| binding?.spec.schedule_priority.clone();
    let (before, now) = (priority(before), priority(now));
    let rank = |spec: Option<Value>| rank_of(spec.and_then(|spec| spec["priority"].as_i64()));
    if before.is_some() || now.is_some() {
        state.templates.rank(id, rank(now));
    }
}

/// What a policy wakes has no place in the order before its own pass was there. Those that are its own, or will be, get the
/// one that they will have, so that also the first time the highest come first.
pub(crate) fn foresee(state: &State, policy: &Key, rank: Option<i32>, id: &TemplateId, template: &Cached) {
    let Some(rank) = rank else { return };
    if state.tally.owns(policy, id) || will_own(state, policy, id, template) {
        state.templates.rank(id, rank);
    }
}

/// The same of a template that comes when its policy is there already.
pub(crate) fn foresee_new(state: &State, id: &TemplateId, change: &Change) {
    let (None, Some(template)) = (&change.old, &change.new) else {
        return;
    };
    // Else no policy names a class.
    if state.priority_classes.get().is_none() {
        return;
    }
    if let Some(rank) = future_owner(state, id, template).and_then(|policy| rank_by(state, &policy)) {
        state.templates.rank(id, rank);
    }
}

/// Whether a policy is the one that takes a template that has no binding yet.
fn will_own(state: &State, policy: &Key, id: &TemplateId, template: &Cached) -> bool {
    future_owner(state, id, template).is_some_and(|owner| {
        let owner = &owner.metadata;
        *owner.namespace == *policy.namespace && *owner.name == *policy.name
    })
}

/// Which policy takes a template that has no binding yet.
fn future_owner(state: &State, id: &TemplateId, template: &Cached) -> Option<Arc<PropagationPolicy>> {
    let (bindings, _) = state.bindings(&id.namespace);
    if bindings.get(&super::binding_key(id)).is_some() {
        return None;
    }
    let template: Value = state::parse(template)?;
    let policies = state.policies.read();
    policies.best(&template).cloned()
}

/// The number of a class, if there is such a class.
fn number(classes: &Cache, name: &str) -> Option<i64> {
    let class: Value = state::parse(&*classes.find("", name)?)?;
    class["value"].as_i64()
}

fn rank_of(priority: Option<i64>) -> i32 {
    i32::try_from(priority.unwrap_or(0)).unwrap_or(0)
}

/// The priority classes, from the moment on at which a policy names one.
pub(crate) struct Classes {
    following: Following,
    /// Wakes those who wait until all classes are known, and puts in order who was told before.
    waking: JoinHandle<()>,
}

impl Classes {
    /// What is known of them.
    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.following.cache
    }
}

impl Drop for Classes {
    fn drop(&mut self) {
        self.waking.abort();
    }
}

fn follow_classes(state: &State) -> Classes {
    let following = state
        .wiring
        .begin(&state.link, &Resource::priority_classes(), changed);
    let (cache, wiring) = (following.cache.clone(), state.wiring.clone());
    let waking = tokio::spawn(async move {
        // Where there are none, no change would say that these are all.
        cache.wait_synced().await;
        if let Some(state) = wiring.state() {
            wake_named(&state, |_| true);
            wake_unranked(&state);
        }
    });
    Classes { following, waking }
}

/// Under the lock, so that whoever asks whether something is left to do finds them waiting or awake.
fn wake_unranked(state: &State) {
    let mut unranked = state.unranked.lock();
    for id in std::mem::take(&mut *unranked) {
        state.templates.add(id, WALK);
    }
}

/// A class has come, changed or gone: the templates of those who name it are looked at again.
fn changed(state: &State, change: &Change) {
    if let Some(key) = change.key() {
        wake_named(state, |class| *class == *key.name);
    }
}

/// Has the templates of the policies looked at again that name such a class, in their order.
fn wake_named(state: &State, is_such: impl Fn(&str) -> bool) {
    let policies: Vec<Arc<PropagationPolicy>> = {
        let all = state.policies.read();
        let named = all.iter().filter(|policy| {
            let wanted = policy.spec.schedule_priority.as_ref();
            wanted.is_some_and(|wanted| is_such(&wanted.priority_class_name))
        });
        named.cloned().collect()
    };
    for policy in policies {
        let rank = rank_by(state, &policy);
        let key = Key::new(&policy.metadata.namespace, &policy.metadata.name);
        for selector in &policy.spec.resource_selectors {
            intake::wake_wanted(state, selector, &policy.metadata.namespace, |id, template| {
                foresee(state, &key, rank, id, template);
                true
            });
        }
    }
}
