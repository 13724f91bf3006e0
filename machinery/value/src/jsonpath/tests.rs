use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::decode::tests::any_value;

fn document() -> Value {
    json!({
        "metadata": {"name": "w", "annotations": {"example.com/a": "x", "a.b": "y"}},
        "spec": {"replicas": 3, "on": true, "ports": [{"n": 80}, {"n": 443}, {"n": 8080}], "list": [10, 11, 12, 13]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "weight": 2},
            {"type": "Synced", "status": "False", "weight": 1.5, "reason": "It's \"late\""},
        ]},
    })
}

fn found(path: &str) -> Value {
    let document = document();
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{error}"));
    Value::Array(path.find(&document).into_iter().cloned().collect())
}

#[test]
fn paths_find_what_kubectl_finds() {
    let cases = [
        (".spec.replicas", json!([3])),
        ("spec.replicas", json!([3])),
        ("{.spec.replicas}", json!([3])),
        ("$.spec.replicas", json!([3])),
        (".spec.missing.deeper", json!([])),
        (".spec.replicas.deeper", json!([])),
        (r".metadata.annotations.example\.com/a", json!(["x"])),
        (".metadata.annotations['a.b']", json!(["y"])),
        (r#".metadata.annotations["a.b"]"#, json!(["y"])),
        (".metadata.annotations['a.b','example.com/a']", json!(["y", "x"])),
        (".metadata['name']", json!(["w"])),
        (".spec.list[0]", json!([10])),
        (".spec.list[-1]", json!([13])),
        (".spec.list[9]", json!([])),
        (".spec.list[-9]", json!([])),
        (".spec.list[*]", json!([10, 11, 12, 13])),
        (".spec.list.*", json!([10, 11, 12, 13])),
        (".spec.list[1:3]", json!([11, 12])),
        (".spec.list[1:]", json!([11, 12, 13])),
        (".spec.list[:-1]", json!([10, 11, 12])),
        (".spec.list[-2:]", json!([12, 13])),
        (".spec.list[::2]", json!([10, 12])),
        (".spec.list[0,2]", json!([10, 12])),
        (".spec.ports[*].n", json!([80, 443, 8080])),
        (".spec.ports[1].n", json!([443])),
        (
            r#".status.conditions[?(@.type=="Ready")].status"#,
            json!(["True"]),
        ),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (
            r#".status.conditions[?( @.type != "Ready" )].type"#,
            json!(["Synced"]),
        ),
        (".status.conditions[?(@.weight>1.5)].type", json!(["Ready"])),
        (
            ".status.conditions[?(@.weight>=1.5)].type",
            json!(["Ready", "Synced"]),
        ),
        (".status.conditions[?(@.weight<2)].type", json!(["Synced"])),
        (
            ".status.conditions[?(@.weight<=2)].type",
            json!(["Ready", "Synced"]),
        ),
        (".status.conditions[?(@.reason)].type", json!(["Synced"])),
        (
            r#".status.conditions[?(@.reason=="It's \"late\"")].type"#,
            json!(["Synced"]),
        ),
        (".status.conditions[?(@.missing==1)].type", json!([])),
        (".status.conditions[?(@.type==1)].type", json!([])),
        (
            ".status.conditions[?(@.weight<$.spec.replicas)].type",
            json!(["Ready", "Synced"]),
        ),
        (".spec.list[?(@>11)]", json!([12, 13])),
        ("..type", json!(["Ready", "Synced"])),
        (".status..status", json!(["True", "False"])),
        ("..conditions[0].type", json!(["Ready"])),
    ];
    for (path, expected) in cases {
        assert_eq!(found(path), expected, "{path}");
    }
    assert_eq!(found("."), json!([document()]));
}

#[test]
fn what_is_no_path_is_refused() {
    let long = ".a".repeat(MAX_STEPS + 1);
    let bad = [
        ".a[",
        ".a[x]",
        ".a['b]",
        ".a[1:2:0]",
        ".a[1:2:3:4]",
        ".a[]",
        ".a]b",
        ".a b",
        ".a,b",
        ".a[?(@.b]",
        "..",
        ".a[?(@.b==)]",
        ".a[?(@.b=c)]",
        ".a[?(@.b==1==2)]",
        &long,
    ];
    for path in bad {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
    let error = JsonPath::parse(".a[").unwrap_err();
    assert_eq!(error.to_string(), r#"invalid JSONPath ".a[": unterminated array"#);
    let nested = (0..20).fold("@.x".to_owned(), |inner, _| format!("@.a[?({inner})]"));
    assert!(JsonPath::parse(&format!(".a[?({nested})]")).is_err());
    assert!(JsonPath::parse(&"a".repeat(MAX_PATH + 1)).is_err());
}

#[test]
fn paths_of_fields_say_so() {
    let fields = |path: &str| {
        JsonPath::parse(path)
            .unwrap()
            .fields()
            .map(|names| names.join("/"))
    };
    assert_eq!(fields(".spec.replicas").as_deref(), Some("spec/replicas"));
    assert_eq!(fields(".spec['a.b']").as_deref(), Some("spec/a.b"));
    assert_eq!(fields(".spec.ports[0]"), None);
    assert_eq!(fields(".spec['a','b']"), None);
}

#[test]
fn results_are_bounded() {
    let wide = Value::Array(vec![Value::Array(vec![json!(1); 1000]); 100]);
    assert_eq!(JsonPath::parse("[*][*]").unwrap().find(&wide).len(), MAX_RESULTS);
    let path = JsonPath::parse("..[*]..[*]..[*]..[*]").unwrap();
    assert!(path.find(&wide).len() <= MAX_RESULTS);
    // Every element asks for all elements, each of which asks again.
    let path = JsonPath::parse("[*][?($[*][?($..x)])]").unwrap();
    assert_eq!(path.find(&wide), Vec::<&Value>::new());
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in r#"[.\[\]a-c*0-2:,?()@$=<>!'"\\{} é-]{0,24}"#, value in any_value()) {
        if let Ok(path) = JsonPath::parse(&text) {
            prop_assert!(path.find(&value).len() <= MAX_RESULTS);
        }
    }

    #[test]
    fn a_path_of_fields_agrees_with_a_pointer(names in prop::collection::vec("[a-d]{1,2}", 1..4), value in any_value()) {
        let path = JsonPath::parse(&format!(".{}", names.join("."))).unwrap();
        let expected = if value.is_object() {
            names.iter().try_fold(&value, |value, name| value.as_object()?.get(name))
        } else {
            None
        };
        prop_assert_eq!(path.first(&value), expected);
        prop_assert_eq!(path.fields(), Some(names.iter().map(String::as_str).collect()));
    }
}
