//! Who owns a template.

use super::world::{World, rule};
use crate::claim::Because;
use crate::claim::{Act, Claim};
use crate::gates::Gates;

fn each(story: impl Fn(World)) {
    World::each(Gates::default(), story);
}

#[test]
fn an_unclaimed_template_goes_to_the_first_in_match_order() {
    let table = [
        ("priority", rule("b", "m2").priority(1).all(), rule("a", "m1")),
        ("closeness", rule("b", "m2"), rule("a", "m1").app("a")),
        (
            "closeness of labels",
            rule("b", "m2").app("a"),
            rule("a", "m1").all(),
        ),
        ("name", rule("a", "m2"), rule("b", "m1")),
        (
            "scope",
            rule("b", "m2").pp().priority(-5).all(),
            rule("a", "m1").cpp().priority(100),
        ),
    ];
    for (name, first, second) in table {
        each(|mut w| {
            w.apply(second.clone()).apply(first.clone()).create().settle();
            assert_eq!(w.clusters(), ["m2"], "{name}");
        });
    }
}

#[test]
fn it_stays_with_its_holder_although_a_better_one_comes() {
    each(|mut w| {
        w.apply(rule("p", "m1").all().cpp()).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(9)).then("p/p m1");
        w.apply(rule("r", "m3").pp()).then("p/p m1");
        // Also when its holder acts.
        w.apply(rule("p", "m4").all().cpp()).then("p/p m4");
        w.scale(4).then("p/p m4");
    });
}

#[test]
fn what_does_not_preempt_without_the_gate() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(9).always()).then("p/p m1");
    });
}

#[test]
fn a_holder_that_no_longer_matches_is_followed_by_the_next() {
    each(|mut w| {
        w.apply(rule("p", "m1"))
            .apply(rule("q", "m2").all())
            .create()
            .then("p/p m1");
        w.apply(rule("p", "m1").elsewhere()).then("q/q m2");
        w.apply(rule("q", "m2").elsewhere()).then("-/- m2");
        w.apply(rule("q", "m2").all()).then("q/q m2");
    });
}

#[test]
fn a_holder_that_is_deleted_is_followed_by_the_next() {
    each(|mut w| {
        w.apply(rule("p", "m1"))
            .apply(rule("q", "m2").all())
            .create()
            .then("p/p m1");
        w.delete_slowly("p").then("q/q m2");
        w.delete("p").then("q/q m2");
        w.delete_slowly("q").then("-/- m2");
    });
}

#[test]
fn a_policy_of_the_same_name_that_says_something_else_is_another_one() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        let before = Claim::on_template(w.template.as_ref().unwrap());
        // Better in match order: it would not get the template if the claim still counted.
        w.delete("p")
            .apply(rule("p", "m3"))
            .apply(rule("q", "m2").priority(1))
            .then("q/q m2");
        w.delete("q").then("p/p m3");
        assert_ne!(Claim::on_template(w.template.as_ref().unwrap()), before);
    });
}

#[test]
fn a_policy_that_is_restored_moves_nothing() {
    let better = || rule("q", "m2").priority(1);
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        let before = Claim::on_template(w.template.as_ref().unwrap());
        w.delete("p")
            .apply(rule("p", "m1"))
            .apply(better())
            .then("p/p m1");
        let claim = Claim::on_template(w.template.as_ref().unwrap());
        assert_ne!(claim, before, "the claim names the policy as it is now");
        assert_eq!(Claim::on_binding(&w.binding.as_ref().unwrap().metadata), claim);
        w.apply(rule("p", "m4")).then("p/p m4");
    });
    // What waits goes on waiting.
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create().settle();
        w.scale(4).settle();
        assert_eq!(w.clusters(), ["m1"]);
        w.apply(rule("p", "m3").lazy()).settle();
        w.delete("p")
            .apply(rule("p", "m3").lazy())
            .apply(better())
            .settle();
        assert_eq!(w.clusters(), ["m1"]);
        w.scale(5).then("p/p m3");
    });
}

#[test]
fn another_policy_that_says_the_same_takes_over_the_binding_too() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        let spec = w.binding.as_ref().unwrap().spec.clone();
        w.apply(rule("q", "m1").lazy()).delete("p").then("q/q m1");
        assert_eq!(w.binding.as_ref().unwrap().spec, spec);
    });
}

#[test]
fn a_stripped_claim_is_restored_from_the_binding() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(5)).then("p/p m1");
        w.strip().then("p/p m1");
    });
    // Its policy is gone meanwhile.
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2")).delete("p").strip().then("q/q m2");
    });
}

#[test]
fn half_a_claim_is_made_whole() {
    each(|mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.edit(|template| {
            let labels = template["metadata"]["labels"].as_object_mut().unwrap();
            labels.retain(|key, _| !key.contains(".karmada.io"));
        });
        w.then("p");
        w.scale(4).then("p/p m1");
    });
}

#[test]
fn a_relabelled_template_is_matched_again_at_once() {
    let relabel = |w: &mut World, app: &str| {
        w.edit(|template| template["metadata"]["labels"]["app"] = app.into());
    };
    each(|mut w| {
        w.apply(rule("p", "m1").app("a"))
            .apply(rule("q", "m2").app("b").lazy());
        w.create().then("p/p m1");
        relabel(&mut w, "b");
        w.then("q/q m2");
        // Nobody matches: it waits, and what was sent stays.
        relabel(&mut w, "c");
        w.then("-/- m2 changed");
        w.scale(7).then("-/- m2 changed");
        relabel(&mut w, "a");
        w.then("p/p m1");
    });
}

#[test]
fn without_a_policy_it_waits() {
    each(|mut w| {
        w.create().then("-");
        assert_eq!(w.decide().unwrap().act, Act::Wait);
        w.scale(3).then("-");
        w.apply(rule("p", "m1"));
        assert_eq!(w.decide().unwrap().act, Act::Activate(Because::First));
        w.then("p/p m1");
    });
}

#[test]
fn an_immediate_policy_acts_on_every_change() {
    each(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("p", "m2"));
        assert_eq!(w.decide().unwrap().act, Act::Activate(Because::PolicyChanged));
        w.then("p/p m2");
        w.scale(6);
        assert_eq!(w.decide().unwrap().act, Act::Activate(Because::TemplateChanged));
        w.then("p/p m2");
        w.ask("now");
        assert_eq!(w.decide().unwrap().act, Act::Activate(Because::Asked));
        w.then("p/p m2");
        // A priority is no propagation field.
        w.apply(rule("p", "m2").priority(8));
        assert_eq!(w.decide().unwrap().act, Act::Keep { refresh: false });
    });
}
