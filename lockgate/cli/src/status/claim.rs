//! How policies and claims are called.

use lockgate_api::PropagationPolicy;
use lockgate_engine::claim::{Claim, ClaimKind};

/// `PropagationPolicy shop/web` or `ClusterPropagationPolicy web`.
pub(crate) fn policy_name(policy: &PropagationPolicy) -> String {
    claim_name(&Claim::by(policy))
}

/// The policy behind a claim, which may be gone.
pub(crate) fn claim_name(claim: &Claim) -> String {
    match claim.kind {
        ClaimKind::Namespaced => format!("PropagationPolicy {}/{}", claim.namespace, claim.name),
        ClaimKind::Cluster => format!("ClusterPropagationPolicy {}", claim.name),
    }
}
