//! Events.

use std::sync::Arc;
use std::time::Duration;

use lockgate_hub::events::EventOptions;
use lockgate_hub::{EventTarget, Events, Link, Metrics, Resource};
use serde_json::Value;
use tokio::time::Instant;

use crate::faults::Fault;
use crate::harness::{Server, clock};

both!(events_are_sent_and_counted);

fn start(link: &Link) -> (Events, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new());
    let events = Events::start(link, &clock(), metrics.clone(), &EventOptions::default());
    (events, metrics)
}

fn target(namespace: &str, name: &str) -> EventTarget {
    EventTarget {
        api_version: "v1".into(),
        kind: if namespace.is_empty() {
            "Namespace"
        } else {
            "ConfigMap"
        }
        .into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
    }
}

/// The events about an object: type, reason, message and count.
async fn about(link: &Link, name: &str) -> Vec<String> {
    let path = format!(
        "{}?fieldSelector=involvedObject.name%3D{name}",
        Resource::events().collection("default")
    );
    let list: Value = serde_json::from_slice(&link.get(&path).await.unwrap()).unwrap();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
    let mut all: Vec<String> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            assert_eq!(event["source"]["component"], "lockgate");
            let (kind, reason) = (text(event, "type"), text(event, "reason"));
            format!("{kind} {reason} {} x{}", text(event, "message"), event["count"])
        })
        .collect();
    all.sort();
    all
}

async fn events_are_sent_and_counted(server: Server) {
    check(&server.link).await;
}

/// What must hold of every server.
pub(crate) async fn check(link: &Link) {
    let (events, metrics) = start(link);
    let web = target("default", "web");
    events.success(&web, "ApplyPolicySucceed", "Apply policy(shop/web) succeed");
    events.drained().await;
    events.success(&web, "ApplyPolicySucceed", "Apply policy(shop/web) succeed");
    events.drained().await;
    events.success(&web, "ApplyPolicySucceed", "Apply policy(shop/other) succeed");
    // These are merged while they wait, and with what was sent.
    for n in 0..10 {
        events.warn(&web, "ApplyPolicyFailed", &format!("failed {n}"));
    }
    events.warn(&target("", "system:node"), "SyncFailed", "no way");
    events.drained().await;
    events.warn(&web, "ApplyPolicyFailed", "failed 9");
    events.drained().await;
    let all = about(link, "web").await;
    assert_eq!(
        all[0],
        "Normal ApplyPolicySucceed Apply policy(shop/other) succeed x1"
    );
    assert_eq!(
        all[1],
        "Normal ApplyPolicySucceed Apply policy(shop/web) succeed x2"
    );
    // The first of them may have left before the others came.
    let warned: u64 = all[2..]
        .iter()
        .map(|event| event.rsplit('x').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(warned, 11, "{all:?}");
    assert_eq!(
        about(link, "system%3Anode").await,
        ["Warning SyncFailed no way x1"],
        "those of the cluster are in `default`"
    );
    assert_eq!(metrics.events_dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn successes_are_paced_and_dropped_and_warnings_are_not() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    let (events, metrics) = start(&link);
    for n in 0..300 {
        events.success(&target("default", &format!("s{n}")), "Done", "well");
        events.warn(&target("default", &format!("w{n}")), "Failed", "badly");
    }
    let begun = Instant::now();
    faults.reach(300, "POST").await;
    assert!(begun.elapsed() < Duration::from_secs(1), "warnings do not wait");
    events.drained().await;
    let took = begun.elapsed().as_millis();
    assert!(
        (4_000..5_000).contains(&took),
        "44 at 10 a second, after 20 at once, take {took} ms"
    );
    assert_eq!(metrics.events_dropped(), 236);
    assert_eq!(faults.asked("POST").len(), 364);
}

#[tokio::test(start_paused = true)]
async fn warnings_outlive_an_outage() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    let (events, metrics) = start(&link);
    faults.next("events", Fault::Cut);
    faults.next("events", Fault::status(503, "ServiceUnavailable"));
    faults.next("events", Fault::Answer(429, String::new(), Some("5")));
    events.warn(&target("default", "w"), "Failed", "badly");
    events.success(&target("default", "s"), "Done", "well");
    events.drained().await;
    assert_eq!(about(&link, "w").await, ["Warning Failed badly x1"]);

    // What no server will ever take is given up.
    events.warn(&target("nowhere", "w"), "Failed", "badly");
    events.drained().await;
    let dropped = metrics.events_dropped();
    assert!(dropped >= 1, "{dropped}");

    // An event that expired is made again, and goes on counting.
    let events_of = Resource::events().collection("default");
    let list: Value = serde_json::from_slice(&link.get(&events_of).await.unwrap()).unwrap();
    for event in list["items"].as_array().unwrap() {
        let name = event["metadata"]["name"].as_str().unwrap();
        let path = Resource::events().object("default", name);
        link.delete(&path, &Default::default()).await.unwrap();
    }
    events.warn(&target("default", "w"), "Failed", "badly");
    events.drained().await;
    assert_eq!(about(&link, "w").await, ["Warning Failed badly x2"]);
}
