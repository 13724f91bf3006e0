use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn rollout(namespace: &str, name: &str, suspension: Value) -> Arc<RolloutPolicy> {
    let policy: RolloutPolicy = parsed(json!({
        "metadata": { "namespace": namespace, "name": name, "generation": 3 },
        "spec": { "resourceSelectors": [], "suspension": suspension },
    }));
    Arc::new(policy)
}

fn on(names: &[&str], reason: &str) -> Value {
    json!({ "dispatchingOnClusters": { "clusterNames": names }, "reason": reason })
}

/// Who holds the Works of m1, m2 and m3 back, as text.
fn held(spec: &BindingSpec, rollouts: &[Arc<RolloutPolicy>], referrers: &[Referrer]) -> [String; 3] {
    let input = ReleaseInput {
        spec,
        rollouts,
        referrers,
    };
    ["m1", "m2", "m3"].map(|cluster| {
        let held = Holds::of(&input).on(cluster);
        let texts: Vec<String> = held.iter().map(HeldBy::to_string).collect();
        texts.join("; ")
    })
}

#[test]
fn suspensions_add_up() {
    let placed = json!([{ "name": "m1" }, { "name": "m2" }, { "name": "m3" }]);
    let spec = |suspension: Value| -> BindingSpec {
        parsed(json!({ "clusters": placed, "suspension": suspension }))
    };
    let free = spec(json!(null));
    let web = rollout("shop", "web", on(&["m1", "m2"], " checking "));
    let all = rollout("", "freeze", json!({ "suspendDispatching": true }));
    let old = rollout(
        "shop",
        "old",
        json!({ "suspendDispatchingOnClusters": { "clusterNames": ["m3"] } }),
    );
    let idle = [
        json!(null),
        json!({}),
        json!({ "dispatching": false }),
        on(&[], "x"),
    ]
    .map(|suspension| rollout("shop", "idle", suspension));
    let freeze = "ClusterRolloutPolicy freeze";
    let checking = "RolloutPolicy shop/web: checking";
    assert_eq!(held(&free, &[], &[]), ["", "", ""]);
    assert_eq!(held(&free, &idle, &[]), ["", "", ""]);
    assert_eq!(
        held(&free, std::slice::from_ref(&web), &[]),
        [checking, checking, ""]
    );
    assert_eq!(held(&free, std::slice::from_ref(&all), &[]), [freeze; 3]);
    assert_eq!(
        held(&free, &[web.clone(), old], &[]),
        [checking, checking, "RolloutPolicy shop/old"]
    );
    let both = spec(json!({ "dispatchingOnClusters": { "clusterNames": ["m2"] } }));
    assert_eq!(
        held(&both, std::slice::from_ref(&web), &[]),
        [checking, &format!("the policy that places it; {checking}"), ""]
    );
    // A policy that lists nothing does not lift what another holds.
    assert_eq!(
        held(&spec(json!({ "dispatching": true })), &idle, &[]),
        ["the policy that places it"; 3]
    );
    // Both spellings at once are refused; if they are stored all the same, each holds back.
    let odd = rollout(
        "shop",
        "odd",
        json!({ "dispatching": false, "suspendDispatching": true }),
    );
    assert_eq!(held(&free, &[odd], &[]), ["RolloutPolicy shop/odd"; 3]);
}

#[test]
fn what_others_need_is_held_where_all_of_them_are() {
    let spec = |own: Value| -> BindingSpec {
        parsed(json!({
            "clusters": own,
            "requiredBy": [
                { "namespace": "shop", "name": "web", "clusters": [{ "name": "m1" }, { "name": "m2" }] },
                { "namespace": "shop", "name": "api", "clusters": [{ "name": "m2" }, { "name": "m3" }] },
            ],
        }))
    };
    let referrer = |name: &str, suspension: Value, rollouts: &[Arc<RolloutPolicy>]| Referrer {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        suspension: parsed(suspension),
        rollouts: rollouts.to_vec(),
    };
    let all = json!({ "dispatching": true });
    let alone = spec(json!([]));
    let says = |names: &str| format!("what needs it here is suspended here: {names}");

    let free = [
        referrer("web", json!(null), &[]),
        referrer("api", json!(null), &[]),
    ];
    assert_eq!(held(&alone, &[], &free), ["", "", ""]);
    // m2 is reached through a referrer that is sent there.
    let one = [
        referrer("web", all.clone(), &[]),
        referrer("api", json!(null), &[]),
    ];
    assert_eq!(held(&alone, &[], &one), [&says("shop/web"), "", ""]);
    let freeze = rollout("shop", "freeze", json!({ "dispatching": true }));
    let both = [
        referrer("web", all.clone(), &[]),
        referrer("api", json!(null), &[freeze]),
    ];
    assert_eq!(
        held(&alone, &[], &both),
        [says("shop/web"), says("shop/web, shop/api"), says("shop/api")]
    );
    // Where a policy of its own places it, it stands for itself.
    assert_eq!(
        held(&spec(json!([{ "name": "m2" }])), &[], &both),
        [&says("shop/web"), "", &says("shop/api")]
    );
    // A referrer that is not there speaks for nobody.
    assert_eq!(
        held(&alone, &[], &both[..1]),
        [says("shop/web"), says("shop/web"), String::new()]
    );
    assert_eq!(held(&alone, &[], &[]), ["", "", ""]);
}

#[test]
fn a_work_tells_who_holds_it_back() {
    let rollout = |policy: &str, reason: &str| HeldBy::Rollout {
        policy: policy.to_owned(),
        reason: reason.to_owned(),
    };
    assert_eq!(suspended_by(&[]), "");
    // The policy that places it is named by the binding.
    assert_eq!(suspended_by(&[HeldBy::Propagation]), "");
    assert_eq!(
        suspended_by(&[HeldBy::Propagation, rollout("a", "why"), rollout("b", "")]),
        "a: why; b"
    );
    let long = suspended_by(&[rollout("a", &"é".repeat(3000))]);
    assert_eq!(long.chars().count(), TEXT);
}

#[test]
fn names_of_clusters_that_are_not_there_are_told() {
    let now: Timestamp = "2026-11-15T09:00:00Z".parse().unwrap();
    let there = |name: &str| name == "m1" || name == "m2";
    let said = |suspension: Value| {
        let suspension: Option<Suspension> = parsed(suspension);
        clusters_known(suspension.as_ref(), there, now).map(|said| (said.status, said.message))
    };
    assert_eq!(said(json!(null)), None);
    assert_eq!(said(json!({ "dispatching": true })), None);
    assert_eq!(said(on(&[], "")), None);
    assert_eq!(said(on(&["m2", "m1"], "")).unwrap().0, "True");
    let (status, message) = said(on(&["m9", "m1", "m8", "m9"], "")).unwrap();
    assert_eq!(
        (status.as_str(), message.as_str()),
        (
            "False",
            "The suspension names clusters that the hub does not have: m8, m9. It holds nothing back there until they join."
        )
    );
    let many: Vec<String> = (10..30).map(|number| format!("x{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(said(on(&many, "")).unwrap().1.contains("x19 and 10 more."));
}

#[test]
fn the_status_is_a_view_that_settles() {
    let now: Timestamp = "2026-11-15T09:00:00Z".parse().unwrap();
    let mut policy = (*rollout("shop", "web", on(&["m2", "m9"], ""))).clone();
    let status = rollout_status(&policy, |name| name == "m2", now);
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(status.suspended, "m2, m9");
    assert_eq!(status.conditions[0].reason, "UnknownClusters");
    policy.status = Some(status.clone());
    let later: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
    assert_eq!(rollout_status(&policy, |name| name == "m2", later), status);
    assert!(rollout_status(&policy, |_| true, later).conditions[0].is_true());
    policy.spec.suspension = parsed(json!({ "dispatching": true }));
    let everywhere = rollout_status(&policy, |_| true, later);
    assert_eq!(everywhere.suspended, "all clusters");
    assert!(everywhere.conditions.is_empty());
    policy.spec.suspension = None;
    assert_eq!(rollout_status(&policy, |_| true, later).suspended, "");
}

#[test]
fn the_older_mark_holds_back_what_it_is_on_and_what_only_that_needs() {
    let spec: BindingSpec = parsed(json!({
        "clusters": [{ "name": "m1" }, { "name": "m2" }],
        "requiredBy": [{ "namespace": "shop", "name": "web", "clusters": [{ "name": "m2" }, { "name": "m3" }] }],
    }));
    let referrer = Referrer {
        namespace: "shop".into(),
        name: "web".into(),
        ..Referrer::default()
    };
    let referrers = [referrer];
    let input = ReleaseInput {
        spec: &spec,
        rollouts: &[],
        referrers: &referrers,
    };
    let clusters = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let marks = Marks {
        own: clusters(&["m1"]),
        referrers: BTreeMap::from([("shop/web".to_owned(), clusters(&["m2", "m3"]))]),
    };
    let holds = Holds::of(&input).with_marks(&marks);
    assert_eq!(holds.on("m1"), [HeldBy::Mark]);
    assert_eq!(holds.on("m2"), [], "its own policy places it there");
    assert_eq!(holds.on("m3"), [HeldBy::Referrers(vec!["shop/web".into()])]);
    assert_eq!(Holds::of(&input).on("m3"), []);
}
