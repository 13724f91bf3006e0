//! Two controllers, of which one leads. The leader is stopped in the middle of its work for longer than its lease; when it
//! goes on it has a head full of decisions that are no longer its to carry out.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lockgate_api::{keys, names};
use serde_json::json;

use crate::api::{Api, deployment, deployments, policies, policy, until, works};
use crate::control::{Controller, install, join_all};
use crate::servers::{Asked, Servers};

const NAMESPACE: &str = "lease";
const COUNT: usize = 60;
const LEASE: &[&str] = &["--lease-duration", "15"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_asleep_writes_nothing() {
    let _alone = crate::ALONE.lock().await;
    let Some(servers) = Servers::start(3) else { return };
    let hub = servers.api("hub").await;
    install(&servers);
    let mut first = Controller::start(&servers, "first", LEASE);
    join_all(&servers).await;
    assert_eq!(holder(&hub).await, "first");
    let mut second = Controller::start(&servers, "second", LEASE);

    hub.create("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}))
        .await;
    hub.create(
        &policies(NAMESPACE),
        &policy(NAMESPACE, "a", &["member1", "member2", "member3"]),
    )
    .await;
    create_all(&hub).await;
    // Some are there and many are not: the rest is queued, or half way.
    until("the first has begun", async || sent(&servers) >= 10).await;
    first.signal("-STOP").await;
    until("the second leads", async || holder(&hub).await == "second").await;
    let stopped_at = sent(&servers);
    assert!(
        stopped_at < 3 * COUNT,
        "there was nothing left to do: the test shows nothing"
    );

    // The second does all of it, and then other things: what the first has in mind is all out of date now.
    settled(&servers, &hub, &(0..COUNT).collect(), "nginx:1.27").await;
    let gone: BTreeSet<usize> = (0..COUNT / 2).collect();
    for number in &gone {
        hub.delete(&format!("{}/d{number}", deployments(NAMESPACE))).await;
    }
    let left: BTreeSet<usize> = (COUNT / 2..COUNT).collect();
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}});
    for number in &left {
        hub.merge(&format!("{}/d{number}", deployments(NAMESPACE)), &image)
            .await;
    }
    settled(&servers, &hub, &left, "nginx:1.28").await;
    assert_eq!(holder(&hub).await, "second");

    // What the first may have been stopped in the middle of sending, and nobody can take back: one that was removed meanwhile.
    let mut last = deployment(NAMESPACE, "d0", &json!({"group": "a", keys::MANAGED: "true"}));
    last["metadata"]["annotations"] = json!({
        keys::WORK_NAMESPACE: names::execution_namespace("member2"),
        keys::WORK_NAME: names::work_name("Deployment", NAMESPACE, "d0"),
    });
    let member = servers.api("member2").await;
    member.create(&deployments(NAMESPACE), &last).await;
    settled(&servers, &hub, &left, "nginx:1.28").await;

    let woken = Timestamp::now();
    first.signal("-CONT").await;
    assert_eq!(
        first.ended().await,
        Some(7),
        "it says that another took the lease"
    );
    settled(&servers, &hub, &left, "nginx:1.28").await;
    // A request that was half on its way when the first was stopped ends about now, and was not made with an old lease.
    let mut late: Vec<_> = asked(&servers).into_iter().flat_map(|(_, asked)| asked).collect();
    late.retain(|asked| asked.received >= woken);
    // No program can look at its lease and write to a socket in one step: a thread that was stopped between the two sends that
    // one request. A version keeps it from doing anything, and what it creates is removed by the one that leads.
    let threads = std::thread::available_parallelism().unwrap().get();
    let (removals, late): (Vec<_>, Vec<_>) = late.into_iter().partition(|asked| asked.verb == "delete");
    let is_harmless = |asked: &Asked| asked.verb == "create" || !asked.succeeded();
    assert!(
        late.len() <= threads && late.iter().all(is_harmless) && removals.len() <= threads,
        "members were asked to change something with a lease that had run out: {late:?} {removals:?}"
    );

    // The one that leads is well, and a new one stands by.
    let mut third = Controller::start(&servers, "third", LEASE);
    hub.delete(&format!("{}/d{}", deployments(NAMESPACE), COUNT - 1))
        .await;
    settled(&servers, &hub, &(COUNT / 2..COUNT - 1).collect(), "nginx:1.28").await;
    assert!(second.is_running() && third.is_running());
    assert_eq!(holder(&hub).await, "second");
    second.signal("-TERM").await;
    assert_eq!(second.ended().await, Some(0));
    until("the third leads", async || holder(&hub).await == "third").await;
}

async fn create_all(hub: &Api) {
    let path = deployments(NAMESPACE);
    let creates = (0..COUNT).map(|number| {
        let object = deployment(NAMESPACE, &format!("d{number}"), &json!({"group": "a"}));
        let path = &path;
        async move { hub.create(path, &object).await }
    });
    futures::future::join_all(creates).await;
}

async fn holder(hub: &Api) -> String {
    let path = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/lockgate-controller";
    let lease = hub.get(path).await.unwrap_or_default();
    lease["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// How many Deployments were made in members.
fn sent(servers: &Servers) -> usize {
    let all = asked(servers).into_iter().flat_map(|(_, asked)| asked);
    all.filter(|asked| asked.verb == "create" && asked.succeeded())
        .count()
}

/// What the members were asked to change, of Deployments.
fn asked(servers: &Servers) -> Vec<(String, Vec<Asked>)> {
    let of = |member: &String| {
        let mut asked = servers.audit(member);
        asked.retain(|asked| asked.resource.starts_with("deployments"));
        asked
    };
    servers
        .members()
        .iter()
        .map(|member| (member.clone(), of(member)))
        .collect()
}

/// Waits until every member has exactly these Deployments with this image, and the hub says so.
async fn settled(servers: &Servers, hub: &Api, numbers: &BTreeSet<usize>, image: &str) {
    let wanted: BTreeSet<String> = numbers.iter().map(|number| format!("d{number}")).collect();
    for member in servers.members() {
        let api = servers.api(&member).await;
        until(&format!("{member} has {} of {image}", wanted.len()), async || {
            let found = api.list(&deployments(NAMESPACE)).await;
            let names: BTreeSet<String> = found
                .iter()
                .filter(|object| object["spec"]["template"]["spec"]["containers"][0]["image"] == image)
                .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
                .collect();
            names == wanted && found.len() == wanted.len()
        })
        .await;
        until(&format!("the Works of {member} say so"), async || {
            let mut works = hub.list(&works(&member)).await;
            works.retain(|work| work["spec"]["workload"]["manifests"][0]["kind"] == "Deployment");
            works.len() == wanted.len()
                && works.iter().all(|work| {
                    work["status"]["lastApplied"]["workGeneration"] == work["metadata"]["generation"]
                        || crate::api::has(work, "Applied", "True")
                })
        })
        .await;
    }
}
