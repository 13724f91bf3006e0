//! The roles and bindings that every server starts with.
//!
//! They are those of a Kubernetes 1.35 server, kept as a file of this crate. Nothing of it stays in memory but
//! what the caller keeps; [`bootstrap_index`] keeps one index, for all servers of the process together.

use std::sync::{Arc, OnceLock};

use machinery_value::Value;

use crate::rbac::{RbacIndex, aggregate};

const DATA: &str = include_str!("../data/bootstrap-rbac.json");

/// Aggregated roles may consist of aggregated roles; this deep they are followed.
const MAX_AGGREGATION_DEPTH: usize = 8;

/// The ClusterRoles, ClusterRoleBindings, Roles and RoleBindings to create, without uids and times; aggregated
/// ClusterRoles have their rules. Parsed anew at each call.
pub fn bootstrap_objects() -> Vec<Value> {
    let mut list: Value = serde_json::from_str(DATA).expect("the embedded file is JSON, as a test shows");
    let mut objects = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    aggregate_all(&mut objects);
    objects
}

/// An index over the bootstrap objects, shared by all who ask: lay [`RbacIndex::layered`] over it.
pub fn bootstrap_index() -> Arc<RbacIndex> {
    static SHARED: OnceLock<Arc<RbacIndex>> = OnceLock::new();
    let make = || {
        let objects = bootstrap_objects();
        let index = RbacIndex::from_objects(&objects);
        Arc::new(index.expect("the embedded file holds RBAC objects only, as a test shows"))
    };
    Arc::clone(SHARED.get_or_init(make))
}

/// Gives aggregated ClusterRoles their rules, until nothing changes any more.
fn aggregate_all(objects: &mut [Value]) {
    for _ in 0..MAX_AGGREGATION_DEPTH {
        let roles = || objects.iter().filter(|object| object["kind"] == "ClusterRole");
        let wanted: Vec<(usize, Vec<Value>)> = objects
            .iter()
            .enumerate()
            .filter(|(_, object)| object["kind"] == "ClusterRole")
            .filter_map(|(at, role)| aggregate(role, roles()).map(|rules| (at, rules)))
            .filter(|(at, rules)| objects[*at]["rules"].as_array() != Some(rules))
            .collect();
        if wanted.is_empty() {
            return;
        }
        for (at, rules) in wanted {
            objects[at]["rules"] = Value::Array(rules);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbac::Attributes;
    use crate::user::UserInfo;

    #[test]
    fn the_embedded_file_holds_the_usual_objects() {
        let objects = bootstrap_objects();
        let has = |kind: &str, name: &str| {
            objects
                .iter()
                .any(|o| o["kind"] == kind && o["metadata"]["name"] == name)
        };
        for (kind, name) in [
            ("ClusterRole", "cluster-admin"),
            ("ClusterRole", "view"),
            ("ClusterRole", "system:discovery"),
            ("ClusterRoleBinding", "cluster-admin"),
            ("ClusterRoleBinding", "system:basic-user"),
            ("ClusterRoleBinding", "system:public-info-viewer"),
            ("Role", "extension-apiserver-authentication-reader"),
        ] {
            assert!(has(kind, name), "{kind} {name}");
        }
        for object in &objects {
            assert_eq!(object["apiVersion"], "rbac.authorization.k8s.io/v1");
            assert_eq!(object["metadata"].get("uid"), None);
            assert_eq!(object["metadata"].get("managedFields"), None);
        }
    }

    #[test]
    fn everybody_gets_what_bootstrap_gives() {
        let index = RbacIndex::layered(bootstrap_index());
        let anonymous = UserInfo::anonymous();
        let somebody = UserInfo::new("bob", ["system:authenticated"]);
        let gc = UserInfo::service_account("kube-system", "generic-garbage-collector", "u");
        let table = [
            (Attributes::path(&anonymous, "get", "/version"), true),
            (Attributes::path(&anonymous, "get", "/healthz"), true),
            (Attributes::path(&anonymous, "get", "/api"), false),
            (Attributes::path(&somebody, "get", "/apis/apps/v1"), true),
            (Attributes::path(&somebody, "get", "/openapi/v3"), true),
            (Attributes::resource(&anonymous, "list", "", "pods"), false),
            (Attributes::resource(&somebody, "list", "", "pods"), false),
            (
                Attributes::resource(
                    &somebody,
                    "create",
                    "authorization.k8s.io",
                    "selfsubjectaccessreviews",
                ),
                true,
            ),
            (Attributes::resource(&gc, "delete", "apps", "deployments"), true),
        ];
        for (wanted, allowed) in table {
            assert_eq!(index.authorize(&wanted).allowed, allowed, "{wanted:?}");
        }
    }

    #[test]
    fn aggregated_roles_are_complete() {
        let index = bootstrap_index();
        let allows = |role: &str, verb: &str, group: &str, resource: &str| {
            let user = UserInfo::default();
            let wanted = Attributes::resource(&user, verb, group, resource);
            index
                .role("", role)
                .unwrap()
                .iter()
                .any(|rule| rule.allows(&wanted))
        };
        for (role, verb, group, resource, allowed) in [
            ("view", "list", "", "pods", true),
            ("view", "list", "", "secrets", false),
            ("view", "create", "", "pods", false),
            ("edit", "create", "", "pods", true),
            ("edit", "get", "", "secrets", true),
            ("edit", "create", "rbac.authorization.k8s.io", "roles", false),
            ("admin", "create", "rbac.authorization.k8s.io", "roles", true),
            ("admin", "list", "", "pods", true),
        ] {
            assert_eq!(
                allows(role, verb, group, resource),
                allowed,
                "{role} {verb} {resource}.{group}"
            );
        }
    }
}
