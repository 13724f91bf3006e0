//! How policies, claims and templates are called, in texts and in commands.

use lockgate_api::{Binding, PropagationPolicy};
use lockgate_engine::TemplateId;
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

/// A template as commands name it: `deployment/web -n shop`. A kind alone means that of Kubernetes or of the control plane;
/// any other may have the same name, as the Services of Knative have, and is named with its group.
pub(crate) fn asked(id: &TemplateId) -> String {
    const KNOWN: [&str; 3] = [".k8s.io", ".karmada.io", ".open-cluster-management.io"];
    let (kind, group) = (id.kind.to_lowercase(), id.group());
    let is_known = !group.contains('.') || KNOWN.iter().any(|suffix| group.ends_with(suffix));
    let group = if is_known {
        String::new()
    } else {
        format!(".{group}")
    };
    let scope = match id.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    format!("{kind}{group}/{}{scope}", id.name)
}

/// The template of a binding.
pub(crate) fn template_of(binding: &Binding) -> TemplateId {
    let resource = &binding.spec.resource;
    TemplateId {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        namespace: resource.namespace.clone(),
        name: resource.name.clone(),
    }
}
