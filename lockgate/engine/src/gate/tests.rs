use lockgate_api::BindingSpec;
use serde_json::{Value, json};

use super::*;

fn spec(text: Value) -> BindingSpec {
    serde_json::from_value(text).unwrap()
}

#[test]
fn what_is_suspended_is_not_sent() {
    let on = |names: &[&str]| json!({ "dispatchingOnClusters": { "clusterNames": names } });
    let table = [
        (json!(null), Release::Send),
        (json!({}), Release::Send),
        (json!({ "dispatching": false }), Release::Send),
        (
            json!({ "dispatching": true }),
            Release::Suspended(vec![HeldBy::Propagation]),
        ),
        (on(&[]), Release::Send),
        (on(&["m1"]), Release::Suspended(vec![HeldBy::Propagation])),
        (on(&["m2"]), Release::Send),
        (on(&["m2", "m1"]), Release::Suspended(vec![HeldBy::Propagation])),
        (
            json!({ "dispatching": false, "dispatchingOnClusters": { "clusterNames": ["m1"] } }),
            Release::Suspended(vec![HeldBy::Propagation]),
        ),
        // Not being placed is not being held back.
        (json!({ "scheduling": true }), Release::Send),
        // Bindings carry the released spelling alone.
        (json!({ "suspendDispatching": true }), Release::Send),
    ];
    for (suspension, expected) in table {
        let spec = spec(json!({ "suspension": suspension, "clusters": [{ "name": "m1" }] }));
        let input = ReleaseInput {
            spec: &spec,
            rollouts: &[],
            referrers: &[],
        };
        assert_eq!(release(&Holds::of(&input), "m1"), expected, "{suspension}");
    }
}

#[test]
fn removals_are_the_slowest_step() {
    let clusters =
        |names: &[&str]| -> Vec<Value> { names.iter().map(|name| json!({ "name": name })).collect() };
    let wait = |names: &[&str]| Removal::WaitFor(names.iter().map(|name| (*name).to_owned()).collect());
    // Own clusters, those of the bindings that need this one, those without a copy; the answer, also behind the gate.
    type Names = &'static [&'static str];
    let table: [(Names, Names, Names, Removal, Removal); 7] = [
        (&["m2"], &[], &[], Removal::Remove, Removal::Remove),
        (&["m2"], &[], &["m2"], wait(&["m2"]), wait(&["m2"])),
        (&["m2", "m3"], &[], &["m3"], wait(&["m3"]), wait(&["m3"])),
        (&[], &["m2"], &["m2"], wait(&["m2"]), wait(&["m2"])),
        (&[], &["m2"], &[], Removal::Remove, Removal::Remove),
        (
            &["m2"],
            &["m3"],
            &["m2", "m3"],
            wait(&["m2", "m3"]),
            wait(&["m2", "m3"]),
        ),
        // Nothing fits, or nothing was placed yet.
        (&[], &[], &[], Removal::Hold, Removal::Remove),
    ];
    for (own, required, missing, expected, gated) in table {
        let spec = spec(json!({
            "placement": {},
            "clusters": clusters(own),
            "requiredBy": [{ "name": "main", "clusters": clusters(required) }],
        }));
        let missing = missing.iter().map(|name| (*name).to_owned()).collect();
        let gate = Gates {
            no_cluster_fit_removes: true,
            ..Gates::default()
        };
        assert_eq!(
            removal(&spec, &missing, Gates::default()),
            expected,
            "{own:?} {required:?} {missing:?}"
        );
        assert_eq!(
            removal(&spec, &missing, gate),
            gated,
            "{own:?} {required:?} {missing:?}"
        );
    }
}

#[test]
fn what_nobody_needs_any_more_goes() {
    let spec = spec(json!({ "requiredBy": [] }));
    assert_eq!(
        removal(&spec, &BTreeSet::new(), Gates::default()),
        Removal::Remove
    );
}

#[test]
fn a_cluster_that_is_leaving_is_not_wanted() {
    let spec = spec(json!({
        "clusters": [{ "name": "m1" }, { "name": "m2" }],
        "requiredBy": [{ "name": "x", "clusters": [{ "name": "m2" }, { "name": "m3" }] }],
        "gracefulEvictionTasks": [{ "fromCluster": "m0" }],
    }));
    assert_eq!(wanted(&spec).into_iter().collect::<Vec<_>>(), ["m1", "m2", "m3"]);
}

#[test]
fn fewer_replicas_wait_for_more_elsewhere_and_for_nothing_else() {
    let still = |lacks| Motion::Still { lacks };
    for (motions, wait) in [
        (vec![Motion::Fewer, Motion::More], true),
        (vec![Motion::Fewer, still(true)], true),
        (vec![Motion::Fewer, Motion::Fewer], false),
        (vec![Motion::Fewer, still(false)], false),
        (vec![Motion::More, still(true)], false),
        (vec![], false),
    ] {
        assert_eq!(fewer_wait(motions.clone()), wait, "{motions:?}");
    }
}
