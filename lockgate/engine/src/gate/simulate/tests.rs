use lockgate_api::rollout::{self, duration_text};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::groups::DecisionGroup;
use super::*;

fn rules(strategy: Value) -> Rules {
    Rules::read(&rollout::read(&strategy).unwrap()).unwrap()
}

fn groups(parts: &[&[&str]]) -> Groups {
    let part = |(index, clusters): (usize, &&[&str])| DecisionGroup {
        index: index as u32,
        name: String::new(),
        clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
    };
    Groups::new(parts.iter().enumerate().map(part))
}

/// Everybody takes a minute; these fail.
fn fates(groups: &Groups, failing: &[&str]) -> BTreeMap<String, Fate> {
    let fate = |(cluster, _): (&str, usize)| {
        let fate = Fate {
            takes: Duration::from_secs(60),
            succeeds: !failing.contains(&cluster),
        };
        (cluster.to_owned(), fate)
    };
    groups.clusters().map(fate).collect()
}

fn told(timeline: &Timeline) -> Vec<String> {
    let line = |event: &Event| {
        let at = duration_text(event.at);
        format!("{at} {} {:?}: {}", event.cluster, event.happened, event.why)
    };
    timeline.events.iter().map(line).collect()
}

#[test]
fn one_after_the_other_with_a_soak() {
    let groups = groups(&[&["a", "b"]]);
    let strategy =
        json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1, "minSuccessTime": "5m" } });
    let timeline = simulate(&groups, &rules(strategy), &fates(&groups, &[]), duration_text);
    assert_eq!(
        told(&timeline),
        [
            "0s a Started: goes now: 1 of 1 places is taken with it",
            "1m a Succeeded: succeeded, soaks until 6m",
            "6m a Soaked: done",
            "6m b Started: goes now: 1 of 1 places is taken with it",
            "7m b Succeeded: succeeded, soaks until 12m",
            "12m b Soaked: done",
        ]
    );
    assert_eq!(timeline.took, Duration::from_secs(720));
    assert_eq!(timeline.overall, Some(Overall::Succeeded));
    assert_eq!((timeline.breach, timeline.most_in_flight), (None, 1));
}

#[test]
fn a_failure_stops_it_and_its_deadline_is_still_seen() {
    let groups = groups(&[&["a", "b"], &["c"]]);
    let strategy =
        json!({ "type": "ProgressivePerGroup", "progressivePerGroup": { "progressDeadline": "10m" } });
    let timeline = simulate(&groups, &rules(strategy), &fates(&groups, &["b"]), duration_text);
    assert_eq!(
        told(&timeline),
        [
            "0s a Started: goes now, with group 0",
            "0s b Started: goes now, with group 0",
            "1m a Succeeded: done",
            "1m b Failed: failed, has until 11m to recover",
            "1m  Stopped: b failed in group 0, and none may",
            "11m b TimedOut: timed out: did not recover within 10m",
        ]
    );
    assert_eq!(timeline.overall, Some(Overall::Failed));
    assert_eq!(
        timeline.breach.as_deref(),
        Some("b failed in group 0, and none may")
    );
    let last = timeline.clusters.last().unwrap();
    assert_eq!(
        (last.cluster.as_str(), last.status, last.why.as_str()),
        ("c", Status::ToApply, "held: b failed in group 0, and none may")
    );
}

/// Slower than the deadline: out of time first, well afterwards.
#[test]
fn who_is_late_is_heard_all_the_same() {
    let groups = groups(&[&["a"]]);
    let strategy = json!({ "type": "Progressive", "progressive": { "progressDeadline": "30s" } });
    let timeline = simulate(&groups, &rules(strategy), &fates(&groups, &[]), duration_text);
    assert_eq!(
        told(&timeline),
        [
            "0s a Started: goes now: 1 of 1 places is taken with it",
            "30s a TimedOut: timed out: did not succeed within 30s",
            "30s  Stopped: a failed, and none may",
            "1m a Succeeded: done",
            "1m  Resumed: no more failed than may",
        ]
    );
    assert_eq!(timeline.overall, Some(Overall::Succeeded));
}

#[test]
fn without_clusters_nothing_happens() {
    let groups = Groups::single([]);
    let timeline = simulate(&groups, &rules(json!({})), &BTreeMap::new(), duration_text);
    assert_eq!((timeline.events.len(), timeline.overall), (0, None));
}

proptest! {
    #![proptest_config(crate::properties::cases(500))]

    /// Whatever the fates are, a run ends; nobody starts twice; and each is either reached or told why not.
    #[test]
    fn every_run_ends(
        fates in prop::collection::vec((0..200_u64, prop::bool::weighted(0.8)), 1..20),
        size in 1..8_usize, window in 1..6, failures in 0..4, soak in 0..90_u32, deadline in prop::option::of(1..150_u32),
        per_group in any::<bool>(),
    ) {
        let names: Vec<String> = (0..fates.len()).map(|number| format!("c{number:02}")).collect();
        let parts: Vec<Vec<&str>> = names.chunks(size).map(|chunk| chunk.iter().map(String::as_str).collect()).collect();
        let groups = groups(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let fates: BTreeMap<String, Fate> = names.iter().cloned().zip(fates.into_iter().map(|(takes, succeeds)| Fate {
            takes: Duration::from_secs(takes), succeeds,
        })).collect();
        let mut config = json!({ "maxFailures": failures, "minSuccessTime": format!("{soak}s") });
        if let Some(deadline) = deadline {
            config["progressDeadline"] = json!(format!("{deadline}s"));
        }
        let strategy = if per_group {
            json!({ "type": "ProgressivePerGroup", "progressivePerGroup": config })
        } else {
            config["maxConcurrency"] = json!(window);
            json!({ "type": "Progressive", "progressive": config })
        };
        let timeline = simulate(&groups, &rules(strategy), &fates, duration_text);
        prop_assert!(timeline.events.is_sorted_by_key(|event| event.at));
        for ending in &timeline.clusters {
            let started = timeline.events.iter().filter(|event| {
                event.cluster == ending.cluster && event.happened == Happened::Started
            });
            prop_assert_eq!(started.count(), usize::from(ending.status != Status::ToApply));
            prop_assert!(!ending.why.is_empty());
        }
        let reached = timeline.clusters.iter().all(|ending| ending.status != Status::ToApply);
        let all_well = timeline.clusters.iter().all(|ending| ending.status == Status::Succeeded);
        prop_assert_eq!(timeline.overall == Some(Overall::Succeeded), all_well);
        // What has not been reached is held by failures, or by a failed cluster that keeps its place for ever.
        prop_assert!(reached || timeline.breach.is_some() || deadline.is_none());
        // One that is late comes back to the window, where its place may be taken.
        if !per_group && deadline.is_none() {
            prop_assert!(timeline.most_in_flight <= usize::try_from(window).unwrap());
        }
    }
}
