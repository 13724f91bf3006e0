//! Which clusters fit. The first filter that a cluster fails gives the reason, the plainest filter first.

use std::borrow::Cow;

use lockgate_api::cluster::Taint;
use lockgate_api::placement::{ClusterAffinityTerm, Toleration};
use lockgate_api::{BindingSpec, Cluster, ClusterAffinity, Placement};

use super::RejectionReason;
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

    /// The first tier that a cluster belongs to.
    fn tier(&self, cluster: &Cluster) -> Option<usize> {
        if self.tiers.is_empty() {
            return Some(0);
        }
        self.tiers.iter().position(|tier| tier.matches(cluster))
    }

    fn why_not(&self, cluster: &Cluster) -> String {
        let why = self.tiers.first().and_then(|tier| tier.why_not(cluster));
        let why = why.unwrap_or_default();
        match self.name {
            Some(name) => format!("the placement's group {name:?} does not include it: {why}"),
            None => format!("the placement's cluster affinity does not include it: {why}"),
        }
    }
}

/// The clusters that a binding goes to already.
pub(super) struct Present<'a>(Vec<&'a str>);

impl<'a> Present<'a> {
    pub(super) fn new(spec: &'a BindingSpec) -> Self {
        let mut names: Vec<&str> = spec.clusters.iter().map(|target| target.name.as_str()).collect();
        names.sort_unstable();
        Self(names)
    }

    fn contains(&self, name: &str) -> bool {
        self.0.binary_search(&name).is_ok()
    }
}

/// Whether a cluster fits.
pub(super) fn check<'a>(
    spec: &BindingSpec,
    placement: &Placement,
    group: &Group<'_>,
    present: &Present<'_>,
    cluster: &'a Cluster,
) -> Result<Fit<'a>, Refusal> {
    let refuse = |reason, summary, message| Refusal {
        reason,
        summary,
        message,
    };
    let name = &cluster.metadata.name;
    if cluster.metadata.deleting() {
        return Err(refuse(
            RejectionReason::Terminating,
            "cluster(s) is being removed".into(),
            "it is being removed from the fleet".to_owned(),
        ));
    }
    let Some(tier) = group.tier(cluster) else {
        return Err(refuse(
            RejectionReason::ClusterAffinity,
            "cluster(s) did not match the placement cluster affinity constraint".into(),
            group.why_not(cluster),
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
        ));
    }
    let present = present.contains(name);
    if !present {
        if let Some(message) = missing_api(spec, cluster) {
            let summary = "cluster(s) did not have the API resource".into();
            return Err(refuse(RejectionReason::MissingApi, summary, message));
        }
        if let Some(taint) = untolerated(&cluster.spec.taints, &placement.cluster_tolerations) {
            let text = taint_text(taint);
            return Err(refuse(
                RejectionReason::Taint,
                format!("cluster(s) had untolerated taint {{{text}}}").into(),
                format!("it has the taint {text}, which the placement does not tolerate"),
            ));
        }
    }
    for constraint in &placement.spread_constraints {
        let Some(field) = Field::parse(&constraint.spread_by_field) else {
            continue;
        };
        if field.of(cluster).is_empty() {
            let property = if field == Field::Zone {
                "zones"
            } else {
                field.name()
            };
            return Err(refuse(
                RejectionReason::SpreadField,
                format!("cluster(s) did not have {property} property").into(),
                format!(
                    "the placement spreads by {}, and the cluster has none",
                    field.name()
                ),
            ));
        }
    }
    Ok(Fit {
        cluster,
        tier,
        present,
    })
}

/// Why a cluster cannot take the template's kind. What was not discovered counts as not served.
fn missing_api(spec: &BindingSpec, cluster: &Cluster) -> Option<String> {
    let (api_version, kind) = (&spec.resource.api_version, &spec.resource.kind);
    let enablements = &cluster.status.api_enablements;
    let served = enablements
        .iter()
        .filter(|group| group.group_version == *api_version)
        .any(|group| group.resources.iter().any(|resource| resource.kind == *kind));
    if served {
        None
    } else if enablements.is_empty() {
        Some("it has not yet said which kinds it serves".to_owned())
    } else {
        Some(format!("it does not serve {kind} of {api_version}"))
    }
}

/// The first taint that keeps things off and is not tolerated.
fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// An empty key or effect of a toleration stands for all.
fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
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
fn taint_text(taint: &Taint) -> String {
    let Taint {
        key, value, effect, ..
    } = taint;
    if value.is_empty() {
        format!("{key}:{effect}")
    } else {
        format!("{key}={value}:{effect}")
    }
}
