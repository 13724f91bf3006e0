use proptest::prelude::*;
use serde_json::json;

use super::fields::{FieldSelector, escape};
use super::*;

fn matches(selector: &str, labels: Value) -> bool {
    LabelSelector::parse(selector)
        .expect(selector)
        .matches_labels(labels.as_object())
}

#[test]
fn selectors_match() {
    let labels = json!({"app": "web", "tier": "front", "n": "5", "empty": ""});
    let cases = [
        ("", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , tier", true),
        ("app=api", false),
        ("app!=api", true),
        ("app!=web", false),
        ("missing!=x", true),
        ("missing=x", false),
        ("app in (web,api)", true),
        ("app in (api)", false),
        ("app notin (api)", true),
        ("missing notin (api)", true),
        ("app notin (web, api)", false),
        ("tier", true),
        ("!tier", false),
        ("!missing", true),
        ("missing", false),
        ("n>4", true),
        ("n<4", false),
        ("app>4", false),
        ("empty=", true),
        ("empty in ()", true),
        ("empty in (,x)", true),
        ("app=web,tier=back", false),
        ("in in (in)", false),
    ];
    for (selector, expected) in cases {
        assert_eq!(matches(selector, labels.clone()), expected, "{selector}");
    }
    assert!(!LabelSelector::parse("app").unwrap().matches_labels(None));
    assert!(LabelSelector::parse("!app").unwrap().matches_labels(None));
}

#[test]
fn selectors_print_sorted_and_parse_again() {
    let cases = [
        ("c==d,a=b", "a=b,c==d"),
        ("x in (b,a,b),!y,z", "x in (a,b),!y,z"),
        ("x notin ()", "x notin ()"),
        ("x in (,a)", "x in (,a)"),
        ("k!=v,j>1,i<2", "i<2,j>1,k!=v"),
        ("example.com/a = b", "example.com/a=b"),
    ];
    for (text, printed) in cases {
        let selector = LabelSelector::parse(text).expect(text);
        assert_eq!(selector.to_string(), printed);
        assert_eq!(LabelSelector::parse(printed), Ok(selector));
    }
}

#[test]
fn errors_read_as_the_servers() {
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
                 used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let cases = [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("=a", "found '=', expected: !, identifier, or 'end of string'".to_owned()),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        ("a=b c", "found 'c', expected: ',' or 'end of string'".to_owned()),
        ("a=(", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned()),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned()),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier".to_owned()),
        ("-a", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {name}")),
        ("a=-b", format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {value}")),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be \
             an integer"
                .to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            LabelSelector::parse(text).expect_err(text).to_string(),
            expected,
            "{text}"
        );
    }
    assert!(LabelSelector::parse(&"a,".repeat(MAX_SELECTOR)).is_err());
}

#[test]
fn objects_mean_selectors() {
    let selector =
        |object: Value| LabelSelector::from_object(Some(&object)).map(|selector| selector.to_string());
    let full = json!({
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "d", "operator": "NotIn", "values": ["z"]},
            {"key": "e", "operator": "Exists"},
            {"key": "f", "operator": "DoesNotExist", "values": []},
        ],
    });
    assert_eq!(
        selector(full).as_deref(),
        Ok("a=2,b=1,c in (x,y),d notin (z),e,!f")
    );
    assert_eq!(LabelSelector::from_object(None), Ok(LabelSelector::nothing()));
    assert!(!LabelSelector::nothing().matches(|_| Some("x")));
    assert!(
        LabelSelector::from_object(Some(&json!({})))
            .unwrap()
            .is_everything()
    );
    let error = |object: Value| selector(object).expect_err("refused").to_string();
    assert_eq!(
        error(json!({"matchExpressions": [{"key": "name", "operator": "Seriously"}]})),
        "\"Seriously\" is not a valid label selector operator"
    );
    assert_eq!(
        error(json!({"matchExpressions": [{"key": "name", "operator": "In", "values": []}]})),
        "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty"
    );
    assert_eq!(
        error(json!({"matchExpressions": [{"key": "name", "operator": "Exists", "values": ["a"]}]})),
        "values: Invalid value: []string{\"a\"}: values set must be empty for exists and does not exist"
    );
    error(json!({"matchLabels": {"a": 1}}));
    error(json!({"matchLabels": []}));
    error(json!("a=b"));
}

#[test]
fn field_selectors() {
    let fields = |name: &str| match name {
        "metadata.name" => Some("w1"),
        "spec.color" => Some("a,b=c\\"),
        _ => None,
    };
    let cases = [
        ("", true),
        (",,", true),
        ("metadata.name=w1", true),
        ("metadata.name==w1", true),
        ("metadata.name!=w1", false),
        ("metadata.name=w1,spec.color=red", false),
        (r"spec.color=a\,b\=c\\", true),
        ("spec.none=", true),
        ("spec.none!=x", true),
    ];
    for (text, expected) in cases {
        assert_eq!(
            FieldSelector::parse(text).expect(text).matches(fields),
            expected,
            "{text}"
        );
    }
    let selector = FieldSelector::parse("spec.color!=red,metadata.name=w1").unwrap();
    assert_eq!(selector.to_string(), "metadata.name=w1,spec.color!=red");
    assert_eq!(selector.exact("metadata.name"), Some("w1"));
    assert_eq!(selector.exact("spec.color"), None);
    let errors = [
        (
            "metadata.name",
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
        ),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
    ];
    for (text, expected) in errors {
        assert_eq!(FieldSelector::parse(text).expect_err(text).to_string(), expected);
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-c =!<>(),\u{e9}\\\\]{0,20}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap().to_string(), selector.to_string());
        }
    }

    #[test]
    fn an_escaped_value_is_found(value in any::<String>()) {
        let selector = FieldSelector::parse(&format!("f={}", escape(&value))).unwrap();
        prop_assert!(selector.matches(|_| Some(value.as_str())));
    }
}
