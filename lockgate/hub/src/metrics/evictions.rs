//! What is counted of workloads that leave clusters. An eviction is of one workload, from one cluster.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::ByQueue;
use super::{Durations, Metrics, durations, long, outcome, put};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    member_cluster: String,
    resource_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Processed {
    name: &'static str,
    result: &'static str,
}

/// Those that wait for their turn, and those that had it.
pub(super) struct EvictionFigures {
    depth: Family<ByQueue, Gauge>,
    kinds: Family<ByKind, Gauge>,
    took: Durations<ByQueue>,
    processed: Family<Processed, Counter>,
}

impl EvictionFigures {
    pub(super) fn new(r: &mut Registry) -> Self {
        let depth: Family<ByQueue, Gauge> = put(
            r,
            "eviction_queue_depth",
            "Evictions that wait for their turn",
            Family::default(),
        );
        for namespace in ["any", ""] {
            // An empty queue is told, too.
            drop(depth.get_or_create(&queue_of(namespace)));
        }
        Self {
            depth,
            kinds: put(
                r,
                "eviction_kind_total",
                "Evictions that wait for their turn, by the cluster that is left and the kind of the binding",
                Family::default(),
            ),
            took: put(
                r,
                "eviction_processing_latency_seconds",
                "From when a cluster is to be left until the binding says so",
                durations(long),
            ),
            processed: put(
                r,
                "eviction_processing",
                "Evictions that were written, or could not be",
                Family::default(),
            ),
        }
    }
}

impl Metrics {
    /// So many evictions more, or fewer, of workloads of a namespace wait to leave a cluster.
    pub(crate) fn evictions_waiting(&self, namespace: &str, cluster: &str, more: i64) {
        let figures = &self.evictions;
        figures.depth.get_or_create(&queue_of(namespace)).inc_by(more);
        let labels = ByKind {
            member_cluster: cluster.to_owned(),
            resource_kind: match namespace {
                "" => "ClusterResourceBinding",
                _ => "ResourceBinding",
            },
        };
        let left = {
            let kind = figures.kinds.get_or_create(&labels);
            kind.inc_by(more);
            kind.get()
        };
        if left == 0 {
            // Clusters come and go.
            figures.kinds.remove(&labels);
        }
    }

    /// A workload of a namespace left a cluster, which could be written or not.
    pub(crate) fn evicted(&self, namespace: &str, ok: bool, took: Duration) {
        let queue = queue_of(namespace);
        self.evictions
            .took
            .get_or_create(&queue)
            .observe(took.as_secs_f64());
        let labels = Processed {
            name: queue.name,
            result: outcome(ok),
        };
        self.evictions.processed.get_or_create(&labels).inc();
    }
}

/// The queue of the workloads of a namespace, or of none, by the name that dashboards know.
fn queue_of(namespace: &str) -> ByQueue {
    let name = match namespace {
        "" => "cluster-binding-eviction",
        _ => "binding-eviction",
    };
    ByQueue { name }
}
