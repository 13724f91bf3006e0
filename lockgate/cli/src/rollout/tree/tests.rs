use lockgate_api::ocm::Policy;

use super::*;

fn id() -> TemplateId {
    TemplateId {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    }
}

fn cluster(name: &str, state: &str, reason: &str, until: Option<&str>) -> RunCluster {
    RunCluster {
        name: name.to_owned(),
        state: state.to_owned(),
        reason: reason.to_owned(),
        until: until.map(str::to_owned),
        ..RunCluster::default()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn a_tree_with_countdowns() {
    let run = RolloutRun {
        policy: "RolloutPolicy shop/web".to_owned(),
        revision: 3,
        good_revision: Some(2),
        phase: "Progressing".to_owned(),
        message: "1 of 3 clusters are done".to_owned(),
        command: "retry by admin: the node is back".to_owned(),
        groups: vec![
            RunGroup::of(0, "canary", vec![cluster("a", "Succeeded", "done", None)]),
            RunGroup::of(
                1,
                "",
                vec![
                    cluster(
                        "b",
                        "Succeeded",
                        "succeeded, soaks until 2026-01-01T00:05:00Z",
                        Some("2026-01-01T00:05:00Z"),
                    ),
                    cluster("c", "ToApply", "waits: 1 of 1 places is taken", None),
                ],
            ),
        ],
    };
    let text = show(&id(), &run, None, at("2026-01-01T00:03:30Z"), Paint::OFF, 80);
    assert_eq!(
        text,
        "Deployment shop/web   … Progressing\n\
         \x20 revision   3, the last good one is 2\n\
         \x20 policy     RolloutPolicy shop/web\n\
         \x20 because    1 of 3 clusters are done\n\
         \x20 command    retry by admin: the node is back\n\
         \n\
         group 0 (canary)   1 of 1 done\n\
         \x20 ✔ a  Succeeded\n\
         \n\
         group 1   0 of 2 done\n\
         \x20 … b  Soaking     succeeded, soaks, 1m30s left\n\
         \x20 · c  ToApply     waits: 1 of 1 places is taken\n\
         \n\
         Next: lockgate rollout status deployment/web -n shop --watch\n"
    );
}

/// What is wrong with a policy is told also while there is something to show of it, and how clusters are that wait in many
/// groups.
#[test]
fn a_policy_that_is_refused_and_groups_that_wait() {
    let root = |observed: i64| -> Policy {
        serde_json::from_value(serde_json::json!({
            "metadata": {"generation": 3},
            "spec": {"remediationAction": "enforce"},
            "status": {"observedGeneration": observed, "conditions": [{"type": "Accepted", "status": "False",
                "reason": "StrategyInvalid", "message": "spec.rolloutStrategy.type: no such thing"}]},
        }))
        .unwrap()
    };
    let groups = (0..4).map(|at| {
        let one = cluster(&format!("c{at}"), "ToApply", "waits for group 0", None);
        RunGroup {
            state: "ToApply".to_owned(),
            ..RunGroup::of(at, "", vec![one])
        }
    });
    let run = RolloutRun {
        phase: "Progressing".to_owned(),
        message: "0 of 4 clusters are done".to_owned(),
        groups: groups.collect(),
        ..RolloutRun::default()
    };
    let shown = |observed| {
        let holder = Holder::Policy(Box::new(root(observed)), Default::default());
        show(
            &id(),
            &run,
            Some(&holder),
            at("2026-01-01T00:00:00Z"),
            Paint::OFF,
            80,
        )
    };
    let text = shown(3);
    for part in [
        "Deployment shop/web   ✘ Refused\n",
        "  note       spec.rolloutStrategy.type: no such thing\n  before     0 of 4 clusters are done\n",
        "groups 0 to 3   0 of 4 done\n  · all  ToApply     waits for group 0\n      4 has no replica yet\n",
        "Next: kubectl edit deployment/web -n shop\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Nobody has looked at it since it was edited.
    let text = shown(2);
    assert!(
        text.contains("… Progressing\n") && text.contains("no such thing"),
        "{text}"
    );
}

#[test]
fn a_thousand_clusters_fit_on_a_screen() {
    let waits =
        "waits for group 0 (a group with quite a long name): some-cluster soaks until 2026-01-01T00:05:00Z";
    let run = RolloutRun {
        phase: "Progressing".to_owned(),
        groups: vec![RunGroup {
            clusters: (0..1000)
                .map(|n| {
                    cluster(
                        &format!("a-cluster-with-a-rather-long-name-{n:04}"),
                        "ToApply",
                        waits,
                        None,
                    )
                })
                .collect(),
            ..RunGroup::default()
        }],
        ..RolloutRun::default()
    };
    let text = show(&id(), &run, None, at("2026-01-01T00:00:00Z"), Paint::OFF, 80);
    assert!(text.lines().count() < 24, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("… and 999 more like it"), "{text}");
    // Also when each was well at another moment.
    let mut soaking = run;
    for (n, cluster) in soaking.groups[0].clusters.iter_mut().enumerate() {
        let until = format!("2026-01-01T00:05:00.{n:03}Z");
        cluster.state = "Succeeded".to_owned();
        cluster.reason = format!("succeeded, soaks until {until}; applied, its health is unknown");
        cluster.until = Some(until);
    }
    let text = show(&id(), &soaking, None, at("2026-01-01T00:00:00Z"), Paint::OFF, 80);
    assert!(text.lines().count() < 24, "{text}");
    assert!(text.contains("Soaking     succeeded, soaks; appl"), "{text}");
    assert!(text.contains("…, 5m left\n"), "{text}");
}

#[test]
fn a_thousand_clusters_in_mixed_states_fit_on_a_screen() {
    let states = [
        ("Succeeded", "done"),
        ("Progressing", "under way"),
        ("ToApply", "waits: 25 of 25 places are taken"),
        ("Suspended", "suspended"),
        ("TimeOut", "timed out: did not succeed within 5m"),
    ];
    let mixed = |from: usize| -> Vec<RunCluster> {
        let clusters = (from..from + 100).map(|n| {
            let (state, reason) = states[n % states.len()];
            cluster(&format!("cluster-{n:04}"), state, reason, None)
        });
        clusters.collect()
    };
    let alike = |from: usize, state: &str| -> Vec<RunCluster> {
        let clusters = (from..from + 100).map(|n| cluster(&format!("cluster-{n:04}"), state, "done", None));
        clusters.collect()
    };
    let groups = (0..10).map(|at| {
        let clusters = match at {
            0..4 => alike(at * 100, "Succeeded"),
            4 => mixed(at * 100),
            _ => alike(at * 100, "ToApply"),
        };
        RunGroup::of(at as i64, "", clusters)
    });
    let run = RolloutRun {
        phase: "Failed".to_owned(),
        groups: groups.collect(),
        ..RolloutRun::default()
    };
    let text = show(&id(), &run, None, at("2026-01-01T00:00:00Z"), Paint::OFF, 80);
    assert!(text.lines().count() < 24, "{text}");
    assert!(text.contains("groups 0 to 3   400 of 400 done"), "{text}");
    assert!(text.contains("groups 5 to 9   0 of 500 done"), "{text}");
    assert!(text.contains("… and 19 more like it"), "{text}");
    // Also when something else is to be said of each.
    let mut odd = run;
    for (n, cluster) in odd.groups[4].clusters.iter_mut().enumerate() {
        cluster.reason = format!("its own reason {n}");
    }
    let text = show(&id(), &odd, None, at("2026-01-01T00:00:00Z"), Paint::OFF, 80);
    assert!(text.lines().count() < 30, "{text}");
    assert!(text.contains("… and 88 more"), "{text}");
}

#[test]
fn the_time_that_is_left_is_told_once() {
    for (reason, told) in [
        ("under way, has until 2026-01-01T00:05:00Z", "under way"),
        ("failed, has until 2026-01-01T00:05:00Z to recover", "failed"),
        ("succeeded, soaks until 2026-01-01T00:05:00Z", "succeeded, soaks"),
    ] {
        assert_eq!(words(&cluster("a", "Progressing", reason, None)).1, told);
    }
}

#[test]
fn a_disabled_policy_says_that_it_is() {
    let root: Policy = serde_json::from_value(serde_json::json!({"spec": {"disabled": true}})).unwrap();
    let text = Holder::Policy(Box::new(root), Default::default()).untold(&id());
    assert!(text.contains("  because    spec.disabled is true\n"), "{text}");
}
