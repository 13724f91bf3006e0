//! The pass over one placement: what it selects, and the decisions that say so. The only writer of PlacementDecisions and of
//! the statuses of Placements.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::meta::OwnerReference;
use lockgate_api::ocm::placement::{ClusterDecision, DecisionStatus, PlacementStatus};
use lockgate_api::ocm::{DISABLED, GROUP_INDEX, GROUP_NAME, PLACEMENT, PlacementDecision};
use lockgate_api::{Cluster, ObjectMeta};
use lockgate_engine::placement::prioritize::{Context, Prioritizer};
use lockgate_engine::placement::publish::GroupLabels;
use lockgate_engine::placement::{
    Input, Kept, Misconfigured, Outcome, Published, Rules, Step, decide, steps, tell,
};

use super::fleet::{Fleet, Reading, SharedRules};
use super::policy_intake;
use super::writes::{self, Part};
use crate::cache::Key;
use crate::events::EventTarget;
use crate::resource::Resource;
use crate::state::State;
use crate::template::{PassError, delete, encode, encode_status};

/// What predicates say of clusters, by placement: an answer holds until the cluster or the placement changes.
#[derive(Default)]
pub(crate) struct Memories(HashMap<Key, Memory>);

struct Memory {
    /// Of what it is the memory.
    rules: SharedRules,
    /// By cluster: the version of which this is true.
    matched: HashMap<String, (u64, bool)>,
    /// When it will be decided again, whatever happens.
    timer: Option<Timestamp>,
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
                matched: HashMap::new(),
                timer: None,
            })
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
    if changes {
        state.ocm.fleet.write().begin_to_write(key);
    }
    for step in plan.steps {
        perform(state, key, &placement.metadata, step).await?;
    }
    if let Some(scores) = plan.scores.filter(|_| changes) {
        state
            .events
            .success(&target(key, &placement.metadata), "ScoreUpdate", &scores);
    }
    let Some(status) = plan.status else {
        return Ok(());
    };
    let resource = Resource::placements();
    let body = encode_status(&resource, &placement.metadata, &status);
    let what = "failed to write a placement's status";
    // It does not give way to other writes as statuses do: whoever follows the groups waits for it.
    let cache = &state.ocm.caches.placements;
    writes::replace(state, cache, key, Part::Status, body, what).await
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
    let fleet = state.ocm.fleet.read();
    let now = state.clock.now();
    let placement = &reading.placement;
    let choice = fleet.choice(&key.namespace, &placement.spec.cluster_sets);
    let present: Vec<&Arc<PlacementDecision>> = fleet.decisions(key).collect();
    let scores = fleet.scores_at(now);
    let mut plan = Plan {
        steps: Vec::new(),
        status: None,
        scores: None,
        recheck: None,
    };
    let outcome = match reading.rules() {
        Err(error) => Outcome::Kept(Kept::Misconfigured(error.clone())),
        Ok(rules) => {
            let mut own: HashMap<&str, usize> = HashMap::new();
            for cluster in present.iter().flat_map(|decision| decision.clusters()) {
                *own.entry(cluster).or_insert(0) += 1;
            }
            let used = |cluster: &str| fleet.used(cluster) - own.get(cluster).copied().unwrap_or(0);
            let decided: BTreeSet<&str> = own.keys().copied().collect();
            let known = fleet.candidates(&choice);
            let candidates = known.iter().map(|(_, known)| &*known.candidate).collect();
            let input = Input {
                rules,
                choice: &choice,
                candidates,
                decided: &decided,
                context: Context {
                    used: &used,
                    most_used: most_used(&fleet, rules, &used),
                    scores: &scores,
                },
                now,
            };
            let mut memory = state.ocm.memories.lock().take(key, &reading.rules);
            let mut matched = HashMap::with_capacity(known.len());
            // Candidates are asked for in their order, each at most once.
            let versions: HashMap<&str, u64> =
                known.iter().map(|(name, known)| (*name, known.version)).collect();
            let outcome = decide(&input, |cluster| -> Result<bool, Misconfigured> {
                let version = versions.get(cluster.name()).copied().unwrap_or(0);
                let answer = match memory.matched.get(cluster.name()) {
                    Some((of, answer)) if *of == version => *answer,
                    _ => rules.matches(cluster, &scores)?,
                };
                matched.insert(cluster.name().to_owned(), (version, answer));
                Ok(answer)
            });
            memory.matched = matched;
            if let Outcome::Decided(decided) = &outcome {
                let published: Vec<Published> = present.iter().map(|decision| published(decision)).collect();
                plan.steps = steps(&key.name, &published, &decided.groups);
                plan.scores = tell::scores(decided);
                let ends = reading.uses_scores().then(|| scores.next_end()).flatten();
                let recheck = [decided.recheck, ends].into_iter().flatten().min();
                // One timer for one moment, however often it is decided until then.
                plan.recheck = recheck.filter(|_| memory.timer != recheck);
                memory.timer = recheck;
            }
            state.ocm.memories.lock().0.insert(key.clone(), memory);
            let status = status(reading, key, &choice, &outcome, now);
            plan.status = status;
            return plan;
        }
    };
    plan.status = status(reading, key, &choice, &outcome, now);
    plan
}

/// The status of a placement, if it has something else to say.
fn status(
    reading: &Reading,
    key: &Key,
    choice: &lockgate_engine::placement::Choice,
    outcome: &Outcome<'_>,
    now: Timestamp,
) -> Option<PlacementStatus> {
    let before = reading.placement.status.clone();
    let status = tell::status(
        &before.clone().unwrap_or_default(),
        &key.name,
        choice,
        outcome,
        now,
    );
    (before.as_ref() != Some(&status)).then_some(status)
}

/// The most that other placements use any cluster, if that counts.
fn most_used(fleet: &Fleet, rules: &Rules, used: &dyn Fn(&str) -> usize) -> usize {
    let counts = rules.number.is_some()
        && rules
            .prioritizers
            .iter()
            .any(|(prioritizer, _)| *prioritizer == Prioritizer::Balance);
    if !counts {
        return 0;
    }
    fleet
        .all_used()
        .map(|(cluster, _)| used(cluster))
        .max()
        .unwrap_or(0)
}

fn published(decision: &PlacementDecision) -> Published {
    let metadata = &decision.metadata;
    let index = metadata.label(GROUP_INDEX).and_then(|index| index.parse().ok());
    let name = metadata.label(GROUP_NAME);
    Published {
        name: metadata.name.clone(),
        group: index.zip(name.map(str::to_owned)),
        clusters: decision.clusters().map(str::to_owned).collect(),
    }
}

async fn perform(state: &State, placement: &Key, owner: &ObjectMeta, step: Step) -> Result<(), PassError> {
    let cache = &state.ocm.caches.decisions;
    let resource = Resource::placement_decisions();
    let key = |name: &str| Key::new(&placement.namespace, name);
    let current = |name: &str| -> Result<PlacementDecision, PassError> {
        let cached = cache.get(&key(name)).ok_or(PassError::Again)?;
        cached
            .parse()
            .map_err(|error| PassError::NotYet(error.to_string()))
    };
    let event = |reason: &str, name: &str, word: &str| {
        let message = format!(
            "Decision {name} is {word} with placement {} in namespace {}",
            placement.name, placement.namespace
        );
        state.events.success(&target(placement, owner), reason, &message);
    };
    match step {
        Step::Create(name, group) => {
            let decision = PlacementDecision {
                metadata: ObjectMeta {
                    name: name.clone(),
                    namespace: placement.namespace.to_string(),
                    labels: labels(&placement.name, &group),
                    owner_references: vec![owner_reference(owner)],
                    ..ObjectMeta::default()
                },
                status: None,
            };
            writes::create(
                state,
                cache,
                &key(&name),
                &decision,
                "failed to create a decision",
            )
            .await?;
            event("DecisionCreate", &name, "created");
        }
        Step::Fill(name, clusters) => {
            let decision = current(&name)?;
            let decisions = clusters.into_iter().map(|cluster_name| ClusterDecision {
                cluster_name,
                ..ClusterDecision::default()
            });
            let status = DecisionStatus {
                decisions: decisions.collect(),
            };
            let body = encode_status(&resource, &decision.metadata, &status);
            let what = "failed to write a decision";
            writes::replace(state, cache, &key(&name), Part::Status, body, what).await?;
            event("DecisionUpdate", &name, "updated");
        }
        Step::Label(name, group) => {
            let mut decision = current(&name)?;
            decision.metadata.labels.extend(labels(&placement.name, &group));
            let body = encode(&resource, &decision);
            let what = "failed to give a decision to another group";
            writes::replace(state, cache, &key(&name), Part::Main, body, what).await?;
            event("DecisionUpdate", &name, "updated");
        }
        Step::Delete(name) => {
            let what = "failed to delete a decision";
            delete(state, cache, &resource, &key(&name), what).await?;
            event("DecisionDelete", &name, "deleted");
        }
    }
    Ok(())
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
