//! Variables of policies: what they see, when they are evaluated, and where they end.

use super::expressions::{DENIED, check};
use super::*;

#[test]
fn variables_are_evaluated_when_they_are_read() {
    let variables = json!([
        {"name": "key", "expression": "object.data.k"},
        {"name": "bad", "expression": "object.nope.x"},
        {"name": "worse", "expression": "variables.bad + 1"},
        {"name": "twice", "expression": "variables.key + variables.key"},
        {"name": "time", "expression": "timestamp('2020-01-01T00:00:00Z')"},
        {"name": "later", "expression": "variables.time + duration('1h') // an hour"},
        {"name": "keyed", "expression": "quantity(variables.key == 'v' ? '1Gi' : '1Ki')"},
        {"name": "broken", "expression": "quantity(variables.bad)"},
        {"name": "numbered", "expression": "['a', 'b'].transformMap(i, v, v + '!')"},
        {"name": "flags", "expression": "{true: 1, false: 2}"},
        {"name": "label", "expression": "format.dns1123Label()"},
        {"name": "endless", "expression": "1.0 / 0.0"},
        {"name": "many", "expression": "{1: timestamp('2020-01-01T00:00:00Z'), 2: variables.time}"},
    ]);
    let failed =
        |expression: &str, error: &str| format!("expression '{expression}' resulted in error: {error}");
    let bad = "composited variable \"bad\" fails to evaluate: no such key: nope";
    let cases = [
        ("variables.twice == 'vv'", String::new()),
        ("variables.key == 'v' || variables.bad == 1", String::new()),
        ("variables.bad == 1", failed("variables.bad == 1", bad)),
        (
            "variables.worse == 1",
            failed(
                "variables.worse == 1",
                &format!("composited variable \"worse\" fails to evaluate: {bad}"),
            ),
        ),
        (
            "variables.broken.isGreaterThan(variables.keyed)",
            failed(
                "variables.broken.isGreaterThan(variables.keyed)",
                &format!("composited variable \"broken\" fails to evaluate: {bad}"),
            ),
        ),
        // Values that JSON does not have stay what they are.
        (
            "variables.time < timestamp('2021-01-01T00:00:00Z')",
            String::new(),
        ),
        (
            "variables.later - variables.time == duration('3600s')",
            String::new(),
        ),
        ("variables.keyed.isGreaterThan(quantity('1Mi'))", String::new()),
        (
            "variables.numbered[0] == 'a!' && variables.numbered[1] == 'b!'",
            String::new(),
        ),
        (
            "variables.flags[true] == 1 && variables.flags[false] == 2",
            String::new(),
        ),
        (
            "variables.label.validate('Not_a_label').hasValue()",
            String::new(),
        ),
        ("variables.endless > 1.0", String::new()),
        ("variables.many[1] == variables.many[2]", String::new()),
        ("'variables.bad' != variables.key", String::new()),
        ("['a'].all(variables, variables == 'a')", String::new()),
    ];
    for (expression, expected) in cases {
        check(
            json!({"variables": variables, "validations": [{"expression": expression}]}),
            &expected,
        );
    }
}

#[test]
fn variables_without_end_are_refused() {
    let chain = |call: &str| -> Vec<Value> {
        (0..150)
            .map(|i| match i {
                0 => json!({"name": "v0", "expression": format!("{call}('1')")}),
                i => json!({"name": format!("v{i}"), "expression": format!("variables.v{0} + variables.v{0}", i - 1)}),
            })
            .collect()
    };
    for call in ["string", "duration"] {
        let spec =
            json!({"variables": chain(call), "validations": [{"expression": "variables.v149 == 'x'"}]});
        let answer = Scenario::create(configmap("v")).answer(spec);
        assert!(
            answer.contains("resulted in error") && answer.contains("more than 100 deep"),
            "{answer:.400}"
        );
    }
}

#[test]
fn what_grows_with_every_variable_is_refused_in_time() {
    let chain: Vec<Value> = (0..90)
        .map(|i| match i {
            0 => json!({"name": "v0", "expression": "['x']"}),
            i => json!({"name": format!("v{i}"), "expression": format!("[variables.v{0}, variables.v{0}]", i - 1)}),
        })
        .collect();
    let spec = json!({"variables": chain, "validations": [{"expression": "variables.v89.size() == 2"}]});
    let answer = Scenario::create(configmap("v")).answer(spec);
    assert!(answer.contains("cost limit exceeded"), "{answer:.400}");
}

#[test]
fn a_request_evaluates_only_so_many_expressions() {
    let param =
        |i: usize| json!({"kind": "ConfigMap", "metadata": {"name": format!("p{i}"), "namespace": "t"}});
    let answer = |params: usize| {
        let validations = vec![json!({"expression": "true"}); 100];
        let spec =
            json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": validations});
        let bindings = [binding(
            "b",
            json!({"policyName": "p", "paramRef": {"selector": {}}}),
        )];
        let scenario = Scenario {
            params: (0..params).map(param).collect(),
            ..Scenario::create(json!({}))
        };
        scenario
            .decide(&[policy("p", spec)], &bindings)
            .map_err(|denial| denial.message)
    };
    assert_eq!(answer(100), Ok(Vec::new()));
    let message =
        "validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(answer(101), Err(format!("{DENIED}{message}")));
}
