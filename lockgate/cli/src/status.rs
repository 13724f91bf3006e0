//! `lockgate status`: where everything is, what is not well, and why. It reads the hub's objects and nothing else, so that
//! it says the same whoever runs the controllers, and also when nobody does.
//!
//! [`gather`] reads, [`template`] and [`fleet`] decide what to say (pure, as everything they use), [`show`] prints.

pub(crate) mod claim;
mod fleet;
pub(crate) mod gather;
pub(crate) mod judge;
pub(crate) mod kinds;
pub(crate) mod objects;
mod report;
mod show;
mod template;
mod why;

#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::connect::{Connection, HubArguments};
use crate::exit::Failure;
use crate::print::{self, Paint};
use crate::status::gather::Question;
use crate::status::report::Report;
use crate::status::show::Style;
pub(crate) use crate::status::template::is_of;
pub(crate) use crate::status::why::rollout_of_policy;

/// How often `--watch` looks again.
const INTERVAL: Duration = Duration::from_secs(2);
/// Looking takes at most one part of the time in this many, so that a watch on a large hub does not load it.
const SHARE: u32 = 10;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate status                          everything, what is not well first\n  \
        lockgate status deployment/web -n shop   one template: its policy, and how it is in each cluster\n  \
        lockgate status pp/web -n shop           one policy and its templates\n  \
        lockgate status cluster/member1          one cluster\n\n\
        Exit codes: 0 when it could be told (also that something is not well), 1 failure, 2 usage.")]
pub(crate) struct StatusArguments {
    /// What to look at, as KIND/NAME or KIND NAME; everything if it is not given
    #[arg(value_name = "KIND/NAME", num_args = 0..=2)]
    object: Vec<String>,
    /// The namespace [default: the context's for an object, all for everything]
    #[arg(short, long, value_name = "NS", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "object")]
    all_namespaces: bool,
    /// Look again and again; on a terminal in place, else whenever something changed
    #[arg(short, long)]
    watch: bool,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Tables without their first line
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Wide,
    Json,
    Yaml,
}

/// Answers once, or until somebody has seen enough.
pub(crate) fn run(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(status(arguments))
}

async fn status(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let hub = arguments.hub.connect().await?;
    let question = Question::parse(&arguments.object, arguments.namespace.as_deref(), &hub).await?;
    if arguments.watch {
        watch(arguments, &question, &hub).await?;
    } else {
        print::out(&text(arguments, &question.answer(&hub).await?));
    }
    Ok(ExitCode::SUCCESS)
}

/// Never returns but by an error at the first look; later ones are shown and may pass.
async fn watch(arguments: &StatusArguments, question: &Question, hub: &Connection) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal();
    let mut last = String::new();
    loop {
        let begun = Instant::now();
        let text = match question.answer(hub).await {
            Ok(report) => text(arguments, &report),
            Err(failure) if last.is_empty() => return Err(failure),
            Err(failure) => format!("error: {failure}\n"),
        };
        if terminal {
            let (rows, columns) = console::Term::stdout().size();
            print::out(&frame(&text, rows.into(), columns.into(), last.is_empty()));
        } else if text != last {
            let gap = if last.is_empty() { "" } else { "\n" };
            print::out(&format!("{gap}{text}"));
        }
        last = text;
        tokio::time::sleep(INTERVAL.max(begun.elapsed() * SHARE)).await;
    }
}

/// A picture that replaces the last one: what does not fit on the screen is cut, and nothing scrolls.
fn frame(text: &str, rows: usize, columns: usize, first: bool) -> String {
    let mut frame = String::from(if first { "\x1b[2J\x1b[H" } else { "\x1b[H" });
    for line in text.lines().take(rows.saturating_sub(1)) {
        frame.push_str(&cut(line, columns));
        frame.push_str("\x1b[K\n");
    }
    frame.push_str("\x1b[J");
    frame
}

/// The first `columns` characters of a line; colours are whole and take no room.
fn cut(line: &str, columns: usize) -> String {
    let (mut kept, mut room, mut escape) = (String::new(), columns, false);
    for character in line.chars() {
        if escape {
            escape = character != 'm';
        } else if character == '\x1b' {
            escape = true;
        } else if room == 0 {
            continue;
        } else {
            room -= 1;
        }
        kept.push(character);
    }
    kept
}

fn text(arguments: &StatusArguments, report: &Report) -> String {
    let style = Style {
        paint: Paint::stdout(),
        wide: arguments.output == Output::Wide,
        headers: !arguments.no_headers,
    };
    render(arguments.output, report, style)
}

fn render(output: Output, report: &Report, style: Style) -> String {
    let value = || serde_json::to_value(report).unwrap_or_default();
    match output {
        Output::Table | Output::Wide => show::show(report, style),
        Output::Json => format!("{:#}\n", value()),
        Output::Yaml => machinery_value::encode::to_yaml(&value()),
    }
}
