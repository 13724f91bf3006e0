//! The end of a policy on its member: the ConfigurationPolicies go, what goes with them, and the copy.

use std::sync::Arc;

use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::{REVISION, ROOT_POLICY};

use super::super::dispatching::{SendError, Sent};
use super::super::lane::Lane;
use super::Visit;
use super::sync::{has_enforced, waits_for_its_turn};
use crate::cache::Key;
use crate::link::{Link, LinkError};
use crate::resource::Resource;
use crate::state::{self, State};

/// Removes what a replica made on its member, if the replica is gone by the hub's own word and nobody makes it again.
pub(super) async fn pass(
    state: &Arc<State>,
    lane: &Arc<Lane>,
    link: &Link,
    key: &Key,
) -> Result<Sent, SendError> {
    let Some(own) = lane.policies.own() else {
        // There never was a policy.
        return Ok(Sent::Settled);
    };
    let visit = Visit {
        state,
        lane,
        link,
        own: &own,
        name: &key.name,
    };
    let copy: Option<Policy> = own.copies().get(key).and_then(|cached| state::parse(&cached));
    let ours = copy
        .as_ref()
        .is_none_or(|copy| copy.metadata.label(ROOT_POLICY).is_some());
    let templates = visit.made_templates();
    if !ours || (copy.is_none() && templates.is_empty()) {
        visit.forget();
        return Ok(Sent::Settled);
    }
    is_due(state, key, copy.as_ref()).await?;
    // What it enforced before it waited for its turn goes, although it only informs now.
    let waited = copy
        .as_ref()
        .is_some_and(|copy| copy.metadata.annotation(REVISION).is_some() && waits_for_its_turn(copy));
    for template in templates {
        let enforces = template.spec.remediation_action.eq_ignore_ascii_case("enforce");
        let prunes = enforces || waited && has_enforced(&template);
        if let Some(why) = visit.take_away(&template, prunes).await? {
            return Err(SendError::NotYet(why));
        }
    }
    if let Some(copy) = copy {
        visit.delete(own.copies(), &copy.metadata).await?;
    }
    visit.forget();
    visit.wake_dependents();
    Ok(Sent::Settled)
}

/// Whether a policy may go from its member.
async fn is_due(state: &State, key: &Key, copy: Option<&Policy>) -> Result<(), SendError> {
    let policies = Resource::policies();
    let unknown =
        |error: LinkError| SendError::NotYet(format!("nobody can tell whether {key} is gone: {error}"));
    match state.link.get(&policies.object(&key.namespace, &key.name)).await {
        Err(LinkError::NotFound) => {}
        Err(error) => return Err(unknown(error)),
        Ok(answer) => {
            let found: Policy =
                serde_json::from_slice(&answer).map_err(|error| SendError::NotYet(error.to_string()))?;
            if found.metadata.label(ROOT_POLICY).is_some() && !found.metadata.deleting() {
                // It is back.
                return state
                    .ocm
                    .policy_cache()
                    .learn_read(&answer)
                    .map_err(SendError::Member)
                    .and(Err(SendError::Again));
            }
        }
    }
    // A root's name may have dots, its namespace has none.
    let root = copy.and_then(|copy| copy.metadata.label(ROOT_POLICY));
    let Some((namespace, name)) = root.unwrap_or(&key.name).split_once('.') else {
        return Ok(());
    };
    match state.link.get(&policies.object(namespace, name)).await {
        Err(LinkError::NotFound) => Ok(()),
        Err(error) => Err(unknown(error)),
        Ok(answer) => {
            let root: Policy =
                serde_json::from_slice(&answer).map_err(|error| SendError::NotYet(error.to_string()))?;
            let status = root.status.unwrap_or_default();
            let wanted = status.status.iter().any(|one| *one.clustername == *key.namespace);
            if wanted && !root.metadata.deleting() && !root.spec.disabled {
                return Err(SendError::NotYet(format!(
                    "{key} is made again: its root goes there"
                )));
            }
            Ok(())
        }
    }
}

impl Visit<'_> {
    /// Forgets a policy.
    fn forget(&self) {
        self.unwatch(&Default::default());
        self.lane.policies.memories.lock().remove(self.name);
    }
}
