//! What is told of a policy: on the copy, and on the replica.

use std::sync::Arc;

use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::{PolicyStatus, REVISION, TemplateDetails};
use lockgate_engine::comply::replica::{self, Told};
use serde_json::Value;

use super::super::dispatching::SendError;
use super::super::lane::{Errand, Lane, OBSERVE};
use super::Visit;
use crate::cache::Key;
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{self, encode_status};

/// Of which revision what is told is the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// Of none: the member does not show what is to be looked at.
    None,
    /// Of the one before, if of any: there is more to come.
    Earlier,
    /// Of this one.
    Last,
}

impl Visit<'_> {
    /// Tells what was found of every template of one revision.
    pub(super) async fn report(
        &self,
        told: &[(&str, Told<'_>)],
        revision: &str,
        word: Word,
    ) -> Result<(), SendError> {
        let key = Key::new(self.cluster(), self.name);
        let Some(replica) = super::replica(self.state, &key) else {
            return Ok(());
        };
        if replica.metadata.annotation(REVISION).unwrap_or_default() != revision {
            // There is another by now, and it was not looked at.
            return Err(SendError::Again);
        }
        let copies = self.own.copies();
        let copy: Option<Policy> = copies.get(&key).and_then(|cached| state::parse(&cached));
        let before = replica.status.clone().unwrap_or_default();
        let evaluated = match word {
            Word::Last => revision,
            Word::Earlier => &before.evaluated_revision,
            Word::None => "",
        };
        let now = self.state.clock.now();
        let (details, compliant) = replica::report(self.name, &before, told, now);
        if let Some(copy) = copy {
            let was = copy.status.clone().unwrap_or_default();
            // The history of a copy goes with it; that of the replica is what people read.
            let status = PolicyStatus {
                rollout_status: before.rollout_status.clone(),
                rollout_status_transition_time: before.rollout_status_transition_time.clone(),
                ..said(&was, &details, compliant, evaluated)
            };
            if status != was {
                self.may_write()?;
                let resource = copies.resource();
                let path = resource.status(&key.namespace, &key.name);
                let body = encode_status(resource, &copy.metadata, &status);
                let _: Value = self.put(copies, &key, &path, body).await?;
                // What follows may fail, and with the next try there is nothing new on the copy.
                if is_news(&was, &status) {
                    self.wake_dependents();
                }
            }
        }
        write(self.state, &key, &replica, &details, compliant, evaluated).await
    }

    /// Wakes the policies of this member that wait for others; one may wait for a template of its own, or for a name.
    pub(super) fn wake_dependents(&self) {
        wake_dependents(self.lane);
    }
}

/// Wakes the policies of a member that wait for others.
pub(super) fn wake_dependents(lane: &Lane) {
    for (name, memory) in lane.policies.memories.lock().iter() {
        if memory.waits {
            lane.queue.add(Errand::Policy(name.clone()), OBSERVE);
        }
    }
}

/// Whether a copy says something new to those who wait for the policy, for one template of it, or for its last word.
pub(super) fn is_news(was: &PolicyStatus, is: &PolicyStatus) -> bool {
    was.compliant != is.compliant
        || was.evaluated_revision != is.evaluated_revision
        || states(was) != states(is)
}

/// The templates of a policy with their states.
fn states(status: &PolicyStatus) -> Vec<(&str, &str)> {
    let details = status.details.iter();
    details
        .map(|one| (one.template_meta.name.as_str(), one.compliant.as_str()))
        .collect()
}

/// What a status says with this compliance.
fn said(was: &PolicyStatus, details: &[TemplateDetails], compliant: &str, revision: &str) -> PolicyStatus {
    PolicyStatus {
        compliant: compliant.to_owned(),
        details: details.to_vec(),
        evaluated_revision: revision.to_owned(),
        ..was.clone()
    }
}

/// Tells of a replica that cannot even be brought to its member.
pub(super) async fn failed(
    state: &Arc<State>,
    key: &Key,
    replica: &Policy,
    message: &str,
) -> Result<(), SendError> {
    let planned = replica::plan(replica, &key.namespace);
    let told: Vec<(&str, Told<'_>)> = planned
        .iter()
        .map(|planned| (planned.name.as_str(), Told::Wrong(message.to_owned())))
        .collect();
    let before = replica.status.clone().unwrap_or_default();
    let (details, compliant) = replica::report(&key.name, &before, &told, state.clock.now());
    // Nothing of it is known any more, so that nobody may take this for what an evaluation found.
    write(state, key, replica, &details, compliant, "").await
}

async fn write(
    state: &Arc<State>,
    key: &Key,
    replica: &Policy,
    details: &[TemplateDetails],
    compliant: &str,
    revision: &str,
) -> Result<(), SendError> {
    let before = replica.status.clone().unwrap_or_default();
    let status = said(&before, details, compliant, revision);
    if status == before {
        return Ok(());
    }
    let policies = state.ocm.policy_cache();
    let resource = Resource::policies();
    let body = encode_status(&resource, &replica.metadata, &status);
    let what = "failed to write the compliance of a policy";
    match template::replace_status(state, policies, &resource, key, body, what).await {
        Ok(_) => Ok(()),
        Err(template::PassError::Again) => Err(SendError::Again),
        Err(error) => Err(SendError::Hub(error)),
    }
}
