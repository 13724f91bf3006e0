//! What a report is made from: the hub's objects, reduced to what is asked of them.

use jiff::{SignedDuration, Timestamp};
use lockgate_api::binding::AggregatedStatusItem;
use lockgate_api::{Binding, Cluster, Condition, PropagationPolicy, RolloutPolicy, Work, keys, names};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{Claim, ClaimKind};
use lockgate_engine::observe::{NOT_YET, OBSERVED, UNDISPUTED};
use serde_json::Value;

use crate::status::judge;

/// The hub's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    /// Policies of both kinds.
    pub(crate) policies: Vec<PropagationPolicy>,
    /// Rollout policies of both kinds.
    pub(crate) rollouts: Vec<RolloutPolicy>,
    /// The overrides of both kinds, by namespace and name; read where a policy waits for some.
    pub(crate) overrides: std::collections::BTreeSet<(String, String)>,
    /// Bindings of both kinds.
    pub(crate) bindings: Vec<Binding>,
    /// For a report about one template or cluster: its Works.
    pub(crate) works: Vec<WorkView>,
    /// For a report about the whole hub: how many Works each cluster has, by name of cluster.
    pub(crate) counts: std::collections::BTreeMap<String, WorkCount>,
    /// For a report about the whole hub: who holds Works back, by cluster and name.
    pub(crate) held: std::collections::BTreeMap<(String, String), String>,
    /// For a report about the whole hub: why members refused Works, by cluster and name.
    pub(crate) refused: std::collections::BTreeMap<(String, String), String>,
    /// The members.
    pub(crate) clusters: Vec<Cluster>,
    /// The controllers' lease, if there is one, and the time at which all this was read.
    pub(crate) lease: Option<(Value, Timestamp)>,
    /// The namespace that the reader may see, if not all.
    pub(crate) only_in: Option<String>,
    /// What of all that the reader may not see at all, by its plural.
    pub(crate) unseen: Vec<&'static str>,
}

impl Objects {
    pub(crate) fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.metadata.name == name)
    }

    /// Whether the reader may not see objects of a kind.
    pub(crate) fn hides(&self, plural: &str) -> bool {
        self.unseen.contains(&plural)
    }

    /// What is left out, if something is.
    pub(crate) fn left_out(&self) -> Option<String> {
        let elsewhere = self.only_in.as_ref();
        let elsewhere = elsewhere.map(|namespace| format!("all but the namespace {namespace}"));
        let unseen: Vec<&str> = elsewhere
            .iter()
            .map(String::as_str)
            .chain(self.unseen.iter().copied())
            .collect();
        (!unseen.is_empty()).then(|| format!("left out, because you may not list it: {}", unseen.join(", ")))
    }

    /// What is wrong with a cluster, if something is.
    pub(crate) fn trouble(&self, cluster: &str) -> Option<String> {
        match self.cluster(cluster) {
            // Nobody can tell, and how the template does there is in its binding.
            None if self.hides("clusters") => None,
            cluster => judge::trouble(cluster),
        }
    }

    /// Whether a policy that claims something is not there any more, as far as the reader can tell.
    pub(crate) fn is_gone(&self, claim: &Claim) -> bool {
        let hidden = claim.kind == ClaimKind::Cluster && self.hides("clusterpropagationpolicies");
        !hidden && self.policy(&claim.id).is_none()
    }

    /// What the lease says, if it says that nobody runs the controllers.
    pub(crate) fn silence(&self) -> Option<String> {
        let (lease, now) = self.lease.as_ref()?;
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        if holder.is_empty() {
            return Some("nobody runs the controllers: their lease is free".into());
        }
        let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
        let duration = spec["leaseDurationSeconds"].as_i64().unwrap_or(15);
        let silent = now.duration_since(renewed);
        // Clocks differ a little, so that one missed renewal says nothing.
        (silent > SignedDuration::from_secs(duration.saturating_mul(2))).then(|| {
            format!(
                "nobody runs the controllers: {holder} renewed their lease {} s ago, and not since",
                silent.as_secs()
            )
        })
    }

    /// Remembers a Work that is held back, or refused.
    pub(crate) fn note(&mut self, work: WorkView) {
        let refused = work.refused().map(str::to_owned);
        let key = (work.cluster, work.name);
        if work.suspended {
            self.held.insert(key, work.suspended_by);
        } else if let Some(why) = refused.filter(|_| !work.deleting) {
            self.refused.insert(key, why);
        }
    }

    /// What a policy waits for before it activates anything: overrides that are not there.
    pub(crate) fn awaits(&self, policy: &PropagationPolicy) -> Option<String> {
        let names = &policy.spec.dependent_overrides;
        let plural = if policy.is_cluster_scoped() {
            "clusteroverridepolicies"
        } else {
            "overridepolicies"
        };
        if self.hides(plural) {
            // Nobody can tell, and whoever may not look can ask.
            return (!names.is_empty())
                .then(|| format!("it may wait for the overrides {}", names.join(", ")));
        }
        let namespace = &policy.metadata.namespace;
        let is_there = |name: &String| self.overrides.contains(&(namespace.clone(), name.clone()));
        let missing: Vec<&str> = names
            .iter()
            .filter(|name| !is_there(name))
            .map(String::as_str)
            .collect();
        // Of other namespaces than the one that may be read nobody can tell either.
        let is_unread = |only: &String| !namespace.is_empty() && only != namespace;
        let waits = match self.only_in.as_ref().is_some_and(is_unread) {
            true => "may wait",
            false => "waits",
        };
        (!missing.is_empty()).then(|| format!("it {waits} for the overrides {}", missing.join(", ")))
    }

    /// The policy with this permanent id.
    pub(crate) fn policy(&self, id: &str) -> Option<&PropagationPolicy> {
        self.policies
            .iter()
            .find(|policy| !id.is_empty() && policy.permanent_id() == id)
    }
}

/// How many Works a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkCount {
    pub(crate) works: usize,
    pub(crate) failing: usize,
}

impl WorkCount {
    pub(crate) fn add(&mut self, work: &WorkView) {
        self.works += 1;
        self.failing += usize::from(work.refused().is_some());
    }
}

/// A Work without its manifest, which may be large.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkView {
    pub(crate) cluster: String,
    pub(crate) name: String,
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) suspended: bool,
    /// Who holds it back beside the policy that places it, and why.
    pub(crate) suspended_by: String,
    /// What the manifest is. Names of Works carry no group and not every character of a name, so that two objects may share one.
    pub(crate) object: TemplateId,
    /// The replicas that the member is told, for what has some.
    pub(crate) replicas: Option<i64>,
    pub(crate) applied: Option<Condition>,
    pub(crate) health: String,
    /// Why nobody can tell how it does; empty if somebody can.
    pub(crate) unobserved: String,
    /// Who changes it whenever it is corrected; empty if nobody does.
    pub(crate) disputed: String,
    pub(crate) status: Option<Value>,
}

impl WorkView {
    /// None for a Work that is in no execution namespace.
    pub(crate) fn of(work: Work) -> Option<Self> {
        let cluster = names::cluster_of(&work.metadata.namespace)?.to_owned();
        let manifest = work.spec.workload.manifests.first().unwrap_or(&Value::Null);
        let suspended = work.is_suspended();
        let seen = work
            .status
            .manifest_statuses
            .into_iter()
            .next()
            .unwrap_or_default();
        Some(Self {
            cluster,
            object: TemplateId::of(manifest),
            replicas: wanted(manifest),
            generation: work.metadata.generation,
            deleting: work.metadata.deleting(),
            suspended,
            suspended_by: work
                .metadata
                .annotation(keys::SUSPENDED_BY)
                .unwrap_or_default()
                .to_owned(),
            applied: Condition::find(&work.status.conditions, "Applied").cloned(),
            health: seen.health,
            unobserved: Condition::find(&work.status.conditions, OBSERVED)
                .map_or_else(String::new, |condition| condition.message.clone()),
            disputed: Condition::find(&work.status.conditions, UNDISPUTED)
                .map_or_else(String::new, |condition| condition.message.clone()),
            status: seen.status,
            name: work.metadata.name,
        })
    }

    /// Whether it carries that object.
    pub(crate) fn carries(&self, id: &TemplateId) -> bool {
        is_same(&self.object, id)
    }

    /// Why the member did not take it, if it did not.
    pub(crate) fn refused(&self) -> Option<&str> {
        let applied = self
            .applied
            .as_ref()
            .filter(|applied| applied.status == "False")?;
        (!self.suspended).then_some(applied.message.as_str())
    }

    /// Whether the newest content is with the member.
    pub(crate) fn current(&self) -> bool {
        let observed = |applied: &Condition| applied.observed_generation.is_none_or(|g| g >= self.generation);
        self.applied.as_ref().is_some_and(observed)
    }
}

/// What is known of a template in one cluster, from its Work or from the binding's summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) applied: Option<bool>,
    pub(crate) message: &'a str,
    pub(crate) current: bool,
    /// Who changes it whenever it is corrected; empty if nobody does.
    pub(crate) disputed: &'a str,
    pub(crate) suspended: bool,
    pub(crate) suspended_by: &'a str,
    pub(crate) deleting: bool,
    pub(crate) health: &'a str,
    pub(crate) status: Option<&'a Value>,
}

impl<'a> Known<'a> {
    pub(crate) fn from_work(work: &'a WorkView) -> Self {
        Self {
            applied: work.applied.as_ref().map(Condition::is_true),
            message: work.applied.as_ref().map_or("", |applied| &applied.message),
            current: work.current(),
            disputed: &work.disputed,
            suspended: work.suspended,
            suspended_by: &work.suspended_by,
            deleting: work.deleting,
            health: &work.health,
            status: work.status.as_ref(),
        }
    }

    pub(crate) fn from_summary(item: &'a AggregatedStatusItem, held: Option<&'a str>) -> Self {
        // What is on its way was applied in an older version.
        let is_older = !item.applied && item.applied_message == NOT_YET;
        let refused = !item.applied && !item.applied_message.is_empty() && !is_older;
        let applied = item.applied || is_older;
        Self {
            applied: (applied || refused).then_some(applied),
            message: &item.applied_message,
            current: !is_older,
            disputed: if item.applied { &item.applied_message } else { "" },
            suspended: held.is_some(),
            suspended_by: held.unwrap_or_default(),
            deleting: false,
            health: &item.health,
            status: item.status.as_ref(),
        }
    }
}

/// Whether two ids are of one object. Versions of a group are the same objects.
pub(crate) fn is_same(one: &TemplateId, other: &TemplateId) -> bool {
    one.group() == other.group()
        && one.kind == other.kind
        && one.namespace == other.namespace
        && one.name == other.name
}

/// How many replicas a manifest wants, for what has some.
fn wanted(manifest: &Value) -> Option<i64> {
    let spec = &manifest["spec"];
    match manifest["kind"].as_str()? {
        "Job" => spec["completions"]
            .as_i64()
            .or_else(|| spec["parallelism"].as_i64()),
        _ => spec["replicas"].as_i64(),
    }
}

/// How many of a template's replicas are ready, by the status that its member reports.
pub(crate) fn ready(kind: &str, status: &Value) -> i64 {
    let field = match kind {
        "DaemonSet" => "numberReady",
        "Job" => "succeeded",
        _ => "readyReplicas",
    };
    status[field].as_i64().unwrap_or(0)
}
