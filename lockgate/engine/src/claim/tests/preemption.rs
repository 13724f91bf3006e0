//! Preemption: the truth table, and what a priority that falls lets in.

use super::world::{Kind, Rule, Scope, World, rule};
use crate::claim::Claim;
use crate::gates::Gates;

fn gates() -> Gates {
    Gates {
        preemption: true,
        ..Gates::default()
    }
}

#[test]
fn truth_table() {
    // Preemptor, holder, whether the template is taken.
    let table: [(&str, Rule, Rule, bool); 14] = [
        (
            "higher PP",
            rule("p", "m2").pp().priority(2),
            rule("h", "m1").pp().priority(1),
            true,
        ),
        (
            "equal PP",
            rule("p", "m2").pp().priority(1),
            rule("h", "m1").pp().priority(1),
            false,
        ),
        (
            "lower PP",
            rule("p", "m2").pp().priority(0),
            rule("h", "m1").pp().priority(1),
            false,
        ),
        (
            "PP over CPP",
            rule("p", "m2").pp().priority(-10),
            rule("h", "m1").cpp().priority(1000),
            true,
        ),
        (
            "higher CPP",
            rule("p", "m2").cpp().priority(5),
            rule("h", "m1").cpp().priority(4),
            true,
        ),
        (
            "equal CPP",
            rule("p", "m2").cpp().priority(5),
            rule("h", "m1").cpp().priority(5),
            false,
        ),
        (
            "CPP never over PP",
            rule("p", "m2").cpp().priority(1000),
            rule("h", "m1").pp().priority(-10),
            false,
        ),
        (
            "no priority is 0",
            rule("p", "m2").pp().priority(1),
            rule("h", "m1").pp(),
            true,
        ),
        (
            "neither has one",
            rule("p", "m2").pp(),
            rule("h", "m1").pp(),
            false,
        ),
        (
            "a closer selector is no reason",
            rule("p", "m2").pp(),
            rule("h", "m1").pp().all(),
            false,
        ),
        (
            "by labels",
            rule("p", "m2").pp().priority(2).app("a"),
            rule("h", "m1").pp(),
            false,
        ),
        (
            "a whole kind",
            rule("p", "m2").pp().priority(2).all(),
            rule("h", "m1").pp(),
            false,
        ),
        (
            "another template",
            rule("p", "m2").pp().priority(2).elsewhere(),
            rule("h", "m1").pp(),
            false,
        ),
        (
            "the holder's own setting",
            rule("p", "m2").pp().priority(2),
            rule("h", "m1").pp().always(),
            true,
        ),
    ];
    for (name, preemptor, holder, taken) in table {
        World::each(gates(), |mut w| {
            w.apply(holder.clone()).create().then("h/h m1");
            let before = Claim::on_template(w.template.as_ref().unwrap());
            w.apply(preemptor.clone().always());
            let decision = w.decide().unwrap();
            assert_eq!(decision.preempted, before.filter(|_| taken), "{name}");
            w.settle();
            assert_eq!(w.clusters(), [if taken { "m2" } else { "m1" }], "{name}");
            assert_eq!(w.decide().unwrap().preempted, None, "{name}: told once");
        });
        // `Never` takes nothing that is claimed.
        World::each(gates(), |mut w| {
            w.apply(holder.clone()).create().then("h/h m1");
            w.apply(preemptor.clone()).then("h/h m1");
        });
    }
}

#[test]
fn what_is_unclaimed_is_matched_and_not_preempted() {
    World::each(gates(), |mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").priority(2).always());
        assert_eq!(w.decide().unwrap().preempted, None);
        w.then("p/p m1");
    });
}

#[test]
fn a_holder_that_is_gone_is_followed_by_the_best() {
    World::each(gates(), |mut w| {
        w.apply(rule("h", "m1").priority(9)).create().then("h/h m1");
        w.apply(rule("p", "m2").priority(2).always())
            .apply(rule("q", "m3").priority(3))
            .delete("h");
        assert_eq!(w.decide().unwrap().preempted, None);
        w.then("q/q m3");
    });
}

#[test]
fn the_loser_gets_the_template_back() {
    World::each(gates(), |mut w| {
        w.apply(rule("h", "m1")).create().then("h/h m1");
        w.apply(rule("p", "m2").priority(2).always()).then("p/p m2");
        w.delete("p").then("h/h m1");
    });
}

#[test]
fn the_highest_of_several_wins() {
    World::each(gates(), |mut w| {
        w.apply(rule("h", "m1")).create().then("h/h m1");
        w.apply(rule("p", "m2").priority(2).always());
        w.apply(rule("q", "m3").priority(3).always());
        w.apply(rule("r", "m4").priority(3).always());
        w.then("q/q m3");
    });
}

#[test]
fn a_cluster_policy_must_name_the_namespace() {
    let mut w = World::new(Kind::Widget, Scope::Cluster, gates());
    w.apply(rule("h", "m1")).create().then("h/h m1");
    w.apply(rule("p", "m2").priority(2).always().named_anywhere())
        .then("h/h m1");
}

/// When a priority falls from A to B, those in (B, A] that may preempt get their chance, also when it fell while nobody
/// looked: who takes the template follows from the priorities alone.
#[test]
fn a_priority_that_falls_lets_others_in() {
    // The holder falls from 10 to 4; rivals with `Always`; who holds then.
    let table: [(&[i32], &str); 8] = [
        (&[4], "h"),
        (&[3], "h"),
        (&[5], "r5"),
        (&[9], "r9"),
        (&[10], "r10"),
        (&[4, 5, 9], "r9"),
        (&[4, 5, 9, 10], "r10"),
        (&[], "h"),
    ];
    for (rivals, expected) in table {
        World::each(gates(), |mut w| {
            w.apply(rule("h", "m1").priority(10)).create().then("h/h m1");
            for rival in rivals {
                w.apply(rule(&format!("r{rival}"), "m2").priority(*rival).always())
                    .then("h/h m1");
            }
            w.apply(rule("h", "m1").priority(4)).settle();
            let holder = Claim::on_template(w.template.as_ref().unwrap()).unwrap();
            assert_eq!(holder.name, expected, "{rivals:?}");
        });
    }
}

/// Each rival by itself: a fall from 10 to 4 lets in those of 10, 9 and 5; not that of 4, and that of 11 came before it.
#[test]
fn a_priority_that_falls_lets_in_those_of_the_range() {
    for (rival, before, after) in [
        (4, "h", "h"),
        (5, "h", "r"),
        (9, "h", "r"),
        (10, "h", "r"),
        (11, "r", "r"),
    ] {
        World::each(gates(), |mut w| {
            let holder = |w: &World| Claim::on_template(w.template.as_ref().unwrap()).unwrap().name;
            w.apply(rule("h", "m1").priority(10)).create().then("h/h m1");
            w.apply(rule("r", "m2").priority(rival).always()).settle();
            assert_eq!(holder(&w), before, "{rival}");
            w.apply(rule("h", "m1").priority(4)).settle();
            assert_eq!(holder(&w), after, "{rival}");
        });
    }
}

#[test]
fn a_lazy_preemptor_takes_the_claim_alone() {
    World::each(gates(), |mut w| {
        w.apply(rule("h", "m1")).create().then("h/h m1");
        w.apply(rule("p", "m2").lazy().priority(2).always())
            .then("p/h m1");
        w.apply(rule("q", "m3").priority(3).always()).then("q/q m3");
    });
}
