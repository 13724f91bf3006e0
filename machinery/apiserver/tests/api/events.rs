//! Events go an hour after their last change.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use machinery_apiserver::Options;
use serde_json::json;

use crate::harness::{MERGE, Server, pki};

const EVENTS: &str = "/api/v1/namespaces/default/events";

fn event(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "Why", "message": "so",
        "type": "Normal", "count": 1})
}

/// Paused time moves only when every other task waits.
async fn all_else_is_idle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_repeats_expires() {
    let seconds = Arc::new(AtomicI64::new(1_800_000_000));
    let mut options = Options::new(pki());
    let clock = seconds.clone();
    options.clock = Arc::new(move || jiff::Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap());
    let server = Server::with(options).await;
    server.post(EVENTS, event("old")).await.expect(201);
    server.post(EVENTS, event("repeated")).await.expect(201);
    all_else_is_idle().await;
    seconds.fetch_add(3000, Ordering::Relaxed);
    server
        .patch(&format!("{EVENTS}/repeated"), MERGE, json!({"count": 2}))
        .await
        .expect(200);
    all_else_is_idle().await;
    seconds.fetch_add(700, Ordering::Relaxed);
    // Time stands still but for the sleeping sweep, which the runtime then wakes at once.
    server.gone(EVENTS, "old").await;
    server.get(&format!("{EVENTS}/repeated")).await.expect(200);
    seconds.fetch_add(3000, Ordering::Relaxed);
    server.gone(EVENTS, "repeated").await;
}
