//! Which objects a template speaks of, and how each of them is.

use std::sync::Arc;

use machinery_value::labels::LabelSelector;
use serde_json::Value;

use super::compare::Mode;
use super::objects::compare;
use super::rules::{Compliance, Fault, Template};
use crate::object;

/// How many names of a search are told; of more, none is.
const MAX_NAMES: usize = 20;
/// The name that stands for objects without one.
pub const NO_NAME: &str = "-";

/// What a cluster serves of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The objects that a template speaks of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Their apiVersion.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// What the cluster serves.
    pub served: Served,
    /// Where they are; one empty name for those of the cluster.
    pub namespaces: Vec<String>,
    /// The name; empty if they have none.
    pub name: String,
    /// Their labels, if those tell them.
    pub selector: Option<LabelSelector>,
}

impl Subject {
    /// What a template speaks of, in a cluster that has these of the selected namespaces, if they can be told.
    pub fn of(
        template: &Template,
        selected: Result<&[String], &Fault>,
        served: Option<Served>,
    ) -> Result<Self, Fault> {
        let (api_version, kind) = (
            object::text(&template.object, "apiVersion"),
            object::text(&template.object, "kind"),
        );
        let Some(served) = served else {
            let message = format!(
                "couldn't find mapping resource with kind {kind} in API version {api_version}, please check if \
                 you have CRD deployed"
            );
            return Err(Fault {
                // The policy itself, or another, may just have defined it.
                may_pass: true,
                ..Fault::new("K8s error", message)
            });
        };
        let name = template.name();
        let own = object::meta_text(&template.object, "namespace");
        let namespaces = match (served.namespaced, own) {
            (false, _) => vec![String::new()],
            (true, "") => selected.map_err(Fault::clone)?.to_vec(),
            (true, own) => vec![own.to_owned()],
        };
        if namespaces.is_empty() {
            let which = if name.is_empty() {
                String::new()
            } else {
                format!("{name} ")
            };
            return Err(Fault::new(
                "K8s missing namespace",
                format!(
                    "namespaced object {which}of kind {kind} has no namespace specified from the policy \
                     namespaceSelector nor the object metadata"
                ),
            ));
        }
        Ok(Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            served,
            namespaces,
            name: name.to_owned(),
            selector: template.selector.clone(),
        })
    }
}

/// The objects of a subject, as they are.
pub trait Objects {
    /// One of them.
    fn find(&self, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// All in a namespace, by name.
    fn list(&self, namespace: &str) -> Vec<Arc<Value>>;
}

/// How an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there, as it should be.
    AsSpecified,
    /// It is there, and not as it should be.
    Differs,
    /// It should be there.
    NotFound,
    /// It should not be there.
    Found,
    /// It is not there, as it should be.
    Missing,
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
    /// Nothing can be said, or something else is wrong.
    Wrong(Fault),
    /// Nothing is selected, so that nothing can be wrong.
    Nothing,
}

impl Standing {
    /// Whether it is as it should be.
    pub fn is_compliant(&self) -> bool {
        !matches!(
            self,
            Self::Differs | Self::NotFound | Self::Found | Self::Wrong(_)
        )
    }
}

/// What would make an object so.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// Make it.
    Create(Value),
    /// Change it, if the server says that this changes anything.
    Update {
        /// What it would be.
        merged: Value,
        /// What it is.
        live: Arc<Value>,
        /// Whether its status, which nobody changes, is another.
        status_differs: bool,
    },
    /// Delete it.
    Delete(Arc<Value>),
}

/// An object, or several of a search, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Where.
    pub namespace: String,
    /// Which; none if a search found none.
    pub names: Vec<String>,
    /// How they are.
    pub standing: Standing,
    /// What would make them so; none where nothing is ever done.
    pub remedy: Option<Remedy>,
    /// The object's uid, if it is one and is there.
    pub uid: String,
    /// What differs, in words.
    pub difference: String,
    /// Whether the server said that nothing differs.
    pub same_after_dry_run: bool,
    /// Whether it was made just now.
    pub made: bool,
    /// Whether all but its status, which only its own controller changes, is as it should be.
    pub awaits_status: bool,
    /// Whether it would be deleted and made anew.
    pub anew: bool,
    /// Whether its deletion is under way.
    pub is_going: bool,
}

impl Judged {
    pub(super) fn new(namespace: &str, names: Vec<String>, standing: Standing) -> Self {
        Self {
            namespace: namespace.to_owned(),
            names,
            standing,
            remedy: None,
            uid: String::new(),
            difference: String::new(),
            same_after_dry_run: false,
            made: false,
            awaits_status: false,
            anew: false,
            is_going: false,
        }
    }

    /// Whether what is wrong may pass by itself, soon after the policy began to enforce.
    pub(super) fn may_pass(&self) -> bool {
        let is_passing = matches!(&self.standing, Standing::Wrong(fault) if fault.may_pass);
        self.awaits_status || self.is_going || is_passing
    }

    fn one(namespace: &str, name: &str, live: Option<&Arc<Value>>, standing: Standing) -> Self {
        Self {
            uid: live.map_or_else(String::new, |live| object::meta_text(live, "uid").to_owned()),
            ..Self::new(namespace, vec![name.to_owned()], standing)
        }
    }
}

/// Judges all that a template speaks of.
pub fn judge(template: &Template, subject: &Subject, objects: &dyn Objects) -> Vec<Judged> {
    let mut all = Vec::new();
    for namespace in &subject.namespaces {
        if template.is_search() {
            all.push(search(template, namespace, objects));
        } else if let Some(selector) = &subject.selector {
            for live in objects.list(namespace) {
                if selector.matches_labels(object::labels(&live)) {
                    all.extend(selected(template, namespace, &live));
                }
            }
        } else {
            let live = objects.find(namespace, &subject.name);
            all.push(named(template, namespace, &subject.name, live));
        }
    }
    if all.is_empty() {
        all.push(Judged::new("", Vec::new(), Standing::Nothing));
    }
    all
}

/// One object that is known by its name.
fn named(template: &Template, namespace: &str, name: &str, live: Option<Arc<Value>>) -> Judged {
    match (template.compliance, live) {
        (Compliance::MustNotHave, None) => Judged::one(namespace, name, None, Standing::Missing),
        (Compliance::MustNotHave, Some(live)) => {
            let judged = Judged::one(namespace, name, Some(&live), Standing::Found);
            Judged {
                remedy: Some(Remedy::Delete(live)),
                ..judged
            }
        }
        (_, None) => {
            let judged = Judged::one(namespace, name, None, Standing::NotFound);
            Judged {
                remedy: Some(Remedy::Create(made(template, namespace, name))),
                ..judged
            }
        }
        (_, Some(live)) => present(template, namespace, name, &live),
    }
}

/// What is made where there is nothing.
pub fn made(template: &Template, namespace: &str, name: &str) -> Value {
    let mut object = template.object.clone();
    // Those that are selected by their labels have no name in the template.
    object["metadata"]["name"] = name.into();
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    // A status is nobody's to make.
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

fn present(template: &Template, namespace: &str, name: &str, live: &Arc<Value>) -> Judged {
    let compared = match compare(template, live, Mode::Strict) {
        Ok(compared) => compared,
        Err(error) => {
            let fault = Fault::new("K8s update template error", error);
            return Judged::one(namespace, name, Some(live), Standing::Wrong(fault));
        }
    };
    let fine = compared.found.matches && !compared.status_differs;
    let standing = if fine {
        Standing::AsSpecified
    } else {
        Standing::Differs
    };
    let judged = Judged::one(namespace, name, Some(live), standing);
    Judged {
        awaits_status: compared.found.matches && compared.status_differs,
        remedy: compared.found.needs_dry_run().then(|| Remedy::Update {
            merged: compared.merged,
            live: live.clone(),
            status_differs: compared.status_differs,
        }),
        ..judged
    }
}

/// Whether the status of an object, which nobody sends, is what a template demands.
pub fn status_fits(template: &Template, live: &Value) -> bool {
    compare(template, live, Mode::Strict).is_ok_and(|compared| !compared.status_differs)
}

/// One object that is known by its labels.
fn selected(template: &Template, namespace: &str, live: &Arc<Value>) -> Option<Judged> {
    let name = object::meta_text(live, "name");
    if template.compliance != Compliance::MustNotHave {
        return Some(present(template, namespace, name, live));
    }
    // Of those that are selected, only what also looks like this must not be.
    match compare(template, live, Mode::Strict) {
        Ok(compared) if compared.found.matches && !compared.status_differs => {
            let judged = Judged::one(namespace, name, Some(live), Standing::Found);
            Some(Judged {
                remedy: Some(Remedy::Delete(live.clone())),
                ..judged
            })
        }
        Ok(_) | Err(_) => None,
    }
}

/// Any object of a namespace; nothing is ever done.
fn search(template: &Template, namespace: &str, objects: &dyn Objects) -> Judged {
    let all = objects.list(namespace);
    let fits = |live: &&Arc<Value>| {
        compare(template, live, Mode::Lenient)
            .is_ok_and(|compared| compared.found.matches && !compared.status_differs)
    };
    let names = |objects: Vec<&Arc<Value>>| -> Vec<String> {
        if objects.len() > MAX_NAMES {
            return vec![NO_NAME.to_owned()];
        }
        let mut names: Vec<String> = objects
            .into_iter()
            .map(|object| object::meta_text(object, "name").to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    let fitting: Vec<&Arc<Value>> = all.iter().filter(fits).collect();
    let standing = match (template.compliance, fitting.is_empty(), all.is_empty()) {
        (Compliance::MustNotHave, true, _) => Standing::Missing,
        (Compliance::MustNotHave, false, _) => Standing::Found,
        (_, false, _) => Standing::AsSpecified,
        (_, true, false) => Standing::Differs,
        (_, true, true) => Standing::NotFound,
    };
    let names = match standing {
        // None of those that are there is the one that is meant.
        Standing::Differs | Standing::Missing => Vec::new(),
        _ => names(fitting),
    };
    Judged::new(namespace, names, standing)
}
