//! Who may do what.

use serde_json::{Value, json};

use crate::harness::{NAMESPACE, Server, path};

const CONTROLLER: &str = "system:serviceaccount:karmada-system:lockgate-controller";

pub(crate) async fn check(server: &Server) {
    controller(server).await;
    labels_of_roles(server).await;
    tenants(server).await;
}

/// Whether a user may do something: `verb namespace/resource.group`, with an empty namespace for all.
async fn may(server: &Server, user: &str, asked: &str) -> bool {
    let (verb, rest) = asked.split_once(' ').unwrap();
    let (namespace, resource) = rest.split_once(':').unwrap();
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": {
            "verb": verb, "namespace": namespace, "resource": resource, "subresource": subresource, "group": group}},
    });
    server.create(&review).await.granted()["status"]["allowed"] == true
}

async fn controller(server: &Server) {
    for (asked, wanted) in [
        // Any template is read and claimed.
        ("list :secrets", true),
        ("watch :widgets.example.com", true),
        ("patch shop:deployments.apps", true),
        ("update shop:widgets/status.example.com", true),
        ("update shop:deployments/finalizers.apps", true),
        ("patch :clusterroles.rbac.authorization.k8s.io", true),
        // None is made or deleted.
        ("create shop:deployments.apps", false),
        ("delete shop:deployments.apps", false),
        ("deletecollection shop:secrets", false),
        ("create shop:pods/exec", false),
        ("create shop:secrets", false),
        ("create shop:serviceaccounts/token", false),
        ("delete :customresourcedefinitions.apiextensions.k8s.io", false),
        ("create :clusterroles.rbac.authorization.k8s.io", false),
        ("create shop:rolebindings.rbac.authorization.k8s.io", false),
        ("impersonate :users", false),
        // Its own are.
        ("create karmada-es-member1:works.work.karmada.io", true),
        ("delete karmada-es-member1:works.work.karmada.io", true),
        ("create shop:resourcebindings.work.karmada.io", true),
        ("update shop:resourcebindings/status.work.karmada.io", true),
        ("delete :clusterresourcebindings.work.karmada.io", true),
        ("update :clusters/status.cluster.karmada.io", true),
        ("update shop:propagationpolicies/status.policy.karmada.io", true),
        ("delete shop:propagationpolicies.policy.karmada.io", false),
        ("update shop:rolloutpolicies/status.policy.karmada.io", true),
        ("create shop:rolloutpolicies.policy.karmada.io", false),
        ("delete shop:rolloutpolicies.policy.karmada.io", false),
        ("delete :clusters.cluster.karmada.io", false),
        ("create :namespaces", true),
        ("create :managedclusters.cluster.open-cluster-management.io", true),
        (
            "update :managedclusters/accept.cluster.open-cluster-management.io",
            true,
        ),
        (
            "create shop:placementdecisions.cluster.open-cluster-management.io",
            true,
        ),
        ("delete shop:placements.cluster.open-cluster-management.io", false),
        (
            "create shop:managedclustersetbindings.cluster.open-cluster-management.io",
            false,
        ),
        (
            "create :managedclustersets.cluster.open-cluster-management.io",
            true,
        ),
        (
            "delete :managedclustersets.cluster.open-cluster-management.io",
            false,
        ),
        ("create :customresourcedefinitions.apiextensions.k8s.io", true),
        ("create shop:events", true),
        ("create default:events.events.k8s.io", true),
        ("create karmada-system:leases.coordination.k8s.io", true),
        ("update karmada-system:leases.coordination.k8s.io", true),
        ("create karmada-cluster:secrets", true),
        ("create shop:leases.coordination.k8s.io", false),
    ] {
        assert_eq!(may(server, CONTROLLER, asked).await, wanted, "{asked}");
    }
}

/// A role that grants more than the controllers have can be claimed, and what it grants cannot be changed; nor can who has it.
async fn labels_of_roles(server: &Server) {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
        "metadata": {"name": "strong"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "strong"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "strong"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "somebody"}],
    });
    let claim = json!({"metadata": {"labels": {"clusterpropagationpolicy.karmada.io/permanent-id": "a"}}});
    for (object, grant) in [
        (
            &role,
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]}),
        ),
        (&role, json!({"rules": null})),
        (&role, json!({"aggregationRule": {"clusterRoleSelectors": [{}]}})),
        (
            &binding,
            json!({"subjects": [{"apiGroup": group, "kind": "User", "name": "else"}]}),
        ),
        (&binding, json!({"subjects": null})),
    ] {
        server.create(object).await.granted();
        server.merge(object, &claim, Some(CONTROLLER)).await.granted();
        let refused = server
            .until("lockgate-grants", async || {
                // A real server learns of the policy a moment after it was made; the rest is dry.
                let headers = [
                    ("content-type", "application/merge-patch+json"),
                    ("impersonate-user", CONTROLLER),
                ];
                let path = format!("{}?dryRun=All", path(object));
                let answer = server.send("PATCH", &path, &headers, Some(&grant)).await;
                (answer.code != 200).then_some(answer)
            })
            .await;
        assert_eq!(refused.code, 403, "{}", refused.body);
        assert!(
            refused.message().contains("lockgate-grants"),
            "{}",
            refused.message()
        );
        // Others may.
        server.merge(object, &grant, None).await.granted();
        server.delete(object).await.granted();
    }
}

/// Roles that are put together from labelled ones are filled in by a controller that a bare server lacks, so the parts are
/// granted here themselves.
async fn tenants(server: &Server) {
    for (user, roles) in [
        ("viewer", &["lockgate-view"][..]),
        ("editor", &["lockgate-view", "lockgate-edit"]),
    ] {
        for role in roles {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": format!("{user}-{role}"), "namespace": NAMESPACE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            });
            server.create(&binding).await.granted();
        }
    }
    // A real server learns of new bindings a moment later.
    for user in ["viewer", "editor"] {
        server
            .until(user, async || {
                may(server, user, "get shop:propagationpolicies.policy.karmada.io")
                    .await
                    .then_some(())
            })
            .await;
    }
    server
        .until("editor", async || {
            may(
                server,
                "editor",
                "create shop:propagationpolicies.policy.karmada.io",
            )
            .await
            .then_some(())
        })
        .await;
    for (asked, viewer, editor) in [
        ("list shop:propagationpolicies.policy.karmada.io", true, true),
        ("list other:propagationpolicies.policy.karmada.io", false, false),
        ("watch shop:overridepolicies.policy.karmada.io", true, true),
        ("list shop:rolloutpolicies.policy.karmada.io", true, true),
        ("get shop:rolloutpolicies/status.policy.karmada.io", true, true),
        ("create shop:rolloutpolicies.policy.karmada.io", false, true),
        ("delete shop:rolloutpolicies.policy.karmada.io", false, true),
        (
            "update shop:rolloutpolicies/status.policy.karmada.io",
            false,
            false,
        ),
        ("create :clusterrolloutpolicies.policy.karmada.io", false, false),
        ("get shop:resourcebindings.work.karmada.io", true, true),
        ("patch shop:propagationpolicies.policy.karmada.io", false, true),
        ("delete shop:overridepolicies.policy.karmada.io", false, true),
        (
            "update shop:propagationpolicies/status.policy.karmada.io",
            false,
            false,
        ),
        ("update shop:resourcebindings.work.karmada.io", false, false),
        ("delete shop:resourcebindings.work.karmada.io", false, false),
        ("get shop:works.work.karmada.io", false, false),
        (
            "list shop:placements.cluster.open-cluster-management.io",
            true,
            true,
        ),
        (
            "create shop:placements.cluster.open-cluster-management.io",
            false,
            true,
        ),
        (
            "get shop:placementdecisions.cluster.open-cluster-management.io",
            true,
            true,
        ),
        (
            "update shop:placementdecisions.cluster.open-cluster-management.io",
            false,
            false,
        ),
        // Which sets a namespace may use is not up to its tenants.
        (
            "create shop:managedclustersetbindings.cluster.open-cluster-management.io",
            false,
            false,
        ),
        ("list shop:works.work.karmada.io", false, false),
        (
            "create :clusterpropagationpolicies.policy.karmada.io",
            false,
            false,
        ),
    ] {
        assert_eq!(may(server, "viewer", asked).await, viewer, "viewer: {asked}");
        assert_eq!(may(server, "editor", asked).await, editor, "editor: {asked}");
    }
    for (role, label) in [
        ("lockgate-view", "view"),
        ("lockgate-view", "edit"),
        ("lockgate-view", "admin"),
        ("lockgate-edit", "edit"),
        ("lockgate-edit", "admin"),
    ] {
        let role: Value = server
            .get(&format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}"))
            .await
            .granted();
        let key = format!("rbac.authorization.k8s.io/aggregate-to-{label}");
        assert_eq!(role["metadata"]["labels"][key], "true");
    }
}

/// The handbook shows what is granted.
#[test]
fn the_handbook_shows_these_rules() {
    let page = include_str!("../../../../docs/rbac.md");
    let shown: Vec<Value> = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(|block| {
            machinery_value::decode::from_yaml(block.as_bytes())
                .unwrap()
                .value
        })
        .collect();
    for kind in ["ClusterRole", "Role"] {
        let is = |role: &&Value| role["kind"] == kind && role["metadata"]["name"] == "lockgate-controller";
        let definitions = lockgate_api::definitions::definitions();
        let mut granted = definitions.iter().filter(is).peekable();
        assert!(granted.peek().is_some(), "{kind}");
        let shown = shown.iter().find(is).expect("docs/rbac.md shows it");
        for role in granted {
            assert_eq!(
                shown["rules"], role["rules"],
                "docs/rbac.md and the {kind} differ"
            );
        }
    }
}
