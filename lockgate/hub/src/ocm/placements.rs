//! The pass over one placement: what it selects, and the decisions that say so. The only writer of PlacementDecisions and of
//! the statuses of Placements.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::meta::OwnerReference;
use lockgate_api::ocm::placement::{ClusterDecision, DecisionStatus, PlacementStatus};
use lockgate_api::ocm::{DISABLED, GROUP_INDEX, GROUP_NAME, PLACEMENT, Placement, PlacementDecision};
use lockgate_api::{Cluster, ObjectMeta};
use lockgate_engine::placement::prioritize::{Context, Prioritizer};
use lockgate_engine::placement::publish::GroupLabels;
use lockgate_engine::placement::{
    Choice, Input, Kept, Misconfigured, Outcome, Published, Rules, Step, decide, steps, tell,
};

use super::fleet::{Fleet, Known, Reading, ScoresAt, SharedRules};
use super::writes::{self, Part};
use super::{intake, policy_intake};
use crate::cache::{Cached, Key};
use crate::events::EventTarget;
use crate::resource::Resource;
use crate::state::State;
use crate::template::{PassError, encode, encode_status};

/// What predicates say of clusters, by placement: an answer holds until the cluster or the placement changes.
#[derive(Default)]
pub(crate) struct Memories(HashMap<Key, Memory>);

struct Memory {
    /// Of what it is the memory.
    rules: SharedRules,
    /// By the version of a cluster, which is its alone.
    matched: HashMap<u64, bool, BuildHasherDefault<Counted>>,
    /// When something that add-ons said runs out, and the answers with it.
    until: Option<Timestamp>,
    /// When it will be decided again, whatever happens.
    timer: Option<Timestamp>,
}

/// A hash for numbers that are given one after another, and by nobody else: every candidate of every decision is looked up.
#[derive(Default)]
struct Counted(u64);

impl Hasher for Counted {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number near the golden ratio of the range: neighbours come far apart in the upper bits, too.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Memories {
    pub(crate) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    fn take(&mut self, key: &Key, rules: &SharedRules) -> Memory {
        self.0
            .remove(key)
            .filter(|memory| Arc::ptr_eq(&memory.rules, rules))
            .unwrap_or_else(|| Memory {
                rules: rules.clone(),
                matched: HashMap::default(),
                until: None,
                timer: None,
            })
    }
}

impl Memory {
    /// Forgets the answers that no longer hold, and says until when those hold that follow.
    fn hold(&mut self, now: Timestamp, until: Option<Timestamp>) {
        if self.until.is_some_and(|until| until <= now) {
            self.matched.clear();
        }
        self.until = until;
    }
}

/// What is to be written about a placement.
struct Plan {
    steps: Vec<Step>,
    status: Option<PlacementStatus>,
    scores: Option<String>,
    recheck: Option<Timestamp>,
}

/// Decides about one placement, writes what follows, and lets the policies go on that waited for it.
pub(crate) async fn pass(state: &State, key: &Key) -> Result<(), PassError> {
    let change = state.ocm.fleet.read().undecided(key);
    settle(state, key).await?;
    let roots = state.ocm.fleet.write().decide(key, change);
    for root in roots {
        policy_intake::wake(state, root);
    }
    Ok(())
}

async fn settle(state: &State, key: &Key) -> Result<(), PassError> {
    let Some(reading) = state.ocm.fleet.read().placement(key) else {
        return Ok(());
    };
    let placement = &reading.placement;
    if placement.metadata.deleting() || placement.metadata.annotation(DISABLED) == Some("true") {
        return Ok(());
    }
    if reading.rules().as_ref().is_ok_and(|rules| rules.prefers_room()) && !room_is_told(state, key) {
        return Err(PassError::NotYet(
            "members have not yet said what they have room for".to_owned(),
        ));
    }
    let plan = plan(state, key, &reading);
    if let Some(recheck) = plan.recheck {
        state.ocm.placements.add_at(key.clone(), 1, recheck);
    }
    let changes = !plan.steps.is_empty();
    let written = write(state, key, &placement.metadata, plan).await;
    if changes {
        // Once for all decisions, also where the last of them could not be written.
        intake::decided(state, key);
    }
    written
}

async fn write(state: &State, key: &Key, placement: &ObjectMeta, plan: Plan) -> Result<(), PassError> {
    if !plan.steps.is_empty() {
        state.ocm.fleet.write().begin_to_write(key);
        let target = target(key, placement);
        for step in plan.steps {
            perform(state, key, placement, &target, step).await?;
        }
        if let Some(scores) = plan.scores {
            state.events.success(&target, "ScoreUpdate", &scores);
        }
    }
    let Some(status) = plan.status else {
        return Ok(());
    };
    let resource = Resource::placements();
    let body = encode_status(&resource, placement, &status);
    let what = "failed to write a placement's status";
    // It does not give way to other writes as statuses do: whoever follows the groups waits for it.
    let cache = &state.ocm.caches.placements;
    writes::replace(state, cache, key, Part::Status, body, what).await?;
    intake::know_placement(&state.ocm, key, false);
    Ok(())
}

/// Whether what members have room for has come as far as their ManagedClusters: a decision without it would be another one a
/// moment later.
fn room_is_told(state: &State, key: &Key) -> bool {
    // Whoever tells in between finds it waiting.
    state.ocm.unmeasured.lock().insert(key.clone());
    if !state.room_is_known() {
        return false;
    }
    let fleet = state.ocm.fleet.read();
    let is_told = |cluster: &Arc<Cluster>| {
        let summary = cluster.status.rest.get("resourceSummary");
        let amounts = summary.and_then(|summary| summary["allocatable"].as_object());
        let has_room = amounts.is_some_and(|amounts| !amounts.is_empty());
        !has_room || fleet.knows_room(&cluster.metadata.name)
    };
    let told = state.clusters().iter().all(is_told);
    if told {
        state.ocm.unmeasured.lock().remove(key);
    }
    told
}

fn plan(state: &State, key: &Key, reading: &Reading) -> Plan {
    let now = state.clock.now();
    let placement = &reading.placement;
    // A decision takes long, and whoever writes one changes the fleet: it is not held for all that time, except by placements
    // that look at scores and at each other.
    let fleet = state.ocm.fleet.read();
    let choice = fleet.choice(key, &placement.spec.cluster_sets);
    let present: Vec<Arc<PlacementDecision>> = fleet.decisions(key).cloned().collect();
    let known: Vec<Known> = fleet.candidates(key, &choice).into_iter().cloned().collect();
    let compares = placement.spec.number_of_clusters.is_some() || reading.uses_scores();
    let fleet = compares.then_some(fleet);
    let scores = ScoresAt::new(fleet.as_deref(), now);
    let mut plan = Plan {
        steps: Vec::new(),
        status: None,
        scores: None,
        recheck: None,
    };
    let outcome = match reading.rules() {
        Err(error) => Outcome::Kept(Kept::Misconfigured(error.clone())),
        Ok(rules) => {
            // Few placements ask.
            let own = LazyCell::new(|| {
                let mut own: HashMap<&str, usize> = HashMap::new();
                for cluster in present.iter().flat_map(|decision| decision.clusters()) {
                    *own.entry(cluster).or_insert(0) += 1;
                }
                own
            });
            let used = |cluster: &str| {
                let all = fleet.as_ref().map_or(0, |fleet| fleet.used(cluster));
                all.saturating_sub(own.get(cluster).copied().unwrap_or(0))
            };
            let candidates = known.iter().map(|known| &*known.candidate).collect();
            let input = Input {
                rules,
                choice: &choice,
                candidates,
                is_decided: &|cluster| own.contains_key(cluster),
                context: Context {
                    used: &used,
                    most_used: most_used(fleet.as_deref(), rules, &used),
                    scores: &scores,
                },
                now,
            };
            let mut memory = state.ocm.memories.lock().take(key, &reading.rules);
            let ends = reading.uses_scores().then(|| scores.next_end()).flatten();
            memory.hold(now, ends);
            let outcome = decide(&input, |place| -> Result<bool, Misconfigured> {
                let cluster = &known[place];
                if let Some(answer) = memory.matched.get(&cluster.version) {
                    return Ok(*answer);
                }
                let answer = rules.matches(&cluster.candidate, &scores)?;
                memory.matched.insert(cluster.version, answer);
                Ok(answer)
            });
            if memory.matched.len() > 2 * known.len() {
                // Most of it is about clusters as they were.
                let current: HashSet<u64> = known.iter().map(|known| known.version).collect();
                memory.matched.retain(|version, _| current.contains(version));
            }
            if let Outcome::Decided(decided) = &outcome {
                let published = present
                    .iter()
                    .map(|decision| published(decision, &placement.metadata.uid));
                plan.steps = steps(&key.name, published.collect(), &decided.groups);
                plan.scores = tell::scores(decided);
                let recheck = [decided.recheck, ends].into_iter().flatten().min();
                // One timer for one moment, however often it is decided until then.
                plan.recheck = recheck.filter(|_| memory.timer != recheck);
                memory.timer = recheck;
            }
            state.ocm.memories.lock().0.insert(key.clone(), memory);
            plan.status = status(placement, &present, &choice, &outcome, now);
            return plan;
        }
    };
    plan.status = status(placement, &present, &choice, &outcome, now);
    plan
}

/// The status of a placement, if it has something else to say.
fn status(
    placement: &Placement,
    present: &[Arc<PlacementDecision>],
    choice: &Choice,
    outcome: &Outcome<'_>,
    now: Timestamp,
) -> Option<PlacementStatus> {
    let decisions = present.iter().map(|decision| &**decision);
    let status = tell::status(placement, decisions, choice, outcome, now);
    (placement.status.as_ref() != Some(&status)).then_some(status)
}

/// The most that other placements use any cluster, if that counts.
fn most_used(fleet: Option<&Fleet>, rules: &Rules, used: &dyn Fn(&str) -> usize) -> usize {
    let counts = rules.number.is_some()
        && rules
            .prioritizers
            .iter()
            .any(|(prioritizer, _)| *prioritizer == Prioritizer::Balance);
    if !counts {
        return 0;
    }
    fleet
        .into_iter()
        .flat_map(Fleet::all_used)
        .map(|(cluster, _)| used(cluster))
        .max()
        .unwrap_or(0)
}

/// A decision as it is there. One that the placement does not own, as after one of its name was deleted without it, says nothing of
/// its group: with its labels it gets its owner.
fn published<'d>(decision: &'d PlacementDecision, placement: &str) -> Published<'d> {
    let metadata = &decision.metadata;
    let is_owned = metadata.controller().is_some_and(|owner| owner.uid == placement);
    let index = metadata.label(GROUP_INDEX).and_then(|index| index.parse().ok());
    let name = metadata.label(GROUP_NAME);
    Published {
        name: &metadata.name,
        group: index.zip(name.map(str::to_owned)).filter(|_| is_owned),
        clusters: decision.clusters().collect(),
    }
}

async fn perform(
    state: &State,
    placement: &Key,
    owner: &ObjectMeta,
    target: &EventTarget,
    step: Step,
) -> Result<(), PassError> {
    let cache = &state.ocm.caches.decisions;
    let resource = cache.resource();
    let (Step::Create(name, _) | Step::Fill(name, _) | Step::Label(name, _) | Step::Delete(name)) = &step;
    let key = Key::new(&placement.namespace, name);
    let current = || cache.get(&key).ok_or(PassError::Again);
    // Known at once, and told.
    let written = |reason: &str, word: &str| {
        intake::know_decision(&state.ocm, &key, false);
        let message = format!(
            "Decision {name} is {word} with placement {} in namespace {}",
            placement.name, placement.namespace
        );
        state.events.success(target, reason, &message);
    };
    match &step {
        Step::Create(name, group) if cache.get(&key).is_some() => {
            // It is there, and does not say whose it is: somebody took its label. What is in it is looked at next.
            let cached = current()?;
            if cached.terminating {
                return Err(PassError::NotYet(format!("the decision {name} is being deleted")));
            }
            let body = labelled(&cached, placement, owner, group)?;
            let what = "failed to take a decision back";
            writes::replace(state, cache, &key, Part::Main, body, what).await?;
            written("DecisionUpdate", "updated");
            return Err(PassError::Again);
        }
        Step::Create(name, group) => {
            let decision = PlacementDecision {
                metadata: ObjectMeta {
                    name: name.clone(),
                    namespace: placement.namespace.to_string(),
                    labels: labels(&placement.name, group),
                    owner_references: vec![owner_reference(owner)],
                    ..ObjectMeta::default()
                },
                status: None,
            };
            let what = "failed to create a decision";
            writes::create(state, cache, &key, &decision, what).await?;
            written("DecisionCreate", "created");
        }
        Step::Fill(name, clusters) => {
            let cached = current()?;
            let seen = ObjectMeta {
                name: name.clone(),
                namespace: placement.namespace.to_string(),
                uid: cached.uid.clone(),
                resource_version: cached.resource_version.clone(),
                ..ObjectMeta::default()
            };
            let decisions = clusters.iter().map(|cluster| ClusterDecision {
                cluster_name: cluster.clone(),
                ..ClusterDecision::default()
            });
            let status = DecisionStatus {
                decisions: decisions.collect(),
            };
            let body = encode_status(resource, &seen, &status);
            let what = "failed to write a decision";
            writes::replace(state, cache, &key, Part::Status, body, what).await?;
            written("DecisionUpdate", "updated");
        }
        Step::Label(_, group) => {
            let cached = current()?;
            let body = labelled(&cached, placement, owner, group)?;
            let what = "failed to give a decision to another group";
            writes::replace(state, cache, &key, Part::Main, body, what).await?;
            written("DecisionUpdate", "updated");
        }
        Step::Delete(_) => {
            writes::delete(state, cache, &key, "failed to delete a decision").await?;
            written("DecisionDelete", "deleted");
        }
    }
    Ok(())
}

/// A decision with the labels of a group, and its placement as the owner.
fn labelled(
    cached: &Cached,
    placement: &Key,
    owner: &ObjectMeta,
    group: &GroupLabels,
) -> Result<Vec<u8>, PassError> {
    let parsed = cached.parse();
    let mut decision: PlacementDecision = parsed.map_err(|error| PassError::NotYet(error.to_string()))?;
    let metadata = &mut decision.metadata;
    metadata.labels.extend(labels(&placement.name, group));
    let others =
        |reference: &OwnerReference| reference.controller != Some(true) && reference.uid != owner.uid;
    metadata.owner_references.retain(others);
    metadata.owner_references.push(owner_reference(owner));
    Ok(encode(&Resource::placement_decisions(), &decision))
}

fn labels(placement: &str, (index, name): &GroupLabels) -> BTreeMap<String, String> {
    [
        (PLACEMENT.to_owned(), placement.to_owned()),
        (GROUP_INDEX.to_owned(), index.to_string()),
        (GROUP_NAME.to_owned(), name.clone()),
    ]
    .into()
}

fn owner_reference(placement: &ObjectMeta) -> OwnerReference {
    let resource = Resource::placements();
    OwnerReference {
        api_version: resource.api_version(),
        kind: resource.kind,
        name: placement.name.clone(),
        uid: placement.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn target(key: &Key, placement: &ObjectMeta) -> EventTarget {
    let resource = Resource::placements();
    EventTarget {
        api_version: resource.api_version(),
        kind: resource.kind,
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        uid: placement.uid.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_until_what_add_ons_said_runs_out() {
        let mut memory = Memories::default().take(&Key::new("shop", "web"), &SharedRules::default());
        let at = |second| Timestamp::from_second(second).unwrap();
        memory.matched.insert(1, true);
        memory.hold(at(10), Some(at(20)));
        memory.hold(at(19), Some(at(20)));
        assert_eq!(memory.matched.get(&1), Some(&true));
        memory.hold(at(20), None);
        assert!(memory.matched.is_empty());
        memory.matched.insert(1, false);
        memory.hold(at(99), None);
        assert_eq!(memory.matched.get(&1), Some(&false));
    }
}
