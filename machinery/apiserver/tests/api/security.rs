//! Who may what: anonymous, tokens of service accounts, roles, impersonation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use machinery_apiserver::{Options, Peer};
use machinery_auth::UserInfo;
use machinery_auth::x509::PeerCertificate;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Server, pki};

fn user(name: &str) -> UserInfo {
    UserInfo::new(name, Vec::<String>::new()).authenticated()
}

#[tokio::test]
async fn nobody_sees_health_and_version_only() {
    let server = Server::start().await;
    let nobody = server.by(UserInfo::anonymous());
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(nobody.get(path).await.code, 200, "{path}");
    }
    for path in ["/api", "/apis", "/api/v1/namespaces", CONFIG_MAPS, "/openapi/v3"] {
        assert_eq!(nobody.get(path).await.code, 403, "{path}");
    }
    let answer = nobody.get("/api/v1/pods").await;
    assert_eq!(
        answer.refusal().2,
        "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope"
    );
}

#[tokio::test]
async fn a_role_that_names_an_object_lets_it_be_listed_alone() {
    let server = Server::start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["list", "watch"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "one"}, "rules": [rule]});
    server.post(&format!("{roles}/roles"), role).await.expect(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    server
        .post(&format!("{roles}/rolebindings"), binding)
        .await
        .expect(201);
    let jane = server.by(user("jane"));
    let named = |name: &str| format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3D{name}");
    jane.get(&named("mine")).await.expect(200);
    jane.watch(&format!("{}&watch=1", named("mine"))).await;
    jane.get(CONFIG_MAPS).await.expect(403);
    let answer = jane.get(&named("other")).await;
    assert_eq!(
        answer.refusal().2,
        "configmaps \"other\" is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the \
         namespace \"default\""
    );
}

#[tokio::test]
async fn roles_count_from_the_moment_they_are_answered() {
    let server = Server::start().await;
    let jane = server.by(user("jane"));
    assert_eq!(jane.get(CONFIG_MAPS).await.code, 403);
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]});
    server.post(&format!("{roles}/roles"), role).await.expect(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    server
        .post(&format!("{roles}/rolebindings"), binding)
        .await
        .expect(201);
    assert_eq!(jane.get(CONFIG_MAPS).await.code, 200);
    assert_eq!(
        jane.delete(&format!("{CONFIG_MAPS}/x"), json!({})).await.code,
        403
    );
    assert_eq!(
        jane.get("/api/v1/namespaces/kube-system/configmaps").await.code,
        403
    );
    server
        .delete(&format!("{roles}/rolebindings/jane"), json!({}))
        .await
        .expect(200);
    assert_eq!(jane.get(CONFIG_MAPS).await.code, 403);
}

#[tokio::test]
async fn aggregated_roles_follow_their_parts() {
    let server = Server::start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let part = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["lab.io"], "resources": ["widgets"], "verbs": ["get"]}]});
    server.post(roles, part).await.expect(201);
    let has_widgets = |role: &Value| role["rules"].to_string().contains("widgets");
    server.until(roles, "view", has_widgets).await;
}

#[tokio::test]
async fn a_token_says_who_it_is_until_its_account_goes() {
    let server = Server::start().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server
        .post(
            accounts,
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}),
        )
        .await
        .expect(201);
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = server
        .post(&format!("{accounts}/robot/token"), request)
        .await
        .expect(201);
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    let ask = async || {
        let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(http_body_util::Full::new(bytes::Bytes::from_static(b"{}")))
            .unwrap();
        use http_body_util::BodyExt as _;
        let response = server.api.handle(request).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let (code, review) = ask().await;
    assert_eq!(
        (code, &review["status"]["userInfo"]["username"]),
        (201, &json!("system:serviceaccount:default:robot"))
    );
    server
        .delete(&format!("{accounts}/robot"), json!({}))
        .await
        .expect(200);
    assert_eq!(ask().await.0, 401);
}

#[tokio::test]
async fn a_secret_of_the_token_type_is_filled() {
    let server = Server::start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}}});
    server
        .until("/api/v1/namespaces/default/serviceaccounts", "default", |_| true)
        .await;
    server
        .post("/api/v1/namespaces/default/secrets", secret)
        .await
        .expect(201);
    let filled = server
        .until("/api/v1/namespaces/default/secrets", "t", |s| {
            s["data"]["token"].is_string()
        })
        .await;
    assert!(filled["data"]["ca.crt"].is_string());
    assert!(filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"].is_string());
}

#[tokio::test]
async fn a_bad_token_is_nobody_at_all() {
    let server = Server::start().await;
    let request = http::Request::get("/version")
        .header("authorization", "Bearer nonsense")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    assert_eq!(server.api.handle(request).await.status(), 401);
}

#[tokio::test]
async fn reviews_answer_for_oneself_and_for_others() {
    let server = Server::start().await;
    let ask = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(
        server.post(path, ask.clone()).await.expect(201)["status"]["allowed"],
        true
    );
    let jane = server.by(user("jane"));
    assert_eq!(jane.post(path, ask).await.expect(201)["status"]["allowed"], false);
    let ask = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "root", "groups": ["system:masters"], "resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(jane.post(path, ask.clone()).await.code, 403);
    assert_eq!(
        server.post(path, ask).await.expect(201)["status"]["allowed"],
        true
    );
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_hold() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let rule = |group: &str, resource: &str, verbs: Value| json!([{"apiGroups": [group], "resources": [resource], "verbs": verbs}]);
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let bind = |name: &str, kind: &str, role: &str| {
        json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}})
    };
    let server = Server::start().await;
    let grants = rule("rbac.authorization.k8s.io", "*", json!(["create", "update"]));
    let reads = rule("", "configmaps", json!(["get"]));
    server.post(&roles, role("grants", grants)).await.expect(201);
    server
        .post(&roles, role("reads", reads.clone()))
        .await
        .expect(201);
    server
        .post(&bindings, bind("grants", "Role", "grants"))
        .await
        .expect(201);
    server
        .post(&bindings, bind("reads", "Role", "reads"))
        .await
        .expect(201);

    let jane = server.by(user("jane"));
    jane.post(&roles, role("own", reads.clone())).await.expect(201);
    jane.post(&bindings, bind("own", "Role", "own")).await.expect(201);
    let deletes = rule("", "configmaps", json!(["delete"]));
    let says = "is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
                currently held:\n";
    for (path, body, name) in [
        (
            &roles,
            role("more", deletes.clone()),
            "roles.rbac.authorization.k8s.io \"more\"",
        ),
        (
            &bindings,
            bind("more", "ClusterRole", "cluster-admin"),
            "rolebindings.rbac.authorization.k8s.io \"more\"",
        ),
    ] {
        let answer = jane.post(path, body).await;
        assert_eq!(answer.code, 403);
        assert!(
            answer.refusal().2.starts_with(&format!("{name} {says}")),
            "{}",
            answer.value
        );
    }
    assert_eq!(
        jane.put(&format!("{roles}/own"), role("own", deletes.clone()))
            .await
            .code,
        403
    );
    assert_eq!(
        jane.post(&bindings, bind("lost", "Role", "nonesuch")).await.code,
        404
    );

    // Whoever may escalate, or bind, is let through.
    let more = rule("rbac.authorization.k8s.io", "roles", json!(["escalate", "bind"]));
    server.post(&roles, role("escalates", more)).await.expect(201);
    server
        .post(&bindings, bind("escalates", "Role", "escalates"))
        .await
        .expect(201);
    jane.post(&roles, role("more", deletes)).await.expect(201);
    jane.post(&bindings, bind("more", "Role", "more"))
        .await
        .expect(201);
    assert_eq!(
        jane.post(&bindings, bind("all", "ClusterRole", "cluster-admin"))
            .await
            .code,
        403
    );
}

#[tokio::test]
async fn tokens_and_certificates_end_with_their_time() {
    let start: jiff::Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let passed = Arc::new(AtomicI64::new(0));
    let pki = pki();
    let mut options = Options::new(pki.clone());
    let clock = passed.clone();
    options.clock = Arc::new(move || start + jiff::SignedDuration::from_secs(clock.load(Ordering::Relaxed)));
    let server = Server::with(options).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    server.post(accounts, account).await.expect(201);
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600}});
    let answer = server
        .post(&format!("{accounts}/robot/token"), request)
        .await
        .expect(201);
    assert_eq!(answer["status"]["expirationTimestamp"], "2030-01-01T00:10:00Z");
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    let ask = async || {
        let request = http::Request::get("/version")
            .header("authorization", format!("Bearer {token}"))
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        server.api.handle(request).await.status().as_u16()
    };
    assert_eq!(ask().await, 200);
    passed.store(599, Ordering::Relaxed);
    assert_eq!(ask().await, 200);
    passed.store(3600, Ordering::Relaxed);
    assert_eq!(ask().await, 401);

    // A certificate that was made today is long over by then, whatever TLS thought of it when the connection began.
    let (certificate, _) = pki.client_cert("ann", &["team"]).unwrap();
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let peer = Peer(Arc::new(PeerCertificate::parse(&der).unwrap()));
    let shown = async |server: &Server| {
        let request = http::Request::get("/version")
            .extension(peer.clone())
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        server.api.handle(request).await.status().as_u16()
    };
    assert_eq!(shown(&server).await, 401);
    assert_eq!(shown(&Server::with(Options::new(pki)).await).await, 200);
}

/// Who may change objects may not make any by changing what is not there.
#[tokio::test]
async fn what_an_update_makes_needs_the_right_to_create() {
    let server = Server::start().await;
    let group = "rbac.authorization.k8s.io";
    let rbac = format!("/apis/{group}/v1/namespaces/default");
    let rule =
        json!({"apiGroups": ["", group], "resources": ["configmaps", "roles"], "verbs": ["patch", "update"]});
    let one = json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["create"]});
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "changer"}, "rules": [rule, one]});
    server.post(&format!("{rbac}/roles"), role).await.expect(201);
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "changer"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "changer"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    server
        .post(&format!("{rbac}/rolebindings"), binding)
        .await
        .expect(201);
    let jane = server.by(user("jane"));
    let apply = |name: &str, own: &str| {
        let path = format!("{CONFIG_MAPS}/{name}?fieldManager=m");
        let body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": own}, "data": {"k": "v"}});
        let jane = &jane;
        async move { jane.patch(&path, "application/apply-patch+yaml", body).await }
    };
    assert_eq!(
        apply("a", "a").await.refusal().2,
        "configmaps \"a\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the \
         namespace \"default\""
    );
    // The right to make one name is none to make another.
    apply("mine", "a").await.expect(400);
    apply("mine", "mine").await.expect(201);
    let new = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "new"}, "rules": []});
    let answer = jane.put(&format!("{rbac}/roles/new"), new).await;
    assert_eq!(answer.refusal().1, "Forbidden");
    server.get(&format!("{rbac}/roles/new")).await.expect(404);
    server.get(&format!("{CONFIG_MAPS}/a")).await.expect(404);
}
