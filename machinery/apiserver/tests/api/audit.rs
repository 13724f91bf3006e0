//! The audit log from outside: which lines requests leave.

use std::io;
use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt, Full};
use machinery_apiserver::{AuditLog, Caller, Options};
use machinery_auth::UserInfo;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, JSON, MERGE, Server, pki};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A log in memory.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Audited {
    server: Server,
    log: AuditLog,
    paper: Paper,
}

impl Audited {
    async fn start() -> Self {
        let paper = Paper::default();
        let log = AuditLog::to(paper.clone()).unwrap();
        let mut options = Options::new(pki());
        options.audit = Some(log.clone());
        options.cluster_controllers = false;
        Self {
            server: Server::with(options).await,
            log,
            paper,
        }
    }

    /// The lines since the last time.
    async fn lines(&self) -> Vec<Value> {
        while !self.log.flush().await {}
        let bytes = std::mem::take(&mut *self.paper.0.lock());
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The only line since the last time.
    async fn line(&self) -> Value {
        let lines = self.lines().await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.into_iter().next().unwrap()
    }

    /// Sends a request with headers and waits for its whole answer, whose code is returned.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Value) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let user = UserInfo::new("tester", ["system:masters"]).authenticated();
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = request
            .extension(Caller(Arc::new(user)))
            .body(Full::new(bytes::Bytes::from(body)))
            .unwrap();
        let response = self.server.api.handle(request).await;
        let code = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        code
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test]
async fn a_request_leaves_a_line() {
    let audited = Audited::start().await;
    let headers = [
        ("audit-id", "mine"),
        ("user-agent", "a test"),
        ("x-forwarded-for", "10.0.0.7"),
    ];
    let code = audited.send("POST", CONFIG_MAPS, &headers, config_map("c")).await;
    assert_eq!(code, 201);
    let mut line = audited.line().await;
    for key in ["requestReceivedTimestamp", "stageTimestamp"] {
        let time = line.as_object_mut().unwrap().remove(key).unwrap();
        let time = time.as_str().unwrap();
        assert_eq!(time.len(), "2026-01-02T03:04:05.678901Z".len(), "{time}");
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
    let annotations = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    assert_eq!(
        line,
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "mine",
            "stage": "ResponseComplete", "requestURI": CONFIG_MAPS, "verb": "create",
            "user": {"username": "tester", "groups": ["system:masters", "system:authenticated"]},
            "sourceIPs": ["10.0.0.7"], "userAgent": "a test",
            "objectRef": {"resource": "configmaps", "namespace": "default", "name": "c", "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "code": 201},
            "annotations": annotations,
        })
    );
    let answer = audited.server.get(&format!("{CONFIG_MAPS}/c")).await;
    let line = audited.line().await;
    assert_eq!(line["auditID"], answer.headers["audit-id"].to_str().unwrap());
    assert_eq!(line["verb"], "get");
    assert!(line.get("sourceIPs").is_none());
    // What the body says about the object is in the line, and not what the server makes of it.
    audited
        .server
        .put(&format!("{CONFIG_MAPS}/c"), answer.value.clone())
        .await
        .expect(200);
    let object = &audited.line().await["objectRef"];
    let metadata = &answer.value["metadata"];
    assert_eq!(
        (&object["uid"], &object["resourceVersion"]),
        (&metadata["uid"], &metadata["resourceVersion"])
    );
    audited
        .server
        .delete(&format!("{CONFIG_MAPS}/c"), json!({}))
        .await
        .expect(200);
    assert_eq!(
        audited.line().await["responseStatus"],
        json!({"metadata": {}, "status": "Success", "code": 200,
            "details": {"name": "c", "kind": "configmaps", "uid": metadata["uid"]}})
    );
    for path in ["/healthz", "/livez?verbose", "/readyz", "/version"] {
        audited.server.get(path).await.expect(200);
    }
    assert_eq!(audited.lines().await, Vec::<Value>::new());
}

#[tokio::test]
async fn refusals_say_why() {
    let audited = Audited::start().await;
    let missing = format!("{CONFIG_MAPS}/missing");
    audited.server.get(&missing).await.expect(404);
    assert_eq!(
        audited.line().await["responseStatus"],
        json!({"metadata": {}, "status": "Failure", "message": "configmaps \"missing\" not found", "reason": "NotFound",
            "details": {"name": "missing", "kind": "configmaps"}, "code": 404})
    );
    // A client that reads no Status got one all the same, and the log has its code.
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    assert_eq!(audited.send("GET", &missing, &table, Value::Null).await, 404);
    assert_eq!(
        audited.line().await["responseStatus"],
        json!({"metadata": {}, "code": 404})
    );
    let nobody = audited
        .server
        .by(UserInfo::new("nobody", ["team"]).authenticated());
    nobody.get(CONFIG_MAPS).await.expect(403);
    let line = audited.line().await;
    assert_eq!(line["user"]["username"], "nobody");
    assert_eq!(line["responseStatus"]["reason"], "Forbidden");
    assert_eq!(
        line["annotations"],
        json!({"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""})
    );
    // At the door.
    let request = Request::get(CONFIG_MAPS)
        .header("authorization", "Bearer nonsense")
        .body(Full::new(bytes::Bytes::new()))
        .unwrap();
    assert_eq!(audited.server.api.handle(request).await.status(), 401);
    let line = audited.line().await;
    assert_eq!(line["stage"], "ResponseStarted");
    assert_eq!(line["user"], json!({}));
    assert_eq!(line["responseStatus"]["reason"], "Unauthorized");
    assert!(line.get("annotations").is_none());
}

#[tokio::test]
async fn acting_as_somebody_else_names_both() {
    let audited = Audited::start().await;
    let as_alice = [("impersonate-user", "alice"), ("impersonate-group", "team")];
    assert_eq!(
        audited.send("GET", CONFIG_MAPS, &as_alice, Value::Null).await,
        403
    );
    let line = audited.line().await;
    assert_eq!(line["user"]["username"], "tester");
    assert_eq!(
        line["impersonatedUser"],
        json!({"username": "alice", "groups": ["team", "system:authenticated"]})
    );
    assert_eq!(line["annotations"]["authorization.k8s.io/decision"], "forbid");
    // Whoever may not act as others is not taken for them.
    let only_group = [("impersonate-group", "team")];
    assert_eq!(
        audited.send("GET", CONFIG_MAPS, &only_group, Value::Null).await,
        400
    );
    let line = audited.line().await;
    assert!(line.get("impersonatedUser").is_none());
    assert!(line.get("annotations").is_none());
}

#[tokio::test]
async fn a_watch_leaves_a_line_when_it_begins_and_when_it_ends() {
    let audited = Audited::start().await;
    let path = format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dc");
    let watch = audited.server.watch(&path).await;
    let begun = audited.line().await;
    assert_eq!(begun["stage"], "ResponseStarted");
    assert_eq!(begun["verb"], "watch");
    assert_eq!(begun["objectRef"]["name"], "c");
    drop(watch);
    let ended = audited.line().await;
    assert_eq!(ended["stage"], "ResponseComplete");
    for key in [
        "auditID",
        "requestURI",
        "responseStatus",
        "annotations",
        "requestReceivedTimestamp",
    ] {
        assert_eq!(begun[key], ended[key], "{key}");
    }
    // Also one that never began.
    let answer = audited
        .server
        .get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=x"))
        .await;
    assert_eq!(answer.code, 500);
    let lines = audited.lines().await;
    let stages: Vec<&Value> = lines.iter().map(|line| &line["stage"]).collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
    assert!(lines.iter().all(|line| line["responseStatus"]["code"] == 500));
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_a_line() {
    let audited = Audited::start().await;
    let user = UserInfo::new("tester", ["system:masters"]).authenticated();
    let body = http_body_util::StreamBody::new(futures::stream::pending::<
        Result<http_body::Frame<bytes::Bytes>, std::convert::Infallible>,
    >());
    let request = Request::post(CONFIG_MAPS)
        .extension(Caller(Arc::new(user)))
        .body(body)
        .unwrap();
    let mut request = Box::pin(audited.server.api.handle(request));
    assert!(futures::poll!(&mut request).is_pending());
    drop(request);
    let line = audited.line().await;
    assert_eq!(line["stage"], "ResponseComplete");
    assert_eq!(line["responseStatus"]["code"], 504);
    assert_eq!(line["user"]["username"], "tester");
}

#[tokio::test]
async fn policies_have_their_say() {
    let audited = Audited::start().await;
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let policy = |name: &str, spec: Value| {
        let mut spec = spec;
        spec["matchConstraints"] = json!({"resourceRules": [rule]});
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": spec})
    };
    let binding = |name: &str, policy: &str, actions: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": actions}})
    };
    let (policies, bindings) = (
        format!("{GROUP}/validatingadmissionpolicies"),
        format!("{GROUP}/validatingadmissionpolicybindings"),
    );
    let server = &audited.server;
    let notes = json!([{"key": "seen", "valueExpression": "'a change of ' + request.name"}]);
    let spec = json!({"validations": [{"expression": "true"}], "auditAnnotations": notes});
    server
        .post(&policies, policy("notes.example.com", spec))
        .await
        .expect(201);
    let spec = json!({"validations": [{"expression": "has(object.data)", "message": "say something"}]});
    server
        .post(&policies, policy("watches.example.com", spec))
        .await
        .expect(201);
    for (name, policy) in [("b1", "notes.example.com"), ("b2", "watches.example.com")] {
        server
            .post(&bindings, binding(name, policy, json!(["Audit"])))
            .await
            .expect(201);
    }
    audited.lines().await;
    let of_policies = |line: Value| {
        let mut annotations = line["annotations"].clone();
        let map = annotations.as_object_mut().unwrap();
        map.retain(|key, _| !key.starts_with("authorization.k8s.io/"));
        annotations
    };
    // It is let through, and noted.
    server.post(CONFIG_MAPS, config_map("c")).await.expect(201);
    let failure = r#"[{"message":"say something","policy":"watches.example.com","binding":"b2","expressionIndex":0,"validationActions":["Audit"]}]"#;
    assert_eq!(
        of_policies(audited.line().await),
        json!({
            "notes.example.com/seen": "a change of c",
            "validation.policy.admission.k8s.io/validation_failure": failure,
        })
    );
    let answer = server
        .patch(&format!("{CONFIG_MAPS}/c"), MERGE, json!({"data": {"a": "b"}}))
        .await;
    assert!(answer.headers.get("warning").is_none());
    answer.expect(200);
    assert_eq!(
        of_policies(audited.line().await),
        json!({"notes.example.com/seen": "a change of c"})
    );
    // Reads are none of their business.
    server.send("GET", CONFIG_MAPS, JSON, "").await.expect(200);
    assert_eq!(of_policies(audited.line().await), json!({}));
}
