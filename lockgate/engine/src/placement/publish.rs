//! From the decisions that are there to those that should be, one write at a time.
//!
//! What always holds, after every step: a cluster that was selected and stays so is named by some decision; no decision is
//! larger than [`DECISION_SIZE`]; a cluster is shown in its old group or in its new one, and in no other. So whoever watches
//! decisions never sees a cluster go that stays, and never takes one for another group's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::gate::grouping::{DECISION_SIZE, decision_parts};
use crate::gate::groups::Groups;

/// A group, by index and name.
pub type GroupLabels = (u32, String);

/// A decision as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published<'a> {
    /// The name of the object.
    pub name: &'a str,
    /// Its group; absent if its labels say none, or it does not say whose it is.
    pub group: Option<GroupLabels>,
    /// Its clusters.
    pub clusters: BTreeSet<&'a str>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a decision without clusters.
    Create(String, GroupLabels),
    /// Puts clusters into a decision, in place of those that are in it.
    Fill(String, Vec<String>),
    /// Gives a decision to another group.
    Label(String, GroupLabels),
    /// Deletes a decision.
    Delete(String),
}

/// The name of the decision of that number, from 1.
pub fn decision_name(placement: &str, number: usize) -> String {
    format!("{placement}-decision-{number}")
}

/// The writes that bring the decisions there. None if they are as they should be.
pub fn steps(placement: &str, present: Vec<Published<'_>>, groups: &Groups) -> Vec<Step> {
    let wanted: Vec<(String, Slot<'_>)> = decision_parts(groups)
        .into_iter()
        .map(|part| {
            let slot = Slot {
                group: Some((part.group.index, part.group.name.clone())),
                clusters: part.clusters.iter().map(String::as_str).collect(),
            };
            (decision_name(placement, part.number), slot)
        })
        .collect();
    let slots: BTreeMap<String, Slot<'_>> = present
        .into_iter()
        .map(|decision| {
            let slot = Slot {
                group: decision.group,
                clusters: decision.clusters,
            };
            (decision.name.to_owned(), slot)
        })
        .collect();
    if slots.len() == wanted.len() && wanted.iter().all(|(name, slot)| slots.get(name) == Some(slot)) {
        return Vec::new();
    }
    Plan::new(placement, slots, &wanted).run(&wanted)
}

/// What a decision holds.
#[derive(Debug, PartialEq, Eq)]
struct Slot<'a> {
    group: Option<GroupLabels>,
    clusters: BTreeSet<&'a str>,
}

struct Plan<'a> {
    placement: &'a str,
    /// Decisions as they are after the steps so far.
    slots: BTreeMap<String, Slot<'a>>,
    /// How many decisions name each cluster.
    named: HashMap<&'a str, usize>,
    /// The group in which each cluster should be.
    groups: HashMap<&'a str, &'a GroupLabels>,
    next: usize,
    steps: Vec<Step>,
}

impl<'a> Plan<'a> {
    fn new(placement: &'a str, slots: BTreeMap<String, Slot<'a>>, wanted: &'a [(String, Slot<'a>)]) -> Self {
        let mut named: HashMap<&str, usize> = HashMap::new();
        for cluster in slots.values().flat_map(|slot| slot.clusters.iter().copied()) {
            *named.entry(cluster).or_insert(0) += 1;
        }
        let mut groups = HashMap::new();
        for (_, slot) in wanted {
            let Some(group) = &slot.group else { continue };
            groups.extend(slot.clusters.iter().map(|cluster| (*cluster, group)));
        }
        Self {
            placement,
            slots,
            named,
            groups,
            next: wanted.len() + 1,
            steps: Vec::new(),
        }
    }

    fn run(mut self, wanted: &[(String, Slot<'a>)]) -> Vec<Step> {
        let mut open: Vec<&(String, Slot<'a>)> = wanted.iter().collect();
        loop {
            let before = self.steps.len();
            open.retain(|(name, slot)| {
                while !self.is(name, slot) {
                    if !self.advance(name, slot) {
                        return true;
                    }
                }
                false
            });
            if open.is_empty() {
                break;
            }
            if self.steps.len() == before {
                self.unblock(&open);
            }
            // Where everybody moves up by one, each decision waits for its neighbour: the end of the line comes next.
            open.reverse();
        }
        // Everybody is where he should be, so that nobody is missed in what is left.
        let names: BTreeSet<&String> = wanted.iter().map(|(name, _)| name).collect();
        let surplus: Vec<String> = self
            .slots
            .keys()
            .filter(|name| !names.contains(name))
            .cloned()
            .collect();
        self.steps.extend(surplus.into_iter().map(Step::Delete));
        self.steps
    }

    fn is(&self, name: &str, wanted: &Slot<'_>) -> bool {
        self.slots.get(name) == Some(wanted)
    }

    /// Whether a cluster may be taken out of a decision: it goes, or another decision names it too.
    fn may_drop(&self, cluster: &str) -> bool {
        !self.groups.contains_key(cluster) || self.named.get(cluster).is_some_and(|count| *count > 1)
    }

    /// One step towards what a decision should be, if one is possible.
    fn advance(&mut self, name: &str, wanted: &Slot<'a>) -> bool {
        let Some(group) = &wanted.group else { return false };
        let Some(slot) = self.slots.get(name) else {
            self.create(name, group);
            return true;
        };
        if slot.group != wanted.group {
            // Only what is empty, or whose clusters all change groups together, takes other labels.
            if slot.clusters.is_empty() || slot.clusters == wanted.clusters {
                self.label(name, group);
                return true;
            }
            let free = slot.clusters.iter().all(|cluster| self.may_drop(cluster));
            if free {
                self.fill(name, BTreeSet::new());
            }
            return free;
        }
        let mut dropped = slot.clusters.difference(&wanted.clusters);
        let free = dropped.all(|cluster| self.may_drop(cluster));
        if free {
            self.fill(name, wanted.clusters.clone());
        }
        free
    }

    /// Makes a step possible where none is.
    fn unblock(&mut self, blocked: &[&(String, Slot<'a>)]) {
        for (name, wanted) in blocked {
            let Some(slot) = self.slots.get(name) else {
                continue;
            };
            let union: BTreeSet<&str> = slot.clusters.union(&wanted.clusters).copied().collect();
            let helps = slot.group == wanted.group && union != slot.clusters && union.len() <= DECISION_SIZE;
            if helps {
                self.fill(name, union);
                return;
            }
        }
        // Those that block the first one are named by a decision of their own until all is done.
        let Some((name, wanted)) = blocked.first() else {
            return;
        };
        let Some(slot) = self.slots.get(name) else { return };
        let keeps = slot.group == wanted.group;
        let stuck = slot
            .clusters
            .iter()
            .filter(|cluster| !(self.may_drop(cluster) || keeps && wanted.clusters.contains(*cluster)));
        let mut by_group: BTreeMap<GroupLabels, BTreeSet<&'a str>> = BTreeMap::new();
        for cluster in stuck {
            if let Some(group) = self.groups.get(cluster) {
                by_group.entry((*group).clone()).or_default().insert(cluster);
            }
        }
        for (group, clusters) in by_group {
            // They come from one decision, so that they fit into one.
            let name = loop {
                let name = decision_name(self.placement, self.next);
                self.next += 1;
                if !self.slots.contains_key(&name) {
                    break name;
                }
            };
            self.create(&name, &group);
            self.fill(&name, clusters);
        }
    }

    fn create(&mut self, name: &str, group: &GroupLabels) {
        let slot = Slot {
            group: Some(group.clone()),
            clusters: BTreeSet::new(),
        };
        self.slots.insert(name.to_owned(), slot);
        self.steps.push(Step::Create(name.to_owned(), group.clone()));
    }

    fn label(&mut self, name: &str, group: &GroupLabels) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.group = Some(group.clone());
        }
        self.steps.push(Step::Label(name.to_owned(), group.clone()));
    }

    fn fill(&mut self, name: &str, clusters: BTreeSet<&'a str>) {
        let Some(slot) = self.slots.get_mut(name) else {
            return;
        };
        for cluster in &slot.clusters {
            if let Some(count) = self.named.get_mut(cluster) {
                *count -= 1;
            }
        }
        for cluster in &clusters {
            *self.named.entry(cluster).or_insert(0) += 1;
        }
        let list = clusters.iter().map(|cluster| (*cluster).to_owned()).collect();
        slot.clusters = clusters;
        self.steps.push(Step::Fill(name.to_owned(), list));
    }
}
