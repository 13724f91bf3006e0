//! Who may what, arranged and asked through kube.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::watcher;
use serde_json::json;

use crate::harness::{Cluster, Way, bounded, config_map, parse, refusal};

both!(roles_count_at_once, reviews_answer, the_client_is_who_it_says);

fn post() -> PostParams {
    PostParams::default()
}

/// Who a client is.
async fn whoami(client: &Client) -> (String, Vec<String>) {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = api.create(&post(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    (user.username.unwrap(), user.groups.unwrap_or_default())
}

async fn roles_count_at_once(cluster: Cluster) {
    let jane = cluster.client_of("jane", &["gardeners"]).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(jane.clone());
    assert!(refusal(maps.list(&ListParams::default()).await).is_forbidden());
    let roles: Api<Role> = Api::default_namespaced(cluster.client.clone());
    let role: Role = parse(json!({"metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}));
    roles.create(&post(), &role).await.unwrap();
    let bindings: Api<RoleBinding> = Api::default_namespaced(cluster.client.clone());
    let binding: RoleBinding = parse(json!({"metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardeners"}]}));
    bindings.create(&post(), &binding).await.unwrap();
    maps.list(&ListParams::default()).await.unwrap();
    let mut stream = std::pin::pin!(watcher(maps.clone(), watcher::Config::default().labels("none")));
    assert_eq!(crate::watchers::initial(&mut stream).await, "");
    assert!(refusal(maps.create(&post(), &config_map("a", "1")).await).is_forbidden());
    bindings
        .delete("readers", &DeleteParams::default())
        .await
        .unwrap();
    assert!(refusal(maps.list(&ListParams::default()).await).is_forbidden());
}

async fn reviews_answer(cluster: Cluster) {
    let jane = cluster.client_of("jane", &[]).await;
    let review: SelfSubjectAccessReview = parse(json!({"spec": {"resourceAttributes":
        {"namespace": "default", "verb": "delete", "group": "apps", "resource": "deployments"}}}));
    for (client, allowed) in [(&cluster.client, true), (&jane, false)] {
        let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let answer = api.create(&post(), &review).await.unwrap();
        assert_eq!(answer.status.unwrap().allowed, allowed);
    }
}

async fn the_client_is_who_it_says(cluster: Cluster) {
    let (user, groups) = whoami(&cluster.client).await;
    assert_eq!(user, "admin");
    assert_eq!(groups, ["system:masters", "system:authenticated"]);
}

/// A service account's token is shown in a header, which there is over TLS only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_its_account() {
    bounded(async {
        let cluster = Cluster::start(Way::OverTls).await;
        let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client.clone());
        let robot: ServiceAccount = parse(json!({"metadata": {"name": "robot"}}));
        accounts.create(&post(), &robot).await.unwrap();
        let request: TokenRequest = parse(json!({"spec": {"audiences": []}}));
        let answer = accounts
            .create_token_request("robot", &post(), &request)
            .await
            .unwrap();
        let token = answer.status.unwrap().token;
        let config = cluster.config(json!({"token": token})).await;
        let client = Client::try_from(config).unwrap();
        let (user, groups) = whoami(&client).await;
        assert_eq!(user, "system:serviceaccount:default:robot");
        assert!(groups.contains(&"system:serviceaccounts:default".to_owned()));
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        assert!(refusal(maps.list(&ListParams::default()).await).is_forbidden());

        let nobody = Client::try_from(cluster.config(json!({"token": "made-up"})).await).unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(nobody);
        let status = refusal(maps.list(&ListParams::default()).await);
        assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
    })
    .await;
}
