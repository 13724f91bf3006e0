//! `machinery-fuzz`: hunts for inputs that the server does not bear.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use machinery_fuzz::{Target, hunt_for, run_one, targets, watch};

/// Reads mutated inputs with everything of the server that reads bytes. Each target runs in a process of its own, for the
/// same time.
#[derive(Parser)]
struct Arguments {
    /// Only targets whose name contains this
    #[arg(default_value = "")]
    only: String,
    /// How long each target hunts
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many targets hunt at a time; all if not given
    #[arg(long, value_name = "N")]
    at_once: Option<usize>,
    /// Seed of the mutations; taken from the clock if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Where findings are kept
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/found"))]
    found: PathBuf,
    /// Reads this one file, and nothing else
    #[arg(long)]
    input: Option<PathBuf>,
    /// Says what each target reads
    #[arg(long)]
    list: bool,
    /// Hunts in this process, and writes each input there before it is read
    #[arg(long, hide = true)]
    trace: Option<PathBuf>,
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program talks to its user"
)]
fn main() -> ExitCode {
    match work(&Arguments::parse()) {
        Ok((text, clean)) => {
            print!("{text}");
            if clean {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn work(arguments: &Arguments) -> Result<(String, bool), String> {
    let mut chosen = targets();
    chosen.retain(|target| target.name.contains(&arguments.only));
    let Some(first) = chosen.first() else {
        return Err(format!(
            "no target is called {:?}: --list names them",
            arguments.only
        ));
    };
    if arguments.list {
        let lines = chosen
            .iter()
            .map(|target| format!("{:16} {}\n", target.name, target.about));
        return Ok((lines.collect(), true));
    }
    if let Some(file) = &arguments.input {
        let input = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        return Ok(match run_one(first, &input) {
            Ok(way) => (format!("{}: nothing wrong (way {way:x})\n", first.name), true),
            Err(what) => (format!("{}: {what}\n", first.name), false),
        });
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = arguments.seed.unwrap_or(clock.as_secs());
    let time = Duration::from_secs(arguments.seconds);
    if arguments.trace.is_some() {
        let trace = arguments.trace.as_deref();
        return hunt_for(first, seed, time, trace, &arguments.found).map_err(|error| error.to_string());
    }
    let child = |target: &Target, trace: &std::path::Path| {
        [
            target.name,
            "--seconds",
            &arguments.seconds.to_string(),
            "--seed",
            &seed.to_string(),
            "--found",
            &arguments.found.to_string_lossy(),
            "--trace",
            &trace.to_string_lossy(),
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let at_once = arguments.at_once.unwrap_or(chosen.len());
    let hunts = watch(&chosen, at_once, &arguments.found, child).map_err(|error| error.to_string())?;
    let clean = hunts.iter().all(|hunt| hunt.clean);
    let mut text: String = hunts.iter().map(|hunt| hunt.said.as_str()).collect();
    text.push_str(&format!(
        "{} targets, {} s each, {at_once} at a time; to repeat: --seed {seed}\n",
        hunts.len(),
        arguments.seconds
    ));
    Ok((text, clean))
}
