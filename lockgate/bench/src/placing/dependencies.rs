//! As many templates as dependencies: the control plane finds them all in the store, and then everything starts again.

use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::placing::PlacingArguments;
use crate::placing::report::Phase;
use crate::placing::world::{NAMESPACE, World, member};
use crate::progress::Progress;

/// In what time a start is to be done.
const TARGET: f64 = 20.0;

const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/bench/propagationpolicies";
const CONFIG_MAPS: &str = "/api/v1/namespaces/bench/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/bench/deployments";

fn policy() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": NAMESPACE},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"clusterAffinity": {"clusterNames": [member(0)]}},
            "propagateDeps": true,
        },
    })
}

fn needed(number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("c{number:07}"), "namespace": NAMESPACE},
        "data": {"number": number.to_string()},
    })
}

fn template(number: usize) -> Value {
    let name = format!("d{number:07}");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "web",
                    "image": "nginx:1.19.0",
                    "envFrom": [{"configMapRef": {"name": format!("c{number:07}")}}],
                }]},
            },
        },
    })
}

/// All phases.
pub(super) async fn measure(
    arguments: &PlacingArguments,
    scratch: &Path,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let path = scratch.join("dependencies.db");
    let mut world = World::start(path, 1, arguments.concurrency).await?;
    let measured = run(&mut world, arguments, phases).await;
    world.stop().await;
    measured
}

async fn run(
    world: &mut World,
    arguments: &PlacingArguments,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let templates = arguments.templates as usize;
    let patience = Duration::from_secs(arguments.patience);
    world.join(|_| json!({})).await?;
    world.driver.send(Method::POST, POLICIES, &policy()).await?;
    let progress = Progress::start("templates and dependencies", templates);
    world
        .driver
        .each(templates, &progress, async |number| {
            world
                .driver
                .send(Method::POST, CONFIG_MAPS, &needed(number))
                .await?;
            world
                .driver
                .send(Method::POST, DEPLOYMENTS, &template(number))
                .await
        })
        .await?;

    let first = "start: nothing is placed yet";
    let phase = world.measure_start(first, Some(TARGET), patience).await?;
    complete(world, templates)?;
    phases.push(phase);

    let again = "start: everything is placed";
    let phase = world.measure_start(again, Some(TARGET), patience).await?;
    complete(world, templates)?;
    let written = phase.hub_writes + phase.member_writes;
    phases.push(phase);
    if written > 0 {
        return Err(BenchError::wrong(format!("a restart wrote {written} times")));
    }
    Ok(())
}

/// Every template and every dependency is on the member.
fn complete(world: &World, templates: usize) -> Result<(), BenchError> {
    for (api_version, plural) in [("apps/v1", "deployments"), ("v1", "configmaps")] {
        let found = world.on_member(0, api_version, plural).len();
        if found != templates {
            return Err(BenchError::wrong(format!(
                "the member has {found} {plural}, not {templates}"
            )));
        }
    }
    let bindings = world.bindings().len();
    if bindings != 2 * templates {
        return Err(BenchError::wrong(format!(
            "there are {bindings} bindings, not {}",
            2 * templates
        )));
    }
    Ok(())
}
