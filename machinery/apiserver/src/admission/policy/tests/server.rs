//! Policies in a server: made, bound and in force at once.

use std::sync::Arc;

use machinery_auth::{Pki, UserInfo};

use super::*;
use crate::local::Local;
use crate::server::{ApiServer, Options};
use crate::status::ApiError;

const GROUP: &str = "admissionregistration.k8s.io/v1";

async fn start() -> (ApiServer, Local) {
    let options = Options::new(Arc::new(Pki::ephemeral().expect("keys can be made")));
    let server = ApiServer::start(options)
        .await
        .expect("a server in memory starts");
    let local = server.local(UserInfo::new("alice", ["team"]));
    (server, local)
}

/// Makes a policy, about ConfigMaps unless it says otherwise, and its binding.
async fn enforce(local: &Local, name: &str, mut spec: Value, mut bound: Value) {
    if spec["matchConstraints"].is_null() {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
        spec["matchConstraints"] = json!({"resourceRules": [rule]});
    }
    bound["policyName"] = json!(name);
    bound["validationActions"] = json!(["Deny"]);
    let objects = [
        ("ValidatingAdmissionPolicy", spec),
        ("ValidatingAdmissionPolicyBinding", bound),
    ];
    for (kind, spec) in objects {
        let object = json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec});
        local.create(object).await.expect("policies are accepted");
    }
}

async fn create(local: &Local, name: &str, labels: Value) -> Result<Value, ApiError> {
    let metadata = json!({"name": name, "namespace": "default", "labels": labels});
    local
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1"}}))
        .await
}

#[tokio::test]
async fn a_refusal_reads_as_the_real_servers() {
    let (_server, local) = start().await;
    let message = "request.operation + ' ' + request.name + ' ' + request.namespace + ' ' + request.userInfo.username \
                   + ' ' + request.userInfo.groups.join(',') + ' ' + request.kind.kind + ' ' \
                   + request.resource.resource + ' ' + string(request.options.kind) + ' ' + (request.dryRun ? 'dry' : 'wet')";
    let validations = json!([{
        "expression": "object == null || object.metadata.name != 'no'",
        "messageExpression": message,
        "reason": "Forbidden",
    }]);
    enforce(&local, "p", json!({"validations": validations}), json!({})).await;
    create(&local, "yes", json!({}))
        .await
        .expect("the policy lets it through");
    let error = create(&local, "no", json!({}))
        .await
        .expect_err("the policy refuses it");
    let text = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: CREATE no default alice team ConfigMap \
                configmaps CreateOptions wet";
    let expected = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("configmaps \"no\" is forbidden: {text}"),
        "reason": "Forbidden",
        "details": {"name": "no", "kind": "configmaps", "causes": [{"message": text}]},
        "code": 403,
    });
    assert_eq!(error.to_status(), expected);
}

#[tokio::test]
async fn a_policy_ends_with_its_binding() {
    let (_server, local) = start().await;
    enforce(
        &local,
        "p",
        json!({"validations": [{"expression": "request.operation == 'CREATE'"}]}),
        json!({}),
    )
    .await;
    create(&local, "c", json!({}))
        .await
        .expect("the policy lets it through");
    let delete = || local.delete("v1", "configmaps", "default", "c", None);
    let error = delete().await.expect_err("the policy refuses it");
    assert_eq!((error.code, error.reason), (422, "Invalid"));
    assert!(
        error
            .message
            .ends_with("failed expression: request.operation == 'CREATE'"),
        "{error}"
    );
    local
        .delete(GROUP, "validatingadmissionpolicybindings", "", "p", None)
        .await
        .expect("policies do not bind this");
    delete().await.expect("nothing refuses it");
}

#[tokio::test]
async fn policies_have_no_say_about_themselves() {
    let (_server, local) = start().await;
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]});
    let spec =
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]});
    enforce(&local, "p", spec.clone(), json!({})).await;
    enforce(&local, "q", spec, json!({})).await;
    create(&local, "c", json!({}))
        .await
        .expect_err("everything else is refused");
}

#[tokio::test]
async fn parameters_come_from_the_store() {
    let (_server, local) = start().await;
    create(&local, "limit", json!({"limit": "yes"}))
        .await
        .expect("there is no policy yet");
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params.kind == 'ConfigMap' && params.data.x == '2'"}],
    });
    let action = "Deny";
    enforce(
        &local,
        "named",
        spec.clone(),
        json!({
            "paramRef": {"name": "limit", "parameterNotFoundAction": action},
            "matchResources": {"objectSelector": {"matchLabels": {"of": "named"}}},
        }),
    )
    .await;
    enforce(
        &local,
        "selected",
        spec.clone(),
        json!({
            "paramRef": {"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": action},
            "matchResources": {"objectSelector": {"matchLabels": {"of": "selected"}}},
        }),
    )
    .await;
    enforce(
        &local,
        "lost",
        spec,
        json!({
            "paramRef": {"name": "limit", "namespace": "kube-system", "parameterNotFoundAction": action},
            "matchResources": {"objectSelector": {"matchLabels": {"of": "lost"}}},
        }),
    )
    .await;
    for (name, expected) in [
        (
            "named",
            "failed expression: params.kind == 'ConfigMap' && params.data.x == '2'",
        ),
        (
            "selected",
            "failed expression: params.kind == 'ConfigMap' && params.data.x == '2'",
        ),
        (
            "lost",
            "no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
    ] {
        let error = create(&local, "c", json!({"of": name}))
            .await
            .expect_err("refused");
        assert!(error.message.ends_with(expected), "{name}: {error}");
    }
    create(&local, "c", json!({}))
        .await
        .expect("no binding is about it");
}

#[tokio::test]
async fn equivalent_versions_see_the_object_in_their_shape() {
    let (_server, local) = start().await;
    let rule = json!({"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["*"],
        "resources": ["horizontalpodautoscalers"]});
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule], "matchPolicy": "Equivalent"},
        "validations": [{
            "expression": "object.spec.metrics[0].resource.target.averageUtilization < 50",
            "messageExpression": "string(object.apiVersion) + ' ' + request.kind.version + ' ' + request.requestKind.version",
        }],
    });
    enforce(&local, "p", spec, json!({})).await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let spec = json!({"maxReplicas": 2, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 60});
    let scaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "default"}, "spec": spec});
    let error = local.create(scaler).await.expect_err("refused");
    assert!(
        error.message.ends_with("denied request: autoscaling/v2 v2 v1"),
        "{error}"
    );
}

#[tokio::test]
async fn policies_ask_the_roles_of_the_server() {
    let (server, local) = start().await;
    let account = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let bound = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "robots", "namespace": "default"}, "subjects": [account], "roleRef": role});
    server
        .local(UserInfo::apiserver())
        .create(bound)
        .await
        .expect("roles are bound");
    let spec = json!({
        "variables": [{"name": "robot", "expression": "authorizer.serviceAccount('default', 'robot')"}],
        "validations": [
            {"expression": "authorizer.requestResource.check('create').allowed() \
                || object.metadata.name.startsWith('free')", "message": "alice has no role"},
            {"expression": "variables.robot.group('').resource('configmaps').namespace('default').check('get').allowed()",
                "message": "the robot may read"},
            {"expression": "!variables.robot.group('').resource('configmaps').namespace('kube-system').check('get').allowed()",
                "message": "but only there"},
        ],
    });
    enforce(&local, "p", spec, json!({})).await;
    let error = create(&local, "c", json!({})).await.expect_err("refused");
    assert!(
        error.message.ends_with("denied request: alice has no role"),
        "{error}"
    );
    create(&local, "free", json!({}))
        .await
        .expect("the roles say what they should");
}
