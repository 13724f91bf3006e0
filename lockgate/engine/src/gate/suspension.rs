//! What is held back from which cluster, by whom, and why.
//!
//! Three may hold back: the policy that places a template, as far as it was activated (the binding says so); every rollout
//! policy about the template, as it is now; and, for what a cluster gets only because others there need it, all of those
//! others together. They add up: a cluster gets something when nobody holds it back. Rollout policies are read here and
//! copied nowhere, so that a binding says what was activated and nothing else, and nothing that waits is taken for changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::binding::TargetCluster;
use lockgate_api::policy::{SuspendClusters, Suspension};
use lockgate_api::rollout_policy::RolloutStatus;
use lockgate_api::{BindingSpec, Condition, RolloutPolicy};

use crate::observe::stamp;

/// The type of the condition that says whether the clusters of a suspension are there.
pub const CLUSTERS_KNOWN: &str = "ClustersKnown";
/// The longest text about who holds something back, in characters.
const TEXT: usize = 2048;
/// How many names a message shows.
const NAMES: usize = 10;

/// Who holds something back from a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// The policy that places it, as it was activated.
    Propagation,
    /// A rollout policy.
    Rollout {
        /// Its kind, namespace and name.
        policy: String,
        /// The reason that it gives; may be empty.
        reason: String,
    },
    /// Everything that needs it there: the bindings, by namespace and name.
    Referrers(Vec<String>),
    /// The older mark on its Work, which somebody else put there.
    Mark,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Propagation => f.write_str("the policy that places it"),
            Self::Rollout { policy, reason } if reason.is_empty() => f.write_str(policy),
            Self::Rollout { policy, reason } => write!(f, "{policy}: {reason}"),
            Self::Referrers(bindings) => write!(
                f,
                "what needs it here is suspended here: {}",
                some(bindings.iter().map(String::as_str), NAMES)
            ),
            Self::Mark => f.write_str("the mark on its Work"),
        }
    }
}

/// The clusters whose Works carry the older mark.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Those of the template itself.
    pub own: BTreeSet<String>,
    /// Those of the bindings that need it, by namespace and name.
    pub referrers: BTreeMap<String, BTreeSet<String>>,
}

/// A binding that needs another one.
#[derive(Clone, Debug, Default)]
pub struct Referrer {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What was activated for it.
    pub suspension: Option<Suspension>,
    /// The rollout policies about its template.
    pub rollouts: Vec<Arc<RolloutPolicy>>,
}

/// What decides whether a cluster's Work is sent.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseInput<'a> {
    /// The binding's spec.
    pub spec: &'a BindingSpec,
    /// The rollout policies about its template.
    pub rollouts: &'a [Arc<RolloutPolicy>],
    /// The bindings that need this one, as far as they are there.
    pub referrers: &'a [Referrer],
}

/// Who holds a template's Works back, arranged so that one cluster is answered in the same time however many are named.
#[derive(Debug)]
pub struct Holds<'a> {
    /// Where its own policy places it.
    placed: HashSet<&'a str>,
    own: Own<'a>,
    /// The bindings that need it, with the clusters where they do.
    referrers: Vec<(String, HashSet<&'a str>, Own<'a>)>,
    marks: Option<&'a Marks>,
}

impl<'a> Holds<'a> {
    /// Arranges what decides.
    pub fn of(input: &ReleaseInput<'a>) -> Self {
        let names =
            |targets: &'a [TargetCluster]| targets.iter().map(|target| target.name.as_str()).collect();
        let referrers = input.spec.required_by.iter().filter_map(|snapshot| {
            let referrer = input.referrers.iter().find(|referrer| {
                referrer.namespace == snapshot.namespace && referrer.name == snapshot.name
            })?;
            Some((
                format!("{}/{}", referrer.namespace, referrer.name),
                names(&snapshot.clusters),
                Own::of(referrer.suspension.as_ref(), &referrer.rollouts),
            ))
        });
        Self {
            placed: names(&input.spec.clusters),
            own: Own::of(input.spec.suspension.as_ref(), input.rollouts),
            referrers: referrers.collect(),
            marks: None,
        }
    }

    /// The same, with what is marked.
    pub fn with_marks(self, marks: &'a Marks) -> Self {
        Self {
            marks: Some(marks),
            ..self
        }
    }

    /// Everybody who holds a cluster's Work back; nobody if it is sent.
    pub fn on(&self, cluster: &str) -> Vec<HeldBy> {
        let mut held = self.own.on(cluster);
        if !self.placed.contains(cluster) {
            held.extend(self.by_referrers(cluster));
        }
        if self.marks.is_some_and(|marks| marks.own.contains(cluster)) {
            held.push(HeldBy::Mark);
        }
        held
    }

    /// The referrers through which it reaches a cluster, if all of those that are there are suspended there.
    fn by_referrers(&self, cluster: &str) -> Option<HeldBy> {
        let here = || self.referrers.iter().filter(|(_, at, _)| at.contains(cluster));
        let is_marked = |name: &str| {
            let marked = self.marks.and_then(|marks| marks.referrers.get(name));
            marked.is_some_and(|clusters| clusters.contains(cluster))
        };
        if here().any(|(name, _, own)| own.on(cluster).is_empty() && !is_marked(name)) {
            return None;
        }
        let names: Vec<String> = here().map(|(name, ..)| name.clone()).collect();
        (!names.is_empty()).then_some(HeldBy::Referrers(names))
    }
}

/// Who holds a template itself back: its policy, and the rollout policies about it.
#[derive(Debug)]
struct Own<'a> {
    activated: Reach<'a>,
    rollouts: Vec<(&'a RolloutPolicy, Reach<'a>)>,
}

impl<'a> Own<'a> {
    fn of(activated: Option<&'a Suspension>, rollouts: &'a [Arc<RolloutPolicy>]) -> Self {
        let suspending = rollouts.iter().filter_map(|policy| {
            let suspension = policy.spec.suspension.as_ref()?;
            Some((policy.as_ref(), Reach::of(suspension)))
        });
        Self {
            activated: activated.map(Reach::activated).unwrap_or_default(),
            rollouts: suspending.collect(),
        }
    }

    fn on(&self, cluster: &str) -> Vec<HeldBy> {
        let mut held = Vec::new();
        if self.activated.covers(cluster) {
            held.push(HeldBy::Propagation);
        }
        let covering = self.rollouts.iter().filter(|(_, reach)| reach.covers(cluster));
        held.extend(covering.map(|(policy, _)| {
            let suspension = policy.spec.suspension.as_ref();
            HeldBy::Rollout {
                policy: policy.title(),
                reason: suspension
                    .map_or("", |suspension| suspension.reason.trim())
                    .to_owned(),
            }
        }));
        held
    }
}

/// Where a suspension holds back.
#[derive(Debug, Default)]
struct Reach<'a> {
    everywhere: bool,
    names: HashSet<&'a str>,
}

impl<'a> Reach<'a> {
    /// Of a policy, in whichever spelling.
    fn of(suspension: &'a Suspension) -> Self {
        Self {
            everywhere: is_everywhere(suspension),
            names: named(suspension).collect(),
        }
    }

    /// Of a binding, which carries one spelling.
    fn activated(suspension: &'a Suspension) -> Self {
        let names = suspension.dispatching_on_clusters.iter();
        Self {
            everywhere: suspension.dispatching == Some(true),
            names: names
                .flat_map(|list| list.cluster_names.iter().map(String::as_str))
                .collect(),
        }
    }

    fn covers(&self, cluster: &str) -> bool {
        self.everywhere || self.names.contains(cluster)
    }
}

/// Whether a policy's suspension covers every cluster.
pub fn is_everywhere(suspension: &Suspension) -> bool {
    suspension.dispatching == Some(true) || suspension.suspend_dispatching == Some(true)
}

/// The clusters that a suspension names, in whichever spelling.
pub fn named(suspension: &Suspension) -> impl Iterator<Item = &str> {
    let lists: [&Option<SuspendClusters>; 2] = [
        &suspension.dispatching_on_clusters,
        &suspension.suspend_dispatching_on_clusters,
    ];
    lists
        .into_iter()
        .flatten()
        .flat_map(|list| list.cluster_names.iter().map(String::as_str))
}

/// What a Work says of those who hold it back, beside the policy that places it; empty if nobody does.
pub fn suspended_by(held: &[HeldBy]) -> String {
    let texts: Vec<String> = held
        .iter()
        .filter(|held| **held != HeldBy::Propagation)
        .map(HeldBy::to_string)
        .collect();
    texts.join("; ").chars().take(TEXT).collect()
}

/// The condition [`CLUSTERS_KNOWN`] of a suspension, if it names clusters. What it says of one that is not there counts from
/// the moment that it joins, and nothing else follows from it: a name that is wrong holds nothing back.
pub fn clusters_known(
    suspension: Option<&Suspension>,
    is_there: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Option<Condition> {
    let names: BTreeSet<&str> = suspension.map(named)?.collect();
    if names.is_empty() {
        return None;
    }
    let missing: Vec<&str> = names.into_iter().filter(|name| !is_there(name)).collect();
    let (status, reason, message) = if missing.is_empty() {
        (
            "True",
            "AllKnown",
            "The hub has every cluster that the suspension names.".to_owned(),
        )
    } else {
        (
            "False",
            "UnknownClusters",
            format!(
                "The suspension names clusters that the hub does not have: {}. It holds nothing back there until they join.",
                some(missing.iter().copied(), NAMES)
            ),
        )
    };
    Some(Condition {
        kind: CLUSTERS_KNOWN.to_owned(),
        status: status.to_owned(),
        observed_generation: None,
        last_transition_time: stamp(now),
        reason: reason.to_owned(),
        message,
    })
}

/// What a rollout policy's status says.
pub fn rollout_status(
    policy: &RolloutPolicy,
    is_there: impl Fn(&str) -> bool,
    now: Timestamp,
) -> RolloutStatus {
    let mut status = policy.status.clone().unwrap_or_default();
    let suspension = policy.spec.suspension.as_ref();
    status.observed_generation = Some(policy.metadata.generation);
    status.suspended = suspension.map(extent).unwrap_or_default();
    match clusters_known(suspension, is_there, now) {
        Some(condition) => condition.put(&mut status.conditions),
        None => status
            .conditions
            .retain(|condition| condition.kind != CLUSTERS_KNOWN),
    }
    status
}

/// Where a suspension holds back, for people; empty for nowhere.
pub fn extent(suspension: &Suspension) -> String {
    if is_everywhere(suspension) {
        return "all clusters".to_owned();
    }
    let names: BTreeSet<&str> = named(suspension).collect();
    some(names.into_iter(), NAMES)
}

/// The first of some names, and how many more there are.
pub(super) fn some<'a>(names: impl ExactSizeIterator<Item = &'a str>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown: Vec<&str> = names.take(most).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
