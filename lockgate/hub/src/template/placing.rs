//! The place station's part of a template's pass.

use lockgate_api::{Binding, Placement, keys};
use lockgate_engine::place::{self, PlaceInput, Verdict as Placed};

use super::{Verdict, Walk};
use crate::events::EventTarget;

/// The name under which policies ask for us to place things.
const SCHEDULER: &str = "default-scheduler";

impl Walk<'_> {
    /// Places the binding: its clusters and the placement that they follow from.
    pub(super) fn place(&self, binding: &mut Binding, told: &Verdict) -> Verdict {
        let mut verdict = Verdict::default();
        let suspended = binding.spec.suspension.as_ref().and_then(|s| s.scheduling) == Some(true);
        let others = !binding.spec.scheduler_name.is_empty() && binding.spec.scheduler_name != SCHEDULER;
        if suspended || others {
            return verdict;
        }
        let applied: Option<Placement> = binding
            .metadata
            .annotation(keys::APPLIED_PLACEMENT)
            .and_then(|text| serde_json::from_str(text).ok());
        let begun = std::time::Instant::now();
        let clusters = self.state.clusters();
        let placed = place::place(&PlaceInput {
            spec: &binding.spec,
            applied_placement: applied.as_ref(),
            observed_affinity: &binding.status.scheduler_observed_affinity_name,
            last_scheduled: binding
                .status
                .last_scheduled_time
                .as_deref()
                .and_then(|time| time.parse().ok()),
            clusters: &clusters,
            gates: self.state.gates,
        });
        let rejected = || {
            let reasons: Vec<String> = placed
                .rejected
                .iter()
                .map(|rejection| format!("{}: {}", rejection.cluster, rejection.message))
                .collect();
            reasons.join("; ")
        };
        match &placed.verdict {
            Placed::Unchanged => {
                verdict.scheduled = Some((true, "Success", SCHEDULED.to_owned()));
            }
            Placed::Clusters(targets) => {
                binding.spec.clusters.clone_from(targets);
                set_applied(binding);
                verdict.scheduled = Some((true, "Success", SCHEDULED.to_owned()));
            }
            Placed::NoClusterFit { message, keep } => {
                if *keep {
                    verdict.scheduled = Some((false, "NoClusterFit", detail(message, &rejected())));
                } else {
                    binding.spec.clusters.clear();
                    set_applied(binding);
                    verdict.scheduled = Some((false, "NoClusterFit", detail(message, &rejected())));
                }
            }
            Placed::Unschedulable { message } => {
                verdict.scheduled = Some((false, "Unschedulable", detail(message, &rejected())));
            }
        }
        // What was told is not told again.
        if let Some((false, _, message)) = &verdict.scheduled
            && told.scheduled != verdict.scheduled
        {
            let target = EventTarget::of_value(&self.template);
            self.state.events.warn(&target, "ScheduleBindingFailed", message);
        }
        let ok = verdict.scheduled.as_ref().is_some_and(|(ok, ..)| *ok);
        self.state
            .metrics
            .placed(ok, "ReconcileSchedule", begun.elapsed());
        verdict
    }

    /// Says where a binding goes. It is told once the binding is written, so that it has a uid.
    pub(super) fn tell_placed(&self, binding: &Binding) {
        let result: Vec<String> = binding
            .spec
            .clusters
            .iter()
            .map(|target| format!("{}:{}", target.name, target.replicas))
            .collect();
        let message = format!("{SCHEDULED} Result: {{{}}}", result.join(", "));
        let resource = self.state.bindings(&binding.metadata.namespace).1;
        let target = EventTarget {
            api_version: resource.api_version(),
            kind: resource.kind,
            namespace: binding.metadata.namespace.clone(),
            name: binding.metadata.name.clone(),
            uid: binding.metadata.uid.clone(),
        };
        self.state
            .events
            .success(&target, "ScheduleBindingSucceed", &message);
    }
}

const SCHEDULED: &str = "Binding has been scheduled successfully.";

fn set_applied(binding: &mut Binding) {
    let placement = binding.spec.placement.clone().unwrap_or_default();
    // A placement is made of strings, numbers and lists, and always encodes.
    let text = serde_json::to_string(&placement).unwrap_or_default();
    binding
        .metadata
        .annotations
        .insert(keys::APPLIED_PLACEMENT.to_owned(), text);
}

fn detail(message: &str, rejected: &str) -> String {
    if rejected.is_empty() {
        message.to_owned()
    } else {
        format!("{message} ({rejected})")
    }
}
