use http::Method;
use serde_json::json;

use super::*;
use crate::request::Query;

fn asked(method: Method, uri: &str) -> Facts {
    let (path, query) = uri.split_once('?').map_or((uri, None), |(p, q)| (p, Some(q)));
    let info = RequestInfo::parse(&method, path, &Query::parse(query));
    Facts {
        id: "an-id".to_owned(),
        uri: uri.to_owned(),
        verb: info.verb,
        received: "2026-01-02T03:04:05.5Z".parse().unwrap(),
        user: Some(Arc::new(UserInfo::new("ann", ["team"]))),
        object: ObjectRef::of(&info),
        is_long: is_long(&info),
        code: Some(200),
        ..Facts::default()
    }
}

fn written(facts: &Facts, stage: Stage) -> String {
    let now = "2026-01-02T03:04:06.000001999Z".parse().unwrap();
    String::from_utf8(line(facts, stage, now)).unwrap()
}

/// The line without what all lines have.
fn brief(facts: &Facts) -> Value {
    let mut event: Value = serde_json::from_str(&written(facts, Stage::ResponseComplete)).unwrap();
    let map = event.as_object_mut().unwrap();
    for key in [
        "kind",
        "apiVersion",
        "level",
        "auditID",
        "stage",
        "requestURI",
        "requestReceivedTimestamp",
        "stageTimestamp",
        "user",
    ] {
        assert!(map.remove(key).is_some(), "{key}");
    }
    event
}

#[test]
fn a_line_is_as_the_real_server_writes_it() {
    let mut facts = asked(Method::GET, "/api/v1/namespaces/n/pods?watch=1&labelSelector=a");
    facts.agent = "kubectl/v1".to_owned();
    facts.addresses = vec!["127.0.0.1".parse().unwrap()];
    facts.annotations.insert("b/c".to_owned(), "x < y".to_owned());
    facts.annotations.insert("a/b".to_owned(), String::new());
    assert_eq!(
        written(&facts, Stage::ResponseStarted),
        concat!(
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"an-id","stage":"ResponseStarted","#,
            r#""requestURI":"/api/v1/namespaces/n/pods?watch=1\u0026labelSelector=a","verb":"watch","#,
            r#""user":{"username":"ann","groups":["team"]},"sourceIPs":["127.0.0.1"],"userAgent":"kubectl/v1","#,
            r#""objectRef":{"resource":"pods","namespace":"n","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"#,
            r#""requestReceivedTimestamp":"2026-01-02T03:04:05.500000Z","stageTimestamp":"2026-01-02T03:04:06.000001Z","#,
            r#""annotations":{"a/b":"","b/c":"x \u003c y"}}"#,
            "\n"
        )
    );
}

#[test]
fn what_is_not_there_is_left_out() {
    let mut facts = asked(Method::GET, "/api");
    assert_eq!(
        brief(&facts),
        json!({"verb": "get", "responseStatus": {"metadata": {}, "code": 200}})
    );
    facts.user = None;
    facts.code = Some(401);
    let event: Value = serde_json::from_str(&written(&facts, Stage::ResponseStarted)).unwrap();
    assert_eq!(event["user"], json!({}));
}

#[test]
fn an_object_is_what_the_path_names_and_the_body_completes() {
    let check = |method: Method, uri: &str, body: Value, expected: Value| {
        let mut facts = asked(method, uri);
        if let Some(object) = &mut facts.object {
            object.complete(&body);
        }
        assert_eq!(brief(&facts)["objectRef"], expected, "{uri}");
    };
    let deployments = "/apis/apps/v1/namespaces/n/deployments";
    check(
        Method::POST,
        deployments,
        json!({"metadata": {"name": "d", "namespace": "other"}}),
        json!({"resource": "deployments", "namespace": "n", "name": "d", "apiGroup": "apps", "apiVersion": "v1"}),
    );
    check(
        Method::PUT,
        &format!("{deployments}/d/status"),
        json!({"metadata": {"name": "e", "uid": "u", "resourceVersion": "7"}}),
        json!({"resource": "deployments", "namespace": "n", "name": "d", "uid": "u", "apiGroup": "apps", "apiVersion": "v1",
            "resourceVersion": "7", "subresource": "status"}),
    );
    check(
        Method::GET,
        "/api/v1/services?fieldSelector=metadata.name%3Ds",
        Value::Null,
        json!({"resource": "services", "name": "s", "apiVersion": "v1"}),
    );
    check(
        Method::GET,
        "/api/v1/namespaces/n/services/s/proxy/a/b",
        Value::Null,
        json!({"resource": "services", "namespace": "n", "name": "s", "apiVersion": "v1", "subresource": "proxy"}),
    );
    check(
        Method::GET,
        "/api/v1/nodes/a%2Fb",
        Value::Null,
        json!({"resource": "nodes", "name": "a", "apiVersion": "v1", "subresource": "b"}),
    );
}

#[test]
fn an_answer_is_its_code_and_what_a_status_says() {
    let mut facts = asked(Method::GET, "/api/v1/nodes/x");
    let mut check = |code: Option<u16>, status: Option<Value>, expected: Value| {
        facts.code = code;
        facts.status = status;
        assert_eq!(brief(&facts)["responseStatus"], expected);
    };
    check(Some(404), None, json!({"metadata": {}, "code": 404}));
    let cause = json!({"reason": "FieldValueInvalid", "message": "no", "field": "spec"});
    let details = json!({"name": "x", "kind": "nodes", "group": "g", "uid": "u", "causes": [cause], "retryAfterSeconds": 3});
    check(
        Some(422),
        Some(
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {"continue": "token"}, "status": "Failure",
                "message": "all wrong", "reason": "Invalid", "details": details, "code": 422}),
        ),
        json!({"metadata": {}, "status": "Failure", "message": "all wrong", "reason": "Invalid", "details": details, "code": 422}),
    );
    check(
        Some(500),
        Some(json!({"status": "Failure", "message": "m", "details": {}, "code": 500})),
        json!({"metadata": {}, "status": "Failure", "message": "m", "details": {}, "code": 500}),
    );
    check(
        None,
        None,
        json!({"metadata": {}, "status": "Failure", "reason": "Timeout", "code": 504,
            "message": "the client went away before its answer was there; what it asked for may have been done"}),
    );
}

#[test]
fn who_acts_as_somebody_else_is_named_with_them() {
    let mut facts = asked(Method::GET, "/api/v1/nodes");
    let mut other = UserInfo::new("bob", ["a", "b"]);
    other.uid = "42".to_owned();
    other.extra.insert("why".to_owned(), vec!["because".to_owned()]);
    facts.acts_as = Some(Arc::new(other));
    assert_eq!(
        brief(&facts)["impersonatedUser"],
        json!({"username": "bob", "uid": "42", "groups": ["a", "b"], "extra": {"why": ["because"]}})
    );
}

#[test]
fn addresses_are_those_of_the_proxies_and_the_one_that_we_see() {
    let check = |forwarded: &'static str, real: &'static str, remote: &str, expected: &[&str]| {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-forwarded-for", forwarded), ("x-real-ip", real)] {
            if !value.is_empty() {
                headers.insert(name, http::HeaderValue::from_static(value));
            }
        }
        let found: Vec<String> = addresses(&headers, remote.parse().ok())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{forwarded} {real} {remote}");
    };
    check("", "", "127.0.0.1", &["127.0.0.1"]);
    check("", "", "::ffff:10.0.0.1", &["10.0.0.1"]);
    check("", "", "", &[]);
    check(
        "10.1.2.3, 127.0.0.1",
        "10.1.2.3",
        "127.0.0.1",
        &["10.1.2.3", "127.0.0.1"],
    );
    check(
        "010.1.2.3, ::1, fe80::1%eth0,nope, ::ffff:1.2.3.4",
        "10.4.5.6",
        "127.0.0.1",
        &["10.1.2.3", "::1", "1.2.3.4", "10.4.5.6", "127.0.0.1"],
    );
    check("1.2.3, 1.2.3.4.5, 256.1.1.1, +1.2.3.4,", "", "::1", &["::1"]);
}

#[test]
fn long_names_of_clients_are_cut() {
    let mut headers = HeaderMap::new();
    assert_eq!(agent(&headers), "");
    headers.insert(
        "user-agent",
        http::HeaderValue::from_str(&"x".repeat(1024)).unwrap(),
    );
    assert_eq!(agent(&headers), "x".repeat(1024));
    let long = format!("x{}", "é".repeat(600));
    headers.insert(
        "user-agent",
        http::HeaderValue::from_bytes(long.as_bytes()).unwrap(),
    );
    assert_eq!(agent(&headers), format!("x{}...TRUNCATED", "é".repeat(511)));
}

#[test]
fn some_answers_go_on_and_some_questions_are_not_worth_a_line() {
    for (uri, long) in [
        ("/api/v1/pods", false),
        ("/api/v1/pods?watch=1", true),
        ("/api/v1/namespaces/n/pods/p", false),
        ("/api/v1/namespaces/n/pods/p/log", true),
        ("/api/v1/namespaces/n/services/s/proxy/a/b", true),
    ] {
        assert_eq!(asked(Method::GET, uri).is_long, long, "{uri}");
    }
    for (path, expected) in [
        ("/healthz", true),
        ("/livez/ping", true),
        ("/readyz", true),
        ("/version", true),
        ("/api", false),
        ("/", false),
    ] {
        assert_eq!(is_small_talk(path), expected, "{path}");
    }
}
