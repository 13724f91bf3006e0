//! The gate `StaticPolicy`: the cases of seed 001, for both kinds of policies.

use super::world::{World, rule};
use crate::gates::Gates;

fn each(story: impl Fn(World)) {
    let gates = Gates {
        static_policy: true,
        ..Gates::default()
    };
    World::each(gates, story);
}

#[test]
fn general_1_and_test_1_a_waiting_template_goes_when_a_policy_comes() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p1", "m1")).then("p1/p1 m1");
    });
}

#[test]
fn general_2_and_test_2_an_edited_policy_waits() {
    each(|mut w| {
        w.apply(rule("p1", "m1")).create().then("p1/p1 m1");
        w.apply(rule("p1", "m2")).then("p1/p1 m1");
        w.scale(3).then("p1/p1 m2");
    });
}

#[test]
fn general_3_and_test_3_a_better_policy_waits() {
    each(|mut w| {
        w.apply(rule("p1", "m1").priority(1)).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").priority(2)).then("p1/p1 m1");
        w.scale(3).then("p2/p2 m2");
    });
}

#[test]
fn general_4_and_test_4_both_wait() {
    each(|mut w| {
        w.apply(rule("p1", "m1").priority(1)).create().then("p1/p1 m1");
        w.apply(rule("p1", "m3").priority(1)).then("p1/p1 m1");
        w.apply(rule("p2", "m2").priority(2)).then("p1/p1 m1");
        w.scale(3).then("p2/p2 m2");
    });
}

#[test]
fn general_5_the_policy_that_still_matches_wins_at_the_next_change() {
    each(|mut w| {
        w.apply(rule("p1", "m1").priority(2)).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").priority(1)).then("p1/p1 m1");
        w.apply(rule("p1", "m1").priority(2).elsewhere()).then("-/- m1");
        w.scale(3).then("p2/p2 m2");
    });
}

#[test]
fn test_5_an_unmatched_template_loses_its_label_and_nothing_else() {
    each(|mut w| {
        w.apply(rule("p1", "m1").priority(1))
            .apply(rule("p2", "m2").priority(2));
        w.create().then("p2/p2 m2");
        w.apply(rule("p2", "m2").priority(2).elsewhere()).then("-/- m2");
        w.touch("1").then("p1/p1 m1");
    });
}

#[test]
fn corner_1_and_test_6_what_waits_for_a_policy_goes_when_one_comes() {
    each(|mut w| {
        w.apply(rule("p1", "m1")).create().then("p1/p1 m1");
        let replicas = w.replicas();
        w.delete("p1").then("-/- m1");
        w.scale(5).then("-/- m1 changed");
        assert_eq!(w.replicas(), replicas);
        w.apply(rule("p2", "m2")).then("p2/p2 m2");
        assert!(replicas == 0 || w.replicas() == 5);
    });
}

#[test]
fn corner_2_restarts_change_nothing() {
    // Cut off before the binding was there: it is made. Every story also runs with each pass cut off after each write.
    each(|mut w| {
        w.apply(rule("p1", "m1")).create();
        assert_eq!(w.pass(1), 1);
        assert_eq!(w.shown(), "p1");
        w.then("p1/p1 m1");
        w.apply(rule("p1", "m2")).then("p1/p1 m1");
        w.then("p1/p1 m1");
        w.scale(3);
        w.pass(0);
        w.then("p1/p1 m2");
    });
}

#[test]
fn a_policy_that_is_deleted_and_made_again_moves_nothing() {
    each(|mut w| {
        w.apply(rule("p1", "m1")).create().then("p1/p1 m1");
        w.delete("p1").then("-/- m1");
        w.apply(rule("p1", "m2")).then("-/- m1");
        w.scale(3).then("p1/p1 m2");
    });
}

#[test]
fn nobody_preempts() {
    let gates = Gates {
        static_policy: true,
        preemption: true,
        ..Gates::default()
    };
    World::each(gates, |mut w| {
        w.apply(rule("p1", "m1").priority(1)).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").priority(2).always()).then("p1/p1 m1");
        w.touch("1").then("p2/p2 m2");
    });
}

#[test]
fn a_lazy_policy_stays_lazy() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p1", "m1").lazy()).then("p1");
        w.scale(3).then("p1/p1 m1");
        w.apply(rule("p1", "m2").lazy()).then("p1/p1 m1");
    });
    // What was never propagated is still anybody's: the best policy takes it, and acts if it is not Lazy.
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p1", "m1").lazy()).then("p1");
        w.apply(rule("p2", "m2").lazy().priority(1)).then("p2");
        w.apply(rule("p3", "m3").priority(2)).then("p3/p3 m3");
    });
}

#[test]
fn activation_can_be_asked_for() {
    each(|mut w| {
        w.apply(rule("p1", "m1").priority(1)).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").priority(2)).then("p1/p1 m1");
        w.ask("now").then("p2/p2 m2");
    });
}

#[test]
fn a_stripped_claim_is_restored() {
    each(|mut w| {
        w.apply(rule("p1", "m1").priority(1)).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").priority(2)).then("p1/p1 m1");
        w.strip().then("p1/p1 m1");
    });
}
