//! A label of one cluster among many: only those whose placement names it are touched.

use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::placing::PlacingArguments;
use crate::placing::report::Phase;
use crate::placing::world::{NAMESPACE, World, member};
use crate::progress::Progress;

/// How many policies share the templates, each with a label of its own.
const SETS: u32 = 100;
/// In what time a label is to be acted on.
const TARGET: f64 = 2.0;
/// The set whose label a further cluster gets.
const MOVED: u32 = 7;

const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/bench/propagationpolicies";
const CONFIG_MAPS: &str = "/api/v1/namespaces/bench/configmaps";

fn policy(set: u32) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": format!("set-{set}"), "namespace": NAMESPACE},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap",
                "labelSelector": {"matchLabels": {"set": set.to_string()}}}],
            "placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {label(set): "yes"}}}},
        },
    })
}

fn template(number: usize) -> Value {
    let set = number as u32 % SETS;
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("c{number:07}"), "namespace": NAMESPACE, "labels": {"set": set.to_string()}},
        "data": {"number": number.to_string()},
    })
}

/// The label that the placement of a set names.
fn label(set: u32) -> String {
    format!("bench.example.com/set-{set}")
}

/// All phases.
pub(super) async fn measure(
    arguments: &PlacingArguments,
    scratch: &Path,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let path = scratch.join("labels.db");
    let mut world = World::start(path, arguments.clusters, arguments.concurrency).await?;
    let measured = run(&mut world, arguments, phases).await;
    world.stop().await;
    measured
}

async fn run(
    world: &mut World,
    arguments: &PlacingArguments,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let (clusters, templates) = (arguments.clusters, arguments.templates as usize);
    let patience = Duration::from_secs(arguments.patience);
    // Each set has one cluster; the last has none, and gets a label later.
    let last = clusters - 1;
    let home = |set: u32| set % last;
    world.start_control().await?;
    world
        .join(|number| {
            let own = (0..SETS).filter(|set| number != last && home(*set) == number);
            own.map(|set| (label(set), json!("yes"))).collect::<Value>()
        })
        .await?;
    world.ready(patience).await?;
    for set in 0..SETS {
        world.driver.send(Method::POST, POLICIES, &policy(set)).await?;
    }
    world.quiet(patience).await?;
    let begin = world
        .measure("all templates are placed", None, patience, async |world| {
            let progress = Progress::start("templates", templates);
            let send = async |number: usize| {
                world
                    .driver
                    .send(Method::POST, CONFIG_MAPS, &template(number))
                    .await
            };
            world.driver.each(templates, &progress, send).await.map(drop)
        })
        .await?;
    expect("placed", begin.bindings, templates)?;
    phases.push(begin);

    let of_set = (0..templates)
        .filter(|number| *number as u32 % SETS == MOVED)
        .count();
    for (name, key, value, touched, there) in [
        (
            "a label that 1 % of placements name",
            label(MOVED),
            json!("yes"),
            of_set,
            of_set,
        ),
        (
            "a label that none names",
            "colour".to_owned(),
            json!("red"),
            0,
            of_set,
        ),
        (
            "the first label is gone again",
            label(MOVED),
            Value::Null,
            of_set,
            0,
        ),
    ] {
        let phase = world
            .measure(name, Some(TARGET), patience, async |world| {
                let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{}", member(last));
                let change = json!({"metadata": {"labels": {key: value}}});
                world.driver.send(Method::PATCH, &path, &change).await
            })
            .await?;
        expect(&format!("touched by {name}"), phase.bindings, touched)?;
        let arrived = world.on_member(last, "v1", "configmaps").len();
        expect(&format!("on the cluster after {name}"), arrived, there)?;
        phases.push(phase);
    }
    let home = world.on_member(home(MOVED), "v1", "configmaps").len();
    if home < of_set {
        return Err(BenchError::wrong(format!(
            "the cluster that had them has {home} of {of_set}"
        )));
    }
    Ok(())
}

fn expect(what: &str, found: usize, wanted: usize) -> Result<(), BenchError> {
    if found == wanted {
        return Ok(());
    }
    Err(BenchError::wrong(format!(
        "{found} templates are {what}, not {wanted}"
    )))
}
