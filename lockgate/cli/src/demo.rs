//! `lockgate demo`: a staged rollout, a cluster that fails, the stop and the way back, on a fleet of this process. Nothing is
//! kept. The fleet is that of `lockgate up`; what happens in it is done by the same program once more, as a client.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use lockgate_api::Binding;
use lockgate_api::rollout_policy::{RolloutRun, RunCluster};
use lockgate_hub::{Link, Resource};
use serde_json::{Value, json};

use crate::connect::{Connection, HubArguments};
use crate::exit::Failure;
use crate::print::{self, Paint, Tone};
use crate::up;

/// How long a part of the play may take.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const MEMBERS: u16 = 4;

#[derive(Debug, Args)]
#[command(
    after_help = "It takes about half a minute, keeps nothing, and needs nothing but this program.\n\n\
        Exit codes: 1 failure, and those of lockgate up."
)]
pub(crate) struct DemoArguments {
    /// Play on the fleet that $KUBECONFIG names
    #[arg(long, hide = true)]
    inside: bool,
}

/// Starts a fleet and plays on it.
pub(crate) fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    if arguments.inside {
        return crate::rollout::block_on(play());
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::Other(format!("failed to find this program: {error}")))?;
    let program = program.to_string_lossy().into_owned();
    let command = vec![program, "demo".to_owned(), "--inside".to_owned()];
    up::run(up::UpArguments::for_demo(MEMBERS, command))
}

struct Stage {
    hub: Connection,
    link: Link,
    paint: Paint,
    begun: Instant,
    /// What was last said of each cluster.
    told: BTreeMap<String, (String, String)>,
    /// What was last said of the rollout.
    phase: String,
}

async fn play() -> Result<ExitCode, Failure> {
    let hub = HubArguments::default().connect().await?;
    let mut stage = Stage {
        link: Link::new(hub.client.clone()),
        hub,
        paint: Paint::stdout(),
        begun: Instant::now(),
        told: BTreeMap::new(),
        phase: String::new(),
    };
    stage.title(
        "Four clusters. A Deployment goes to all of them, one after the other, each after 2 s of being well:",
    );
    stage.create("/api/v1/namespaces", &namespace()).await?;
    stage
        .create(&policies(&Resource::propagation_policies()), &propagation())
        .await?;
    stage
        .create(&policies(&Resource::rollout_policies()), &rollout())
        .await?;
    stage
        .create("/apis/apps/v1/namespaces/demo/deployments", &deployment())
        .await?;
    let first = stage.until("Succeeded", |run| run.phase == "Succeeded").await?;

    stage.title("Version 2. It is fine in member1 and member2; member3 cannot run it:");
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}});
    stage.patch(&image).await?;
    // The hub sees templates and overrides each for itself: version 2 has to be under way before there is trouble with it.
    stage.until("under way", |run| run.revision != first).await?;
    stage
        .create(&policies(&Resource::override_policies()), &trouble())
        .await?;
    stage.until("RolledBack", |run| run.phase == "RolledBack").await?;
    stage.title("Every cluster that had version 2 is back at version 1; member4 never saw it.");
    print::out(
        "\nDo it yourself, from the root of the repository:\n\n  \
         lockgate up\n\n\
         It says which KUBECONFIG to export in another terminal. There:\n\n  \
         kubectl apply -f examples/first-steps.yaml -f examples/rollout/web.yaml\n  \
         kubectl set image deployment/web -n shop web=nginx:never-ready\n  \
         lockgate rollout status deployment/web -n shop --watch\n  \
         lockgate rollout abort deployment/web -n shop --reason \"it never becomes ready\"\n  \
         lockgate rollout history deployment/web -n shop\n\n\
         There are also pause, resume, promote, retry and undo; docs/rollout.md says the rest.\n",
    );
    Ok(ExitCode::SUCCESS)
}

impl Stage {
    fn title(&self, text: &str) {
        print::out(&format!("\n{}\n\n", self.paint.tone(text, Tone::Strong)));
    }

    async fn create(&self, path: &str, object: &Value) -> Result<(), Failure> {
        self.link
            .create(path, object.to_string().into_bytes())
            .await
            .map(drop)
            .map_err(|error| Failure::Other(format!("the hub did not take the {}: {error}", object["kind"])))
    }

    async fn patch(&self, change: &Value) -> Result<(), Failure> {
        let path = "/apis/apps/v1/namespaces/demo/deployments/web";
        self.link
            .merge_patch(path, change.to_string().into_bytes())
            .await
            .map(drop)
            .map_err(|error| Failure::Other(format!("the hub did not take the new version: {error}")))
    }

    /// Tells what happens until the rollout is where it should be, and with which revision it is there.
    async fn until(&mut self, goal: &str, reached: impl Fn(&RolloutRun) -> bool) -> Result<i64, Failure> {
        let path = Resource::resource_bindings().object("demo", "web-deployment");
        let begun = Instant::now();
        loop {
            let binding: Option<Binding> = self.hub.get(&path).await?;
            if let Some(run) = binding.and_then(|binding| binding.status.rollout) {
                self.tell(&run);
                if reached(&run) {
                    return Ok(run.revision);
                }
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure::Other(format!(
                    "the rollout is {:?} and not {goal} after a minute",
                    self.phase
                )));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn line(&self, text: &str, tone: Tone) {
        let time = self.begun.elapsed().as_secs_f64();
        print::out(&format!("{time:5.1}s  {}\n", self.paint.tone(text, tone)));
    }

    fn tell(&mut self, run: &RolloutRun) {
        let clusters = run.groups.iter().flat_map(|group| &group.clusters);
        for cluster in clusters {
            let state = word(cluster).to_owned();
            let now = (state.clone(), format!("{}", run.revision));
            if self.told.get(&cluster.name) == Some(&now) {
                continue;
            }
            self.told.insert(cluster.name.clone(), now);
            if state == "ToApply" {
                continue;
            }
            let tone = match state.as_str() {
                "Failed" | "TimeOut" => Tone::Bad,
                "Succeeded" => Tone::Good,
                _ => Tone::Plain,
            };
            let reason = cluster.reason.split(" until 2").next().unwrap_or_default();
            self.line(&format!("{:<10} {state:<11} {reason}", cluster.name), tone);
        }
        if run.phase != self.phase {
            self.phase.clone_from(&run.phase);
            let tone = match run.phase.as_str() {
                "Succeeded" => Tone::Good,
                "Failed" => Tone::Bad,
                _ => Tone::Warn,
            };
            self.line(&format!("{:<10} {}", run.phase, run.message), tone);
        }
    }
}

fn word(cluster: &RunCluster) -> &str {
    match (cluster.state.as_str(), &cluster.until) {
        ("Succeeded", Some(_)) => "Soaking",
        (state, _) => state,
    }
}

fn policies(resource: &Resource) -> String {
    resource.collection("demo")
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}})
}

fn selectors() -> Value {
    json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])
}

fn propagation() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"resourceSelectors": selectors(), "placement": {"clusterAffinity": {}}},
    })
}

fn rollout() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "resourceSelectors": selectors(),
            "strategy": {
                "type": "Progressive",
                "progressive": {"maxConcurrency": 1, "minSuccessTime": "2s", "progressDeadline": "5s"},
            },
            "onFailure": "Rollback",
        },
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

/// What makes the simulated member3 fail.
fn trouble() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "resourceSelectors": selectors(),
            "overrideRules": [{
                "targetCluster": {"clusterNames": ["member3"]},
                "overriders": {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "never-ready"}]},
            }],
        },
    })
}
