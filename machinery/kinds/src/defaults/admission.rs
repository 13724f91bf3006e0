//! Webhooks and admission policies.

use super::service;
use crate::access::{Object, each, empty, make, set, set_text, with};

/// A ValidatingWebhookConfiguration.
pub(super) fn validating_webhooks(object: &mut Object) {
    each(object, "webhooks", webhook);
}

/// A MutatingWebhookConfiguration.
pub(super) fn mutating_webhooks(object: &mut Object) {
    each(object, "webhooks", |hook| {
        webhook(hook);
        set(hook, "reinvocationPolicy", "Never");
    });
}

fn webhook(hook: &mut Object) {
    set(hook, "failurePolicy", "Fail");
    matching(hook);
    set(hook, "timeoutSeconds", 10);
    with(hook, "clientConfig", |client| {
        service::reference(client, "service")
    });
    each(hook, "rules", |rule| set(rule, "scope", "*"));
}

fn matching(owner: &mut Object) {
    set(owner, "matchPolicy", "Equivalent");
    set(owner, "namespaceSelector", empty());
    set(owner, "objectSelector", empty());
}

fn match_resources(resources: &mut Object) {
    matching(resources);
    for key in ["resourceRules", "excludeResourceRules"] {
        each(resources, key, |rule| set(rule, "scope", "*"));
    }
}

/// A ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
pub(super) fn policy(object: &mut Object) {
    make(object, "spec", |spec| {
        set_text(spec, "failurePolicy", "Fail");
        with(spec, "matchConstraints", match_resources);
    });
    make(object, "status", |_| {});
}

/// The binding of an admission policy.
pub(super) fn policy_binding(object: &mut Object) {
    with(object, "spec", |spec| {
        with(spec, "matchResources", match_resources)
    });
}
