//! How rollouts stand, as far as this process has seen: for the statuses of bindings and rollout policies, for the figures,
//! and for knowing whose members' reports matter. Nothing follows from it that is not stored elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::rollout_policy::{RolloutRun, RolloutStatus, RunCluster, RunSummary};
use lockgate_api::{Binding, Condition, RolloutPolicy};
use lockgate_engine::TemplateId;
use lockgate_engine::gate::record::RolloutRecord;
use lockgate_engine::gate::run::{Act, Member, Phase, Run};
use lockgate_engine::gate::standing::Status;
use parking_lot::Mutex;

use crate::cache::Key;
use crate::chores::Chore;
use crate::clock::seconds;
use crate::head::head;
use crate::state::{State, WALK};
use crate::template::{self, owning};

/// How many templates that are not done a policy's status names.
const RUNS: usize = 20;
/// How many names a message shows.
const NAMES: usize = 5;
/// How long a policy's status waits for more to tell.
const TELL_AFTER: Duration = Duration::from_millis(200);
/// How long a template waits for more reports of its members.
const HEAR_AFTER: Duration = Duration::from_millis(10);
/// The condition of a policy that does not decide for some of its templates.
const SHADOWED: &str = "Shadowed";
/// The condition of a policy whose strategy cannot be followed.
const VALID: &str = "StrategyValid";

/// How rollouts stand.
#[derive(Default)]
pub(crate) struct Rollouts {
    known: Mutex<Known>,
    /// Whether every template was looked at once, so that sums are whole.
    whole: AtomicBool,
}

#[derive(Default)]
struct Known {
    templates: HashMap<TemplateId, Template>,
    policies: HashMap<Key, BTreeMap<TemplateId, Part>>,
}

#[derive(Default)]
struct Template {
    view: Option<RolloutRun>,
    /// The policies that have a strategy for it, the best first.
    policies: Vec<Key>,
    /// Whether copies that are no longer wanted may go.
    removes: bool,
    /// When it is looked at again by itself.
    recheck: Option<Timestamp>,
}

/// What a policy is to a template.
#[derive(Clone, PartialEq)]
enum Part {
    /// Its strategy counts.
    Followed(RunSummary),
    /// Another's does: this one's.
    Shadowed(String),
}

/// Notes how a template stands: which policies have a strategy for it, the best first, and what came of that.
pub(crate) fn note(state: &State, id: &TemplateId, ranked: &[Arc<RolloutPolicy>], view: Option<&RolloutRun>) {
    let mut known = state.runs.known.lock();
    if ranked.is_empty() && view.is_none() && !known.templates.contains_key(id) {
        return;
    }
    let key = |policy: &RolloutPolicy| Key::new(&policy.metadata.namespace, &policy.metadata.name);
    let mut touched = Vec::new();
    let template = known.templates.entry(id.clone()).or_default();
    let before = std::mem::replace(&mut template.policies, ranked.iter().map(|p| key(p)).collect());
    let old = std::mem::replace(&mut template.view, view.cloned());
    state.metrics.rollout(old.as_ref(), view);
    if let (Some(old), Some(new)) = (&old, view) {
        count_late(state, old, new);
    }
    if ranked.is_empty() && view.is_none() {
        known.templates.remove(id);
    }
    for gone in before
        .into_iter()
        .filter(|gone| !ranked.iter().any(|p| key(p) == *gone))
    {
        if let Some(parts) = known.policies.get_mut(&gone) {
            parts.remove(id);
        }
        touched.push(gone);
    }
    for (at, policy) in ranked.iter().enumerate() {
        let part = match (at, view) {
            (0, Some(view)) => Part::Followed(summary(id, view)),
            (0, None) => continue,
            _ => Part::Shadowed(ranked[0].title()),
        };
        let parts = known.policies.entry(key(policy)).or_default();
        if parts.get(id) != Some(&part) {
            parts.insert(id.clone(), part);
            touched.push(key(policy));
        }
    }
    drop(known);
    if old.is_none() && view.is_some() {
        looked(state, id);
    }
    for policy in touched {
        let chore = Chore::Rollout {
            namespace: policy.namespace.to_string(),
            name: policy.name.to_string(),
        };
        state.chores.add_soon(chore, 1, TELL_AFTER);
    }
}

/// Forgets a template that is gone.
pub(crate) fn forget(state: &State, id: &TemplateId) {
    note(state, id, &[], None);
}

/// Somebody has looked at a template for the first time since the start: who waited for that may go on.
fn looked(state: &State, id: &TemplateId) {
    template::wake_after(state, id);
    for work in state.works_named(&owning::work_name(id)) {
        if head(&work).is_some_and(|head| head.work.metadata.deleting()) {
            state.members.wake(&work.key);
        }
    }
}

fn summary(id: &TemplateId, view: &RolloutRun) -> RunSummary {
    let clusters: Vec<_> = view.groups.iter().flat_map(|group| &group.clusters).collect();
    let done = clusters
        .iter()
        .filter(|cluster| cluster.until.is_none() && matches!(cluster.state.as_str(), "Succeeded" | "Skip"))
        .count();
    RunSummary {
        resource: id.to_string(),
        revision: view.revision,
        phase: view.phase.clone(),
        clusters: if clusters.is_empty() {
            String::new()
        } else {
            format!("{done}/{}", clusters.len())
        },
        message: view.message.clone(),
    }
}

/// Notes whether the copies of a template that are no longer wanted may go. What was let go before goes to its end, as long as
/// nobody else is to leave.
pub(crate) fn note_removal(state: &State, id: &TemplateId, removes: bool, leaving: bool) {
    if let Some(template) = state.runs.known.lock().templates.get_mut(id) {
        template.removes = removes || template.removes && !leaving;
    }
}

/// Whether a rollout keeps the copies that are no longer wanted, and for which clusters. Before anybody has looked since the
/// start, one that is not over does.
pub(crate) fn keeps(state: &State, id: &TemplateId, binding: &Binding) -> Option<Vec<String>> {
    let known = state.runs.known.lock();
    let Some(template) = known.templates.get(id) else {
        let record = RolloutRecord::of(&binding.metadata)?;
        return (!record.is_settled()).then(Vec::new);
    };
    let view = template.view.as_ref().filter(|view| !is_over(view))?;
    let waiting = |cluster: &&RunCluster| cluster.until.is_some() || cluster.state != "Succeeded";
    let clusters = view.groups.iter().flat_map(|group| &group.clusters);
    let clusters = clusters.filter(|cluster| cluster.state != "Leaving" && cluster.state != "Skip");
    (!template.removes).then(|| {
        clusters
            .filter(waiting)
            .map(|cluster| cluster.name.clone())
            .collect()
    })
}

fn is_over(view: &RolloutRun) -> bool {
    let mut settled = Phase::ALL.iter().filter(|phase| phase.is_settled());
    settled.any(|phase| phase.name() == view.phase)
}

/// Looks at a template again when the clock says so. Of two moments for one template each is kept once.
pub(crate) fn recheck(state: &State, id: &TemplateId, at: Option<Timestamp>) {
    let mut known = state.runs.known.lock();
    let Some(template) = known.templates.get_mut(id) else {
        return;
    };
    if template.recheck == at {
        return;
    }
    template.recheck = at;
    drop(known);
    if let Some(at) = at {
        state.templates.add_at(id.clone(), WALK, at);
    }
}

/// Whether a template has a rollout that is not over.
pub(crate) fn is_under_way(state: &State, id: &TemplateId) -> bool {
    let known = state.runs.known.lock();
    let view = known
        .templates
        .get(id)
        .and_then(|template| template.view.as_ref());
    view.is_some_and(|view| !is_over(view))
}

/// A member said something of a template: if its rollout waits for that, it goes on.
pub(crate) fn heard(state: &State, id: &TemplateId) {
    if is_under_way(state, id) {
        state.templates.add_soon(id.clone(), WALK, HEAR_AFTER);
    }
}

/// The rollout of a template, for its binding's status.
pub(crate) fn view(state: &State, id: &TemplateId) -> Option<RolloutRun> {
    state
        .runs
        .known
        .lock()
        .templates
        .get(id)
        .and_then(|template| template.view.clone())
}

/// The clusters that do not have the current content.
pub(crate) fn without(state: &State, id: &TemplateId) -> Vec<String> {
    let known = state.runs.known.lock();
    let view = known
        .templates
        .get(id)
        .and_then(|template| template.view.as_ref());
    view.into_iter()
        .flat_map(|view| &view.groups)
        .flat_map(|group| &group.clusters)
        .filter(|cluster| matches!(cluster.state.as_str(), "ToApply" | "Suspended"))
        .map(|cluster| cluster.name.clone())
        .collect()
}

/// Counts what is released, and what came of it: what a Work is to say and does not say yet.
pub(crate) fn count(state: &State, run: &Run<'_>, members: &[Member<'_>]) {
    for (step, member) in run.steps.iter().zip(members) {
        if matches!(step.act, Act::Release(_)) {
            state.metrics.released("released");
            continue;
        }
        let (Some(marks), Some(told)) = (step.marks, member.told) else {
            continue;
        };
        if marks.healthy_since.is_some() && marks.healthy_since != told.healthy_since {
            state.metrics.released("succeeded");
        } else if marks.failed_since.is_some() && marks.failed_since != told.failed_since {
            state.metrics.released("failed");
        }
    }
}

/// Counts the clusters whose time has run out.
fn count_late(state: &State, old: &RolloutRun, new: &RolloutRun) {
    let late = |view: &RolloutRun| -> HashSet<String> {
        let clusters = view.groups.iter().flat_map(|group| &group.clusters);
        let late = clusters.filter(|cluster| cluster.state == Status::TimeOut.name());
        late.map(|cluster| cluster.name.clone()).collect()
    };
    if old.revision == new.revision {
        for _ in late(new).difference(&late(old)) {
            state.metrics.released("timed_out");
        }
    }
}

/// Whether sums can be told: every template was looked at since the start.
pub(crate) fn is_whole(state: &State) -> bool {
    if state.runs.whole.load(Ordering::Relaxed) {
        return true;
    }
    let whole = state.templates.is_idle() && state.unmeasured.lock().is_empty();
    state.runs.whole.store(whole, Ordering::Relaxed);
    whole
}

/// Puts what is known of a policy's templates into its status.
pub(crate) fn tell(state: &State, policy: &RolloutPolicy, status: &mut RolloutStatus, now: Timestamp) {
    let key = Key::new(&policy.metadata.namespace, &policy.metadata.name);
    let known = state.runs.known.lock();
    let parts = known.policies.get(&key);
    let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut runs, mut shadowed, mut templates) = (Vec::new(), Vec::new(), 0);
    for (id, part) in parts.into_iter().flatten() {
        match part {
            Part::Followed(run) => {
                templates += 1;
                *phases.entry(run.phase.as_str()).or_default() += 1;
                let over = Phase::ALL
                    .iter()
                    .any(|phase| phase.is_settled() && phase.name() == run.phase);
                if !over && runs.len() < RUNS {
                    runs.push(run.clone());
                }
            }
            Part::Shadowed(by) => shadowed.push((id.to_string(), by.clone())),
        }
    }
    let words: Vec<String> = phases
        .iter()
        .map(|(phase, count)| format!("{count} {phase}"))
        .collect();
    status.summary = words.join(", ");
    status.runs = runs;
    let conditions = &mut status.conditions;
    if policy.spec.strategy.is_none() {
        status.templates = None;
        conditions.retain(|condition| condition.kind != SHADOWED && condition.kind != VALID);
        return;
    }
    status.templates = Some(templates);
    let condition = |kind: &str, is: bool, reason: &str, message: String| Condition {
        kind: kind.to_owned(),
        status: if is { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: seconds(now),
        ..Condition::default()
    };
    match lockgate_engine::gate::Followed::read(policy) {
        Ok(_) => conditions.retain(|condition| condition.kind != VALID),
        Err(error) => {
            condition(VALID, false, "CannotBeFollowed", error.to_string()).put(conditions);
        }
    }
    if shadowed.is_empty() {
        conditions.retain(|condition| condition.kind != SHADOWED);
    } else {
        let names: Vec<String> = shadowed
            .iter()
            .take(NAMES)
            .map(|(template, by)| format!("{template} by {by}"))
            .collect();
        let more = shadowed.len().saturating_sub(NAMES);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let message = format!("Other strategies match better: {}{more}.", names.join(", "));
        condition(SHADOWED, true, "BetterMatch", message).put(conditions);
    }
}
