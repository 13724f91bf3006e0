//! Lazy activation: the cases of seed 000, the vectors of its specification, and the skew between claim and binding.

use super::world::{Kind, Scope, World, rule};
use crate::gates::Gates;

fn each(story: impl Fn(World)) {
    World::each(Gates::default(), story);
}

fn each_preempting(story: impl Fn(World)) {
    let gates = Gates {
        preemption: true,
        ..Gates::default()
    };
    World::each(gates, story);
}

#[test]
fn simple_1_policy_before_template() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.delete("p").then("-/- m1");
    });
}

#[test]
fn simple_2_policy_after_template() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.touch("1").then("p/p m1");
    });
}

#[test]
fn simple_3_lazy_to_immediate() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2")).then("p/p m2");
    });
}

#[test]
fn simple_4_immediate_to_lazy() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.touch("1").then("p/p m2");
    });
}

#[test]
fn combined_1_policy_deleted() {
    each(|mut w| {
        w.apply(rule("p1", "m1").lazy()).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").lazy()).then("p1/p1 m1");
        w.delete("p1").then("p2/p1 m1");
        w.touch("1").then("p2/p2 m2");
    });
}

#[test]
fn combined_2_policy_no_longer_matches() {
    each(|mut w| {
        w.apply(rule("p1", "m1").lazy()).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").lazy()).then("p1/p1 m1");
        w.apply(rule("p1", "m1").lazy().elsewhere()).then("p2/p1 m1");
        w.touch("1").then("p2/p2 m2");
    });
}

#[test]
fn combined_1_and_2_also_after_an_immediate_policy() {
    each(|mut w| {
        w.apply(rule("p1", "m1")).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").lazy()).then("p1/p1 m1");
        w.delete("p1").then("p2/p1 m1");
        w.scale(3).then("p2/p2 m2");
    });
}

#[test]
fn combined_3_an_immediate_policy_preempts() {
    each_preempting(|mut w| {
        w.apply(rule("p1", "m1").lazy().cpp()).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").pp().priority(2).always())
            .then("p2/p2 m2");
    });
}

#[test]
fn combined_4_a_lazy_policy_preempts() {
    each_preempting(|mut w| {
        w.apply(rule("p1", "m1").lazy()).create().then("p1/p1 m1");
        w.apply(rule("p2", "m2").lazy().priority(2).always())
            .then("p2/p1 m1");
        w.touch("1").then("p2/p2 m2");
    });
}

#[test]
fn combined_6_dependencies_follow_at_activation() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.touch("1").then("p/p m1");
        assert!(!w.binding.as_ref().unwrap().spec.propagate_deps);
        w.apply(rule("p", "m2").lazy().with("propagateDeps", true.into()))
            .then("p/p m1");
        assert!(!w.binding.as_ref().unwrap().spec.propagate_deps);
        w.touch("2").then("p/p m2");
        assert!(w.binding.as_ref().unwrap().spec.propagate_deps);
    });
}

#[test]
fn every_propagation_field_waits() {
    let edits = [
        ("conflictResolution", serde_json::json!("Overwrite")),
        ("propagateDeps", serde_json::json!(true)),
        ("preserveResourcesOnDeletion", serde_json::json!(true)),
        ("schedulerName", serde_json::json!("other")),
        (
            "failover",
            serde_json::json!({ "cluster": { "purgeMode": "Gracefully" } }),
        ),
    ];
    for (field, value) in edits {
        each(|mut w| {
            w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
            let activated = w.binding.clone();
            w.apply(rule("p", "m1").lazy().with(field, value.clone()))
                .then("p/p m1");
            assert_eq!(w.binding, activated, "{field}");
            w.touch("1").then("p/p m1");
            assert_ne!(w.binding, activated, "{field}");
        });
    }
}

#[test]
fn what_is_no_propagation_field_moves_nothing_and_leaves_nothing_pending() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        let activated = w.binding.clone();
        w.apply(rule("p", "m1").lazy().priority(7).always())
            .then("p/p m1");
        assert_eq!(w.binding, activated);
    });
}

#[test]
fn a_change_of_the_template_activates_all_that_was_pending() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.apply(rule("p", "m3").lazy()).then("p/p m1");
        w.scale(5).then("p/p m3");
    });
}

#[test]
fn activation_can_be_asked_for() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.ask("now").then("p/p m2");
        // A request is answered once.
        w.apply(rule("p", "m3").lazy()).then("p/p m2");
        w.ask("again").then("p/p m3");
    });
}

#[test]
fn a_first_activation_can_be_asked_for() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.ask("now").then("p/p m1");
    });
    // Asked for before anybody could answer.
    each(|mut w| {
        w.create().ask("now").then("-");
        w.apply(rule("p", "m1").lazy()).then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
    });
}

#[test]
fn keys_of_the_system_activate_nothing() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.edit(|t| t["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] = "overwrite".into());
        w.then("p/p m1");
        w.edit(|t| t["metadata"]["labels"]["foo.karmada.io/bar"] = "x".into())
            .then("p/p m1");
        w.edit(|t| t["status"] = serde_json::json!({ "ready": 1 }))
            .then("p/p m1");
        w.edit(|t| t["metadata"]["labels"]["karmada.io/foo"] = "x".into())
            .then("p/p m2");
    });
}

#[test]
fn a_default_that_is_added_activates_nothing() {
    for kind in [Kind::Deployment, Kind::Widget] {
        let mut w = World::new(kind, Scope::Namespaced, Gates::default());
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.add_default("first").then("p/p m1");
        // Also after our own claim has moved the generation.
        w.apply(rule("q", "m3").lazy()).delete("p").then("q/p m1");
        w.add_default("second").then("q/p m1");
        w.delete("q").then("-/- m1");
        w.add_default("third").then("-/- m1");
        w.apply(rule("r", "m4").lazy()).then("r/- m1");
        w.add_default("fourth").then("r/- m1");
        w.scale(9).then("r/r m4");
    }
}

#[test]
fn a_default_that_is_added_activates_nothing_before_the_first_activation() {
    for kind in [Kind::Deployment, Kind::Widget] {
        let mut w = World::new(kind, Scope::Namespaced, Gates::default());
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.add_default("first").then("p");
        w.add_default("second").then("p");
        w.scale(9).then("p/p m1");
    }
}

#[test]
fn a_re_created_template_goes_at_once() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.create().then("p/p m2");
    });
}

#[test]
fn selectors_that_are_widened_do_not_send_what_was_there() {
    each(|mut w| {
        w.apply(rule("p", "m1").lazy().elsewhere()).create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.scale(4).then("p/p m1");
    });
    // A template that comes after the edit goes at once.
    each(|mut w| {
        w.apply(rule("p", "m1").lazy().elsewhere());
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
    });
}

#[test]
fn a_template_that_lost_its_lazy_policy_starts_anew() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.delete("p").then("-");
        // What the user did while nobody was there is older than the next policy.
        w.scale(4).then("-");
        w.apply(rule("q", "m2").lazy()).then("q");
        w.scale(5).then("q/q m2");
    });
}

#[test]
fn a_frozen_binding_stays_frozen_until_its_new_policy_is_activated() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.delete("p").then("-/- m1");
        w.apply(rule("q", "m2").lazy()).then("q/- m1");
        w.touch("1").then("q/q m2");
    });
    // A policy that says what was activated has nothing to wait for.
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.delete("p").then("-/- m1");
        w.apply(rule("q", "m1").lazy()).then("q/q m1");
    });
}

#[test]
fn what_the_user_changed_meanwhile_counts() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.delete("p").then("-/- m1");
        w.scale(5).then("-/- m1 changed");
        w.apply(rule("q", "m2").lazy()).then("q/q m2");
    });
}

#[test]
fn skew_claimed_without_a_binding() {
    // Switched to immediate: the policy reaches the template all the same.
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.apply(rule("p", "m2").lazy()).then("p");
        w.apply(rule("p", "m2")).then("p/p m2");
    });
    // Selectors changed: it is released.
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.apply(rule("p", "m1").lazy().elsewhere()).then("-");
    });
    // Another immediate policy takes over what its policy leaves.
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.apply(rule("q", "m2")).then("p");
        w.delete("p").then("q/q m2");
    });
}

#[test]
fn skew_claimed_by_one_and_activated_by_another() {
    let start = |w: &mut World| {
        w.apply(rule("a", "m1")).create().then("a/a m1");
        w.apply(rule("b", "m2").lazy().priority(2).always())
            .then("b/a m1");
    };
    // Editing the policy that was activated does not activate its successor, nor itself.
    each_preempting(|mut w| {
        start(&mut w);
        w.apply(rule("a", "m3")).then("b/a m1");
    });
    // Taking the template from the selectors of the one that was activated does not touch the other's claim.
    each_preempting(|mut w| {
        start(&mut w);
        w.apply(rule("a", "m1").elsewhere()).then("b/a m1");
    });
    // The successor becomes immediate.
    each_preempting(|mut w| {
        start(&mut w);
        w.apply(rule("b", "m2").priority(2).always()).then("b/b m2");
    });
    // The one that was activated is deleted, then the other too: nothing is left of either.
    each_preempting(|mut w| {
        start(&mut w);
        w.delete("a").then("b/a m1");
        w.delete("b").then("-/- m1");
    });
    // The successor goes: the other takes the template back, and nothing moves.
    each_preempting(|mut w| {
        start(&mut w);
        w.delete("b").then("a/a m1");
    });
}
