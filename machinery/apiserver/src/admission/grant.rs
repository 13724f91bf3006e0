//! Roles and bindings: nobody grants what they do not hold themselves.

use machinery_auth::rbac::{PolicyRule, check_escalation};
use machinery_auth::{Attributes, UserInfo};
use machinery_value::Value;
use serde_json::json;

use crate::admission::Asked;
use crate::meta;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Refuses a role with rules that `user` does not hold, and a binding to such a role. Whoever may `escalate` the one
/// or `bind` the other is let through.
pub(crate) fn check(
    server: &Inner,
    asked: &Asked<'_>,
    new: &Value,
    old: Option<&Value>,
    user: &UserInfo,
) -> Result<(), ApiError> {
    let resource = asked.resource;
    if resource.group != GROUP || old.is_some_and(|old| same_but_for_owners(new, old)) {
        return Ok(());
    }
    let (name, namespace) = (meta::name(new), meta::namespace(new));
    let index = server.indexes.rbac.read();
    let may = |verb, resource, name| {
        let attributes = Attributes::resource(user, verb, GROUP, resource);
        index
            .authorize(&Attributes {
                namespace,
                name,
                ..attributes
            })
            .allowed
    };
    let refuse = |why: String| ApiError::forbidden(resource.subject(), name, why);
    if resource.kind.ends_with("Role") {
        // A leave for one name is for requests that name it: a POST names nothing.
        if may("escalate", &resource.plural, asked.path_name) {
            return Ok(());
        }
        check_escalation(&index, user, namespace, &PolicyRule::list_from_role(new)).map_err(refuse)?;
        let gathers = |role: &Value| {
            role["aggregationRule"]["clusterRoleSelectors"]
                .as_array()
                .is_some_and(|s| !s.is_empty())
        };
        if gathers(new) || old.is_some_and(gathers) {
            check_escalation(&index, user, "", &everything()).map_err(|_| {
                refuse("must have cluster-admin privileges to use the aggregationRule".into())
            })?;
        }
        return Ok(());
    }
    let role = new["roleRef"]["name"].as_str().unwrap_or("");
    let (plural, home) = if new["roleRef"]["kind"] == "Role" {
        ("roles", namespace)
    } else {
        ("clusterroles", "")
    };
    if may("bind", plural, role) {
        return Ok(());
    }
    let rules = index.role(home, role).ok_or_else(|| {
        ApiError::not_found(
            Subject {
                group: GROUP,
                name: plural,
            },
            role,
        )
    })?;
    check_escalation(&index, user, namespace, rules).map_err(refuse)
}

/// The rules of whoever may do everything.
fn everything() -> Vec<PolicyRule> {
    let rules = json!({"rules": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]});
    PolicyRule::list_from_role(&rules)
}

/// Whether a change is about nothing but owners and finalizers, which garbage collection sets.
fn same_but_for_owners(new: &Value, old: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        let meta = meta::meta_mut(&mut object);
        for field in [
            "ownerReferences",
            "finalizers",
            "managedFields",
            "resourceVersion",
        ] {
            meta.remove(field);
        }
        object
    };
    bare(new) == bare(old)
}
