//! Services and Ingresses: the addresses of all load balancers. One that has no name gets its cluster's.

use serde_json::{Value, json};

use super::{MemberReport, set};

/// The union of the members' addresses.
pub(super) fn union(members: &[MemberReport<'_>], status: &mut Value) {
    let mut all: Vec<Value> = Vec::new();
    for member in members {
        let addresses = member
            .status
            .and_then(|status| status["loadBalancer"]["ingress"].as_array());
        for address in addresses.into_iter().flatten().filter(|one| one.is_object()) {
            let mut address = address.clone();
            if address["hostname"].as_str().is_none_or(str::is_empty) {
                address["hostname"] = json!(member.cluster);
            }
            if !all.contains(&address) {
                all.push(address);
            }
        }
    }
    let ingress = (!all.is_empty()).then_some(Value::Array(all));
    let mut balancer = status["loadBalancer"].clone();
    if !balancer.is_object() {
        balancer = json!({});
    }
    set(&mut balancer, "ingress", ingress);
    set(status, "loadBalancer", Some(balancer));
}
