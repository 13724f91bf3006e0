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

/// The decisions of a hub, by name: the group of each, and its clusters.
type Decisions = BTreeMap<String, (Option<GroupLabels>, BTreeSet<String>)>;

fn decisions(groups: &Groups) -> Decisions {
    decision_parts(groups)
        .into_iter()
        .map(|part| {
            let group = (part.group.index, part.group.name.clone());
            let clusters = part.clusters.iter().cloned().collect();
            (format!("p-decision-{}", part.number), (Some(group), clusters))
        })
        .collect()
}

/// The steps from decisions to groups.
fn planned(decisions: &Decisions, groups: &Groups) -> Vec<Step> {
    let present = decisions.iter().map(|(name, (group, clusters))| Published {
        name,
        group: group.clone(),
        clusters: clusters.iter().map(String::as_str).collect(),
    });
    steps("p", present.collect(), groups)
}

fn apply(decisions: &mut Decisions, step: Step) {
    match step {
        Step::Create(name, group) => {
            let old = decisions.insert(name, (Some(group), BTreeSet::new()));
            assert_eq!(old, None);
        }
        Step::Fill(name, clusters) => {
            assert!(clusters.len() <= DECISION_SIZE);
            decisions.get_mut(&name).unwrap().1 = clusters.into_iter().collect();
        }
        Step::Label(name, group) => decisions.get_mut(&name).unwrap().0 = Some(group),
        Step::Delete(name) => assert!(decisions.remove(&name).is_some()),
    }
}

/// Where each cluster is shown.
fn shown(decisions: &Decisions) -> BTreeMap<&str, BTreeSet<Option<&GroupLabels>>> {
    let mut shown: BTreeMap<&str, BTreeSet<Option<&GroupLabels>>> = BTreeMap::new();
    for (group, clusters) in decisions.values() {
        for cluster in clusters {
            shown.entry(cluster).or_default().insert(group.as_ref());
        }
    }
    shown
}

/// Plays the steps, and looks after each of them.
fn play(before: &Groups, after: &Groups) -> Result<Vec<Step>, TestCaseError> {
    let (first, last) = (decisions(before), decisions(after));
    let plan = planned(&first, after);
    let (was, will) = (shown(&first), shown(&last));
    let mut now = first.clone();
    for step in &plan {
        apply(&mut now, step.clone());
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

/// One more at the front moves everybody up, and each decision waits for the next to take whom it drops.
#[test]
fn thousands_of_decisions_that_wait_for_each_other_are_planned_at_once() {
    let alone = |from: usize| -> Vec<(&str, Vec<usize>)> {
        (from..10_000).map(|number| ("", vec![number])).collect()
    };
    let (before, after) = (decisions(&groups(&alone(1))), groups(&alone(0)));
    // The last is made and filled. Whoever looks at all of them again for each has a hundred million looks, and is noticed.
    assert_eq!(planned(&before, &after).len(), 10_001);
}

/// A decision that does not say whose it is gets its labels, and nobody is missed meanwhile.
#[test]
fn what_does_not_say_whose_it_is_is_labelled() {
    let after = groups(&[("", range(0, 150))]);
    let mut now = decisions(&after);
    for (group, _) in now.values_mut() {
        *group = None;
    }
    let plan = planned(&now, &after);
    let label = |number: usize| Step::Label(format!("p-decision-{number}"), (0, String::new()));
    assert_eq!(plan, [label(1), label(2)]);
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
        prop_assert_eq!(planned(&decisions(&after), &after), Vec::new());
    }

    /// A writer that is cut off goes on from what it left.
    #[test]
    fn whoever_is_cut_off_goes_on(before in any_groups(), after in any_groups(), cut in 0..12_usize) {
        let mut now = decisions(&before);
        for step in planned(&now, &after).into_iter().take(cut) {
            apply(&mut now, step);
        }
        for step in planned(&now, &after) {
            apply(&mut now, step);
        }
        prop_assert_eq!(now, decisions(&after));
    }
}
