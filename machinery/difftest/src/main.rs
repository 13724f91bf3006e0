//! `machinery-difftest`: compares two servers from the command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use machinery_difftest::hunt::{self, Hunt};
use machinery_difftest::{EmbeddedServer, Options, RealServer, Script, Target, generate, load_scripts, run};

/// Sends the same requests to two API servers and prints what their answers differ in.
#[derive(Parser)]
struct Arguments {
    /// The directory of the server to compare with, as `real/start` leaves it (url, ca.crt, admin.token)
    #[arg(long, required_unless_present_any = ["differential", "print"])]
    left: Option<PathBuf>,
    /// The same for the server that is compared
    #[arg(long, required_unless_present_any = ["differential", "print"])]
    right: Option<PathBuf>,
    /// Starts a real server and the embedded one, and compares them with new scripts until the time is up; what differs is
    /// made small and kept
    #[arg(long, conflicts_with_all = ["left", "right"])]
    differential: bool,
    /// How long to go on
    #[arg(long, default_value_t = 600, requires = "differential")]
    seconds: u64,
    /// Where scripts that differ are kept
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions"))]
    regressions: PathBuf,
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
    if arguments.differential {
        let hunt = Hunt {
            seed,
            time: Duration::from_secs(arguments.seconds),
            regressions: arguments.regressions,
            run: format!("{:x}", clock.as_millis()),
        };
        return differential(&hunt).await;
    }
    let mut scripts = load_scripts(&arguments.exchanges)?;
    scripts.extend(generate::scripts(seed, arguments.generate)?);
    scripts.retain(|script| script.name.contains(&arguments.only));
    if arguments.print {
        return Ok((print(&scripts)?, true));
    }
    let (Some(left), Some(right)) = (&arguments.left, &arguments.right) else {
        return Err("--left and --right name the servers".into());
    };
    let left = Target::from_directory("left", left)?;
    let right = Target::from_directory("right", right)?;
    let options = Options {
        run: format!("{:x}", clock.as_millis()),
        transcript: arguments.transcript,
    };
    let report = run(&left, &right, &scripts, &options).await?;
    Ok((format!("{report}generated with --seed {seed}"), report.is_clean()))
}

/// Compares the embedded server with a real one.
#[expect(
    clippy::print_stdout,
    reason = "a hunt of hours tells what it finds when it finds it"
)]
async fn differential(hunt: &Hunt) -> Result<(String, bool), Box<dyn std::error::Error>> {
    let real = RealServer::start()?;
    let embedded = EmbeddedServer::start().await.map_err(|error| error.to_string())?;
    println!("hunting for {} s with --seed {}", hunt.time.as_secs(), hunt.seed);
    let hunted = hunt::hunt(&real.target("real")?, &embedded.target, hunt, |text| {
        println!("{text}")
    })
    .await?;
    let text = format!(
        "{} exchanges in {} scripts compared, {} differences kept; generated with --seed {}",
        hunted.exchanges,
        hunted.scripts,
        hunted.found.len(),
        hunt.seed
    );
    Ok((text, hunted.found.is_empty()))
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
