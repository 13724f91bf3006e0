//! Decision groups: the selected clusters in the order in which they go, and how a strategy names some of them.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_api::ocm::{DISABLED, GROUP_INDEX, GROUP_NAME, Placement, PlacementDecision};
use lockgate_api::rollout::MandatoryDecisionGroup;

/// The group of the clusters that a placement has not decided on. No other is called so: names of groups have no spaces.
const OUTSIDE: &str = "not in the placement";
/// Where a group goes whose index nobody can read.
const LAST: u32 = u32::MAX - 1;

/// Clusters that go together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionGroup {
    /// Its place in the order. Indices may have gaps.
    pub index: u32,
    /// Its name; several groups may share one, and most have none.
    pub name: String,
    /// Its clusters.
    pub clusters: Vec<String>,
}

impl std::fmt::Display for DecisionGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "group {}", self.index),
            name => write!(f, "group {} ({name})", self.index),
        }
    }
}

/// How a strategy names groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupKey {
    /// Every group of that name.
    Name(String),
    /// The group of that index. None has a negative one.
    Index(i32),
}

impl From<&MandatoryDecisionGroup> for GroupKey {
    /// A name counts for more than an index; neither means the first group.
    fn from(entry: &MandatoryDecisionGroup) -> Self {
        if entry.group_name.is_empty() {
            Self::Index(entry.group_index.unwrap_or(0))
        } else {
            Self::Name(entry.group_name.clone())
        }
    }
}

impl GroupKey {
    fn names(&self, group: &DecisionGroup) -> bool {
        match self {
            Self::Name(name) => *name == group.name,
            Self::Index(index) => u32::try_from(*index) == Ok(group.index),
        }
    }
}

/// What the decisions of a placement come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreed {
    /// Somebody is selected.
    Groups(Groups),
    /// Nobody is.
    Nobody,
    /// They are not what its status says: they are being written, and more is to come.
    Writing,
}

/// The groups of a selection, by index; each cluster is in one of them, and inside a group clusters are ordered by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    groups: Vec<DecisionGroup>,
    /// Every cluster by name: the position of its group, and its position there.
    members: Vec<(u32, u32)>,
}

impl Groups {
    /// Groups in any order. Parts with the same index and name are one group; a cluster that is in several groups belongs to
    /// the first.
    pub fn new(parts: impl IntoIterator<Item = DecisionGroup>) -> Self {
        let mut merged: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
        for part in parts {
            merged
                .entry((part.index, part.name))
                .or_default()
                .extend(part.clusters);
        }
        let groups = merged.into_iter().map(|((index, name), mut clusters)| {
            clusters.sort();
            DecisionGroup {
                index,
                name,
                clusters,
            }
        });
        let mut groups: Vec<DecisionGroup> = groups.collect();
        let members = by_name(&groups);
        let same = |pair: &&[(u32, u32)]| name_of(&groups, pair[0]) == name_of(&groups, pair[1]);
        let repeated: BTreeSet<(u32, u32)> = members.windows(2).filter(same).map(|pair| pair[1]).collect();
        if repeated.is_empty() {
            return Self { groups, members };
        }
        for (position, group) in (0_u32..).zip(&mut groups) {
            let mut places = 0_u32..;
            group.clusters.retain(|_| {
                places
                    .next()
                    .is_some_and(|at| !repeated.contains(&(position, at)))
            });
        }
        let members = by_name(&groups);
        Self { groups, members }
    }

    /// Groups that are in order, of clusters that are in order and each in one group only.
    pub(super) fn ordered(groups: Vec<DecisionGroup>) -> Self {
        let members = by_name(&groups);
        Self { groups, members }
    }

    /// One group without a name.
    pub fn single(clusters: impl IntoIterator<Item = String>) -> Self {
        Self::new([DecisionGroup {
            clusters: clusters.into_iter().collect(),
            ..DecisionGroup::default()
        }])
    }

    /// The groups that decisions of a placement tell, by their labels. Parts of a group are joined.
    pub fn decided<'a>(decisions: impl IntoIterator<Item = &'a PlacementDecision>) -> Self {
        Self::new(decisions.into_iter().map(|decision| {
            let label = |key| decision.metadata.label(key).unwrap_or_default();
            DecisionGroup {
                // One that nobody can read goes after all others.
                index: label(GROUP_INDEX).parse().unwrap_or(LAST),
                name: label(GROUP_NAME).to_owned(),
                clusters: decision.clusters().map(str::to_owned).collect(),
            }
        }))
    }

    /// The groups that decisions of a placement tell, once they are what its status says. Where somebody else writes the
    /// decisions, no status is asked.
    pub fn agreed<'a>(
        placement: &Placement,
        decisions: impl IntoIterator<Item = &'a PlacementDecision>,
    ) -> Agreed {
        let decisions: Vec<&PlacementDecision> = decisions.into_iter().collect();
        let groups = Self::decided(decisions.iter().copied());
        let by_others = placement.metadata.annotation(DISABLED) == Some("true");
        let told = placement.status.iter().flat_map(|status| &status.decision_groups);
        let told: BTreeMap<(i64, &str), i64> = told
            .map(|group| {
                let key = (
                    group.decision_group_index.into(),
                    group.decision_group_name.as_str(),
                );
                (key, group.cluster_count.into())
            })
            .collect();
        let is_told = |group: &DecisionGroup| {
            let count = told.get(&(group.index.into(), group.name.as_str()));
            count.is_some_and(|count| usize::try_from(*count) == Ok(group.clusters.len()))
        };
        if !by_others && (groups.groups.len() != told.len() || !groups.iter().all(is_told)) {
            Agreed::Writing
        } else if groups.cluster_count() == 0 {
            Agreed::Nobody
        } else {
            Agreed::Groups(groups)
        }
    }

    /// These clusters in the same groups; those that are in none come last, in a group of their own.
    #[must_use]
    pub fn restricted_to<'a>(&self, clusters: impl IntoIterator<Item = &'a str>) -> Self {
        let mut rest: BTreeSet<&str> = clusters.into_iter().collect();
        let mut groups: Vec<DecisionGroup> = Vec::new();
        for group in &self.groups {
            let members = group.clusters.iter().filter(|name| rest.remove(name.as_str()));
            groups.push(DecisionGroup {
                clusters: members.cloned().collect(),
                ..group.clone()
            });
        }
        groups.retain(|group| !group.clusters.is_empty());
        if !rest.is_empty() {
            groups.push(DecisionGroup {
                index: self
                    .groups
                    .iter()
                    .map(|group| group.index)
                    .max()
                    .map_or(0, |last| last.saturating_add(1)),
                name: OUTSIDE.to_owned(),
                clusters: rest.into_iter().map(str::to_owned).collect(),
            });
        }
        Self::new(groups)
    }

    /// The clusters that are in no group of the placement that is followed.
    pub fn outside(&self) -> &[String] {
        let outside = self.groups.iter().find(|group| group.name == OUTSIDE);
        outside.map_or(&[], |group| &group.clusters)
    }

    /// The groups by index.
    pub fn iter(&self) -> std::slice::Iter<'_, DecisionGroup> {
        self.groups.iter()
    }

    /// How many clusters there are.
    pub fn cluster_count(&self) -> usize {
        self.members.len()
    }

    /// Every cluster by name, with the position of its group.
    pub fn clusters(&self) -> impl Iterator<Item = (&str, usize)> {
        let of = |member: &(u32, u32)| (name_of(&self.groups, *member), member.0 as usize);
        self.members.iter().map(of)
    }

    /// Whether each group is named by one of the keys. Keys that name no group are passed over.
    pub fn named_by(&self, keys: &[GroupKey]) -> Vec<bool> {
        let named = |group: &DecisionGroup| keys.iter().any(|key| key.names(group));
        self.groups.iter().map(named).collect()
    }

    /// What became of an earlier selection: which clusters are new, and which are gone.
    pub fn changes_since<'a>(&'a self, before: &BTreeSet<&'a str>) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
        let now: BTreeSet<&str> = self.clusters().map(|(cluster, _)| cluster).collect();
        (&now - before, before - &now)
    }
}

/// Every place in groups, by the name of the cluster that is there; of those of one name the first group's comes first.
fn by_name(groups: &[DecisionGroup]) -> Vec<(u32, u32)> {
    let mut members: Vec<(u32, u32)> = Vec::new();
    for (position, group) in (0_u32..).zip(groups) {
        members.extend((0_u32..).zip(&group.clusters).map(|(at, _)| (position, at)));
    }
    members.sort_by(|a, b| name_of(groups, *a).cmp(name_of(groups, *b)));
    members
}

fn name_of(groups: &[DecisionGroup], (group, at): (u32, u32)) -> &str {
    &groups[group as usize].clusters[at as usize]
}

impl std::ops::Index<usize> for Groups {
    type Output = DecisionGroup;

    /// The group at a position, which is not its index.
    fn index(&self, position: usize) -> &DecisionGroup {
        &self.groups[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(index: u32, name: &str, clusters: &[&str]) -> DecisionGroup {
        DecisionGroup {
            index,
            name: name.to_owned(),
            clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
        }
    }

    #[test]
    fn parts_of_a_group_are_joined_and_a_cluster_is_in_the_first() {
        let groups = Groups::new([
            group(4, "", &["c", "a", "e"]),
            group(1, "x", &["d", "b"]),
            group(1, "x", &["a", "b"]),
        ]);
        let found: Vec<&DecisionGroup> = groups.iter().collect();
        assert_eq!(
            found,
            [&group(1, "x", &["a", "b", "d"]), &group(4, "", &["c", "e"])]
        );
        let clusters: Vec<(&str, usize)> = groups.clusters().collect();
        assert_eq!(clusters, [("a", 0), ("b", 0), ("c", 1), ("d", 0), ("e", 1)]);
        let words: Vec<String> = groups.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["group 1 (x)", "group 4"]);
    }

    #[test]
    fn who_is_in_no_decision_comes_last() {
        let decided = Groups::new([
            group(0, "canary", &["d", "x"]),
            group(1, "", &["y"]),
            group(2, "", &["a"]),
        ]);
        let groups = decided.restricted_to(["a", "b", "c", "d"]);
        let found: Vec<&DecisionGroup> = groups.iter().collect();
        assert_eq!(
            found,
            [
                &group(0, "canary", &["d"]),
                &group(2, "", &["a"]),
                &group(3, OUTSIDE, &["b", "c"])
            ]
        );
        assert_eq!(groups.outside(), ["b", "c"]);
        assert!(decided.outside().is_empty());
        let nobody = Groups::default().restricted_to(["a"]);
        assert_eq!(nobody.outside(), ["a"]);
    }

    #[test]
    fn decisions_say_their_group() {
        let decision = |index: &str, name: &str, clusters: &[&str]| -> PlacementDecision {
            let decisions: Vec<_> = clusters
                .iter()
                .map(|cluster| serde_json::json!({"clusterName": cluster, "reason": ""}))
                .collect();
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": "d", "labels": {GROUP_INDEX: index, GROUP_NAME: name}},
                "status": {"decisions": decisions},
            }))
            .unwrap()
        };
        let decisions = [
            decision("1", "", &["c"]),
            decision("0", "canary", &["b"]),
            decision("0", "canary", &["a"]),
            decision("?", "", &["z"]),
        ];
        let told = |groups: serde_json::Value, annotations: serde_json::Value| -> Placement {
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": "p", "annotations": annotations},
                "status": {"decisionGroups": groups},
            }))
            .unwrap()
        };
        let both = serde_json::json!([
            {"decisionGroupIndex": 0, "decisionGroupName": "canary", "clusterCount": 2, "decisions": ["d"]},
            {"decisionGroupIndex": 1, "decisionGroupName": "", "clusterCount": 1, "decisions": ["d"]},
        ]);
        let none = serde_json::json!({});
        let agreed = Groups::agreed(&told(both.clone(), none.clone()), &decisions[..3]);
        assert_eq!(agreed, Agreed::Groups(Groups::decided(&decisions[..3])));
        // A part of them, or more than was told, is something that is being written.
        let few = Groups::agreed(&told(both.clone(), none.clone()), &decisions[..2]);
        assert_eq!(few, Agreed::Writing);
        let more = Groups::agreed(&told(both, none.clone()), &decisions);
        assert_eq!(more, Agreed::Writing);
        let empty = serde_json::json!([{"decisionGroupIndex": 0, "clusterCount": 0}]);
        let nobody = [decision("0", "", &[])];
        assert_eq!(Groups::agreed(&told(empty, none), &nobody), Agreed::Nobody);
        // Where somebody else decides, that counts.
        let others = told(serde_json::json!([]), serde_json::json!({DISABLED: "true"}));
        let agreed = Groups::agreed(&others, &decisions[..1]);
        assert_eq!(agreed, Agreed::Groups(Groups::decided(&decisions[..1])));
        let groups = Groups::decided(&decisions);
        let found: Vec<&DecisionGroup> = groups.iter().collect();
        assert_eq!(
            found,
            [
                &group(0, "canary", &["a", "b"]),
                &group(1, "", &["c"]),
                &group(LAST, "", &["z"])
            ]
        );
    }

    #[test]
    fn no_group_has_a_negative_index() {
        let groups = Groups::new([group(0, "", &["a"]), group(u32::MAX, "", &["b"])]);
        assert_eq!(groups.named_by(&[GroupKey::Index(-1)]), [false, false]);
        assert_eq!(groups.named_by(&[GroupKey::Index(0)]), [true, false]);
    }
}
