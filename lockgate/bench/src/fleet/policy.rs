//! `lockgate bench policy`: a policy of Open Cluster Management that is enforced group by group, on members that become
//! compliant at once. How long until it is enforced everywhere, for the first time and after an edit, and what it takes.
//!
//! What always holds: a phase is reported only when every member has the object and every replica says that it enforces and
//! has succeeded. A restart that writes anything fails.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::Method;
use machinery_auth::UserInfo;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::error::BenchError;
use crate::fleet::FleetArguments;
use crate::fleet::phases::Meter;
use crate::fleet::report::{FleetReport, Phase};
use crate::fleet::world::{World, until};
use crate::machine::Machine;

const NAMESPACE: &str = "policies";
const NAME: &str = "settings";
const POLICIES: &str = "/apis/policy.open-cluster-management.io/v1/namespaces/policies/policies";
const API_VERSION: &str = "policy.open-cluster-management.io/v1";

/// Measure a policy that is enforced group by group
#[derive(Clone, Debug, Args)]
pub struct PolicyArguments {
    /// How many members
    #[arg(long, value_name = "M", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub members: u32,
    /// How many groups they are in
    #[arg(long, value_name = "G", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub groups: u32,
    /// Where the hub keeps its data [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// How long one phase may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub patience: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Measures, and prints the report on standard output.
pub fn run_policy(arguments: &PolicyArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| BenchError::Usage(format!("failed to start: {e}")))?;
    let parent = arguments.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = TempDir::with_prefix_in("lockgate-bench-", &parent).map_err(BenchError::file(&parent))?;
    let mut report = FleetReport {
        command: crate::run::command(),
        templates: 1,
        members: arguments.members,
        ready: false,
        each: "member",
        machine: Machine::inspect(scratch.path())?,
        phases: Vec::new(),
        incomplete: None,
    };
    let measured = runtime.block_on(async {
        tokio::select! {
            measured = measure(arguments, &scratch, &mut report.phases) => measured,
            () = crate::run::stop_signal() => Err(BenchError::Interrupted),
        }
    });
    crate::run::conclude(measured, report, arguments.json)
}

async fn measure(
    arguments: &PolicyArguments,
    scratch: &TempDir,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let fleet = FleetArguments {
        templates: 1,
        members: arguments.members,
        ready: false,
        waits: false,
        rollout: false,
        concurrency: 32,
        scratch: arguments.scratch.clone(),
        patience: arguments.patience,
        json: arguments.json,
    };
    let mut world = World::start(&fleet, scratch.path()).await?;
    let measured = all(&mut world, arguments, phases).await;
    world.stop().await;
    measured
}

async fn all(
    world: &mut World,
    arguments: &PolicyArguments,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let patience = Duration::from_secs(arguments.patience);
    let members = world.members.len();
    place(world, arguments.groups).await?;
    world.quiet(patience).await?;

    let meter = Meter::start(world, "enforce", members, patience)?;
    world
        .driver
        .send(Method::POST, POLICIES, &policy("strict"))
        .await?;
    until_succeeded(world, 1, patience).await?;
    meter.reached();
    let check = |mode: &'static str| move |world: &World| verify(world, mode);
    phases.push(meter.end_with(world, members, None, check("strict")).await?);

    let meter = Meter::start(world, "edit", members, patience)?;
    let change = json!({"spec": policy("lax")["spec"]});
    let path = format!("{POLICIES}/{NAME}");
    world.driver.send(Method::PATCH, &path, &change).await?;
    until_succeeded(world, 2, patience).await?;
    meter.reached();
    phases.push(meter.end_with(world, members, None, check("lax")).await?);

    world.stop_control().await;
    let meter = Meter::start(world, "restart", 0, patience)?;
    world.start_control().await?;
    let phase = meter.end_with(world, members, None, check("lax")).await?;
    let written = phase.hub.total + phase.hub.events + phase.members.total;
    phases.push(phase);
    if written > 0 {
        return Err(BenchError::wrong(format!("a restart wrote {written} times")));
    }
    Ok(())
}

/// Where the policy goes: everywhere, in groups of the same size.
async fn place(world: &World, groups: u32) -> Result<(), BenchError> {
    let of_cluster = "/apis/cluster.open-cluster-management.io";
    let size = world.members.len().div_ceil(groups as usize);
    let objects = [
        (
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        ),
        (
            format!("{of_cluster}/v1beta2/namespaces/{NAMESPACE}/managedclustersetbindings"),
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta2",
                "kind": "ManagedClusterSetBinding",
                "metadata": {"name": "global", "namespace": NAMESPACE},
                "spec": {"clusterSet": "global"},
            }),
        ),
        (
            format!("{of_cluster}/v1beta1/namespaces/{NAMESPACE}/placements"),
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1",
                "kind": "Placement",
                "metadata": {"name": "everywhere", "namespace": NAMESPACE},
                "spec": {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size}}},
            }),
        ),
        (
            format!("/apis/{API_VERSION}/namespaces/{NAMESPACE}/placementbindings"),
            json!({
                "apiVersion": API_VERSION,
                "kind": "PlacementBinding",
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "placementRef": {
                    "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "everywhere",
                },
                "subjects": [{"apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": NAME}],
            }),
        ),
    ];
    for (path, object) in &objects {
        world.driver.send(Method::POST, path, object).await?;
    }
    Ok(())
}

fn policy(mode: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Policy",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "disabled": false,
            "remediationAction": "enforce",
            "rolloutStrategy": {"type": "ProgressivePerGroup"},
            "policy-templates": [{"objectDefinition": {
                "apiVersion": API_VERSION,
                "kind": "ConfigurationPolicy",
                "metadata": {"name": NAME},
                "spec": {"object-templates": [{
                    "complianceType": "musthave",
                    "objectDefinition": {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": NAME, "namespace": "default"},
                        "data": {"mode": mode},
                    },
                }]},
            }}],
        },
    })
}

/// Waits until a revision of the policy has succeeded everywhere.
async fn until_succeeded(world: &World, revision: i64, patience: Duration) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    until(patience, "the policy is enforced everywhere", || {
        let root = hub.get(API_VERSION, "policies", NAMESPACE, NAME);
        root.is_some_and(|root| {
            let status = &root["status"];
            status["rolloutStatus"] == "Succeeded" && status["rollout"]["revision"] == revision
        })
    })
    .await
}

/// Every member has the object, and every replica enforces and has succeeded.
fn verify(world: &World, mode: &str) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    for member in &world.members {
        let name = &member.name;
        let live = member
            .server
            .local(UserInfo::apiserver())
            .get("v1", "configmaps", "default", NAME);
        if live.is_none_or(|live| live["data"]["mode"] != mode) {
            return Err(BenchError::wrong(format!("{name} does not have {mode}")));
        }
        let replica = hub.get(API_VERSION, "policies", name, &format!("{NAMESPACE}.{NAME}"));
        let enforced = replica.is_some_and(|replica| {
            replica["spec"]["remediationAction"] == "enforce"
                && replica["status"]["rolloutStatus"] == "Succeeded"
                && replica["status"]["compliant"] == "Compliant"
        });
        if !enforced {
            return Err(BenchError::wrong(format!(
                "the replica of {name} has not succeeded"
            )));
        }
    }
    Ok(())
}
