//! What is installed on a hub: definitions of our kinds, admission rules, roles and namespaces.
//!
//! Shapes, defaults and rules within one object are in the definitions; what depends on namespace, labels or deletion is an
//! admission policy. Both are data: the hub calls nobody before it accepts a write, so it does not stop when we stop.
//! Everything that is refused is refused with a message that names the field.
//!
//! What a schema cannot fill in is derived where it is read: a selector's empty namespace is the policy's own, an empty
//! `replicaDivisionPreference` is `Weighted`, a spread constraint without a field is one by cluster, a graceful purge takes
//! 600 seconds at most, `zone` stands for `zones`, and a policy's id is its label, else its uid.

mod access;
mod admission;
mod bindings;
mod clusters;
mod crd;
mod failover;
mod interpreters;
mod ocm;
mod overrides;
mod placement;
mod placing;
mod policies;
mod rollouts;
mod schema;
mod shared;
mod strategy;
mod suspension;
mod works;

use std::fmt::Write as _;

use serde_json::Value;

pub use interpreters::WEBHOOKS_REFUSED;

/// The CustomResourceDefinitions. Those of what people write are protected from deletion: everything of their kinds would go
/// with them, and nobody could tell that from the wish of those who wrote it. Bindings and Works are made again.
pub fn crds() -> Vec<Value> {
    let mut all = unprotected_crds();
    for crd in &mut all {
        if crd["spec"]["group"] != bindings::GROUP {
            crd["metadata"]["labels"][crate::keys::DELETION_PROTECTED] = "Always".into();
        }
    }
    all
}

fn unprotected_crds() -> Vec<Value> {
    let mut all = Vec::from(policies::crds());
    all.extend(overrides::crds());
    all.extend(rollouts::crds());
    all.push(interpreters::crd());
    all.push(interpreters::webhook_crd());
    all.extend(bindings::crds());
    all.push(works::crd());
    all.push(clusters::crd());
    all.extend(placing::crds());
    all.extend(ocm::crds());
    all
}

/// The CustomResourceDefinitions that a member gets with its first policy: Policy and ConfigurationPolicy.
pub fn policy_crds() -> [Value; 2] {
    ocm::policy_crds()
}

/// Everything, in an order in which it can be applied: namespaces, definitions, roles, admission policies.
pub fn definitions() -> Vec<Value> {
    let mut all = Vec::from(access::namespaces());
    all.extend(crds());
    all.extend(access::roles());
    all.extend(admission::policies());
    all
}

/// Everything as one stream of YAML documents, for `kubectl apply --server-side -f -`.
pub fn to_yaml_stream() -> String {
    let mut text = String::new();
    for definition in definitions() {
        // Writing to a String cannot fail.
        let _ = write!(text, "---\n{}", machinery_value::encode::to_yaml(&definition));
    }
    text
}
