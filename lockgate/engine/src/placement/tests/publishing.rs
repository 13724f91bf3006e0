//! Decisions come and go without a gap.

use proptest::prelude::*;

use super::super::publish::{GroupLabels, Published, Step, steps};
use super::*;
use crate::gate::grouping::{DECISION_SIZE, decision_parts};
use crate::gate::groups::{DecisionGroup, Groups};

/// Groups of clusters by number, cut to a size.
fn groups(parts: &[(&str, Vec<usize>)]) -> Groups {
    Groups::new(
        parts
            .iter()
            .enumerate()
            .map(|(index, (name, clusters))| DecisionGroup {
                index: index as u32,
                name: (*name).to_owned(),
                clusters: clusters.iter().map(|number| format!("c{number:04}")).collect(),
            }),
    )
}

fn published(groups: &Groups) -> Vec<Published> {
    decision_parts(groups)
        .into_iter()
        .map(|part| Published {
            name: format!("p-decision-{}", part.number),
            group: Some((part.group.index, part.group.name.clone())),
            clusters: part.clusters.iter().cloned().collect(),
        })
        .collect()
}

/// Where each cluster is shown.
fn shown(decisions: &BTreeMap<String, Published>) -> BTreeMap<&str, BTreeSet<Option<&GroupLabels>>> {
    let mut shown: BTreeMap<&str, BTreeSet<Option<&GroupLabels>>> = BTreeMap::new();
    for decision in decisions.values() {
        for cluster in &decision.clusters {
            shown.entry(cluster).or_default().insert(decision.group.as_ref());
        }
    }
    shown
}

/// Plays the steps, and looks after each of them.
fn play(before: &Groups, after: &Groups) -> Result<Vec<Step>, TestCaseError> {
    let present = published(before);
    let plan = steps("p", &present, after);
    let by_name = |list: Vec<Published>| -> BTreeMap<String, Published> {
        list.into_iter()
            .map(|decision| (decision.name.clone(), decision))
            .collect()
    };
    let (first, last) = (by_name(present.clone()), by_name(published(after)));
    let (was, will) = (shown(&first), shown(&last));
    let mut now = first.clone();
    for step in &plan {
        match step.clone() {
            Step::Create(name, group) => {
                let decision = Published {
                    name: name.clone(),
                    group: Some(group),
                    clusters: BTreeSet::new(),
                };
                prop_assert!(now.insert(name, decision).is_none(), "{step:?}");
            }
            Step::Fill(name, clusters) => {
                prop_assert!(clusters.len() <= DECISION_SIZE);
                now.get_mut(&name).unwrap().clusters = clusters.into_iter().collect();
            }
            Step::Label(name, group) => now.get_mut(&name).unwrap().group = Some(group),
            Step::Delete(name) => prop_assert!(now.remove(&name).is_some()),
        }
        let seen = shown(&now);
        for cluster in was.keys().filter(|cluster| will.contains_key(*cluster)) {
            prop_assert!(
                seen.contains_key(cluster),
                "{cluster} is missing after {step:?} of {plan:?}"
            );
        }
        for (cluster, groups) in &seen {
            for group in groups {
                let known = [was.get(cluster), will.get(cluster)];
                let right = known.into_iter().flatten().any(|known| known.contains(group));
                prop_assert!(
                    right,
                    "{cluster} is shown in {group:?} after {step:?} of {plan:?}"
                );
            }
        }
    }
    prop_assert_eq!(&now, &last);
    Ok(plan)
}

fn count(before: &[(&str, Vec<usize>)], after: &[(&str, Vec<usize>)]) -> usize {
    play(&groups(before), &groups(after)).unwrap().len()
}

fn range(from: usize, to: usize) -> Vec<usize> {
    (from..to).collect()
}

/// Only what changed is written, and in the fewest writes.
#[test]
fn few_changes_are_few_writes() {
    let all = [("", range(1, 250))];
    assert_eq!(count(&all, &all), 0);
    // The first one: two decisions and a part, each made and filled.
    assert_eq!(count(&[("", vec![])], &[("", range(0, 3))]), 1);
    // One more at the end, one fewer at the end.
    assert_eq!(count(&all, &[("", range(1, 251))]), 1);
    assert_eq!(count(&all, &[("", range(1, 249))]), 1);
    // One more at the front shifts everybody by one.
    assert_eq!(count(&all, &[("", range(0, 250))]), 3);
    // Two full ones and one more at the front: a third is made.
    assert_eq!(count(&[("", range(1, 201))], &[("", range(0, 201))]), 4);
    // One fewer at the front: the third goes.
    assert_eq!(count(&[("", range(0, 201))], &[("", range(1, 201))]), 3);
    // A group that is renamed takes other labels.
    assert_eq!(count(&[("aa", range(0, 50))], &[("bb", range(0, 50))]), 1);
}

#[test]
fn full_decisions_that_change_places_need_a_third() {
    let (low, high) = (range(0, 100), range(100, 200));
    let plan = play(
        &groups(&[("aa", low.clone()), ("bb", high.clone())]),
        &groups(&[("aa", high), ("bb", low)]),
    )
    .unwrap();
    let made: Vec<&Step> = plan
        .iter()
        .filter(|step| matches!(step, Step::Create(..)))
        .collect();
    assert_eq!(made.len(), 1, "{plan:?}");
    assert!(
        matches!(plan.last(), Some(Step::Delete(name)) if name == "p-decision-3"),
        "{plan:?}"
    );
}

/// Groups of some clusters, in any arrangement.
fn any_groups() -> impl Strategy<Value = Groups> {
    let assigned = prop::collection::vec(0..5_usize, 0..320);
    (
        assigned,
        0..40_usize,
        prop::sample::subsequence(vec!["aa", "bb", "cc", ""], 1..4),
    )
        .prop_map(|(assigned, offset, names)| {
            let mut parts: Vec<(&str, Vec<usize>)> =
                names.into_iter().map(|name| (name, Vec::new())).collect();
            for (number, to) in assigned.into_iter().enumerate() {
                // The rest is in no group.
                if let Some((_, clusters)) = parts.get_mut(to) {
                    clusters.push(number + offset);
                }
            }
            parts.retain(|(_, clusters)| !clusters.is_empty());
            if parts.is_empty() {
                parts.push(("", Vec::new()));
            }
            groups(&parts)
        })
}

proptest! {
    #![proptest_config(crate::properties::cases(400))]

    #[test]
    fn nobody_who_stays_is_missed_and_nobody_is_shown_elsewhere(before in any_groups(), after in any_groups()) {
        play(&before, &after)?;
        prop_assert_eq!(steps("p", &published(&after), &after), Vec::new());
    }

    /// A writer that is cut off goes on from what it left.
    #[test]
    fn whoever_is_cut_off_goes_on(before in any_groups(), after in any_groups(), cut in 0..12_usize) {
        let mut now: BTreeMap<String, Published> = published(&before)
            .into_iter()
            .map(|decision| (decision.name.clone(), decision))
            .collect();
        let apply = |now: &mut BTreeMap<String, Published>, step: Step| match step {
            Step::Create(name, group) => {
                let decision = Published { name: name.clone(), group: Some(group), clusters: BTreeSet::new() };
                now.insert(name, decision);
            }
            Step::Fill(name, clusters) => now.get_mut(&name).unwrap().clusters = clusters.into_iter().collect(),
            Step::Label(name, group) => now.get_mut(&name).unwrap().group = Some(group),
            Step::Delete(name) => drop(now.remove(&name)),
        };
        let left: Vec<Published> = now.values().cloned().collect();
        for step in steps("p", &left, &after).into_iter().take(cut) {
            apply(&mut now, step);
        }
        let left: Vec<Published> = now.values().cloned().collect();
        for step in steps("p", &left, &after) {
            apply(&mut now, step);
        }
        let mut last = published(&after);
        last.sort_by(|a, b| a.name.cmp(&b.name));
        prop_assert_eq!(now.into_values().collect::<Vec<_>>(), last);
    }
}
