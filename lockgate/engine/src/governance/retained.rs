//! Clusters that keep what they have while nobody can say whether they are chosen: a placement of the root selects nothing, or
//! the root cannot be followed. They are told as they are, and nothing of them moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::ClusterCompliance;
use lockgate_api::rollout_policy::{RunCluster, RunGroup};

use super::replica::only_informs;
use super::revision::{Mark, seen};
use super::rollout::Standing;
use crate::gate::run::Seen;
use crate::gate::standing::Status;
use crate::observe::stamp;

/// What people see of such clusters.
const GROUP: &str = "kept";
/// Why one of them does not move.
const KEEPS: &str = "keeps what it has: the conditions of the policy say why";

/// A cluster that keeps what it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Retained {
    /// How it is, as the root tells it.
    pub told: ClusterCompliance,
    /// How far it is; none if it has no replica just now, so that nothing new is known.
    pub standing: Option<Standing>,
}

/// The clusters of a root that keep what they have, by name: those with a replica, and those that the root told before, which are to get
/// theirs back. `wanted` has the digests of what clusters are to have, where somebody knows; `leaves_out` says which clusters
/// are none of them.
pub fn retained(
    before: &[ClusterCompliance],
    replicas: &BTreeMap<String, Arc<Policy>>,
    wanted: Option<&[String]>,
    leaves_out: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Vec<Retained> {
    // Times have whole microseconds, as those of rollouts.
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    let mut all: BTreeMap<&str, Retained> = BTreeMap::new();
    for told in before.iter().filter(|told| !leaves_out(&told.clustername)) {
        let one = Retained {
            told: told.clone(),
            standing: None,
        };
        all.insert(&told.clustername, one);
    }
    for (cluster, replica) in replicas.iter().filter(|(cluster, _)| !leaves_out(cluster)) {
        let standing = standing(cluster, replica, wanted, now);
        let status = replica.status.as_ref();
        let told = ClusterCompliance {
            compliant: status.map(|status| status.compliant.clone()).unwrap_or_default(),
            ..standing.told()
        };
        let standing = Some(standing);
        all.insert(cluster, Retained { told, standing });
    }
    all.into_values().collect()
}

/// How far such a cluster is. Who does not have what it is to have waits for it, and so does who was told to wait.
fn standing(cluster: &str, replica: &Policy, wanted: Option<&[String]>, now: Timestamp) -> Standing {
    let stored = replica.status.clone().unwrap_or_default();
    let was = Status::from_name(&stored.rollout_status);
    let mark = Mark::of(replica).filter(|mark| mark.revision > 0);
    let has_wanted = mark.is_some_and(|mark| wanted.is_none_or(|wanted| wanted.contains(&mark.digest)));
    let status = match (seen(replica, only_informs(&replica.spec)), was) {
        _ if !has_wanted => Status::ToApply,
        (_, Status::ToApply) if wanted.is_none() => Status::ToApply,
        (Seen::Well | Seen::Applied, _) => Status::Succeeded,
        // Nobody is late for what does not move, and who was late or failed has not recovered.
        (_, Status::TimeOut) => Status::TimeOut,
        (Seen::Bad, _) | (_, Status::Failed) => Status::Failed,
        (Seen::Unknown | Seen::UnderWay, _) => Status::Progressing,
    };
    let read = |text: Option<&String>| -> Option<Timestamp> { text.and_then(|text| text.parse().ok()) };
    let same = read(stored.rollout_status_transition_time.as_ref()).filter(|_| was == status);
    let since = same.unwrap_or(now);
    Standing {
        cluster: cluster.to_owned(),
        status,
        soaks: false,
        since: Some(since),
        failed_since: match status {
            Status::Failed => Some(since),
            Status::TimeOut => read(stored.rollout_failed_since.as_ref()),
            _ => None,
        },
    }
}

/// Such clusters as a group of their own, after these; none if there are none.
pub fn group(after: &[RunGroup], retained: &[Retained]) -> Option<RunGroup> {
    let index = after.iter().map(|group| group.index + 1).max().unwrap_or(0);
    let clusters: Vec<RunCluster> = retained.iter().map(shown).collect();
    (!clusters.is_empty()).then(|| RunGroup::of(index, GROUP, clusters))
}

/// Groups as they were, with what is known of their clusters now, which come by name.
pub fn groups(before: &[RunGroup], retained: &[Retained]) -> Vec<RunGroup> {
    let now = |was: &RunCluster| {
        let at = retained.binary_search_by(|one| one.told.clustername.cmp(&was.name));
        match at.ok().and_then(|at| retained.get(at)) {
            Some(one) if one.told.rollout_status != was.state => shown(one),
            _ => was.clone(),
        }
    };
    let groups = before.iter();
    groups
        .map(|group| RunGroup::of(group.index, &group.name, group.clusters.iter().map(now).collect()))
        .collect()
}

fn shown(one: &Retained) -> RunCluster {
    RunCluster {
        name: one.told.clustername.clone(),
        state: one.told.rollout_status.clone(),
        reason: if one.told.rollout_status == Status::Succeeded.name() {
            "done".to_owned()
        } else {
            KEEPS.to_owned()
        },
        since: one
            .standing
            .as_ref()
            .and_then(|standing| standing.since)
            .map(stamp),
        until: None,
        revision: 0,
    }
}
