//! Which requests policies and bindings are about.

use super::super::matching::MatchResources;
use super::*;

fn rule(text: &str) -> Value {
    // group/version/resource operation…
    let mut parts = text.split(' ');
    let path: Vec<&str> = parts.next().unwrap_or("").splitn(3, '/').collect();
    let operations: Vec<&str> = parts.collect();
    json!({"apiGroups": [path[0]], "apiVersions": [path[1]], "resources": [path[2]], "operations": operations})
}

#[test]
fn rules_name_resources_operations_and_subresources() {
    let cases = [
        ("/v1/configmaps CREATE", "", true),
        ("/v1/configmaps UPDATE CREATE", "", true),
        ("/v1/configmaps UPDATE DELETE", "", false),
        ("*/*/* *", "", true),
        ("*/*/* *", "status", false),
        ("*/*/*/* *", "", true),
        ("*/*/*/* *", "status", true),
        ("/v1/configmaps/* *", "", true),
        ("/v1/configmaps/* *", "status", true),
        ("/v1/configmaps/status *", "", false),
        ("/v1/configmaps/status *", "status", true),
        ("/v1/*/status *", "status", true),
        ("/v1/pods/* *", "status", false),
        ("apps/v1/configmaps *", "", false),
        ("/v2/configmaps *", "", false),
        ("/v1/secrets *", "", false),
    ];
    for (text, subresource, expected) in cases {
        let scenario = Scenario {
            subresource,
            ..Scenario::create(json!({}))
        };
        let resources = MatchResources::new(&json!({"resourceRules": [rule(text)]}));
        let found = resources.find(&scenario.asked(), &scenario);
        assert_eq!(
            found,
            Ok(expected.then_some(Matched::Itself)),
            "{text} for {subresource:?}"
        );
    }
}

#[test]
fn scope_names_and_exclusions_narrow() {
    let namespace = || Scenario {
        place: place("", "v1", "namespaces", "Namespace"),
        namespace: "t",
        name: "t",
        ..Scenario::create(json!({}))
    };
    let node = || Scenario {
        place: place("", "v1", "nodes", "Node"),
        namespace: "",
        ..Scenario::create(json!({}))
    };
    let configmap = || Scenario::create(json!({}));
    let with = |key: &str, value: Value| {
        let mut rule = rule("*/*/* *");
        rule[key] = value;
        json!({"resourceRules": [rule]})
    };
    let excluding =
        |text: &str| json!({"resourceRules": [rule("*/*/* *")], "excludeResourceRules": [rule(text)]});
    let cases: [(Scenario, Value, bool); 12] = [
        (configmap(), with("scope", json!("Namespaced")), true),
        (configmap(), with("scope", json!("Cluster")), false),
        (node(), with("scope", json!("Namespaced")), false),
        (node(), with("scope", json!("Cluster")), true),
        // A Namespace is in itself, and still no namespaced object.
        (namespace(), with("scope", json!("Namespaced")), false),
        (namespace(), with("scope", json!("Cluster")), true),
        (configmap(), with("scope", json!("*")), true),
        (configmap(), with("resourceNames", json!(["a", "c"])), true),
        (configmap(), with("resourceNames", json!(["a"])), false),
        (configmap(), excluding("/v1/configmaps CREATE"), false),
        (configmap(), excluding("/v1/configmaps DELETE"), true),
        // Without rules, as in a binding, everything matches.
        (configmap(), json!({}), true),
    ];
    for (scenario, value, expected) in cases {
        let found = MatchResources::new(&value).find(&scenario.asked(), &scenario);
        assert_eq!(
            found.map(|found| found.is_some()),
            Ok(expected),
            "{} {value}",
            scenario.place.resource
        );
    }
}

#[test]
fn selectors_look_at_the_namespace_and_both_objects() {
    let labelled = |value: &str| json!({"metadata": {"name": "c", "labels": {"a": value}}});
    let update = |new: &str, old: &str| Scenario {
        operation: Operation::Update,
        new: Some(labelled(new)),
        old: Some(labelled(old)),
        ..Scenario::create(Value::Null)
    };
    let objects = |value: &str| json!({"objectSelector": {"matchLabels": {"a": value}}});
    let namespaces = |value: &str| json!({"namespaceSelector": {"matchLabels": {"team": value}}});
    let lost = || Scenario {
        namespace: "lost",
        ..Scenario::create(json!({}))
    };
    let cluster = || Scenario {
        namespace: "",
        ..Scenario::create(json!({}))
    };
    let own = || Scenario {
        place: place("", "v1", "namespaces", "Namespace"),
        namespace: "new",
        name: "new",
        ..Scenario::create(json!({"metadata": {"labels": {"team": "b"}}}))
    };
    let missing = || Err("namespaces \"lost\" not found".to_owned());
    let other_rule = || json!({"namespaceSelector": {"matchLabels": {"team": "a"}}, "resourceRules": [rule("/v1/pods *")]});
    let cases: [(Scenario, Value, Result<bool, String>); 12] = [
        (update("1", "2"), objects("1"), Ok(true)),
        (update("1", "2"), objects("2"), Ok(true)),
        (update("1", "2"), objects("3"), Ok(false)),
        (Scenario::delete(labelled("1")), objects("1"), Ok(true)),
        (Scenario::create(json!({})), namespaces("a"), Ok(true)),
        (Scenario::create(json!({})), namespaces("b"), Ok(false)),
        (cluster(), namespaces("b"), Ok(true)),
        (own(), namespaces("b"), Ok(true)),
        (own(), namespaces("a"), Ok(false)),
        (lost(), namespaces("a"), missing()),
        // A selector that cannot be judged does not matter where the rules do not match.
        (lost(), other_rule(), Ok(false)),
        (lost(), json!({"namespaceSelector": {}}), Ok(true)),
    ];
    for (scenario, value, expected) in cases {
        let found = MatchResources::new(&value).find(&scenario.asked(), &scenario);
        assert_eq!(
            found.map(|found| found.is_some()),
            expected,
            "{} {value}",
            scenario.namespace
        );
    }
}

#[test]
fn equivalent_places_match_unless_exactly_this_one_is_wanted() {
    let scenario = Scenario {
        place: place(
            "autoscaling",
            "v1",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
        ),
        others: vec![place(
            "autoscaling",
            "v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
        )],
        ..Scenario::create(json!({}))
    };
    let v2 = rule("autoscaling/v2/horizontalpodautoscalers *");
    let any = rule("autoscaling/*/horizontalpodautoscalers *");
    let cases = [
        (json!({"resourceRules": [v2]}), Some(Matched::Equivalent(0))),
        (
            json!({"resourceRules": [v2], "matchPolicy": "Equivalent"}),
            Some(Matched::Equivalent(0)),
        ),
        (json!({"resourceRules": [v2], "matchPolicy": "Exact"}), None),
        (json!({"resourceRules": [v2, any]}), Some(Matched::Itself)),
        (json!({"excludeResourceRules": [v2]}), None),
    ];
    for (value, expected) in cases {
        assert_eq!(
            MatchResources::new(&value).find(&scenario.asked(), &scenario),
            Ok(expected),
            "{value}"
        );
    }
    // The expressions then see the object as it is there.
    let spec = json!({
        "matchConstraints": {"resourceRules": [v2]},
        "validations": [{"expression": "object.apiVersion == 'autoscaling/v2'"}],
    });
    assert_eq!(scenario.answer(spec), "allowed");
}

#[test]
fn bindings_choose_among_what_the_policy_matches() {
    let policies = [policy(
        "p",
        json!({"validations": [{"expression": "false", "message": "no"}]}),
    )];
    let bound = |name: &str, label: &str| {
        let resources = json!({"objectSelector": {"matchLabels": {"a": label}}});
        binding(name, json!({"policyName": "p", "matchResources": resources}))
    };
    let bindings = [
        bound("one", "1"),
        bound("two", "2"),
        binding("x", json!({"policyName": "none"})),
    ];
    for (label, expected) in [("1", Some("one")), ("2", Some("two")), ("3", None)] {
        let scenario = Scenario::create(json!({"metadata": {"labels": {"a": label}}}));
        let message = scenario
            .decide(&policies, &bindings)
            .err()
            .map(|denial| denial.message);
        let text =
            |name: &str| format!("ValidatingAdmissionPolicy 'p' with binding '{name}' denied request: no");
        assert_eq!(message, expected.map(text), "{label}");
    }
    // A policy without a binding is not in force.
    assert_eq!(Scenario::create(json!({})).decide(&policies, &[]), Ok(Vec::new()));
}
