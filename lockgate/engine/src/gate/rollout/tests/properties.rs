//! What holds for every strategy and every fleet.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use lockgate_api::rollout::Threshold;
use proptest::prelude::*;

use super::super::super::groups::GroupKey;
use super::*;

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
/// The last clusters are in no group.
const SELECTED: usize = 10;

fn threshold() -> impl Strategy<Value = Threshold> {
    prop_oneof![
        (-1..14_i64).prop_map(Threshold::Count),
        (-5..120_i64).prop_map(|percent| Threshold::Percent(percent * 1_000_000_000)),
    ]
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let order = prop::sample::select(vec![
        Order::All,
        Order::Progressive,
        Order::Progressive,
        Order::ProgressivePerGroup,
        Order::ProgressivePerGroup,
    ]);
    let key = prop_oneof![
        (-1..5_i32).prop_map(GroupKey::Index),
        prop::sample::select(vec!["", "x", "y"]).prop_map(|name| GroupKey::Name(name.to_owned())),
    ];
    (
        order,
        threshold(),
        threshold(),
        0..40_u64,
        prop::option::of(0..40_u64),
        prop::collection::vec(key, 0..3),
    )
        .prop_map(
            |(order, max_failures, max_concurrency, soak, deadline, mandatory)| Rules {
                order,
                max_failures,
                max_concurrency,
                soak: std::time::Duration::from_secs(if order == Order::All { 0 } else { soak }),
                deadline: deadline.map(std::time::Duration::from_secs),
                mandatory: if order == Order::All {
                    Vec::new()
                } else {
                    mandatory
                },
                reversed: false,
            },
        )
}

/// Every selected cluster in one of a few groups, whose indices have gaps.
fn any_groups() -> impl Strategy<Value = Vec<DecisionGroup>> {
    let names = prop::collection::vec(prop::sample::select(vec!["", "x", "y"]), 4);
    (names, prop::collection::vec(0..4_usize, SELECTED)).prop_map(|(names, places)| {
        let mut groups: Vec<DecisionGroup> = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| DecisionGroup {
                index: at as u32 + u32::from(at > 2),
                name: name.to_owned(),
                clusters: Vec::new(),
            })
            .collect();
        for (cluster, place) in NAMES.iter().zip(places) {
            groups[place].clusters.push((*cluster).to_owned());
        }
        groups
    })
}

fn any_standings() -> impl Strategy<Value = Vec<Standing<'static>>> {
    let status = prop::sample::select(vec![
        Status::ToApply,
        Status::Progressing,
        Status::Progressing,
        Status::Succeeded,
        Status::Succeeded,
        Status::Succeeded,
        Status::Failed,
        Status::TimeOut,
        Status::Skip,
        Status::Unknown,
    ]);
    // Some of them in the future.
    let standing = prop::option::weighted(0.8, (status, prop::option::weighted(0.9, -5..60_i64)));
    prop::collection::vec(standing, NAMES.len()).prop_map(|kinds| {
        let standings = NAMES.iter().zip(kinds).filter_map(|(cluster, kind)| {
            let (status, age) = kind?;
            Some(Standing {
                cluster,
                status,
                since: age.map(|age| now() - SignedDuration::from_secs(age)),
            })
        });
        standings.collect()
    })
}

/// What a decision says, but for the moments at which unstamped clusters would be due.
fn answer(decision: &Decision<'_>) -> Vec<(String, Place, Status)> {
    let verdicts = decision.rollout().chain(&decision.clusters);
    let verdicts = verdicts.map(|verdict| (verdict.cluster.to_owned(), verdict.place, verdict.status));
    let removed = decision
        .removed
        .iter()
        .map(|standing| (standing.cluster.to_owned(), Place::Over, standing.status));
    verdicts.chain(removed).collect()
}

/// How many may fail: all of them at most, and none where the strategy says so.
fn allowed(rules: &Rules, population: usize) -> usize {
    rules.max_failures.of(population).clamp(0, population as i128) as usize
}

/// Whether more failed than may, counted anew: by the statuses of all clusters, whatever the decision says.
fn too_many_failed(rules: &Rules, decision: &Decision<'_>) -> bool {
    let mut failures: BTreeMap<u32, (usize, &DecisionGroup)> = BTreeMap::new();
    for verdict in decision
        .clusters
        .iter()
        .filter(|verdict| verdict.status.is_failure())
    {
        failures
            .entry(verdict.group.index)
            .or_insert((0, verdict.group))
            .0 += 1;
    }
    let mandatory = |group: &DecisionGroup| {
        rules.mandatory.iter().any(|key| match key {
            GroupKey::Name(name) => *name == group.name,
            GroupKey::Index(index) => i64::from(*index) == i64::from(group.index),
        })
    };
    let all: usize = failures.values().map(|(count, _)| count).sum();
    rules.order != Order::All
        && (failures.values().any(|(_, group)| mandatory(group))
            || match rules.order {
                Order::Progressive => all > allowed(rules, decision.clusters.len()),
                _ => failures
                    .values()
                    .any(|(count, group)| *count > allowed(rules, group.clusters.len())),
            })
}

proptest! {
    #![proptest_config(crate::properties::cases(1500))]

    #[test]
    fn nothing_starts_while_too_many_failed(
        parts in any_groups(), rules in any_rules(), said in any_standings(),
    ) {
        let groups = Groups::new(parts);
        let decision = decide(&groups, &rules, &said, now());
        let breach = too_many_failed(&rules, &decision);
        prop_assert_eq!(decision.breach.is_some(), breach);
        if breach {
            prop_assert_eq!(decision.started().count(), 0);
        }
    }

    #[test]
    fn the_window_is_never_overfilled_by_a_decision(
        parts in any_groups(), rules in any_rules(), said in any_standings(),
    ) {
        let groups = Groups::new(parts);
        let decision = decide(&groups, &rules, &said, now());
        let mandatory = groups.named_by(&rules.mandatory);
        let first = decision.started().next().map(|verdict| verdict.group);
        let open: usize = groups
            .iter()
            .zip(&mandatory)
            .filter(|(_, mandatory)| !**mandatory)
            .map(|(group, _)| group.clusters.len())
            .sum();
        let starts_mandatory = groups
            .iter()
            .zip(&mandatory)
            .any(|(group, mandatory)| *mandatory && Some(group) == first);
        if let Some(first) = first {
            match rules.order {
                Order::Progressive if !starts_mandatory => {
                    let window = match rules.max_concurrency.of(open) {
                        size if size <= 0 => open,
                        size => usize::try_from(size).unwrap().min(open),
                    };
                    prop_assert!(decision.rollout().count() <= window);
                }
                Order::All => {}
                // One group at a time, and every group before it in its class is settled.
                _ => {
                    prop_assert!(decision.started().all(|verdict| verdict.group == first));
                    for verdict in &decision.clusters {
                        let at = groups.iter().position(|group| group == verdict.group).unwrap();
                        let before = (!mandatory[at], at) < (!starts_mandatory, groups.iter().position(|g| g == first).unwrap());
                        let open = matches!(verdict.place, Place::Waits | Place::InFlight) && verdict.status != Status::Failed;
                        prop_assert!(!(before && open), "{} is not done", verdict.cluster);
                    }
                }
            }
        }
    }

    #[test]
    fn the_answer_stays_until_it_is_to_be_asked_again(
        parts in any_groups(), rules in any_rules(), said in any_standings(), share in 0.0..1.0_f64,
    ) {
        let groups = Groups::new(parts);
        let decision = decide(&groups, &rules, &said, now());
        // A century, where it is never to be asked again.
        let span = decision.recheck_after.unwrap_or(std::time::Duration::from_secs(3_000_000_000));
        let later = now() + SignedDuration::try_from(span.mul_f64(share)).unwrap();
        let later = later.min(now() + SignedDuration::try_from(span).unwrap() - SignedDuration::from_nanos(1));
        prop_assert_eq!(answer(&decide(&groups, &rules, &said, later)), answer(&decision));
    }

    #[test]
    fn the_order_of_the_input_has_no_meaning(
        parts in any_groups(), rules in any_rules(), said in any_standings(), turns in 0..100_usize,
    ) {
        let groups = Groups::new(parts.clone());
        let decision = decide(&groups, &rules, &said, now());
        let (mut other_parts, mut other_said) = (parts, said.clone());
        let len = other_parts.len();
        other_parts.rotate_left(turns % len);
        other_parts.iter_mut().for_each(|part| part.clusters.reverse());
        if !other_said.is_empty() {
            let len = other_said.len();
            other_said.rotate_left(turns % len);
        }
        if turns % 2 == 0 {
            other_said.reverse();
        }
        let other_groups = Groups::new(other_parts);
        prop_assert_eq!(&other_groups, &groups);
        prop_assert_eq!(decide(&other_groups, &rules, &other_said, now()), decision);
    }

    #[test]
    fn every_cluster_is_somewhere_for_a_reason(
        parts in any_groups(), rules in any_rules(), said in any_standings(),
    ) {
        let groups = Groups::new(parts);
        let decision = decide(&groups, &rules, &said, now());
        prop_assert!(decision.clusters.iter().map(|verdict| verdict.cluster).eq(NAMES.into_iter().take(SELECTED)));
        for verdict in &decision.clusters {
            let text = verdict.reason.to_string();
            let fits = match verdict.place {
                Place::Starts => text.starts_with("goes now"),
                Place::InFlight => ["under way", "failed", "succeeded, soaks"].iter().any(|word| text.starts_with(word)),
                Place::TimedOut => text.starts_with("timed out"),
                Place::Waits => ["waits for ", "waits: ", "held: "].iter().any(|word| text.starts_with(word)),
                Place::Over => ["done", "skipped", "timed out earlier"].contains(&text.as_str()),
            };
            prop_assert!(fits, "{} {:?}: {}", verdict.cluster, verdict.place, text);
        }
        // Whoever can move is not forgotten: either somebody starts or is waited for, or too many failed, or nobody waits.
        let waits = decision.clusters.iter().any(|verdict| verdict.place == Place::Waits);
        prop_assert!(!waits || decision.breach.is_some() || decision.rollout().next().is_some());
    }
}
