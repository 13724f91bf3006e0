//! `lockgate rollout status`: a change, its groups, their clusters and the object in each, with the time that is left.
//!
//! It fits into 80 columns, and clusters of which the same is to be said are told together, so that a thousand fit on a
//! screen.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use lockgate_api::rollout::duration_text;
use lockgate_api::rollout_policy::{RolloutRun, RunCluster, RunGroup};
use lockgate_engine::TemplateId;

use super::command::{Found, ObjectArguments, argument};
use super::holder::Holder;
use crate::exit::Failure;
use crate::print::{self, Paint, Tone};

/// The width of a terminal that does not say how wide it is.
const WIDTH: usize = 80;
/// So many clusters of which the same is to be said are told one by one.
const ALONE: usize = 3;
/// So many different things are said of the clusters of one group.
const KINDS: usize = 12;
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(
    after_help = "With --watch it ends when nothing more moves by itself: exit code 0 when the change is everywhere, \
        1 when it failed or was given up.\n\nOther exit codes: 1 failure, 2 usage."
)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    of: ObjectArguments,
    /// Keep looking until nothing more moves
    #[arg(short, long)]
    watch: bool,
}

/// Runs something that waits for the hub.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(future)
}

/// Shows a rollout, once or until it is over.
pub(crate) fn run(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut found = Found::read(&arguments.of).await?;
        let terminal = std::io::stdout().is_terminal();
        let mut last = String::new();
        loop {
            let Some(run) = found.holder.rollout() else {
                if arguments.watch && last.is_empty() && followed(&found) {
                    tokio::time::sleep(LOOK_EVERY).await;
                    found.refresh().await?;
                    continue;
                }
                print::out(&found.holder.untold(&found.id));
                return Ok(ExitCode::SUCCESS);
            };
            let phase = run.phase.clone();
            let holder = &found.holder;
            let text = show(
                &found.id,
                run,
                Some(holder),
                Timestamp::now(),
                Paint::stdout(),
                width(),
            );
            if !arguments.watch {
                print::out(&text);
                return Ok(ExitCode::SUCCESS);
            }
            if terminal {
                print::out(&format!("\x1b[H\x1b[2J{text}"));
            } else if still(&text) != still(&last) {
                print::out(&format!("{text}\n"));
            }
            match phase.as_str() {
                _ if holder.is_refused() => return Ok(ExitCode::from(1)),
                "Succeeded" => return Ok(ExitCode::SUCCESS),
                "Failed" | "Aborted" | "RolledBack" | "RollbackFailed" => return Ok(ExitCode::from(1)),
                _ => {}
            }
            last = text;
            tokio::time::sleep(LOOK_EVERY).await;
            if !found.refresh().await? {
                return Err(Failure::Other(format!("{} is gone", found.id)));
            }
        }
    })
}

/// Whether the status of a template that follows a strategy is not told yet.
fn followed(found: &Found) -> bool {
    lockgate_engine::gate::record::RolloutRecord::of(found.holder.metadata()).is_some()
}

/// A text without the time that is left, which is no news.
fn still(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split(" left").next().unwrap_or(line));
    let lines = lines.map(|line| line.rsplit_once(' ').map_or(line, |(before, _)| before));
    lines.collect::<Vec<_>>().join("\n")
}

/// The width of the terminal; whoever says COLUMNS knows better.
fn width() -> usize {
    let told = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let found = || {
        console::Term::stdout()
            .size_checked()
            .map(|(_, columns)| columns.into())
    };
    told.or_else(found)
        .filter(|columns| (40..=400).contains(columns))
        .unwrap_or(WIDTH)
}

/// A rollout as lines of text.
pub(super) fn show(
    id: &TemplateId,
    run: &RolloutRun,
    holder: Option<&Holder>,
    now: Timestamp,
    paint: Paint,
    width: usize,
) -> String {
    let mut text = String::new();
    let refused = holder.is_some_and(Holder::is_refused);
    let (mark, tone) = match refused {
        true => ("✘", Tone::Bad),
        false => phase(&run.phase),
    };
    let word = if refused { "Refused" } else { &run.phase };
    let mut line = |words: &str, tone: Tone| {
        text.push_str(&paint.tone(&cut(words, width), tone));
        text.push('\n');
    };
    line(&format!("{id}   {mark} {word}"), tone);
    let good = match run.good_revision {
        Some(good) if good == run.revision => String::new(),
        Some(good) => format!(", the last good one is {good}"),
        None => ", none has succeeded everywhere yet".to_owned(),
    };
    line(&format!("  revision   {}{good}", run.revision), Tone::Plain);
    line(&format!("  policy     {}", run.policy), Tone::Plain);
    // What is wrong with the policy comes before what became of it: nothing may move for that.
    for note in holder.into_iter().flat_map(Holder::notes) {
        let tone = if note.status == "False" {
            Tone::Bad
        } else {
            Tone::Warn
        };
        for part in wrapped(&note.message, width.saturating_sub(13)) {
            line(&format!("  note       {part}"), tone);
        }
    }
    let heading = if refused { "before" } else { "because" };
    for part in wrapped(&run.message, width.saturating_sub(13)) {
        line(&format!("  {heading:<9}  {part}"), Tone::Plain);
    }
    if !run.command.is_empty() {
        line(&format!("  command    {}", run.command), Tone::Plain);
    }
    let mut groups = run.groups.as_slice();
    while let Some(first) = groups.first() {
        text.push('\n');
        let alike = groups
            .iter()
            .take_while(|group| of_one_kind(group) && of_one_kind(first) && group.state == first.state)
            .count();
        if alike > ALONE {
            show_groups(&mut text, &groups[..alike], holder, paint, width);
            groups = &groups[alike..];
        } else {
            show_group(&mut text, first, holder, now, paint, width);
            groups = &groups[1..];
        }
    }
    let next = match refused {
        true => format!("Next: kubectl edit {}", argument(id)),
        false => next(id, run),
    };
    text.push_str(&format!("\n{next}\n"));
    text
}

fn phase(phase: &str) -> (&'static str, Tone) {
    match phase {
        "Succeeded" => ("✔", Tone::Good),
        "Paused" => ("‖", Tone::Warn),
        "Failed" | "RollbackFailed" | "Aborted" => ("✘", Tone::Bad),
        "RollingBack" | "RolledBack" => ("↩", Tone::Warn),
        _ => ("…", Tone::Warn),
    }
}

fn state(cluster: &RunCluster) -> (&'static str, Tone) {
    match cluster.state.as_str() {
        "Succeeded" if cluster.until.is_some() => ("…", Tone::Warn),
        "Succeeded" | "Skip" => ("✔", Tone::Good),
        "Failed" | "TimeOut" => ("✘", Tone::Bad),
        "Suspended" => ("‖", Tone::Warn),
        "Progressing" => ("…", Tone::Warn),
        _ => ("·", Tone::Faint),
    }
}

/// What is said of a cluster.
fn words(cluster: &RunCluster) -> (&str, String, Option<&str>) {
    let state = match (cluster.state.as_str(), &cluster.until) {
        ("Succeeded", Some(_)) => "Soaking",
        ("Skip", _) => "Unchanged",
        (state, _) => state,
    };
    let reason = match cluster.reason.as_str() {
        "done" | "skipped" => String::new(),
        reason => match reason.split_once(" until 2") {
            // What is left is told beside it.
            Some((reason, rest)) => {
                let reason = reason.strip_suffix(", has").unwrap_or(reason);
                let more = rest.split_once("; ").map(|(_, more)| format!("; {more}"));
                format!("{reason}{}", more.unwrap_or_default())
            }
            None => reason.strip_prefix("done; ").unwrap_or(reason).to_owned(),
        },
    };
    (state, reason, cluster.until.as_deref())
}

/// Whether the same is to be said of the whole group: it is done, or it waits.
fn of_one_kind(group: &RunGroup) -> bool {
    let alike = |cluster: &RunCluster| match group.state.as_str() {
        "Succeeded" => cluster.is_done(),
        "ToApply" => cluster.state == "ToApply",
        _ => false,
    };
    !group.clusters.is_empty() && group.clusters.iter().all(alike)
}

/// Several groups of which the same is to be said, in a few lines.
fn show_groups(text: &mut String, groups: &[RunGroup], holder: Option<&Holder>, paint: Paint, width: usize) {
    let clusters: usize = groups.iter().map(|group| group.clusters.len()).sum();
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
        return;
    };
    let done = if first.state == "Succeeded" { clusters } else { 0 };
    let title = format!(
        "groups {} to {}   {done} of {clusters} done",
        first.index, last.index
    );
    text.push_str(&paint.tone(&cut(&title, width), Tone::Strong));
    text.push('\n');
    if let Some(cluster) = first.clusters.first() {
        let (mark, tone) = state(cluster);
        let (word, reason, _) = words(cluster);
        let line = format!("  {mark} all  {word:<11} {reason}");
        text.push_str(&paint.tone(cut(&line, width).trim_end(), tone));
        text.push('\n');
    }
    let all = groups.iter().flat_map(|group| &group.clusters);
    if let Some(summary) = holder.and_then(|holder| holder.summary(all)) {
        for part in wrapped(&summary, width.saturating_sub(6)) {
            text.push_str(&paint.tone(&format!("      {part}"), Tone::Faint));
            text.push('\n');
        }
    }
}

fn show_group(
    text: &mut String,
    group: &RunGroup,
    holder: Option<&Holder>,
    now: Timestamp,
    paint: Paint,
    width: usize,
) {
    let done = |cluster: &&RunCluster| state(cluster).1 == Tone::Good;
    let title = match group.name.as_str() {
        "" => format!("group {}", group.index),
        "leaving" => "leaving".to_owned(),
        name => format!("group {} ({name})", group.index),
    };
    let count = group.clusters.iter().filter(done).count();
    let title = format!("{title}   {count} of {} done", group.clusters.len());
    text.push_str(&paint.tone(&cut(&title, width), Tone::Strong));
    text.push('\n');
    let names = group.clusters.iter().map(|cluster| cluster.name.chars().count());
    let wide = names.max().unwrap_or(0).min(width / 3);
    let said = |cluster: &RunCluster| holder.map(|holder| holder.said(cluster)).unwrap_or_default();
    let apart = |cluster: &RunCluster| match holder {
        Some(holder) if holder.tells_apart() => holder.said(cluster),
        _ => Vec::new(),
    };
    // How much time each has left differs by moments, and is told of the first.
    let told = |cluster: &RunCluster| {
        let (state, reason, _) = words(cluster);
        (state.to_owned(), reason, apart(cluster))
    };
    let mut kinds: Vec<(_, Vec<&RunCluster>)> = Vec::new();
    let mut places = HashMap::new();
    for cluster in &group.clusters {
        let told = told(cluster);
        let at = *places.entry(told.clone()).or_insert(kinds.len());
        match kinds.get_mut(at) {
            Some((_, alike)) => alike.push(cluster),
            None => kinds.push((told, vec![cluster])),
        }
    }
    let hidden = kinds.len().saturating_sub(KINDS);
    if hidden > 0 {
        // What needs somebody's attention comes first, then what most have in common.
        kinds.sort_by_key(|(_, alike)| {
            let tone = alike.first().map(|cluster| state(cluster).1);
            (tone != Some(Tone::Bad), std::cmp::Reverse(alike.len()))
        });
    }
    for (_, alike) in kinds.iter().take(KINDS) {
        let shown = if alike.len() > ALONE { 1 } else { alike.len() };
        for cluster in &alike[..shown] {
            let (mark, tone) = state(cluster);
            let (word, reason, until) = words(cluster);
            let name: String = cut(&cluster.name, wide);
            let line = format!("  {mark} {name:wide$}  {word:<11} {reason}");
            let left = until.and_then(|until| left(until, now));
            let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
            // The time that is left is told in any case.
            let line = cut(&line, width.saturating_sub(left.chars().count())) + &left;
            text.push_str(&paint.tone(line.trim_end(), tone));
            text.push('\n');
            for object in said(cluster) {
                let line = format!("      {object}");
                text.push_str(&paint.tone(&cut(&line, width), Tone::Faint));
                text.push('\n');
            }
        }
        if alike.len() > shown {
            let line = format!("    … and {} more like it", alike.len() - shown);
            text.push_str(&paint.tone(&line, Tone::Faint));
            text.push('\n');
        }
    }
    if hidden > 0 {
        let clusters: usize = kinds.iter().skip(KINDS).map(|(_, alike)| alike.len()).sum();
        let line = format!("    … and {clusters} more, of which other things are to be said");
        text.push_str(&paint.tone(&line, Tone::Faint));
        text.push('\n');
    }
}

fn left(until: &str, now: Timestamp) -> Option<String> {
    let until: Timestamp = until.parse().ok()?;
    let left = until.duration_since(now);
    let seconds = u64::try_from(left.as_secs().max(0)).unwrap_or(0);
    Some(duration_text(Duration::from_secs(seconds)))
}

fn next(id: &TemplateId, run: &RolloutRun) -> String {
    let what = match run.phase.as_str() {
        "Paused" => format!("resume {}", argument(id)),
        "Failed" => format!("retry|abort {}", argument(id)),
        "RollbackFailed" => format!("retry {}", argument(id)),
        "Progressing" | "RollingBack" => format!("status {} --watch", argument(id)),
        _ => format!("history {}", argument(id)),
    };
    format!("Next: lockgate rollout {what}")
}

/// A text that is not longer than the width.
fn cut(text: &str, width: usize) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() <= width {
        return text;
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A text in lines that are not longer than the width, if its words are not.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
