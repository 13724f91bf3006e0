//! Suspension in a template's pass: who holds its Works back, gathered for the gate, and written to the Works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_api::{Binding, RolloutPolicy, Work, keys, names};
use lockgate_engine::TemplateId;
use lockgate_engine::failover;
use lockgate_engine::gate::{self, HeldBy, Holds, Marks, Referrer, Release, ReleaseInput};
use serde_json::Value;

use super::writes::write_work;
use super::{PassError, Walk, gating, owning, wake};
use crate::cache::Key;
use crate::state::{self, State};

/// Everybody who may hold a template's Works back, beside its own policy.
pub(super) struct Holders {
    rollouts: Vec<Arc<RolloutPolicy>>,
    referrers: Vec<Referrer>,
    marks: Marks,
}

/// What a Work says of its suspension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspended {
    /// Whether nothing is sent.
    pub(crate) is: bool,
    /// By whom, and why; empty if there is nothing to add to the policy.
    pub(crate) by: String,
}

impl Suspended {
    /// Whether a cluster's Work is held back.
    pub(crate) fn on(holds: &Holds<'_>, cluster: &str) -> Self {
        let mut held = match gate::release(holds, cluster) {
            Release::Send => Vec::new(),
            Release::Suspended(held) => held,
        };
        // The mark is the word of somebody else, and stands for itself.
        held.retain(|by| *by != HeldBy::Mark);
        Self {
            is: !held.is_empty(),
            by: gate::suspended_by(&held),
        }
    }

    /// Held back by a rollout: what was suspended and is not any more takes its turn like everything else.
    pub(crate) fn until_its_turn() -> Self {
        Self {
            is: true,
            by: "the rollout, until its turn comes".to_owned(),
        }
    }

    /// Whether a Work says so.
    pub(crate) fn is_said_by(&self, work: &Work) -> bool {
        work.spec.suspend_dispatching.unwrap_or(false) == self.is
            && work.metadata.annotation(keys::SUSPENDED_BY).unwrap_or_default() == self.by
    }

    /// Makes a Work say so.
    pub(crate) fn put(self, work: &mut Work) {
        work.spec.suspend_dispatching = Some(self.is);
        let annotations = &mut work.metadata.annotations;
        if self.by.is_empty() {
            annotations.remove(keys::SUSPENDED_BY);
        } else {
            annotations.insert(keys::SUSPENDED_BY.to_owned(), self.by);
        }
    }
}

impl Holders {
    /// Arranged for the clusters of a binding.
    pub(super) fn of<'a>(&'a self, binding: &'a Binding) -> Holds<'a> {
        Holds::of(&ReleaseInput {
            spec: &binding.spec,
            rollouts: &self.rollouts,
            referrers: &self.referrers,
        })
        .with_marks(&self.marks)
    }
}

impl Walk<'_> {
    /// Who may hold this template's Works back.
    pub(super) fn holders(&self, binding: &Binding) -> Result<Holders, PassError> {
        // Looked up one after the other: the index is not read twice at a time.
        let rollouts = self.state.rollouts.read().about(&self.template);
        holders(self.state, self.id, rollouts, binding)
            .ok_or_else(|| PassError::NotYet("who needs it is not known yet".to_owned()))
    }

    /// A binding that nobody owns is not placed and not rendered, and its Works keep what they hold; but what rollout
    /// policies say of them is said of the template, not of its policy, and counts.
    pub(super) async fn hold_frozen(&self) -> Result<(), PassError> {
        let Some(binding) = &self.binding else {
            return Ok(());
        };
        let holders = self.holders(binding)?;
        let holds = holders.of(binding);
        let mut turned = false;
        for (cached, head) in owning::works_of(self.state, self.id) {
            let cluster = names::cluster_of(&cached.key.namespace).unwrap_or_default();
            let suspended = Suspended::on(&holds, cluster);
            if head.work.metadata.deleting()
                || suspended.is_said_by(&head.work)
                || !suspended.is && waits_for_its_turn(&head.work)
            {
                continue;
            }
            turned |= head.work.spec.suspend_dispatching.unwrap_or(false) != suspended.is;
            if let Some(mut work) = state::parse::<Work>(&cached) {
                suspended.put(&mut work);
                write_work(self.state, &work).await?;
            }
        }
        if turned {
            wake_dependents(self.state, binding);
        }
        Ok(())
    }
}

/// Whether a rollout holds back what a Work's member has not got: that is the rollout's to release.
fn waits_for_its_turn(work: &Work) -> bool {
    gating::is_unsent(work) && Suspended::until_its_turn().is_said_by(work)
}

/// What is held back, or changed, here may matter to what it needs.
pub(super) fn wake_dependents(state: &State, binding: &Binding) {
    let key = Key::new(&binding.metadata.namespace, &binding.metadata.name);
    wake_needed(state, &key);
}

/// Looks again at what a template needs: something happened to a copy of it.
pub(crate) fn wake_after(state: &State, id: &TemplateId) {
    wake_needed(state, &super::binding_key(id));
}

fn wake_needed(state: &State, binding: &Key) {
    for id in state.needs.dependents(binding) {
        wake(state, id);
    }
}

/// None if that is not known yet.
fn holders(
    state: &State,
    id: &TemplateId,
    rollouts: Vec<Arc<RolloutPolicy>>,
    binding: &Binding,
) -> Option<Holders> {
    Some(Holders {
        rollouts,
        referrers: referrers(state, binding)?,
        marks: Marks {
            own: marked(state, id),
            referrers: referrers_marked(state, binding),
        },
    })
}

/// Whether what a binding left behind on a cluster stays there, for the workload is held back there or where it goes; or
/// because nobody can tell yet.
pub(crate) fn is_failover_paused(state: &State, binding: &Binding, from: &str) -> bool {
    let id = super::template_of(binding);
    if state.kinds.is_unread(&id.api_version, &id.kind) {
        return true;
    }
    let rollouts = rollouts_about(state, &id).map(|(about, _)| about);
    let Some(holders) = holders(state, &id, rollouts.unwrap_or_default(), binding) else {
        return true;
    };
    let holds = holders.of(binding);
    failover::is_paused(&binding.spec, from, &|cluster| {
        gate::release(&holds, cluster) != Release::Send
    })
}

/// The rollout policies about a template, and the template, as far as it is known. Where there can be none, it is not read.
pub(super) fn rollouts_about(state: &State, id: &TemplateId) -> Option<(Vec<Arc<RolloutPolicy>>, Value)> {
    if !state.rollouts.read().may_concern(id) {
        return None;
    }
    let kind = state.kinds.served(&id.api_version, &id.kind)?;
    let cached = kind.cache.get(&Key::new(&id.namespace, &id.name))?;
    let template = state::parse(&cached)?;
    let about = state.rollouts.read().about(&template);
    Some((about, template))
}

/// The clusters where a template's Works carry the older mark.
fn marked(state: &State, id: &TemplateId) -> BTreeSet<String> {
    let name = owning::work_name(id);
    let marked: Vec<Key> = {
        let marked = state.works_marked.lock();
        marked.iter().filter(|key| *key.name == name).cloned().collect()
    };
    let clusters = marked.iter().filter_map(|key| names::cluster_of(&key.namespace));
    clusters
        .filter(|cluster| owning::work_on(state, id, cluster).is_some())
        .map(str::to_owned)
        .collect()
}

/// The same of the bindings that need a binding, by namespace and name.
fn referrers_marked(state: &State, binding: &Binding) -> BTreeMap<String, BTreeSet<String>> {
    if state.works_marked.lock().is_empty() {
        return BTreeMap::new();
    }
    let snapshots = binding.spec.required_by.iter();
    let all = snapshots.filter_map(|snapshot| {
        let referrer = state.binding(&Key::new(&snapshot.namespace, &snapshot.name))?;
        let marked = marked(state, &super::template_of(&referrer));
        Some((format!("{}/{}", snapshot.namespace, snapshot.name), marked))
    });
    all.filter(|(_, marked)| !marked.is_empty()).collect()
}

/// The bindings that need this one, as far as they are there; none if the hub has not shown all of what they are for: what
/// holds them back would count for nothing.
fn referrers(state: &State, binding: &Binding) -> Option<Vec<Referrer>> {
    let mut found = Vec::new();
    for snapshot in &binding.spec.required_by {
        let key = Key::new(&snapshot.namespace, &snapshot.name);
        let Some(referrer) = state.binding(&key) else {
            continue;
        };
        let id = super::template_of(&referrer);
        if state.kinds.is_unread(&id.api_version, &id.kind) {
            return None;
        }
        let rollouts = rollouts_about(state, &id).map(|(about, _)| about);
        found.push(Referrer {
            namespace: snapshot.namespace.clone(),
            name: snapshot.name.clone(),
            suspension: referrer.spec.suspension.clone(),
            rollouts: rollouts.unwrap_or_default(),
        });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use lockgate_api::BindingSpec;
    use serde_json::json;

    use super::*;

    /// Appendix A.6 of the Karmada specification, its last line: whatever it said before, false is said and not left out.
    #[test]
    fn a_work_always_says_whether_it_is_suspended() {
        let on = |names: &[&str]| json!({ "dispatchingOnClusters": { "clusterNames": names } });
        let table = [
            (json!(null), false),
            (json!({}), false),
            (json!({ "dispatching": false }), false),
            (json!({ "dispatching": true }), true),
            (json!({ "scheduling": true }), false),
            (on(&["m2"]), false),
            (on(&["m2", "m1"]), true),
        ];
        for (suspension, expected) in table {
            let spec = json!({ "suspension": suspension, "clusters": [{ "name": "m1" }] });
            let spec: BindingSpec = serde_json::from_value(spec).unwrap();
            let input = ReleaseInput {
                spec: &spec,
                rollouts: &[],
                referrers: &[],
            };
            for before in [None, Some(false), Some(true)] {
                let mut work = Work::default();
                work.spec.suspend_dispatching = before;
                Suspended::on(&Holds::of(&input), "m1").put(&mut work);
                let said = serde_json::to_value(&work).unwrap();
                assert_eq!(
                    said["spec"]["suspendDispatching"],
                    json!(expected),
                    "{suspension} after {before:?}"
                );
            }
        }
    }
}
