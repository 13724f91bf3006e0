//! Templates in the namespaces of clusters. Those are the control plane's, and nothing in them is sent; whoever has a policy for
//! something in one, or had it sent before the cluster joined, is told so.

use lockgate_api::{Binding, Condition};
use lockgate_engine::TemplateId;
use lockgate_engine::claim;
use serde_json::Value;

use super::{REPORT_AFTER, is_namespace};
use crate::events::EventTarget;
use crate::ocm;
use crate::state::State;

/// The condition of a binding of which nothing is sent any more.
pub(super) const PROPAGATED: &str = "Propagated";

/// Whether a template is left alone because a cluster has the name of its namespace. What was told is not told again.
pub(super) fn is_reserved(
    state: &State,
    id: &TemplateId,
    template: &Value,
    binding: Option<&Binding>,
) -> bool {
    let reserved = ocm::is_reserved(state, id);
    let concerns = || binding.is_some() || state.policies.read().best(template).is_some();
    let message = (reserved && concerns()).then(|| {
        let namespace = if is_namespace(id) { &id.name } else { &id.namespace };
        claim::in_cluster_namespace(namespace)
    });
    let mut verdicts = state.verdicts.lock();
    let told = verdicts.get(id).and_then(|verdict| verdict.reserved.as_ref());
    if told == message.as_ref() {
        return reserved;
    }
    let said = binding.and_then(|binding| Condition::find(&binding.status.conditions, PROPAGATED));
    if let Some(message) = &message
        // Also by whoever ran before.
        && said.is_none_or(|said| said.message != *message)
    {
        let target = EventTarget::of_value(template);
        state.events.warn(&target, "NamespaceReserved", message);
    }
    verdicts.entry(id.clone()).or_default().reserved = message;
    drop(verdicts);
    if binding.is_some() {
        state.reports.add_soon(id.clone(), 1, REPORT_AFTER);
    }
    reserved
}
