//! What it costs to look at a ConfigurationPolicy that selects one object:
//! `cargo run --release -p lockgate-engine --example comply`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement may end where it likes, and prints"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lockgate_api::ocm::configuration::{ConfigurationSpec, ConfigurationStatus};
use lockgate_engine::comply::{Evaluated, Objects, Rules, Served, Subject, conclude, judge};
use serde_json::{Value, json};

const RUNS: usize = 2000;
/// What one look may take.
const TARGET: Duration = Duration::from_micros(100);

/// One object, as the cache has it: bytes.
struct One(Vec<u8>);

impl Objects for One {
    fn find(&self, _: &str, _: &str) -> Option<Arc<Value>> {
        Some(Arc::new(serde_json::from_slice(&self.0).unwrap()))
    }

    fn list(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.find(namespace, "").into_iter().collect()
    }
}

/// A Deployment of some size: a container, its environment, its mounts.
fn deployment(image: &str) -> Value {
    let env: Vec<Value> = (0..10)
        .map(|n| json!({"name": format!("KEY_{n}"), "value": format!("value {n}")}))
        .collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "web", "image": image, "env": env,
                    "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}},
                }]},
            },
        },
    })
}

fn main() {
    let mut live = deployment("nginx:1.27");
    live["metadata"]["uid"] = json!("4c5f");
    live["metadata"]["resourceVersion"] = json!("77");
    live["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}});
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1");
    live["spec"]["template"]["spec"]["dnsPolicy"] = json!("ClusterFirst");
    live["status"] = json!({"replicas": 3, "readyReplicas": 3});
    let objects = One(serde_json::to_vec(&live).unwrap());
    let mut slow = false;
    for (what, image) in [
        ("as it should be", "nginx:1.27"),
        ("not as it should be", "nginx:1.28"),
    ] {
        let spec: ConfigurationSpec = serde_json::from_value(json!({
            "remediationAction": "inform",
            "object-templates": [{"complianceType": "musthave", "objectDefinition": deployment(image)}],
        }))
        .unwrap();
        let rules = Rules::read(&spec).unwrap();
        let mut status = ConfigurationStatus::default();
        let begun = Instant::now();
        for _ in 0..RUNS {
            let template = rules.templates[0].as_ref().unwrap();
            let served = Served {
                plural: "deployments".to_owned(),
                namespaced: true,
            };
            let subject = Subject::of(template, Ok(&[]), Some(served)).unwrap();
            let judged = judge(template, &subject, &objects);
            let evaluated = Evaluated {
                name: "web",
                outcomes: &[Ok((subject, judged))],
                generation: 1,
                enforce: rules.enforce,
                prune: rules.prune,
                unpruned: None,
                never: rules.never(),
                custom: None,
                now: Timestamp::UNIX_EPOCH,
            };
            status = conclude(&status, &evaluated).status;
        }
        let each = begun.elapsed() / u32::try_from(RUNS).unwrap();
        slow |= each > TARGET;
        println!("{what}: {each:?} each ({})", status.compliant);
    }
    println!("target {TARGET:?}: {}", if slow { "missed" } else { "met" });
    std::process::exit(i32::from(slow));
}
