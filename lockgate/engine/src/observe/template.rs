//! The status of a template: what its members say, put together as one object of its kind would say it.
//!
//! Clients that know nothing of clusters read this status, so it is made of what they compare. Counts are sums; but as
//! long as one cluster is not ready, they never look as if all were. Statuses that servers refuse (more ready than there
//! are, a finished Job with active Pods) are not made.

mod addresses;
mod deployment;
mod job;
mod phase;
mod workload;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use lockgate_api::work::Work;
use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::{Health, count, has_copy, is_applied};

/// What one cluster says about the template.
#[derive(Clone, Copy, Debug)]
pub struct MemberReport<'a> {
    /// Its name.
    pub cluster: &'a str,
    /// The status that was seen there, as [`super::observe`] gives it.
    pub status: Option<&'a Value>,
    /// The health that was seen there.
    pub health: Health,
    /// Whether it took its Work as it is now.
    pub applied: bool,
    /// Whether it has a copy of some content: this one, or one before it while newer is on its way, or was refused.
    pub has_copy: bool,
    /// Whether its Work holds the template as it is now, and what was seen is no older than that.
    pub current: bool,
    /// Whether nothing is sent to it for now. Nobody waits for such a cluster while there are others.
    pub suspended: bool,
}

impl<'a> MemberReport<'a> {
    /// What a Work says. `current` is whether it holds the template as it is now.
    pub fn of(cluster: &'a str, work: &'a Work, current: bool) -> Self {
        let seen = work.status.manifest_statuses.first();
        let status = seen.and_then(|seen| seen.status.as_ref());
        Self {
            cluster,
            status,
            health: seen.map_or(Health::Unknown, |seen| Health::parse(&seen.health)),
            applied: is_applied(work),
            has_copy: has_copy(work),
            current: current && !is_behind(work, status),
            suspended: work.is_suspended(),
        }
    }

    /// A cluster that is to have the template and of which nothing is known: it has no Work.
    pub fn silent(cluster: &'a str) -> Self {
        Self {
            cluster,
            status: None,
            health: Health::Unknown,
            applied: false,
            has_copy: false,
            current: false,
            suspended: false,
        }
    }

    /// Whether the status speaks of the template as it is now, and a controller has seen that.
    fn has_seen(&self) -> bool {
        let seen = |status: &Value| {
            is_reported(status) && count(status, "observedGeneration") >= count(status, "generation")
        };
        self.applied && self.current && self.status.is_some_and(seen)
    }

    /// Whether all is done there.
    fn is_ready(&self) -> bool {
        self.has_seen() && self.health == Health::Healthy
    }
}

/// Whether a status was seen before the last write to the member.
pub(crate) fn is_behind(work: &Work, status: Option<&Value>) -> bool {
    let written = work
        .status
        .last_applied
        .as_ref()
        .and_then(|last| last.version.strip_prefix("gen:")?.parse::<i64>().ok());
    let seen = status.and_then(|status| status.get("generation")?.as_i64());
    matches!((written, seen), (Some(written), Some(seen)) if seen < written)
}

/// Whether a workload's controller has ever said something.
fn is_reported(status: &Value) -> bool {
    count(status, "observedGeneration") > 0
}

/// The clusters that a template was released to: all but those that it is suspended on; all if there is no other.
fn released<'m>(members: &[MemberReport<'m>]) -> Vec<MemberReport<'m>> {
    let released: Vec<_> = members
        .iter()
        .filter(|member| !member.suspended)
        .copied()
        .collect();
    if released.is_empty() {
        members.to_vec()
    } else {
        released
    }
}

/// How the replicas of clusters are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// The sum over all clusters.
    #[default]
    Summed,
    /// Those of the cluster that is worst; once all are ready, what the template asks for. It is for templates that every
    /// cluster gets whole: their sums exceed `spec.replicas`, and some clients take that for Pods that are about to end,
    /// and wait for them for ever.
    Weakest,
}

/// Whether none of these clusters has it while one of the `others`, that it leaves, still does: those keep their copies until
/// these have theirs, and what was last said of the template is true of them.
pub fn is_still_elsewhere<'w>(
    members: &[MemberReport<'_>],
    mut others: impl Iterator<Item = &'w Work>,
) -> bool {
    workload::is_nowhere(members) && others.any(has_copy)
}

/// The new status of a template, counted by sums; none if its kind has no rule or nothing changes.
pub fn aggregate_template(template: &Value, members: &[MemberReport<'_>], now: Timestamp) -> Option<Value> {
    aggregate_template_as(template, members, Counts::Summed, now)
}

/// The new status of a template; none if its kind has no rule or nothing changes.
pub fn aggregate_template_as(
    template: &Value,
    members: &[MemberReport<'_>],
    counts: Counts,
    now: Timestamp,
) -> Option<Value> {
    let empty = Map::new();
    let old = template
        .get("status")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let kind = Kind::of(template);
    // Silence is no news: what was last said stays. But where nobody has it, nobody has its replicas either.
    let is_gone = || workload::counts_replicas(kind) && workload::is_nowhere(members);
    let is_silent = !members.is_empty() && members.iter().all(|member| member.status.is_none());
    if is_silent && (old.is_empty() || !is_gone()) {
        return None;
    }
    if members.is_empty() && old.is_empty() && !workload::asks_for_nothing(kind, template) {
        return None;
    }
    let mut status = Value::Object(old.clone());
    match kind {
        Kind::Deployment => deployment::deployment(template, members, counts, now, &mut status),
        Kind::StatefulSet => workload::stateful_set(template, members, counts, &mut status),
        Kind::ReplicaSet => workload::replica_set(template, members, counts, &mut status),
        Kind::DaemonSet => workload::daemon_set(template, members, &mut status),
        Kind::Job => job::job(members, now, &mut status),
        Kind::CronJob => job::cron_job(members, &mut status),
        Kind::Service if template["spec"]["type"] == "LoadBalancer" => {
            addresses::union(members, &mut status);
        }
        Kind::Ingress => addresses::union(members, &mut status),
        Kind::Pod => phase::pod(members, &mut status),
        Kind::PersistentVolume => phase::volume(members, &mut status),
        Kind::PersistentVolumeClaim => phase::claim(members, &mut status),
        Kind::PodDisruptionBudget => budget(members, &mut status),
        Kind::HorizontalPodAutoscaler => {
            let fields = ["currentReplicas", "desiredReplicas"];
            set_sums(members, &fields, &["desiredReplicas"], &mut status);
        }
        // The definition of a custom kind, for one, has its status from the hub's own server.
        Kind::Service | Kind::Other => return None,
    }
    (said(&status) != said(&Value::Object(old.clone()))).then_some(status)
}

/// A status without what says nothing: a count of 0 is the same as none.
fn said(status: &Value) -> Map<String, Value> {
    let nothing = |value: &Value| {
        value.is_null()
            || value == &json!(0)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
    };
    let fields = status.as_object().into_iter().flatten();
    fields
        .filter(|(_, value)| !nothing(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Sets a field, or takes it away.
fn set(status: &mut Value, field: &str, value: Option<Value>) {
    let Some(status) = status.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => status.insert(field.to_owned(), value),
        None => status.remove(field),
    };
}

/// Sets a count. One that is 0 is left out unless the kind always has it.
fn set_count(status: &mut Value, field: &str, number: i64, always: &[&str]) {
    let shown = number != 0 || always.contains(&field);
    set(status, field, shown.then(|| json!(number)));
}

fn sum(members: &[MemberReport<'_>], field: &str) -> i64 {
    let one = |member: &MemberReport<'_>| member.status.map_or(0, |status| count(status, field));
    members.iter().map(one).fold(0, i64::saturating_add)
}

fn set_sums(members: &[MemberReport<'_>], fields: &[&str], always: &[&str], status: &mut Value) {
    for field in fields {
        set_count(status, field, sum(members, field), always);
    }
}

/// Disruption budgets: sums, and the Pods named with their clusters.
fn budget(members: &[MemberReport<'_>], status: &mut Value) {
    let fields = [
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
        "expectedPods",
    ];
    set_sums(members, &fields, &fields, status);
    let mut disrupted = Map::new();
    for member in members {
        let pods = member
            .status
            .and_then(|status| status["disruptedPods"].as_object());
        for (pod, when) in pods.into_iter().flatten() {
            disrupted.insert(format!("{}/{pod}", member.cluster), when.clone());
        }
    }
    let value = (!disrupted.is_empty()).then_some(Value::Object(disrupted));
    set(status, "disruptedPods", value);
}
