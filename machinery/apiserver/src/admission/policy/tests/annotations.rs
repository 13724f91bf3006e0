//! What policies have noted in the audit log.

use super::*;

#[test]
fn audit_annotations_are_noted_once_for_each_value() {
    let param = |name: &str, x: &str| json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"x": x}, "metadata": {"name": name, "namespace": "t"}});
    let world = Scenario {
        params: vec![param("p1", "v"), param("p2", "w"), param("p3", "v")],
        ..Scenario::create(configmap("v"))
    };
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "failurePolicy": "Fail",
        "auditAnnotations": [
            {"key": "none", "valueExpression": "null"},
            {"key": "blank", "valueExpression": "'  '"},
            {"key": "fails", "valueExpression": "object.nope"},
            {"key": "seen", "valueExpression": "'  ' + params.data.x + ' '"},
        ],
    });
    let bind = |name: &str| {
        let param = json!({"name": name, "parameterNotFoundAction": "Allow"});
        binding(
            name,
            json!({"policyName": "p", "paramRef": param, "validationActions": ["Audit"]}),
        )
    };
    let bindings = ["p1", "p2", "p3"].map(bind);
    let outcome = world.outcome(&[policy("p", spec)], &bindings);
    // One that fails refuses the request, and keeps nobody from noting the others.
    assert!(outcome.denial.is_some());
    let noted: Vec<(&str, &str)> = outcome
        .annotations
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(noted, [("p/seen", "v, w")]);
}

#[test]
fn long_audit_annotations_are_cut() {
    let spec = json!({"auditAnnotations": [{"key": "k", "valueExpression": "'a' + object.data.x"}]});
    let world = Scenario::create(json!({"data": {"x": "é".repeat(6000)}}));
    let outcome = world.outcome(&[policy("p", spec)], &[binding("b", json!({"policyName": "p"}))]);
    let noted = &outcome.annotations["p/k"];
    assert_eq!(noted.len(), 10 * 1024 - 1);
    assert!(noted.ends_with('é'));
}

#[test]
fn the_first_failure_of_a_binding_that_audits_is_noted() {
    let key = "validation.policy.admission.k8s.io/validation_failure";
    let spec = json!({"validations": [
        {"expression": "true"},
        {"expression": "1 > 2", "message": "<no>"},
        {"expression": "false", "message": "never"},
    ]});
    let noted = |actions: Value| {
        let bound = binding("b", json!({"policyName": "p", "validationActions": actions}));
        let outcome = Scenario::create(configmap("v")).outcome(&[policy("p", spec.clone())], &[bound]);
        (
            outcome.denial.is_some(),
            outcome.annotations.get(key).cloned().unwrap_or_default(),
        )
    };
    let told = |actions: &str| {
        format!(
            r#"[{{"message":"\u003cno\u003e","policy":"p","binding":"b","expressionIndex":1,"validationActions":{actions}}}]"#
        )
    };
    assert_eq!(noted(json!(["Audit"])), (false, told(r#"["Audit"]"#)));
    assert_eq!(
        noted(json!(["Deny", "Audit"])),
        (true, told(r#"["Deny","Audit"]"#))
    );
    assert_eq!(noted(json!(["Warn"])), (false, String::new()));
}
