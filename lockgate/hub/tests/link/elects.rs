//! Elections. Time moves by itself as soon as everybody waits for it.

use std::time::Duration;

use lockgate_hub::{Election, ElectionOptions, Guard, Link, LinkError, Resource};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::faults::Fault;
use crate::harness::{Server, clock, config_map};

both!(one_is_elected_and_may_hand_over);

fn options(identity: &str) -> ElectionOptions {
    ElectionOptions {
        identity: identity.into(),
        ..ElectionOptions::default()
    }
}

fn path() -> String {
    Resource::leases().object("karmada-system", "lockgate-controller")
}

async fn lease(link: &Link) -> Value {
    serde_json::from_slice(&link.get(&path()).await.unwrap()).unwrap()
}

async fn one_is_elected_and_may_hand_over(server: Server) {
    check(&server.link).await;
}

/// What must hold of every server.
pub(crate) async fn check(link: &Link) {
    let first = Election::win(link, &options("first"), &clock()).await;
    assert!(first.guard().may_write());
    let held = lease(link).await;
    assert_eq!(held["spec"]["holderIdentity"], "first");
    assert_eq!(held["spec"]["leaseDurationSeconds"], 15);
    let renewed = held["spec"]["renewTime"].as_str().unwrap();
    assert_eq!(renewed.len(), "2026-01-01T00:00:00.000000Z".len(), "{renewed}");

    let guard = first.guard();
    first.release().await.unwrap();
    assert!(!guard.may_write());
    guard.lost().await;
    assert_eq!(lease(link).await["spec"]["holderIdentity"], "");
    let begun = Instant::now();
    let second = Election::win(link, &options("second"), &clock()).await;
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "a lease that was given up is free"
    );
    let held = lease(link).await;
    assert_eq!(held["spec"]["holderIdentity"], "second");
    assert_eq!(held["spec"]["leaseTransitions"], 1);
    second.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_renews_stays_and_one_that_dies_is_followed() {
    let server = Server::in_process(|_| {}).await;
    let first = Election::win(&server.link, &options("first"), &clock()).await;
    let link = server.link.clone();
    let rival = tokio::spawn(async move { Election::win(&link, &options("second"), &clock()).await });
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(first.guard().may_write() && !rival.is_finished());
    }
    let guard = first.guard();
    let died = Instant::now();
    drop(first);
    assert!(!guard.may_write());
    let second = rival.await.unwrap();
    let waited = died.elapsed().as_secs();
    assert!(
        (10..=17).contains(&waited),
        "it waits for the lease to run out: {waited} s"
    );
    assert!(second.guard().may_write());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_before_another_may_start() {
    for fault in [Fault::Cut, Fault::Hang, Fault::status(500, "InternalError")] {
        let server = Server::in_process(|_| {}).await;
        let (link, faults) = server.faulty();
        let first = Election::win(&link, &options("first"), &clock()).await;
        let (guard, lost) = (first.guard(), first.lost());
        let link = server.link.clone();
        let rival = tokio::spawn(async move { Election::win(&link, &options("second"), &clock()).await });
        tokio::time::sleep(Duration::from_millis(4900)).await;
        let cut = Instant::now();
        faults.always(Some(("leases", fault.clone())));
        while guard.may_write() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // It was renewed when it was won; a third of it is left.
        let writes = cut.elapsed().as_millis();
        assert!((5000..=5200).contains(&writes), "{fault:?}: {writes} ms");
        lost.await;
        let until = cut.elapsed().as_millis();
        assert!((10_000..=10_200).contains(&until), "{fault:?}: {until} ms");
        assert!(!rival.is_finished());
        assert!(rival.await.unwrap().guard().may_write());
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_failure_is_survived() {
    let server = Server::in_process(|_| {}).await;
    let (link, faults) = server.faulty();
    let election = Election::win(&link, &options("first"), &clock()).await;
    for fault in [
        Fault::Cut,
        Fault::AnswerLost,
        Fault::status(429, "TooManyRequests"),
    ] {
        faults.next("PUT", fault);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(election.guard().may_write());
    }
    // A lease that somebody deletes or touches is still ours.
    server.link.delete(&path(), &Default::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let touch = json!({"metadata": {"labels": {"touched": "yes"}}}).to_string();
    server
        .link
        .merge_patch(&path(), touch.into_bytes())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(election.guard().may_write());
    let held = lease(&server.link).await;
    assert_eq!(held["metadata"]["labels"]["touched"], "yes");
    assert_eq!(held["spec"]["holderIdentity"], "first");
}

/// A request waits for a connection after the guard was asked, and a process may be stopped meanwhile for as long as you like.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_hand_when_the_term_ends_is_not_sent() {
    let server = Server::over_tls().await;
    let election = Election::win(&server.link, &options("first"), &clock()).await;
    // This link asks no guard, as if it had asked just before.
    let client = election.guard().client(server.config.clone().unwrap()).unwrap();
    let link = Link::new(client);
    let maps = Resource::config_maps().collection("default");
    link.create(&maps, config_map("before", "1")).await.unwrap();
    drop(election);
    // By the connection that is open, and by a new one.
    for name in ["after", "later"] {
        let refused = link.create(&maps, config_map(name, "1")).await.unwrap_err();
        assert!(matches!(refused, LinkError::Unreachable(_)), "{refused}");
        let found = server
            .link
            .get(&Resource::config_maps().object("default", name))
            .await;
        assert_eq!(found, Err(LinkError::NotFound));
    }
    // Who has no rivals is not cut off.
    let client = Guard::always().client(server.config.clone().unwrap()).unwrap();
    Link::new(client)
        .create(&maps, config_map("after", "1"))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_lost() {
    let server = Server::in_process(|_| {}).await;
    let election = Election::win(&server.link, &options("first"), &clock()).await;
    let taken = json!({"spec": {"holderIdentity": "second"}}).to_string();
    server
        .link
        .merge_patch(&path(), taken.into_bytes())
        .await
        .unwrap();
    let begun = Instant::now();
    election.lost().await;
    assert!(begun.elapsed() <= Duration::from_secs(6));
    assert!(!election.guard().may_write());
    election.release().await.unwrap();
    assert_eq!(
        lease(&server.link).await["spec"]["holderIdentity"],
        "second",
        "it is not ours to give up"
    );
}

#[tokio::test(start_paused = true)]
async fn who_has_no_rivals_may_always_write() {
    let guard = Guard::always();
    assert!(guard.may_write());
    let lost = tokio::time::timeout(Duration::from_secs(3600), guard.lost()).await;
    assert!(lost.is_err());
}
