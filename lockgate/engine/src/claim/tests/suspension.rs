//! Suspension and policies that wait: what they suspend is suspended at once, and what they release waits like the rest.

use lockgate_api::policy::Suspension;
use serde_json::{Value, json};

use super::world::{World, rule};
use crate::gates::Gates;

fn suspension(w: &World) -> Option<Suspension> {
    w.binding.as_ref().unwrap().spec.suspension.clone()
}

fn parsed(text: Value) -> Option<Suspension> {
    serde_json::from_value(text).unwrap()
}

fn waiting_gates() -> [Gates; 2] {
    let static_policy = Gates {
        static_policy: true,
        ..Gates::default()
    };
    [Gates::default(), static_policy]
}

#[test]
fn suspending_acts_at_once_and_resuming_waits() {
    for gates in waiting_gates() {
        World::each(gates, |mut w| {
            let lazy = |cluster: &str| rule("p", cluster).lazy();
            w.apply(lazy("m1")).create().then("p/p m1");
            w.apply(lazy("m2").with("suspension", json!({ "dispatching": true })))
                .then("p/p m1");
            assert_eq!(suspension(&w), parsed(json!({ "dispatching": true })));
            w.apply(lazy("m2")).then("p/p m1");
            assert_eq!(suspension(&w), parsed(json!({ "dispatching": true })));
            w.touch("1").then("p/p m2");
            assert_eq!(suspension(&w), None);
        });
    }
}

#[test]
fn clusters_are_added_at_once_and_taken_away_later() {
    World::each(Gates::default(), |mut w| {
        let on = |names: &[&str]| {
            let names = json!({ "suspendDispatchingOnClusters": { "clusterNames": names } });
            rule("p", "m1").lazy().with("suspension", names)
        };
        w.apply(on(&["m1"])).create().then("p/p m1");
        w.apply(on(&["m1", "m2"])).then("p/p m1");
        let both = parsed(json!({ "dispatchingOnClusters": { "clusterNames": ["m1", "m2"] } }));
        assert_eq!(suspension(&w), both);
        w.apply(on(&["m2"])).then("p/p m1");
        assert_eq!(suspension(&w), both);
        w.touch("1").then("p/p m1");
        assert_eq!(
            suspension(&w),
            parsed(json!({ "dispatchingOnClusters": { "clusterNames": ["m2"] } }))
        );
    });
}

#[test]
fn a_suspension_activates_nothing_else() {
    World::each(Gates::default(), |mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(
            rule("p", "m1")
                .lazy()
                .with("suspension", json!({ "dispatching": true })),
        )
        .then("p/p m1");
        w.apply(
            rule("p", "m3")
                .lazy()
                .with("suspension", json!({ "dispatching": true })),
        )
        .then("p/p m1");
        assert_eq!(suspension(&w), parsed(json!({ "dispatching": true })));
    });
}

#[test]
fn a_successor_that_only_suspends_has_nothing_to_wait_for() {
    World::each(Gates::default(), |mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(
            rule("q", "m1")
                .lazy()
                .with("suspension", json!({ "dispatching": true })),
        );
        w.delete("p").then("q/q m1");
        assert_eq!(suspension(&w), parsed(json!({ "dispatching": true })));
    });
}

#[test]
fn a_binding_keeps_its_own_scheduling() {
    World::each(Gates::default(), |mut w| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.binding.as_mut().unwrap().spec.suspension = parsed(json!({ "scheduling": true }));
        w.then("p/p m1");
        w.apply(
            rule("p", "m1")
                .lazy()
                .with("suspension", json!({ "dispatching": true })),
        )
        .then("p/p m1");
        assert_eq!(
            suspension(&w),
            parsed(json!({ "dispatching": true, "scheduling": true }))
        );
        w.apply(rule("p", "m1")).then("p/p m1");
        assert_eq!(suspension(&w), parsed(json!({ "scheduling": true })));
    });
}
