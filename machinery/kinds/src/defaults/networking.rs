//! Network policies, ingress classes and endpoint slices.

use serde_json::json;

use crate::access::{Object, each, is_empty, make, set, with};

/// An Ingress.
pub(super) fn ingress(object: &mut Object) {
    make(object, "spec", |_| {});
    make(object, "status", |status| make(status, "loadBalancer", |_| {}));
}

/// A NetworkPolicy: it is about ingress, and about egress if it has such rules.
pub(super) fn network_policy(object: &mut Object) {
    make(object, "spec", |spec| {
        set(spec, "podSelector", json!({}));
        for key in ["ingress", "egress"] {
            each(spec, key, |rule| {
                each(rule, "ports", |port| set(port, "protocol", "TCP"))
            });
        }
        if spec.get("policyTypes").is_none_or(is_empty) {
            let egress = spec.get("egress").is_some_and(|rules| !is_empty(rules));
            let types = if egress {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            };
            spec.insert("policyTypes".to_owned(), types);
        }
    });
}

/// An IngressClass.
pub(super) fn ingress_class(object: &mut Object) {
    with(object, "spec", |spec| {
        with(spec, "parameters", |parameters| {
            set(parameters, "scope", "Cluster")
        })
    });
}

/// An EndpointSlice.
pub(super) fn endpoint_slice(object: &mut Object) {
    each(object, "ports", |port| {
        set(port, "name", "");
        set(port, "protocol", "TCP");
    });
    each(object, "endpoints", |endpoint| {
        set(endpoint, "conditions", json!({}))
    });
}
