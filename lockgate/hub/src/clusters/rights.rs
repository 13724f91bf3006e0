//! What we need in a member, as objects. The handbook's page on rights shows the same rules, and a test compares the two.

use lockgate_api::keys;
use serde_json::{Value, json};

/// The namespace in the member that holds the account.
pub const MEMBER_NAMESPACE: &str = keys::CLUSTER_NAMESPACE;

/// The account that we use in a member.
pub fn account_name(cluster: &str) -> String {
    format!("lockgate-{cluster}")
}

/// The ClusterRole of that account, and its binding.
pub fn role_name(cluster: &str) -> String {
    format!("lockgate:{cluster}")
}

/// The Secret that holds the account's token, where the member's token controller fills it.
pub fn token_secret_name(cluster: &str) -> String {
    format!("lockgate-{cluster}-token")
}

/// The rules of the ClusterRole.
pub fn rules() -> Value {
    json!([
        // Templates are of any kind, so that the rights are over every kind.
        {
            "apiGroups": ["*"],
            "resources": ["*"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        // Without these, a Role that grants more than this one could not be sent to the member.
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "clusterroles"],
            "verbs": ["escalate", "bind"],
        },
        // Health, version and discovery.
        {
            "nonResourceURLs": ["/readyz", "/healthz", "/version", "/api", "/api/*", "/apis", "/apis/*"],
            "verbs": ["get"],
        },
    ])
}

/// The ClusterRole.
pub(super) fn role(cluster: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": role_name(cluster)},
        "rules": rules(),
    })
}

/// Its binding to the account.
pub(super) fn binding(cluster: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": role_name(cluster)},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role_name(cluster),
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": MEMBER_NAMESPACE, "name": account_name(cluster)}],
    })
}

/// The account.
pub(super) fn account(cluster: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"namespace": MEMBER_NAMESPACE, "name": account_name(cluster)},
    })
}

/// The Secret that asks the member's token controller for a token that does not run out.
pub(super) fn token_secret(cluster: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "namespace": MEMBER_NAMESPACE, "name": token_secret_name(cluster),
            "annotations": {"kubernetes.io/service-account.name": account_name(cluster)},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handbook_shows_these_rules() {
        let page = include_str!("../../../../docs/rbac.md");
        let block = page
            .split("```yaml\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .find(|block| block.contains("kind: ClusterRole\n"))
            .expect("docs/rbac.md shows the ClusterRole");
        let shown = machinery_value::decode::from_yaml(block.as_bytes())
            .expect("YAML")
            .value;
        assert_eq!(shown["rules"], rules(), "docs/rbac.md and the code differ");
    }
}
