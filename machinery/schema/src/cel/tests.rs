//! Tests of expressions on their own; rules are compared with the real server in `tests/vectors.rs`.

use serde_json::json;

use super::*;
use crate::CustomSchema;

#[test]
fn expressions_see_the_variables_they_are_given() {
    let object =
        json!({"metadata": {"name": "a", "labels": {"app": "x"}}, "spec": {"replicas": 3, "ports": [1, 2]}});
    let request = json!({"operation": "CREATE", "userInfo": {"username": "ann"}});
    for (expression, result) in [
        (
            "object.spec.replicas > 2 && request.operation == 'CREATE'",
            json!(true),
        ),
        (
            "object.metadata.labels['app'] + '-' + request.userInfo.username",
            json!("x-ann"),
        ),
        ("object.spec.ports.map(p, p * 2)", json!([2, 4])),
        ("has(object.spec.nothing)", json!(false)),
        ("has(object.spec.replicas.nothing)", json!(false)),
        ("object.?spec.nothing.orValue(7)", json!(7)),
        ("object.spec.?nothing.orValue(7)", json!(7)),
        ("object.?spec.?replicas.optMap(r, r + 1).orValue(0)", json!(4)),
        (
            "type(object.spec.replicas) == int && type(object.metadata) == map",
            json!(true),
        ),
        ("{'a': 1.5, 'b': [null]}", json!({"a": 1.5, "b": [null]})),
        ("duration('90s')", json!("90s")),
        ("'a.b'.replace('.', '-')", json!("a-b")),
    ] {
        let program = CelProgram::compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(
            program.eval(&[("object", &object), ("request", &request)]),
            Ok(result),
            "{expression}"
        );
    }
}

#[test]
fn evaluations_fail_with_a_reason() {
    let object = json!({"n": 0, "s": "x", "none": null, "l": [null]});
    for (expression, problem) in [
        ("object.missing", "no such key: missing"),
        ("1 / object.n", "division by zero"),
        ("object.s + 1", "no such overload"),
        ("nothing", "no such attribute(s): nothing"),
        ("object.none.field", "no such key: field"),
        ("object.none['field'].deeper == 1", "no such key: field"),
        ("object.n.field == 1", "no such key: field"),
        ("!object.s.field", "no such key: field"),
        ("object.l.field", "unsupported index type 'string' in list"),
        ("object.l.exists(x, x.field == 1)", "no such key: field"),
    ] {
        let program = CelProgram::compile(expression).unwrap();
        assert_eq!(
            program.eval(&[("object", &object)]),
            Err(problem.to_owned()),
            "{expression}"
        );
    }
    let program = CelProgram::compile("object.n").unwrap();
    assert_eq!(
        program.eval_bool(&[("object", &object)]),
        Err("cel expression must evaluate to a bool".to_owned())
    );
}

#[test]
fn what_the_engine_cannot_run_is_refused_or_reported() {
    assert!(
        CelProgram::compile("self.a >")
            .unwrap_err()
            .contains("Syntax error")
    );
    assert!(
        CelProgram::compile("v1.Pod{name: 'a'}")
            .unwrap_err()
            .contains("undeclared reference to")
    );
    assert!(
        CelProgram::compile(&"a".repeat(40_000))
            .unwrap_err()
            .contains("longer than")
    );
    for deep in [
        "(".repeat(16_000),
        "[".repeat(8000) + &"]".repeat(8000),
        "1+".repeat(8000) + "1",
    ] {
        assert!(CelProgram::compile(&deep).is_err(), "{}", &deep[..10]);
    }
    let sum = "1 + ".repeat(100) + "1";
    assert_eq!(CelProgram::compile(&sum).unwrap().eval(&[]), Ok(json!(101)));
    let undeclared = |source: &str| CelProgram::compile(source).unwrap().undeclared(&["self"]);
    assert_eq!(undeclared("self.x == other"), Some("other".to_owned()));
    assert_eq!(undeclared("foo(self)"), Some("foo".to_owned()));
    assert_eq!(undeclared("self.bar()"), Some("bar".to_owned()));
    assert_eq!(
        undeclared("math.greatest(self.all(x, x > 1) ? 1 : 2, 3) > 2 && sets.contains(self, [1])"),
        None
    );
}

#[test]
fn nothing_runs_for_long() {
    let list = json!((0..2000).collect::<Vec<_>>());
    for expression in [
        "l.all(a, l.all(b, l.all(c, a + b + c >= 0)))",
        "lists.range(1000000000).size() > 0",
        "s.replace('', s).replace('', s).size() > 0",
    ] {
        let program = CelProgram::compile(expression).unwrap();
        let error = program
            .eval(&[("l", &list), ("s", &json!("x".repeat(5000)))])
            .unwrap_err();
        assert_eq!(
            error, "operation cancelled: actual cost limit exceeded",
            "{expression}"
        );
    }
    let loops = format!("l{}", ".map(x, [x, x])".repeat(40));
    assert!(CelProgram::compile(&loops).unwrap_err().contains("loops"));
}

#[test]
fn patterns_are_in_the_servers_dialect() {
    for (expression, wanted) in [
        ("'a1_'.matches('^\\\\w+$')", true),
        ("'\u{e9}'.matches('\\\\w')", false),
        ("'\u{a0}'.matches('\\\\s')", false),
        ("matches('b', 'a|b')", true),
        ("['a', 'b', 'ab'].all(x, x.matches('^' + x + '$'))", true),
    ] {
        let program = CelProgram::compile(expression).unwrap();
        assert_eq!(program.eval(&[]), Ok(json!(wanted)), "{expression}");
    }
}

#[test]
fn patterns_count_against_the_budget() {
    // One pattern for many texts is compiled once; many patterns are not affordable.
    let texts: Vec<String> = (0..3000).map(|i| format!("example.com/name-{i}")).collect();
    let texts = json!(texts);
    let affordable =
        CelProgram::compile("l.all(x, x.matches('^([a-z]+[.])*[a-z]+/[a-z]([-a-z0-9]{0,61}[a-z0-9])?$'))");
    assert_eq!(affordable.unwrap().eval(&[("l", &texts)]), Ok(json!(true)));
    let error = CelProgram::compile("l.all(x, x.matches(x + '[a-z]{0,60}[0-9]{0,60}$') || true)")
        .unwrap()
        .eval(&[("l", &texts)])
        .unwrap_err();
    assert_eq!(error, "operation cancelled: actual cost limit exceeded");
}

#[test]
fn a_rule_that_costs_too_much_ends_the_validation() {
    let rule = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
    let schema = CustomSchema::new(&json!({"type": "object", "properties": {"l": {
        "type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}, {"rule": "false"}]
    }}}))
    .unwrap();
    let errors = schema.validate(&json!({"l": (0..2000).collect::<Vec<_>>()}), None);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!(
            "l: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation \
             rules will be run due to call cost exceeds limit for rule: {rule}"
        )]
    );
}

#[test]
fn programs_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<CelProgram>();
    shared::<CustomSchema>();
    let program = CelProgram::compile("x * 2").unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let program = &program;
            scope.spawn(move || assert_eq!(program.eval(&[("x", &json!(n))]), Ok(json!(n * 2))));
        }
    });
}
