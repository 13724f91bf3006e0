//! WorkloadRebalancers: workloads that are to be placed anew, once.
//!
//! The pass over a template looks up whether a rebalancer names it and writes that to the binding together with the new
//! result, so that a binding has one writer; here the rebalancer's status is told from the bindings. A rebalancer asks from
//! its creation on: what was placed later than that is not moved again, and neither is anything after a restart.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::rebalancer::{ObservedWorkload, RebalancerStatus, WorkloadReference};
use lockgate_api::{Binding, WorkloadRebalancer};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::Claim;
use lockgate_engine::place::LastPlaced;

use crate::cache::{Change, Key};
use crate::chores::Chore;
use crate::clock::{later, seconds};
use crate::link::{DeleteOptions, LinkError};
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{self, PassError, binding_key, encode_status, is_for, replace_status};

/// The workloads that rebalancers name.
#[derive(Default)]
pub(crate) struct Rebalances {
    by_workload: HashMap<TemplateId, BTreeMap<String, Timestamp>>,
}

impl Rebalances {
    /// When a workload was last asked to be placed anew, by rebalancers that are there.
    pub(crate) fn asked(&self, id: &TemplateId) -> Option<Timestamp> {
        self.by_workload.get(id)?.values().max().copied()
    }

    /// The rebalancers that name a workload.
    pub(crate) fn naming(&self, id: &TemplateId) -> Vec<String> {
        let names = self.by_workload.get(id).into_iter().flat_map(BTreeMap::keys);
        names.cloned().collect()
    }

    fn put(&mut self, name: &str, old: &[TemplateId], new: &[TemplateId], created: Option<Timestamp>) {
        for id in old {
            if let Some(all) = self.by_workload.get_mut(id) {
                all.remove(name);
                if all.is_empty() {
                    self.by_workload.remove(id);
                }
            }
        }
        if let Some(created) = created {
            for id in new {
                let all = self.by_workload.entry(id.clone()).or_default();
                all.insert(name.to_owned(), created);
            }
        }
    }
}

fn id(workload: &WorkloadReference) -> TemplateId {
    TemplateId {
        api_version: workload.api_version.clone(),
        kind: workload.kind.clone(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
    }
}

fn workloads(rebalancer: Option<&WorkloadRebalancer>) -> Vec<TemplateId> {
    let all = rebalancer.into_iter().flat_map(|all| &all.spec.workloads);
    all.map(id).collect()
}

fn created(rebalancer: &WorkloadRebalancer) -> Option<Timestamp> {
    rebalancer.metadata.creation_timestamp.as_deref()?.parse().ok()
}

/// A rebalancer changed.
pub(crate) fn intake(state: &State, change: &Change) {
    let parse = |cached: &Option<std::sync::Arc<crate::cache::Cached>>| {
        cached
            .as_ref()
            .and_then(|cached| state::parse::<WorkloadRebalancer>(cached))
    };
    let (old, new) = (parse(&change.old), parse(&change.new));
    let Some(key) = change.key() else { return };
    let ids = workloads(new.as_ref());
    state.rebalances.write().put(
        &key.name,
        &workloads(old.as_ref()),
        &ids,
        new.as_ref().and_then(created),
    );
    if change.own {
        return;
    }
    if new.is_some() {
        state.chores.add(Chore::Rebalance(key.name.to_string()), 1);
    }
    let same_spec = old
        .as_ref()
        .zip(new.as_ref())
        .is_some_and(|(old, new)| old.spec == new.spec && old.metadata.uid == new.metadata.uid);
    if !same_spec {
        for id in ids {
            template::wake(state, id);
        }
    }
}

/// Asks a binding to be placed anew if a rebalancer does; whether one does.
pub(crate) fn ask(state: &State, id: &TemplateId, binding: &mut Binding) -> bool {
    let Some(asked) = state.rebalances.read().asked(id) else {
        return false;
    };
    let before = binding.spec.reschedule_triggered_at.as_deref().and_then(time);
    // What was made after the rebalancer was placed after it, too.
    let made = binding.metadata.creation_timestamp.as_deref().and_then(time);
    if made.is_none_or(|made| asked < made) || before.is_some_and(|before| asked <= before) {
        return false;
    }
    LastPlaced::expect_rebalance(binding);
    binding.spec.reschedule_triggered_at = Some(seconds(asked));
    true
}

/// Tells what became of a rebalancer, and removes one whose time is over.
pub(crate) async fn pass(state: &State, name: &str) -> Result<(), PassError> {
    let cache = &state.caches.rebalancers;
    let key = Key::new("", name);
    let Some(rebalancer) = cache
        .get(&key)
        .and_then(|cached| state::parse::<WorkloadRebalancer>(&cached))
    else {
        return Ok(());
    };
    if rebalancer.metadata.deleting() {
        return Ok(());
    }
    let Some(asked) = created(&rebalancer) else {
        return Ok(());
    };
    let now = state.clock.now();
    let status = told(state, &rebalancer, asked, now);
    let resource = Resource::workload_rebalancers();
    if status != rebalancer.status {
        let body = encode_status(&resource, &rebalancer.metadata, &status);
        let what = "failed to write a rebalancer's status";
        replace_status(state, cache, &resource, &key, body, what).await?;
    }
    let finished = status.finish_time.as_deref().and_then(|time| time.parse().ok());
    let (Some(finished), Some(ttl)) = (finished, rebalancer.spec.ttl_seconds_after_finished) else {
        return Ok(());
    };
    let due = later(finished, Duration::from_secs(u64::try_from(ttl).unwrap_or(0)));
    if now < due {
        state.chores.add_at(Chore::Rebalance(name.to_owned()), 1, due);
        return Ok(());
    }
    let options = DeleteOptions {
        uid: Some(rebalancer.metadata.uid.clone()),
        ..DeleteOptions::default()
    };
    match state.link.delete(&resource.object("", name), &options).await {
        Ok(()) | Err(LinkError::NotFound) => Ok(()),
        Err(LinkError::Conflict) => Err(PassError::Again),
        Err(error) => Err(PassError::Link {
            what: "failed to delete a rebalancer whose time is over",
            error,
        }),
    }
}

/// The status of a rebalancer.
fn told(
    state: &State,
    rebalancer: &WorkloadRebalancer,
    asked: Timestamp,
    now: Timestamp,
) -> RebalancerStatus {
    let before = &rebalancer.status;
    let mut observed: Vec<ObservedWorkload> = rebalancer
        .spec
        .workloads
        .iter()
        .map(|workload| {
            let known = before
                .observed_workloads
                .iter()
                .find(|observed| observed.workload == *workload && !observed.result.is_empty());
            known.cloned().unwrap_or_else(|| observe(state, workload, asked))
        })
        .collect();
    // What was done stays told, also when somebody takes it out of the list.
    let removed = before
        .observed_workloads
        .iter()
        .filter(|old| old.result == "Successful" && !rebalancer.spec.workloads.contains(&old.workload));
    observed.extend(removed.cloned());
    observed.sort();
    observed.dedup();
    let done = observed.iter().all(|observed| !observed.result.is_empty());
    let same = before.observed_generation == Some(rebalancer.metadata.generation);
    let finish_time = match &before.finish_time {
        Some(time) if done && same => Some(time.clone()),
        _ => done.then(|| seconds(now)),
    };
    RebalancerStatus {
        observed_workloads: observed,
        observed_generation: Some(rebalancer.metadata.generation),
        finish_time,
    }
}

/// Whether a binding was asked, or need not be: what was made after the rebalancer was placed after it, too.
fn is_done(binding: &Binding, asked: Timestamp) -> bool {
    let told = binding.spec.reschedule_triggered_at.as_deref().and_then(time);
    let made = binding.metadata.creation_timestamp.as_deref().and_then(time);
    told.is_some_and(|told| told.as_second() >= asked.as_second()) || made.is_some_and(|made| made > asked)
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

fn observe(state: &State, workload: &WorkloadReference, asked: Timestamp) -> ObservedWorkload {
    let id = id(workload);
    let binding = state
        .binding(&binding_key(&id))
        .filter(|binding| is_for(binding, &id));
    let (result, reason) = match binding {
        None => ("Failed", "ReferencedBindingNotFound"),
        // Nobody's intent is in it, and what was sent stays where it is.
        Some(binding) if Claim::on_binding(&binding.metadata).is_none() => ("Failed", "BindingNotClaimed"),
        Some(binding) => {
            if is_done(&binding, asked) {
                ("Successful", "")
            } else {
                ("", "")
            }
        }
    };
    ObservedWorkload {
        workload: workload.clone(),
        result: result.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_asked_or_is_younger_is_done() {
        let asked: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
        // When it was made, and what it was asked last.
        for (made, told, expected) in [
            ("2026-01-01T00:00:01Z", None, false),
            ("2026-01-01T00:00:05Z", None, false),
            ("2026-01-01T00:00:06Z", None, true),
            ("2026-01-01T00:00:01Z", Some("2026-01-01T00:00:04Z"), false),
            ("2026-01-01T00:00:01Z", Some("2026-01-01T00:00:05Z"), true),
        ] {
            let mut binding = Binding::default();
            binding.metadata.creation_timestamp = Some(made.to_owned());
            binding.spec.reschedule_triggered_at = told.map(str::to_owned);
            assert_eq!(is_done(&binding, asked), expected, "{made} {told:?}");
        }
    }
}
