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
        ("string(object.missing)", "no such key: missing"),
        ("size(string(size(object.missing)))", "no such key: missing"),
        (
            "matches(object.missing, string(object.none))",
            "no such key: missing",
        ),
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
}

#[test]
fn texts_that_are_meant_to_hurt_are_refused() {
    for hostile in [
        "(".repeat(80) + "1",
        "[{(".repeat(2_000),
        "a?".repeat(5_000),
        "!-".repeat(8_000),
        "x.".repeat(8_000) + "y",
        "f(".repeat(100) + &")".repeat(100),
        "a ? b : ".repeat(200) + "c",
        "'".repeat(15_999),
        "\u{0}".repeat(10_000),
        "1 1 ".repeat(4_000),
        "- ".repeat(8_000) + "x y",
    ] {
        let refused = CelProgram::compile(&hostile).unwrap_err();
        assert!(refused.contains("ERROR: <input>:1:"), "{refused:.200}");
    }
    // Long is not the same as deep.
    let long = "x == 1 || ".repeat(1_000) + "x == 2";
    assert_eq!(
        CelProgram::compile(&long).unwrap().eval(&[("x", &json!(2))]),
        Ok(json!(true))
    );
}

#[test]
fn literals_and_operators_mean_what_they_say() {
    for (expression, result) in [
        ("!!true", json!(true)),
        ("string(true) + string(1) + string('x')", json!("true1x")),
        ("- -3 == 3 && --3 == 3 && -(-3) == 3", json!(true)),
        ("2 - 1 - 1 == 0 && 2 -1 == 1 && 7 / 2 * 2 == 6", json!(true)),
        ("1 + 2 * 3 - 4 % 3", json!(6)),
        ("true || false && false", json!(true)),
        ("false ? 1 : true ? 2 : 3", json!(2)),
        ("-9223372036854775808 < 0", json!(true)),
        ("0x1F + 1", json!(32)),
        ("1e3 + .5 + 1.25", json!(1001.75)),
        ("r'a\\d' + 'b\\n' + \"c'\"", json!("a\\db\nc'")),
        ("'''a'b\nc''' + \"\"\"d\"\"\"", json!("a'b\ncd")),
        ("'\\x41\\u00fc\\U0001F600\\101'", json!("A\u{fc}\u{1f600}A")),
        ("b'\\xff' == b'\\377' && b'ab'.size() == 2", json!(true)),
        ("[1, 2,] == [1, 2] && {'a': 1,} == {'a': 1}", json!(true)),
        ("1 in [1] && !(2 in [1]) && 'a' in {'a': 1}", json!(true)),
        ("x.y // a comment\n + 1", json!(3)),
        ("{'a': {'b': [5]}}.a.b[0]", json!(5)),
        ("{'a': 1}.all(k, v, k == 'a' && v == 1)", json!(true)),
        ("[7, 8].exists(i, v, i == 1 && v == 8)", json!(true)),
        ("[7, 8].existsOne(i, v, v > 7)", json!(true)),
        ("[7, 8].transformList(i, v, v > 7, i + v)", json!([9])),
        (
            "{'a': 1, 'b': 2}.transformMap(k, v, v * 2)",
            json!({"a": 2, "b": 4}),
        ),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", json!({"x": "a"})),
        (
            "[1].transformList(i, v, [2].transformList(j, w, i + v + j + w))",
            json!([[3]]),
        ),
    ] {
        let program = CelProgram::compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let x = json!({"y": 2});
        assert_eq!(program.eval(&[("x", &x)]), Ok(result), "{expression}");
    }
    for (expression, at) in [
        ("9223372036854775808 > 0", "1:1: invalid int literal"),
        ("a.b.in", "1:5: Syntax error"),
        ("a = 1", "1:3: Syntax error"),
        ("has(a)", "1:5: invalid argument to has() macro"),
        ("a.all(b.c, true)", "1:8: argument must be a simple name"),
        ("if == 1", "1:1: reserved identifier: if"),
    ] {
        let refused = CelProgram::compile(expression).unwrap_err();
        assert!(
            refused.contains(&format!("<input>:{at}")),
            "{expression}: {refused}"
        );
    }
}

#[test]
fn types_are_checked_before_anything_runs() {
    let mut scope = Scope::default();
    scope.declare("self", CelType::Dyn);
    scope.declare("text", CelType::Text);
    scope.declare("texts", CelType::list(CelType::Text));
    let found = |source: &str| match scope.check(source) {
        Ok(ty) => ty.output_name(),
        Err(problem) => problem.lines().next().unwrap_or("").to_owned(),
    };
    for (source, wanted) in [
        ("self.x == 1", "bool"),
        ("self.x + 1", "int"),
        ("self.x + self.y", "dyn"),
        ("texts.map(t, t.size())", "list(int)"),
        ("texts.filter(t, t == 'a')", "list(string)"),
        ("{'a': texts}", "map(string, list(string))"),
        ("true ? text : self.x", "dyn"),
        ("self.?x.orValue('a')", "dyn"),
        ("optional.of(text)", "optional_type(string)"),
        (
            "timestamp('2020-01-01T00:00:00Z') - duration('1h')",
            "google.protobuf.Timestamp",
        ),
        ("null", "null_type"),
        ("lists.range(3)", "list(int)"),
        ("texts.transformMap(i, t, t.size())", "map(int, int)"),
        (
            "math.greatest(1, 2)",
            "ERROR: <input>:1:1: undeclared reference to 'math' (in container '')",
        ),
        (
            "foo(self)",
            "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')",
        ),
        (
            "self.bar()",
            "ERROR: <input>:1:9: undeclared reference to 'bar' (in container '')",
        ),
        (
            "text + 1",
            "ERROR: <input>:1:6: found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (
            "text.startsWith(1)",
            "ERROR: <input>:1:16: found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        (
            "[1, 'a']",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'",
        ),
        (
            "text.all(c, true)",
            "ERROR: <input>:1:1: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "text.foo",
            "ERROR: <input>:1:5: type 'string' does not support field selection",
        ),
        (
            "text.matches('[')",
            "ERROR: <input>:1:14: invalid matches argument",
        ),
        (
            "duration('1') == self",
            "ERROR: <input>:1:10: invalid duration argument",
        ),
    ] {
        assert_eq!(found(source), wanted, "{source}");
    }
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
