//! What members cost: `cargo run --release -p lockgate-sim --example scale`.

#![allow(clippy::print_stdout, reason = "it is what a measurement is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_sim::{Member, SimOptions};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};

/// The memory of this process in KiB, where the system tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or("");
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

async fn server(pki: &Arc<Pki>) -> ApiServer {
    let mut options = Options::new(pki.clone());
    options.bootstrap_roles = false;
    ApiServer::start(options)
        .await
        .expect("a server starts in memory")
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "web:1"}]},
            },
        },
    })
}

async fn idle_members() {
    const COUNT: u64 = 200;
    let pki = Arc::new(Pki::ephemeral().expect("keys can be made"));
    let mut servers = vec![server(&pki).await];
    let before = resident();
    for _ in 1..=COUNT {
        servers.push(server(&pki).await);
    }
    let with_servers = resident();
    let members: Vec<Member> = servers
        .iter()
        .map(|server| {
            Member::start(
                server,
                SimOptions {
                    pods: false,
                    ..SimOptions::default()
                },
            )
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let with_members = resident();
    println!("a server: {} KiB", (with_servers - before) / COUNT);
    println!(
        "its member with two nodes: {} KiB",
        (with_members - with_servers) / COUNT
    );
    drop(members);
}

async fn fill(pods: bool, count: usize) {
    let pki = Arc::new(Pki::ephemeral().expect("keys can be made"));
    let server = server(&pki).await;
    let mut options = SimOptions {
        delay: Duration::ZERO,
        pods,
        ..SimOptions::default()
    };
    options.nodes.cpu = "100000".to_owned();
    options.nodes.pods = 100_000;
    let _member = Member::start(&server, options);
    let local = server.local(UserInfo::new("tester", ["system:masters"]));
    let before = resident();
    let begun = Instant::now();
    for number in 0..count {
        local
            .create(deployment(&format!("web-{number}")))
            .await
            .expect("a Deployment is made");
    }
    let created = begun.elapsed();
    let mut revision = 0;
    while revision != server.revision() {
        revision = server.revision();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let all = local.list("apps/v1", "deployments", "default");
    let available = all
        .iter()
        .filter(|web| web["status"]["availableReplicas"] == 1)
        .count();
    println!(
        "{count} Deployments, pods {pods}: created in {created:?}, {available} available after {:?} (± 500 ms), {} writes, {} KiB each",
        begun.elapsed(),
        server.revision(),
        (resident() - before) / count as u64,
    );
    assert_eq!(available, count);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    idle_members().await;
    fill(false, 10_000).await;
    fill(true, 10_000).await;
}
