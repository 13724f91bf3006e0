mod properties;

use lockgate_api::rollout;
use serde_json::{Value, json};

use super::super::decision::Overall;
use super::super::groups::DecisionGroup;
use super::*;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn rules(strategy: Value) -> Rules {
    Rules::read(&rollout::read(&strategy).unwrap()).unwrap()
}

/// Groups as `canary: a b | : c d`, indices from 0.
fn groups(text: &str) -> Groups {
    let parts = text.split('|').enumerate().map(|(index, part)| {
        let (name, clusters) = part.split_once(':').unwrap();
        DecisionGroup {
            index: index as u32,
            name: name.trim().to_owned(),
            clusters: clusters.split_whitespace().map(str::to_owned).collect(),
        }
    });
    Groups::new(parts)
}

/// Standings as `a=Failed b=Succeeded:60`, with how many seconds ago.
fn standings(text: &str) -> Vec<Standing<'_>> {
    fn read(word: &str) -> Standing<'_> {
        let (cluster, status) = word.split_once('=').unwrap();
        let (status, age) = status.split_once(':').unwrap_or((status, ""));
        Standing {
            cluster,
            status: Status::from_name(status),
            since: (!age.is_empty()).then(|| now() - jiff::SignedDuration::from_secs(age.parse().unwrap())),
        }
    }
    text.split_whitespace().map(read).collect()
}

/// Every cluster with its place and reason, one a line.
fn told(groups: &Groups, strategy: Value, said: &str) -> String {
    let said = standings(said);
    let decision = decide(groups, &rules(strategy), &said, now());
    let line =
        |verdict: &Verdict<'_>| format!("{} {:?}: {}\n", verdict.cluster, verdict.place, verdict.reason);
    decision.clusters.iter().map(line).collect()
}

#[test]
fn all_go_at_once() {
    let strategy = json!({ "type": "All", "all": { "progressDeadline": "90s" } });
    assert_eq!(
        told(
            &groups(": a b | : c d e f g"),
            strategy,
            "b=Progressing:30 c=Failed:30 d=Failed:90 e=Succeeded:1 f=TimeOut g=Skip"
        ),
        "a Starts: goes now, as every cluster does\n\
         b InFlight: under way, has until 2026-01-01T12:01:00Z\n\
         c InFlight: failed, has until 2026-01-01T12:01:00Z to recover\n\
         d TimedOut: timed out: did not recover within 1m30s\n\
         e Over: done\n\
         f Over: timed out earlier\n\
         g Over: skipped\n"
    );
}

#[test]
fn a_window_is_filled_and_then_waited_for() {
    let strategy =
        json!({ "type": "Progressive", "progressive": { "maxConcurrency": 3, "minSuccessTime": "5m" } });
    assert_eq!(
        told(
            &groups(": a b c d e f"),
            strategy.clone(),
            "a=Succeeded:300 b=Succeeded:60 c=Progressing:5"
        ),
        "a Over: done\n\
         b InFlight: succeeded, soaks until 2026-01-01T12:04:00Z\n\
         c InFlight: under way\n\
         d Starts: goes now: 3 of 3 places are taken with it\n\
         e Waits: waits: 3 of 3 places are taken\n\
         f Waits: waits: 3 of 3 places are taken\n"
    );
    assert_eq!(
        told(&groups(": a b c"), strategy, "a=Failed:5"),
        "a InFlight: failed, and has no deadline\n\
         b Waits: held: a failed, and none may\n\
         c Waits: held: a failed, and none may\n"
    );
}

#[test]
fn groups_take_turns() {
    let strategy = json!({ "type": "ProgressivePerGroup", "progressivePerGroup": { "maxFailures": 1, "minSuccessTime": "1m" } });
    let groups = groups("canary: a b c | : d e | : f g h");
    assert_eq!(
        told(&groups, strategy.clone(), "b=Succeeded:30 c=Failed:5"),
        "a Starts: goes now, with group 0 (canary)\n\
         b InFlight: succeeded, soaks until 2026-01-01T12:00:30Z\n\
         c InFlight: failed, and has no deadline\n\
         d Waits: waits for group 0 (canary): a starts now, and one more is not done\n\
         e Waits: waits for group 0 (canary): a starts now, and one more is not done\n\
         f Waits: waits for group 0 (canary): a starts now, and one more is not done\n\
         g Waits: waits for group 0 (canary): a starts now, and one more is not done\n\
         h Waits: waits for group 0 (canary): a starts now, and one more is not done\n"
    );
    // The failure in the first group is tolerated there; the second is done but for one.
    let said = "a=Succeeded:99 b=Succeeded:99 c=Failed:5 d=Succeeded:99 e=Succeeded:59";
    assert_eq!(
        told(&groups, strategy.clone(), said).lines().last().unwrap(),
        "h Waits: waits for group 1: e soaks until 2026-01-01T12:00:01Z"
    );
    // Two failures in a later group hold back an earlier one.
    let said = "a=Succeeded:99 b=Succeeded:99 f=Failed:5 h=TimeOut";
    assert_eq!(
        told(&groups, strategy, said).lines().nth(2).unwrap(),
        "c Waits: held: 2 clusters failed in group 2, f first by name, and at most 1 may"
    );
}

#[test]
fn mandatory_groups_go_first_and_must_not_fail() {
    let strategy = json!({ "type": "Progressive", "progressive": {
        "maxConcurrency": 1, "maxFailures": "100%", "mandatoryDecisionGroups": [{ "groupName": "canary" }] } });
    let groups = groups(": a b | canary: c d");
    assert_eq!(
        told(&groups, strategy.clone(), "a=Progressing:5"),
        "a InFlight: under way\n\
         b Waits: waits for mandatory group 1 (canary): c starts now, and one more is not done\n\
         c Starts: goes now, with mandatory group 1 (canary)\n\
         d Starts: goes now, with mandatory group 1 (canary)\n"
    );
    assert_eq!(
        told(&groups, strategy, "c=Succeeded:5 d=TimeOut")
            .lines()
            .next()
            .unwrap(),
        "a Waits: held: d failed in mandatory group 1 (canary), and none may"
    );
}

#[test]
fn who_is_not_selected_any_more_counts_for_nothing() {
    let groups = groups(": b");
    let strategy = rules(json!({ "type": "Progressive" }));
    let said = standings("c=Failed:1 b=ToApply a=Failed:1");
    let decision = decide(&groups, &strategy, &said, now());
    let removed: Vec<&str> = decision.removed.iter().map(|standing| standing.cluster).collect();
    assert_eq!(removed, ["a", "c"]);
    let reasons: Vec<String> = decision
        .reasons()
        .map(|(cluster, reason)| format!("{cluster} {reason}"))
        .collect();
    assert_eq!(
        reasons,
        [
            "b goes now: 1 of 1 places is taken with it",
            "a is not selected any more",
            "c is not selected any more",
        ]
    );
    assert_eq!(decision.breach, None);
    assert_eq!(decision.started().count(), 1);
}

#[test]
fn of_two_standings_the_worse_counts() {
    let groups = groups(": a b");
    let strategy = rules(json!({ "type": "Progressive" }));
    for said in ["a=Succeeded:1 a=Failed:1", "a=Failed:1 a=Succeeded:1"] {
        let said = standings(said);
        let decision = decide(&groups, &strategy, &said, now());
        assert!(decision.breach.is_some());
        assert_eq!(decision.clusters.len(), 2);
    }
}

#[test]
fn a_rollout_is_done_when_nothing_soaks() {
    let groups = groups(": a b");
    let strategy = rules(json!({ "type": "Progressive", "progressive": { "minSuccessTime": "1m" } }));
    let table = [
        ("a=Succeeded:60 b=Succeeded:59", Overall::Progressing),
        ("a=Succeeded:60 b=Succeeded:60", Overall::Succeeded),
        ("a=Succeeded:60 b=Skip", Overall::Succeeded),
        ("a=Failed:60", Overall::Failed),
        ("a=Succeeded:60", Overall::Progressing),
    ];
    for (said, expected) in table {
        let statuses = standings(said);
        let decision = decide(&groups, &strategy, &statuses, now());
        assert_eq!(decision.overall(), Some(expected), "{said}");
    }
    let nobody = Groups::single([]);
    assert_eq!(decide(&nobody, &strategy, &[], now()).overall(), None);
}
