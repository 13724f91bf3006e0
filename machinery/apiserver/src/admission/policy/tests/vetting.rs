//! Which policies are refused, in the words of the real server.

use super::super::check_policy;
use super::*;

fn check(spec: Value, expected: &[&str]) {
    let errors: Vec<String> = check_policy(&policy("p", spec.clone()))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors, expected, "{spec}");
}

/// Checks the expression of a single validation against the detail of the error.
fn check_expression(expression: &str, detail: &str) {
    let error = format!("spec.validations[0].expression: Invalid value: {expression:?}: {detail}");
    let expected: &[&str] = if detail.is_empty() { &[] } else { &[&error] };
    check(json!({"validations": [{"expression": expression}]}), expected);
}

#[test]
fn names_must_mean_something() {
    let unknown = |place: &str, name: &str, line: &str, mark: &str| {
        format!(
            "compilation failed: ERROR: <input>:{place}: undeclared reference to '{name}' (in container '')\n | {line}\n | {mark}^"
        )
    };
    let undefined = |place: &str, name: &str, line: &str, mark: &str| {
        format!("compilation failed: ERROR: <input>:{place}: undefined field '{name}'\n | {line}\n | {mark}^")
    };
    let cases = [
        ("foo", unknown("1:1", "foo", "foo", "")),
        ("variables.x", unknown("1:1", "variables", "variables.x", "")),
        ("params.x == 1", unknown("1:1", "params", "params.x == 1", "")),
        (
            "object.foo(1)",
            unknown("1:11", "foo", "object.foo(1)", ".........."),
        ),
        ("now() == 1", unknown("1:4", "now", "now() == 1", "...")),
        (
            "request.foo == 1",
            undefined("1:8", "foo", "request.foo == 1", "......."),
        ),
        (
            "request.userInfo.foo == 1",
            undefined("1:17", "foo", "request.userInfo.foo == 1", "................"),
        ),
        (
            "namespaceObject.foo == 1",
            undefined("1:16", "foo", "namespaceObject.foo == 1", "..............."),
        ),
        (
            "object[0] + 1 == 2 && foo && bar",
            format!(
                "{}\nERROR: <input>:1:30: undeclared reference to 'bar' (in container '')\n | object[0] + 1 == 2 && foo && bar\n | .............................^",
                unknown(
                    "1:23",
                    "foo",
                    "object[0] + 1 == 2 && foo && bar",
                    "......................"
                )
            ),
        ),
        (
            "object.foo == 1 && request.name.startsWith('x') && has(request.namespace)",
            String::new(),
        ),
        ("object.items.all(foo, foo.bar == 1)", String::new()),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            String::new(),
        ),
        (
            "object.metadata.name.matches('^a') && namespaceObject.metadata.labels.a == 'b'",
            String::new(),
        ),
    ];
    for (expression, detail) in cases {
        check_expression(expression, &detail);
    }
}

#[test]
fn types_that_are_plain_to_see_must_fit() {
    let cases = [
        ("object.spec.x", "must evaluate to bool but got dyn"),
        ("object", "must evaluate to bool but got dyn"),
        ("object.spec['in'].x", "must evaluate to bool but got dyn"),
        ("1", "must evaluate to bool but got int"),
        ("'a'", "must evaluate to bool but got string"),
        ("size(object.x)", "must evaluate to bool but got int"),
        ("object.x.size()", "must evaluate to bool but got int"),
        ("!object.x", ""),
        ("object.x.size() == 1", ""),
        ("object.a || object.b", ""),
        ("'a' in object.x", ""),
        ("object.x.startsWith('a')", ""),
        ("object.x.exists(y, y == 1)", ""),
        ("true", ""),
    ];
    for (expression, detail) in cases {
        check_expression(expression, detail);
    }
    check(
        json!({"validations": [{"expression": "true", "messageExpression": "object.x"}]}),
        &[
            "spec.validations[0].messageExpression: Invalid value: \"object.x\": must evaluate to string but got dyn",
        ],
    );
    check(
        json!({"auditAnnotations": [{"key": "k", "valueExpression": "object.x"}]}),
        &[
            "spec.auditAnnotations[0].valueExpression: Invalid value: \"object.x\": must evaluate to one of [string null_type] but got dyn",
        ],
    );
}

#[test]
fn what_does_not_parse_is_refused() {
    for expression in ["object.spec.", "true &&", "has(object.x.foo) && (1", "'open"] {
        let errors = check_policy(&policy("p", json!({"validations": [{"expression": expression}]})));
        let [error] = errors.as_slice() else {
            panic!("{expression}: {errors:?}")
        };
        let start = format!("Invalid value: {expression:?}: compilation failed: ERROR: <input>:");
        assert!(error.message.starts_with(&start), "{}", error.message);
        assert!(
            error.message.contains(&format!("\n | {expression}\n | ")),
            "{}",
            error.message
        );
    }
}

#[test]
fn variables_exist_once_they_are_declared() {
    let variables = json!([
        {"name": "a", "expression": "object.x"},
        {"name": "b", "expression": "variables.a == 1 && variables.c"},
        {"name": "c", "expression": " "},
        {"name": "in", "expression": "1"},
        {"name": " ", "expression": "1"},
    ]);
    check(
        json!({"variables": variables, "validations": [{"expression": "variables.a == variables.z"}]}),
        &[
            "spec.variables[1].expression: Invalid value: \"variables.a == 1 && variables.c\": compilation failed: ERROR: <input>:1:30: undefined field 'c'\n | variables.a == 1 && variables.c\n | .............................^",
            "spec.variables[2].expression: Required value: expression is not specified",
            "spec.variables[3].name: Invalid value: \"in\": must be a valid CEL identifier",
            "spec.variables[4].name: Required value: name is not specified",
            "spec.validations[0].expression: Invalid value: \"variables.a == variables.z\": compilation failed: ERROR: <input>:1:25: undefined field 'z'\n | variables.a == variables.z\n | ........................^",
        ],
    );
}

#[test]
fn conditions_have_names_and_see_no_variables() {
    let conditions = json!([
        {"name": "a", "expression": " variables.a == 1"},
        {"name": "a", "expression": "params.x == 1"},
        {"expression": ""},
    ]);
    check(
        json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "variables": [{"name": "a", "expression": "1"}],
            "matchConditions": conditions,
            "validations": [{"expression": "params.x == 1", "messageExpression": "authorizer.path('/').check('get').reason()"}],
        }),
        &[
            "spec.matchConditions[0].expression: Invalid value: \"variables.a == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n | variables.a == 1\n | ^",
            "spec.matchConditions[1].name: Duplicate value: \"a\"",
            "spec.matchConditions[2].expression: Required value",
            "spec.matchConditions[2].name: Required value",
            "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | authorizer.path('/').check('get').reason()\n | ^",
        ],
    );
}
