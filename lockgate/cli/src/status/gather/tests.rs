//! Reports for people who may not read everything.

use std::sync::Arc;

use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::json;

use super::*;
use crate::status::report::State;

/// A hub with a policy, a binding and a Work in the namespace shop, and somebody who has the role `view` there.
async fn tenant() -> (ApiServer, Connection) {
    let pki = Arc::new(Pki::ephemeral().unwrap());
    let server = ApiServer::start(Options::new(pki)).await.unwrap();
    let admin = server.local(UserInfo::new("admin", ["system:masters"]).authenticated());
    for definition in lockgate_api::definitions::definitions() {
        admin.create(definition).await.unwrap();
    }
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "shop",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "id"},
            "annotations": {"propagationpolicy.karmada.io/namespace": "shop", "propagationpolicy.karmada.io/name": "web"}},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "replicas": 2, "clusters": [{"name": "member1", "replicas": 2}],
        },
    });
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karmada-es-member1"}}),
        json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"propagationpolicy.karmada.io/permanent-id": "id"}},
            "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}], "placement": {}},
        }),
        binding.clone(),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "tenant", "namespace": "shop"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
        }),
    ] {
        admin.create(object).await.unwrap();
    }
    let mut told = admin
        .get(
            "work.karmada.io/v1alpha2",
            "resourcebindings",
            "shop",
            "web-deployment",
        )
        .unwrap();
    told["status"] = json!({"aggregatedStatus": [
        {"clusterName": "member1", "applied": true, "health": "Healthy", "status": {"readyReplicas": 2}},
    ]});
    let path = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment/status";
    let user = UserInfo::new("admin", ["system:masters"]).authenticated();
    let link = lockgate_hub::Link::new(kube::Client::new(server.as_user(user), "default"));
    link.replace(path, told.to_string().into_bytes()).await.unwrap();

    let user = UserInfo::new("tenant", ["people"]).authenticated();
    let hub = Connection {
        client: kube::Client::new(server.as_user(user), "shop"),
        config: kube::Config::new("https://127.0.0.1:1".parse().unwrap()),
        url: "https://127.0.0.1:1".to_owned(),
        namespace: "shop".to_owned(),
    };
    (server, hub)
}

#[tokio::test]
async fn somebody_with_rights_to_one_namespace() {
    let (_server, hub) = tenant().await;
    // The server adds up roles in its own time.
    let mut objects = read_for(&hub, "shop").await;
    for _ in 0..200 {
        if objects.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        objects = read_for(&hub, "shop").await;
    }
    let objects = objects.unwrap();
    assert_eq!(objects.only_in.as_deref(), Some("shop"));
    assert_eq!((objects.policies.len(), objects.bindings.len()), (1, 1));

    let question = Question::Fleet { namespace: None };
    let Report::Fleet(fleet) = question.answer(&hub).await.unwrap() else {
        panic!("a report about the hub");
    };
    assert_eq!((fleet.templates, fleet.not_well.len()), (1, 0), "{fleet:?}");
    let note = fleet.notes.join("\n");
    for part in ["all but the namespace shop", "clusters", "works"] {
        assert!(note.contains(part), "{part}: {note}");
    }

    let id = TemplateId {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    };
    let mut objects = objects;
    objects.unseen.push("works");
    let report = template::template(&id, Some(&json!({})), &objects);
    let place = &report.clusters[0];
    assert_eq!(
        (place.cluster.as_str(), place.state, place.ready, place.applied),
        ("member1", State::Healthy, Some(2), Some(true)),
        "{report:?}"
    );

    // Who may not even read what is about the namespace is told so.
    let refused = read_for(&hub, "kitchen").await.unwrap_err();
    assert!(matches!(refused, Failure::Forbidden(_)), "{refused}");
}
