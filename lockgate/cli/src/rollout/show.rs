//! A simulation as people and programs read it.

use std::fmt::Write as _;

use lockgate_api::RolloutStrategy;
use lockgate_api::rollout::{Threshold, duration_text};
use lockgate_engine::gate::decision::Overall;
use lockgate_engine::gate::groups::Groups;
use lockgate_engine::gate::rules::{Order, Rules, threshold_size};
use lockgate_engine::gate::simulate::{Event, Happened, Timeline};
use lockgate_engine::gate::standing::Status;
use serde_json::{Value, json};

use crate::print::{Cell, Paint, Table, Tone};

/// More names of one line are counted.
const NAMES: usize = 3;

/// A strategy with what came of it.
pub(crate) struct Played {
    pub(crate) strategy: RolloutStrategy,
    pub(crate) rules: Rules,
    pub(crate) groups: Groups,
    pub(crate) timeline: Timeline,
    /// What the strategy asks for in vain.
    pub(crate) warnings: Vec<String>,
    /// Whether clusters could fail.
    pub(crate) tries_failures: bool,
}

/// The strategy, the timeline, and what came of it.
pub(crate) fn table(played: &Played, paint: Paint, headers: bool) -> String {
    let mut text = format!("{}\n", paint.tone(&rules_line(played), Tone::Strong));
    for warning in &played.warnings {
        let _ = writeln!(text, "{}", paint.tone(&format!("warning: {warning}"), Tone::Warn));
    }
    text.push('\n');
    let mut table = Table::new(&["TIME", "EVENT", "CLUSTERS", "WHY"]);
    for line in lines(&played.timeline.events) {
        let (word, tone) = word(line.happened);
        table.row(vec![
            duration_text(line.at).into(),
            Cell::new(word, tone),
            names(&line.clusters).into(),
            line.why.into(),
        ]);
    }
    text.push_str(&table.render(paint, headers));
    text.push('\n');
    text.push_str(&result(played, paint, headers));
    if !played.tries_failures {
        text.push_str("\nNext: the same with --fail-rate 10%\n");
    }
    text
}

/// Events of one moment that say the same.
struct Line<'a> {
    at: std::time::Duration,
    happened: Happened,
    why: &'a str,
    clusters: Vec<&'a str>,
}

fn lines(events: &[Event]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for event in events {
        let same = |line: &&mut Line<'_>| {
            line.at == event.at && line.happened == event.happened && line.why == event.why
        };
        match lines.last_mut().filter(same) {
            Some(line) => line.clusters.push(&event.cluster),
            None => lines.push(Line {
                at: event.at,
                happened: event.happened,
                why: &event.why,
                clusters: Some(event.cluster.as_str())
                    .filter(|cluster| !cluster.is_empty())
                    .into_iter()
                    .collect(),
            }),
        }
    }
    lines
}

fn word(happened: Happened) -> (&'static str, Tone) {
    match happened {
        Happened::Started => ("starts", Tone::Plain),
        Happened::Succeeded => ("succeeds", Tone::Good),
        Happened::Soaked => ("has soaked", Tone::Good),
        Happened::Failed => ("fails", Tone::Bad),
        Happened::TimedOut => ("times out", Tone::Bad),
        Happened::Stopped => ("stops", Tone::Bad),
        Happened::Resumed => ("goes on", Tone::Good),
    }
}

fn names(clusters: &[&str]) -> String {
    match clusters.len() {
        count if count <= NAMES + 1 => clusters.join(", "),
        count => format!("{} and {} more", clusters[..NAMES].join(", "), count - NAMES),
    }
}

/// What the strategy comes to in this fleet.
fn rules_line(played: &Played) -> String {
    let (rules, groups) = (&played.rules, &played.groups);
    let kind = match rules.order {
        Order::All => "All",
        Order::Progressive => "Progressive",
        Order::ProgressivePerGroup => "ProgressivePerGroup",
    };
    let of = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    let mut text = format!(
        "{kind} over {} in {}",
        of(groups.cluster_count(), "cluster"),
        of(groups.iter().count(), "group")
    );
    let mandatory = groups.named_by(&rules.mandatory);
    let first: Vec<String> = groups
        .iter()
        .zip(&mandatory)
        .filter(|(_, mandatory)| **mandatory)
        .map(|(group, _)| group.to_string())
        .collect();
    if !first.is_empty() {
        let _ = write!(text, ", {} first", first.join(" and "));
    }
    if rules.order == Order::Progressive {
        let open = groups
            .iter()
            .zip(&mandatory)
            .filter(|(_, mandatory)| !**mandatory);
        let open = open.map(|(group, _)| group.clusters.len()).sum();
        let _ = write!(
            text,
            ", {} at a time",
            threshold_size(rules.max_concurrency, open, open)
        );
    }
    match (rules.order, rules.max_failures) {
        (Order::All, _) => {}
        (Order::ProgressivePerGroup, Threshold::Percent(_)) => {
            let share = played
                .strategy
                .config()
                .and_then(|config| config.max_failures.as_ref());
            let share = share.map(ToString::to_string).unwrap_or_default();
            let _ = write!(text, ", at most {} of a group may fail", share.trim_matches('"'));
        }
        (order, threshold) => {
            let place = if order == Order::ProgressivePerGroup {
                " in a group"
            } else {
                ""
            };
            match threshold_size(threshold, groups.cluster_count(), 0) {
                0 => text.push_str(", none may fail"),
                allowed => {
                    let _ = write!(text, ", at most {allowed} may fail{place}");
                }
            }
        }
    }
    if !rules.soak.is_zero() {
        let _ = write!(text, ", soak {}", duration_text(rules.soak));
    }
    if let Some(deadline) = rules.deadline {
        let _ = write!(text, ", deadline {}", duration_text(deadline));
    }
    text
}

/// When it stopped for good.
fn stopped(timeline: &Timeline) -> String {
    let mut events = timeline.events.iter();
    let last = events.rfind(|event| event.happened == Happened::Stopped);
    duration_text(last.map_or(timeline.took, |event| event.at))
}

/// How many clusters ended so.
fn count(timeline: &Timeline, wanted: impl Fn(Status) -> bool) -> usize {
    timeline
        .clusters
        .iter()
        .filter(|ending| wanted(ending.status))
        .count()
}

fn result(played: &Played, paint: Paint, headers: bool) -> String {
    let timeline = &played.timeline;
    let after = duration_text(timeline.took);
    let waiting = count(timeline, |status| status == Status::ToApply);
    let (first, tone) = match (&timeline.breach, timeline.overall, waiting) {
        (Some(breach), _, 0) => (format!("Over after {after}, with failures: {breach}"), Tone::Bad),
        (Some(breach), ..) => (
            format!("Stopped after {}: {breach}", stopped(timeline)),
            Tone::Bad,
        ),
        (None, _, 1..) => (format!("Stalled after {after}"), Tone::Bad),
        (None, Some(Overall::Failed), _) => (format!("Over after {after}, with failures"), Tone::Warn),
        (None, ..) => (format!("Done after {after}"), Tone::Good),
    };
    let mut text = format!("{}\n", paint.tone(&first, tone));
    let mut counts = Vec::new();
    for (word, number) in [
        ("succeeded", count(timeline, |status| status == Status::Succeeded)),
        ("failed", count(timeline, |status| status == Status::Failed)),
        ("timed out", count(timeline, |status| status == Status::TimeOut)),
        (
            "under way",
            count(timeline, |status| status == Status::Progressing),
        ),
        ("never started", waiting),
    ] {
        if number > 0 {
            counts.push(format!("{number} {word}"));
        }
    }
    let _ = writeln!(
        text,
        "{}; at most {} at a time",
        counts.join(", "),
        timeline.most_in_flight
    );
    if waiting > 0 {
        text.push('\n');
        text.push_str(&held(timeline, paint, headers));
    }
    text
}

/// Those that never started, by reason.
fn held(timeline: &Timeline, paint: Paint, headers: bool) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for ending in timeline
        .clusters
        .iter()
        .filter(|ending| ending.status == Status::ToApply)
    {
        match reasons.iter_mut().find(|(why, _)| *why == ending.why) {
            Some((_, clusters)) => clusters.push(&ending.cluster),
            None => reasons.push((&ending.why, vec![&ending.cluster])),
        }
    }
    let mut table = Table::new(&["NEVER STARTED", "WHY"]);
    for (why, clusters) in reasons {
        table.row(vec![names(&clusters).into(), why.into()]);
    }
    table.render(paint, headers)
}

/// Everything, for programs. Times are durations since the beginning, as text and in seconds.
pub(crate) fn json(played: &Played) -> Value {
    let timeline = &played.timeline;
    let groups = played
        .groups
        .iter()
        .map(|group| json!({ "index": group.index, "name": group.name, "clusters": group.clusters }));
    let events = lines(&timeline.events).into_iter().map(|line| {
        let event = match line.happened {
            Happened::Started => "Started",
            Happened::Succeeded => "Succeeded",
            Happened::Soaked => "Soaked",
            Happened::Failed => "Failed",
            Happened::TimedOut => "TimedOut",
            Happened::Stopped => "Stopped",
            Happened::Resumed => "Resumed",
        };
        json!({ "at": duration_text(line.at), "seconds": line.at.as_secs_f64(), "event": event,
            "clusters": line.clusters, "reason": line.why })
    });
    let clusters = timeline.clusters.iter().map(|ending| {
        json!({ "name": ending.cluster, "group": ending.group, "status": ending.status.name(), "reason": ending.why })
    });
    json!({
        "strategy": played.strategy,
        "groups": groups.collect::<Value>(),
        "warnings": played.warnings,
        "timeline": events.collect::<Value>(),
        "clusters": clusters.collect::<Value>(),
        "result": {
            "status": timeline.overall.map_or("", Overall::name),
            "took": duration_text(timeline.took),
            "seconds": timeline.took.as_secs_f64(),
            "breach": timeline.breach,
            "mostInFlight": timeline.most_in_flight,
        },
    })
}
