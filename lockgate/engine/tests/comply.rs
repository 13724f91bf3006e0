//! Policies, objects and what is said of them.

#![expect(clippy::unwrap_used, reason = "a test may end where it likes")]

use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::ocm::configuration::{ConfigurationSpec, ConfigurationStatus};
use lockgate_engine::comply::{
    Compliance, Concluded, Evaluated, Fault, Judged, Objects, Outcome, Prune, Remedy, Rules, Served,
    Standing, Subject, Template, Unpruned, conclude, judge, made, passing_since, status as statuses,
    status_fits, words,
};
use serde_json::{Value, json};

#[path = "comply/faults.rs"]
mod faults;
#[path = "comply/pruning.rs"]
mod pruning;
#[path = "comply/replicas.rs"]
mod replicas;

/// Objects of one kind.
struct World(Vec<Value>);

impl Objects for World {
    fn find(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let found = self.list(namespace);
        found
            .into_iter()
            .find(|object| object["metadata"]["name"] == name)
    }

    fn list(&self, namespace: &str) -> Vec<Arc<Value>> {
        let inside = |object: &&Value| object["metadata"]["namespace"].as_str().unwrap_or("") == namespace;
        self.0.iter().filter(inside).cloned().map(Arc::new).collect()
    }
}

fn now() -> Timestamp {
    "2026-05-28T16:18:34.733058Z".parse().unwrap()
}

fn rules(spec: &Value) -> Result<Rules, Fault> {
    let mut spec = spec.clone();
    if spec.get("remediationAction").is_none() {
        spec["remediationAction"] = json!("inform");
    }
    Rules::read(&serde_json::from_value::<ConfigurationSpec>(spec).unwrap())
}

/// One template with this demand.
fn one(compliance: &str, object: &Value) -> Rules {
    rules(&json!({"object-templates": [{"complianceType": compliance, "objectDefinition": object}]})).unwrap()
}

/// The first template, which can be followed.
fn first(rules: &Rules) -> &Template {
    rules.templates[0].as_ref().unwrap()
}

fn served(plural: &str, namespaced: bool) -> Option<Served> {
    Some(Served {
        plural: plural.to_owned(),
        namespaced,
    })
}

/// What is found for the first template.
fn outcome(rules: &Rules, namespaces: &[&str], objects: &[Value]) -> (Subject, Vec<Judged>) {
    let namespaces: Vec<String> = namespaces.iter().map(|&name| name.to_owned()).collect();
    let template = first(rules);
    let selected = rules.selected(&namespaces);
    let subject = Subject::of(template, selected, served("configmaps", true)).unwrap();
    let judged = judge(template, &subject, &World(objects.to_vec()));
    (subject, judged)
}

fn said(rules: &Rules, namespaces: &[&str], objects: &[Value]) -> (bool, String) {
    let (subject, judged) = outcome(rules, namespaces, objects);
    let said = words::say(&subject.served.plural, &subject.kind, &judged);
    (said.compliant, said.message)
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "resourceVersion": "7"},
    })
}

fn wanted(name: &str, data: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    if name.is_empty() {
        object["metadata"] = json!({});
    }
    object
}

#[test]
fn verdicts_of_named_objects_and_of_searches() {
    let a = || json!({"a": "1"});
    let named = |compliance| one(compliance, &wanted("box", &a()));
    let search = |compliance| one(compliance, &wanted("", &a()));
    let there = config_map("shop", "box", &json!({"a": "1", "b": "2"}));
    let other = config_map("shop", "box", &json!({"a": "9"}));
    for (rules, objects, compliant, message) in [
        (
            named("musthave"),
            vec![],
            false,
            "configmaps [box] not found in namespace shop",
        ),
        (
            named("musthave"),
            vec![there.clone()],
            true,
            "configmaps [box] found as specified in namespace shop",
        ),
        (
            named("musthave"),
            vec![other.clone()],
            false,
            "configmaps [box] found but not as specified in namespace shop",
        ),
        (
            named("mustonlyhave"),
            vec![there.clone()],
            false,
            "configmaps [box] found but not as specified in namespace shop",
        ),
        (
            named("mustnothave"),
            vec![],
            true,
            "configmaps [box] missing as expected in namespace shop",
        ),
        // That it is there is enough, whatever it holds.
        (
            named("MustNotHave"),
            vec![other.clone()],
            false,
            "configmaps [box] found in namespace shop",
        ),
        (
            search("musthave"),
            vec![],
            false,
            "configmaps not found in namespace shop",
        ),
        (
            search("musthave"),
            vec![there.clone()],
            true,
            "configmaps [box] found as specified in namespace shop",
        ),
        (
            search("musthave"),
            vec![other.clone()],
            false,
            "configmaps found but not as specified in namespace shop",
        ),
        (
            search("mustonlyhave"),
            vec![there.clone()],
            false,
            "configmaps found but not as specified in namespace shop",
        ),
        (
            search("mustnothave"),
            vec![other],
            true,
            "configmaps missing as expected in namespace shop",
        ),
        (
            search("mustnothave"),
            vec![there],
            false,
            "configmaps [box] found in namespace shop",
        ),
    ] {
        assert_eq!(said(&rules, &["shop"], &objects), (compliant, message.to_owned()));
        let (_, judged) = outcome(&rules, &["shop"], &objects);
        let acts = !judged[0].standing.is_compliant() && !first(&rules).is_search();
        assert_eq!(judged[0].remedy.is_some(), acts, "{message}");
    }
}

#[test]
fn selected_objects_are_told_by_their_labels() {
    let labelled = |name: &str, data: &Value| {
        let mut object = config_map("shop", name, data);
        object["metadata"]["labels"] = json!({"tier": "gold"});
        object
    };
    let select = |compliance: &str| {
        rules(&json!({"object-templates": [{
            "complianceType": compliance,
            "objectSelector": {"matchLabels": {"tier": "gold"}},
            "objectDefinition": wanted("", &json!({"a": "1"})),
        }]}))
        .unwrap()
    };
    let objects = [
        labelled("x", &json!({"a": "1"})),
        labelled("y", &json!({"a": "2"})),
        config_map("shop", "z", &json!({"a": "3"})),
    ];
    let no = |message: &str| (false, message.to_owned());
    assert_eq!(
        said(&select("musthave"), &["shop"], &objects),
        no("configmaps [y] found but not as specified in namespace shop")
    );
    assert_eq!(
        said(&select("mustnothave"), &["shop"], &objects),
        no("configmaps [x] found in namespace shop")
    );
    let none = said(&select("musthave"), &["shop"], &objects[2..]);
    assert!(none.0, "{none:?}");
}

#[test]
fn messages_name_namespaces_together_and_bad_news_alone() {
    let rules = one("musthave", &wanted("buzz", &json!({"a": "1"})));
    let there = |namespace| config_map(namespace, "buzz", &json!({"a": "1"}));
    let all = ["toy-story", "toy-story3"];
    assert_eq!(
        said(&rules, &all, &[there("toy-story"), there("toy-story3")]).1,
        "configmaps [buzz] found as specified in namespaces: toy-story, toy-story3"
    );
    assert_eq!(
        said(&rules, &all, &[there("toy-story")]).1,
        "configmaps [buzz] not found in namespace toy-story3"
    );
    let (subject, mut judged) = outcome(&rules, &all, &[there("toy-story"), there("toy-story3")]);
    judged[0].standing = Standing::Created;
    let said = words::say("configmaps", &subject.kind, &judged);
    assert_eq!(
        said.reason,
        "K8s `must have` object already exists; K8s creation success"
    );
    assert_eq!(
        said.message,
        "configmaps [buzz] found as specified in namespace toy-story3; configmaps [buzz] was created successfully \
         in namespace toy-story"
    );
}

#[test]
fn what_is_made_anew_is_told_and_made_from_the_template() {
    let rules = one("musthave", &wanted("box", &json!({"a": "1"})));
    let (subject, mut judged) = outcome(
        &rules,
        &["shop"],
        &[config_map("shop", "box", &json!({"a": "2"}))],
    );
    judged[0].anew = true;
    assert_eq!(
        words::say("configmaps", &subject.kind, &judged).message,
        "configmaps [box] found but not as specified in namespace shop; configmaps [box] would be deleted and made \
         anew in namespace shop"
    );
    // One that is known by its labels has its name from the object that was there.
    let mut object = wanted("", &json!({"a": "1"}));
    object["status"] = json!({"phase": "Bound"});
    assert_eq!(
        made(first(&one("musthave", &object)), "shop", "box"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "metadata":
            {"name": "box", "namespace": "shop"}})
    );
}

#[test]
fn metadata_has_a_demand_of_its_own() {
    let mut object = wanted("box", &json!({"a": "1"}));
    object["metadata"]["labels"] = json!({"x": "y"});
    let with = |metadata: &str| {
        let spec = json!({"object-templates": [{"complianceType": "musthave", "metadataComplianceType": metadata,
            "objectDefinition": object}]});
        rules(&spec).unwrap()
    };
    let mut live = config_map("shop", "box", &json!({"a": "1", "b": "2"}));
    live["metadata"]["labels"] = json!({"x": "y", "more": "z"});
    live["metadata"]["annotations"] = json!({"nobody": "speaks of it"});
    assert!(said(&with("musthave"), &["shop"], &[live.clone()]).0);
    let (_, judged) = outcome(&with("mustonlyhave"), &["shop"], &[live]);
    let Some(Remedy::Update { merged, .. }) = &judged[0].remedy else {
        panic!("{judged:?}");
    };
    assert_eq!(merged["metadata"]["labels"], json!({"x": "y"}));
    assert_eq!(
        merged["metadata"]["annotations"],
        json!({"nobody": "speaks of it"})
    );
    assert_eq!(merged["data"], json!({"a": "1", "b": "2"}));
}

#[test]
fn secrets_are_compared_by_what_they_hold() {
    let rules = one(
        "mustonlyhave",
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"a": "hello"}}),
    );
    let holding = |data: &Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop", "uid": "u"},
            "data": data})
    };
    let live = |data: &str| holding(&json!({ "a": data }));
    assert!(said(&rules, &["shop"], &[live("aGVsbG8=")]).0);
    assert!(!said(&rules, &["shop"], &[live("aGVsbG9v")]).0);
    // What else it holds must not be there, be it a text or not; for those that only must have this it does not matter.
    let mut at_least = first(&rules).object.clone();
    at_least["metadata"]["namespace"] = json!("shop");
    let at_least = one("musthave", &at_least);
    for foreign in ["aGVsbG8=", "/w=="] {
        let live = holding(&json!({"a": "aGVsbG8=", "evil": foreign}));
        assert!(said(&at_least, &["shop"], std::slice::from_ref(&live)).0);
        let (_, judged) = outcome(&rules, &["shop"], &[live]);
        let Some(Remedy::Update { merged, .. }) = &judged[0].remedy else {
            panic!("{judged:?}");
        };
        assert_eq!(
            (merged.get("data"), &merged["stringData"]),
            (None, &json!({"a": "hello"}))
        );
    }
}

#[test]
fn secrets_of_texts_and_of_data_are_sent_as_a_whole() {
    let both = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
        "data": {"b": "/w=="}, "stringData": {"a": "hello"}});
    let live = |data: &Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop", "uid": "u"},
            "data": data})
    };
    for compliance in ["musthave", "mustonlyhave"] {
        let rules = one(compliance, &both);
        let as_it_should_be = live(&json!({"a": "aGVsbG8=", "b": "/w=="}));
        assert!(said(&rules, &["shop"], &[as_it_should_be]).0, "{compliance}");
        // Without the texts, which are right, the server would take them away.
        let (_, judged) = outcome(&rules, &["shop"], &[live(&json!({"a": "aGVsbG8=", "b": "eA=="}))]);
        let Some(Remedy::Update { merged, .. }) = &judged[0].remedy else {
            panic!("{judged:?}");
        };
        assert_eq!(
            (&merged["data"], &merged["stringData"]),
            (&json!({"b": "/w=="}), &json!({"a": "hello"}))
        );
    }
}

fn status(rules: &Rules, outcomes: &[Outcome], previous: &ConfigurationStatus, generation: i64) -> Concluded {
    conclude(
        previous,
        &Evaluated {
            name: "settings",
            outcomes,
            generation,
            enforce: rules.enforce,
            prune: rules.prune,
            unpruned: None,
            never: rules.never(),
            custom: None,
            now: now(),
        },
    )
}

#[test]
fn a_second_look_says_nothing_new() {
    let rules = one("musthave", &wanted("box", &json!({"a": "1"})));
    let (subject, mut judged) = outcome(&rules, &["shop"], &[]);
    judged[0].standing = Standing::Created;
    judged[0].uid = "uid-box".to_owned();
    judged[0].made = true;
    let first = status(
        &rules,
        &[Ok((subject, judged))],
        &ConfigurationStatus::default(),
        3,
    )
    .status;
    assert_eq!(
        first.history[0].message,
        "Compliant; notification - configmaps [box] was created successfully in namespace shop"
    );
    assert_eq!(first.history[0].last_timestamp, "2026-05-28T16:18:34.733058Z");
    let there = config_map("shop", "box", &json!({"a": "1"}));
    let again = |generation| {
        let found = outcome(&rules, &["shop"], std::slice::from_ref(&there));
        status(&rules, &[Ok(found)], &first, generation).status
    };
    assert_eq!(again(3), first);
    let next = again(4);
    assert_eq!(next.history.len(), 2);
    assert!(next.history[0].message.contains("found as specified"), "{next:?}");
    let properties = next.related_objects[0].properties.as_ref().unwrap();
    assert_eq!(
        properties.created_by_policy,
        Some(true),
        "who made it is not forgotten"
    );
}

#[test]
fn a_policy_says_that_it_is_not_looked_at_again() {
    let never = |state: &str| {
        rules(
            &json!({"evaluationInterval": {state: "never"}, "object-templates":
            [{"complianceType": "musthave", "objectDefinition": wanted("box", &json!({}))}]}),
        )
        .unwrap()
    };
    let there = [config_map("shop", "box", &json!({}))];
    let missing: [Value; 0] = [];
    for (state, objects, last) in [
        ("compliant", &there[..], true),
        ("compliant", &missing[..], false),
        ("noncompliant", &there[..], false),
        ("noncompliant", &missing[..], true),
    ] {
        let rules = never(state);
        let found = Ok(outcome(&rules, &["shop"], objects));
        let message = status(&rules, &[found], &ConfigurationStatus::default(), 1)
            .status
            .history[0]
            .message
            .clone();
        let end = format!(
            ". This policy will not be evaluated again due to spec.evaluationInterval.{state} being set to \"never\"."
        );
        assert_eq!(message.ends_with(&end), last, "{message}");
    }
}

#[test]
fn a_policy_may_have_words_of_its_own() {
    let rules = one("musthave", &wanted("box", &json!({})));
    let there = [config_map("shop", "box", &json!({}))];
    let missing: [Value; 0] = [];
    for (custom, objects, message) in [
        (
            json!({"compliant": "all is well", "noncompliant": "oh no"}),
            &there[..],
            "Compliant; all is well",
        ),
        (
            json!({"compliant": "all is well", "noncompliant": "oh no"}),
            &missing[..],
            "NonCompliant; oh no",
        ),
        (
            json!({"compliant": "all is well"}),
            &missing[..],
            "NonCompliant; violation - configmaps [box] not found in namespace shop",
        ),
        (
            json!({"noncompliant": "{{ .DefaultMessage }}!"}),
            &missing[..],
            "NonCompliant; violation - configmaps [box] not found in namespace shop; customMessage.noncompliant \
             holds {{ and is not used: Go templates are not resolved here",
        ),
    ] {
        let custom = serde_json::from_value(custom).unwrap();
        let outcomes = [Ok(outcome(&rules, &["shop"], objects))];
        let evaluated = Evaluated {
            name: "settings",
            outcomes: &outcomes,
            generation: 1,
            enforce: false,
            prune: Prune::Nothing,
            unpruned: None,
            never: (false, false),
            custom: Some(&custom),
            now: now(),
        };
        let status = conclude(&ConfigurationStatus::default(), &evaluated).status;
        assert_eq!(status.history[0].message, message);
        // What was found stays in the condition.
        let told = &status.compliancy_details[0].conditions[0].message;
        assert!(told.starts_with("configmaps [box] "), "{told}");
    }
}

#[test]
fn a_policy_without_templates_has_no_violations() {
    let rules = rules(&json!({"object-templates": []})).unwrap();
    let status = status(&rules, &[], &ConfigurationStatus::default(), 1).status;
    assert_eq!(
        status.history[0].message,
        "Compliant; notification - settings contains no object templates to check, and thus has no violations"
    );
}

#[test]
fn one_template_that_cannot_be_followed_keeps_no_other_from_it() {
    let rules = one("musthave", &wanted("box", &json!({})));
    let outcomes = [
        Err(Fault::template("object-templates[0]: it is wrong")),
        Ok(outcome(
            &rules,
            &["shop"],
            &[config_map("shop", "box", &json!({}))],
        )),
    ];
    let status = status(&rules, &outcomes, &ConfigurationStatus::default(), 1).status;
    let details = status.compliancy_details.iter();
    let details: Vec<&str> = details.map(|details| details.compliant.as_str()).collect();
    assert_eq!(details, ["NonCompliant", "Compliant"]);
    assert_eq!(status.compliant, "NonCompliant");
    assert_eq!(status.related_objects.len(), 1);
}

#[test]
fn a_status_that_has_not_come_is_waited_for() {
    let mut object = wanted("box", &json!({"a": "1"}));
    object["status"] = json!({"phase": "Bound"});
    let rules = rules(&json!({"remediationAction": "enforce", "object-templates":
        [{"complianceType": "musthave", "objectDefinition": object}]}))
    .unwrap();
    let awaits = |live: Value| {
        let outcomes = [Ok(outcome(&rules, &["shop"], &[live]))];
        let told = status(&rules, &outcomes, &ConfigurationStatus::default(), 1).status;
        (passing_since(&outcomes, &told).is_some(), told.compliant)
    };
    let live = |data: &str, phase: &str| {
        let mut live = config_map("shop", "box", &json!({ "a": data }));
        live["status"] = json!({ "phase": phase });
        live
    };
    assert!(status_fits(first(&rules), &live("1", "Bound")));
    assert!(!status_fits(first(&rules), &live("1", "Pending")));
    assert_eq!(awaits(live("1", "Pending")), (true, "NonCompliant".to_owned()));
    assert_eq!(awaits(live("1", "Bound")), (false, "Compliant".to_owned()));
    // Something else is wrong, which does not come by itself.
    assert_eq!(awaits(live("2", "Pending")), (false, "NonCompliant".to_owned()));
}

#[test]
fn what_may_pass_by_itself_is_waited_for() {
    let rules = rules(&json!({"remediationAction": "enforce", "object-templates":
        [{"complianceType": "musthave", "objectDefinition": wanted("box", &json!({}))}]}))
    .unwrap();
    let passes = |outcomes: &[Outcome]| {
        let told = status(&rules, outcomes, &ConfigurationStatus::default(), 1).status;
        passing_since(outcomes, &told).is_some()
    };
    let judged = |change: &dyn Fn(&mut Judged)| -> Outcome {
        let (subject, mut judged) = outcome(&rules, &["shop"], &[]);
        change(&mut judged[0]);
        Ok((subject, judged))
    };
    let wrong = |may_pass: bool| {
        judged(&move |one| {
            let fault = Fault::template("its namespace is not there");
            one.standing = Standing::Wrong(Fault { may_pass, ..fault });
        })
    };
    let unserved = || {
        let unserved = Subject::of(first(&rules), rules.selected(&[]), None);
        unserved.map(|subject| (subject, Vec::new()))
    };
    let going = judged(&|one| {
        one.standing = Standing::Found;
        one.is_going = true;
    });
    assert!(passes(&[unserved()]));
    assert!(passes(&[wrong(true), unserved(), going]));
    // What does not pass by itself counts, whatever else is wrong.
    assert!(!passes(&[wrong(false)]));
    assert!(!passes(&[unserved(), wrong(false)]));
    assert!(!passes(&[Err(Fault::template("it is wrong")), unserved()]));
}
