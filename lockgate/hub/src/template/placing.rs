//! The place station's part of a template's pass.

use lockgate_api::binding::WorkloadAffinityGroups;
use lockgate_api::{Binding, BindingSpec};
use lockgate_engine::place::{self, LastPlaced, Neighbours, PlaceInput, Placed, Trigger, Verdict as Outcome};

use super::leaving::not_left;
use super::{PassError, Verdict, Walk};
use crate::events::EventTarget;
use crate::neighbours;
use crate::rebalance;

/// The name under which policies ask for us to place things.
const SCHEDULER: &str = "default-scheduler";
/// What is said of a binding that is not placed.
const NOT_PLACED: &str = "spec.suspension.scheduling is true: the clusters stay as they are until it is not";

/// Why we do not place a binding.
pub(super) enum Unplaced {
    /// Nobody does for now.
    Suspended,
    /// This scheduler does.
    By(String),
}

impl Unplaced {
    fn of(spec: &BindingSpec) -> Option<Self> {
        if spec.suspension.as_ref().and_then(|s| s.scheduling) == Some(true) {
            return Some(Self::Suspended);
        }
        let scheduler = spec.scheduler_name.as_str();
        (!scheduler.is_empty() && scheduler != SCHEDULER).then(|| Self::By(scheduler.to_owned()))
    }

    /// Why it stays on clusters that it should leave: a reason, and a message.
    pub(super) fn keeps(&self, clusters: &str) -> (&'static str, String) {
        match self {
            Self::Suspended => (
                "SchedulingSuspended",
                format!("{clusters} must be left, and is not while spec.suspension.scheduling is true"),
            ),
            Self::By(scheduler) => (
                "PlacedByAnother",
                format!("{clusters} must be left, and the scheduler {scheduler} says where to"),
            ),
        }
    }
}

impl Walk<'_> {
    /// Places the binding: its clusters and the placement that they follow from.
    pub(super) fn place(&self, binding: &mut Binding, told: &Verdict) -> Result<Verdict, PassError> {
        // Who is asked is told so also where somebody else, or nobody for now, places: whoever does will see it.
        rebalance::ask(self.state, self.id, binding);
        if let Some(why) = Unplaced::of(&binding.spec) {
            return self.stay(binding, &why, told);
        }
        if place::asks_for_room(&binding.spec, self.state.gates) {
            // Whoever tells in between finds it waiting.
            self.state.unmeasured.lock().insert(self.id.clone());
            if !self.state.room_is_known() && self.is_due(binding) {
                return Err(PassError::NotYet(
                    "members have not yet said what they have room for".to_owned(),
                ));
            }
            self.state.unmeasured.lock().remove(self.id);
        }
        let mut verdict = Verdict::default();
        let still_there: Vec<String> = not_left(binding).map(str::to_owned).collect();
        let placed = match self.fail_over(binding, None, &mut verdict)? {
            Some(placed) => placed,
            None => self.decide(binding),
        };
        self.settle(binding, &placed, &mut verdict);
        // Where every copy is well already, nothing else would say that a task which somebody wrote is over. One that has
        // nowhere to go is not looked at again for that.
        verdict.waits_for_health |= still_there.iter().any(|from| !goes_to(binding, from));
        Ok(verdict)
    }

    /// Keeps the clusters of a binding that we do not place. What it left before ends all the same.
    fn stay(&self, binding: &mut Binding, why: &Unplaced, told: &Verdict) -> Result<Verdict, PassError> {
        let suspended = matches!(why, Unplaced::Suspended);
        let mut verdict = Verdict {
            scheduled: told.scheduled.clone().filter(|_| suspended),
            unplaced: suspended.then(|| NOT_PLACED.to_owned()),
            ..Verdict::default()
        };
        self.fail_over(binding, Some(why), &mut verdict)?;
        Ok(verdict)
    }

    /// Whether there is a reason to place it anew.
    fn is_due(&self, binding: &Binding) -> bool {
        self.with_input(binding, None, |input| place::trigger(input).is_some())
    }

    fn with_input<T>(
        &self,
        binding: &Binding,
        neighbours: Option<&Neighbours>,
        f: impl FnOnce(&PlaceInput<'_>) -> T,
    ) -> T {
        let last = LastPlaced::of(binding);
        let (clusters, rooms) = self.state.fleet();
        f(&PlaceInput {
            spec: &binding.spec,
            applied_placement: last.placement.as_ref(),
            observed_affinity: &last.affinity,
            last_scheduled: last.at,
            rebalanced: last.rebalanced,
            clusters: &clusters,
            rooms: Some(&rooms),
            neighbours,
            gates: self.state.gates,
        })
    }

    /// Where the binding goes.
    pub(super) fn decide(&self, binding: &Binding) -> Placed {
        let begun = std::time::Instant::now();
        let placed = match self.affinity_groups(binding) {
            Some(groups) => neighbours::decide(self.state, self.id, groups, |neighbours| {
                self.with_input(binding, Some(neighbours), place::place)
            }),
            None => self.with_input(binding, None, place::place),
        };
        let took = begun.elapsed();
        let metrics = &self.state.metrics;
        if let Some(trigger) = self.with_input(binding, None, place::trigger) {
            metrics.to_be_placed(incoming(trigger, LastPlaced::of(binding).placement.is_some()));
            metrics.placing_step("Place", took);
        }
        let ok = matches!(placed.verdict, Outcome::Unchanged | Outcome::Clusters(_));
        metrics.placed(ok, "ReconcileSchedule", took);
        placed
    }

    /// Has the others of its groups see that this was decided, whatever was tried since.
    pub(super) fn note(&self, binding: &Binding, placed: &Placed) {
        if let Some(groups) = self.affinity_groups(binding) {
            neighbours::decide(self.state, self.id, groups, |_| placed.clone());
        }
    }

    /// The groups of workloads that it belongs to, if they count.
    fn affinity_groups<'b>(&self, binding: &'b Binding) -> Option<&'b WorkloadAffinityGroups> {
        let groups = binding.spec.workload_affinity_groups.as_ref();
        groups.filter(|_| self.state.gates.workload_affinity)
    }

    /// Makes the binding go where it was decided, and says so.
    fn settle(&self, binding: &mut Binding, placed: &Placed, verdict: &mut Verdict) {
        let why = || place::explain(placed).unwrap_or_default();
        verdict.scheduled = Some(match &placed.verdict {
            Outcome::Unchanged => (true, "Success", SCHEDULED.to_owned()),
            Outcome::Clusters(targets) => {
                binding.spec.clusters.clone_from(targets);
                LastPlaced::put(binding, placed.affinity_name.as_deref());
                (true, "Success", SCHEDULED.to_owned())
            }
            Outcome::NoClusterFit { keep, .. } => {
                if !*keep {
                    binding.spec.clusters.clear();
                    LastPlaced::put(binding, None);
                }
                (false, "NoClusterFit", why())
            }
            Outcome::Unschedulable { .. } => (false, "Unschedulable", why()),
        });
    }

    /// Says that a binding could not be placed, if that was not told. It is told once the binding is written, so that it has
    /// a uid.
    pub(super) fn tell_unplaced(&self, binding: &Binding, told: &Verdict) {
        let verdicts = self.state.verdicts.lock();
        let Some((false, _, message)) = verdicts.get(self.id).and_then(|now| now.scheduled.as_ref()) else {
            return;
        };
        let before = told.scheduled.as_ref().filter(|(ok, ..)| !ok);
        if before.is_some_and(|(_, _, before)| !place::is_news(before, message)) {
            return;
        }
        for target in [
            EventTarget::of_value(&self.template),
            self.binding_target(binding),
        ] {
            self.state.events.warn(&target, "ScheduleBindingFailed", message);
        }
    }

    /// Says where a binding goes. It is told once the binding is written, so that it has a uid. The template has been told of
    /// this change that its policy applies: one success for each object is enough.
    pub(super) fn tell_placed(&self, binding: &Binding) {
        let result: Vec<String> = binding
            .spec
            .clusters
            .iter()
            .map(|target| format!("{}:{}", target.name, target.replicas))
            .collect();
        let message = format!("{SCHEDULED} Result: {{{}}}", result.join(", "));
        let target = self.binding_target(binding);
        self.state
            .events
            .success(&target, "ScheduleBindingSucceed", &message);
    }

    /// The binding, for events.
    pub(super) fn binding_target(&self, binding: &Binding) -> EventTarget {
        let resource = self.state.bindings(&binding.metadata.namespace).1;
        EventTarget {
            api_version: resource.api_version(),
            kind: resource.kind,
            namespace: binding.metadata.namespace.clone(),
            name: binding.metadata.name.clone(),
            uid: binding.metadata.uid.clone(),
        }
    }
}

/// Whether a binding goes to a cluster.
pub(super) fn goes_to(binding: &Binding, cluster: &str) -> bool {
    binding.spec.clusters.iter().any(|target| target.name == cluster)
}

const SCHEDULED: &str = "Binding has been scheduled successfully.";

/// What made a binding come to be placed, by the names that dashboards know.
fn incoming(trigger: Trigger, was_placed: bool) -> &'static str {
    match trigger {
        Trigger::PlacementChanged if !was_placed => "BindingAdd",
        Trigger::PlacementChanged | Trigger::ReplicasChanged | Trigger::RebalanceAsked => "BindingUpdate",
        Trigger::FollowsFleet | Trigger::ClusterGone => "ClusterChanged",
    }
}
