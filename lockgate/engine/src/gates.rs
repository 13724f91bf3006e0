//! Feature gates: behaviour that somebody switches on or off for the whole control plane.

/// The gates that decisions look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Workloads leave clusters and applications that fail.
    pub failover: bool,
    /// Templates of several parts are placed where there is room for all of their parts.
    pub multiple_pod_templates: bool,
    /// A placement that fits no cluster removes what is there, instead of keeping it.
    pub no_cluster_fit_removes: bool,
    /// Policies with `preemption: Always` take templates from policies of lower priority.
    pub preemption: bool,
    /// What templates refer to follows them, if their policy says so. Off, nothing new follows, and what follows still does.
    pub propagate_deps: bool,
    /// Policies never move a template that is managed already.
    pub static_policy: bool,
    /// A workload that fails over takes along the state that its policy names.
    pub stateful_failover: bool,
    /// Workloads go together, and apart, as `workloadAffinity` says.
    pub workload_affinity: bool,
}

impl Default for Gates {
    /// As released control planes have them: dependencies follow, and everything else is off.
    fn default() -> Self {
        Self {
            failover: false,
            multiple_pod_templates: false,
            no_cluster_fit_removes: false,
            preemption: false,
            propagate_deps: true,
            static_policy: false,
            stateful_failover: false,
            workload_affinity: false,
        }
    }
}
