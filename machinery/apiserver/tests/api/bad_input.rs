//! Bad input: a clear refusal, never a panic, never a hang, nothing lost.

use serde_json::json;

use crate::harness::{CONFIG_MAPS, JSON, JSON_PATCH, MERGE, STRATEGIC, Server};

#[tokio::test]
async fn every_mistake_has_its_answer() {
    let server = Server::start().await;
    server.config_map("a", json!({"k": "v"})).await;
    let a = format!("{CONFIG_MAPS}/a");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_object = format!(
        r#"{{"data":{}1{}}}"#,
        r#"{"a":"#.repeat(50_000),
        "}".repeat(50_000)
    );
    let protobuf = "application/vnd.kubernetes.protobuf";
    let cases: Vec<(&str, String, &str, Vec<u8>, u16)> = vec![
        ("POST", CONFIG_MAPS.into(), JSON, b"".to_vec(), 400),
        ("POST", CONFIG_MAPS.into(), JSON, b"{".to_vec(), 400),
        ("POST", CONFIG_MAPS.into(), JSON, b"[]".to_vec(), 400),
        ("POST", CONFIG_MAPS.into(), JSON, b"null".to_vec(), 422),
        ("POST", CONFIG_MAPS.into(), JSON, b"\xff\xfe".to_vec(), 400),
        ("POST", CONFIG_MAPS.into(), JSON, deep.clone().into_bytes(), 400),
        ("POST", CONFIG_MAPS.into(), JSON, deep_object.into_bytes(), 400),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"data":{"n":1e999}}"#.to_vec(),
            400,
        ),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"metadata":{"name":"x"},"data":{"n":5}}"#.to_vec(),
            400,
        ),
        (
            "POST",
            CONFIG_MAPS.into(),
            "application/yaml",
            b"a: [".to_vec(),
            400,
        ),
        ("POST", CONFIG_MAPS.into(), "text/plain", b"hello".to_vec(), 415),
        (
            "POST",
            CONFIG_MAPS.into(),
            protobuf,
            b"k8s\0garbage".to_vec(),
            400,
        ),
        ("POST", CONFIG_MAPS.into(), protobuf, b"nonsense".to_vec(), 400),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"metadata":{"name":"Bad_Name"}}"#.to_vec(),
            422,
        ),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"metadata":{"name":"../x"}}"#.to_vec(),
            422,
        ),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"metadata":{}}"#.to_vec(),
            422,
        ),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}"#.to_vec(),
            400,
        ),
        (
            "POST",
            CONFIG_MAPS.into(),
            JSON,
            br#"{"metadata":{"name":"x","namespace":"other"}}"#.to_vec(),
            400,
        ),
        (
            "POST",
            "/api/v1/namespaces/missing/configmaps".into(),
            JSON,
            br#"{"metadata":{"name":"x"}}"#.to_vec(),
            404,
        ),
        (
            "POST",
            a.clone(),
            JSON,
            br#"{"metadata":{"name":"x"}}"#.to_vec(),
            405,
        ),
        (
            "PUT",
            a.clone(),
            JSON,
            br#"{"metadata":{"name":"b"}}"#.to_vec(),
            400,
        ),
        (
            "PUT",
            a.clone(),
            JSON,
            br#"{"metadata":{"name":"a","resourceVersion":"x"}}"#.to_vec(),
            500,
        ),
        ("PATCH", a.clone(), MERGE, b"[]".to_vec(), 400),
        ("PATCH", a.clone(), JSON_PATCH, b"{}".to_vec(), 400),
        (
            "PATCH",
            a.clone(),
            JSON_PATCH,
            br#"[{"op":"fly","path":"/x"}]"#.to_vec(),
            422,
        ),
        (
            "PATCH",
            a.clone(),
            JSON_PATCH,
            br#"[{"op":"remove","path":"/nope"}]"#.to_vec(),
            422,
        ),
        (
            "PATCH",
            a.clone(),
            STRATEGIC,
            br#"{"$patch":"fly"}"#.to_vec(),
            500,
        ),
        ("PATCH", a.clone(), "application/x-unknown", b"{}".to_vec(), 415),
        (
            "PATCH",
            a.clone(),
            MERGE,
            br#"{"metadata":{"name":"b"}}"#.to_vec(),
            400,
        ),
        (
            "DELETE",
            a.clone(),
            JSON,
            br#"{"propagationPolicy":"Sideways"}"#.to_vec(),
            422,
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?labelSelector=a%20b%20c"),
            JSON,
            vec![],
            400,
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?labelSelector=a%20in%20("),
            JSON,
            vec![],
            400,
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?fieldSelector=nonsense"),
            JSON,
            vec![],
            400,
        ),
        ("GET", format!("{CONFIG_MAPS}?limit=x"), JSON, vec![], 400),
        (
            "GET",
            format!("{CONFIG_MAPS}?continue=nonsense"),
            JSON,
            vec![],
            400,
        ),
        ("GET", format!("{CONFIG_MAPS}?continue=e30"), JSON, vec![], 400),
        (
            "GET",
            format!("{CONFIG_MAPS}?resourceVersion=-5"),
            JSON,
            vec![],
            400,
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?resourceVersionMatch=Exact"),
            JSON,
            vec![],
            422,
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true"),
            JSON,
            vec![],
            422,
        ),
        (
            "GET",
            format!("{CONFIG_MAPS}?watch=1&resourceVersion=x"),
            JSON,
            vec![],
            500,
        ),
        ("GET", "/api/v1/nonesuch".into(), JSON, vec![], 404),
        ("GET", "/apis/nonesuch/v1/things".into(), JSON, vec![], 404),
        ("GET", "/nonesuch".into(), JSON, vec![], 404),
        ("GET", format!("{CONFIG_MAPS}/a/nonesuch"), JSON, vec![], 404),
        (
            "GET",
            "/api/v1/namespaces/default/namespaces/x".into(),
            JSON,
            vec![],
            404,
        ),
    ];
    let mut wrong = Vec::new();
    for (method, path, content_type, body, code) in cases {
        let shown = String::from_utf8_lossy(&body)
            .chars()
            .take(60)
            .collect::<String>();
        let answer = server.send(method, &path, content_type, body).await;
        if answer.code != code {
            wrong.push(format!(
                "{method} {path} {shown}: {} instead of {code}: {}",
                answer.code, answer.value
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.get(&a).await.expect(200)["data"]["k"], "v");
}

#[tokio::test]
async fn an_answer_that_nobody_writes_is_refused() {
    let server = Server::start().await;
    let user = std::sync::Arc::new(machinery_auth::UserInfo::new("tester", ["system:masters"]));
    let request = http::Request::get(CONFIG_MAPS)
        .header("accept", "application/vnd.kubernetes.protobuf")
        .extension(machinery_apiserver::Caller(user))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    assert_eq!(server.api.handle(request).await.status(), 406);
}
