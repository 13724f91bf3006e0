//! What stays held although something is missing: evidence, a manifest, an earlier command, room for two.

use super::*;

#[test]
fn who_has_failed_has_failed_until_it_is_known_to_be_well() {
    let followed = progressive(json!({"maxConcurrency": 2, "progressDeadline": "1h"}));
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut new = told("new", 2, 100);
    new.failed_since = Some(time(110));
    let mut members = [
        member("a", Some(&new), Seen::Unknown),
        member("b", Some(&old), Seen::Well),
    ];
    let groups = one_group(&members);
    let lost = decided(&record, &followed, &groups, &members, &[], 200);
    assert_eq!((lost.phase, acts(&lost)), (Phase::Failed, vec![THERE, Act::Hold]));
    assert_eq!(lost.steps[0].marks, new.marks(), "and its Work still says so");
    members[0].seen = Seen::Well;
    members[0].reach = Reach::Lost;
    let away = decided(&record, &followed, &groups, &members, &[], 9000);
    assert_eq!((away.phase, acts(&away)), (Phase::Failed, vec![THERE, Act::Hold]));
    assert_eq!(away.steps[0].status, Status::Failed, "its time does not run");
    members[0].reach = Reach::Since(Some(time(300)));
    let well = decided(&record, &followed, &groups, &members, &[], 400);
    assert_eq!(acts(&well), [THERE, GO]);
}

#[test]
fn who_was_well_does_not_run_out_of_time_because_nobody_says_so() {
    let followed =
        progressive(json!({"maxConcurrency": 1, "minSuccessTime": "1h", "progressDeadline": "1m"}));
    let record = record(2, 1);
    let mut new = told("new", 2, 0);
    new.healthy_since = Some(time(5));
    let members = [member("a", Some(&new), Seen::Unknown)];
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 500);
    assert_eq!(
        (run.phase, run.steps[0].status),
        (Phase::Progressing, Status::Progressing)
    );
}

#[test]
fn what_cannot_be_made_has_failed_and_takes_no_place() {
    let strict = progressive(json!({"maxConcurrency": 1}));
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut members = ["a", "b", "c"].map(|name| member(name, Some(&old), Seen::Well));
    members[0].unmade = Some("no such path");
    let groups = one_group(&members);
    let run = decided(&record, &strict, &groups, &members, &[], 0);
    assert_eq!((run.phase, acts(&run)), (Phase::Failed, vec![Act::Hold; 3]));
    assert_eq!(run.steps[0].status, Status::Failed);
    assert_eq!(run.steps[0].reason, "its manifest cannot be made: no such path");
    let lenient = progressive(json!({"maxConcurrency": 1, "maxFailures": 1}));
    let run = decided(&record, &lenient, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [Act::Hold, GO, Act::Hold]);
}

#[test]
fn what_may_not_run_twice_is_lowered_before_others_get_more() {
    let followed = followed(json!({
        "strategy": {"type": "Progressive", "progressive": {"maxConcurrency": 2, "minSuccessTime": "30s"}},
        "moves": "BreakBeforeMake",
    }));
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut members = [
        member("a", Some(&old), Seen::Well),
        member("b", Some(&old), Seen::Well),
    ];
    members[0].kept = Some("new with more");
    members[1].grows = true;
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [GO, Act::Hold]);
    members[0].suspended = true;
    let run = decided(&record, &followed, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [Act::Hold, Act::Hold], "it has not given anything up");
    let mut lower = told("new", 2, 0);
    lower.healthy_since = Some(time(1));
    members[0] = member("a", Some(&lower), Seen::Well);
    let run = decided(&record, &followed, &groups, &members, &[], 20);
    assert_eq!(acts(&run), [THERE, Act::Hold], "it soaks");
    let run = decided(&record, &followed, &groups, &members, &[], 31);
    assert_eq!(acts(&run), [THERE, GO]);
}

#[test]
fn what_was_promoted_and_retried_stays_so() {
    let followed =
        progressive(json!({"maxConcurrency": 1, "minSuccessTime": "1h", "progressDeadline": "1m"}));
    let mut record = record(2, 1);
    let old = told("old", 1, 0);
    let mut new = told("new", 2, 100);
    new.healthy_since = Some(time(101));
    let members = [
        member("a", Some(&new), Seen::Well),
        member("b", Some(&old), Seen::Well),
    ];
    let groups = one_group(&members);
    ask(&mut record, Verb::Promote, 110);
    ask(&mut record, Verb::Pause, 120);
    ask(&mut record, Verb::Resume, 130);
    let run = decided(&record, &followed, &groups, &members, &[], 130);
    assert_eq!(acts(&run), [THERE, GO], "the soak of a is over");
    // Another revision begins with soaks.
    assert!(record.begin("another", false));
    assert_eq!(
        (record.promoted, record.promoted_full, record.retried),
        (None, false, None)
    );
    let mut retried = super::record(2, 1);
    let failed = told("new", 2, 100);
    let members = [member("a", Some(&failed), Seen::Bad)];
    let groups = one_group(&members);
    ask(&mut retried, Verb::Pause, 110);
    ask(&mut retried, Verb::Retry, 120);
    ask(&mut retried, Verb::Resume, 130);
    let run = decided(&retried, &followed, &groups, &members, &[], 130);
    assert_eq!(acts(&run), [GO]);
}

#[test]
fn a_suspended_cluster_soaks_without_a_place() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut new = told("new", 2, 100);
    new.healthy_since = Some(time(101));
    let mut members = [
        member("a", Some(&new), Seen::Well),
        member("b", Some(&old), Seen::Well),
    ];
    members[0].suspended = true;
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 110);
    assert_eq!(acts(&run), [THERE, GO]);
    assert_eq!((run.steps[0].status, run.done()), (Status::Suspended, 0));
    assert_eq!(run.recheck_at, Some(time(131)), "its soak ends all the same");
    let run = decided(&record, &followed, &groups, &members, &[], 131);
    assert_eq!(run.steps[0].status, Status::Succeeded);
}

#[test]
fn who_went_before_all_others_goes_back_after_them() {
    let followed = followed(json!({"strategy": {
        "type": "Progressive",
        "progressive": {"maxConcurrency": 1, "mandatoryDecisionGroups": [{"groupName": "canary"}]},
        "decisionGroups": [{"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"tier": "canary"}}}}],
    }}));
    let mut record = record(3, 1);
    record.back = Some(Back {
        from: 2,
        to: record.good.clone(),
        ..Back::default()
    });
    let newer = told("newer", 2, 0);
    let mut members = ["a", "b", "z"].map(|name| member(name, Some(&newer), Seen::Well));
    let clusters = ["a", "b", "z"].map(|name| Selected {
        labels: (name == "z")
            .then(|| ("tier".to_owned(), "canary".to_owned()))
            .into_iter()
            .collect(),
        ..selected(name)
    });
    let groups = followed.groups(clusters, None).unwrap();
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(acts(&run), [Act::Hold, GO, Act::Hold]);
    let back = told("new", 3, 10);
    members[1] = member("b", Some(&back), Seen::Well);
    let run = decided(&record, &followed, &groups, &members, &[], 11);
    assert_eq!(acts(&run), [GO, THERE, Act::Hold]);
    members[0] = member("a", Some(&back), Seen::Well);
    let run = decided(&record, &followed, &groups, &members, &[], 12);
    assert_eq!(acts(&run), [THERE, THERE, GO]);
}

#[test]
fn an_undo_can_be_given_up_and_a_way_back_cannot() {
    let mut record = record(3, 2);
    record.back = Some(Back {
        from: 2,
        intent: "intent".to_owned(),
        forward: true,
        ..Back::default()
    });
    ask(&mut record, Verb::Abort, 5);
    let back = record.back.clone().unwrap();
    assert_eq!((back.from, back.forward, &back.to), (3, false, &record.good));
    ask(&mut record, Verb::Abort, 6);
    assert_eq!(record.back, Some(back));
    // One that fails leads back, too, if the policy says so.
    let follows = followed(json!({"strategy": {"type": "Progressive"}, "onFailure": "Rollback"}));
    let mut record = super::record(3, 2);
    record.back = Some(Back {
        forward: true,
        to: record.good.clone(),
        ..Back::default()
    });
    let new = told("new", 3, 0);
    let members = [member("a", Some(&new), Seen::Bad)];
    let groups = one_group(&members);
    assert!(decided(&record, &follows, &groups, &members, &[], 1).rolls_back);
    record.back = Some(Back {
        to: record.good.clone(),
        ..Back::default()
    });
    assert!(!decided(&record, &follows, &groups, &members, &[], 1).rolls_back);
}
