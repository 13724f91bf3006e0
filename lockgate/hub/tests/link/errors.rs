//! Refusals, as the embedded server and a real one say them.

use lockgate_hub::{DeleteOptions, Deleted, Link, LinkError, Resource};
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::harness::{Server, config_map};

both!(refusals_are_told_apart);

async fn refusals_are_told_apart(server: Server) {
    check(&server.link).await;
}

/// What must hold of every server.
pub(crate) async fn check(link: &Link) {
    let maps = Resource::config_maps();
    let path = maps.object("default", "errors");
    let all = maps.collection("default");

    assert_eq!(link.get(&path).await, Err(LinkError::NotFound));
    assert_eq!(
        link.replace(&path, config_map("errors", "1")).await,
        Err(LinkError::NotFound)
    );
    assert_eq!(
        link.merge_patch(&path, b"{}".to_vec()).await,
        Err(LinkError::NotFound)
    );
    assert_eq!(
        link.delete(&path, &DeleteOptions::default()).await,
        Err(LinkError::NotFound)
    );
    let elsewhere = config_map("errors", "1");
    let elsewhere = String::from_utf8(elsewhere)
        .unwrap()
        .replace("default", "nowhere");
    let made = link
        .create(&maps.collection("nowhere"), elsewhere.into_bytes())
        .await;
    assert_eq!(made, Err(LinkError::NotFound), "the namespace is missing");

    for path in [
        "/apis/no.example.org/v1/things",
        "/apis/apps/v1/things",
        "/api/v1/namespaces/default/things/x",
        "/apis/apps/v9",
    ] {
        assert_eq!(link.get(path).await, Err(LinkError::NotServed), "{path}");
    }
    let served = Resource::new("no.example.org", "v1", "things", "Thing", true);
    assert_eq!(
        link.create(&served.collection("default"), b"{}".to_vec()).await,
        Err(LinkError::NotServed)
    );
    assert_eq!(
        link.delete(&served.object("default", "x"), &DeleteOptions::default())
            .await,
        Err(LinkError::NotServed)
    );

    let made = link.create(&all, config_map("errors", "1")).await.unwrap();
    let made: Value = serde_json::from_slice(&made).unwrap();
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "lockgate");
    assert_eq!(
        link.create(&all, config_map("errors", "1")).await,
        Err(LinkError::AlreadyExists)
    );
    link.merge_patch(&path, br#"{"data":{"v":"2"}}"#.to_vec())
        .await
        .unwrap();
    let stale = made.to_string().into_bytes();
    assert_eq!(link.replace(&path, stale).await, Err(LinkError::Conflict));

    let invalid = link.merge_patch(&path, br#"{"data":{"a b":"2"}}"#.to_vec()).await;
    assert!(
        matches!(&invalid, Err(LinkError::Refused { code: 422, reason, message })
            if reason == "Invalid" && message.contains("a b")),
        "{invalid:?}"
    );
    let old = link
        .get(&format!("{all}?resourceVersion=1&resourceVersionMatch=Exact"))
        .await;
    assert!(matches!(old, Ok(_) | Err(LinkError::Gone)), "{old:?}");
    assert!(matches!(
        link.get("/api/v1 x").await,
        Err(LinkError::Refused { code: 0, .. })
    ));

    let uid = |uid: &str| DeleteOptions {
        uid: Some(uid.into()),
        ..DeleteOptions::default()
    };
    assert_eq!(
        link.delete(&path, &uid("another")).await,
        Err(LinkError::Conflict)
    );
    let version = DeleteOptions {
        resource_version: made["metadata"]["resourceVersion"].as_str().map(Into::into),
        ..DeleteOptions::default()
    };
    assert_eq!(link.delete(&path, &version).await, Err(LinkError::Conflict));

    let held = json!({"metadata": {"finalizers": ["example.org/held"]}}).to_string();
    link.merge_patch(&path, held.into_bytes()).await.unwrap();
    let background = DeleteOptions {
        propagation: Some("Background"),
        ..uid(made["metadata"]["uid"].as_str().unwrap())
    };
    let Ok(Deleted::Going(body)) = link.delete_answer(&path, &background).await else {
        panic!("a finalizer holds it");
    };
    assert!(String::from_utf8_lossy(&body).contains("deletionTimestamp"));
    let free = br#"{"metadata":{"finalizers":null}}"#.to_vec();
    let last = link.merge_patch(&path, free).await.unwrap();
    assert_eq!(link.get(&path).await, Err(LinkError::NotFound));
    let cache = lockgate_hub::Cache::detached(&maps);
    cache.learn(&body).unwrap();
    assert_eq!(cache.len(), 1);
    cache.learn(&last).unwrap();
    assert!(cache.is_empty(), "the last answer says that it is gone");

    link.create(&all, config_map("errors", "1")).await.unwrap();
    let gone = link.delete_answer(&path, &DeleteOptions::default()).await;
    assert!(matches!(gone, Ok(Deleted::Gone)), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_told_apart_too() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    let cases = [
        (Fault::Cut, "unreachable: "),
        (Fault::AnswerLost, "unreachable: "),
        (Fault::CutAfter(0), "unreachable: "),
        (Fault::Hang, "unreachable: no answer within 60s"),
        (
            Fault::Answer(404, "404 page not found\n".into(), None),
            "not served",
        ),
        (
            Fault::Answer(410, String::new(), None),
            "gone: that version is no longer known",
        ),
        (
            Fault::Answer(502, "<html>bad gateway".into(), None),
            "refused with 502 : <html>bad gateway",
        ),
        (Fault::Answer(503, "é".repeat(150), None), "refused with 503 : é"),
        (
            Fault::Answer(429, "later".into(), Some("3")),
            "too many requests: later",
        ),
        (
            Fault::Answer(429, String::new(), Some("Wed, 21 Oct 2026 07:28:00 GMT")),
            "too many requests: ",
        ),
        (
            Fault::status(401, "Unauthorized"),
            "refused with 401 Unauthorized: Unauthorized",
        ),
    ];
    for (fault, expected) in cases {
        faults.next("/version", fault.clone());
        let error = link.get("/version").await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{fault:?}: {error}");
    }
    let details = json!({"kind": "Status", "details": {"retryAfterSeconds": 9}, "reason": "TooManyRequests"});
    faults.next("/version", Fault::Answer(429, details.to_string(), Some("3")));
    let error = link.get("/version").await.unwrap_err();
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(9)));
    assert!(error.is_transient() && !LinkError::Conflict.is_transient());
    assert!(link.get("/version").await.is_ok());
}
