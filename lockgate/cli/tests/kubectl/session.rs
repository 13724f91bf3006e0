//! Transcripts of a shell.
//!
//! ```text
//! # Prose, where a command could stand.
//!
//! $ kubectl get configmap missing
//! Error from server (NotFound): configmaps "missing" not found
//! [exit 1]
//!
//! $ cat <<EOF | kubectl apply -f -
//! …
//! EOF
//! configmap/c created
//! ```
//!
//! A command goes on after a backslash at the end of its line, and through a here document whose mark is `EOF`. Its answer
//! is everything up to an empty line that is followed by a command, by prose, or by the end. A first line of
//! `# embedded only: reason` or `# real only: reason` keeps the session from the other server. A line `# needs helm` before the
//! first command gives it that program, `# needs helm4` the same of the next major version, `# needs controllers` the control plane
//! and two members.

use std::path::Path;

/// A transcript.
#[derive(Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) steps: Vec<Step>,
    /// The prose after the last command.
    rest: Vec<String>,
}

/// A command and what was answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// The lines before the command: prose and empty lines.
    prose: Vec<String>,
    /// The line of the file on which the command starts.
    line: usize,
    pub(crate) command: String,
    pub(crate) answer: String,
}

/// The servers that a transcript can speak of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum On {
    Embedded,
    Real,
}

impl Session {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<&str> = text.lines().collect();
        let (mut steps, mut prose, mut at) = (Vec::new(), Vec::new(), 0);
        while at < lines.len() {
            let line = lines[at];
            if line.is_empty() || is_prose(line) {
                prose.push(line.to_owned());
                at += 1;
            } else if line.starts_with("$ ") {
                let end = command_end(&lines, at)?;
                let command = lines[at..end].join("\n")[2..].to_owned();
                let answered = (end..lines.len())
                    .find(|&i| ends_answer(&lines, i))
                    .unwrap_or(lines.len());
                let answer = lines[end..answered].join("\n");
                steps.push(Step {
                    prose: std::mem::take(&mut prose),
                    line: at + 1,
                    command,
                    answer,
                });
                at = answered;
            } else {
                return Err(format!("line {}: neither a command nor prose", at + 1));
            }
        }
        Ok(Self { steps, rest: prose })
    }

    /// Why the transcript says nothing about a server.
    pub(crate) fn says_nothing_of(&self, on: On) -> Option<&str> {
        let mark = match on {
            On::Embedded => "# real only: ",
            On::Real => "# embedded only: ",
        };
        self.steps.first()?.prose.first()?.strip_prefix(mark)
    }

    /// Whether the transcript asks for something before its first command.
    pub(crate) fn needs(&self, what: &str) -> bool {
        let asks = |line: &String| line.strip_prefix("# needs ") == Some(what);
        self.steps.first().is_some_and(|step| step.prose.iter().any(asks))
    }

    /// The text of the transcript; lines are numbered anew.
    pub(crate) fn render(&mut self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for step in &mut self.steps {
            lines.extend(step.prose.iter().cloned());
            step.line = lines.len() + 1;
            lines.extend(format!("$ {}", step.command).lines().map(str::to_owned));
            lines.extend(step.answer.lines().map(str::to_owned));
        }
        lines.extend(self.rest.iter().cloned());
        lines.join("\n") + "\n"
    }
}

fn is_prose(line: &str) -> bool {
    line == "#" || line.starts_with("# ")
}

/// The line after the last one of the command that starts at `at`.
fn command_end(lines: &[&str], at: usize) -> Result<usize, String> {
    let mut end = at + 1;
    while lines[end - 1].ends_with('\\') && end < lines.len() {
        end += 1;
    }
    if lines[at..end]
        .iter()
        .any(|line| line.contains("<<EOF") || line.contains("<<'EOF'"))
    {
        let mark = lines[end..].iter().position(|&line| line == "EOF");
        end += mark.ok_or(format!("line {}: the here document has no end", at + 1))? + 1;
    }
    Ok(end)
}

/// Whether the answer before line `at` is complete.
fn ends_answer(lines: &[&str], at: usize) -> bool {
    let follows = |line: &&str| line.starts_with("$ ") || is_prose(line);
    lines[at].is_empty() && lines.get(at + 1).is_none_or(follows) || at > 0 && lines[at].starts_with("$ ")
}

/// What a transcript holds of an output: no spaces at the ends of lines, no empty lines at its end.
pub(crate) fn answer(output: &str, code: i32) -> String {
    let mut lines: Vec<String> = output.lines().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    if code != 0 {
        lines.push(format!("[exit {code}]"));
    }
    lines.join("\n")
}

/// Tells a person what is not as it was; unchanged lines carry no mark.
pub(crate) fn difference(path: &Path, step: &Step, answer: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (step.answer.lines().collect(), answer.lines().collect());
    let mut text = format!(
        "{}:{}\n  $ {}\n",
        path.display(),
        step.line,
        step.command.replace('\n', "\n    ")
    );
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            text += &format!("    {}\n", old[i]);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (skipped, added) = resume(&old[i..], &new[j..]);
        old[i..i + skipped]
            .iter()
            .for_each(|line| text += &format!("  - {line}\n"));
        new[j..j + added]
            .iter()
            .for_each(|line| text += &format!("  + {line}\n"));
        (i, j) = (i + skipped, j + added);
    }
    text + "\n"
}

/// How many lines to leave out on each side to come to the nearest equal pair.
fn resume(old: &[&str], new: &[&str]) -> (usize, usize) {
    for distance in 1..=old.len() + new.len() {
        for skipped in 0..=distance.min(old.len()) {
            let added = distance - skipped;
            if skipped < old.len() && added < new.len() && old[skipped] == new[added] {
                return (skipped, added);
            }
        }
    }
    (old.len(), new.len())
}
