//! `lockgate bench hub`: what propagation costs through a hub that runs already, with members that have joined it. The hub may
//! be anybody's that speaks this API: it is driven and watched from outside, by the load of `lockgate bench fleet`.
//!
//! What always holds: a phase is reported only when every member was read back and has what it should have.

mod phases;
mod report;
mod server;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::error::BenchError;
use crate::hub::report::HubReport;
use crate::hub::server::Server;
use crate::machine::Machine;
use crate::process::Process;

/// Measure propagation through a hub that runs already, to members that have joined it
#[derive(Clone, Debug, Args)]
pub struct HubArguments {
    /// The hub's kubeconfig, and which of its contexts if not the current one
    #[arg(long, value_name = "FILE[#CONTEXT]")]
    pub hub: Way,
    /// A member's name and its kubeconfig; once for each
    #[arg(long = "member", value_name = "NAME=FILE[#CONTEXT]", required = true)]
    pub members: Vec<Named<Way>>,
    /// A process whose CPU time and memory are told; once for each. A phase has settled when all of them rest
    #[arg(long = "process", value_name = "NAME=PID", required = true)]
    pub processes: Vec<Named<u32>>,
    /// How many templates
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub templates: u32,
    /// How many requests of the load are under way at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: u32,
    /// How long one phase may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub patience: u64,
    /// For how long all processes must use next to nothing for a phase to have settled, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    pub rest: f64,
    /// Leave the objects where they are
    #[arg(long)]
    pub keep: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The way to a server: a kubeconfig and one of its contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The kubeconfig.
    pub file: PathBuf,
    /// The current one if it is not said.
    pub context: Option<String>,
}

impl FromStr for Way {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (file, context) = match text.rsplit_once('#') {
            Some((file, context)) => (file, Some(context.to_owned())),
            None => (text, None),
        };
        Ok(Self {
            file: file.into(),
            context,
        })
    }
}

/// Something with a name, as `NAME=SOMETHING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T> {
    /// How it is spoken of.
    pub name: String,
    /// What it is.
    pub what: T,
}

impl<T: FromStr> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, what) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or("NAME=… is needed")?;
        let what = what.parse().map_err(|_| format!("{what:?} does not do"))?;
        Ok(Self {
            name: name.to_owned(),
            what,
        })
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number from 0.1 to 600 is needed".into()),
    }
}

/// Who takes part.
struct World {
    hub: Server,
    members: Vec<Server>,
    processes: Vec<Process>,
    templates: usize,
    concurrency: u32,
    patience: Duration,
    rest: Duration,
}

/// Measures, and prints the report on standard output.
pub fn run_hub(arguments: &HubArguments) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| BenchError::Usage(format!("failed to start: {e}")))?;
    let mut report = HubReport {
        command: crate::run::command(),
        templates: arguments.templates,
        members: arguments.members.len(),
        machine: Machine::inspect(&std::env::temp_dir())?,
        phases: Vec::new(),
        memory: Vec::new(),
        incomplete: None,
    };
    let measured = runtime.block_on(async {
        tokio::select! {
            measured = measure(arguments, &mut report) => measured,
            () = crate::run::stop_signal() => Err(BenchError::Interrupted),
        }
    });
    crate::run::conclude(measured, report, arguments.json)
}

async fn measure(arguments: &HubArguments, report: &mut HubReport) -> Result<(), BenchError> {
    let mut members = Vec::with_capacity(arguments.members.len());
    for member in &arguments.members {
        members.push(Server::read(&member.name, &member.what).await?);
    }
    let world = World {
        hub: Server::read("the hub", &arguments.hub).await?,
        members,
        processes: arguments
            .processes
            .iter()
            .map(|process| Process {
                name: process.name.clone(),
                pid: process.what,
            })
            .collect(),
        templates: arguments.templates as usize,
        concurrency: arguments.concurrency,
        patience: Duration::from_secs(arguments.patience),
        rest: Duration::from_secs_f64(arguments.rest),
    };
    phases::all(&world, arguments.keep, report).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_the_first_equals_sign() {
        let found: Named<Way> = "member1=/tmp/a=b".parse().unwrap();
        assert_eq!(
            (found.name.as_str(), found.what.file),
            ("member1", PathBuf::from("/tmp/a=b"))
        );
        assert_eq!("hub=12".parse::<Named<u32>>().unwrap().what, 12);
        for bad in ["hub", "=12", "hub=x", "hub="] {
            assert!(bad.parse::<Named<u32>>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_context_comes_after_the_last_hash() {
        let way: Way = "/tmp/a#b#member1".parse().unwrap();
        assert_eq!(
            (way.file, way.context.as_deref()),
            (PathBuf::from("/tmp/a#b"), Some("member1"))
        );
        assert_eq!("config".parse::<Way>().unwrap().context, None);
    }
}
