//! Which clusters fit. The first filter that a cluster fails gives the reason, the plainest filter first.

use std::borrow::Cow;

use lockgate_api::cluster::Taint;
use lockgate_api::placement::{ClusterAffinityTerm, Toleration};
use lockgate_api::{BindingSpec, Cluster, ClusterAffinity, Placement};

use super::{PlaceInput, RejectionReason};
use crate::Gates;
use crate::selector::CompiledAffinity;
use crate::selector::affinity::Field;

/// A cluster that fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit<'a> {
    /// The cluster.
    pub(super) cluster: &'a Cluster,
    /// 0 if it is of the group itself, and 1 or more if of what the group overflows to.
    pub(super) tier: usize,
    /// Whether the binding goes there already.
    pub(super) present: bool,
    /// Its place among all clusters.
    pub(super) index: usize,
    /// How many replicas of the binding it has.
    pub(super) previous: i64,
    /// For how many more it has room; 0 where nobody asks.
    pub(super) available: i64,
}

impl Fit<'_> {
    /// How many replicas of the binding it can have in all.
    pub(super) fn capacity(&self) -> i64 {
        self.available.saturating_add(self.previous)
    }
}

/// Why a cluster does not fit.
#[derive(Debug)]
pub(super) struct Refusal {
    /// For programs.
    pub(super) reason: RejectionReason,
    /// For the condition, where clusters are counted by it.
    pub(super) summary: Cow<'static, str>,
    /// For people.
    pub(super) message: String,
    /// What would help, for people.
    pub(super) help: &'static str,
}

/// A group of clusters to place in.
pub(super) struct Group<'a> {
    /// Its name, if the placement has groups.
    pub(super) name: Option<&'a str>,
    /// The group, and then what it overflows to; empty: every cluster.
    tiers: Vec<CompiledAffinity>,
}

impl<'a> Group<'a> {
    /// The one group of a placement without groups.
    pub(super) fn only(affinity: Option<&ClusterAffinity>) -> Self {
        Self {
            name: None,
            tiers: affinity.map(CompiledAffinity::new).into_iter().collect(),
        }
    }

    /// A group with what it overflows to.
    pub(super) fn of_term(term: &'a ClusterAffinityTerm) -> Self {
        let overflow = term.overflow_affinities.iter().map(|term| &term.affinity);
        let affinities = std::iter::once(&term.affinity).chain(overflow);
        Self {
            name: Some(&term.affinity_name),
            tiers: affinities.map(CompiledAffinity::new).collect(),
        }
    }

    /// Whether a cluster belongs to it, or to what it overflows to.
    pub(super) fn includes(&self, cluster: &Cluster) -> bool {
        self.tier(cluster).is_some()
    }

    /// The first tier that a cluster belongs to.
    fn tier(&self, cluster: &Cluster) -> Option<usize> {
        if self.tiers.is_empty() {
            return Some(0);
        }
        self.tiers.iter().position(|tier| tier.matches(cluster))
    }

    /// What of it does not include a cluster, and what would help.
    pub(super) fn lacks(&self, cluster: &Cluster) -> (String, &'static str) {
        let why = self.tiers.first().and_then(|tier| tier.why_not(cluster));
        why.unwrap_or_default()
    }

    /// Why it does not include a cluster, and what would help.
    fn why_not(&self, cluster: &Cluster) -> (String, &'static str) {
        let (why, help) = self.lacks(cluster);
        let why = match self.name {
            Some(name) => format!("the placement's group {name:?} does not include it: {why}"),
            None => format!("the placement's cluster affinity does not include it: {why}"),
        };
        (why, help)
    }
}

/// The clusters that a binding goes to already, with their replicas.
pub(super) struct Present<'a>(Vec<(&'a str, i64)>);

impl<'a> Present<'a> {
    pub(super) fn new(spec: &'a BindingSpec) -> Self {
        let targets = spec.clusters.iter();
        let mut names: Vec<(&str, i64)> = targets
            .map(|target| (target.name.as_str(), target.replicas.max(0)))
            .collect();
        names.sort_unstable();
        names.dedup_by_key(|(name, _)| *name);
        Self(names)
    }

    fn replicas(&self, name: &str) -> Option<i64> {
        let at = self.0.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        Some(self.0[at].1)
    }
}

/// Whether a cluster fits.
pub(super) fn check<'a>(
    input: &PlaceInput<'_>,
    placement: &Placement,
    group: &Group<'_>,
    present: &Present<'_>,
    (index, cluster): (usize, &'a Cluster),
) -> Result<Fit<'a>, Refusal> {
    let spec = input.spec;
    let refuse = |reason, summary, message, help| Refusal {
        reason,
        summary,
        message,
        help,
    };
    let name = &cluster.metadata.name;
    if cluster.metadata.deleting() {
        return Err(refuse(
            RejectionReason::Terminating,
            "cluster(s) is being removed".into(),
            "it is being removed from the fleet".to_owned(),
            "join it again",
        ));
    }
    let Some(tier) = group.tier(cluster) else {
        let (message, help) = group.why_not(cluster);
        return Err(refuse(
            RejectionReason::ClusterAffinity,
            "cluster(s) did not match the placement cluster affinity constraint".into(),
            message,
            help,
        ));
    };
    if spec
        .graceful_eviction_tasks
        .iter()
        .any(|task| task.from_cluster == *name)
    {
        return Err(refuse(
            RejectionReason::Eviction,
            "cluster(s) is in the process of eviction".into(),
            "it is being left: an eviction from it is under way".to_owned(),
            "wait until it is over, or take the task out of spec.gracefulEvictionTasks",
        ));
    }
    let previous = present.replicas(name);
    if previous.is_none() {
        if let Some((message, help)) = missing_api(spec, cluster) {
            let summary = "cluster(s) did not have the API resource".into();
            return Err(refuse(RejectionReason::MissingApi, summary, message, help));
        }
        if let Some(taint) = untolerated(&cluster.spec.taints, &placement.cluster_tolerations, input.gates) {
            let text = taint_text(taint);
            return Err(refuse(
                RejectionReason::Taint,
                format!("cluster(s) had untolerated taint {{{text}}}").into(),
                format!("it has the taint {text}, which the placement does not tolerate"),
                "remove the taint, or tolerate it in placement.clusterTolerations",
            ));
        }
        if let Some(refusal) = input.neighbours.and_then(|neighbours| neighbours.refuse(name)) {
            return Err(refusal);
        }
    }
    for constraint in &placement.spread_constraints {
        let Some(field) = Field::parse(&constraint.spread_by_field) else {
            continue;
        };
        if field.of(cluster).is_empty() {
            let (property, help) = match field {
                Field::Zone => ("zones", "set spec.zones of the Cluster"),
                Field::Region => ("region", "set spec.region of the Cluster"),
                Field::Provider => ("provider", "set spec.provider of the Cluster"),
            };
            return Err(refuse(
                RejectionReason::SpreadField,
                format!("cluster(s) did not have {property} property").into(),
                format!(
                    "the placement spreads by {}, and the cluster has none",
                    field.name()
                ),
                help,
            ));
        }
    }
    Ok(Fit {
        cluster,
        tier,
        present: previous.is_some(),
        index,
        previous: previous.unwrap_or(0),
        available: 0,
    })
}

/// Why a cluster cannot take the template's kind. What was not discovered counts as not served.
fn missing_api(spec: &BindingSpec, cluster: &Cluster) -> Option<(String, &'static str)> {
    let (api_version, kind) = (&spec.resource.api_version, &spec.resource.kind);
    let enablements = &cluster.status.api_enablements;
    let served = enablements
        .iter()
        .filter(|group| group.group_version == *api_version)
        .any(|group| group.resources.iter().any(|resource| resource.kind == *kind));
    if served {
        None
    } else if enablements.is_empty() {
        let why = "it has not yet said which kinds it serves".to_owned();
        Some((why, "wait until it is ready"))
    } else {
        let why = format!("it does not serve {kind} of {api_version}");
        Some((why, "install the kind there"))
    }
}

/// The first taint that keeps things off and is not tolerated. Where workloads leave because of taints, a toleration that
/// ends brings nothing new to a cluster that they would have to leave again.
fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration], gates: Gates) -> Option<&'a Taint> {
    let tolerated = |taint: &Taint| {
        let ends = |toleration: &Toleration| {
            gates.failover && taint.effect == "NoExecute" && toleration.toleration_seconds.is_some()
        };
        tolerations
            .iter()
            .any(|toleration| tolerates(toleration, taint) && !ends(toleration))
    };
    taints
        .iter()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .find(|taint| !tolerated(taint))
}

/// An empty key or effect of a toleration stands for all.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let fits = |wanted: &str, present: &str| wanted.is_empty() || wanted == present;
    fits(&toleration.effect, &taint.effect)
        && fits(&toleration.key, &taint.key)
        && match toleration.operator.as_str() {
            "" | "Equal" => toleration.value == taint.value,
            "Exists" => true,
            _ => false,
        }
}

/// A taint as kubectl writes it.
pub(crate) fn taint_text(taint: &Taint) -> String {
    let Taint {
        key, value, effect, ..
    } = taint;
    if value.is_empty() {
        format!("{key}:{effect}")
    } else {
        format!("{key}={value}:{effect}")
    }
}
