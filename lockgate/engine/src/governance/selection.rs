//! Through which bindings a root policy reaches which clusters, and in which groups.
//!
//! Groups are those of the placements: all groups of one placement come before those of the next, placements by name, and they
//! are counted through. A cluster that several choose belongs to the first.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_api::ocm::policy::{Exclusion, PolicyPlacement};
use lockgate_api::ocm::policy_binding::{RESTRICTED, Reference};
use lockgate_api::ocm::{PlacementBinding, Policy, PolicySet};

use crate::gate::groups::{DecisionGroup, Groups};

/// How many names a message shows.
const NAMES: usize = 5;

/// Where a selection comes from.
pub struct Sources<'a> {
    /// The root.
    pub root: &'a Policy,
    /// The bindings of its namespace, by name.
    pub bindings: &'a [&'a PlacementBinding],
    /// A set of its namespace.
    pub set: &'a dyn Fn(&str) -> Option<&'a PolicySet>,
    /// What a placement of its namespace chose; none if there is no such placement.
    pub chosen: &'a dyn Fn(&Reference) -> Option<Chosen>,
    /// Whether there is a cluster of this name.
    pub is_known: &'a dyn Fn(&str) -> bool,
    /// Whether the root asks for clusters to take turns: then what bindings say of single clusters is ignored.
    pub takes_turns: bool,
}

/// What a placement chose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chosen {
    /// Its groups, in the order of their indices.
    pub groups: Groups,
    /// Whether its decisions are fewer than it says it has made.
    pub lacks: bool,
}

/// The clusters of a root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// In their groups.
    pub groups: Groups,
    /// Those where a binding enforces.
    pub enforced: BTreeSet<String>,
    /// The bindings that count, as the root's status tells them.
    pub placements: Vec<PolicyPlacement>,
    /// Why a binding gives none: a reason, and a sentence. Then no cluster is given up, for nobody knows which it should be.
    pub unplaced: Option<(&'static str, String)>,
    /// Whether some binding is about the root, so that no clusters means that none was found.
    pub is_bound: bool,
    /// What is ignored, in a sentence.
    pub ignored: Option<String>,
    /// Clusters that a placement names and that are not here.
    pub unknown: BTreeSet<String>,
    /// Whether all clusters that are chosen are left out by sets: then it goes from them, on purpose.
    pub excludes_all: bool,
}

/// One way from a root to a placement.
struct Way<'a> {
    binding: &'a PlacementBinding,
    set: Option<&'a PolicySet>,
}

impl Selection {
    /// Whether there is any cluster to go to.
    pub fn has_clusters(&self) -> bool {
        self.groups.cluster_count() > 0
    }
}

/// A placement that is followed.
struct Followed {
    groups: Groups,
    /// Those that at least one way does not leave out.
    clusters: BTreeSet<String>,
}

/// Ways that lead nowhere, as `Placement name (binding name)`.
#[derive(Default)]
struct Astray {
    missing: BTreeSet<String>,
    lacking: BTreeSet<String>,
    empty: BTreeSet<String>,
}

impl Astray {
    fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.lacking.is_empty() && self.empty.is_empty()
    }
}

/// The clusters of a root.
pub fn select(sources: &Sources<'_>) -> Selection {
    let ways = ways(sources);
    let mut selection = Selection {
        is_bound: !ways.is_empty(),
        placements: ways.iter().map(|way| placement(way, sources.root)).collect(),
        ..Selection::default()
    };
    selection.placements.sort_by_key(|placement| {
        [
            placement.placement_binding.clone(),
            placement.placement.clone(),
            placement.placement_rule.clone(),
            placement.policy_set.clone(),
        ]
    });
    // By name and kind.
    let mut chosen: BTreeMap<(&str, &str), Followed> = BTreeMap::new();
    let mut astray = Astray::default();
    let mut enforced: BTreeSet<String> = BTreeSet::new();
    let mut ignored = BTreeSet::new();
    for way in &ways {
        let reference = &way.binding.placement_ref;
        let named = || {
            let binding = &way.binding.metadata.name;
            format!("{} {} (binding {binding})", reference.kind, reference.name)
        };
        // A restricted binding adds no cluster, so that none is missed.
        let restricted = way.binding.sub_filter == RESTRICTED;
        let Some(Chosen { groups, lacks }) = (sources.chosen)(reference) else {
            if !restricted {
                astray.missing.insert(named());
            }
            continue;
        };
        if lacks && !restricted {
            astray.lacking.insert(named());
        } else if groups.cluster_count() == 0 && !restricted {
            astray.empty.insert(named());
        }
        let excluded = excluded(way, sources.root);
        let clusters: BTreeSet<String> = groups
            .clusters()
            .map(|(cluster, _)| cluster)
            .filter(|cluster| !excluded.contains(cluster))
            .map(str::to_owned)
            .collect();
        let overriding = way.binding.binding_overrides.as_ref();
        let enforces = overriding.is_some_and(|overrides| !overrides.remediation_action.is_empty());
        if sources.takes_turns && (restricted || enforces) {
            ignored.insert(way.binding.metadata.name.clone());
        }
        if enforces && !sources.takes_turns {
            enforced.extend(clusters.iter().cloned());
        }
        if !restricted {
            let entry = chosen
                .entry((reference.name.as_str(), reference.kind.as_str()))
                .or_insert_with(|| Followed {
                    groups,
                    clusters: BTreeSet::new(),
                });
            entry.clusters.extend(clusters);
        }
    }
    selection.excludes_all = !chosen.is_empty()
        && astray.is_empty()
        && chosen.values().all(|followed| followed.clusters.is_empty());
    let mut parts = Vec::new();
    let mut index = 0;
    for Followed { groups, clusters } in chosen.into_values() {
        // In the order of their indices, and a group that several decisions tell is one: so they can be counted through.
        for group in groups.iter() {
            let (known, unknown): (Vec<String>, Vec<String>) = group
                .clusters
                .iter()
                .filter(|cluster| clusters.contains(*cluster))
                .cloned()
                .partition(|cluster| (sources.is_known)(cluster));
            selection.unknown.extend(unknown);
            parts.push(DecisionGroup {
                index,
                clusters: known,
                name: group.name.clone(),
            });
            index += 1;
        }
    }
    selection.groups = Groups::new(parts);
    let selected: BTreeSet<&str> = selection.groups.clusters().map(|(cluster, _)| cluster).collect();
    enforced.retain(|cluster| selected.contains(cluster.as_str()));
    selection.enforced = enforced;
    selection.ignored = (!ignored.is_empty()).then(|| {
        format!(
            "bindingOverrides and subFilter of {} are ignored: spec.rolloutStrategy says who enforces when",
            some(&ignored)
        )
    });
    selection.unplaced = unplaced(sources, &selection, &astray);
    selection
}

fn unplaced(sources: &Sources<'_>, selection: &Selection, astray: &Astray) -> Option<(&'static str, String)> {
    /// What follows from all of them.
    const STAYS: &str =
        "what was replicated before stays everywhere: set spec.disabled or delete the binding to withdraw it";
    let namespace = &sources.root.metadata.namespace;
    if !selection.is_bound {
        return Some((
            "NotBound",
            format!("no PlacementBinding of namespace {namespace} names it or a PolicySet that it is in"),
        ));
    }
    if !astray.missing.is_empty() {
        let names = some(&astray.missing);
        return Some((
            "PlacementNotFound",
            format!("{names} is not in namespace {namespace}; {STAYS}"),
        ));
    }
    if !astray.lacking.is_empty() {
        let names = some(&astray.lacking);
        return Some((
            "DecisionsMissing",
            format!(
                "{names} has fewer decisions than its status says; nobody is withdrawn until it has decided again"
            ),
        ));
    }
    if !astray.empty.is_empty() || !(selection.has_clusters() || selection.excludes_all) {
        let names = if astray.empty.is_empty() {
            let bindings = selection.placements.iter();
            bindings
                .map(|one| format!("binding {}", one.placement_binding))
                .collect()
        } else {
            astray.empty.clone()
        };
        return Some((
            "NoClusters",
            format!("{} selects no cluster; {STAYS}", some(&names)),
        ));
    }
    None
}

/// The ways from a root to placements, by binding and set.
fn ways<'a>(sources: &Sources<'a>) -> Vec<Way<'a>> {
    let name = &sources.root.metadata.name;
    let mut ways = Vec::new();
    for binding in sources.bindings {
        let mut seen = BTreeSet::new();
        for subject in &binding.subjects {
            if !seen.insert((subject.kind.as_str(), subject.name.as_str())) {
                continue;
            }
            match subject.kind.as_str() {
                "Policy" if subject.name == *name => ways.push(Way { binding, set: None }),
                "PolicySet" => {
                    let set = (sources.set)(&subject.name)
                        .filter(|set| set.spec.policies.iter().any(|policy| policy == name));
                    if set.is_some() {
                        ways.push(Way { binding, set });
                    }
                }
                _ => {}
            }
        }
    }
    ways
}

fn excluded<'a>(way: &Way<'a>, root: &Policy) -> BTreeSet<&'a str> {
    way.set
        .into_iter()
        .flat_map(|set| &set.spec.exclusions)
        .filter(|exclusion| exclusion.policy_name == root.metadata.name)
        .flat_map(|exclusion| exclusion.cluster_names.iter().map(String::as_str))
        .collect()
}

fn placement(way: &Way<'_>, root: &Policy) -> PolicyPlacement {
    let reference = &way.binding.placement_ref;
    let of_kind = |kind: &str| {
        if reference.kind == kind {
            reference.name.clone()
        } else {
            String::new()
        }
    };
    PolicyPlacement {
        placement_binding: way.binding.metadata.name.clone(),
        placement: of_kind("Placement"),
        placement_rule: of_kind("PlacementRule"),
        policy_set: way.set.map(|set| set.metadata.name.clone()).unwrap_or_default(),
        exclusions: excluded(way, root)
            .into_iter()
            .map(|cluster| Exclusion {
                cluster_name: cluster.to_owned(),
            })
            .collect(),
        ..PolicyPlacement::default()
    }
}

/// The first of some names, and how many more there are.
pub(super) fn some(names: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    match names.len().saturating_sub(NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
