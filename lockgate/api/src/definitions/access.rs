//! Who may do what: the controllers, and the tenants of the hub.
//!
//! The controllers read and label objects of every kind, because every kind may be a template; Secrets too. They create and
//! delete only what is theirs: bindings, Works, execution namespaces. What is written to members is a matter of the
//! members' own credentials. Tenants get their policies and may read their bindings; nobody but the controllers gets
//! Works, whose manifests would be a way around the members' own rules.

use serde_json::{Value, json};

use super::policies::GROUP as POLICIES;
use super::{bindings, clusters, ocm, placing};
use crate::keys;

const NAME: &str = "lockgate-controller";
/// The controllers as a server knows them.
pub(super) const USER: &str = "system:serviceaccount:karmada-system:lockgate-controller";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// The namespaces of the control plane.
pub(super) fn namespaces() -> [Value; 2] {
    [keys::CLUSTER_NAMESPACE, keys::SYSTEM_NAMESPACE].map(|name| {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {keys::SYSTEM: "true"}},
        })
    })
}

/// The account of the controllers, its roles, and the roles of tenants.
pub(super) fn roles() -> Vec<Value> {
    let mut all = vec![
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": keys::SYSTEM_NAMESPACE},
        }),
        role("ClusterRole", NAME, None, controller_rules()),
        binding("ClusterRole", None),
    ];
    for namespace in [keys::CLUSTER_NAMESPACE, keys::SYSTEM_NAMESPACE] {
        all.push(role("Role", NAME, Some(namespace), namespace_rules()));
        all.push(binding("Role", Some(namespace)));
    }
    all.extend(tenant_roles());
    all
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn role(kind: &str, name: &str, namespace: Option<&str>, rules: Vec<Value>) -> Value {
    let mut role = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": kind,
        "metadata": {"name": name},
        "rules": rules,
    });
    if let Some(namespace) = namespace {
        role["metadata"]["namespace"] = json!(namespace);
    }
    role
}

fn binding(kind: &str, namespace: Option<&str>) -> Value {
    let mut binding = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": format!("{kind}Binding"),
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": keys::SYSTEM_NAMESPACE}],
    });
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = json!(namespace);
    }
    binding
}

fn controller_rules() -> Vec<Value> {
    vec![
        // Every kind may be a template: it is read, claimed by labels and annotations, and its status is written. The
        // star covers subresources: status, and finalizers, which owner references with blockOwnerDeletion need.
        rule("*", &["*"], &["get", "list", "watch", "update", "patch"]),
        // Roles are templates too, and a server takes every write of one for a grant, even if only a label changes. That
        // nothing else changes is up to the admission policy `lockgate-grants`.
        rule(RBAC, &["roles", "clusterroles"], &["escalate", "bind"]),
        // Bindings and Works are the controllers' own.
        rule(
            bindings::GROUP,
            &["resourcebindings", "clusterresourcebindings", "works"],
            &["create", "delete"],
        ),
        // Rebalancers that are done go when their time is over.
        rule(placing::APPS, &["workloadrebalancers"], &["delete"]),
        // Every Cluster has its ManagedCluster; the sets of all and of the others; decisions of placements.
        rule(
            ocm::GROUP,
            &["managedclusters", "placementdecisions"],
            &["create", "delete"],
        ),
        rule(ocm::GROUP, &["managedclustersets"], &["create"]),
        // Every policy has a replica for each of its clusters.
        rule(ocm::POLICY_GROUP, &["policies"], &["create", "delete"]),
        // Execution namespaces come and go with clusters. Names of namespaces cannot be limited for create.
        rule("", &["namespaces"], &["create", "delete"]),
        // Definitions that somebody deletes are made again.
        rule(
            "apiextensions.k8s.io",
            &["customresourcedefinitions"],
            &["create"],
        ),
        rule("", &["events"], &["create"]),
        rule("events.k8s.io", &["events"], &["create"]),
    ]
}

/// In the control plane's own namespaces: credentials of members, revisions, and the lease of the leader.
fn namespace_rules() -> Vec<Value> {
    vec![
        rule("", &["secrets", "configmaps"], &["create", "delete"]),
        rule("apps", &["controllerrevisions"], &["create", "delete"]),
        rule("coordination.k8s.io", &["leases"], &["create", "delete"]),
    ]
}

fn tenant_roles() -> [Value; 2] {
    let policies = ["propagationpolicies", "overridepolicies", "rolloutpolicies"];
    let aggregated = |name: &str, to: &[&str], rules: Vec<Value>| {
        let mut role = role("ClusterRole", name, None, rules);
        for target in to {
            role["metadata"]["labels"][format!("{RBAC}/aggregate-to-{target}")] = json!("true");
        }
        role
    };
    [
        aggregated(
            "lockgate-view",
            &["view", "edit", "admin"],
            vec![
                rule(POLICIES, &policies, &READ),
                rule(
                    POLICIES,
                    &["propagationpolicies/status", "rolloutpolicies/status"],
                    &["get"],
                ),
                rule(
                    bindings::GROUP,
                    &["resourcebindings", "resourcebindings/status"],
                    &READ,
                ),
                // Which clusters there are decides what a policy can say. Only a binding for the whole hub grants it.
                rule(clusters::GROUP, &["clusters"], &READ),
                rule(
                    ocm::GROUP,
                    &["placements", "placementdecisions", "managedclustersetbindings"],
                    &READ,
                ),
                rule(ocm::GROUP, &["placements/status"], &["get"]),
                rule(ocm::GROUP, &["managedclusters", "managedclustersets"], &READ),
                rule(
                    ocm::POLICY_GROUP,
                    &["policies", "placementbindings", "policysets"],
                    &READ,
                ),
                rule(
                    ocm::POLICY_GROUP,
                    &["policies/status", "policysets/status"],
                    &["get"],
                ),
                rule(ocm::APPS_GROUP, &["placementrules"], &READ),
            ],
        ),
        aggregated(
            "lockgate-edit",
            &["edit", "admin"],
            vec![
                rule(POLICIES, &policies, &WRITE),
                // Which sets a namespace may use is decided by whoever may bind them.
                rule(ocm::GROUP, &["placements"], &WRITE),
                rule(
                    ocm::POLICY_GROUP,
                    &["policies", "placementbindings", "policysets"],
                    &WRITE,
                ),
            ],
        ),
    ]
}
