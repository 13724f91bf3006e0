//! The `Ready` condition from what probes say, with a delay before it flips.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lockgate_api::{Cluster, Condition};

/// The type of the condition.
pub const READY: &str = "Ready";

/// The most characters of a member's own words in a message.
const MAX_DETAIL: usize = 256;

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The member answered that it is well.
    Healthy,
    /// The member answered, but not that it is well; its words, or nothing.
    Unhealthy(String),
    /// The member did not answer; why, or nothing.
    Unreachable(String),
    /// There is no way to ask it: no endpoint, no Secret, no certificate that can be read.
    NoConnection(String),
}

/// How long the answers must stay the same before a known cluster changes sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// From not ready to ready.
    pub success: Duration,
    /// From ready to not ready.
    pub failure: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            success: Duration::from_secs(30),
            failure: Duration::from_secs(30),
        }
    }
}

/// Since when the probes say the same. It lives in memory: a restart begins a new streak and so delays a flip, and never
/// causes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streak {
    /// Whether they say that the cluster is well.
    pub healthy: bool,
    /// The first of them.
    pub since: Timestamp,
}

/// The `Ready` condition after this probe, and the streak to hand in with the next one.
///
/// `current` is the condition as it stands; `ever_ready` says whether the cluster was ready at any time (see
/// [`was_ever_ready`]).
pub fn health(
    probe: &Probe,
    streak: Option<Streak>,
    current: Option<&Condition>,
    ever_ready: bool,
    now: Timestamp,
    thresholds: Thresholds,
) -> (Condition, Streak) {
    let healthy = *probe == Probe::Healthy;
    let streak = match streak {
        Some(streak) if streak.healthy == healthy => streak,
        _ => Streak { healthy, since: now },
    };
    let threshold = if healthy {
        thresholds.success
    } else {
        thresholds.failure
    };
    let patient = SignedDuration::try_from(threshold).unwrap_or(SignedDuration::MAX);
    let condition = match current {
        Some(current)
            if current.is_true() != healthy
                && (ever_ready || !healthy)
                && now.duration_since(streak.since) < patient =>
        {
            current.clone()
        }
        _ => observed(probe, current, now),
    };
    (condition, streak)
}

/// Whether a cluster was ready at any time: its version is learnt with the first good answer and never forgotten.
pub fn was_ever_ready(cluster: &Cluster) -> bool {
    !cluster.status.kubernetes_version.is_empty()
}

/// The condition of a cluster that wants an agent, which is not served here.
pub fn pull_not_served(current: Option<&Condition>, now: Timestamp) -> Condition {
    condition(
        "False",
        "PullModeNotServed",
        "syncMode Pull is not served: nothing is sent to this cluster; use syncMode Push".to_owned(),
        current,
        now,
    )
}

fn observed(probe: &Probe, current: Option<&Condition>, now: Timestamp) -> Condition {
    let (status, reason, message) = match probe {
        Probe::Healthy => (
            "True",
            "ClusterReady",
            "cluster is healthy and ready to accept workloads".to_owned(),
        ),
        Probe::Unhealthy(detail) => (
            "False",
            "ClusterNotReady",
            with_detail(
                "cluster is reachable but health endpoint responded without ok",
                detail,
            ),
        ),
        Probe::Unreachable(detail) => (
            "False",
            "ClusterNotReachable",
            with_detail("cluster is not reachable", detail),
        ),
        Probe::NoConnection(detail) => (
            "False",
            "StatusCollectionFailed",
            with_detail("failed to create a ClusterClient", detail),
        ),
    };
    condition(status, reason, message, current, now)
}

fn with_detail(text: &str, detail: &str) -> String {
    let detail: String = detail.trim().chars().take(MAX_DETAIL).collect();
    if detail.is_empty() {
        text.to_owned()
    } else {
        format!("{text}: {detail}")
    }
}

fn condition(
    status: &str,
    reason: &str,
    message: String,
    current: Option<&Condition>,
    now: Timestamp,
) -> Condition {
    let since = current
        .filter(|current| current.status == status)
        .map(|current| current.last_transition_time.clone());
    Condition {
        kind: READY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: since.unwrap_or_else(|| super::enablements::seconds(now)),
        observed_generation: None,
    }
}

#[cfg(test)]
mod tests;
