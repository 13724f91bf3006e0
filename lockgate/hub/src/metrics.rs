//! What the control plane counts, under the names that dashboards and alerts know.
//!
//! There are no globals: whoever counts is given a [`Metrics`]. Labels hold kinds, clusters and results, never names of objects,
//! so that the number of series is bounded by the size of the fleet and not by what is in it.

mod evictions;
mod labels;
mod queues;
mod rollouts;
mod serve;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};

use evictions::EvictionFigures;
use labels::{Attempt, ByCluster, ByEvent, ByQueue, ByResult, ByStep, Creation, Deletion, Update};
pub(crate) use queues::QueueFigures;
use rollouts::RolloutFigures;
pub use serve::{Serving, serve};

/// A histogram for each result.
type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// A counter whose exposed name has no `_total`, as some known names have none. It is of no declared type, which is what
/// OpenMetrics has for such names.
#[derive(Clone, Debug, Default)]
struct Plain(Arc<AtomicU64>);

impl Plain {
    fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl TypedMetric for Plain {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for Plain {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.encode_gauge(&self.0.load(Ordering::Relaxed))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// How full a member cluster is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClusterFigures {
    /// Whether it is ready.
    pub ready: bool,
    /// How many nodes it has.
    pub nodes: i64,
    /// How many of them are ready.
    pub ready_nodes: i64,
    /// Bytes of memory for pods.
    pub memory_allocatable: f64,
    /// Bytes of memory that pods ask for.
    pub memory_allocated: f64,
    /// Cores for pods.
    pub cpu_allocatable: f64,
    /// Cores that pods ask for.
    pub cpu_allocated: f64,
    /// How many pods it can hold.
    pub pods_allocatable: f64,
    /// How many pods it holds.
    pub pods_allocated: f64,
}

/// A gauge of a fraction for each cluster.
type ClusterFraction = Family<ByCluster, Gauge<f64, AtomicU64>>;

/// Everything that is counted.
pub struct Metrics {
    registry: Registry,
    match_policy: Histogram,
    apply_policy: Durations<ByResult>,
    policy_attempts: Family<ByResult, Counter>,
    policy_preemptions: Family<ByResult, Counter>,
    sync_work: Durations<ByResult>,
    sync_workload: Durations<ByResult>,
    created: Family<Creation, Plain>,
    updated: Family<Update, Plain>,
    deleted: Family<Deletion, Plain>,
    cluster_ready: Family<ByCluster, Gauge>,
    cluster_nodes: Family<ByCluster, Gauge>,
    cluster_ready_nodes: Family<ByCluster, Gauge>,
    /// Memory, CPU and pods, each allocatable and allocated.
    cluster_fractions: [ClusterFraction; 6],
    cluster_sync: Durations<ByCluster>,
    attempts: Family<Attempt, Counter>,
    scheduling: Durations<Attempt>,
    algorithm: Durations<ByStep>,
    incoming: Family<ByEvent, Counter>,
    queue_depth: Family<ByQueue, Gauge>,
    queue_adds: Family<ByQueue, Counter>,
    queue_retries: Family<ByQueue, Counter>,
    queue_waited: Durations<ByQueue>,
    queue_worked: Durations<ByQueue>,
    evictions: EvictionFigures,
    rollouts: RolloutFigures,
    events_dropped: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// From a millisecond to about two seconds.
fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 12))
}

/// From a millisecond to about half a minute.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

fn durations<L: Clone + std::hash::Hash + Eq>(buckets: fn() -> Histogram) -> Durations<L> {
    Family::new_with_constructor(buckets)
}

fn outcome(ok: bool) -> &'static str {
    if ok { "success" } else { "error" }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let r = &mut registry;
        let fraction = |r: &mut Registry, name, help| put(r, name, help, ClusterFraction::default());
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        r.register("karmada_build", "The build that runs", build);
        Self {
            match_policy: put(
                r,
                "resource_match_policy_duration_seconds",
                "Finding a template's policy",
                short(),
            ),
            apply_policy: put(
                r,
                "resource_apply_policy_duration_seconds",
                "Applying a policy to a template",
                durations(short),
            ),
            policy_attempts: put(
                r,
                "policy_apply_attempts",
                "Policies applied to templates",
                Family::default(),
            ),
            policy_preemptions: put(
                r,
                "policy_preemption",
                "Templates taken over from another policy",
                Family::default(),
            ),
            sync_work: put(
                r,
                "binding_sync_work_duration_seconds",
                "Bringing a binding's Works up to date",
                durations(short),
            ),
            sync_workload: put(
                r,
                "work_sync_workload_duration_seconds",
                "Bringing a Work's objects to its member",
                durations(short),
            ),
            created: put(
                r,
                "create_resource_to_cluster",
                "Objects created in members",
                Family::default(),
            ),
            updated: put(
                r,
                "update_resource_to_cluster",
                "Objects updated in members",
                Family::default(),
            ),
            deleted: put(
                r,
                "delete_resource_from_cluster",
                "Objects deleted from members",
                Family::default(),
            ),
            cluster_ready: put(
                r,
                "cluster_ready_state",
                "Whether a member is ready: 1, or 0",
                Family::default(),
            ),
            cluster_nodes: put(r, "cluster_node_number", "Nodes of a member", Family::default()),
            cluster_ready_nodes: put(
                r,
                "cluster_ready_node_number",
                "Ready nodes of a member",
                Family::default(),
            ),
            cluster_fractions: [
                fraction(
                    r,
                    "cluster_memory_allocatable_bytes",
                    "Memory for pods of a member",
                ),
                fraction(
                    r,
                    "cluster_memory_allocated_bytes",
                    "Memory that pods of a member ask for",
                ),
                fraction(r, "cluster_cpu_allocatable_number", "Cores for pods of a member"),
                fraction(
                    r,
                    "cluster_cpu_allocated_number",
                    "Cores that pods of a member ask for",
                ),
                fraction(r, "cluster_pod_allocatable_number", "Pods that a member can hold"),
                fraction(r, "cluster_pod_allocated_number", "Pods that a member holds"),
            ],
            cluster_sync: put(
                r,
                "cluster_sync_status_duration_seconds",
                "Reading a member's status",
                durations(long),
            ),
            attempts: put(
                r,
                "karmada_scheduler_schedule_attempts",
                "Bindings placed",
                Family::default(),
            ),
            scheduling: put(
                r,
                "karmada_scheduler_e2e_scheduling_duration_seconds",
                "Placing a binding, all told",
                durations(short),
            ),
            algorithm: put(
                r,
                "karmada_scheduler_scheduling_algorithm_duration_seconds",
                "Steps of placing a binding",
                durations(short),
            ),
            incoming: put(
                r,
                "karmada_scheduler_queue_incoming_bindings",
                "Bindings that asked to be placed",
                Family::default(),
            ),
            queue_depth: put(r, "workqueue_depth", "What waits in a queue", Family::default()),
            queue_adds: put(
                r,
                "workqueue_adds",
                "What was put into a queue",
                Family::default(),
            ),
            queue_retries: put(
                r,
                "workqueue_retries",
                "What was put into a queue again after a failure",
                Family::default(),
            ),
            queue_waited: put(
                r,
                "workqueue_queue_duration_seconds",
                "How long things wait in a queue",
                durations(long),
            ),
            queue_worked: put(
                r,
                "workqueue_work_duration_seconds",
                "How long things are worked on",
                durations(long),
            ),
            evictions: EvictionFigures::new(r),
            rollouts: RolloutFigures::new(r),
            events_dropped: put(
                r,
                "lockgate_events_dropped",
                "Events that were not sent",
                Counter::default(),
            ),
            registry,
        }
    }

    /// A policy was looked for.
    pub fn match_policy(&self, took: Duration) {
        self.match_policy.observe(took.as_secs_f64());
    }

    /// A policy was applied to a template.
    pub fn apply_policy(&self, ok: bool, took: Duration) {
        let labels = ByResult { result: outcome(ok) };
        self.apply_policy
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
        self.policy_attempts.get_or_create(&labels).inc();
    }

    /// A template was taken over from another policy.
    pub fn preempt_policy(&self, ok: bool) {
        let labels = ByResult { result: outcome(ok) };
        self.policy_preemptions.get_or_create(&labels).inc();
    }

    /// A binding's Works were brought up to date.
    pub fn sync_work(&self, ok: bool, took: Duration) {
        let labels = ByResult { result: outcome(ok) };
        self.sync_work.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A Work's objects were brought to its member.
    pub fn sync_workload(&self, ok: bool, took: Duration) {
        let labels = ByResult { result: outcome(ok) };
        self.sync_workload
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// An object was created in a member; `again` when it had been there before.
    pub fn created(&self, ok: bool, api_version: &str, kind: &str, cluster: &str, again: bool) {
        let labels = Creation {
            result: outcome(ok),
            apiversion: api_version.to_owned(),
            kind: kind.to_owned(),
            member_cluster: cluster.to_owned(),
            recreate: if again { "true" } else { "false" },
        };
        self.created.get_or_create(&labels).inc();
    }

    /// An object was updated in a member; `changed` unless it was as wanted already.
    pub fn updated(&self, ok: bool, api_version: &str, kind: &str, cluster: &str, changed: bool) {
        let labels = Update {
            result: outcome(ok),
            apiversion: api_version.to_owned(),
            kind: kind.to_owned(),
            member_cluster: cluster.to_owned(),
            operationResult: if changed { "updated" } else { "unchanged" },
        };
        self.updated.get_or_create(&labels).inc();
    }

    /// An object was deleted from a member.
    pub fn deleted(&self, ok: bool, api_version: &str, kind: &str, cluster: &str) {
        let labels = Deletion {
            result: outcome(ok),
            apiversion: api_version.to_owned(),
            kind: kind.to_owned(),
            member_cluster: cluster.to_owned(),
        };
        self.deleted.get_or_create(&labels).inc();
    }

    /// How a member is.
    pub fn cluster(&self, cluster: &str, figures: &ClusterFigures) {
        let labels = ByCluster {
            member_cluster: cluster.to_owned(),
        };
        self.cluster_ready
            .get_or_create(&labels)
            .set(i64::from(figures.ready));
        self.cluster_nodes.get_or_create(&labels).set(figures.nodes);
        self.cluster_ready_nodes
            .get_or_create(&labels)
            .set(figures.ready_nodes);
        let values = [
            figures.memory_allocatable,
            figures.memory_allocated,
            figures.cpu_allocatable,
            figures.cpu_allocated,
            figures.pods_allocatable,
            figures.pods_allocated,
        ];
        for (family, value) in self.cluster_fractions.iter().zip(values) {
            family.get_or_create(&labels).set(value);
        }
    }

    /// A member's status was read.
    pub fn cluster_sync(&self, cluster: &str, took: Duration) {
        let labels = ByCluster {
            member_cluster: cluster.to_owned(),
        };
        self.cluster_sync
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// A member left: nothing more is said of how it is.
    pub fn forget_cluster(&self, cluster: &str) {
        let labels = ByCluster {
            member_cluster: cluster.to_owned(),
        };
        for family in [
            &self.cluster_ready,
            &self.cluster_nodes,
            &self.cluster_ready_nodes,
        ] {
            family.remove(&labels);
        }
        for family in &self.cluster_fractions {
            family.remove(&labels);
        }
        self.cluster_sync.remove(&labels);
    }

    /// A binding was placed, or could not be.
    pub fn placed(&self, ok: bool, schedule_type: &'static str, took: Duration) {
        let result = if ok { "scheduled" } else { "error" };
        let attempt = Attempt {
            result,
            schedule_type,
        };
        self.attempts.get_or_create(&attempt).inc();
        self.scheduling
            .get_or_create(&attempt)
            .observe(took.as_secs_f64());
    }

    /// One step of placing a binding. There is one, `Place`: who fits and who gets what is one decision.
    pub fn placing_step(&self, schedule_step: &'static str, took: Duration) {
        self.algorithm
            .get_or_create(&ByStep { schedule_step })
            .observe(took.as_secs_f64());
    }

    /// A binding asked to be placed, and why.
    pub fn to_be_placed(&self, event: &'static str) {
        self.incoming.get_or_create(&ByEvent { event }).inc();
    }

    /// The figures of the queues of a name.
    pub(crate) fn queue(&self, name: &'static str) -> QueueFigures {
        let labels = ByQueue { name };
        QueueFigures {
            depth: self.queue_depth.get_or_create(&labels).clone(),
            adds: self.queue_adds.get_or_create(&labels).clone(),
            retries: self.queue_retries.get_or_create(&labels).clone(),
            waited: self.queue_waited.get_or_create(&labels).clone(),
            worked: self.queue_worked.get_or_create(&labels).clone(),
        }
    }

    /// An event was not sent.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// How many events were not sent.
    pub fn events_dropped(&self) -> u64 {
        self.events_dropped.get()
    }

    /// Everything in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

/// Registers a metric and keeps a handle of it.
fn put<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
