//! Which form the name of an object must have, by kind.

use machinery_value::names::mask_trailing_dash;
use serde_json::Value;

use super::rules;
use crate::Gvk;
use crate::access::text;

/// The forms of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Subdomain,
    Label,
    Label1035,
    PathSegment,
    ConfigKey,
    Definition,
}

fn form(gvk: Gvk<'_>) -> Form {
    match (gvk.group, gvk.kind) {
        ("", "Namespace") | ("apps", "StatefulSet") => Form::Label,
        ("", "Service") => Form::Label1035,
        // Events of the core group, disruption budgets and requests for certificates are not checked by their kind, only
        // as parts of a path.
        ("rbac.authorization.k8s.io", _)
        | ("", "Event")
        | ("policy", "PodDisruptionBudget")
        | ("certificates.k8s.io", "CertificateSigningRequest") => Form::PathSegment,
        ("coordination.k8s.io", "LeaseCandidate") => Form::ConfigKey,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Form::Definition,
        _ => Form::Subdomain,
    }
}

/// What is wrong with `name` (or with `generateName`, if `prefix`) of an object of this kind.
pub(super) fn check(gvk: Gvk<'_>, object: &Value, name: &str, prefix: bool) -> Vec<String> {
    let form = form(gvk);
    // A prefix may end with a dash, since more characters follow.
    let masked = if prefix {
        mask_trailing_dash(name)
    } else {
        name.to_owned()
    };
    match form {
        Form::Subdomain => rules::dns_subdomain(&masked),
        Form::Label => rules::dns_label(&masked),
        Form::Label1035 => rules::dns_1035_label(&masked),
        Form::PathSegment => rules::path_segment(name, prefix),
        Form::ConfigKey => rules::config_key(name),
        Form::Definition => {
            let mut messages = rules::dns_subdomain(&masked);
            let spec = &object["spec"];
            if name != format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"])) {
                messages.push("must be spec.names.plural+\".\"+spec.group".to_owned());
            }
            messages
        }
    }
}
