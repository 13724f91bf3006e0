//! Switching gates: what was held stays held, and a policy that changes afterwards acts.

use serde_json::json;

use super::world::{World, rule};
use crate::claim::{Act, HoldReason, Record, Standing, standing};
use crate::gate::is_suspended;
use crate::gates::Gates;

/// Runs a story that begins with StaticPolicy on or off, and preemption.
fn each(static_policy: bool, preemption: bool, story: impl Fn(World)) {
    let gates = Gates {
        static_policy,
        preemption,
        ..Gates::default()
    };
    World::each(gates, story);
}

fn switch(w: &mut World, static_policy: bool) -> &mut World {
    w.gates.static_policy = static_policy;
    w
}

#[track_caller]
fn held_by_the_switch(w: &World) {
    let decision = w.decide().unwrap();
    assert_eq!(
        decision.act,
        Act::Hold {
            why: HoldReason::GateChanged,
            refresh: false
        }
    );
    assert_eq!(decision.waits, Some(HoldReason::GateChanged));
    // It is counted as pending, also where only the binding is looked at.
    let held = Standing::Held(HoldReason::GateChanged);
    assert_eq!(decision.standing(), held);
    let (policy, binding) = (decision.holder.unwrap(), w.binding.as_ref().unwrap());
    assert_eq!(standing(&policy, binding, w.gates), held);
}

#[test]
fn on_moves_nothing() {
    each(false, false, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(5)).then("p/p m1");
        switch(&mut w, true).then("p/p m1");
        w.apply(rule("p", "m3")).then("p/p m1");
        w.scale(3).then("q/q m2");
    });
}

#[test]
fn off_keeps_an_edit_that_was_held() {
    for begins in [true, false] {
        let start = |w: &mut World| {
            w.apply(rule("p", "m1")).create().then("p/p m1");
            switch(w, true).then("p/p m1");
            w.apply(rule("p", "m2")).then("p/p m1");
            switch(w, false).then("p/p m1");
            held_by_the_switch(w);
        };
        each(begins, false, |mut w| {
            start(&mut w);
            w.scale(3).then("p/p m2");
            // It is over: from now on the policy acts.
            w.apply(rule("p", "m3")).then("p/p m3");
        });
        each(begins, false, |mut w| {
            start(&mut w);
            w.apply(rule("p", "m3")).then("p/p m3");
        });
        each(begins, false, |mut w| {
            start(&mut w);
            w.ask("now").then("p/p m2");
        });
        // The policy goes back to what was activated: nothing is held any more.
        each(begins, false, |mut w| {
            start(&mut w);
            w.apply(rule("p", "m1")).then("p/p m1");
            assert_eq!(w.decide().unwrap().waits, None);
        });
        // Another policy takes over: that is no switch.
        each(begins, false, |mut w| {
            start(&mut w);
            w.apply(rule("q", "m3")).then("p/p m1");
            w.delete("p").then("q/q m3");
        });
        // On and off again: still held.
        each(begins, false, |mut w| {
            start(&mut w);
            switch(&mut w, true).then("p/p m1");
            switch(&mut w, false).then("p/p m1");
            held_by_the_switch(&w);
        });
    }
}

#[test]
fn off_keeps_an_edit_that_came_with_the_switch() {
    each(true, false, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("p", "m2"));
        switch(&mut w, false).then("p/p m1");
    });
}

#[test]
fn off_keeps_what_was_frozen() {
    let start = |w: &mut World| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2")).delete("p").then("-/- m1");
        switch(w, false).then("-/- m1");
    };
    each(true, false, |mut w| {
        start(&mut w);
        w.apply(rule("r", "m3").priority(1)).then("r/r m3");
    });
    each(true, false, |mut w| {
        start(&mut w);
        w.apply(rule("q", "m3")).then("q/q m3");
    });
    each(true, false, |mut w| {
        start(&mut w);
        w.touch("1").then("q/q m2");
    });
    // Frozen before the gate was on, and passed by while it was.
    each(false, false, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.delete("p").then("-/- m1");
        switch(&mut w, true).then("-/- m1");
        w.apply(rule("q", "m2")).then("-/- m1");
        switch(&mut w, false).then("-/- m1");
    });
    // What the user changed while nobody matched still goes when a policy comes.
    each(true, false, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.delete("p").scale(5).then("-/- m1 changed");
        switch(&mut w, false).then("-/- m1 changed");
        w.apply(rule("q", "m2")).then("q/q m2");
    });
}

#[test]
fn off_lets_nobody_preempt() {
    let start = |w: &mut World| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(2).always()).then("p/p m1");
        switch(w, false).then("p/p m1");
    };
    each(true, true, |mut w| {
        start(&mut w);
        w.apply(rule("q", "m2").priority(3).always()).then("q/q m2");
    });
    each(true, true, |mut w| {
        start(&mut w);
        w.apply(rule("r", "m3").priority(4).always()).then("r/r m3");
    });
    each(true, true, |mut w| {
        start(&mut w);
        w.scale(3).then("q/q m2");
    });
    // A priority that fell while the gate was on.
    each(false, true, |mut w| {
        w.apply(rule("p", "m1").priority(5)).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(4).always()).then("p/p m1");
        switch(&mut w, true).then("p/p m1");
        w.apply(rule("p", "m1").priority(3)).then("p/p m1");
        switch(&mut w, false).then("p/p m1");
    });
}

#[test]
fn unsent_claims_stay() {
    // On: what a Lazy policy holds is not given to the best.
    each(false, false, |mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.apply(rule("q", "m2").priority(2)).then("p");
        switch(&mut w, true).then("p");
        w.scale(3).then("q/q m2");
    });
    each(false, false, |mut w| {
        w.create().then("-");
        w.apply(rule("p", "m1").lazy()).then("p");
        w.apply(rule("q", "m2").priority(2)).then("p");
        switch(&mut w, true).then("p");
        w.apply(rule("r", "m3").priority(3)).then("r/r m3");
    });
}

#[test]
fn preemption_off_moves_nothing_and_on_gives_everybody_a_chance() {
    each(false, true, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("q", "m2").priority(2).always()).then("q/q m2");
        w.gates.preemption = false;
        w.then("q/q m2");
        w.apply(rule("r", "m3").priority(3).always()).then("q/q m2");
        w.gates.preemption = true;
        w.then("r/r m3");
    });
}

/// Where the gate was never on, records say nothing of it: those of older controllers are the same.
#[test]
fn records_speak_of_the_gate_only_where_it_matters() {
    each(false, false, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        let record = Record::find(w.template.as_ref().unwrap(), w.binding.as_ref()).unwrap();
        let text = record.encode();
        assert!(!text.contains("static") && !text.contains("passed"), "{text}");
        // Once, in each direction.
        switch(&mut w, true);
        assert_eq!(w.pass(usize::MAX), 1);
        w.then("p/p m1");
        switch(&mut w, false).then("p/p m1");
        let again = Record::find(w.template.as_ref().unwrap(), w.binding.as_ref()).unwrap();
        assert_eq!(again.encode(), text);
    });
}

/// What a policy suspends is suspended at once, and is all that it asked for: nothing is held.
#[test]
fn a_suspension_with_the_switch_holds_nothing() {
    each(true, false, |mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("p", "m1").with("suspension", json!({ "dispatching": true })));
        switch(&mut w, false).then("p/p m1");
        assert_eq!(w.decide().unwrap().waits, None);
        assert!(is_suspended(
            w.binding.as_ref().unwrap().spec.suspension.as_ref(),
            "m1"
        ));
    });
}

/// A template that never was sent is taken by the policy that stops being Lazy, and that is the end of the switch.
#[test]
fn what_was_never_sent_is_activated_after_the_switch() {
    each(false, false, |mut w| {
        w.create().apply(rule("c", "m1").cpp().lazy()).then("c");
        w.apply(rule("p", "m2").pp()).then("c");
        switch(&mut w, true).then("c");
        w.apply(rule("c", "m1").cpp()).then("c/c m1");
    });
}

/// The binding still names the policy that was activated: whoever is cut off must not take that for the owner.
#[test]
fn an_owner_that_is_deleted_leaves_nobody() {
    each(false, true, |mut w| {
        w.create().apply(rule("c", "m1").cpp()).then("c/c m1");
        w.apply(rule("p", "m2").pp().lazy().always());
        w.then("p/c m1");
        switch(&mut w, true).gates.preemption = false;
        w.then("p/c m1").delete("p").then("-/- m1");
    });
}
