//! Refusals as kube's users see them: code, reason, details.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use serde_json::json;

use crate::harness::{Cluster, config_map, deployment, parse, refusal};

both!(
    refusals_have_codes_and_reasons,
    what_is_invalid_is_named,
    what_is_too_large_is_refused,
    forbidden_is_who_may_not,
);

fn post() -> PostParams {
    PostParams::default()
}

#[track_caller]
fn check(status: &Status, code: u16, reason: &str, message: &str) {
    assert!(status.is_failure());
    assert_eq!((status.code, status.reason.as_str()), (code, reason));
    assert_eq!(status.message, message);
}

async fn refusals_have_codes_and_reasons(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &config_map("a", "1")).await.unwrap();

    let missing = "configmaps \"b\" not found";
    let merge = Patch::Merge(json!({}));
    for status in [
        refusal(api.get("b").await),
        refusal(api.delete("b", &DeleteParams::default()).await),
        refusal(api.patch("b", &PatchParams::default(), &merge).await),
        refusal(api.replace("b", &post(), &config_map("b", "1")).await),
    ] {
        check(&status, 404, "NotFound", missing);
        assert!(status.is_not_found());
        let details = status.details.unwrap();
        assert_eq!(
            (details.name.as_str(), details.kind.as_str()),
            ("b", "configmaps")
        );
    }

    let status = refusal(api.create(&post(), &config_map("a", "1")).await);
    check(&status, 409, "AlreadyExists", "configmaps \"a\" already exists");
    assert!(status.is_already_exists() && !status.is_conflict());

    let mut stale = made;
    stale.metadata.resource_version = Some("1".into());
    stale.data = None;
    let status = refusal(api.replace("a", &post(), &stale).await);
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
                   please apply your changes to the latest version and try again";
    check(&status, 409, "Conflict", message);
    assert!(status.is_conflict());

    let status = refusal(api.replace("a", &post(), &config_map("c", "1")).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    let nowhere: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "nowhere");
    let status = refusal(nowhere.create(&post(), &config_map("a", "1")).await);
    check(&status, 404, "NotFound", "namespaces \"nowhere\" not found");

    // A kind that is not served has no answer in JSON; kube makes a status of it all the same.
    let unknown = kube::core::GroupVersionKind::gvk("lab.io", "v9", "Nothing");
    let unknown = kube::core::ApiResource::from_gvk(&unknown);
    let unknown: Api<kube::core::DynamicObject> = Api::all_with(cluster.client.clone(), &unknown);
    let status = refusal(unknown.list(&ListParams::default()).await);
    assert_eq!(status.code, 404);
}

async fn what_is_invalid_is_named(cluster: Cluster) {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let status = refusal(maps.create(&post(), &config_map("Not_A_Name", "1")).await);
    assert!(status.is_invalid());
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = status.details.unwrap().causes;
    assert_eq!(
        (causes[0].reason.as_str(), causes[0].field.as_str()),
        ("FieldValueInvalid", "metadata.name")
    );

    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    let mut wrong = deployment("d");
    let spec = wrong.spec.as_mut().unwrap();
    spec.replicas = Some(-1);
    spec.selector = parse(json!({"matchLabels": {"app": "another"}}));
    let status = refusal(deployments.create(&post(), &wrong).await);
    assert!(status.is_invalid());
    let details = status.details.unwrap();
    assert_eq!(
        (details.group.as_str(), details.kind.as_str()),
        ("apps", "Deployment")
    );
    let fields: Vec<_> = details.causes.iter().map(|c| c.field.as_str()).collect();
    assert_eq!(fields, ["spec.replicas", "spec.template.metadata.labels"]);

    let made = deployments.create(&post(), &deployment("d")).await.unwrap();
    let mut moved = made.clone();
    let spec = moved.spec.as_mut().unwrap();
    spec.selector = parse(json!({"matchLabels": {"app": "d", "more": "x"}}));
    spec.template =
        parse(json!({"metadata": {"labels": {"app": "d", "more": "x"}}, "spec": spec.template.spec}));
    let status = refusal(deployments.replace("d", &post(), &moved).await);
    assert!(
        status.is_invalid() && status.message.contains("field is immutable"),
        "{status:?}"
    );
}

async fn what_is_too_large_is_refused(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let status = refusal(
        api.create(&post(), &config_map("a", &"x".repeat(1_100_000)))
            .await,
    );
    assert!(status.is_invalid(), "{}", status.code);
    // A server that refuses may close the connection while the body is still on its way.
    let large = config_map("a", &"x".repeat(4_000_000));
    let mut answer = api.create(&post(), &large).await;
    for _ in 0..10 {
        if matches!(answer, Err(kube::Error::Api(_))) {
            break;
        }
        answer = api.create(&post(), &large).await;
    }
    let status = refusal(answer);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (413, "RequestEntityTooLarge")
    );
}

async fn forbidden_is_who_may_not(cluster: Cluster) {
    let jane = cluster.client_of("jane", &["gardeners"]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(jane.clone());
    let may_not = |verb: &str, rest: &str| {
        format!(
            "configmaps{rest} is forbidden: User \"jane\" cannot {verb} resource \"configmaps\" \
             in API group \"\" in the namespace \"default\""
        )
    };
    let named = " \"a\"";
    for (status, message) in [
        (refusal(api.get("a").await), may_not("get", named)),
        (
            refusal(api.list(&ListParams::default()).await),
            may_not("list", ""),
        ),
        (
            refusal(api.create(&post(), &config_map("a", "1")).await),
            may_not("create", ""),
        ),
        (
            refusal(api.delete("a", &DeleteParams::default()).await),
            may_not("delete", named),
        ),
    ] {
        check(&status, 403, "Forbidden", &message);
        assert!(status.is_forbidden());
    }
    let refused = refusal(api.get_opt("a").await);
    assert!(refused.is_forbidden(), "absent and forbidden are not the same");
}
