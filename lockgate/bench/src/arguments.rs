//! What can be asked for on the command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use crate::payload::{CONFIG_MAP, DEPLOYMENT, Kind};

/// Measure the API server beside a real kube-apiserver
#[derive(Clone, Debug, Args)]
pub struct ApiArguments {
    /// The real server to compare with: a directory for its state, "auto" (skipped, loudly, when it cannot be had) or "none"
    #[arg(long, value_name = "DIR|auto|none", default_value = "auto")]
    pub real: RealChoice,
    /// Where the scripts `get`, `start` and `stop` are that obtain and run the real server
    #[arg(
        long,
        value_name = "PATH",
        default_value = "real",
        env = "LOCKGATE_REAL_SCRIPTS"
    )]
    pub real_scripts: PathBuf,
    /// How many objects to measure memory with; without any at all is always measured
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000, 100_000])]
    pub objects: Vec<usize>,
    /// How many creates, gets and updates make one measurement
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = positive)]
    pub operations: usize,
    /// How many requests are under way at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = positive)]
    pub concurrency: usize,
    /// How many connections they share
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive)]
    pub connections: usize,
    /// How often each measurement is made; the median and the range are reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive)]
    pub repeat: usize,
    /// How many watches of one collection
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive)]
    pub watchers: usize,
    /// How many watches of one kind while it changes a hundred times a second
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = positive)]
    pub crowd: usize,
    /// How many members to start in one process
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = positive)]
    pub members: usize,
    /// Measure creates, gets, updates, applies and lists of Deployments too
    #[arg(long)]
    pub deployments: bool,
    /// Measure only these
    #[arg(long, value_name = "SECTION", value_delimiter = ',')]
    pub only: Vec<Section>,
    /// Small numbers, to see that everything works; the figures mean little
    #[arg(long)]
    pub quick: bool,
    /// Where the servers keep their data [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// The lockgate program to measure [default: this one]
    #[arg(long, value_name = "FILE", hide = true)]
    pub program: Option<PathBuf>,
    /// How to print the report
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

impl ApiArguments {
    /// The kinds that are measured.
    pub(crate) fn kinds(&self) -> &'static [&'static Kind] {
        if self.deployments {
            &[&CONFIG_MAP, &DEPLOYMENT]
        } else {
            &[&CONFIG_MAP]
        }
    }

    /// The same with `--quick` applied.
    pub(crate) fn settled(mut self) -> Self {
        if self.quick {
            self.objects = vec![1_000];
            self.operations = self.operations.min(200);
            self.repeat = 1;
            self.watchers = self.watchers.min(20);
            self.crowd = self.crowd.min(50);
            self.members = self.members.min(20);
        }
        self.objects.retain(|count| *count > 0);
        self.objects.sort_unstable();
        self.objects.dedup();
        self
    }

    pub(crate) fn wants(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }
}

/// Which real server to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealChoice {
    /// One with its state in this directory.
    Directory(PathBuf),
    /// One with its state in the scratch directory, if it can be had.
    Auto,
    /// None at all.
    None,
}

impl FromStr for RealChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "" => Err("name a directory, auto or none".into()),
            directory => Ok(Self::Directory(directory.into())),
        }
    }
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Members started in this process.
    Members,
    /// The time from process start until ready.
    Start,
    /// Creates, gets, updates and lists.
    Operations,
    /// Server-side apply: of new objects, of nothing new, and by a second manager.
    Apply,
    /// Events to many watches.
    Watch,
    /// A thousand watches of one kind, at a fixed pace.
    Crowd,
    /// Memory with few and many objects, and opening the data again.
    Memory,
}

/// How the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For documents.
    Markdown,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a positive whole number is needed".into()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        api: ApiArguments,
    }

    fn parse(line: &str) -> Result<ApiArguments, clap::Error> {
        Line::try_parse_from(std::iter::once("bench").chain(line.split_whitespace())).map(|l| l.api)
    }

    #[test]
    fn defaults_are_the_headline_measurement() {
        let arguments = parse("").unwrap().settled();
        assert_eq!(
            (arguments.operations, arguments.concurrency, arguments.repeat),
            (5_000, 32, 3)
        );
        assert_eq!(arguments.objects, [10_000, 100_000]);
        assert_eq!(arguments.real, RealChoice::Auto);
        assert!(arguments.wants(Section::Memory));
    }

    #[test]
    fn quick_is_small_and_sections_can_be_chosen() {
        let arguments = parse("--quick --only watch,start --real none").unwrap().settled();
        assert_eq!((arguments.operations, arguments.repeat), (200, 1));
        assert!(arguments.wants(Section::Watch) && !arguments.wants(Section::Memory));
        assert_eq!(arguments.real, RealChoice::None);
    }

    #[test]
    fn counts_are_sorted_and_none_is_implied() {
        assert_eq!(
            parse("--objects 500,0,20,500").unwrap().settled().objects,
            [20, 500]
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "--concurrency 0",
            "--repeat x",
            "--only nothing",
            "-o yaml",
            "--operations -1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
