//! What a person reads when an expectation does not hold.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The longest excerpt of an object, in lines.
const EXCERPT: usize = 120;

/// Why a scenario failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario's file.
    pub file: PathBuf,
    /// The line of the step or the expectation; 0 before the first step.
    pub line: usize,
    /// The number of the step, from 1; 0 before the first step.
    pub step: usize,
    /// The step, or the expectation.
    pub title: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// The object that was looked at, as YAML.
    pub object: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", shortened(&self.file).display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.step > 0 {
            write!(f, ": step {}", self.step)?;
        }
        writeln!(f, ": {}", self.title)?;
        writeln!(f, "  expected  {}", indented(&self.expected, "            "))?;
        write!(f, "  found     {}", indented(&self.found, "            "))?;
        if let Some(object) = &self.object {
            write!(f, "\n  the object\n    {}", indented(object.trim_end(), "    "))?;
        }
        Ok(())
    }
}

/// The path without its detours.
fn shortened(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).map_or_else(
        |_| path.to_owned(),
        |whole| {
            let here = std::env::current_dir().unwrap_or_default();
            whole.strip_prefix(&here).map_or(whole.clone(), Path::to_owned)
        },
    )
}

fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// An object for people: without the fields that only machines read, and cut if it is long.
pub(crate) fn excerpt(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let text = machinery_value::encode::to_yaml(&object);
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= EXCERPT {
        return text;
    }
    format!(
        "{}\n… and {} more lines",
        lines[..EXCERPT].join("\n"),
        lines.len() - EXCERPT
    )
}

/// A value on one line.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(value) => value.to_string(),
    }
}
