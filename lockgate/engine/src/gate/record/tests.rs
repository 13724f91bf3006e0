use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// A dependency whose change began at second 10, after one that was everywhere.
fn changing() -> RolloutRecord {
    let mut record = RolloutRecord::default();
    assert!(record.begin("old", true));
    assert!(record.begin("new", false));
    record.begun = Some(at(10));
    record
}

fn given_up(when: i64) -> GivenUp {
    GivenUp {
        at: Some(at(when)),
        why: "web was given up: no".to_owned(),
    }
}

#[test]
fn what_changed_together_goes_back_together_and_forth_again() {
    let mut record = changing();
    assert!(!record.turn_with("intent", None, at(20)));
    assert!(record.turn_with("intent", Some(&given_up(20)), at(21)));
    let back = record.back("intent").unwrap();
    assert_eq!(back.to.as_ref().map(|to| to.digest.as_str()), Some("old"));
    assert!(back.with_referrer);
    assert_eq!(back.why, "web was given up: no");
    // Told once.
    assert!(!record.turn_with("intent", Some(&given_up(20)), at(22)));
    assert!(record.turn_with("intent", None, at(30)));
    assert_eq!(record.back, None);
}

#[test]
fn what_changed_alone_stays() {
    // After the other was given up.
    let mut record = changing();
    assert!(!record.turn_with("intent", Some(&given_up(5)), at(20)));
    // And was everywhere before.
    let mut record = changing();
    record.good = Some(record.current());
    assert!(!record.turn_with("intent", Some(&given_up(20)), at(20)));
    // A way back of its own is not taken back by others.
    let mut record = changing();
    record.turn_back("intent", "why", at(12));
    assert!(!record.turn_with("intent", None, at(20)));
    assert!(record.back.is_some());
}

#[test]
fn those_who_are_needed_are_told_of_a_way_back_that_nobody_chose() {
    let mut record = changing();
    assert_eq!(record.given_up("web"), None);
    record.turn_back("intent", "no", at(12));
    assert_eq!(
        record.given_up("web"),
        Some(GivenUp {
            at: Some(at(12)),
            why: "web was given up: no".to_owned()
        })
    );
    if let Some(back) = &mut record.back {
        back.forward = true;
    }
    assert_eq!(record.given_up("web"), None);
}
