//! The process is killed with SIGKILL at random moments under load, and every write that was answered is found again.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may end where it likes and say where it is"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Connection, Fleet};

const ROUNDS: usize = 50;
const WRITERS: usize = 6;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What the server said yes to: the names that it created, and the last number that each counter was set to.
#[derive(Debug, Default)]
struct Answered {
    created: Vec<String>,
    counters: BTreeMap<String, u64>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answered_write_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let answered = Arc::new(Mutex::new(Answered::default()));
    for round in 0..ROUNDS {
        let mut fleet = Fleet::start(&["--members", "0", "--port", "0"], directory.path()).await;
        verify(&mut fleet.connect("hub").await, &answered).await;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let (connection, answered) = (fleet.connect("hub").await, answered.clone());
            writers.spawn(write_until_killed(connection, round, writer, answered));
        }
        tokio::time::sleep(Duration::from_millis(5 + random.below(150))).await;
        fleet.kill().await;
        while writers.join_next().await.is_some() {}
    }
    let fleet = Fleet::start(&["--members", "0", "--port", "0"], directory.path()).await;
    let found = verify(&mut fleet.connect("hub").await, &answered).await;
    let created = answered.lock().unwrap().created.len();
    println!("{ROUNDS} kills; {created} answered creates, {found} objects found");
    assert!(created > ROUNDS, "there was next to no load");
}

/// Creates objects and counts up in one of its own, until the server is gone.
async fn write_until_killed(
    mut connection: Connection,
    round: usize,
    writer: usize,
    answered: Arc<Mutex<Answered>>,
) {
    let counter = format!("counter-{writer}");
    for number in 0_u64.. {
        let name = format!("r{round}-w{writer}-{number}");
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"name": name}});
        let Some((code, _)) = connection.send("POST", CONFIG_MAPS, Some(&body)).await else {
            return;
        };
        assert_eq!(code, 201);
        answered.lock().unwrap().created.push(name);

        let value = round as u64 * 1_000_000 + number;
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": counter}, "data": {"n": value.to_string()}});
        let path = format!("{CONFIG_MAPS}/{counter}");
        let Some((code, _)) = connection.send("PUT", &path, Some(&body)).await else {
            return;
        };
        let code = if code == 404 {
            let Some((code, _)) = connection.send("POST", CONFIG_MAPS, Some(&body)).await else {
                return;
            };
            code
        } else {
            code
        };
        assert!(code == 200 || code == 201, "{code}");
        answered.lock().unwrap().counters.insert(counter.clone(), value);
    }
}

/// Everything that was answered is there. Returns how many objects there are.
async fn verify(connection: &mut Connection, answered: &Mutex<Answered>) -> usize {
    let (code, list) = connection.send("GET", CONFIG_MAPS, None).await.unwrap();
    assert_eq!(code, 200);
    let items: BTreeMap<&str, &Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (i["metadata"]["name"].as_str().unwrap(), &i["data"]))
        .collect();
    let answered = answered.lock().unwrap();
    for name in &answered.created {
        assert_eq!(
            items.get(name.as_str()).map(|d| &d["name"]),
            Some(&json!(name)),
            "an answered create is lost"
        );
    }
    for (name, wanted) in &answered.counters {
        let found: u64 = items[name.as_str()]["n"].as_str().unwrap().parse().unwrap();
        // A write that was under way may have reached the disk without its answer reaching us.
        assert!(found >= *wanted, "{name} is at {found}, {wanted} was answered");
    }
    items.len()
}

/// Numbers that can be had again: the seed is printed, and taken from LOCKGATE_SEED.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let fresh = || {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .as_nanos() as u64
        };
        let seed = std::env::var("LOCKGATE_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or_else(fresh);
        println!("LOCKGATE_SEED={seed}");
        Self(seed | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
