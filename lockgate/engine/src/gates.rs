//! Feature gates: behaviour that somebody switches on or off for the whole control plane.

/// The gates that decisions look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Workloads leave clusters and applications that fail.
    pub failover: bool,
    /// A placement that fits no cluster removes what is there, instead of keeping it.
    pub no_cluster_fit_removes: bool,
    /// Policies with `preemption: Always` take templates from policies of lower priority.
    pub preemption: bool,
    /// Policies never move a template that is managed already.
    pub static_policy: bool,
}
