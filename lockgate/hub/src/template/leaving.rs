//! Failover in a template's pass: which clusters the binding leaves, and what becomes of those that it left.
//!
//! A cluster is left only in the write that says where the workload goes instead, and when it is the workload's turn
//! ([`super::departures`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::binding::{EvictionTask, TargetCluster};
use lockgate_api::{Binding, Work, keys, names};
use lockgate_engine::failover::{self, Carried, FailoverInput, Leave};
use lockgate_engine::gate::{self, Release};
use lockgate_engine::observe::{Health, MemberReport};
use lockgate_engine::place::{LastPlaced, Placed, Verdict as Outcome, explain};

use super::departures::AT_ONCE;
use super::placing::{Unplaced, goes_to};
use super::writes::delete_work;
use super::{PassError, Verdict, Walk, owning};
use crate::events::EventTarget;
use crate::head::Head;

/// Why a workload stays that does not know what to take along.
pub(super) const STATE_UNKNOWN: &str = "StateUnknown";

/// Why a workload stays that is to leave a little later.
pub(crate) const WAITING_FOR_TURN: &str = "WaitingForTurn";

/// What is left in a pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Left {
    /// The clusters.
    pub(crate) clusters: Vec<String>,
    /// Since when it was to leave them, and had somewhere to go.
    pub(crate) since: Timestamp,
}

/// What is looked at to tell which clusters are left, and which have been.
struct Sight<'a> {
    /// The binding's Works, by cluster.
    works: BTreeMap<String, Head>,
    /// Whether something holds the workload back on a cluster.
    held: &'a dyn Fn(&str) -> bool,
    now: Timestamp,
}

impl Walk<'_> {
    /// Ends the tasks that are over, and leaves the clusters that must be left. The decision, if one was made on the way.
    ///
    /// A binding that we do not place leaves nothing, as whoever places it says where it goes instead. What it has left goes
    /// all the same.
    pub(super) fn fail_over(
        &self,
        binding: &mut Binding,
        unplaced: Option<&Unplaced>,
        verdict: &mut Verdict,
    ) -> Result<Option<Placed>, PassError> {
        let acts = self.state.gates.failover;
        if !acts && binding.spec.graceful_eviction_tasks.is_empty() {
            return Ok(None);
        }
        let holders = self.holders(binding)?;
        let before = binding.clone();
        let holds = holders.of(&before);
        let sight = Sight {
            works: self.own_works(),
            held: &|cluster: &str| gate::release(&holds, cluster) != Release::Send,
            now: self.state.clock.now(),
        };
        let mut next = end_tasks(binding, &sight, verdict);
        let mut due = Vec::new();
        if acts {
            let leave = self.must_leave(binding, &sight, verdict);
            next = earlier(next, leave.next);
            due = leave.tasks;
        }
        let mut decided = None;
        if let Some(why) = unplaced {
            let due = due.iter().map(|task| task.from_cluster.as_str());
            let names: BTreeSet<&str> = not_left(binding).chain(due).collect();
            if !names.is_empty() {
                let names = names.into_iter().collect::<Vec<_>>().join(", ");
                verdict.staying = Some(why.keeps(&names));
            }
        } else if !due.is_empty() {
            match self.leave_in_turn(binding, due, &sight, verdict) {
                Ok(placed) => decided = placed,
                Err(turn) => next = earlier(next, Some(turn)),
            }
        }
        // Tasks that were written just now end by themselves, too.
        let ends = binding.spec.graceful_eviction_tasks.iter();
        let ends = ends
            .filter_map(|task| failover::grace_ends(task, sight.now))
            .filter(|end| *end > sight.now);
        if let Some(next) = earlier(next, ends.min()) {
            self.state.wake_at(self.id, next);
        }
        Ok(decided)
    }

    /// Which clusters must be left now. The verdict says which others would be.
    fn must_leave(&self, binding: &mut Binding, sight: &Sight<'_>, verdict: &mut Verdict) -> Leave {
        let health: BTreeMap<String, String> = binding
            .spec
            .clusters
            .iter()
            .filter_map(|target| {
                let (name, head) = sight.works.get_key_value(&target.name)?;
                let report = MemberReport::of(name, &head.work, true);
                (report.applied && report.current).then(|| (name.clone(), report.health.as_str().to_owned()))
            })
            .collect();
        let last = LastPlaced::of(binding);
        let tolerations = last.placement.as_ref().or(binding.spec.placement.as_ref());
        let leave = failover::leaving(&FailoverInput {
            spec: &binding.spec,
            tolerations: tolerations.map_or(&[], |placement| &placement.cluster_tolerations),
            clusters: &self.state.clusters(),
            health: &health,
            unhealthy_since: &since(binding),
            status: &|cluster| {
                let work = &sight.works.get(cluster)?.work;
                work.status.manifest_statuses.first()?.status.clone()
            },
            carried: Carried::on(binding),
            stateful: self.state.gates.stateful_failover,
            held: sight.held,
            now: sight.now,
        });
        put_since(binding, &leave);
        if !leave.paused.is_empty() {
            let paused = leave.paused.join(", ");
            let why = format!("{paused} would be left, and is not while the workload is suspended");
            verdict.staying = Some(("Suspended", why));
        }
        if let Some((cluster, missing)) = leave.stateless.first() {
            let why = format!(
                "{cluster} must be left, and is not before it is known what to take along: {missing}"
            );
            verdict.staying = Some((STATE_UNKNOWN, why));
        }
        leave
    }

    /// Leaves clusters if there is somewhere to go, and says where that is; if it is not the workload's turn, when that is.
    fn leave_in_turn(
        &self,
        binding: &mut Binding,
        due: Vec<EvictionTask>,
        sight: &Sight<'_>,
        verdict: &mut Verdict,
    ) -> Result<Option<Placed>, Timestamp> {
        // Who has nowhere to go takes no place from those who have.
        let Some((elsewhere, placed)) = self.leave_where_possible(binding, due, sight.held, verdict) else {
            return Ok(None);
        };
        let clusters = left(binding, &elsewhere);
        let turn = self.state.departures.lock().admit(self.id, &clusters, sight.now);
        match turn {
            Ok(since) => {
                verdict.left = Some(Left { clusters, since });
                // Where every copy is well already, nothing else would say that it is over.
                verdict.waits_for_health = true;
                *binding = elsewhere;
                Ok(Some(placed))
            }
            Err(turn) => {
                let (names, time) = (clusters.join(", "), crate::clock::seconds(turn));
                let why = format!("at most {AT_ONCE} workloads leave in a second");
                let why = format!("{names} must be left, which comes at {time}: {why}");
                verdict.staying = Some((WAITING_FOR_TURN, why));
                Err(turn)
            }
        }
    }

    /// The same as [`Walk::leave`]; where not all clusters can be left, those that can for one cause are, and the verdict says why
    /// the others are not.
    fn leave_where_possible(
        &self,
        binding: &Binding,
        tasks: Vec<EvictionTask>,
        held: &dyn Fn(&str) -> bool,
        verdict: &mut Verdict,
    ) -> Option<(Binding, Placed)> {
        let staying = verdict.staying.clone();
        let whole = self.leave(binding, tasks.clone(), held, verdict);
        let causes = failover::by_cause(tasks);
        if whole.is_some() || causes.len() < 2 {
            return whole;
        }
        let why = std::mem::replace(&mut verdict.staying, staying);
        let mut found: Option<(Binding, Placed)> = None;
        for tasks in causes {
            let mut from = found.as_ref().map_or(binding, |(left, _)| left).clone();
            if let Some(Outcome::Clusters(targets)) = found.as_ref().map(|(_, placed)| &placed.verdict) {
                from.spec.clusters.clone_from(targets);
            }
            match self.leave(&from, tasks, held, verdict) {
                Some(left) => found = Some(left),
                // What was decided for this cause came to nothing: neighbours are to see what was decided before.
                None => {
                    if let Some((left, placed)) = &found {
                        self.note(left, placed);
                    }
                }
            }
        }
        if found.is_none() {
            verdict.staying = why;
        }
        found
    }

    /// The binding as it is when it has left clusters, and where it goes; none if there is nowhere to go.
    fn leave(
        &self,
        binding: &Binding,
        tasks: Vec<EvictionTask>,
        held: &dyn Fn(&str) -> bool,
        verdict: &mut Verdict,
    ) -> Option<(Binding, Placed)> {
        let from: BTreeSet<String> = tasks.iter().map(|task| task.from_cluster.clone()).collect();
        let failing: Vec<&str> = tasks
            .iter()
            .filter(|task| failover::is_failing(task))
            .map(|task| task.from_cluster.as_str())
            .collect();
        let names = from.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut elsewhere = binding.clone();
        elsewhere
            .spec
            .clusters
            .retain(|target| !from.contains(&target.name));
        let stays = elsewhere.spec.clusters.clone();
        // One that somebody wrote by hand stands: there is one task for each cluster.
        let by_hand = &binding.spec.graceful_eviction_tasks;
        let is_new = |task: &&EvictionTask| {
            by_hand
                .iter()
                .all(|known| known.from_cluster != task.from_cluster)
        };
        let new = tasks.iter().filter(is_new).cloned();
        elsewhere.spec.graceful_eviction_tasks.extend(new);
        let placed = self.decide(&elsewhere);
        let targets = match &placed.verdict {
            Outcome::Clusters(targets) => targets,
            // It has no replicas that would have to go anywhere.
            Outcome::Unchanged if !stays.is_empty() => &stays,
            Outcome::Unchanged => {
                let why = format!("{names} must be left, and the workload has no replicas to go elsewhere");
                verdict.staying = Some(("NoReplicas", why));
                return None;
            }
            _ => {
                let why = explain(&placed).unwrap_or_default();
                let why = format!("{names} must be left, and no other cluster can take the workload: {why}");
                verdict.staying = Some(("NoClusterFit", why));
                return None;
            }
        };
        let grown = |target: &&TargetCluster| {
            let same = stays.iter().find(|stays| stays.name == target.name);
            same.is_none_or(|same| same.replicas < target.replicas)
        };
        let takers: Vec<&TargetCluster> = targets.iter().filter(grown).collect();
        if takers.iter().any(|target| held(&target.name)) {
            let why = format!("{names} must be left, and the workload is suspended where it would go");
            verdict.staying = Some(("Suspended", why));
            return None;
        }
        if !failing.is_empty() && takers.is_empty() {
            // To leave would help nobody: it runs wherever it can already, and would come back here next.
            let failing = failing.join(", ");
            let why = format!("the application fails on {failing}, and every other cluster has it already");
            verdict.staying = Some(("NoClusterFit", why));
            return None;
        }
        if let Some(carried) = Carried::by(&tasks, &binding.spec.clusters, targets) {
            carried.put(&mut elsewhere);
        }
        Some((elsewhere, placed))
    }

    /// Counts the clusters that were left, if that could be written.
    pub(super) fn count_left(&self, left: &Left, written: bool) {
        let took = self.state.clock.now().duration_since(left.since);
        let took = Duration::try_from(took).unwrap_or_default();
        for _ in &left.clusters {
            self.state.metrics.evicted(&self.id.namespace, written, took);
        }
    }

    /// Says which clusters were left. It is told once the binding is written: until then nothing has left.
    pub(super) fn tell_left(&self, binding: &Binding, left: &Left) {
        for cluster in &left.clusters {
            let message = format!("Evict from cluster {cluster} succeed.");
            let reason = "EvictWorkloadFromClusterSucceed";
            let events = &self.state.events;
            events.notice(&EventTarget::of_value(&self.template), reason, &message);
            events.notice(&self.binding_target(binding), reason, &message);
        }
    }

    /// Forgets what was taken to a cluster where the workload no longer is. A copy that still stands keeps it, should the
    /// workload return.
    pub(super) fn forget_carried(&self, binding: &mut Binding) {
        let Some(carried) = Carried::on(binding) else {
            return;
        };
        let goes_there = binding
            .spec
            .clusters
            .iter()
            .any(|target| target.name == carried.cluster);
        if !goes_there && !self.has_work(&carried.cluster) {
            binding.metadata.annotations.remove(keys::CARRIED_STATE);
        }
    }

    /// The Works of this template, by cluster.
    fn own_works(&self) -> BTreeMap<String, Head> {
        let works = owning::works_of(self.state, self.id).into_iter();
        works
            .filter_map(|(cached, head)| Some((names::cluster_of(&cached.key.namespace)?.to_owned(), head)))
            .collect()
    }

    /// Removes what must be gone before anything comes elsewhere; whether something is left of it. What is suspended stays,
    /// and so does what has nowhere else to go: the binding has not left yet.
    pub(super) async fn purge(&self, binding: &Binding) -> Result<bool, PassError> {
        let goes_to = super::targets(binding);
        let mut left = false;
        for task in &binding.spec.graceful_eviction_tasks {
            if !failover::is_direct(task) || goes_to.contains(task.from_cluster.as_str()) {
                continue;
            }
            let own = owning::work_on(self.state, self.id, &task.from_cluster);
            let Some((cached, work)) = own.filter(|(_, head)| owning::is_own(self.state, head, self.id))
            else {
                continue;
            };
            left = true;
            self.state.purging.lock().insert(self.id.clone());
            let paused = super::is_failover_paused(self.state, binding, &task.from_cluster);
            if !paused && !work.work.metadata.deleting() {
                delete_work(self.state, &cached.key).await?;
            }
        }
        if !left {
            self.state.purging.lock().remove(self.id);
        }
        Ok(left)
    }
}

/// Ends the tasks that are over, and says when to look at the others again.
fn end_tasks(binding: &mut Binding, sight: &Sight<'_>, verdict: &mut Verdict) -> Option<Timestamp> {
    let works = &sight.works;
    let healthy = |cluster: &str| works.get(cluster).is_some_and(|head| is_well(&head.work));
    let is_left = |cluster: &str| !works.contains_key(cluster);
    let finished = failover::finish(&binding.spec, &healthy, sight.held, &is_left, sight.now);
    verdict.waits_for_health = finished.waits_for_health;
    binding.spec.graceful_eviction_tasks = finished.going_on;
    finished.next
}

/// The clusters that a binding goes to although a task says that it leaves them: somebody wrote it by hand.
pub(super) fn not_left(binding: &Binding) -> impl Iterator<Item = &str> {
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    tasks
        .map(|task| task.from_cluster.as_str())
        .filter(|from| goes_to(binding, from))
}

/// The clusters that a binding has left.
fn left(before: &Binding, after: &Binding) -> Vec<String> {
    let names = before.spec.clusters.iter().map(|target| &target.name);
    names.filter(|name| !goes_to(after, name)).cloned().collect()
}

/// Whether a copy is there as it should be, and well.
pub(super) fn is_well(work: &Work) -> bool {
    let report = MemberReport::of("", work, true);
    report.applied && report.current && report.health == Health::Healthy
}

/// Since when the application is unhealthy, by cluster.
fn since(binding: &Binding) -> BTreeMap<String, Timestamp> {
    let text = binding.metadata.annotation(keys::UNHEALTHY_SINCE);
    let all: BTreeMap<String, String> = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    all.into_iter()
        .filter_map(|(cluster, time)| Some((cluster, time.parse().ok()?)))
        .collect()
}

fn put_since(binding: &mut Binding, leave: &Leave) {
    let annotations = &mut binding.metadata.annotations;
    if leave.unhealthy_since.is_empty() {
        annotations.remove(keys::UNHEALTHY_SINCE);
        return;
    }
    let all: BTreeMap<&String, String> = leave
        .unhealthy_since
        .iter()
        .map(|(cluster, time)| (cluster, crate::clock::seconds(*time)))
        .collect();
    // Names and times always encode.
    let text = serde_json::to_string(&all).unwrap_or_default();
    annotations.insert(keys::UNHEALTHY_SINCE.to_owned(), text);
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
