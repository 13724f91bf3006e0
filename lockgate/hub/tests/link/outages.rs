//! What a follower does when its watch ends, fails, or falls out of the server's memory. Time here moves by itself as soon as
//! everybody waits for it.

use std::time::Duration;

use lockgate_hub::{DeleteOptions, LinkError, Resource, follow};
use serde_json::json;
use tokio::time::Instant;

use crate::faults::{Fault, Faults};
use crate::harness::{Server, Told, config_map};

const WATCH: &str = "configmaps?labelSelector=app%3Dit&watch=true";
const LIST: &str = "configmaps?labelSelector=app%3Dit&limit=";

async fn start() -> (Server, Told, Faults) {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    put(&server, "a", "1").await;
    let mut told = Told::follow(&link);
    told.until("+a=1").await;
    faults.reach(1, WATCH).await;
    (server, told, faults)
}

async fn put(server: &Server, name: &str, v: &str) {
    let maps = Resource::config_maps();
    let body = config_map(name, v);
    match server
        .link
        .create(&maps.collection("default"), body.clone())
        .await
    {
        Err(LinkError::AlreadyExists) => server.link.replace(&maps.object("default", name), body).await,
        made => made,
    }
    .unwrap();
}

async fn remove(server: &Server, name: &str) {
    let path = Resource::config_maps().object("default", name);
    server
        .link
        .delete(&path, &DeleteOptions::default())
        .await
        .unwrap();
}

/// The server tells a watch that its version is too old.
fn too_old() -> Fault {
    let event = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": "Expired", "message": "too old resource version: 1 (2)", "code": 410}});
    Fault::Stream(format!("{event}\n"))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_goes_on_where_it_ended() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    for fault in [
        Fault::EndAfter(1),
        Fault::CutAfter(1),
        Fault::EndAfter(2),
        Fault::CutAfter(0),
    ] {
        faults.next(WATCH, fault);
    }
    let mut told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    for n in 1..=8 {
        put(&server, "a", &n.to_string()).await;
    }
    let all = told.until("a=7>8").await;
    assert_eq!(
        all,
        [
            "+a=1", "a=1>2", "a=2>3", "a=3>4", "a=4>5", "a=5>6", "a=6>7", "a=7>8"
        ]
    );
    assert_eq!(faults.asked(LIST).len(), 1, "listed once");
    assert_eq!(faults.asked(WATCH).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_means_a_new_list() {
    for fault in [too_old(), Fault::status(410, "Expired")] {
        let server = Server::in_process(|_| {}).await;
        let (link, faults) = server.faulty();
        put(&server, "a", "1").await;
        faults.next(WATCH, fault);
        let mut told = Told::follow(&link);
        faults.reach(2, WATCH).await;
        put(&server, "b", "1").await;
        assert_eq!(told.until("+b=1").await, ["+a=1", "+b=1"]);
        assert_eq!(faults.asked(LIST).len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_continues_no_watch_is_not_listed_without_a_break() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    faults.always(Some((WATCH, too_old())));
    let mut told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let lists = faults.asked(LIST).len();
    assert!((20..40).contains(&lists), "{lists} lists in ten minutes");
    faults.always(None);
    put(&server, "a", "1").await;
    told.until("+a=1").await;
}

#[tokio::test(start_paused = true)]
async fn pages_that_are_too_much_are_made_smaller() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    faults.next(LIST, Fault::Hang);
    faults.next(LIST, Fault::CutAfter(0));
    let told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    for (asked, page) in faults.asked(LIST).iter().zip(["200", "100", "50"]) {
        assert!(asked.ends_with(&format!("limit={page}")), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_vanished_meanwhile_is_told_once() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    put(&server, "a", "1").await;
    put(&server, "b", "1").await;
    put(&server, "c", "1").await;
    // The first watch breaks at once and cannot be resumed.
    faults.next(WATCH, Fault::Cut);
    faults.next(WATCH, Fault::Cut);
    faults.next(WATCH, too_old());
    let mut told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    remove(&server, "a").await;
    put(&server, "b", "2").await;
    put(&server, "d", "1").await;
    let mut all = told.until_now(&server.server).await;
    assert_eq!(all.drain(..3).collect::<Vec<_>>(), ["+a=1", "+b=1", "+c=1"]);
    assert_eq!(all, ["b=1>2", "+d=1", "-a"]);
    assert_eq!(faults.asked(LIST).len(), 2);
    assert_eq!(told.following.cache.trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_comes_in_pages_and_starts_again_when_it_expires() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    for n in 0..1100 {
        put(&server, &format!("m{n:04}"), "1").await;
    }
    faults.next("continue=", Fault::status(410, "Expired"));
    let mut told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    let all = told.until_now(&server.server).await;
    assert_eq!(all.len(), 1100, "each is told once");
    assert_eq!(told.following.cache.len(), 1100);
    assert_eq!(faults.asked("limit=200").len(), 8, "two pages, then six");
}

#[tokio::test(start_paused = true)]
async fn failures_are_waited_out_ever_longer() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    put(&server, "a", "1").await;
    let faulty = [
        Fault::status(500, "InternalError"),
        Fault::Cut,
        Fault::status(503, "ServiceUnavailable"),
        Fault::Answer(502, "<html>".into(), None),
        Fault::Answer(200, "no JSON".into(), None),
        Fault::CutAfter(0),
        Fault::Answer(200, "".into(), None),
        Fault::status(403, "Forbidden"),
    ];
    let count = faulty.len();
    for fault in faulty {
        faults.next(LIST, fault);
    }
    let begun = Instant::now();
    let told = Told::follow(&link);
    faults.reach(1, LIST).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(matches!(
        told.following.cache.trouble(),
        Some(LinkError::Refused { code: 500, .. })
    ));
    assert!(!told.following.cache.synced());
    told.following.cache.wait_synced().await;
    // 50 ms, 100 ms and so on, eight times.
    let expected = Duration::from_millis(50 * 255);
    assert!(begun.elapsed() >= expected && begun.elapsed() < expected + Duration::from_secs(2));
    assert_eq!(faults.asked(LIST).len(), count + 1);
    assert_eq!(told.following.cache.trouble(), None);

    // However long it lasts, somebody asks every half minute, and the cache stays.
    faults.always(Some(("configmaps", Fault::Cut)));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let before = faults.asked(WATCH).len();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(faults.asked(WATCH).len() - before, 120);
    assert_eq!(told.following.cache.len(), 1);
    assert!(told.following.cache.synced());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_it() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    faults.next(LIST, Fault::Answer(429, "slow down".into(), Some("7")));
    let begun = Instant::now();
    let told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    let took = begun.elapsed();
    assert!((7..9).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_replaced() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    faults.next(WATCH, Fault::Stream(String::new()));
    faults.next(WATCH, Fault::Hang);
    let mut told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    put(&server, "a", "1").await;
    assert_eq!(told.until("+a=1").await, ["+a=1"]);
    assert_eq!(faults.asked(LIST).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_costs_a_watch_and_no_more() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    for line in [
        "no JSON\n",
        "{}\n",
        "{\"type\":\"ADDED\",\"object\":{}}\n",
        "\u{fffd}\n",
    ] {
        faults.next(WATCH, Fault::Stream(line.into()));
    }
    // A kind of event that nobody knows is no failure.
    faults.next(
        WATCH,
        Fault::Stream("{\"type\":\"NEW\",\"object\":{}}\n\n".into()),
    );
    let mut told = Told::follow(&link);
    told.following.cache.wait_synced().await;
    put(&server, "a", "1").await;
    assert_eq!(told.until("+a=1").await, ["+a=1"]);
    assert_eq!(faults.asked(WATCH).len(), 6);
    assert_eq!(faults.asked(LIST).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_later_is_found() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    let widgets = Resource::new("it.example.org", "v1", "widgets", "Widget", true);
    let following = follow(&link, &widgets, "", None, |_| {});
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(following.cache.trouble(), Some(LinkError::NotServed));
    let asked = faults.asked("widgets").len();
    assert!((15..=25).contains(&asked), "every few seconds: {asked}");
    server
        .make(
            &Resource::crds(),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.it.example.org"},
                "spec": {"group": "it.example.org", "scope": "Namespaced",
                    "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object",
                            "x-kubernetes-preserve-unknown-fields": true}}}]}}),
        )
        .await;
    following.cache.wait_synced().await;
    let widget = json!({"apiVersion": "it.example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"}});
    let made = server.make(&widgets, widget).await;
    while following.cache.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let cached = following.cache.find("default", "w").unwrap();
    assert_eq!(made["metadata"]["uid"], cached.uid);
    assert_eq!(cached.generation, 1);

    // A kind that goes away again is old, not empty, until its absence is certain.
    server
        .link
        .delete(
            &Resource::crds().object("", "widgets.it.example.org"),
            &DeleteOptions::default(),
        )
        .await
        .unwrap();
    while following.cache.trouble() != Some(LinkError::NotServed) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(following.cache.synced());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_after_the_end() {
    let (server, told, faults) = start().await;
    let cache = told.following.cache.clone();
    drop(told.following);
    put(&server, "b", "1").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    cache.learn(&config_map("c", "1")).unwrap();
    assert_eq!(cache.len(), 2);
    assert_eq!(*told.log.borrow(), ["+a=1"]);
    assert_eq!(faults.asked(WATCH).len(), 1, "nobody watches any more");
}
