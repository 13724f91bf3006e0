//! `machinery-difftest`: compares two servers from the command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use machinery_difftest::{Options, Script, Target, generate, load_scripts, run};

/// Sends the same requests to two API servers and prints what their answers differ in.
#[derive(Parser)]
struct Arguments {
    /// The directory of the server to compare with, as `real/start` leaves it (url, ca.crt, admin.token)
    #[arg(long)]
    left: PathBuf,
    /// The same for the server that is compared
    #[arg(long)]
    right: PathBuf,
    /// Directory of the hand-written scripts
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/exchanges"))]
    exchanges: PathBuf,
    /// Only scripts whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Seed of the generated scripts; taken from the clock if not given
    #[arg(long)]
    seed: Option<u64>,
    /// How many scripts to generate
    #[arg(long, default_value_t = 10)]
    generate: usize,
    /// Also print what the left server answers to each step
    #[arg(long)]
    transcript: bool,
    /// Print the scripts as JSON instead of running them
    #[arg(long)]
    print: bool,
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program talks to its user"
)]
async fn main() -> ExitCode {
    match compare(Arguments::parse()).await {
        Ok((text, clean)) => {
            println!("{text}");
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

async fn compare(arguments: Arguments) -> Result<(String, bool), Box<dyn std::error::Error>> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = arguments.seed.unwrap_or(clock.as_secs());
    let mut scripts = load_scripts(&arguments.exchanges)?;
    scripts.extend(generate::scripts(seed, arguments.generate)?);
    scripts.retain(|script| script.name.contains(&arguments.only));
    if arguments.print {
        return Ok((print(&scripts)?, true));
    }
    let left = Target::from_directory("left", &arguments.left)?;
    let right = Target::from_directory("right", &arguments.right)?;
    let options = Options {
        run: format!("{:x}", clock.as_millis()),
        transcript: arguments.transcript,
    };
    let report = run(&left, &right, &scripts, &options).await?;
    Ok((format!("{report}generated with --seed {seed}"), report.is_clean()))
}

fn print(scripts: &[Script]) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for script in scripts {
        text.push_str(&format!(
            "# {}\n{}\n",
            script.name,
            serde_json::to_string_pretty(script)?
        ));
    }
    Ok(text)
}
