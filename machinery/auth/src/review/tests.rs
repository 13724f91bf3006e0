use super::*;
use crate::rbac::RbacIndex;
use crate::token::BoundObjectRef;

fn index() -> RbacIndex {
    RbacIndex::from_objects(&[
        json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
            {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
        ]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"},
               "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "bob"}]}),
        json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "ns"},
               "roleRef": {"kind": "Role", "name": "gone"}, "subjects": [{"kind": "User", "name": "bob"}]}),
    ])
    .unwrap()
}

fn ask(kind: AccessReview, object: &Value, caller: &UserInfo) -> Value {
    assert_eq!(kind.validate(object), []);
    let user = kind.user(object, caller);
    kind.answer(object, &index().authorize(&kind.attributes(object, &user)))
}

#[test]
fn access_reviews() {
    let (bob, admin) = (
        UserInfo::new("bob", ["g"]),
        UserInfo::new("admin", ["system:masters"]),
    );
    let pods = json!({"verb": "get", "resource": "pods", "name": "a", "namespace": "ns"});
    let because = r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "bob""#;
    let gone = r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#;
    let own = json!({"spec": {"resourceAttributes": pods}});
    assert_eq!(
        ask(AccessReview::SelfSubject, &own, &bob),
        json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
               "spec": {"resourceAttributes": pods}, "status": {"allowed": true, "reason": because}})
    );
    assert_eq!(
        ask(AccessReview::SelfSubject, &own, &admin)["status"],
        json!({"allowed": true})
    );
    let path = json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/healthz"}}});
    assert_eq!(
        ask(AccessReview::SelfSubject, &path, &bob)["status"],
        json!({"allowed": true, "reason": because})
    );
    let other = json!({"spec": {"user": "bob", "resourceAttributes": {"verb": "list", "resource": "pods"}}});
    assert_eq!(
        ask(AccessReview::Subject, &other, &admin)["status"],
        json!({"allowed": false})
    );
    let local = json!({"metadata": {"namespace": "ns"}, "spec": {"groups": ["system:masters"], "resourceAttributes": pods}});
    assert_eq!(
        ask(AccessReview::LocalSubject, &local, &bob)["status"],
        json!({"allowed": true})
    );
    let denied = json!({"spec": {"user": "bob", "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "ns"}}});
    assert_eq!(
        ask(AccessReview::Subject, &denied, &bob)["status"],
        json!({"allowed": false, "reason": gone})
    );
}

#[test]
fn access_reviews_are_validated() {
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "a"});
    let path = json!({"verb": "get", "path": "/x"});
    let fields = |kind: AccessReview, object: Value| -> Vec<String> {
        kind.validate(&object)
            .into_iter()
            .map(|error| error.field)
            .collect()
    };
    use AccessReview::{LocalSubject, SelfSubject, Subject};
    for (kind, object, expected) in [
        (SelfSubject, json!({}), vec!["spec.resourceAttributes"]),
        (
            SelfSubject,
            json!({"spec": {"resourceAttributes": pods, "nonResourceAttributes": path}}),
            vec!["spec.nonResourceAttributes"],
        ),
        (
            Subject,
            json!({"spec": {"resourceAttributes": pods}}),
            vec!["spec.user"],
        ),
        (
            LocalSubject,
            json!({"metadata": {"namespace": "b"}, "spec": {"user": "u", "resourceAttributes": pods}}),
            vec!["spec.resourceAttributes.namespace"],
        ),
        (
            LocalSubject,
            json!({"spec": {"user": "u", "nonResourceAttributes": path}}),
            vec!["spec.nonResourceAttributes"],
        ),
    ] {
        assert_eq!(fields(kind, object), expected);
    }
}

#[test]
fn who_am_i() {
    let mut admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
    admin.uid = "admin-uid".into();
    let now = "2026-11-15T07:31:35.123Z".parse().unwrap();
    // As recorded from a real server.
    let recorded = r#"{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":"2026-11-15T07:31:35Z"},"status":{"userInfo":{"username":"admin","uid":"admin-uid","groups":["system:masters","system:authenticated"]}}}"#;
    assert_eq!(
        self_subject_review(&admin, now),
        serde_json::from_str::<Value>(recorded).unwrap()
    );
}

#[test]
fn what_may_i() {
    let index = index();
    assert_eq!(
        self_subject_rules_review(&index.rules_for(&UserInfo::new("bob", [] as [&str; 0]), "ns")),
        json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
        "status": {
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
            "incomplete": false,
            "evaluationError": "role.rbac.authorization.k8s.io \"gone\" not found",
        }})
    );
}

#[test]
fn tokens_reviewed_and_requested() {
    let object = json!({"spec": {"token": "t"}});
    let user = UserInfo::new("bob", ["g"]);
    assert_eq!(
        token_review(&object, Ok((&user, &["api".to_owned()]))),
        json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": {"token": "t"},
               "status": {"authenticated": true, "user": {"username": "bob", "groups": ["g"]}, "audiences": ["api"]}})
    );
    assert_eq!(
        token_review(&object, Err("invalid bearer token"))["status"],
        json!({"user": {}, "error": "invalid bearer token"})
    );
    let now = "2026-11-15T07:31:35Z".parse().unwrap();
    let issued = Issued {
        token: "t".into(),
        expires: "2026-11-15T08:31:35Z".parse().unwrap(),
        audiences: vec!["api".into()],
        id: "i".into(),
    };
    let mut request = TokenRequest {
        audiences: vec![],
        expiration_seconds: 3600,
        bound: None,
    };
    assert_eq!(
        token_request("ns", "sa", &request, &issued, now),
        json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": "sa", "namespace": "ns", "creationTimestamp": "2026-11-15T07:31:35Z"},
            "spec": {"audiences": ["api"], "expirationSeconds": 3600, "boundObjectRef": null},
            "status": {"token": "t", "expirationTimestamp": "2026-11-15T08:31:35Z"}})
    );
    request.bound = Some(BoundObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: "p".into(),
        uid: String::new(),
    });
    assert_eq!(
        token_request("ns", "sa", &request, &issued, now)["spec"]["boundObjectRef"],
        json!({"kind": "Pod", "apiVersion": "v1", "name": "p"})
    );
}
