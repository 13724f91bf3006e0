use serde_json::json;

use super::*;

#[test]
fn what_is_never_a_template() {
    use SkipReason::*;
    let table: [(&str, &str, &str, &str, Option<SkipReason>); 29] = [
        ("apps/v1", "Deployment", "shop", "web", None),
        ("v1", "ConfigMap", "shop", "web", None),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader", None),
        ("v1", "Namespace", "", "shop", None),
        ("cluster.karmada.io/v1alpha1", "Cluster", "", "m1", Some(Kind)),
        (
            "policy.karmada.io/v1alpha1",
            "PropagationPolicy",
            "shop",
            "p",
            Some(Kind),
        ),
        (
            "work.karmada.io/v1alpha2",
            "ResourceBinding",
            "shop",
            "web-deployment",
            Some(Kind),
        ),
        (
            "config.karmada.io/v1alpha1",
            "ResourceInterpreterCustomization",
            "",
            "x",
            Some(Kind),
        ),
        (
            "networking.karmada.io/v1alpha1",
            "MultiClusterService",
            "shop",
            "x",
            Some(Kind),
        ),
        (
            "autoscaling.karmada.io/v1alpha1",
            "FederatedHPA",
            "shop",
            "x",
            Some(Kind),
        ),
        ("remedy.karmada.io/v1alpha1", "Remedy", "", "x", Some(Kind)),
        (
            "apps.karmada.io/v1alpha1",
            "WorkloadRebalancer",
            "",
            "x",
            Some(Kind),
        ),
        ("events.k8s.io/v1", "Event", "shop", "x", Some(Kind)),
        ("v1", "Event", "shop", "x", Some(Kind)),
        ("coordination.k8s.io/v1", "Lease", "shop", "x", Some(Kind)),
        // Of other groups, though their names are alike.
        ("example.org/v1", "Event", "shop", "x", None),
        (
            "policy.karmada.io.example.org/v1",
            "PropagationPolicy",
            "shop",
            "x",
            None,
        ),
        ("policy/v1", "PodDisruptionBudget", "shop", "x", None),
        ("v1", "ConfigMap", "karmada-es-m1", "x", Some(ReservedNamespace)),
        ("v1", "ConfigMap", "karmada-system", "x", Some(ReservedNamespace)),
        ("v1", "ConfigMap", "karmada-cluster", "x", Some(ReservedNamespace)),
        ("v1", "ConfigMap", "karmada-systems", "x", None),
        ("v1", "ConfigMap", "kube-system", "x", Some(SystemNamespace)),
        ("v1", "ConfigMap", "kube-", "x", Some(SystemNamespace)),
        ("v1", "ConfigMap", "my-kube-system", "x", None),
        ("v1", "ConfigMap", "kubernetes", "x", None),
        (
            "v1",
            "ConfigMap",
            "kube-system",
            "extension-apiserver-authentication",
            Some(ServerOwned),
        ),
        // A Namespace stands for itself.
        ("v1", "Namespace", "", "karmada-es-m1", Some(ReservedNamespace)),
        ("v1", "Namespace", "", "kube-system", None),
    ];
    for (api_version, kind, namespace, name, expected) in table {
        let template = json!({
            "apiVersion": api_version, "kind": kind, "metadata": { "namespace": namespace, "name": name },
        });
        assert_eq!(
            skip_template(&template),
            expected,
            "{api_version} {kind} {namespace}/{name}"
        );
        assert_eq!(
            skip_kind(api_version, kind),
            expected == Some(Kind),
            "{api_version} {kind}"
        );
    }
}

#[test]
fn what_others_propagate() {
    for (value, expected) in [("other", Some(SkipReason::ClaimedBy)), ("", None)] {
        let template = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": "shop", "name": "web", "labels": { keys::CLAIMED_BY: value } },
        });
        assert_eq!(skip_template(&template), expected, "{value:?}");
    }
}

#[test]
fn what_somebody_leaves_alone() {
    let skips = Skips::parse(
        "networking.k8s.io; apps/v1/deployment,StatefulSet;batch/v1beta1;v1/Secret",
        Some("kube-.*,ingress-.*,edge"),
    )
    .unwrap();
    for (api_version, kind, expected) in [
        ("networking.k8s.io/v1", "Ingress", true),
        ("networking.k8s.io/v1beta1", "IngressClass", true),
        ("apps/v1", "Deployment", true),
        ("apps/v1", "StatefulSet", true),
        ("apps/v1", "DaemonSet", false),
        ("apps/v2", "Deployment", false),
        ("batch/v1beta1", "CronJob", true),
        ("batch/v1", "CronJob", false),
        ("v1", "Secret", true),
        ("v1", "ConfigMap", false),
        ("work.karmada.io/v1alpha1", "Work", true),
    ] {
        assert_eq!(
            skips.skip_kind(api_version, kind),
            expected,
            "{api_version} {kind}"
        );
    }
    for (namespace, expected) in [
        ("kube-system", true),
        ("ingress-nginx", true),
        ("my-ingress-nginx", false),
        ("edge", true),
        ("edge-1", false),
        ("shop", false),
    ] {
        assert_eq!(skips.skip_namespace(namespace), expected, "{namespace}");
    }
    // Who names others names all of them.
    assert!(
        !Skips::parse("", Some("edge"))
            .unwrap()
            .skip_namespace("kube-system")
    );
    assert!(Skips::parse("", None).unwrap().skip_namespace("kube-system"));
    assert!(
        Skips::parse("a/b/c/d", None)
            .unwrap_err()
            .contains("GROUP/VERSION/KIND")
    );
    assert!(Skips::parse("apps//Deployment", None).is_err());
    assert!(Skips::parse("", Some("(")).unwrap_err().contains("is no pattern"));
}
