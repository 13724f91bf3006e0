//! The `lockgate` binary: parses, calls, prints.

mod activate;
mod connect;
mod controller;
mod crds;
mod demo;
mod exit;
mod gates;
mod join;
mod pending;
mod preview;
mod print;
mod render;
mod rollout;
mod scenario;
mod status;
mod suspend;
mod unjoin;
mod up;
mod waiting;
mod why;

use clap::{Parser, Subcommand};

use crate::exit::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A multi-cluster Kubernetes control plane: nothing moves in the fleet until the rules that guard change say so.
#[derive(Debug, Parser)]
#[command(
    name = "lockgate",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch a staged rollout, a failure and the way back, on a fleet of this process
    Demo(demo::DemoArguments),
    /// Start a hub and member clusters on this machine
    Up(up::UpArguments),
    /// Run the control plane against a hub of any kind
    Controller(controller::ControllerArguments),
    /// Let a cluster join the fleet
    Join(join::JoinArguments),
    /// Let a cluster leave the fleet
    Unjoin(unjoin::UnjoinArguments),
    /// Show where everything is, what is not well, and why
    Status(status::StatusArguments),
    /// Print what a cluster gets, and which override did what
    Render(render::RenderArguments),
    /// Say for every cluster why a template or a placement selects it, or not, and what would help
    Why(why::WhyArguments),
    /// Look at how changes reach their clusters, and intervene
    #[command(subcommand)]
    Rollout(rollout::RolloutCommand),
    /// Hold one resource back from members, and say why
    Suspend(suspend::SuspendArguments),
    /// Let a resource go that is held back
    Resume(suspend::ResumeArguments),
    /// Show what waits for a change of its own, and what it would do
    Pending(pending::PendingArguments),
    /// Activate what waits, now
    #[command(visible_alias = "reconcile")]
    Activate(activate::ActivateArguments),
    /// Print the definitions that a hub needs, for `kubectl apply --server-side -f -`
    Crds,
    /// Run scenario files, and say which hold
    Scenario(scenario::ScenarioArguments),
    /// Measure
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// The API server, embedded and real side by side
    Api(lockgate_bench::ApiArguments),
    /// Propagation: objects through the hub to every member
    Fleet(lockgate_bench::FleetArguments),
    /// Propagation through a hub that runs already, whoever made it
    Hub(lockgate_bench::HubArguments),
    /// Placing: a label among many clusters, and a start with many dependencies
    Placing(lockgate_bench::PlacingArguments),
    /// A policy that is enforced group by group
    Policy(lockgate_bench::PolicyArguments),
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    // A service says what it does; a command only what is wrong.
    let level = match arguments.command {
        Command::Controller(_) => "info",
        // Scenarios break things on purpose; their reports say what is wrong.
        Command::Scenario(_) => "error",
        _ => "warn",
    };
    start_logging(level);
    // One provider of cryptography for the whole process, chosen here.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        tracing::debug!("a provider of cryptography was installed before");
    }
    let result = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Up(up) => up::run(up),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Join(arguments) => join::run(&arguments),
        Command::Unjoin(arguments) => unjoin::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Rollout(command) => rollout::run(&command),
        Command::Suspend(arguments) => suspend::suspend(&arguments),
        Command::Resume(arguments) => suspend::resume(&arguments),
        Command::Pending(arguments) => pending::run(&arguments),
        Command::Activate(arguments) => activate::run(&arguments),
        Command::Scenario(arguments) => scenario::run(&arguments),
        Command::Crds => crds::run(),
        Command::Bench(bench) => {
            let measured = match bench {
                Bench::Api(arguments) => lockgate_bench::run(arguments),
                Bench::Fleet(arguments) => lockgate_bench::run_fleet(&arguments),
                Bench::Hub(arguments) => lockgate_bench::run_hub(&arguments),
                Bench::Placing(arguments) => lockgate_bench::run_placing(&arguments),
                Bench::Policy(arguments) => lockgate_bench::run_policy(&arguments),
            };
            measured
                .map(|()| std::process::ExitCode::SUCCESS)
                .map_err(|error| Failure::Other(error.to_string()))
        }
    };
    match result {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> std::process::ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "error: {failure}");
    failure.code()
}

fn start_logging(level: &str) {
    use tracing_subscriber::EnvFilter;
    // The client says of each request that it failed, and not to whom; whoever made it says both.
    let default = || EnvFilter::new(format!("{level},kube_client::client::builder=off"));
    let filter = EnvFilter::try_from_env("LOCKGATE_LOG").unwrap_or_else(|_| default());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(crate::print::wants_colour(&std::io::stderr()))
        .with_target(false)
        .init();
}
