//! `lockgate controller` as a process: what it needs, how it leads, how it ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end by a panic")]

mod hub;

use std::time::Duration;

use hub::{TestHub, ended, lease_holder, until};
use tokio::process::{Child, Command};

fn start(hub: &TestHub, identity: &str) -> Child {
    hub.command(&["controller", "--metrics-address", "0", "--identity", identity])
        .spawn()
        .unwrap()
}

async fn signal(child: &Child, name: &str) {
    let pid = child.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args([name, &pid])
            .status()
            .await
            .unwrap()
            .success()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_without_definitions_is_told_how_to_get_them() {
    let hub = TestHub::bare().await;
    let (code, _, error) = hub.run(&["controller", "--metrics-address", "0"]).await;
    assert_eq!(code, 1);
    assert!(
        error.contains("lockgate crds | kubectl apply --server-side -f -"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_usage_says_what_is_right() {
    let hub = TestHub::bare().await;
    for (arguments, part) in [
        (
            &["controller", "--feature-gates", "Nonsense=true"][..],
            "there are Failover",
        ),
        (&["controller", "--metrics-address", "8080"], "127.0.0.1:8080"),
        (&["controller", "--context", "nowhere"], "there are hub"),
    ] {
        let (code, _, error) = hub.run(arguments).await;
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_end_gives_the_lease_back_and_another_takes_over() {
    let hub = TestHub::installed().await;
    let mut first = start(&hub, "first");
    until("the first leads", || {
        lease_holder(&hub).as_deref() == Some("first")
    })
    .await;
    let mut second = start(&hub, "second");
    signal(&first, "-TERM").await;
    assert_eq!(ended(&mut first).await, 0);
    until("the second leads", || {
        lease_holder(&hub).as_deref() == Some("second")
    })
    .await;
    signal(&second, "-INT").await;
    assert_eq!(ended(&mut second).await, 0);
    assert_eq!(lease_holder(&hub).as_deref(), Some(""), "the lease is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stands_by_ends_cleanly_too() {
    let hub = TestHub::installed().await;
    let mut first = start(&hub, "first");
    until("the first leads", || {
        lease_holder(&hub).as_deref() == Some("first")
    })
    .await;
    let mut second = start(&hub, "second");
    // It listens for signals before it asks for anything.
    tokio::time::sleep(Duration::from_millis(500)).await;
    signal(&second, "-TERM").await;
    assert_eq!(ended(&mut second).await, 0);
    assert_eq!(lease_holder(&hub).as_deref(), Some("first"));
    signal(&first, "-TERM").await;
    assert_eq!(ended(&mut first).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_another_took_ends_it_with_its_own_code() {
    let hub = TestHub::installed().await;
    let mut controller = start(&hub, "first");
    until("it leads", || lease_holder(&hub).as_deref() == Some("first")).await;
    let (api, plural) = ("coordination.k8s.io/v1", "leases");
    loop {
        let mut lease = hub
            .local
            .get(api, plural, "karmada-system", "lockgate-controller")
            .unwrap();
        lease["spec"]["holderIdentity"] = "another".into();
        lease["spec"]["leaseDurationSeconds"] = 3600.into();
        lease["spec"]["renewTime"] = "2099-01-01T00:00:00.000000Z".into();
        // A renewal in between makes a conflict: look again.
        if hub.local.update(lease).await.is_ok() {
            break;
        }
    }
    assert_eq!(ended(&mut controller).await, 7);
    assert_eq!(
        lease_holder(&hub).as_deref(),
        Some("another"),
        "it is not given back for others"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_and_health_are_served() {
    let hub = TestHub::installed().await;
    // A port that is free now; another process could take it, which would fail the test with a clear word.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = format!("127.0.0.1:{port}");
    let mut controller = hub
        .command(&[
            "controller",
            "--leader-elect",
            "false",
            "--metrics-address",
            &address,
        ])
        .spawn()
        .unwrap();
    let get = |path: &str| -> Option<String> {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&address).ok()?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    until("it is ready", || {
        get("/readyz").is_some_and(|text| text.starts_with("HTTP/1.1 200"))
    })
    .await;
    assert!(get("/healthz").unwrap().starts_with("HTTP/1.1 200"));
    assert!(get("/metrics").unwrap().contains("karmada_build_info"));
    assert_eq!(lease_holder(&hub), None, "without an election there is no lease");
    let (code, _, error) = hub
        .run(&[
            "controller",
            "--leader-elect",
            "false",
            "--metrics-address",
            &address,
        ])
        .await;
    assert_eq!(code, 3, "{error}");
    signal(&controller, "-TERM").await;
    assert_eq!(ended(&mut controller).await, 0);
}
