//! What people read: tables with kubectl's columns, colour only where somebody looks.

use std::io::{IsTerminal, Write as _};

/// How a piece of text is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Something is under way or waits.
    Warn,
    /// Something is wrong.
    Bad,
    /// Of less interest.
    Faint,
    /// A heading.
    Strong,
}

/// Whether tones become colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// No colour at all.
    #[cfg(test)]
    pub(crate) const OFF: Self = Self(false);

    /// Colour if standard output is a terminal that wants it.
    pub(crate) fn stdout() -> Self {
        Self(wants_colour(&std::io::stdout()))
    }

    /// The text in its tone.
    pub(crate) fn tone(self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            _ if !self.0 || text.is_empty() => return text.to_owned(),
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Whether what is written there is seen in colour.
pub(crate) fn wants_colour(stream: &impl IsTerminal) -> bool {
    let is =
        |name: &str, wanted: &dyn Fn(&str) -> bool| std::env::var(name).is_ok_and(|value| wanted(&value));
    colours(
        stream.is_terminal(),
        is("NO_COLOR", &|value| !value.is_empty()),
        is("TERM", &|term| term == "dumb"),
    )
}

fn colours(terminal: bool, no_color: bool, dumb: bool) -> bool {
    terminal && !no_color && !dumb
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell whose text has a tone. Control characters, which a member's message may hold, are blanks.
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        let text = text.into();
        let text = if text.contains(char::is_control) {
            text.replace(char::is_control, " ")
        } else {
            text
        };
        Self { text, tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// A table: every column as wide as its widest cell, three blanks between them, the last as long as it is.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        Self {
            headers: headers.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A further row, with a cell for each header.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.headers.len());
        self.rows.push(cells);
    }

    /// The table as lines of text.
    pub(crate) fn render(&self, paint: Paint, headers: bool) -> String {
        let mut widths: Vec<usize> = self
            .headers
            .iter()
            .map(|header| if headers { header.len() } else { 0 })
            .collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let mut text = String::new();
        if headers {
            let cells: Vec<Cell> = self.headers.iter().map(|h| Cell::from(*h)).collect();
            push_row(&mut text, &cells, &widths, paint);
        }
        for row in &self.rows {
            push_row(&mut text, row, &widths, paint);
        }
        text
    }
}

fn push_row(text: &mut String, cells: &[Cell], widths: &[usize], paint: Paint) {
    // Blanks at the end of a line are nobody's.
    let last = cells.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate().take(last + 1) {
        text.push_str(&paint.tone(&cell.text, cell.tone));
        if index < last {
            let blanks = width - cell.text.chars().count() + 3;
            text.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    text.push('\n');
}

/// Writes to standard output; a closed pipe is no reason to fail.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "STATUS", "REASON"]);
        table.row(vec!["web".into(), Cell::new("✔ Healthy", Tone::Good), "".into()]);
        table.row(vec!["a-longer-name".into(), "?".into(), "two\nlines".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_nothing_trails() {
        assert_eq!(
            table().render(Paint::OFF, true),
            "NAME            STATUS      REASON\n\
             web             ✔ Healthy\n\
             a-longer-name   ?           two lines\n"
        );
        assert_eq!(
            table().render(Paint::OFF, false),
            "web             ✔ Healthy\na-longer-name   ?           two lines\n"
        );
    }

    #[test]
    fn colour_does_not_move_columns() {
        let text = table().render(Paint(true), true);
        assert!(text.contains("\x1b[32m✔ Healthy\x1b[0m\n"), "{text:?}");
        let plain = text.replace("\x1b[32m", "").replace("\x1b[0m", "");
        assert_eq!(plain, table().render(Paint::OFF, true));
    }

    #[test]
    fn colour_only_where_somebody_looks() {
        assert!(colours(true, false, false));
        for (terminal, no_color, dumb) in [(false, false, false), (true, true, false), (true, false, true)] {
            assert!(!colours(terminal, no_color, dumb));
        }
    }
}
