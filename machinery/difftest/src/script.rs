//! Scripts of exchanges, as they are written in YAML.
//!
//! ```yaml
//! about: What a reader should know.
//! include: [widgets]              # steps of fixtures/widgets.yaml come first
//! let: {cms: /api/v1/namespaces/<ns>/configmaps}
//! steps:
//! - do: POST <cms> -> 201         # the status that both servers must answer
//!   body: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
//!   capture: {rv: /metadata/resourceVersion}
//! - do: GET <cms> -> 200
//!   query: {labelSelector: "a in (x, y)", resourceVersion: <rv>}
//!   accept: table
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::recording::Recorded;

/// A list of steps that runs in one fresh namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it is called: its file's name, or its seed.
    #[serde(skip)]
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub about: String,
    /// Fixtures whose steps come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// When the answers of its steps were recorded, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<jiff::Timestamp>,
    /// Headers of every step that has no others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether `metadata.managedFields` are compared too; else they are left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub managed_fields: bool,
    /// Names for texts that occur often.
    #[serde(default, rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// The requests.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Paths of what lives outside the namespace, deleted afterwards; the answers are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanup: Vec<String>,
}

/// One request, and what is done with its answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// `METHOD path` or `METHOD path -> status`.
    #[serde(rename = "do")]
    pub request: String,
    /// Query parameters, which are escaped.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// The body: a text goes out as it is, anything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// The body as hexadecimal digits, for what is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// Sends the body as a patch of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchType>,
    /// `table`, `metadata`, `metadatalist`, `discovery`, or a whole `Accept` value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// Further headers; they replace the ones above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Somebody else to impersonate, or `anonymous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Values of the answer that later steps use, on each side its own: JSON pointers, or `etag` for that header.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, String>,
    /// The same, for values that may be missing: then the name keeps what it had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub try_capture: BTreeMap<String, String>,
    /// Asks again until the status is the expected one and the body contains this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Restricts a list of the answer to some of its entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Places of the answer (JSON pointers, `*` for any) that are not compared, each with its reason: a name in [`crate::allowed`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ignore: BTreeMap<String, String>,
    /// Keys of the answer that are not compared, wherever they stand, each with its reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without: BTreeMap<String, String>,
    /// Lists of the answer (JSON pointers, `*` for any) whose order has no meaning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unordered: Vec<String>,
    /// What a server answered once; see [`crate::replay`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Recorded>,
}

/// The body of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, from = "Value")]
pub enum Body {
    /// Sent byte by byte.
    Raw(String),
    /// Sent as JSON.
    Json(Value),
}

impl From<Value> for Body {
    fn from(value: Value) -> Body {
        match value {
            Value::String(text) => Body::Raw(text),
            other => Body::Json(other),
        }
    }
}

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// By the schema's merge keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Step {
    /// The reasons for everything that is not compared of its answers.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let recorded = self
            .answer
            .iter()
            .flat_map(|answer| [&answer.lacks, &answer.differs]);
        [&self.ignore, &self.without]
            .into_iter()
            .chain(recorded)
            .flat_map(BTreeMap::values)
            .chain(self.keep.iter().map(|keep| &keep.why))
            .map(String::as_str)
    }
}

impl PatchType {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Restricts the list at `list` to the entries whose `by` is one of `values`. What the other entries are is not compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// A JSON pointer to the list.
    pub list: String,
    /// A JSON pointer within an entry.
    pub by: String,
    /// The entries to keep.
    pub values: Vec<String>,
    /// The reason why the others are not compared.
    pub why: String,
}

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct ScriptError {
    file: String,
    what: String,
}

impl Script {
    /// Reads a script that includes nothing from its text; `file` is for the error.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Script, ScriptError> {
        // A key called `y` is a key, not a truth.
        let options = serde_saphyr::options! { strict_booleans: true };
        serde_saphyr::from_str_with_options(text, options).map_err(|e| error(Path::new(file), e))
    }

    /// The script as it is written in a file.
    pub fn to_yaml(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        machinery_value::encode::to_yaml(&value)
    }

    /// Reads one script; `fixtures` is where its includes are.
    pub fn load(file: &Path, fixtures: &Path) -> Result<Script, ScriptError> {
        let name = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut script = Script { name, ..read(file)? };
        let own = std::mem::take(&mut script.steps);
        for include in script.include.clone() {
            let fixture = read(&fixtures.join(format!("{include}.yaml")))?;
            script.steps.extend(fixture.steps);
            script.cleanup.extend(fixture.cleanup);
            for (name, text) in fixture.names {
                script.names.entry(name).or_insert(text);
            }
        }
        script.steps.extend(own);
        for step in &script.steps {
            step.parts().map_err(|what| error(file, what))?;
        }
        Ok(script)
    }
}

impl Step {
    /// Method, path and expected status.
    pub(crate) fn parts(&self) -> Result<(&str, &str, Option<u16>), String> {
        let (request, status) = match self.request.split_once(" -> ") {
            None => (self.request.as_str(), None),
            Some((request, status)) => {
                let status = status.trim().parse();
                (
                    request,
                    Some(status.map_err(|_| format!("{}: not a status", self.request))?),
                )
            }
        };
        match request.trim().split_once(' ') {
            Some((method, path)) if method.chars().all(|c| c.is_ascii_uppercase()) => {
                Ok((method, path.trim(), status))
            }
            _ => Err(format!("{:?} is not METHOD path [-> status]", self.request)),
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn error(file: &Path, what: impl std::fmt::Display) -> ScriptError {
    ScriptError {
        file: file.display().to_string(),
        what: what.to_string(),
    }
}

fn read(file: &Path) -> Result<Script, ScriptError> {
    let text = std::fs::read_to_string(file).map_err(|e| error(file, e))?;
    Script::parse(&file.display().to_string(), &text)
}

/// Every script of a directory, by name; fixtures are in `fixtures` beside it.
pub fn load_scripts(dir: &Path) -> Result<Vec<Script>, ScriptError> {
    let fixtures = dir.parent().unwrap_or(dir).join("fixtures");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .map_err(|e| error(dir, e))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files.iter().map(|file| Script::load(file, &fixtures)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for script in crate::generate::scripts(3, 12).unwrap() {
            let text = script.to_yaml();
            let read = Script::parse("x", &text).unwrap();
            let json = |script: &Script| serde_json::to_value(script).unwrap();
            assert_eq!(json(&read), json(&script), "{text}");
        }
    }
}
