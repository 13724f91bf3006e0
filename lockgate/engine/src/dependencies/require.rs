//! Whom a template is needed by, and where: `requiredBy` of its binding.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_api::binding::{BindingSnapshot, TargetCluster};
use lockgate_api::{Binding, BindingSpec, keys, names};

use crate::claim::Claim;

/// How many names a message shows.
const NAMES: usize = 5;

/// A binding that needs a template, or needed it: as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its permanent id.
    pub id: String,
    /// Where its own policy places it, if it refers to the template; empty if it does not any more.
    pub clusters: BTreeSet<String>,
    /// Where its copies may still be such that need it: they leave, or have not got their newest content.
    pub lingers: BTreeSet<String>,
    /// Whether it says that existing objects of members are taken over.
    pub overwrite: bool,
    /// Whether it says that members keep objects when they are withdrawn.
    pub preserve: bool,
}

/// What decides whom a template is needed by.
#[derive(Clone, Copy, Debug)]
pub struct RequireInput<'a> {
    /// The template's binding as it was; none if there was none.
    pub before: Option<&'a Binding>,
    /// The namespace and name of that binding.
    pub own: (&'a str, &'a str),
    /// The bindings that need it, and those that are named by the binding and are there.
    pub needs: &'a [Need],
    /// The bindings of which nobody can tell whether they are gone.
    pub unknown: &'a BTreeSet<(String, String)>,
    /// The clusters that have copies already.
    pub copies: &'a BTreeSet<String>,
}

/// Whom a template is needed by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required {
    /// The bindings, with their clusters.
    pub by: Vec<BindingSnapshot>,
    /// The labels that name them.
    labels: BTreeMap<String, String>,
    overwrite: bool,
    preserve: bool,
    /// What they do not agree on.
    pub disagreement: Option<Disagreement>,
}

/// What the referrers of a template do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// In a whole sentence.
    pub message: String,
}

/// Whether a binding is there for the sake of others alone: no policy ever placed it.
pub fn is_attached(binding: &Binding) -> bool {
    is_unplaced(&binding.spec)
        && Claim::on_binding(&binding.metadata).is_none()
        && binding.metadata.annotation(keys::ACTIVATED).is_none()
        && !binding.spec.resource.kind.is_empty()
}

/// Whether no policy ever placed it.
pub(crate) fn is_unplaced(spec: &BindingSpec) -> bool {
    spec.placement.is_none() && spec.clusters.is_empty()
}

/// Decides whom a template is needed by.
pub fn require(input: &RequireInput<'_>) -> Required {
    let old = input.before.map_or(&[][..], |binding| &binding.spec.required_by);
    let told = |namespace: &str, name: &str| {
        old.iter()
            .find(|snapshot| snapshot.namespace == namespace && snapshot.name == name)
            .map(|snapshot| snapshot.clusters.iter().map(|target| target.name.as_str()))
            .into_iter()
            .flatten()
    };
    let mut entries: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut required = Required::default();
    for need in input.needs {
        let lingering = told(&need.namespace, &need.name).filter(|cluster| need.lingers.contains(*cluster));
        let clusters: BTreeSet<&str> = need
            .clusters
            .iter()
            .map(String::as_str)
            .chain(lingering)
            .collect();
        if clusters.is_empty() {
            continue;
        }
        let key = names::depended_by_key(&need.namespace, &need.name);
        required.labels.insert(key, need.id.clone());
        entries.insert((&need.namespace, &need.name), clusters);
    }
    for (namespace, name) in input.unknown {
        let clusters: BTreeSet<&str> = told(namespace, name).collect();
        if clusters.is_empty() {
            continue;
        }
        let key = names::depended_by_key(namespace, name);
        let label = input.before.and_then(|binding| binding.metadata.label(&key));
        if let Some(id) = label {
            required.labels.insert(key, id.to_owned());
        }
        entries.insert((namespace, name), clusters);
    }
    let covered: BTreeSet<&str> = entries.values().flatten().copied().collect();
    // A binding that is made again has forgotten who needed it, and nothing is removed for that: it needs itself, until
    // somebody else does.
    let (namespace, name) = input.own;
    let mut itself: BTreeSet<&str> = match input.before {
        None => input.copies.iter().map(String::as_str).collect(),
        Some(_) => told(namespace, name).collect(),
    };
    itself.retain(|cluster| !covered.contains(cluster));
    if !itself.is_empty() {
        entries.insert((namespace, name), itself);
    }
    required.by = entries
        .into_iter()
        .map(|((namespace, name), clusters)| BindingSnapshot {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            clusters: clusters.into_iter().map(target).collect(),
        })
        .collect();
    let is_told = |need: &&Need| {
        let mut by = required.by.iter();
        by.any(|snapshot| snapshot.namespace == need.namespace && snapshot.name == need.name)
    };
    let counted: Vec<&Need> = input.needs.iter().filter(is_told).collect();
    // What those said of whom nobody can tell is still said.
    let unsaid = required.by.len() > counted.len();
    let before = input.before.filter(|_| unsaid).map(|binding| &binding.spec);
    required.overwrite = counted.iter().any(|need| need.overwrite)
        || before.is_some_and(|spec| spec.conflict_resolution == "Overwrite");
    required.preserve = counted.iter().any(|need| need.preserve)
        || before.is_some_and(|spec| spec.preserve_resources_on_deletion == Some(true));
    required.disagreement = disagreement(&counted);
    required
}

fn target(name: &str) -> TargetCluster {
    TargetCluster {
        name: name.to_owned(),
        replicas: 0,
    }
}

fn disagreement(needs: &[&Need]) -> Option<Disagreement> {
    let mut parts = Vec::new();
    let mut compare = |field: &str, wins: &str, says: &dyn Fn(&Need) -> bool| {
        let those: Vec<&Need> = needs.iter().copied().filter(|need| says(need)).collect();
        if !those.is_empty() && those.len() < needs.len() {
            parts.push(format!("{field}: {wins}, because {} says so", names_of(&those)));
        }
    };
    compare("conflictResolution", "Overwrite", &|need| need.overwrite);
    compare("preserveResourcesOnDeletion", "true", &|need| need.preserve);
    (!parts.is_empty()).then(|| Disagreement {
        message: format!(
            "the policies of those that need it do not agree; {}",
            parts.join("; ")
        ),
    })
}

fn names_of(needs: &[&Need]) -> String {
    let shown: Vec<String> = needs
        .iter()
        .take(NAMES)
        .map(|need| format!("{}/{}", need.namespace, need.name))
        .collect();
    match needs.len().saturating_sub(NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Required {
    /// Makes a binding say so. One that is there for others alone does what they say; else its own policy decides.
    pub fn put(&self, binding: &mut Binding) {
        let alone = is_attached(binding);
        let labels = &mut binding.metadata.labels;
        labels.retain(|key, _| !key.starts_with(keys::DEPENDED_BY_PREFIX) || self.labels.contains_key(key));
        labels.extend(self.labels.clone());
        let spec = &mut binding.spec;
        spec.required_by.clone_from(&self.by);
        if alone {
            let resolution = if self.overwrite { "Overwrite" } else { "Abort" };
            resolution.clone_into(&mut spec.conflict_resolution);
            spec.preserve_resources_on_deletion = self.preserve.then_some(true);
        }
    }
}
