use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn error_of(text: &str) -> String {
    from_json(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn numbers_are_integers_where_they_fit_and_floats_elsewhere() {
    let cases = [
        ("1", json!(1)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9223372036854775807", json!(i64::MAX)),
        ("9223372036854775808", json!(9223372036854775808.0_f64)),
        ("1.0", json!(1.0)),
        ("1e3", json!(1000.0)),
        ("-0", json!(0)),
    ];
    for (text, expected) in cases {
        let value = from_json(text.as_bytes()).expect(text).value;
        assert_eq!(value, expected, "{text}");
        assert_eq!(value.is_f64(), expected.is_f64(), "{text}");
    }
}

#[test]
fn of_duplicate_keys_the_last_wins_and_each_path_is_told_once() {
    let text = r#"{"data":{"a":"1","a":"2","a":"3"},
        "spec":{"containers":[{"name":"x"},{"name":"y","name":"z"}]},"data":{"b":"4"}}"#;
    let decoded = from_json(text.as_bytes()).unwrap();
    assert_eq!(
        decoded.value,
        json!({"data": {"b": "4"}, "spec": {"containers": [{"name": "x"}, {"name": "z"}]}})
    );
    assert_eq!(decoded.duplicates, ["data.a", "spec.containers[1].name", "data"]);
}

#[test]
fn the_list_of_duplicates_is_bounded() {
    let pairs: Vec<String> = (0..300).map(|i| format!(r#""k{i}":1,"k{i}":2"#)).collect();
    let decoded = from_json(format!("{{{}}}", pairs.join(",")).as_bytes()).unwrap();
    assert_eq!(decoded.duplicates.len(), MAX_DUPLICATES);
    assert_eq!(decoded.value["k299"], 2);
}

#[test]
fn errors_read_as_in_go() {
    let cases = [
        ("", "unexpected end of JSON input"),
        (" \n", "unexpected end of JSON input"),
        (
            "{bad",
            "invalid character 'b' looking for beginning of object key string",
        ),
        (
            "{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string",
        ),
        ("{\"a\"", "unexpected end of JSON input"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        (
            "{\"a\":1 \"b\"}",
            "invalid character '\"' after object key:value pair",
        ),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("{}{}", "invalid character '{' after top-level value"),
        ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ("tru", "unexpected end of JSON input"),
        ("01", "invalid character '1' after top-level value"),
        ("-x", "invalid character 'x' in numeric literal"),
        (
            "1.x",
            "invalid character 'x' after decimal point in numeric literal",
        ),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("\"a\nb\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        (
            "\"\\u00g0\"",
            "invalid character 'g' in \\u hexadecimal character escape",
        ),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        (
            "\u{0}",
            "invalid character '\\x00' looking for beginning of value",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error_of(text), expected, "{text:?}");
    }
}

#[test]
fn depth_is_bounded_by_an_error_and_not_by_the_stack() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let deepest = from_json(nested(MAX_DEPTH).as_bytes())
        .expect("the greatest depth decodes")
        .value;
    assert_eq!(depth(&deepest), MAX_DEPTH);
    assert_eq!(
        from_json(nested(MAX_DEPTH + 1).as_bytes()),
        Err(DecodeError::TooDeep)
    );
    assert_eq!(
        from_json("{\"a\":".repeat(1_000_000).as_bytes()),
        Err(DecodeError::TooDeep)
    );
    assert_eq!(
        depth(&from_yaml(nested(MAX_DEPTH).as_bytes()).unwrap().value),
        MAX_DEPTH
    );
    assert!(from_yaml(nested(MAX_DEPTH + 1).as_bytes()).is_err());
    assert!(from_yaml(nested(1_000_000).as_bytes()).is_err());
    let block = |levels: usize| {
        (0..levels)
            .map(|level| " ".repeat(level) + "a:\n")
            .collect::<String>()
    };
    assert_eq!(
        depth(&from_yaml(block(MAX_DEPTH).as_bytes()).unwrap().value),
        MAX_DEPTH
    );
    assert!(from_yaml(block(5_000).as_bytes()).is_err());
}

#[test]
fn yaml_is_read_as_kubernetes_reads_it() {
    let text = "\
a: yes
b: off
c: 'yes'
d: 0777
e: 0x1F
f: 1.5
g: ~
h: |
  text
i: [x, 1, true]
j:
1: one
base: &base {k: v}
merged:
  <<: *base
  l: w
date: 2024-01-02
";
    let decoded = from_yaml(text.as_bytes()).unwrap();
    assert_eq!(
        decoded.value,
        json!({
            "a": true, "b": false, "c": "yes", "d": 511, "e": 31, "f": 1.5, "g": null, "h": "text\n",
            "i": ["x", 1, true], "j": null, "1": "one", "base": {"k": "v"}, "merged": {"k": "v", "l": "w"},
            "date": "2024-01-02",
        })
    );
    assert!(decoded.duplicates.is_empty());
}

#[test]
fn yaml_duplicates_are_told_and_the_last_wins() {
    let decoded = from_yaml(b"data:\n  a: 1\n  a: 2\nlist:\n- {x: 1, x: 3}\n").unwrap();
    assert_eq!(decoded.value, json!({"data": {"a": 2}, "list": [{"x": 3}]}));
    assert!(decoded.duplicates.is_empty());
    let expected = [
        r#"line 3: key "a" already set in map"#,
        r#"line 5: key "x" already set in map"#,
    ];
    assert_eq!(decoded.repeats, expected);
}

#[test]
fn a_repeated_key_is_told_by_the_line_of_its_value() {
    let text = "a:\n  k: 1\n  k: 2\n  k: 3\na:\n- {x: [1]}\nb: &b {c: d}\nb: *b\n";
    let expected = [
        r#"line 3: key "k" already set in map"#,
        r#"line 4: key "k" already set in map"#,
        r#"line 6: key "a" already set in map"#,
        r#"line 8: key "b" already set in map"#,
    ];
    assert_eq!(from_yaml(text.as_bytes()).unwrap().repeats, expected);
    let json = from_yaml(br#"{"a": {"b": 1, "b": 2}}"#).unwrap();
    assert_eq!(json.repeats, [r#"line 1: key "b" already set in map"#]);
    let merged = from_yaml(b"base: &base {k: v}\nmerged: {<<: *base, k: w}\n").unwrap();
    assert!(merged.repeats.is_empty(), "{:?}", merged.repeats);
}

#[test]
fn what_starts_with_a_brace_is_json() {
    assert_eq!(from_yaml(b" {\"a\": 1}").unwrap().value, json!({"a": 1}));
    assert!(matches!(from_yaml(b"{a: 1}"), Err(DecodeError::Json(_))));
}

#[test]
fn yaml_refuses_what_is_not_one_document() {
    for text in ["a: 1\n---\nb: 2\n", "a: [1", "a: b: c", "\t- x: [", "a: .inf"] {
        assert!(
            matches!(from_yaml(text.as_bytes()), Err(DecodeError::Yaml(_))),
            "{text:?}"
        );
    }
    assert_eq!(from_yaml(b"\n"), Err(DecodeError::Empty));
    let error = from_yaml(b"a: [1").unwrap_err().to_string();
    assert!(
        error.starts_with("error converting YAML to JSON: yaml: "),
        "{error}"
    );
}

#[test]
fn alias_bombs_are_refused() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let previous = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{previous}]\n"));
    }
    assert!(matches!(from_yaml(text.as_bytes()), Err(DecodeError::Yaml(_))));
}

/// Any JSON value that decoding can give.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        "[a-c~/ .-]{0,4}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop_oneof![
            Just("yes"),
            Just("null"),
            Just("1e3"),
            Just("0x1"),
            Just("a: b"),
            Just("- x"),
            Just("# x")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{1,2}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = from_json(&bytes);
        let _ = from_yaml(&bytes);
    }

    #[test]
    fn decoding_never_panics_on_almost_json(text in r#"[\[\]{}:,"\\a0-9.eEtrufalsn +\-]{0,60}"#) {
        // What serde_json refuses, the explanation must find wrong too: the texts hold no surrogates.
        if from_json(text.as_bytes()).is_err() && !text.contains("\\u") && !text.contains(['e', 'E']) {
            prop_assert!(syntax::explain(text.as_bytes()).is_some(), "{}", text);
        }
        let _ = from_yaml(text.as_bytes());
    }

    #[test]
    fn json_round_trips(value in any_value()) {
        let decoded = from_json(&to_vec(&value)).unwrap();
        // An integral float is written, as in Go, without a fraction, and comes back as an integer.
        prop_assert_eq!(to_vec(&decoded.value), to_vec(&value));
        prop_assert!(decoded.duplicates.is_empty());
    }

    #[test]
    fn yaml_round_trips(value in any_value()) {
        let text = to_yaml(&value);
        let decoded = from_yaml(text.as_bytes());
        prop_assert!(decoded.is_ok(), "{:?} of {:?}", decoded, text);
        prop_assert_eq!(to_vec(&decoded.unwrap().value), to_vec(&value), "{}", text);
    }
}
