//! The order in which templates are placed: the priority class that their policy names, as a number on the binding.
//!
//! Classes are followed once a policy names one, and not before. A class that does not exist counts as none, and is told;
//! when it comes, its number does too.

use std::sync::Arc;

use lockgate_api::{Binding, PropagationPolicy};
use serde_json::{Value, json};

use super::{PassError, Walk};
use crate::cache::Change;
use crate::events::EventTarget;
use crate::intake;
use crate::resource::Resource;
use crate::state::{self, State};
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
        if !classes.cache.synced() {
            return Err(PassError::NotYet("priority classes are not known yet".to_owned()));
        }
        let name = &wanted.priority_class_name;
        let class = classes
            .cache
            .find("", name)
            .and_then(|cached| state::parse::<Value>(&cached));
        let priority = class.and_then(|class| class["value"].as_i64());
        if tell && priority.is_none() {
            let message = format!(
                "the priority class {name:?} does not exist, and counts as none: create it, or correct \
                 spec.schedulePriority of the policy"
            );
            let target = EventTarget::of_value(&self.template);
            self.state.events.warn(&target, "ApplyPolicyFailed", &message);
        }
        let rank = i32::try_from(priority.unwrap_or(0)).unwrap_or(0);
        binding.spec.schedule_priority = priority.map(|priority| json!({ "priority": priority }));
        self.state.templates.rank(self.id, rank);
        Ok(())
    }
}

fn follow_classes(state: &State) -> Following {
    state
        .wiring
        .begin(&state.link, &Resource::priority_classes(), changed)
}

/// A class has come, changed or gone: the templates of those who name it are looked at again.
fn changed(state: &State, change: &Change) {
    let Some(key) = change.key() else { return };
    let policies: Vec<Arc<PropagationPolicy>> = {
        let all = state.policies.read();
        let named = all.iter().filter(|policy| {
            let wanted = policy.spec.schedule_priority.as_ref();
            wanted.is_some_and(|wanted| *wanted.priority_class_name == *key.name)
        });
        named.cloned().collect()
    };
    for policy in policies {
        for selector in &policy.spec.resource_selectors {
            intake::wake_selected(state, selector, &policy.metadata.namespace, |_| true);
        }
    }
}
