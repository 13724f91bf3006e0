//! Reports as people read them.

use std::fmt::Write as _;

use crate::print::{Cell, Paint, Table, Tone};
use crate::status::report::{
    ClusterLine, ClusterReport, ConditionLine, FleetReport, PlaceLine, PolicyLine, PolicyReport, Report,
    State, TemplateLine, TemplateReport,
};

/// Templates that are listed unless `wide` asks for all of them.
const LISTED: usize = 10;

/// How to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) paint: Paint,
    pub(crate) wide: bool,
    pub(crate) headers: bool,
}

impl State {
    fn cell(self) -> Cell {
        let (text, tone) = match self {
            Self::Failing => ("✖ Failing", Tone::Bad),
            Self::NotPlaced => ("✖ Not placed", Tone::Bad),
            Self::Unhealthy => ("✖ Unhealthy", Tone::Bad),
            Self::Unknown => ("? Unknown", Tone::Warn),
            Self::Frozen => ("• Frozen", Tone::Warn),
            Self::NotPropagated => ("• Not propagated", Tone::Warn),
            Self::Waiting => ("◷ Waiting", Tone::Warn),
            Self::NotReady => ("◌ Not ready", Tone::Warn),
            Self::Suspended => ("‖ Suspended", Tone::Warn),
            Self::Leaving => ("◌ Leaving", Tone::Warn),
            Self::Healthy => ("✔ Healthy", Tone::Good),
        };
        Cell::new(text, tone)
    }
}

/// A report as text that ends with a newline.
pub(crate) fn show(report: &Report, style: Style) -> String {
    match report {
        Report::Fleet(report) => fleet(report, style),
        Report::Policy(report) => policy(report, style),
        Report::Cluster(report) => cluster(report, style),
        Report::Template(report) => template(report, style),
    }
}

fn fleet(report: &FleetReport, style: Style) -> String {
    let mut text = verdict(report, style.paint);
    for note in &report.notes {
        let _ = writeln!(text, "{}", style.paint.tone(note, Tone::Warn));
    }
    if !report.not_well.is_empty() {
        section(&mut text, &templates(&report.not_well, "NOT WELL", style), style);
        cut(&mut text, report.not_well.len(), style);
    }
    if !report.policies.is_empty() {
        section(&mut text, &policies(&report.policies, style), style);
    }
    if !report.clusters.is_empty() {
        section(&mut text, &clusters(&report.clusters, style), style);
    }
    next(&mut text, &report.next, style);
    text
}

/// The first line: how much there is, and how much of it is not well.
fn verdict(report: &FleetReport, paint: Paint) -> String {
    let clusters = report.clusters.iter().filter(|cluster| !cluster.well()).count();
    let policies = report.policies.iter().filter(|policy| !policy.reason.is_empty());
    let policies = policies.count();
    let mut bad = Vec::new();
    if !report.not_well.is_empty() {
        bad.push(plural(report.not_well.len(), "template"));
    }
    if policies > 0 {
        bad.push(plural(policies, "policy"));
    }
    if clusters > 0 {
        bad.push(plural(clusters, "cluster"));
    }
    let (judgement, tone) = match bad.as_slice() {
        [] => ("all is well".to_owned(), Tone::Good),
        bad => {
            let one = report.not_well.len() + policies + clusters == 1;
            (
                format!("{} {} not well", listed(bad), if one { "is" } else { "are" }),
                Tone::Bad,
            )
        }
    };
    format!(
        "{}, {}, {}: {}\n",
        plural(report.policies.len(), "policy"),
        plural(report.templates, "template"),
        plural(report.clusters.len(), "cluster"),
        paint.tone(&judgement, tone)
    )
}

/// `this`, `this and that`, `this, that and more`.
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => words.concat(),
    }
}

fn plural(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

fn policy(report: &PolicyReport, style: Style) -> String {
    let mut text = heading(&report.policy.policy, policy_state(&report.policy), style);
    let line = &report.policy;
    let mut fields = Fields::default();
    fields.add("generation", &line.generation.to_string());
    fields.add(
        "activation",
        if line.lazy {
            "Lazy: changes wait for the template's own"
        } else {
            "at once"
        },
    );
    if line.suspended {
        fields.add("suspended", "nothing is sent");
    }
    let counts = format!(
        "{} claimed, {} applied, {} pending, {} not well",
        line.claimed, line.applied, line.pending, line.not_well
    );
    fields.add("templates", &counts);
    fields.conditions(&report.conditions);
    fields.notes(&report.notes);
    fields.render(&mut text, style.paint);
    if !report.templates.is_empty() {
        section(&mut text, &templates(&report.templates, "TEMPLATE", style), style);
        cut(&mut text, report.templates.len(), style);
    }
    next(&mut text, &report.next, style);
    text
}

fn cluster(report: &ClusterReport, style: Style) -> String {
    let line = &report.cluster;
    let state = match (line.ready.as_str(), line.failing) {
        ("True", 0) => State::Healthy,
        ("True", _) => State::Failing,
        _ => State::Unknown,
    };
    let mut text = heading(&format!("Cluster {}", line.cluster), state.cell(), style);
    let mut fields = Fields::default();
    fields.add("version", &line.version);
    fields.add("endpoint", &line.endpoint);
    fields.add("region", &line.region);
    fields.add("taints", &report.taints.join(", "));
    fields.add("works", &format!("{}, {} failing", line.works, line.failing));
    fields.conditions(&report.conditions);
    fields.render(&mut text, style.paint);
    if !report.not_well.is_empty() {
        section(&mut text, &templates(&report.not_well, "NOT WELL", style), style);
        cut(&mut text, report.not_well.len(), style);
    }
    next(&mut text, &report.next, style);
    text
}

fn template(report: &TemplateReport, style: Style) -> String {
    let mut text = heading(&report.template, report.state.cell(), style);
    let mut fields = Fields::default();
    if let Some(policy) = &report.policy {
        let generation = match policy.generation {
            Some(generation) => format!("generation {generation}"),
            None => "gone".to_owned(),
        };
        let lazy = if policy.lazy { ", Lazy" } else { "" };
        fields.add("policy", &format!("{}, {generation}{lazy}", policy.name));
    }
    fields.add("binding", report.binding.as_deref().unwrap_or_default());
    for held in &report.held {
        let reason = match held.reason.as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        let text = format!("{} by {}{reason}", held.clusters, held.policy);
        fields.toned("suspended", &text, Tone::Warn);
    }
    fields.conditions(&report.conditions);
    fields.notes(&report.notes);
    fields.render(&mut text, style.paint);
    if !report.clusters.is_empty() {
        section(&mut text, &places(&report.clusters, style), style);
    }
    if !report.rejected.is_empty() {
        let mut table = Table::new(&["REJECTED", "REASON", "WHAT WOULD HELP"]);
        for rejected in &report.rejected {
            table.row(vec![
                rejected.cluster.as_str().into(),
                rejected.reason.as_str().into(),
                rejected.help.as_str().into(),
            ]);
        }
        section(&mut text, &table, style);
    }
    next(&mut text, &report.next, style);
    text
}

fn places(lines: &[PlaceLine], style: Style) -> Table {
    let mut headers = vec!["CLUSTER", "READY", "APPLIED", "STATUS"];
    if style.wide {
        headers.extend(["HEALTH", "WORK"]);
    }
    headers.push("REASON");
    let mut table = Table::new(&headers);
    for line in lines {
        let ready = match (line.replicas, line.ready) {
            (Some(wanted), Some(ready)) => format!("{ready}/{wanted}"),
            (Some(wanted), None) => format!("-/{wanted}"),
            (None, _) => "-".to_owned(),
        };
        let applied = match line.applied {
            Some(true) => "True",
            Some(false) => "False",
            None => "-",
        };
        let mut cells: Vec<Cell> = vec![
            line.cluster.as_str().into(),
            ready.into(),
            applied.into(),
            line.state.cell(),
        ];
        if style.wide {
            cells.extend([or_dash(&line.health), or_dash(&line.work)]);
        }
        cells.push(line.reason.as_str().into());
        table.row(cells);
    }
    table
}

fn templates(lines: &[TemplateLine], title: &'static str, style: Style) -> Table {
    let mut table = Table::new(&[title, "STATUS", "APPLIED", "WHERE", "REASON"]);
    let shown = if style.wide { lines.len() } else { LISTED };
    for line in lines.iter().take(shown) {
        let at = match line.at.as_slice() {
            [] => "-".to_owned(),
            all if style.wide => all.join(","),
            [only] => only.clone(),
            [first, others @ ..] => format!("{first} +{}", others.len()),
        };
        table.row(vec![
            line.template.as_str().into(),
            line.state.cell(),
            format!("{}/{}", line.applied, line.clusters).into(),
            at.into(),
            line.reason.as_str().into(),
        ]);
    }
    table
}

/// How a policy is, the same wherever it is shown.
fn policy_state(line: &PolicyLine) -> Cell {
    match (line.claimed, line.suspended) {
        (0, _) if line.state == State::Healthy => Cell::new("• Claims nothing", Tone::Faint),
        (1.., true) => State::Suspended.min(line.state).cell(),
        _ => line.state.cell(),
    }
}

fn policies(lines: &[PolicyLine], style: Style) -> Table {
    let mut headers = vec!["POLICY", "STATUS", "CLAIMED", "APPLIED", "PENDING", "NOT WELL"];
    if style.wide {
        headers.extend(["PRIORITY", "GENERATION", "ACTIVATION"]);
    }
    // Most policies are as their templates are, and have nothing to say of themselves.
    let reasons = lines.iter().any(|line| !line.reason.is_empty());
    if reasons {
        headers.push("REASON");
    }
    let mut table = Table::new(&headers);
    for line in lines {
        let number = |n: usize| Cell::from(n.to_string());
        let mut cells = vec![
            line.policy.as_str().into(),
            policy_state(line),
            number(line.claimed),
            number(line.applied),
            number(line.pending),
            number(line.not_well),
        ];
        if style.wide {
            cells.extend([
                line.priority.to_string().into(),
                line.generation.to_string().into(),
                Cell::from(if line.lazy { "Lazy" } else { "at once" }),
            ]);
        }
        if reasons {
            cells.push(line.reason.as_str().into());
        }
        table.row(cells);
    }
    table
}

fn clusters(lines: &[ClusterLine], style: Style) -> Table {
    let mut headers = vec!["CLUSTER", "READY", "VERSION", "WORKS", "FAILING"];
    if style.wide {
        headers.extend(["MODE", "REGION", "ENDPOINT"]);
    }
    headers.push("REASON");
    let mut table = Table::new(&headers);
    for line in lines {
        let tone = if line.ready == "True" {
            Tone::Good
        } else {
            Tone::Bad
        };
        let failing = if line.failing > 0 { Tone::Bad } else { Tone::Plain };
        let mut cells = vec![
            line.cluster.as_str().into(),
            Cell::new(line.ready.as_str(), tone),
            or_dash(&line.version),
            line.works.to_string().into(),
            Cell::new(line.failing.to_string(), failing),
        ];
        if style.wide {
            cells.extend([
                or_dash(&line.mode),
                or_dash(&line.region),
                or_dash(&line.endpoint),
            ]);
        }
        cells.push(line.reason.as_str().into());
        table.row(cells);
    }
    table
}

fn or_dash(text: &str) -> Cell {
    if text.is_empty() { "-".into() } else { text.into() }
}

fn heading(name: &str, state: Cell, style: Style) -> String {
    let mut table = Table::new(&["", ""]);
    table.row(vec![Cell::new(name, Tone::Strong), state]);
    table.render(style.paint, false)
}

/// The lines under a heading: a name, and what there is to say of it.
#[derive(Default)]
struct Fields(Vec<(String, String, Tone)>);

impl Fields {
    /// A further line; none if there is nothing to say.
    fn add(&mut self, name: &str, value: &str) {
        self.toned(name, value, Tone::Plain);
    }

    fn toned(&mut self, name: &str, value: &str, tone: Tone) {
        if !value.is_empty() {
            self.0
                .push((name.to_owned(), value.replace(char::is_control, " "), tone));
        }
    }

    fn conditions(&mut self, conditions: &[ConditionLine]) {
        for line in conditions {
            let reason = match line.reason.as_str() {
                "" => String::new(),
                reason => format!(" ({reason})"),
            };
            self.add(
                &line.condition,
                &format!("{}{reason} {}", line.status, line.message),
            );
        }
    }

    fn notes(&mut self, notes: &[String]) {
        for note in notes {
            self.toned("note", note, Tone::Warn);
        }
    }

    fn render(&self, text: &mut String, paint: Paint) {
        let width = self
            .0
            .iter()
            .map(|(name, ..)| name.chars().count())
            .max()
            .unwrap_or(0);
        for (name, value, tone) in &self.0 {
            let _ = writeln!(text, "  {name:width$}   {}", paint.tone(value, *tone));
        }
    }
}

fn section(text: &mut String, table: &Table, style: Style) {
    text.push('\n');
    text.push_str(&table.render(style.paint, style.headers));
}

fn cut(text: &mut String, all: usize, style: Style) {
    if all > LISTED && !style.wide {
        let _ = writeln!(text, "… and {} more: -o wide lists them", all - LISTED);
    }
}

fn next(text: &mut String, command: &str, style: Style) {
    let _ = writeln!(text, "\n{} {command}", style.paint.tone("Next:", Tone::Faint));
}
