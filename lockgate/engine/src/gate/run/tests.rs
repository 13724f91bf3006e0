//! One template's rollout, from what is stored.

mod holding;

use lockgate_api::RolloutPolicy;
use serde_json::{Value, json};

use super::*;
use crate::gate::grouping::Selected;
use crate::gate::record::{Good, Refused, Request, Verb};

pub(super) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

pub(super) fn followed(spec: Value) -> Followed {
    let policy: RolloutPolicy = serde_json::from_value(json!({"spec": spec})).unwrap();
    Followed::read(&policy).unwrap()
}

fn progressive(config: Value) -> Followed {
    followed(json!({"strategy": {"type": "Progressive", "progressive": config}}))
}

/// A cluster that was told something at some second.
fn told(digest: &str, revision: i64, at: i64) -> Told {
    Told {
        digest: digest.to_owned(),
        revision,
        released_at: (revision > 0).then(|| time(at)),
        ..Told::default()
    }
}

fn member<'a>(cluster: &'a str, told: Option<&'a Told>, seen: Seen) -> Member<'a> {
    Member {
        cluster,
        wanted: "new",
        kept: None,
        grows: told.is_none(),
        told,
        seen,
        suspended: false,
        resumed: false,
        unsent: false,
        reach: Reach::Since(None),
        due: false,
        unmade: None,
    }
}

fn record(revision: i64, good: i64) -> RolloutRecord {
    RolloutRecord {
        revision,
        digest: "plan".to_owned(),
        good: (good > 0).then(|| Good {
            revision: good,
            digest: "before".to_owned(),
        }),
        ..RolloutRecord::default()
    }
}

/// What is decided about clusters in one group.
fn decided<'a>(
    record: &'a RolloutRecord,
    followed: &'a Followed,
    groups: &'a Groups,
    members: &'a [Member<'a>],
    leaving: &'a [&'a str],
    now: i64,
) -> Run<'a> {
    run(&RunInput {
        record,
        back: record.back.as_ref(),
        followed,
        groups,
        members,
        leaving,
        now: time(now),
    })
}

fn selected(name: &str) -> Selected {
    Selected {
        name: name.to_owned(),
        ..Selected::default()
    }
}

fn one_group(members: &[Member<'_>]) -> Groups {
    Groups::single(members.iter().map(|member| member.cluster.to_owned()))
}

fn acts(run: &Run<'_>) -> Vec<Act> {
    run.steps.iter().map(|step| step.act).collect()
}

const GO: Act = Act::Release(Target::Wanted);
const THERE: Act = Act::Stay(Target::Wanted);

#[test]
fn an_old_success_does_not_count_and_the_soak_restarts() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(2, 1);
    let mut old = told("old", 1, 0);
    old.healthy_since = Some(time(1));
    let mut new = told("new", 2, 100);
    // Both have been well for long; only one of them with the new content, and only since it has that.
    new.healthy_since = Some(time(2));
    let members = [
        member("a", Some(&new), Seen::Well),
        member("b", Some(&old), Seen::Well),
    ];
    let groups = one_group(&members);
    let early = decided(&record, &followed, &groups, &members, &[], 129);
    assert_eq!(acts(&early), [THERE, Act::Hold]);
    assert_eq!(early.steps[0].until, Some(time(130)));
    assert_eq!(early.recheck_at, Some(time(130)));
    let late = decided(&record, &followed, &groups, &members, &[], 130);
    assert_eq!(acts(&late), [THERE, GO]);
    assert_eq!(late.steps[1].marks, Some(released(time(130))));
}

#[test]
fn clusters_under_way_with_an_older_revision_keep_their_places() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(3, 1);
    let (older, oldest) = (told("older", 2, 0), told("oldest", 1, 0));
    let members = [
        member("a", Some(&oldest), Seen::Well),
        member("b", Some(&older), Seen::UnderWay),
    ];
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(acts(&run), [Act::Hold, GO], "{run:#?}");
}

#[test]
fn whoever_was_well_and_is_not_has_failed_and_may_recover() {
    let followed =
        progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s", "progressDeadline": "1m"}));
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut new = told("new", 2, 100);
    new.healthy_since = Some(time(110));
    let members = [
        member("a", Some(&new), Seen::UnderWay),
        member("b", Some(&old), Seen::Well),
    ];
    let groups = one_group(&members);
    let broken = decided(&record, &followed, &groups, &members, &[], 120);
    assert_eq!(broken.steps[0].status, Status::Failed);
    let marks = broken.steps[0].marks.unwrap();
    assert_eq!((marks.healthy_since, marks.failed_since), (None, Some(time(120))));
    assert_eq!(
        (broken.phase, acts(&broken)),
        (Phase::Failed, vec![THERE, Act::Hold])
    );
    // That nobody knows is no failure: a status that was lost costs time and nothing else.
    let unknown = [
        member("a", Some(&new), Seen::Unknown),
        member("b", Some(&old), Seen::Well),
    ];
    let lost = decided(&record, &followed, &groups, &unknown, &[], 120);
    assert_eq!(
        (lost.phase, lost.steps[0].status),
        (Phase::Progressing, Status::Progressing)
    );
    assert_eq!(lost.steps[0].marks, new.marks());
    // It recovers, and soaks from the beginning.
    new.healthy_since = None;
    new.failed_since = Some(time(120));
    let members = [
        member("a", Some(&new), Seen::Well),
        member("b", Some(&old), Seen::Well),
    ];
    let well = decided(&record, &followed, &groups, &members, &[], 140);
    assert_eq!(well.steps[0].until, Some(time(170)));
    assert_eq!(well.phase, Phase::Progressing);
}

#[test]
fn an_unreachable_cluster_is_under_way_and_its_time_does_not_run() {
    let followed = progressive(json!({"maxConcurrency": 1, "progressDeadline": "1m"}));
    let record = record(2, 1);
    let mut new = told("new", 2, 0);
    new.healthy_since = Some(time(5));
    let mut members = [
        member("a", Some(&new), Seen::Well),
        member("b", None, Seen::UnderWay),
    ];
    members[0].reach = Reach::Lost;
    let groups = one_group(&members);
    let lost = decided(&record, &followed, &groups, &members, &[], 500);
    assert_eq!(lost.steps[0].status, Status::Progressing);
    assert_eq!(acts(&lost), [THERE, Act::Hold]);
    // Back again, it has all its time.
    members[0].reach = Reach::Since(Some(time(490)));
    members[0].seen = Seen::UnderWay;
    let slow = told("new", 2, 0);
    members[0].told = Some(&slow);
    let back = decided(&record, &followed, &groups, &members, &[], 500);
    assert_eq!(
        (back.steps[0].status, back.steps[0].until),
        (Status::Progressing, Some(time(550)))
    );
}

#[test]
fn a_suspended_cluster_takes_no_place_and_groups_wait_for_it() {
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut members = ["a", "b", "c"].map(|name| member(name, Some(&old), Seen::Well));
    members[0].suspended = true;
    let one = progressive(json!({"maxConcurrency": 1}));
    let groups = one_group(&members);
    let run = decided(&record, &one, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [Act::Hold, GO, Act::Hold]);
    assert_eq!(run.steps[0].status, Status::Suspended);
    let grouped =
        followed(json!({"strategy": {"type": "ProgressivePerGroup", "clustersPerDecisionGroup": 1}}));
    let groups = grouped.groups(["a", "b", "c"].map(selected), None).unwrap();
    let run = decided(&record, &grouped, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [Act::Hold, Act::Hold, Act::Hold]);
    assert_eq!(run.steps[1].reason, "waits for group 0: a is suspended");
    // Released again, it has all its time.
    let slow = told("new", 2, 0);
    let deadline = progressive(json!({"progressDeadline": "10s"}));
    let mut members = [member("a", Some(&slow), Seen::UnderWay)];
    members[0].resumed = true;
    let groups = one_group(&members);
    let run = decided(&record, &deadline, &groups, &members, &[], 500);
    assert_eq!(run.steps[0].status, Status::Progressing);
    assert_eq!(run.steps[0].marks.unwrap().released_at, Some(time(500)));
}

#[test]
fn what_was_held_back_before_it_was_sent_takes_its_turn() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(2, 1);
    let (unsent, mut well) = (told("new", 2, 0), told("new", 2, 0));
    well.healthy_since = Some(time(5));
    let mut members = [
        member("a", Some(&unsent), Seen::Unknown),
        member("b", Some(&well), Seen::Well),
    ];
    (members[0].unsent, members[0].resumed) = (true, true);
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(acts(&run), [Act::Hold, THERE]);
    assert_eq!(run.steps[0].status, Status::ToApply);
    let run = decided(&record, &followed, &groups, &members, &[], 40);
    assert_eq!(acts(&run), [GO, THERE]);
}

#[test]
fn fewer_replicas_and_removals_come_last() {
    let followed = progressive(json!({"maxConcurrency": 2, "minSuccessTime": "30s"}));
    let record = record(2, 1);
    let old = told("old", 1, 0);
    let mut members = [
        member("a", Some(&old), Seen::Well),
        member("b", None, Seen::UnderWay),
    ];
    members[0].kept = Some("new with more");
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &["z"], 0);
    assert_eq!(acts(&run), [Act::Release(Target::Kept), GO]);
    assert!(!run.removes);
    // Both are well, one of them not for long enough.
    let (mut kept, mut new) = (told("new with more", 2, 0), told("new", 2, 0));
    kept.healthy_since = Some(time(1));
    new.healthy_since = Some(time(5));
    let mut members = [
        member("a", Some(&kept), Seen::Well),
        member("b", Some(&new), Seen::Well),
    ];
    members[0].kept = Some("new with more");
    let run = decided(&record, &followed, &groups, &members, &["z"], 34);
    assert_eq!(acts(&run), [Act::Stay(Target::Kept), THERE]);
    assert!(!run.removes);
    assert_eq!(
        run.message,
        "1 of 2 clusters are done; z kept until every cluster has its copy"
    );
    let run = decided(&record, &followed, &groups, &members, &["z"], 35);
    assert_eq!(acts(&run), [GO, THERE]);
    assert!(run.removes && !run.is_complete());
}

#[test]
fn what_may_not_run_twice_goes_first() {
    let spec = json!({"strategy": {"type": "Progressive"}, "moves": "BreakBeforeMake"});
    let followed = followed(spec);
    let record = record(2, 1);
    let members = [member("a", None, Seen::UnderWay)];
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &["z"], 0);
    assert_eq!((acts(&run), run.removes), (vec![Act::Hold], true));
    assert_eq!(run.steps[0].reason, "waits until the old copies are gone");
    let run = decided(&record, &followed, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [GO]);
}

fn ask(record: &mut RolloutRecord, verb: Verb, now: i64) {
    let request = Request {
        id: format!("{now}"),
        verb,
        to: None,
        reason: "why".to_owned(),
        by: "somebody".to_owned(),
    };
    record.obey(request, "intent", None, time(now));
}

#[test]
fn commands_are_about_what_was_told_before_them() {
    let followed =
        progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s", "progressDeadline": "1m"}));
    let mut record = record(2, 1);
    let old = told("old", 1, 0);
    let mut new = told("new", 2, 100);
    new.healthy_since = Some(time(101));
    let members = [
        member("a", Some(&new), Seen::Well),
        member("b", Some(&old), Seen::Well),
        member("c", Some(&old), Seen::Well),
    ];
    let groups = one_group(&members);
    ask(&mut record, Verb::Pause, 105);
    let run = decided(&record, &followed, &groups, &members, &[], 200);
    assert_eq!(
        (run.phase, acts(&run)),
        (Phase::Paused, vec![THERE, Act::Hold, Act::Hold])
    );
    assert_eq!(
        run.message,
        "1 of 3 clusters are done; paused: pause by somebody: why"
    );
    ask(&mut record, Verb::Promote, 110);
    let run = decided(&record, &followed, &groups, &members, &[], 110);
    assert_eq!(acts(&run), [THERE, GO, Act::Hold], "one step");
    let told_after = run.steps[1].marks.unwrap().released_at.unwrap();
    assert!(told_after > time(110), "later than the command");
    ask(&mut record, Verb::PromoteFull, 111);
    let run = decided(&record, &followed, &groups, &members, &[], 111);
    assert_eq!(acts(&run), [THERE, GO, GO]);

    // What failed starts again, once.
    ask(&mut record, Verb::Retry, 120);
    let mut failed = told("new", 2, 100);
    failed.failed_since = Some(time(101));
    let members = [member("a", Some(&failed), Seen::Bad)];
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 120);
    assert_eq!(acts(&run), [GO]);
    let mut again = told("new", 2, 0);
    again.released_at = run.steps[0].marks.unwrap().released_at;
    let members = [member("a", Some(&again), Seen::Bad)];
    let run = decided(&record, &followed, &groups, &members, &[], 120);
    assert_eq!((run.steps[0].status, acts(&run)), (Status::Failed, vec![THERE]));
}

#[test]
fn a_breach_leads_back_once_in_reverse_order() {
    let spec = json!({"strategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}, "onFailure": "Rollback"});
    let followed = followed(spec);
    let mut record = record(2, 1);
    let mut failed = told("bad", 2, 0);
    failed.failed_since = Some(time(1));
    let well = told("bad", 2, 0);
    let mut members = [
        member("a", Some(&well), Seen::Well),
        member("b", Some(&well), Seen::Well),
        member("c", Some(&failed), Seen::Bad),
    ];
    for member in &mut members {
        member.wanted = "bad";
    }
    let groups = one_group(&members);
    let before = record.clone();
    let run = decided(&before, &followed, &groups, &members, &[], 10);
    assert!(run.rolls_back);
    assert_eq!(run.phase, Phase::RollingBack, "nobody takes it for the end");
    let breach = run.breach.clone();
    record.conclude(&run, "intent", false, time(10));
    assert_eq!(
        record.back("intent").and_then(|back| back.to.clone()),
        record.good
    );
    assert_eq!(record.back("another"), None);
    assert_eq!(record.breach, breach);
    // The next pass sends the last good revision.
    assert!(record.begin("before", false));
    for member in &mut members {
        member.wanted = "good";
    }
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(
        (run.phase, acts(&run)),
        (Phase::RollingBack, vec![Act::Hold, Act::Hold, GO])
    );
    // A way back that fails leads nowhere.
    let mut failed = told("good", record.revision, 10);
    failed.failed_since = Some(time(11));
    members[2].told = Some(&failed);
    let run = decided(&record, &followed, &groups, &members, &[], 20);
    assert_eq!((run.phase, run.rolls_back), (Phase::RollbackFailed, false));
    assert_eq!(acts(&run), [Act::Hold, Act::Hold, THERE]);
}

#[test]
fn with_nothing_to_go_back_to_it_stops() {
    let followed = progressive(json!({}));
    let mut record = record(1, 0);
    let members = [member("a", None, Seen::UnderWay)];
    let groups = one_group(&members);
    ask(&mut record, Verb::Abort, 0);
    let run = decided(&record, &followed, &groups, &members, &[], 0);
    assert_eq!((run.phase, acts(&run)), (Phase::Aborted, vec![Act::Hold]));
    assert_eq!(
        run.message,
        "revision 1 was given up, and no revision has succeeded everywhere before: abort by somebody: why"
    );
}

#[test]
fn what_was_told_before_the_run_has_nothing_before_it() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(2, 1);
    // Never told by a rollout, and told by one that is over; however they are, they have the content.
    let (before, over) = (told("new", 0, 0), told("new", 1, 0));
    let members = [
        member("a", Some(&before), Seen::UnderWay),
        member("b", Some(&over), Seen::Bad),
        member("c", None, Seen::UnderWay),
    ];
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 0);
    assert_eq!(acts(&run), [THERE, THERE, GO]);
    assert_eq!(run.steps[0].marks, None, "nothing is written to it");
}

#[test]
fn without_a_rule_of_health_applied_counts_and_is_said() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(2, 1);
    let mut new = told("new", 2, 0);
    new.healthy_since = Some(time(1));
    let members = [
        member("a", Some(&new), Seen::Applied),
        member("b", None, Seen::Unknown),
    ];
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 30);
    assert_eq!(acts(&run), [THERE, Act::Hold], "it soaks");
    let run = decided(&record, &followed, &groups, &members, &[], 31);
    assert_eq!(acts(&run), [THERE, GO]);
    assert_eq!(run.steps[0].reason, "done; applied, its health is unknown");
    let groups = one_group(&members[..1]);
    let run = decided(&record, &followed, &groups, &members[..1], &[], 31);
    assert_eq!(
        run.message,
        "revision 2 is everywhere; applied, its health is unknown"
    );
}

#[test]
fn a_strategy_that_goes_leaves_nothing_that_holds_back() {
    let mut over = record(2, 2);
    over.digest = "before".to_owned();
    assert!(!over.let_go(), "one that is over says nothing false");
    let mut record = record(3, 2);
    ask(&mut record, Verb::Pause, 5);
    assert!(!record.is_settled());
    record.refused.insert("a".to_owned(), Refused::default());
    assert!(record.let_go() && !record.let_go(), "once");
    assert!(record.is_settled() && record.paused.is_none() && record.refused.is_empty());
    // The same content under a strategy that comes later is a revision of its own.
    assert!(record.begin("plan", true));
    assert_eq!((record.revision, record.good_revision()), (4, 2));
    assert!(!record.is_settled());
}

#[test]
fn a_first_copy_goes_with_what_needs_it() {
    let followed = progressive(json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let record = record(1, 0);
    let soaking = told("new", 1, 0);
    let mut members = [
        member("a", Some(&soaking), Seen::Well),
        member("b", None, Seen::Unknown),
        member("c", None, Seen::Unknown),
    ];
    members[1].due = true;
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(acts(&run), [THERE, GO, Act::Hold]);
    assert_eq!(run.steps[1].reason, "goes now, with what needs it");
    members[1].suspended = true;
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(
        acts(&run),
        [THERE, Act::Hold, Act::Hold],
        "unless it is held back"
    );
}

#[test]
fn who_may_not_run_twice_keeps_its_place_while_it_waits() {
    let spec = json!({
        "strategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1, "progressDeadline": "1m"}},
        "moves": "BreakBeforeMake",
    });
    let followed = followed(spec);
    let record = record(3, 1);
    let (older, old) = (told("older", 2, 0), told("old", 1, 0));
    let mut members = [
        member("a", Some(&older), Seen::UnderWay),
        member("b", Some(&old), Seen::Well),
    ];
    members[0].grows = true;
    let groups = one_group(&members);
    let run = decided(&record, &followed, &groups, &members, &["z"], 10);
    assert_eq!(acts(&run), [Act::Hold, Act::Hold], "a is under way");
    let run = decided(&record, &followed, &groups, &members, &["z"], 60);
    assert_eq!(acts(&run), [Act::Hold, GO], "its time is over");
}

#[test]
fn fewer_replicas_go_in_order_too() {
    let followed = progressive(json!({"maxConcurrency": 1}));
    let record = record(2, 1);
    let mut kept = told("new with more", 2, 0);
    kept.healthy_since = Some(time(1));
    let mut members = ["a", "b", "c"].map(|name| member(name, Some(&kept), Seen::Well));
    for member in &mut members {
        member.kept = Some("new with more");
    }
    let groups = one_group(&members);
    let stay = Act::Stay(Target::Kept);
    let run = decided(&record, &followed, &groups, &members, &[], 10);
    assert_eq!(acts(&run), [GO, stay, stay]);
    let lowered = told("new", 2, 10);
    members[0] = member("a", Some(&lowered), Seen::UnderWay);
    let run = decided(&record, &followed, &groups, &members, &[], 11);
    assert_eq!(acts(&run), [THERE, stay, stay]);
    members[0].seen = Seen::Well;
    members[1].suspended = true;
    let run = decided(&record, &followed, &groups, &members, &[], 12);
    assert_eq!(acts(&run), [THERE, stay, GO], "a suspended one is passed over");
}
