//! Policies that wait, and policies that preempt.
//!
//! An edit of a Lazy policy moves nothing, whatever it owns: the policy's status is written and no binding, no Work, no
//! template. A preempting policy takes what it names, and what it says is what was there before, so that no member moves.

use std::time::Duration;

use machinery_auth::UserInfo;
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::fleet::expect::Expected;
use crate::fleet::load::{self, NAMESPACE, POLICY, PREEMPTING};
use crate::fleet::phases::Meter;
use crate::fleet::report::Phase;
use crate::fleet::world::World;

/// How many templates the preempting policy names, at most.
const PREEMPTED: usize = 1000;

/// Edits a Lazy policy over all templates, and takes the edit back.
pub(super) async fn lazy_edit(
    world: &World,
    expected: &Expected<'_>,
    patience: Duration,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let n = expected.templates;
    world
        .driver
        .edit_policy(&json!({"activationPreference": "Lazy"}))
        .await?;
    world.quiet(patience).await?;
    status(world, POLICY, "pending", 0)?;

    let elsewhere = json!({"clusterAffinity": {"clusterNames": [expected.clusters[0], "elsewhere"]}});
    let meter = Meter::start(world, "lazy edit", n, patience)?;
    world
        .driver
        .edit_policy(&json!({ "placement": elsewhere }))
        .await?;
    let phase = meter.end(world, expected, n, None).await?;
    status(world, POLICY, "pending", n)?;
    status(world, POLICY, "claimed", n)?;
    only_the_status(&phase)?;
    phases.push(phase);

    let back = json!({"clusterAffinity": {"clusterNames": expected.clusters}});
    world.driver.edit_policy(&json!({ "placement": back })).await?;
    world.quiet(patience).await?;
    status(world, POLICY, "pending", 0)?;
    world
        .driver
        .edit_policy(&json!({"activationPreference": null}))
        .await?;
    world.quiet(patience).await.map(drop)
}

/// A policy that preempts many templates, until it goes again.
pub(super) async fn preempt(
    world: &World,
    expected: &Expected<'_>,
    patience: Duration,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let count = expected.templates.min(PREEMPTED);
    let meter = Meter::start(world, "preempt", count, patience)?;
    world.driver.preempt(count, expected.clusters).await?;
    let phase = meter.end(world, expected, count, None).await?;
    owner(world, count, PREEMPTING)?;
    status(world, PREEMPTING, "claimed", count)?;
    status(world, POLICY, "claimed", expected.templates - count)?;
    if phase.members.total > 0 {
        return Err(BenchError::wrong(format!(
            "a preemption that moves nothing wrote {} times to members",
            phase.members.total
        )));
    }
    phases.push(phase);
    world.driver.stop_preempting().await?;
    world.quiet(patience).await?;
    owner(world, count, POLICY)?;
    status(world, POLICY, "claimed", expected.templates)
}

/// Nothing but the policy's status was written.
fn only_the_status(phase: &Phase) -> Result<(), BenchError> {
    let others = phase
        .hub
        .by
        .keys()
        .find(|what| *what != "PUT propagationpolicies/status");
    match others {
        None if phase.members.total == 0 => Ok(()),
        None => Err(BenchError::wrong("an edit that waits was sent to members")),
        Some(what) => Err(BenchError::wrong(format!("an edit that waits wrote {what}"))),
    }
}

/// A number in a policy's status.
fn status(world: &World, policy: &str, field: &str, wanted: usize) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    let found = hub.get(
        "policy.karmada.io/v1alpha1",
        "propagationpolicies",
        NAMESPACE,
        policy,
    );
    let told = found.map_or(Value::Null, |policy| policy["status"][field].clone());
    if told == json!(wanted) {
        return Ok(());
    }
    Err(BenchError::wrong(format!(
        "the status of {policy} says {field}: {told}, not {wanted}"
    )))
}

/// Whose the first templates are.
fn owner(world: &World, count: usize, policy: &str) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    for number in 0..count {
        let name = load::name(number);
        let template = hub
            .get("apps/v1", "deployments", NAMESPACE, &name)
            .unwrap_or_default();
        let found = &template["metadata"]["annotations"][lockgate_api::keys::PP_NAME];
        if *found != policy {
            return Err(BenchError::wrong(format!(
                "{name} belongs to {found}, not to {policy}"
            )));
        }
    }
    Ok(())
}
