//! What a report says. It serialises as it is: `-o json` and `-o yaml` print these fields.

use serde::Serialize;

/// How something is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum State {
    /// A member refused it.
    Failing,
    /// No cluster fits.
    NotPlaced,
    /// A member says that it is not well.
    Unhealthy,
    /// Nothing is known of it, or not any more.
    Unknown,
    /// No policy claims it: what is there stays as it is.
    Frozen,
    /// It is not propagated at all.
    NotPropagated,
    /// Something must happen first.
    Waiting,
    /// It is there, and not all of its replicas are ready.
    NotReady,
    /// Somebody holds it back.
    Suspended,
    /// It goes away.
    Leaving,
    /// All is well.
    Healthy,
}

/// What is known about what somebody asked for.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind")]
pub(crate) enum Report {
    /// About the whole hub.
    #[serde(rename = "FleetStatus")]
    Fleet(FleetReport),
    /// About one policy.
    #[serde(rename = "PolicyStatus")]
    Policy(PolicyReport),
    /// About one cluster.
    #[serde(rename = "ClusterStatus")]
    Cluster(ClusterReport),
    /// About one template.
    #[serde(rename = "TemplateStatus")]
    Template(TemplateReport),
}

/// The whole hub, what is not well first.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetReport {
    /// How many templates have a binding.
    pub(crate) templates: usize,
    /// The templates that are not well.
    pub(crate) not_well: Vec<TemplateLine>,
    /// Every policy.
    pub(crate) policies: Vec<PolicyLine>,
    /// Every cluster.
    pub(crate) clusters: Vec<ClusterLine>,
    /// What is odd.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// The next useful command.
    pub(crate) next: String,
}

/// One policy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyReport {
    pub(crate) policy: PolicyLine,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<ConditionLine>,
    /// The templates that were propagated by it.
    pub(crate) templates: Vec<TemplateLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    pub(crate) next: String,
}

/// One cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterReport {
    pub(crate) cluster: ClusterLine,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<ConditionLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) taints: Vec<String>,
    /// The templates that it does not have as they should be.
    pub(crate) not_well: Vec<TemplateLine>,
    pub(crate) next: String,
}

/// One template.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateReport {
    /// `Deployment shop/web`.
    pub(crate) template: String,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<PolicyRef>,
    /// `ResourceBinding shop/web-deployment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) binding: Option<String>,
    /// The rollout policies that hold it back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) held: Vec<HeldLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<ConditionLine>,
    /// What must be known beside that: why it is not propagated, what waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// Where it is, or should be.
    pub(crate) clusters: Vec<PlaceLine>,
    /// Where it is not, and why; only when it could not be placed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) next: String,
}

/// The policy of a template.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyRef {
    /// `PropagationPolicy shop/web`.
    pub(crate) name: String,
    /// None if it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) generation: Option<i64>,
    pub(crate) lazy: bool,
}

/// A rollout policy that holds a template back.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldLine {
    /// `RolloutPolicy shop/web-deployment`.
    pub(crate) policy: String,
    /// `all clusters`, or names.
    pub(crate) clusters: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

/// A condition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionLine {
    pub(crate) condition: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// A template in one cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlaceLine {
    pub(crate) cluster: String,
    /// The replicas that it should have there, for what has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<i64>,
    /// How many of them are ready, if the member says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<i64>,
    /// Whether the member has the newest content; none if nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) applied: Option<bool>,
    /// What the member says of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) health: String,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// The Work, as namespace and name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) work: String,
}

/// A cluster that a template did not get.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rejected {
    pub(crate) cluster: String,
    pub(crate) reason: String,
    /// What would help.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) help: String,
}

/// A template among others.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateLine {
    pub(crate) template: String,
    pub(crate) state: State,
    /// The clusters that it should be in.
    pub(crate) clusters: usize,
    /// How many of them have it.
    pub(crate) applied: usize,
    /// The clusters where its state is that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) at: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// What to ask for more.
    #[serde(skip)]
    pub(crate) ask: String,
}

/// A policy among others.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyLine {
    /// `PropagationPolicy shop/web`.
    pub(crate) policy: String,
    pub(crate) generation: i64,
    pub(crate) priority: i32,
    pub(crate) lazy: bool,
    pub(crate) suspended: bool,
    /// The templates that it owns.
    pub(crate) claimed: usize,
    /// How many of them are wherever they should be.
    pub(crate) applied: usize,
    /// How many wait for their own change before they follow its newest version.
    pub(crate) pending: usize,
    /// How many are not well.
    pub(crate) not_well: usize,
    pub(crate) state: State,
    /// What of the policy itself has no effect, and why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip)]
    pub(crate) ask: String,
}

/// A cluster among others.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterLine {
    pub(crate) cluster: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) ready: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    pub(crate) mode: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) region: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) endpoint: String,
    pub(crate) works: usize,
    pub(crate) failing: usize,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

impl ClusterLine {
    pub(crate) fn well(&self) -> bool {
        self.ready == "True" && self.failing == 0
    }
}
