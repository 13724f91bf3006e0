//! Scenario files: what may stand in one, and how it is read.
//!
//! Reading is strict: a key that means nothing is refused with its line and the nearest key that does, because an
//! expectation that is skipped silently looks like one that holds. The format is described in `docs/scenarios.md`.

mod expect;
mod fields;
mod step;
#[cfg(test)]
mod tests;

use std::path::{Path as FilePath, PathBuf};

use lockgate_engine::Gates;
use serde_json::{Map, Value};

use crate::path::Path;
use crate::reference::Reference;
use crate::yaml::Node;
use fields::Fields;

/// The most members that a scenario starts.
const MAX_MEMBERS: u64 = 20;

/// A scenario: servers, steps and expectations.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file that it stands in.
    pub file: PathBuf,
    /// What it is called: its own word, else its file's name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// The feature gates.
    pub gates: Gates,
    /// The member clusters.
    pub members: Vec<MemberSpec>,
    /// Whether workloads must become ready: then members are simulated, also beside a real hub.
    pub needs_workloads: bool,
    /// What happens.
    pub steps: Vec<Step>,
}

/// A member cluster as a scenario wants it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberSpec {
    /// Its name.
    pub name: String,
    /// Labels of its Cluster.
    pub labels: Map<String, Value>,
    /// Its provider.
    pub provider: String,
    /// Its region.
    pub region: String,
    /// Its zones.
    pub zones: Vec<String>,
    /// Taints of its Cluster.
    pub taints: Vec<Value>,
    /// Objects that are there before it joins, such as definitions.
    pub objects: Vec<Value>,
}

/// A server of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Where objects are written.
    Hub,
    /// The member of this name.
    Member(String),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hub => f.write_str("the hub"),
            Self::Member(name) => f.write_str(name),
        }
    }
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its line in the file.
    pub line: usize,
    /// The step in a few words.
    pub title: String,
    /// On which server.
    pub on: Place,
    /// If the server must refuse it: what its message contains.
    pub refused: Option<String>,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates these objects or changes them to this, as `kubectl apply --server-side` does.
    Apply(Vec<Value>),
    /// Creates an object that must not be there yet.
    Create(Value),
    /// Replaces an object, as `kubectl replace` does: what is not said is gone.
    Replace(Value),
    /// Sets fields of an object; `null` takes one away.
    Edit(Reference, Vec<(Path, Value)>),
    /// Deletes an object.
    Delete(Reference, Option<Cascade>),
    /// Deletes objects and creates them again with the same content and new uids.
    Restore(Vec<Reference>),
    /// Stops the controllers.
    Stop,
    /// Starts the controllers, with other gates if some are said.
    Start(Option<Gates>),
    /// Stops the controllers and starts them again, with other gates if some are said.
    Restart(Option<Gates>),
    /// Moves the controllers' clock.
    Advance(std::time::Duration),
    /// Breaks a member, or mends it.
    Member(String, Fault),
    /// Names this moment for `unchanged`.
    Mark(String),
    /// Keeps values of objects under names.
    Remember(Vec<(String, Reference, Path)>),
    /// Checks.
    Expect(Vec<Expectation>),
}

/// What becomes of the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// They stay.
    Orphan,
    /// They go first.
    Foreground,
}

/// What is wrong with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Up,
    /// The controllers cannot reach it.
    Down,
    /// It refuses the controllers' writes of these resources (plurals).
    Refuses {
        /// The plurals.
        resources: Vec<String>,
        /// With which code.
        code: u16,
        /// What it says.
        message: String,
    },
    /// It lets the controllers neither read nor write these resources (plurals).
    Hides {
        /// The plurals.
        resources: Vec<String>,
        /// With which code.
        code: u16,
        /// What it says.
        message: String,
    },
}

impl Fault {
    /// Whether the controllers can read a resource (plural).
    pub fn shows(&self, plural: &str) -> bool {
        match self {
            Self::Up | Self::Refuses { .. } => true,
            Self::Down => false,
            Self::Hides { resources, .. } => !resources.iter().any(|hidden| hidden == plural),
        }
    }
}

/// Something that must hold.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Its line in the file.
    pub line: usize,
    /// The expectation in a few words.
    pub title: String,
    /// Where.
    pub places: Places,
    /// What.
    pub check: Check,
}

/// The servers of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// Each of these.
    On(Vec<Place>),
    /// Each of these members, and on no other member.
    OnlyOn(Vec<Place>),
}

/// What must hold.
#[derive(Clone, Debug)]
pub enum Check {
    /// An object is there, with these fields.
    Exists(Reference, Vec<(Path, Value)>),
    /// An object is not there.
    Absent(Reference),
    /// The objects of a kind.
    List {
        /// Which.
        of: Reference,
        /// Their names, sorted; none if only the number counts.
        names: Option<Vec<String>>,
        /// How many there are.
        count: Option<u64>,
        /// Fields that each has.
        each: Vec<(Path, Value)>,
    },
    /// An event was told, or was not.
    Event {
        /// Whether it was.
        told: bool,
        /// Its reason.
        reason: String,
        /// The object that it is about.
        about: Option<Reference>,
        /// Its message, with stars.
        message: Option<String>,
        /// How often, in all; none for at least once.
        times: Option<u64>,
    },
    /// Nothing was created, changed or deleted on members; or, with references, these objects are as they were.
    Unchanged {
        /// The objects; none for everything on the members.
        of: Vec<Reference>,
        /// Since this mark; none for since before the last step.
        since: Option<String>,
    },
    /// How much the controllers wrote since before the last step.
    Writes {
        /// To the hub.
        hub: Option<Bound>,
        /// To the members.
        members: Option<Bound>,
    },
}

/// A number, or a bound of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Exactly so many.
    Exactly(u64),
    /// At most so many.
    AtMost(u64),
}

/// Why a file is not a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {what}", file.display())]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// The line; 0 when it is about the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// A mistake and its line.
#[derive(Debug)]
pub(crate) struct Mistake {
    line: usize,
    what: String,
}

impl Mistake {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }
}

impl Scenario {
    /// Reads a file.
    pub fn load(file: &FilePath) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(file).map_err(|error| FileError {
            file: file.to_owned(),
            line: 0,
            what: error.to_string(),
        })?;
        Self::parse(file, &text)
    }

    /// Reads a text; `file` is for complaints.
    pub fn parse(file: &FilePath, text: &str) -> Result<Self, FileError> {
        let wrong = |mistake: Mistake| FileError {
            file: file.to_owned(),
            line: mistake.line,
            what: mistake.what,
        };
        let root = Node::parse(text).map_err(|what| wrong(Mistake::new(0, what)))?;
        let directory = file.parent().unwrap_or(FilePath::new(""));
        let mut scenario = read(&root, directory).map_err(wrong)?;
        file.clone_into(&mut scenario.file);
        if scenario.name.is_empty() {
            scenario.name = file
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default();
        }
        Ok(scenario)
    }
}

fn read(root: &Node, directory: &FilePath) -> Result<Scenario, Mistake> {
    let mut fields = Fields::of(root, "a scenario")?;
    let name = fields.optional_text("name")?.unwrap_or_default();
    let about = fields.text("about")?;
    let gates = match fields.take("gates") {
        Some(node) => read_gates(&node)?,
        None => Gates::default(),
    };
    let members = match fields.take("members") {
        Some(node) => read_members(&node)?,
        None => numbered(3),
    };
    let needs_workloads = match fields.take("needs") {
        Some(node) => read_needs(&node)?,
        None => false,
    };
    let steps = fields.required("steps")?;
    fields.end()?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let steps = fields::list(&steps)?
        .iter()
        .map(|node| step::read(node, &names, directory))
        .collect::<Result<Vec<_>, _>>()?;
    if steps.is_empty() {
        return Err(Mistake::new(root.line, "there are no steps"));
    }
    check_marks(&steps)?;
    Ok(Scenario {
        file: PathBuf::new(),
        name,
        about,
        gates,
        members,
        needs_workloads,
        steps,
    })
}

/// A mark must be set before something is compared with it.
fn check_marks(steps: &[Step]) -> Result<(), Mistake> {
    let mut marks = Vec::new();
    for step in steps {
        match &step.action {
            Action::Mark(name) => marks.push(name.clone()),
            Action::Expect(expectations) => {
                for expectation in expectations {
                    if let Check::Unchanged {
                        since: Some(since), ..
                    } = &expectation.check
                        && !marks.contains(since)
                    {
                        let what = format!("no step before this one is `mark: {since}`");
                        return Err(Mistake::new(expectation.line, what));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_gates(node: &Node) -> Result<Gates, Mistake> {
    let mut fields = Fields::of(node, "gates")?;
    let mut gates = Gates::default();
    for (name, gate) in [
        ("Failover", &mut gates.failover),
        (
            "MultiplePodTemplatesScheduling",
            &mut gates.multiple_pod_templates,
        ),
        ("NoClusterFitRemoves", &mut gates.no_cluster_fit_removes),
        ("PropagateDeps", &mut gates.propagate_deps),
        ("PropagationPolicyPreemption", &mut gates.preemption),
        ("StatefulFailoverInjection", &mut gates.stateful_failover),
        ("StaticPolicy", &mut gates.static_policy),
        ("WorkloadAffinity", &mut gates.workload_affinity),
    ] {
        if let Some(node) = fields.take(name) {
            *gate = fields::truth(&node)?;
        }
    }
    fields.end()?;
    Ok(gates)
}

fn read_needs(node: &Node) -> Result<bool, Mistake> {
    for need in fields::list(node)? {
        let word = fields::text(need)?;
        if word != "workloads" {
            let what = format!("{word:?} is nothing that a scenario can need; there is `workloads`");
            return Err(Mistake::new(need.line, what));
        }
    }
    Ok(true)
}

fn numbered(count: u64) -> Vec<MemberSpec> {
    (1..=count)
        .map(|number| MemberSpec {
            name: format!("member{number}"),
            ..MemberSpec::default()
        })
        .collect()
}

fn read_members(node: &Node) -> Result<Vec<MemberSpec>, Mistake> {
    if let Some(count) = node.value().as_u64() {
        if count > MAX_MEMBERS {
            return Err(Mistake::new(node.line, format!("at most {MAX_MEMBERS} members")));
        }
        return Ok(numbered(count));
    }
    fields::entries(node)?
        .iter()
        .map(|(name, node)| {
            let mut fields = Fields::of_maybe_empty(node, "a member")?;
            let member = MemberSpec {
                name: name.clone(),
                labels: fields.texts("labels")?,
                provider: fields.optional_text("provider")?.unwrap_or_default(),
                region: fields.optional_text("region")?.unwrap_or_default(),
                zones: match fields.take("zones") {
                    Some(node) => fields::text_list(&node)?,
                    None => Vec::new(),
                },
                taints: match fields.take("taints") {
                    Some(node) => fields::list(&node)?.iter().map(Node::value).collect(),
                    None => Vec::new(),
                },
                objects: match fields.take("objects") {
                    Some(node) => step::objects(&node)?,
                    None => Vec::new(),
                },
            };
            fields.end()?;
            Ok(member)
        })
        .collect()
}
