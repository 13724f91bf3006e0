//! The report for people: aligned columns, or the same as Markdown.

use std::fmt::Write as _;

use crate::arguments::Format;
use crate::report::{Figure, Goal, Report, Spread, Unit, Verdict};

const HEADINGS: [&str; 6] = ["", "embedded", "real", "ratio", "target", ""];

/// The report in words.
pub(crate) fn render(report: &Report, format: Format) -> String {
    let markdown = format == Format::Markdown;
    let bullet = if markdown { "- " } else { "  " };
    let command = if markdown {
        format!("`{}`", report.command)
    } else {
        report.command.clone()
    };
    let mut text = format!("{command}\n\n");
    for line in report.machine.lines().iter().chain(&report.notes) {
        text.push_str(&format!("{bullet}{line}\n"));
    }
    // A section may go on after another one: what only one server has comes later.
    let mut sections: Vec<&str> = Vec::new();
    for figure in &report.figures {
        let section = figure.label.section.as_str();
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for section in sections {
        let rows: Vec<[String; 6]> = std::iter::once(HEADINGS.map(str::to_owned))
            .chain(
                report
                    .figures
                    .iter()
                    .filter(|figure| figure.label.section == section)
                    .map(row),
            )
            .collect();
        text.push_str(&if markdown {
            format!("\n### {section}\n\n")
        } else {
            format!("\n{section}\n")
        });
        text.push_str(&if markdown { pipes(&rows) } else { columns(&rows) });
    }
    text
}

fn row(figure: &Figure) -> [String; 6] {
    let unit = figure.label.unit;
    let cell =
        |runs: &[f64]| Spread::of(runs).map_or_else(|| "–".to_owned(), |spread| spread_text(spread, unit));
    let verdict = match figure.verdict() {
        Some(Verdict::Pass) => "PASS",
        Some(Verdict::Miss) => "MISS",
        Some(Verdict::Unknown) => "not measured",
        None => "",
    };
    [
        figure.label.name.clone(),
        cell(&figure.embedded),
        cell(&figure.real),
        figure
            .ratio()
            .map_or_else(String::new, |ratio| format!("{}×", number(ratio))),
        match figure.label.goal {
            Some(Goal::TimesReal(times)) => format!("≥ {times}× real"),
            Some(Goal::Below(limit)) => format!("< {}", quantity(limit, unit)),
            None => String::new(),
        },
        verdict.to_owned(),
    ]
}

fn spread_text(spread: Spread, unit: Unit) -> String {
    let median = quantity(spread.median, unit);
    let bare = |value: f64| {
        if unit == Unit::Count {
            format!("{value:.0}")
        } else {
            number(value)
        }
    };
    if spread.runs < 2 {
        return median;
    }
    format!("{median} ({}–{})", bare(spread.least), bare(spread.most))
}

fn quantity(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond => format!("{}/s", number(value)),
        Unit::Milliseconds => format!("{} ms", number(value)),
        Unit::Megabytes => format!("{} MB", number(value)),
        Unit::Cores => format!("{} cores", number(value)),
        Unit::Count => format!("{value:.0}"),
    }
}

/// Three significant digits, or all of a large whole number, in groups of three.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.decimals$}");
    if decimals > 0 {
        return plain;
    }
    let first = plain.len() % 3;
    let mut grouped = plain[..first].to_owned();
    for (index, group) in plain.as_bytes()[first..].chunks(3).enumerate() {
        if index > 0 || first > 0 {
            grouped.push(',');
        }
        grouped.extend(group.iter().map(|byte| char::from(*byte)));
    }
    grouped
}

fn columns(rows: &[[String; 6]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        format!("  {}", cells.collect::<Vec<_>>().join("  "))
            .trim_end()
            .to_owned()
            + "\n"
    };
    rows.iter().map(line).collect()
}

fn pipes(rows: &[[String; 6]]) -> String {
    let line = |row: &[String; 6]| format!("| {} |\n", row.join(" | "));
    let rule = "|---|---|---|---|---|---|\n".to_owned();
    rows.iter()
        .enumerate()
        .map(|(index, row)| if index == 0 { line(row) + &rule } else { line(row) })
        .collect()
}

/// Columns as wide as their widest cell; numbers to the right.
pub(crate) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (index, cell) in row.as_ref().iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(index) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        for (index, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let _ = if index == 0 {
                write!(text, "{cell:width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::report::Label;
    use crate::servers::Side;

    #[test]
    fn numbers_are_short_and_grouped() {
        for (value, expected) in [
            (0.1234, "0.123"),
            (1.239, "1.24"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1,234"),
            (123_456.0, "123,456"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn a_report_reads_well() {
        let mut report = Report {
            command: "lockgate bench api".into(),
            machine: Machine::default(),
            notes: vec![],
            figures: vec![],
        };
        let creates = Label::new("Operations", "create", Unit::PerSecond).goal(Goal::TimesReal(5.0));
        for value in [9_000.0, 10_000.0, 11_000.0] {
            report.record(Side::Embedded, creates.clone(), value);
            report.record(Side::Real, creates.clone(), value / 10.0);
        }
        report.record(
            Side::Embedded,
            Label::new("Memory", "idle", Unit::Megabytes).goal(Goal::Below(40.0)),
            41.0,
        );
        let text = render(&report, Format::Markdown);
        assert!(
            text.contains(
                "| create | 10,000/s (9,000–11,000) | 1,000/s (900–1,100) | 10.0× | ≥ 5× real | PASS |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| idle | 41.0 MB | – |  | < 40.0 MB | MISS |"),
            "{text}"
        );
        let text = render(&report, Format::Table);
        assert!(
            text.contains("  create  10,000/s (9,000–11,000)  1,000/s (900–1,100)  10.0×  ≥ 5× real  PASS\n"),
            "{text}"
        );
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            ["phase".to_owned(), "1".to_owned()],
            ["x".to_owned(), "1000".to_owned()],
        ];
        assert_eq!(aligned(&rows), "phase     1\nx      1000\n");
    }
}
