//! What is counted of rollouts.

use lockgate_api::rollout_policy::RolloutRun;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Metrics, put};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPhase {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    result: &'static str,
}

/// How rollouts stand, and what they released.
pub(super) struct RolloutFigures {
    phase: Family<ByPhase, Gauge>,
    clusters: Family<ByState, Gauge>,
    releases: Family<ByOutcome, Counter>,
}

impl RolloutFigures {
    pub(super) fn new(r: &mut Registry) -> Self {
        Self {
            phase: put(
                r,
                "lockgate_rollout_phase",
                "Templates that follow a strategy, by where their rollout is",
                Family::default(),
            ),
            clusters: put(
                r,
                "lockgate_rollout_clusters",
                "Clusters of rollouts that are not over, by how far they are",
                Family::default(),
            ),
            releases: put(
                r,
                "lockgate_rollout_releases",
                "Clusters that rollouts told something, and what came of it",
                Family::default(),
            ),
        }
    }
}

impl Metrics {
    /// A template's rollout stands otherwise than before.
    pub(crate) fn rollout(&self, old: Option<&RolloutRun>, new: Option<&RolloutRun>) {
        for (view, by) in [(old, -1), (new, 1)] {
            let Some(view) = view else { continue };
            let phase = view.phase.clone();
            self.rollouts.phase.get_or_create(&ByPhase { phase }).inc_by(by);
            for cluster in view.groups.iter().flat_map(|group| &group.clusters) {
                let state = cluster.state.clone();
                self.rollouts
                    .clusters
                    .get_or_create(&ByState { state })
                    .inc_by(by);
            }
        }
    }

    /// A cluster was told something by a rollout, or something came of it.
    pub(crate) fn released(&self, result: &'static str) {
        self.rollouts.releases.get_or_create(&ByOutcome { result }).inc();
    }
}
