//! What policies say about requests, in the words of the real server.

use super::super::compile::Reason;
use super::*;

pub(super) const DENIED: &str = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";

/// Checks what a policy answers on the creation of a ConfigMap; an empty answer allows it.
pub(super) fn check(spec: Value, expected: &str) {
    let answer = Scenario::create(configmap("v")).answer(spec.clone());
    let expected = if expected.is_empty() {
        "allowed".to_owned()
    } else {
        format!("{DENIED}{expected}")
    };
    assert_eq!(answer, expected, "{spec}");
}

#[test]
fn messages_come_from_the_expression_the_text_or_the_rule() {
    let long = "x".repeat(6000);
    let cases = [
        (json!({"expression": "true"}), ""),
        (
            json!({"expression": " object.data.k ==\n 'x' "}),
            "failed expression: object.data.k ==\n 'x'",
        ),
        (json!({"expression": "false", "message": " hello "}), "hello"),
        (
            json!({"expression": "false", "message": "no", "messageExpression": "request.operation + ' ' + request.name"}),
            "CREATE c",
        ),
        (
            json!({"expression": "false", "message": "no", "messageExpression": "string(object.nope)"}),
            "no",
        ),
        (
            json!({"expression": "false", "message": "no", "messageExpression": "'  '"}),
            "no",
        ),
        (
            json!({"expression": "false", "message": "no", "messageExpression": "'a\\nb'"}),
            "no",
        ),
        (
            json!({"expression": "false", "message": "no", "messageExpression": format!("'{long}'")}),
            "no",
        ),
        (
            json!({"expression": "false", "messageExpression": "1"}),
            "failed expression: false",
        ),
    ];
    for (validation, expected) in cases {
        check(json!({"validations": [validation]}), expected);
    }
}

#[test]
fn reasons_give_the_code() {
    let cases = [
        (Value::Null, Reason::Invalid, ("Invalid", 422)),
        (json!("Invalid"), Reason::Invalid, ("Invalid", 422)),
        (json!("Forbidden"), Reason::Forbidden, ("Forbidden", 403)),
        (json!("Unauthorized"), Reason::Unauthorized, ("Unauthorized", 401)),
        (
            json!("RequestEntityTooLarge"),
            Reason::RequestEntityTooLarge,
            ("RequestEntityTooLarge", 413),
        ),
    ];
    for (name, reason, status) in cases {
        let spec = json!({"validations": [{"expression": "false", "reason": name}]});
        let bound = [binding("b", json!({"policyName": "p"}))];
        let denial = Scenario::create(json!({}))
            .decide(&[policy("p", spec)], &bound)
            .expect_err("denied");
        assert_eq!((denial.reason, denial.reason.status()), (reason, status));
    }
}

#[test]
fn failures_follow_the_failure_policy() {
    let cases = [
        ("object.data.zz == '1'", "no such key: zz"),
        ("oldObject.x == 1", "no such key: x"),
        ("object.data.k + 1 == 2", "no such overload"),
        ("object.data.k < 2", "no such overload"),
        ("params.data.x == 1", "no such key: data"),
        (
            "namespaceObject.metadata.labels['none'] == ''",
            "no such key: none",
        ),
        (
            "authorizer.path(' ').check('get').allowed()",
            "path must not be empty",
        ),
        (
            "authorizer.group('').resource('').check('get').allowed()",
            "resource must not be empty",
        ),
        (
            "authorizer.serviceAccount('t', 'Bad').path('/x').check('get').allowed()",
            "Invalid service account name",
        ),
        (
            "authorizer.serviceAccount('no.dots', 'a').path('/x').check('get').allowed()",
            "Invalid service account namespace",
        ),
        // A third question costs too much.
        (
            "['a', 'b', 'c'].all(x, authorizer.path('/x').check(x).allowed())",
            "operation cancelled: actual cost limit exceeded",
        ),
    ];
    for (expression, error) in cases {
        let spec = json!({"validations": [{"expression": expression, "reason": "Forbidden"}]});
        check(
            spec.clone(),
            &format!("expression '{expression}' resulted in error: {error}"),
        );
        let mut spec = spec;
        spec["failurePolicy"] = json!("Ignore");
        check(spec, "");
    }
    // What is broken was refused when it was written; if it is there all the same, it fails.
    let broken = Scenario::create(json!({})).answer(json!({"validations": [{"expression": "object."}]}));
    assert!(
        broken.starts_with(&format!("{DENIED}compilation error: compilation failed: ")),
        "{broken}"
    );
}

#[test]
fn errors_that_do_not_matter_are_absorbed() {
    for expression in [
        "object.data.k == 'v' || object.nope == 1",
        "object.nope == 1 || object.data.k == 'v'",
    ] {
        check(json!({"validations": [{"expression": expression}]}), "");
    }
}

#[test]
fn expressions_see_the_request_and_its_surroundings() {
    for expression in [
        "object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "oldObject == null",
        "params == null",
        "request.namespace == 't'",
        "namespaceObject.metadata.labels.team == 'a'",
        "!has(request.subResource)",
        "!has(oldObject.data)",
        "oldObject == null || oldObject.data.k == 'v'",
        "oldObject != null ? oldObject.data.k == 'x' : true",
    ] {
        check(json!({"validations": [{"expression": expression}]}), "");
    }
    let delete = Scenario::delete(configmap("v"));
    for expression in [
        "object == null",
        "oldObject.data.k == 'v'",
        "request.operation == 'DELETE'",
    ] {
        assert_eq!(
            delete.answer(json!({"validations": [{"expression": expression}]})),
            "allowed",
            "{expression}"
        );
    }
}

#[test]
fn conditions_decide_whether_a_policy_applies() {
    let nope = |key: &str| format!("object.{key} == 1");
    let failed = |key: &str| format!("expression '{}' resulted in error: no such key: {key}", nope(key));
    let cases = [
        (
            vec!["object.data.k == 'v'".to_owned()],
            "no".to_owned(),
            "no".to_owned(),
        ),
        (
            vec!["object.data.k == 'x'".to_owned()],
            String::new(),
            String::new(),
        ),
        // One that does not hold outweighs those that fail.
        (vec![nope("a"), "false".to_owned()], String::new(), String::new()),
        (vec![nope("a"), "true".to_owned()], failed("a"), String::new()),
        (
            vec![nope("a"), nope("b"), nope("a")],
            format!("[{}, {}]", failed("a"), failed("b")),
            String::new(),
        ),
        // The namespace is hidden from them.
        (
            vec!["namespaceObject == null".to_owned()],
            "no".to_owned(),
            "no".to_owned(),
        ),
    ];
    for (conditions, fail, ignore) in cases {
        for (failure_policy, expected) in [("Fail", &fail), ("Ignore", &ignore)] {
            let conditions: Vec<Value> = conditions
                .iter()
                .map(|c| json!({"name": "x", "expression": c}))
                .collect();
            check(
                json!({
                    "failurePolicy": failure_policy,
                    "matchConditions": conditions,
                    "validations": [{"expression": "false", "message": "no"}],
                }),
                expected,
            );
        }
    }
}

#[test]
fn warnings_travel_and_audit_is_silent() {
    let spec = json!({"validations": [
        {"expression": "true"},
        {"expression": "false"},
        {"expression": "false"},
        {"expression": "object.nope == 1"},
    ]});
    let policies = [policy("p", spec)];
    let act = |actions: Value| {
        let bindings = [binding(
            "b",
            json!({"policyName": "p", "validationActions": actions}),
        )];
        Scenario::create(configmap("v")).decide(&policies, &bindings)
    };
    let start = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': ";
    let warnings = [
        format!("{start}failed expression: false"),
        format!("{start}expression 'object.nope == 1' resulted in error: no such key: nope"),
    ];
    assert_eq!(act(json!(["Warn", "Audit"])), Ok(warnings.to_vec()));
    assert_eq!(act(json!(["Audit"])), Ok(Vec::new()));
    assert!(act(json!(["Audit", "Deny"])).is_err());
}

#[test]
fn warnings_are_cut_to_fit_into_headers() {
    let message = |i: usize| format!("{i}{}", "x".repeat(3000));
    let validations: Vec<Value> = (0..40)
        .map(|i| json!({"expression": "false", "message": message(i)}))
        .collect();
    let bindings = [binding(
        "b",
        json!({"policyName": "p", "validationActions": ["Warn"]}),
    )];
    let warnings = Scenario::create(json!({}))
        .decide(&[policy("p", json!({"validations": validations}))], &bindings)
        .unwrap();
    let total: usize = warnings.iter().map(String::len).sum();
    assert!(
        warnings[0].len() > 3000 && warnings[1].len() == 256 && total <= 4096,
        "{total}"
    );
}

#[test]
fn audit_annotations_that_fail_refuse() {
    let cases = [
        ("'x'", "Fail", ""),
        (
            "object.nope",
            "Fail",
            "expression 'object.nope' resulted in error: no such key: nope",
        ),
        ("object.nope", "Ignore", ""),
        ("null", "Fail", ""),
    ];
    for (expression, failure_policy, expected) in cases {
        let annotations = json!([{"key": "k", "valueExpression": expression}]);
        check(
            json!({"failurePolicy": failure_policy, "auditAnnotations": annotations}),
            expected,
        );
    }
}

#[test]
fn parameters_are_found_by_name_or_selector() {
    let param = |kind: &str, namespace: &str, name: &str, x: &str| {
        json!({"kind": kind, "apiVersion": "v1", "data": {"x": x},
            "metadata": {"name": name, "namespace": namespace, "labels": {"of": x}}})
    };
    let world = |namespace: &'static str| Scenario {
        namespace,
        params: vec![
            param("ConfigMap", "t", "p1", "v"),
            param("ConfigMap", "t", "p2", "w"),
            param("ConfigMap", "u", "p3", "w"),
            param("Limit", "", "l", "w"),
        ],
        ..Scenario::create(configmap("v"))
    };
    let denied = |name: &str| format!("{DENIED}{name} says no");
    let none = format!(
        "{DENIED}failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    );
    let cases: [(&str, &str, Value, String); 13] = [
        ("ConfigMap", "t", json!({"name": "p1"}), "allowed".into()),
        ("ConfigMap", "t", json!({"name": "p2"}), denied("p2")),
        ("ConfigMap", "t", json!({"name": "p3", "namespace": "u"}), denied("p3")),
        ("ConfigMap", "t", json!({"name": "p3", "parameterNotFoundAction": "Allow"}), "allowed".into()),
        ("ConfigMap", "t", json!({"name": "p3", "parameterNotFoundAction": "Deny"}), none.clone()),
        ("ConfigMap", "t", json!({"selector": {}}), denied("p2")),
        ("ConfigMap", "t", json!({"selector": {"matchLabels": {"of": "v"}}}), "allowed".into()),
        (
            "ConfigMap",
            "t",
            json!({"selector": {"matchLabels": {"of": "x"}}, "parameterNotFoundAction": "Deny"}),
            none,
        ),
        (
            "ConfigMap",
            "",
            json!({"name": "p1"}),
            format!("{DENIED}failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"),
        ),
        ("Limit", "t", json!({"name": "l"}), denied("l")),
        (
            "Limit",
            "t",
            json!({"name": "l", "namespace": "t"}),
            format!("{DENIED}failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"),
        ),
        (
            "ConfigMap",
            "t",
            Value::Null,
            format!("{DENIED}expression 'params.data.x == object.data.k' resulted in error: no such key: data"),
        ),
        (
            "Unknown",
            "t",
            json!({"name": "p1"}),
            "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource \
             referenced by paramKind: '/v1, Kind=Unknown'"
                .into(),
        ),
    ];
    for (kind, namespace, reference, expected) in cases {
        let spec = json!({
            "paramKind": {"apiVersion": "v1", "kind": kind},
            "validations": [{
                "expression": "params.data.x == object.data.k",
                "messageExpression": "string(params.metadata.name) + ' says no'",
            }],
        });
        let bindings = [binding("b", json!({"policyName": "p", "paramRef": reference}))];
        let answer = world(namespace).decide(&[policy("p", spec)], &bindings);
        let answer = answer.map_or_else(|denial| denial.message, |_| "allowed".to_owned());
        assert_eq!(answer, expected, "{kind} {reference}");
    }
}

#[test]
fn the_first_policy_by_name_answers() {
    let refuse = |name: &str| policy(name, json!({"validations": [{"expression": "false"}]}));
    let bind = |name: &str| binding(name, json!({"policyName": name}));
    let denial = Scenario::create(json!({}))
        .decide(&[refuse("b"), refuse("a")], &[bind("b"), bind("a")])
        .expect_err("denied");
    assert_eq!(
        denial.message,
        "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: failed expression: false"
    );
}

#[test]
fn expressions_ask_what_is_allowed() {
    let reasons = [
        ("authorizer.path('/healthz').check('get')", "get /healthz"),
        (
            "authorizer.group('apps').resource('deployments').check('list')",
            "list apps|deployments|||",
        ),
        (
            "authorizer.group('').resource('pods').subresource('log').namespace('t').name('p').check('get')",
            "get |pods|log|t|p",
        ),
        (
            "authorizer.group('').resource('pods').labelSelector('a=b').fieldSelector('c=d').check('list')",
            "list |pods|||",
        ),
        (
            "authorizer.serviceAccount('t', 'robot').group('').resource('pods').check('get')",
            "t/robot get |pods|||",
        ),
        (
            "authorizer.requestResource.check('custom')",
            "custom |configmaps||t|c",
        ),
        (
            "authorizer.requestResource.name('other').check('get')",
            "get |configmaps||t|other",
        ),
    ];
    for (question, reason) in reasons {
        let holds = format!("{question}.reason() == '{reason}'");
        check(json!({"validations": [{"expression": holds}]}), "");
    }
    for holds in [
        "authorizer.path('/x').check('get').allowed()",
        "!authorizer.path('/x').check('no').allowed()",
        "authorizer.path('/x').check('fail').errored() && authorizer.path('/x').check('fail').error() == 'broken'",
        "!authorizer.path('/x').check('get').errored() && authorizer.path('/x').check('get').error() == ''",
        "[authorizer].all(a, a.path('/x').check('get').allowed())",
    ] {
        check(json!({"validations": [{"expression": holds}]}), "");
    }
    // Conditions may ask, and variables.
    check(
        json!({
            "matchConditions": [{"name": "a", "expression": "authorizer.path('/x').check('no').allowed()"}],
            "validations": [{"expression": "false"}],
        }),
        "",
    );
    check(
        json!({
            "variables": [
                {"name": "pods", "expression": "authorizer.group('').resource('pods')"},
                {"name": "may", "expression": "variables.pods.check('no').allowed()"},
            ],
            "validations": [
                {"expression": "variables.pods.check('get').allowed() && !variables.may"},
                {"expression": "variables.may", "message": "may not"},
            ],
        }),
        "may not",
    );
    // Annotations may not.
    check(
        json!({
            "auditAnnotations": [{"key": "k", "valueExpression": "authorizer.path('/x').check('get').reason()"}],
        }),
        "expression 'authorizer.path('/x').check('get').reason()' resulted in error: no such attribute(s): authorizer",
    );
}

#[test]
fn a_refusal_comes_with_the_warnings_of_the_others() {
    let rule = |name: &str| {
        policy(
            name,
            json!({"validations": [{"expression": "false", "message": name}]}),
        )
    };
    let bindings = [
        binding("deny", json!({"policyName": "a"})),
        binding(
            "warn",
            json!({"policyName": "a", "validationActions": ["Warn", "Audit"]}),
        ),
        binding("late", json!({"policyName": "b"})),
        binding("later", json!({"policyName": "b", "validationActions": ["Warn"]})),
    ];
    let outcome = Scenario::create(json!({})).outcome(&[rule("a"), rule("b")], &bindings);
    let denial = outcome.denial.expect("denied");
    assert_eq!(
        denial.message,
        "ValidatingAdmissionPolicy 'a' with binding 'deny' denied request: a"
    );
    assert_eq!(
        outcome.warnings,
        [
            "Validation failed for ValidatingAdmissionPolicy 'a' with binding 'warn': a",
            "Validation failed for ValidatingAdmissionPolicy 'b' with binding 'later': b",
        ]
    );
}
