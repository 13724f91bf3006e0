//! The place station: which clusters a template goes to, and how many replicas each of them gets.
//!
//! A decision has four steps. A *trigger* says whether the binding is placed anew at all; *filters* say which clusters
//! fit; *spread* picks among those; *divide* gives out the replicas. Every cluster that is left out has its reason.
//!
//! What always holds:
//! - Whether a cluster is ready is no filter: only taints keep things off it.
//! - A cluster that a binding goes to already is not left because of taints, kinds that it does not list, or other workloads.
//! - A placement that fits no cluster removes nothing, unless the gate for that is on.
//! - Groups of clusters (`clusterAffinities`) are tried forward from the one in use; only a rebalance starts again.

mod absent;
mod divide;
mod dynamic;
mod explain;
pub(crate) mod filter;
mod last;
mod neighbours;
mod other_groups;
mod room;
mod spread;
#[cfg(test)]
mod tests;
mod trigger;
mod webster;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::binding::TargetCluster;
use lockgate_api::{BindingSpec, Cluster, Placement};

use self::absent::absent;
use self::filter::{Fit, Group};
use self::room::Needs;
use self::spread::Want;
use crate::Gates;

pub use divide::{asks_for_room, is_dynamic, is_workload};
pub use explain::{explain, is_news};
pub use last::LastPlaced;
pub use neighbours::{Neighbour, Neighbours, affinity_groups};
pub use room::Rooms;
pub use trigger::{Trigger, trigger};
pub use webster::webster;

/// What a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct PlaceInput<'a> {
    /// The binding.
    pub spec: &'a BindingSpec,
    /// The placement that was last placed; `None` if there is none, or none that can be read.
    pub applied_placement: Option<&'a Placement>,
    /// The group of clusters in use; empty if there is none.
    pub observed_affinity: &'a str,
    /// When the binding was last placed.
    pub last_scheduled: Option<Timestamp>,
    /// The rebalance that was last followed.
    pub rebalanced: Option<Timestamp>,
    /// All clusters, sorted by name.
    pub clusters: &'a [Arc<Cluster>],
    /// What is free in them, if somebody knows; else it is read from them where it is needed.
    pub rooms: Option<&'a Rooms>,
    /// Where the other workloads of its groups are, if it belongs to one.
    pub neighbours: Option<&'a Neighbours>,
    /// The feature gates.
    pub gates: Gates,
}

/// A decision, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What was decided.
    pub verdict: Verdict,
    /// The clusters that were left out, by name, each with the reason; also those that the placement names and that do not
    /// exist. Empty if nothing was placed anew.
    pub rejected: Vec<Rejection>,
    /// The group of clusters that was chosen, if the placement has groups and one fits.
    pub affinity_name: Option<String>,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no reason to place anew: the clusters stay as they are.
    Unchanged,
    /// These clusters, by name. They may be the same as before.
    Clusters(Vec<TargetCluster>),
    /// No cluster fits.
    NoClusterFit {
        /// Why, for the condition.
        message: String,
        /// Whether the present clusters stay.
        keep: bool,
    },
    /// Clusters fit, and the replicas or the spread that is wanted do not. The present clusters stay.
    Unschedulable {
        /// Why, for the condition.
        message: String,
    },
}

/// A cluster that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its name.
    pub cluster: String,
    /// Why, for programs.
    pub reason: RejectionReason,
    /// Why, for people: what follows "the cluster is left out because".
    pub message: String,
    /// What would help, for people; empty if nothing would.
    pub help: &'static str,
}

/// Why a cluster is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RejectionReason {
    /// The placement names it, and it does not exist.
    Absent,
    /// It is being removed from the fleet.
    Terminating,
    /// The placement does not ask for it.
    ClusterAffinity,
    /// The binding is leaving it.
    Eviction,
    /// It does not serve the template's kind.
    MissingApi,
    /// It has a taint that the placement does not tolerate.
    Taint,
    /// None of the workloads that it goes together with is there.
    WorkloadAffinity,
    /// A workload that it stays apart from is there.
    WorkloadAntiAffinity,
    /// It does not say where it is, which the spread needs to know.
    SpreadField,
    /// It fits, and as many clusters as are wanted were chosen before it.
    SpreadLimit,
    /// It fits, and with all that fit the spread cannot be met.
    SpreadUnmet,
    /// It fits, and no replica fell to it.
    NoReplicas,
    /// It fits, and has no room for what is wanted.
    NoRoom,
}

impl RejectionReason {
    /// The reason as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "Absent",
            Self::Terminating => "Terminating",
            Self::ClusterAffinity => "ClusterAffinity",
            Self::Eviction => "Eviction",
            Self::MissingApi => "MissingApi",
            Self::Taint => "Taint",
            Self::WorkloadAffinity => "WorkloadAffinity",
            Self::WorkloadAntiAffinity => "WorkloadAntiAffinity",
            Self::SpreadField => "SpreadField",
            Self::SpreadLimit => "SpreadLimit",
            Self::SpreadUnmet => "SpreadUnmet",
            Self::NoReplicas => "NoReplicas",
            Self::NoRoom => "NoRoom",
        }
    }
}

/// Decides where a binding goes, if there is a reason to decide it anew.
pub fn place(input: &PlaceInput<'_>) -> Placed {
    match (&input.spec.placement, trigger(input)) {
        (Some(placement), Some(_)) => decide(input, placement),
        _ => Placed {
            verdict: Verdict::Unchanged,
            rejected: Vec::new(),
            affinity_name: None,
        },
    }
}

/// Decides where a binding would go if it were placed now, for those who preview or explain. A binding without a
/// placement goes nowhere of its own.
pub fn preview(input: &PlaceInput<'_>) -> Placed {
    match &input.spec.placement {
        Some(placement) => decide(input, placement),
        None => place(input),
    }
}

fn decide(input: &PlaceInput<'_>, placement: &Placement) -> Placed {
    let Groups { all, start } = groups(input, placement);
    let mut rejections = Rejections(vec![None; input.clusters.len()]);
    let mut first_failure = None;
    for (index, group) in all.iter().enumerate().skip(start) {
        match attempt(input, placement, group, &mut rejections) {
            Ok(targets) => {
                other_groups::tell(input, placement, &all, (start, Some(index)), &mut rejections);
                return Placed {
                    rejected: rejections.without(&targets, absent(placement, input.clusters)),
                    verdict: Verdict::Clusters(targets),
                    affinity_name: group.name.map(str::to_owned),
                };
            }
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    other_groups::tell(input, placement, &all, (start, None), &mut rejections);
    // There is always a group, so there is a failure here.
    let verdict = first_failure.unwrap_or(Verdict::Unchanged);
    Placed {
        verdict,
        rejected: rejections.without(&[], absent(placement, input.clusters)),
        affinity_name: None,
    }
}

/// The groups of clusters of a placement, in order.
struct Groups<'a> {
    all: Vec<Group<'a>>,
    /// The first that is tried.
    start: usize,
}

fn groups<'a>(input: &PlaceInput<'_>, placement: &'a Placement) -> Groups<'a> {
    let terms = &placement.cluster_affinities;
    if terms.is_empty() {
        return Groups {
            all: vec![Group::only(placement.cluster_affinity.as_ref())],
            start: 0,
        };
    }
    let in_use = terms
        .iter()
        .position(|term| term.affinity_name == input.observed_affinity);
    let start = match in_use {
        Some(index) if !trigger::rebalance_asked(input) => index,
        _ => 0,
    };
    Groups {
        all: terms.iter().map(Group::of_term).collect(),
        start,
    }
}

/// Places a binding in one group of clusters.
fn attempt(
    input: &PlaceInput<'_>,
    placement: &Placement,
    group: &Group<'_>,
    rejections: &mut Rejections,
) -> Result<Vec<TargetCluster>, Verdict> {
    let spec = input.spec;
    let mut fits = fitting(input, placement, group, rejections)?;
    let unschedulable = |message| Verdict::Unschedulable { message };
    let dynamic = divide::is_dynamic(spec);
    let fresh = trigger::rebalance_asked(input);
    let mut needs = Needs::default();
    if dynamic {
        needs = Needs::of(spec).map_err(unschedulable)?;
        divide::measure(input, &needs, &mut fits);
    } else if divide::is_set(spec, input.gates) {
        needs = Needs::of_parts(spec).map_err(unschedulable)?;
        divide::measure(input, &needs, &mut fits);
        fits = divide::roomy(input, &needs, fits, rejections).map_err(unschedulable)?;
    }
    let want = Want {
        replicas: spec.replicas,
        dynamic,
        fresh,
    };
    let candidates = fits.clone();
    let short = |rejections: &mut Rejections, message| {
        if dynamic {
            divide::tell_room(input, &needs, &candidates, rejections);
        }
        unschedulable(message)
    };
    let (chosen, left) = match spread::choose(fits, placement, want) {
        Ok(choice) => choice,
        Err(why) if why.of_room => return Err(short(rejections, why.message)),
        Err(why) => {
            tell_groups(placement, &candidates, rejections);
            return Err(unschedulable(why.message));
        }
    };
    for fit in left {
        let message = format!(
            "the placement's spread takes {} clusters, and others come first",
            chosen.len()
        );
        let help = "raise maxGroups of its spread constraints";
        rejections.add(
            fit.cluster,
            fit.index,
            RejectionReason::SpreadLimit,
            message,
            help,
        );
    }
    let targets = match divide::divide(spec, placement, &chosen, fresh) {
        Ok(targets) => targets,
        Err(message) => return Err(short(rejections, message)),
    };
    for fit in &chosen {
        let name = &fit.cluster.metadata.name;
        if targets.binary_search_by(|target| target.name.cmp(name)).is_err() {
            let (message, help) = divide::why_none(spec, placement, fit);
            rejections.add(fit.cluster, fit.index, RejectionReason::NoReplicas, message, help);
        }
    }
    Ok(targets)
}

/// Says of every cluster that fits for which groups it stands: together they were not what the spread asks for.
fn tell_groups(placement: &Placement, fits: &[Fit<'_>], rejections: &mut Rejections) {
    for fit in fits {
        let groups = spread::groups_of(fit.cluster, placement);
        let message = match groups.as_str() {
            "" => "it fits, and the spread cannot be met with those that fit".to_owned(),
            groups => format!("it fits, for {groups}, and the spread cannot be met with those that fit"),
        };
        let help = "let clusters of other groups fit, lower minGroups, or raise maxGroups";
        rejections.add(
            fit.cluster,
            fit.index,
            RejectionReason::SpreadUnmet,
            message,
            help,
        );
    }
}

/// The clusters that pass every filter, by name; at least one.
fn fitting<'a>(
    input: &PlaceInput<'a>,
    placement: &Placement,
    group: &Group<'_>,
    rejections: &mut Rejections,
) -> Result<Vec<Fit<'a>>, Verdict> {
    let mut fits = Vec::new();
    let mut summaries: BTreeMap<Cow<'static, str>, usize> = BTreeMap::new();
    let present = filter::Present::new(input.spec);
    let neighbours = input.neighbours.map(|neighbours| neighbours.reachable(input));
    let asked = PlaceInput {
        neighbours: neighbours.as_ref(),
        ..*input
    };
    for (index, cluster) in input.clusters.iter().enumerate() {
        match filter::check(&asked, placement, group, &present, (index, cluster)) {
            Ok(fit) => fits.push(fit),
            Err(refusal) => {
                rejections.add(cluster, index, refusal.reason, refusal.message, refusal.help);
                *summaries.entry(refusal.summary).or_default() += 1;
            }
        }
    }
    if !fits.is_empty() {
        return Ok(fits);
    }
    let mut reasons: Vec<String> = summaries
        .iter()
        .map(|(summary, count)| format!("{count} {summary}"))
        .collect();
    reasons.sort_unstable();
    if reasons.is_empty() {
        reasons.push("no cluster exists".to_owned());
    }
    let total = input.clusters.len();
    Err(Verdict::NoClusterFit {
        message: format!("0/{total} clusters are available: {}.", reasons.join(", ")),
        keep: !input.gates.no_cluster_fit_removes,
    })
}

/// The clusters that were left out, over all groups that were tried, each in its place among all clusters.
struct Rejections(Vec<Option<Rejection>>);

impl Rejections {
    /// Notes a reason. That a group does not name a cluster says least, so that any other reason replaces it; of several that do
    /// not, all are told in the end.
    fn add(
        &mut self,
        cluster: &Cluster,
        index: usize,
        reason: RejectionReason,
        message: String,
        help: &'static str,
    ) {
        let Some(place) = self.0.get_mut(index) else {
            return;
        };
        let says_more = place
            .as_ref()
            .is_none_or(|known| known.reason == RejectionReason::ClusterAffinity);
        if says_more {
            *place = Some(Rejection {
                cluster: cluster.metadata.name.clone(),
                reason,
                message,
                help,
            });
        }
    }

    /// All but those of clusters that another group took, and those that do not exist.
    fn without(self, targets: &[TargetCluster], absent: Vec<Rejection>) -> Vec<Rejection> {
        let taken = |name: &String| targets.binary_search_by(|target| target.name.cmp(name)).is_ok();
        let left_out = self.0.into_iter().flatten();
        let mut all: Vec<Rejection> = left_out
            .filter(|rejection| !taken(&rejection.cluster))
            .chain(absent)
            .collect();
        all.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        all
    }
}
