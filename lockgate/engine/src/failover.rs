//! Failover: which clusters a workload must leave, and when it has left one.
//!
//! A cluster is left because of a `NoExecute` taint that is not tolerated, or not any longer ([`leaving`]), or because the
//! application is unhealthy there for too long. To leave is a *task*: the binding no longer goes there, and what is there goes
//! when the new copies are well, or the grace is over ([`finish`]).
//!
//! What always holds:
//! - Nothing is left without somewhere to go: the caller places first, and leaves only if that succeeds.
//! - What is suspended is not moved, and nothing that it left is removed.
//! - Time comes in; since when an application is unhealthy is stored, so that a restart forgets nothing.

mod state;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lockgate_api::binding::EvictionTask;
use lockgate_api::cluster::Taint;
use lockgate_api::placement::Toleration;
use lockgate_api::{BindingSpec, Cluster};
use serde_json::{Value, json};

use crate::place::filter::{taint_text, tolerates};

pub use state::Carried;
pub use tasks::{Finished, by_cause, finish, grace_ends, is_direct, is_failing, is_paused};

/// How long an application may be unhealthy, if nobody says.
const TOLERATED: i64 = 300;

/// Why a cluster is left where the application is unhealthy, in one word.
const APPLICATION_FAILURE: &str = "ApplicationFailure";

/// What a decision is made from.
pub struct FailoverInput<'a> {
    /// The binding.
    pub spec: &'a BindingSpec,
    /// The tolerations of the placement that was last placed.
    pub tolerations: &'a [Toleration],
    /// All clusters, sorted by name.
    pub clusters: &'a [Arc<Cluster>],
    /// How the application is, by cluster: `Healthy`, `Unhealthy`, or nothing certain.
    pub health: &'a BTreeMap<String, String>,
    /// Since when it is unhealthy, by cluster, as it was last stored.
    pub unhealthy_since: &'a BTreeMap<String, Timestamp>,
    /// What its copy on a cluster reported as its status.
    pub status: &'a dyn Fn(&str) -> Option<Value>,
    /// What it took along when it last moved.
    pub carried: Option<Carried>,
    /// Whether what policies name of that status is taken along.
    pub stateful: bool,
    /// Whether something holds the workload back on a cluster.
    pub held: &'a dyn Fn(&str) -> bool,
    /// The time.
    pub now: Timestamp,
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leave {
    /// The clusters that must be left now, as the tasks that leave them.
    pub tasks: Vec<EvictionTask>,
    /// Since when the application is unhealthy, by cluster, to be stored.
    pub unhealthy_since: BTreeMap<String, Timestamp>,
    /// When to look again.
    pub next: Option<Timestamp>,
    /// Clusters that would be left, were the workload not held back.
    pub paused: Vec<String>,
    /// Clusters that would be left, were it known what to take along; each with what is missing.
    pub stateless: Vec<(String, String)>,
}

/// Which clusters a workload must leave.
pub fn leaving(input: &FailoverInput<'_>) -> Leave {
    let mut leave = Leave {
        unhealthy_since: still_unhealthy(input),
        ..Leave::default()
    };
    for target in &input.spec.clusters {
        let name = target.name.as_str();
        let causes = [tainted(input, name), failed(input, name, &leave.unhealthy_since)];
        let (due, later): (Vec<Cause<'_>>, _) =
            (causes.into_iter().flatten()).partition(|cause| cause.due <= input.now);
        // Also where there is a cause already: it may be one for which the cluster cannot be left.
        let next = leave.next.into_iter().chain(later.iter().map(|cause| cause.due));
        leave.next = next.min();
        // The taint comes first, since when it may ever be: where the application fails it may stay.
        let Some(cause) = due.into_iter().next() else {
            continue;
        };
        if (input.held)(name) {
            leave.paused.push(name.to_owned());
        } else {
            let mut task = task(input, name, target.replicas, &cause);
            match cause.state.map(|wanted| taken_along(input, name, wanted)) {
                // Without it the application would start from nothing elsewhere. Others take nothing along anyway.
                Some(Err(missing)) if is_direct(&task) && input.spec.clusters.len() == 1 => {
                    leave.stateless.push((name.to_owned(), missing));
                    continue;
                }
                Some(Ok(labels)) => state::put_in(&mut task, &labels),
                Some(Err(_)) | None => {}
            }
            leave.tasks.push(task);
        }
    }
    leave
}

/// What the application takes along from a cluster: of its status there, or, if that never came, what it took there.
fn taken_along(
    input: &FailoverInput<'_>,
    name: &str,
    wanted: &Value,
) -> Result<BTreeMap<String, String>, String> {
    let status = (input.status)(name);
    let carried = input.carried.as_ref().filter(|carried| carried.cluster == name);
    match (carried, &status) {
        (Some(carried), None) => Ok(carried.labels.clone()),
        _ => state::labels(wanted, status.as_ref()),
    }
}

/// Why a cluster must be left, and when.
struct Cause<'a> {
    due: Timestamp,
    reason: &'static str,
    producer: &'static str,
    message: String,
    purge_mode: String,
    grace: Option<i64>,
    /// What is taken along, as the policy says it.
    state: Option<&'a Value>,
}

/// What the policy says is taken along, where that happens.
fn state_of<'a>(input: &FailoverInput<'_>, behaviour: Option<&'a Value>) -> Option<&'a Value> {
    let wanted = behaviour?.get("statePreservation")?;
    (input.stateful && wanted.is_object()).then_some(wanted)
}

/// The taints that make the workload leave, and when.
fn tainted<'a>(input: &FailoverInput<'a>, name: &str) -> Option<Cause<'a>> {
    let at = input
        .clusters
        .binary_search_by(|cluster| cluster.metadata.name.as_str().cmp(name))
        .ok()?;
    let taints = input.clusters[at].spec.taints.iter();
    let (taint, due) = taints
        .filter(|taint| taint.effect == "NoExecute")
        .filter_map(|taint| Some((taint, tolerated_until(taint, input.tolerations)?)))
        .min_by_key(|(_, due)| *due)?;
    let failover = input.spec.failover.as_ref();
    let mode = failover.and_then(|failover| failover["cluster"]["purgeMode"].as_str());
    Some(Cause {
        due,
        reason: "TaintUntolerated",
        producer: "TaintManager",
        message: format!(
            "the cluster has the taint {}, which the placement does not tolerate",
            taint_text(taint)
        ),
        purge_mode: mode.unwrap_or("Gracefully").to_owned(),
        grace: None,
        state: state_of(input, failover.and_then(|failover| failover.get("cluster"))),
    })
}

/// Until when a taint is tolerated: from the start if by nobody, and `None` for ever. A taint that does not say since when
/// it is there is tolerated until somebody writes that down.
fn tolerated_until(taint: &Taint, tolerations: &[Toleration]) -> Option<Timestamp> {
    let mut matching = tolerations
        .iter()
        .filter(|toleration| tolerates(toleration, taint))
        .peekable();
    if matching.peek().is_none() {
        return Some(Timestamp::MIN);
    }
    let seconds = matching
        .filter_map(|toleration| toleration.toleration_seconds)
        .min()?;
    let added: Timestamp = taint.time_added.as_deref()?.parse().ok()?;
    Some(later(added, seconds))
}

/// The application failed there for too long.
fn failed<'a>(
    input: &FailoverInput<'a>,
    name: &str,
    since: &BTreeMap<String, Timestamp>,
) -> Option<Cause<'a>> {
    let application = application(input.spec)?;
    if input.health.get(name).map(String::as_str) != Some("Unhealthy") {
        return None;
    }
    let tolerated = application["decisionConditions"]["tolerationSeconds"].as_i64();
    let tolerated = tolerated.unwrap_or(TOLERATED);
    Some(Cause {
        due: later(*since.get(name)?, tolerated),
        reason: APPLICATION_FAILURE,
        producer: if input.spec.resource.namespace.is_empty() {
            "cluster-resource-binding-application-failover-controller"
        } else {
            "resource-binding-application-failover-controller"
        },
        message: format!("the application was unhealthy there for {tolerated} seconds"),
        purge_mode: application["purgeMode"]
            .as_str()
            .unwrap_or("Gracefully")
            .to_owned(),
        grace: application["gracePeriodSeconds"].as_i64(),
        state: state_of(input, Some(application)),
    })
}

/// What the binding says of failing applications; it counts only with dependencies, without which nothing would run elsewhere.
fn application(spec: &BindingSpec) -> Option<&Value> {
    let application = spec.failover.as_ref()?.get("application")?;
    (application.is_object() && spec.propagate_deps).then_some(application)
}

/// Since when the application is unhealthy, where it is. What nobody can tell leaves what was known.
fn still_unhealthy(input: &FailoverInput<'_>) -> BTreeMap<String, Timestamp> {
    if application(input.spec).is_none() {
        return BTreeMap::new();
    }
    let targets = input.spec.clusters.iter().map(|target| &target.name);
    targets
        .filter_map(|name| {
            let known = input.unhealthy_since.get(name).copied();
            let since = match input.health.get(name).map(String::as_str) {
                Some("Unhealthy") => Some(known.unwrap_or(input.now)),
                Some("Healthy") => None,
                _ => known,
            };
            Some((name.clone(), since?))
        })
        .collect()
}

fn task(input: &FailoverInput<'_>, name: &str, replicas: i64, cause: &Cause<'_>) -> EvictionTask {
    let before: Vec<&str> = input
        .spec
        .clusters
        .iter()
        .map(|target| target.name.as_str())
        .collect();
    let mut rest = serde_json::Map::new();
    rest.insert("reason".to_owned(), json!(cause.reason));
    rest.insert("message".to_owned(), json!(cause.message));
    rest.insert("producer".to_owned(), json!(cause.producer));
    rest.insert("creationTimestamp".to_owned(), json!(second(input.now)));
    rest.insert("clustersBeforeFailover".to_owned(), json!(before));
    if replicas > 0 {
        rest.insert("replicas".to_owned(), json!(replicas));
    }
    let purge_mode = match cause.purge_mode.as_str() {
        "Directly" | "Immediately" => "Directly",
        "Never" => {
            rest.insert("suppressDeletion".to_owned(), json!(true));
            "Gracefully"
        }
        _ => {
            if let Some(grace) = cause.grace {
                rest.insert("gracePeriodSeconds".to_owned(), json!(grace));
            }
            "Gracefully"
        }
    };
    EvictionTask {
        from_cluster: name.to_owned(),
        purge_mode: purge_mode.to_owned(),
        rest,
    }
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    let wait = SignedDuration::from_secs(seconds.max(0));
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).map_or_else(|_| time.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests;
