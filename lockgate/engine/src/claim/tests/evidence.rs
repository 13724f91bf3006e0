//! Missing, foreign and broken evidence moves nothing, and what was lost is made again as it was.

use lockgate_api::keys;
use serde_json::json;

use super::world::{Kind, Scope, World, rule};
use crate::claim::{Claim, Record};
use crate::gates::Gates;

fn each(story: impl Fn(World)) {
    World::each(Gates::default(), story);
}

fn each_static(story: impl Fn(World)) {
    let gates = Gates {
        static_policy: true,
        ..Gates::default()
    };
    World::each(gates, story);
}

fn break_record(w: &mut World, text: Option<&str>) {
    let annotations = &mut w.binding.as_mut().unwrap().metadata.annotations;
    match text {
        Some(text) => annotations.insert(keys::ACTIVATED.to_owned(), text.to_owned()),
        None => annotations.remove(keys::ACTIVATED),
    };
}

const BROKEN: [Option<&str>; 5] = [
    None,
    Some(""),
    Some("{}"),
    Some("not json"),
    Some(r#"{"uid":"uid-1"}"#),
];

#[test]
fn a_binding_without_a_record_waits_where_policies_wait() {
    for text in BROKEN {
        for lazy in [true, false] {
            let story = |mut w: World| {
                let policy = |cluster: &str| {
                    let policy = rule("p", cluster);
                    if lazy { policy.lazy() } else { policy }
                };
                w.apply(policy("m1")).create().then("p/p m1");
                w.apply(policy("m2"));
                break_record(&mut w, text);
                w.then("p/p m1");
                // The new record names who was activated, and admits that nobody knows which generation.
                let record = Record::find(w.template.as_ref().unwrap(), w.binding.as_ref()).unwrap();
                let claim = Claim::on_binding(&w.binding.as_ref().unwrap().metadata).unwrap();
                assert_eq!((record.policy, record.policy_generation), (claim.id, 0));
                w.scale(5).then("p/p m2");
            };
            each_static(story);
            if lazy {
                each(story);
            }
        }
    }
}

#[test]
fn a_binding_without_a_record_is_brought_up_to_date_by_an_immediate_policy() {
    for text in BROKEN {
        each(|mut w| {
            w.apply(rule("p", "m1")).create().then("p/p m1");
            w.apply(rule("p", "m2"));
            break_record(&mut w, text);
            w.then("p/p m2");
        });
    }
}

#[test]
fn a_claim_without_a_record_is_recorded_and_held() {
    // As another control plane leaves it under a Lazy policy: claimed, and never sent. The template is the newer one.
    let claimed = |w: &mut World| {
        w.apply(rule("p", "m1").lazy()).create();
        let claim = Claim::by(w.policies.iter().next().unwrap());
        w.edit(|template| {
            Claim::mark_template(Some(&claim), template);
        });
    };
    each(|mut w| {
        claimed(&mut w);
        w.then("p");
        w.scale(3).then("p/p m1");
    });
    // StaticPolicy: also when the policy is edited, or another one comes.
    each_static(|mut w| {
        claimed(&mut w);
        w.then("p");
        w.apply(rule("p", "m2")).then("p");
        w.apply(rule("q", "m3").priority(5)).then("p");
        w.delete("p").then("q");
        w.scale(3).then("q/q m3");
    });
}

#[test]
fn a_copy_is_a_template_of_its_own() {
    // Copied from a template that waits, with every annotation; then the policy comes first, or second.
    let copied_metadata = |kind, scope| {
        let mut origin = World::new(kind, scope, Gates::default());
        origin.create().apply(rule("p", "m1").lazy()).then("p");
        let template = origin.template.unwrap();
        json!({ "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"] })
    };
    each(|mut w| {
        let mut metadata = copied_metadata(w.kind, w.scope);
        metadata["annotations"][keys::ACTIVATED] = json!(
            r#"{"uid":"other","generation":2,"metadata":"ab","content":"cd","policy":"uid-9","policyGeneration":1}"#
        );
        let mut second = w.clone();
        w.apply(rule("p", "m1").lazy())
            .create_from(metadata.clone())
            .then("p/p m1");
        second.create_from(metadata).then("-");
        second.apply(rule("p", "m1").lazy()).then("p");
        second.touch("1").then("p/p m1");
    });
}

#[test]
fn a_copied_request_is_not_asked_again() {
    each(|mut w| {
        w.create_from(json!({ "annotations": {
            keys::ACTIVATE: "now",
            keys::ACTIVATED: r#"{"uid":"other","metadata":"ab","content":"cd","request":"now"}"#,
        } }));
        w.apply(rule("p", "m1").lazy()).then("p");
        w.ask("again").then("p/p m1");
    });
}

#[test]
fn a_binding_that_is_lost_is_made_again_as_it_was() {
    let story = |mut w: World| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.binding = None;
        w.then("p/p m1");
    };
    each(story);
    each_static(story);
    // And not otherwise.
    let pending = |mut w: World| {
        w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
        w.apply(rule("p", "m2").lazy()).then("p/p m1");
        w.binding = None;
        w.then("p");
        w.touch("1").then("p/p m2");
    };
    each(pending);
    each_static(pending);
    each_static(|mut w| {
        w.apply(rule("p", "m1")).create().then("p/p m1");
        w.apply(rule("p", "m2")).then("p/p m1");
        w.binding = None;
        w.then("p");
        w.scale(5).then("p/p m2");
    });
}

#[test]
fn cut_off_before_the_binding_is_there() {
    // The policy that was decided on is still the same: finished.
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create();
        assert_eq!(w.pass(1), 1);
        w.then("p/p m1");
    });
    // It has changed meanwhile, and waits.
    each(|mut w| {
        w.apply(rule("p", "m1").lazy()).create();
        w.pass(1);
        w.apply(rule("p", "m2").lazy()).then("p");
    });
    // A user's change is not forgotten, whatever happens meanwhile.
    each(|mut w| {
        let app = |w: &mut World, app: &str| {
            w.edit(|template| template["metadata"]["labels"]["app"] = app.into());
        };
        w.create().then("-");
        w.apply(rule("p", "m1").lazy().app("a"))
            .apply(rule("q", "m2").lazy().app("b"))
            .then("p");
        app(&mut w, "b");
        w.pass(1);
        w.apply(rule("q", "m3").lazy().app("b")).then("q/q m3");
    });
    // Neither is a request.
    each(|mut w| {
        w.create().ask("now");
        w.apply(rule("p", "m1").lazy());
        w.pass(1);
        w.apply(rule("p", "m2").lazy()).then("p/p m2");
    });
}

#[test]
fn a_new_uid_under_an_old_binding_is_a_new_template() {
    // The hub lets the old binding go first; until then it is the user's change.
    let mut w = World::new(Kind::Deployment, Scope::Namespaced, Gates::default());
    w.apply(rule("p", "m1").lazy()).create().then("p/p m1");
    let binding = w.binding.clone();
    w.create();
    w.binding = binding;
    w.then("p/p m1");
    let spec = &w.binding.as_ref().unwrap().spec;
    assert_eq!(spec.resource.uid, w.template.as_ref().unwrap()["metadata"]["uid"]);
}
