//! The controller is killed again and again, in the middle of everything that it does, and the fleet ends up as if it had
//! not been: the same steps are taken twice, once in peace and once under fire, and after each step the two are compared,
//! together with every object that was ever made or deleted in a member.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, bindings, deployment, deployments, policies, policy, until, works};
use crate::control::{Controller, install, join_all};
use crate::servers::Servers;

const COUNT: usize = 60;
const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];

/// What is done, one after the other.
const STEPS: &[Step] = &[
    Step::Create,
    Step::MoveFirst,
    Step::Touch,
    Step::DeleteThird,
    Step::MoveBoth,
    Step::DeleteRest,
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Create,
    MoveFirst,
    Touch,
    DeleteThird,
    MoveBoth,
    DeleteRest,
}

/// After how many writes of ours, on all servers together, the process is killed; each step takes the next few.
const AFTER: [usize; 18] = [1, 40, 90, 2, 25, 60, 1, 30, 70, 3, 12, 33, 1, 45, 80, 5, 20, 50];
const KILLS_PER_STEP: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_leaves_what_one_in_peace_does() {
    let _alone = crate::ALONE.lock().await;
    let Some(servers) = Servers::start(3) else { return };
    install(&servers);
    let world = World {
        hub: servers.api("hub").await,
        members: [
            servers.api("member1").await,
            servers.api("member2").await,
            servers.api("member3").await,
        ],
        servers: &servers,
    };
    // The same name in the lease, so that the next one need not wait for it.
    let calm = Controller::start(&servers, "mortal", &[]);
    join_all(&servers).await;
    let mut expected = Vec::new();
    for step in STEPS {
        world.take(*step, "calm").await;
        world.settle("calm", *step).await;
        expected.push((world.look("calm").await, world.history("calm")));
    }
    calm.kill().await;

    let mut kills = 0;
    for (number, step) in STEPS.iter().enumerate() {
        world.take(*step, "storm").await;
        for after in &AFTER[number * KILLS_PER_STEP..][..KILLS_PER_STEP] {
            let begun = world.writes();
            let controller = Controller::start(&servers, "mortal", &[]);
            let wanted = &expected[number];
            if world.reaches(begun + after, wanted).await {
                kills += 1;
                println!("{step:?}: killed after {} writes", world.writes() - begun);
            }
            controller.kill().await;
        }
        let last = Controller::start(&servers, "mortal", &[]);
        world.settle("storm", *step).await;
        let (looks, history) = &expected[number];
        let found = world.becomes("storm", looks).await;
        for (what, object) in &found {
            assert_eq!(Some(object), looks.get(what), "{step:?}: {what}");
        }
        let (found, wanted): (BTreeSet<_>, BTreeSet<_>) = (found.keys().collect(), looks.keys().collect());
        assert_eq!(found, wanted, "{step:?}");
        // Requests that a kill cut off were carried out and count as no success: there may be fewer, never more.
        for (what, times) in world.history("storm") {
            let calm = history.get(&what).copied().unwrap_or(0);
            assert!(times <= calm, "{step:?}: {what} {times} times, not {calm}");
        }
        last.kill().await;
    }
    println!("{kills} kills");
    assert!(kills >= 10, "only {kills} kills found it at work");
}

/// Everything that is compared, by what it is.
type Looks = BTreeMap<String, Value>;

struct World<'a> {
    servers: &'a Servers,
    hub: Api,
    members: [Api; 3],
}

impl World<'_> {
    /// What a user does.
    async fn take(&self, step: Step, namespace: &str) {
        let hub = &self.hub;
        let object = |number: usize| format!("{}/d{number:02}", deployments(namespace));
        match step {
            Step::Create => {
                hub.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))
                    .await;
                hub.create(
                    &policies(namespace),
                    &policy(namespace, "a", &["member1", "member2"]),
                )
                .await;
                hub.create(
                    &policies(namespace),
                    &policy(namespace, "b", &["member2", "member3"]),
                )
                .await;
                for number in 0..COUNT {
                    let labels = json!({"group": if number.is_multiple_of(2) { "a" } else { "b" }});
                    let template = deployment(namespace, &format!("d{number:02}"), &labels);
                    hub.create(&deployments(namespace), &template).await;
                }
            }
            Step::MoveFirst => self.place(namespace, "a", &["member3"]).await,
            Step::Touch => {
                for number in 0..COUNT {
                    hub.merge(
                        &object(number),
                        &json!({"spec": {"replicas": 3}, "metadata": {"labels": {"touched": "yes"}}}),
                    )
                    .await;
                }
            }
            Step::DeleteThird => {
                for number in (0..COUNT).filter(|number| number % 3 == 0) {
                    hub.delete(&object(number)).await;
                }
            }
            Step::MoveBoth => {
                self.place(namespace, "a", &["member1", "member3"]).await;
                self.place(namespace, "b", &["member1"]).await;
            }
            Step::DeleteRest => {
                for number in (0..COUNT).filter(|number| !number.is_multiple_of(3)) {
                    hub.delete(&object(number)).await;
                }
            }
        }
    }

    async fn place(&self, namespace: &str, name: &str, clusters: &[&str]) {
        let patch = json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": clusters}}}});
        self.hub
            .merge(&format!("{}/{name}", policies(namespace)), &patch)
            .await;
    }

    /// Where each Deployment is after a step.
    fn wanted(step: Step) -> [BTreeSet<usize>; 3] {
        let (a, b) = match step {
            Step::Create => ([true, true, false], [false, true, true]),
            Step::MoveFirst | Step::Touch | Step::DeleteThird => ([false, false, true], [false, true, true]),
            Step::MoveBoth | Step::DeleteRest => ([true, false, true], [true, false, false]),
        };
        let left = |number: &usize| match step {
            Step::Create | Step::MoveFirst | Step::Touch => true,
            Step::DeleteThird | Step::MoveBoth => !number.is_multiple_of(3),
            Step::DeleteRest => false,
        };
        [0, 1, 2].map(|member| {
            let here = |number: &usize| {
                if number.is_multiple_of(2) {
                    a[member]
                } else {
                    b[member]
                }
            };
            (0..COUNT).filter(left).filter(here).collect()
        })
    }

    /// Waits until members have what they should have, and hub and members have been at rest for a while.
    async fn settle(&self, namespace: &str, step: Step) {
        let wanted = Self::wanted(step);
        for (api, wanted) in self.members.iter().zip(&wanted) {
            let names: BTreeSet<String> = wanted.iter().map(|number| format!("d{number:02}")).collect();
            until(
                &format!("{namespace}: {step:?}: a member has its {}", names.len()),
                async || {
                    let found = api.list(&deployments(namespace)).await;
                    let found: BTreeSet<String> = found
                        .iter()
                        .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
                        .collect();
                    found == names
                },
            )
            .await;
        }
        // Statuses follow; the audit logs say when nobody writes any more.
        let mut seen = self.writes();
        let mut quiet = 0;
        until(&format!("{namespace}: {step:?}: all is quiet"), async || {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = self.writes();
            quiet = if now == seen { quiet + 1 } else { 0 };
            seen = now;
            quiet >= 10
        })
        .await;
    }

    /// What is there once it is as wanted, or when that has not come for a minute. A machine with much else to do is quiet
    /// for a while before it is done.
    async fn becomes(&self, namespace: &str, wanted: &Looks) -> Looks {
        let begun = Instant::now();
        loop {
            let found = self.look(namespace).await;
            if found == *wanted || begun.elapsed() > Duration::from_secs(60) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// How many requests that change something all servers have had, without leases and events.
    fn writes(&self) -> usize {
        let count = |name: &&str| {
            let audit = self.servers.audit(name);
            let counted = audit.iter().filter(|asked| {
                !["leases", "events"].contains(&asked.resource.as_str())
                    && !asked.user.starts_with("system:apiserver")
            });
            counted.count()
        };
        ["hub"].iter().chain(&MEMBERS).map(count).sum()
    }

    /// Waits until so many writes were seen; false when all is done before.
    async fn reaches(&self, writes: usize, (looks, _): &(Looks, History)) -> bool {
        let mut looked = 0_u32;
        loop {
            if self.writes() >= writes {
                return true;
            }
            looked += 1;
            if looked.is_multiple_of(100) && self.look("storm").await == *looks {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Everything that the steps lead to, without what differs from one time to the next.
    async fn look(&self, namespace: &str) -> Looks {
        let mut looks = Looks::new();
        let mut put = |what: &str, objects: Vec<Value>| {
            for object in objects {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                looks.insert(format!("{what} {name}"), plain(object, namespace));
            }
        };
        put("template", self.hub.list(&deployments(namespace)).await);
        put("binding", self.hub.list(&bindings(namespace)).await);
        for (name, api) in MEMBERS.iter().zip(&self.members) {
            put(
                &format!("{name}: Deployment"),
                api.list(&deployments(namespace)).await,
            );
            let mut of_ours = self.hub.list(&works(name)).await;
            of_ours.retain(|work| {
                work["spec"]["workload"]["manifests"][0]["metadata"]["namespace"] == namespace
            });
            // Their names are hashes of the namespace too; what they carry has a name of its own.
            for work in &mut of_ours {
                work["metadata"]["name"] =
                    work["spec"]["workload"]["manifests"][0]["metadata"]["name"].clone();
            }
            put(&format!("{name}: Work"), of_ours);
        }
        looks
    }

    /// How often each Deployment was made and deleted in each member.
    fn history(&self, namespace: &str) -> History {
        let mut history = History::new();
        for member in MEMBERS {
            for asked in self.servers.audit(member) {
                if asked.resource == "deployments" && asked.namespace == namespace && asked.succeeded() {
                    let of_interest = ["create", "delete"].contains(&asked.verb.as_str());
                    if of_interest {
                        *history
                            .entry(format!("{member}: {} {}", asked.verb, asked.name))
                            .or_default() += 1;
                    }
                }
            }
        }
        history
    }
}

type History = BTreeMap<String, usize>;

/// What is left of an object without names that are made up, versions and times.
fn plain(mut object: Value, namespace: &str) -> Value {
    forget(&mut object);
    let text = object
        .to_string()
        .replace(&format!("\"{namespace}\""), "\"NAMESPACE\"");
    serde_json::from_str(&text).unwrap()
}

fn forget(value: &mut Value) {
    const MADE_UP: &[&str] = &[
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "generation",
        "observedGeneration",
        "schedulerObservedGeneration",
        "lastScheduledTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "lastApplied",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !MADE_UP.contains(&key.as_str()) && !is_made_up(key));
            fields.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}

/// Ids, and what is made from ids.
fn is_made_up(key: &str) -> bool {
    key.ends_with("/permanent-id")
        || key == "resourcetemplate.karmada.io/uid"
        || key == "work.karmada.io/name"
        || key.starts_with("lockgate.")
        || key.ends_with("/activated")
        || key.ends_with("/rendered-from")
}
