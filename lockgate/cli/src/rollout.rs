//! `lockgate rollout`: how changes reach their clusters, and what to do about it.
//!
//! [`tree`] shows a rollout on a hub, [`command`] asks for something. `simulate` says what a strategy would do before anybody
//! uses it; it reads a file and nothing else: the engine plays the strategy, [`fleet`] makes the clusters and draws what
//! becomes of each, [`show`] prints.

mod command;
mod compliance;
mod fleet;
mod history;
mod holder;
mod show;
#[cfg(test)]
mod tests;
mod tree;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use lockgate_api::RolloutStrategy;
use lockgate_api::rollout::{IntOrString, duration_text, read};
use lockgate_engine::gate::record::Verb;
use lockgate_engine::gate::rules::Rules;
use lockgate_engine::gate::simulate::simulate;
use serde_json::Value;

use crate::exit::Failure;
use crate::print::{self, Paint};
use crate::rollout::fleet::{Fates, Fleet, NamedSize, Probability, Takes};
use crate::rollout::show::Played;
pub(crate) use crate::rollout::tree::block_on;

/// More clusters than a fleet has, and few enough to be played in seconds.
const MAX_CLUSTERS: u32 = 5000;
/// No strategy is longer.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Show how far the last change of a resource is, cluster by cluster
    Status(tree::StatusArguments),
    /// Start nothing more; what is under way goes on
    Pause(command::CommandArguments),
    /// Go on with what was paused
    Resume(command::CommandArguments),
    /// End the present soak or wait, and start the next step
    Promote(command::PromoteArguments),
    /// Start again in the clusters that failed or took too long
    Retry(command::CommandArguments),
    /// Give the change up, and go back to the last revision that succeeded everywhere
    Abort(command::CommandArguments),
    /// List the revisions that one can go back to
    History(history::HistoryArguments),
    /// Go back to an earlier revision, in the usual order
    Undo(command::UndoArguments),
    /// Play a strategy forward in virtual time, and print what would happen when
    Simulate(SimulateArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate rollout simulate -f examples/rollout/progressive.yaml --clusters 20\n  \
        lockgate rollout simulate -f examples/rollout/canary.yaml --clusters 20 --groups canary=2 --fail-rate 10%\n  \
        lockgate rollout simulate -f examples/rollout/per-group.yaml --clusters 20 --clusters-per-group 25% -o json\n\n\
        Exit codes: 0 when it could be played, whatever came of it, 1 failure, 2 usage, or a strategy that is refused.\n\n\
        Strategies are described in docs/rollout.md.")]
pub(crate) struct SimulateArguments {
    /// A RolloutPolicy, or a strategy: alone, or spec.strategy or spec.rolloutStrategy of an object; - is the standard input
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,
    /// How many clusters there are
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CLUSTERS)))]
    clusters: u32,
    /// Decision groups by name with how many clusters each has; the others have no name
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',')]
    groups: Vec<NamedSize>,
    /// The most clusters of a decision group, as a number or a percentage
    #[arg(long, value_name = "SIZE", value_parser = size)]
    clusters_per_group: Option<IntOrString>,
    /// How likely a cluster fails, such as 10% or 0.1
    #[arg(long, value_name = "P", default_value = "0")]
    fail_rate: Probability,
    /// How long a cluster takes until it succeeds or fails, such as 90s, or between 30s-2m
    #[arg(long, value_name = "D", default_value = "1m")]
    duration: Takes,
    /// Which clusters fail and how long each takes; the same number gives the same timeline
    #[arg(long, value_name = "S", default_value = "1")]
    seed: u64,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Tables without their first line
    #[arg(long)]
    no_headers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

fn size(text: &str) -> Result<IntOrString, String> {
    let size = text
        .parse()
        .map_or_else(|_| IntOrString::Text(text.to_owned()), IntOrString::Int);
    match lockgate_api::rollout::parse_threshold(&size) {
        Ok(threshold) if threshold.of(100) > 0 => Ok(size),
        Ok(_) => Err("it must be more than 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn run(command: &RolloutCommand) -> Result<ExitCode, Failure> {
    let arguments = match command {
        RolloutCommand::Status(arguments) => return tree::run(arguments),
        RolloutCommand::History(arguments) => return history::run(arguments),
        RolloutCommand::Pause(arguments) => return command::run(arguments, Verb::Pause, None),
        RolloutCommand::Resume(arguments) => return command::run(arguments, Verb::Resume, None),
        RolloutCommand::Promote(arguments) => return command::promote(arguments),
        RolloutCommand::Retry(arguments) => return command::run(arguments, Verb::Retry, None),
        RolloutCommand::Abort(arguments) => return command::run(arguments, Verb::Abort, None),
        RolloutCommand::Undo(arguments) => return command::undo(arguments),
        RolloutCommand::Simulate(arguments) => arguments,
    };
    let text = contents(&arguments.filename)?;
    let played = play(arguments, &text)?;
    print::out(&match arguments.output {
        Output::Table => show::table(&played, Paint::stdout(), !arguments.no_headers),
        Output::Json => format!("{:#}\n", show::json(&played)),
    });
    Ok(ExitCode::SUCCESS)
}

fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed =
        |error: std::io::Error| Failure::Usage(format!("failed to read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
    };
    if read.map_err(failed)? as u64 > MAX_BYTES {
        let message = format!(
            "{} has more than {MAX_BYTES} bytes, which no strategy has",
            path.display()
        );
        return Err(Failure::Usage(message));
    }
    Ok(bytes)
}

/// Plays a strategy; pure.
fn play(arguments: &SimulateArguments, text: &[u8]) -> Result<Played, Failure> {
    let place = arguments.filename.display();
    let strategy = strategy(text).map_err(|error| Failure::Usage(format!("{place}: {error}")))?;
    let rules = Rules::read(&strategy).map_err(|error| Failure::Usage(format!("{place}: {error}")))?;
    let fleet = Fleet {
        clusters: arguments.clusters,
        named: &arguments.groups,
        size: arguments.clusters_per_group.as_ref(),
    };
    let groups = fleet.groups().map_err(Failure::Usage)?;
    let warnings = fleet::unknown_groups(&groups, &rules);
    let fates = Fates {
        fail_rate: arguments.fail_rate,
        takes: arguments.duration,
        seed: arguments.seed,
    };
    let timeline = simulate(&groups, &rules, &fates.draw(&groups), duration_text);
    Ok(Played {
        strategy,
        rules,
        groups,
        timeline,
        warnings,
        tries_failures: arguments.fail_rate.is_possible(),
    })
}

/// The strategy of a file: the file itself, or what an object has at `spec.strategy` or `spec.rolloutStrategy`; with the
/// defaults of the kinds that carry one.
fn strategy(text: &[u8]) -> Result<RolloutStrategy, String> {
    let document = machinery_value::decode::from_yaml(text).map_err(|error| error.to_string())?;
    let value = document.value;
    let mut bare = value.clone();
    let (at, value) = match (value.get("kind"), bare.pointer_mut("/spec/strategy")) {
        (None, _) => ("", &value),
        (Some(_), Some(strategy)) => {
            // How clusters are cut into groups is up to the arguments here.
            if let Some(strategy) = strategy.as_object_mut() {
                strategy.remove("decisionGroups");
                strategy.remove("clustersPerDecisionGroup");
            }
            ("spec.strategy.", &*strategy)
        }
        (Some(kind), None) => match value.pointer("/spec/rolloutStrategy") {
            Some(strategy) => ("spec.rolloutStrategy.", strategy),
            None => {
                return Err(format!(
                    "the {} has neither spec.strategy nor spec.rolloutStrategy",
                    word(kind)
                ));
            }
        },
    };
    let strategy = read(value).map_err(|refused| {
        let lines: Vec<String> = refused.iter().map(|refusal| format!("{at}{refusal}")).collect();
        lines.join("\n  ")
    })?;
    Ok(strategy.one_at_a_time_unless_said())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("object")
}
