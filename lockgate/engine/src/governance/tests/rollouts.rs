//! Who enforces when, and what is said of it.

use super::*;

const TWO_GROUPS: [(&str, &[&str]); 2] = [("canary", &["a"]), ("", &["b", "c"])];

fn per_group(settings: Value) -> Value {
    json!({"type": "ProgressivePerGroup", "progressivePerGroup": settings})
}

#[test]
fn all_and_inform_go_in_one_pass() {
    for (strategy, action, at_once) in [
        (json!({}), "enforce", "enforce"),
        (json!({"type": "All"}), "Enforce", "Enforce"),
        (json!({"type": "Progressive"}), "inform", "inform"),
        (per_group(json!({})), "Inform", "Inform"),
    ] {
        let mut world = World::new(root(strategy, action), &TWO_GROUPS);
        world.settle();
        let wanted: Vec<String> = ["a", "b", "c"]
            .iter()
            .map(|cluster| format!("{cluster} Progressing {at_once}"))
            .collect();
        assert_eq!(world.states(), wanted, "{action}");
        assert_eq!(world.overall(), "Progressing");
    }
}

#[test]
fn an_inform_policy_has_succeeded_when_it_was_evaluated() {
    let mut world = World::new(root(json!({}), "inform"), &[("", &["a", "b"])]);
    world.settle();
    world.report("a", "NonCompliant");
    world.settle();
    assert_eq!(world.states(), ["a Succeeded inform", "b Progressing inform"]);
    world.report("b", "Compliant");
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
    assert_eq!(world.root.status.unwrap().compliant, "NonCompliant");
}

#[test]
fn what_enforces_nothing_has_succeeded_when_it_was_evaluated() {
    for (action, templates, status) in [
        ("", &["inform"][..], "Succeeded"),
        ("", &["Inform", "InformOnly"], "Succeeded"),
        ("enforce", &["InformOnly"], "Succeeded"),
        // The action of the policy counts, and of several templates any that is not compliant.
        ("enforce", &["inform"], "Failed"),
        ("", &["inform", "enforce"], "Failed"),
        ("enforce", &["InformOnly", ""], "Failed"),
    ] {
        let mut root = root(json!({"type": "Progressive"}), action);
        root.spec.policy_templates = templates
            .iter()
            .map(|own| PolicyTemplate {
                object_definition: json!({"kind": "ConfigurationPolicy", "metadata": {"name": "one"},
                    "spec": {"remediationAction": own}}),
                ..PolicyTemplate::default()
            })
            .collect();
        let mut world = World::new(root, &[("", &["a"])]);
        world.settle();
        world.report("a", "NonCompliant");
        world.settle();
        assert_eq!(
            world.states(),
            [format!("a {status} {action}").trim_end()],
            "{templates:?}"
        );
    }
}

#[test]
fn one_cluster_after_the_other_enforces() {
    let mut world = World::new(
        root(json!({"type": "Progressive"}), "enforce"),
        &[("", &["a", "b"])],
    );
    // The first writes make all inform, and release nobody.
    let (plan, _) = world.pass(None);
    assert!(plan.again);
    assert_eq!(world.states(), ["a  inform", "b  inform"]);
    world.settle();
    assert_eq!(world.states(), ["a Progressing enforce", "b ToApply inform"]);
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.states(), ["a Succeeded enforce", "b Progressing enforce"]);
    assert_eq!(world.overall(), "Progressing");
    world.report("b", "Compliant");
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
    assert!(world.record.is_settled());
}

#[test]
fn the_own_action_is_restored_exactly() {
    for action in ["", "Enforce", "enforce"] {
        let mut world = World::new(root(json!({"type": "Progressive"}), action), &[("", &["a", "b"])]);
        world.settle();
        assert_eq!(world.replicas["a"].spec.remediation_action, action);
        assert_eq!(world.replicas["b"].spec.remediation_action, "inform");
    }
}

#[test]
fn what_was_said_before_the_release_does_not_count() {
    let mut world = World::new(
        root(json!({"type": "Progressive"}), "enforce"),
        &[("", &["a", "b"])],
    );
    world.settle();
    // It is compliant while it informs.
    world.report("b", "Compliant");
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.states(), ["a Succeeded enforce", "b Progressing enforce"]);
    // Somebody says Compliant of another revision.
    let status = world.replicas.get_mut("b").unwrap().status.as_mut().unwrap();
    status.evaluated_revision = "1.0.0".to_owned();
    world.settle();
    assert_eq!(world.states()[1], "b Progressing enforce");
    // Not all templates were evaluated.
    world.report("b", "Compliant");
    let template = world.root.spec.policy_templates[0].clone();
    world
        .replicas
        .get_mut("b")
        .unwrap()
        .spec
        .policy_templates
        .push(template.clone());
    world.root.spec.policy_templates.push(template);
    world.settle();
    assert_ne!(world.states()[1], "b Succeeded enforce");
}

#[test]
fn groups_take_turns_and_a_failure_stops_them() {
    let mut world = World::new(root(per_group(json!({})), "enforce"), &TWO_GROUPS);
    world.settle();
    world.report("a", "NonCompliant");
    let plan = world.settle();
    assert!(plan.breach);
    assert_eq!(
        world.states(),
        ["a Failed enforce", "b ToApply inform", "c ToApply inform"]
    );
    assert_eq!(world.overall(), "Failed");
    // It recovers, and the rollout goes on.
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(
        world.states(),
        [
            "a Succeeded enforce",
            "b Progressing enforce",
            "c Progressing enforce"
        ]
    );
    assert_eq!(world.overall(), "Progressing");
}

#[test]
fn failures_within_the_tolerance_hold_nobody_up() {
    for allowed in [json!(1), json!("50%")] {
        let strategy = per_group(json!({"maxFailures": allowed}));
        let mut world = World::new(root(strategy, "enforce"), &[("", &["a", "b"]), ("", &["c"])]);
        world.settle();
        world.report("a", "NonCompliant");
        world.report("b", "Compliant");
        world.settle();
        assert_eq!(world.states()[2], "c Progressing enforce", "{allowed}");
        world.report("c", "Compliant");
        world.settle();
        assert_eq!(world.overall(), "Failed");
    }
}

#[test]
fn a_late_report_turns_a_timeout_into_success() {
    let strategy = per_group(json!({"progressDeadline": "10m"}));
    let mut world = World::new(root(strategy, "enforce"), &TWO_GROUPS);
    let plan = world.settle();
    assert_eq!(plan.recheck_at, Some(world.now + SignedDuration::from_mins(10)));
    world.advance(600);
    world.settle();
    assert_eq!(world.states()[0], "a TimeOut enforce");
    assert_eq!(world.overall(), "Failed");
    let since = world.since("a");
    // It is not compliant: its time is not given back.
    world.advance(60);
    world.report("a", "NonCompliant");
    world.settle();
    assert_eq!(world.states()[0], "a Failed enforce");
    world.advance(600);
    world.settle();
    world.advance(600);
    world.settle();
    assert_eq!(world.states()[0], "a TimeOut enforce");
    assert!(world.since("a") > since);
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.states()[0], "a Succeeded enforce");
    assert_eq!(world.states()[1], "b Progressing enforce");
}

#[test]
fn the_time_of_a_lost_cluster_does_not_run() {
    let strategy = per_group(json!({"progressDeadline": "10m"}));
    let mut world = World::new(root(strategy, "enforce"), &TWO_GROUPS);
    world.lost.push("a".to_owned());
    world.settle();
    world.advance(3600);
    world.settle();
    assert_eq!(world.states()[0], "a Progressing enforce");
}

#[test]
fn success_soaks() {
    let strategy = per_group(json!({"minSuccessTime": "5m"}));
    let mut world = World::new(root(strategy, "enforce"), &TWO_GROUPS);
    world.settle();
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.states()[1], "b ToApply inform");
    world.advance(299);
    world.settle();
    assert_eq!(world.states()[1], "b ToApply inform");
    world.advance(1);
    world.settle();
    assert_eq!(world.states()[1], "b Progressing enforce");
    // A set of soaking clusters is not done.
    world.report("b", "Compliant");
    world.report("c", "Compliant");
    world.settle();
    assert_eq!(world.overall(), "Progressing");
    world.advance(300);
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
}

#[test]
fn an_edit_begins_again_and_times_restart() {
    let mut world = World::new(root(per_group(json!({})), "enforce"), &TWO_GROUPS);
    world.settle();
    world.report("a", "Compliant");
    world.settle();
    world.advance(60);
    world.edit(2);
    let (plan, _) = world.pass(None);
    assert!(plan.again);
    for cluster in ["a", "b", "c"] {
        assert_eq!(world.version(cluster), 2);
        assert_eq!(world.replicas[cluster].spec.remediation_action, "inform");
    }
    world.settle();
    assert_eq!(
        world.states(),
        ["a Progressing enforce", "b ToApply inform", "c ToApply inform"]
    );
    assert_eq!(world.since("a"), world.now);
    assert_eq!(world.since("b"), world.now);
}

#[test]
fn edits_of_strategy_and_metadata_restart_nothing() {
    let mut world = World::new(root(per_group(json!({})), "enforce"), &TWO_GROUPS);
    world.settle();
    let marks = |world: &World| -> Vec<String> {
        let replicas = world.replicas.values();
        replicas
            .map(|replica| replica.metadata.annotations[REVISION].clone())
            .collect()
    };
    let before = marks(&world);
    world.advance(60);
    world.root.spec.rollout_strategy =
        serde_json::from_value(json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}})).unwrap();
    world
        .root
        .metadata
        .labels
        .insert("team".to_owned(), "blue".to_owned());
    world.settle();
    assert_eq!(marks(&world), before);
    assert_eq!(world.record.revision, 1);
    for replica in world.replicas.values() {
        assert_eq!(replica.metadata.label("team"), Some("blue"));
        assert_eq!(replica.spec.rollout_strategy, None);
    }
}

#[test]
fn waiting_clusters_may_keep_what_they_enforce() {
    let mut root = root(per_group(json!({})), "enforce");
    let annotations = &mut root.metadata.annotations;
    annotations.insert(
        lockgate_api::ocm::policy::WHILE_WAITING.to_owned(),
        "enforce-previous".to_owned(),
    );
    let mut world = World::new(root, &TWO_GROUPS);
    world.settle();
    for cluster in ["a", "b", "c"] {
        world.report(cluster, "Compliant");
        world.settle();
    }
    for cluster in ["b", "c"] {
        world.report(cluster, "Compliant");
    }
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
    world.advance(60);
    world.edit(2);
    world.settle();
    assert_eq!(
        world.states(),
        ["a Progressing enforce", "b ToApply enforce", "c ToApply enforce"]
    );
    assert_eq!(
        [world.version("a"), world.version("b"), world.version("c")],
        [2, 1, 1]
    );
    assert_eq!(world.since("b"), world.now);
    // Each revision is waited for anew, and another look is no other revision.
    world.advance(60);
    world.edit(3);
    world.settle();
    let begun = world.now;
    assert_eq!(world.since("b"), begun);
    world.advance(60);
    world.settle();
    assert_eq!(world.since("b"), begun);
}

#[test]
fn who_waited_informs_for_good_once_the_policy_does() {
    let mut world = World::new(root(per_group(json!({})), "enforce"), &TWO_GROUPS);
    world.settle();
    world.report("b", "NonCompliant");
    world.root.spec.remediation_action = "inform".to_owned();
    world.settle();
    for cluster in ["a", "b", "c"] {
        // Nobody waits for a turn, so that nothing of it is enforced some time.
        let mark = revision::Mark::of(&world.replicas[cluster]).unwrap();
        assert_eq!(mark.revision, 2, "{cluster}");
    }
    // What was said before the release does not count.
    assert_eq!(
        world.states(),
        [
            "a Progressing inform",
            "b Progressing inform",
            "c Progressing inform"
        ]
    );
}

#[test]
fn newcomers_join_or_have_a_rollout_of_their_own() {
    let mut world = World::new(
        root(json!({"type": "Progressive"}), "enforce"),
        &[("", &["a", "c"])],
    );
    world.settle();
    world.selection.groups = groups(&[("", &["a", "b", "c"])]);
    world.settle();
    assert_eq!(
        world.states(),
        ["a Progressing enforce", "b ToApply inform", "c ToApply inform"]
    );
    for cluster in ["a", "b", "c"] {
        world.report(cluster, "Compliant");
        world.settle();
    }
    assert_eq!(world.overall(), "Succeeded");
    // After it succeeded only the newcomers move.
    let before: Vec<Policy> = world.replicas.values().cloned().collect();
    world.selection.groups = groups(&[("", &["a", "aa", "ab", "b", "c"])]);
    world.settle();
    assert_eq!(world.overall(), "Progressing");
    assert_eq!(
        world.states()[1..3],
        ["aa Progressing enforce", "ab ToApply inform"]
    );
    world.report("aa", "Compliant");
    world.settle();
    world.report("ab", "Compliant");
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
    for replica in before {
        assert_eq!(world.replicas[&replica.metadata.namespace], replica);
    }
}

#[test]
fn drift_after_success_is_told_and_restarts_nothing() {
    let mut world = World::new(root(json!({"type": "Progressive"}), "enforce"), &[("", &["a"])]);
    world.settle();
    world.report("a", "Compliant");
    world.settle();
    let mark = world.replicas["a"].metadata.annotations[REVISION].clone();
    world.report("a", "NonCompliant");
    world.settle();
    assert_eq!(world.states(), ["a Failed enforce"]);
    assert_eq!(world.replicas["a"].metadata.annotations[REVISION], mark);
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
}

#[test]
fn pending_is_under_way() {
    let strategy = per_group(json!({"progressDeadline": "1m"}));
    let mut world = World::new(root(strategy, "enforce"), &TWO_GROUPS);
    world.settle();
    world.report("a", "Pending");
    world.settle();
    assert_eq!(world.states()[0], "a Progressing enforce");
    world.advance(60);
    world.settle();
    assert_eq!(world.states()[0], "a TimeOut enforce");
}

#[test]
fn mandatory_groups_go_first_as_a_whole() {
    let strategy = json!({"type": "Progressive", "progressive": {
        "mandatoryDecisionGroups": [{"groupName": "canary"}], "maxFailures": 2}});
    let mut world = World::new(
        root(strategy, "enforce"),
        &[("", &["a"]), ("canary", &["b", "c"])],
    );
    world.settle();
    assert_eq!(
        world.states(),
        [
            "a ToApply inform",
            "b Progressing enforce",
            "c Progressing enforce"
        ]
    );
    world.report("b", "NonCompliant");
    world.report("c", "Compliant");
    world.settle();
    assert_eq!(world.states()[0], "a ToApply inform");
    assert_eq!(world.overall(), "Failed");
}

#[test]
fn commands_are_obeyed() {
    let mut world = World::new(
        root(per_group(json!({"minSuccessTime": "1h"})), "enforce"),
        &TWO_GROUPS,
    );
    world.settle();
    world.command(Verb::Pause);
    world.report("a", "Compliant");
    world.advance(7200);
    let plan = world.settle();
    assert_eq!(plan.view.phase, "Paused");
    assert_eq!(world.states()[1], "b ToApply inform");
    // While it is paused an edit moves nothing.
    world.edit(2);
    world.settle();
    assert_eq!([world.version("a"), world.version("b")], [1, 1]);
    world.command(Verb::Resume);
    assert_eq!([world.version("a"), world.version("b")], [2, 2]);
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.states()[1], "b ToApply inform");
    world.advance(1);
    world.command(Verb::Promote);
    assert_eq!(world.states()[1], "b Progressing enforce");
    world.report("b", "NonCompliant");
    world.settle();
    let mark = world.replicas["b"].metadata.annotations[REVISION].clone();
    // The last command counts: nothing soaks any more that could keep it waiting.
    world.advance(3600);
    world.command(Verb::Retry);
    assert_ne!(world.replicas["b"].metadata.annotations[REVISION], mark);
    assert_eq!(world.states()[1], "b Progressing enforce");
    let before = world.replicas.clone();
    let plan = world.command(Verb::Abort);
    assert_eq!(plan.view.phase, "Aborted");
    assert_eq!(world.overall(), "Failed");
    for (cluster, replica) in before {
        assert_eq!(world.replicas[&cluster].spec, replica.spec);
    }
    // Until the policy changes.
    world.edit(3);
    world.settle();
    assert_eq!(world.version("c"), 3);
    assert_eq!(world.states()[0], "a Progressing enforce");
}

#[test]
fn what_was_given_up_goes_back_to_the_last_good_revision() {
    let mut world = World::new(root(per_group(json!({})), "enforce"), &TWO_GROUPS);
    world.settle();
    for cluster in ["a", "b", "c"] {
        world.report(cluster, "Compliant");
        world.settle();
    }
    for cluster in ["b", "c"] {
        world.report(cluster, "Compliant");
    }
    world.settle();
    assert!(world.record.is_settled());
    let good = world.root.clone();
    world.edit(2);
    world.settle();
    assert_eq!(world.version("a"), 2);
    world.requests += 1;
    let (plan, _) = world.pass(Some(Request {
        id: "1".to_owned(),
        verb: Verb::Abort,
        to: None,
        reason: "because".to_owned(),
        by: "admin".to_owned(),
    }));
    // It is looked at again with what is sent from now on.
    assert!(plan.again && plan.writes.is_empty());
    assert_eq!(
        world.record.back.as_ref().unwrap().to.as_ref().unwrap().revision,
        1
    );
    world.sent = Some(good);
    let plan = world.settle();
    assert_eq!(plan.view.phase, "RollingBack");
    assert_eq!(
        [world.version("a"), world.version("b"), world.version("c")],
        [1, 1, 1]
    );
    // The last go first.
    assert_eq!(
        world.states(),
        [
            "a ToApply inform",
            "b Progressing enforce",
            "c Progressing enforce"
        ]
    );
    for cluster in ["b", "c"] {
        world.report(cluster, "Compliant");
    }
    world.settle();
    world.report("a", "Compliant");
    let plan = world.settle();
    assert_eq!(plan.view.phase, "RolledBack");
    // Until the policy changes.
    world.edit(3);
    world.sent = None;
    world.settle();
    assert_eq!([world.version("a"), world.version("b")], [3, 3]);
}

#[test]
fn a_record_that_is_lost_moves_nothing() {
    let mut world = World::new(root(per_group(json!({})), "enforce"), &TWO_GROUPS);
    world.settle();
    world.report("a", "Compliant");
    world.settle();
    let before = world.replicas.clone();
    world.record = RolloutRecord::default();
    world.settle();
    assert_eq!(world.replicas, before);
}

#[test]
fn what_was_withdrawn_comes_back_in_order() {
    let mut world = World::new(
        root(json!({"type": "Progressive"}), "enforce"),
        &[("", &["a", "b"])],
    );
    world.settle();
    for cluster in ["a", "b"] {
        world.report(cluster, "Compliant");
        world.settle();
    }
    assert_eq!(world.overall(), "Succeeded");
    // It was disabled, and is enabled again.
    world.replicas.clear();
    world.settle();
    assert_eq!(world.states(), ["a Progressing enforce", "b ToApply inform"]);
    world.report("a", "Compliant");
    world.settle();
    assert_eq!(world.states(), ["a Succeeded enforce", "b Progressing enforce"]);
}
