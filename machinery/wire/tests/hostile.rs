//! Inputs that nobody sends by accident: whatever comes, the answer is a value or an error, soon.

use machinery_wire::{TypeRef, WireError, decode, decode_message, decode_proto, lookup, types};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn crd() -> TypeRef {
    lookup("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("in the table")
}

fn pod() -> TypeRef {
    lookup("", "v1", "Pod").expect("in the table")
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(number) << 3 | 2, &mut out);
    varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
}

/// A document nested by turns, made and taken apart without recursion of our own.
fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({}), |inner, _| wrap(inner))
}

/// Half of what a thread has by default, and in a build without optimisation.
fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work);
    thread.expect("a thread").join().expect("no panic")
}

#[test]
fn deep_documents_are_refused_before_the_stack_ends() {
    let place = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
    let wraps: [fn(Value) -> Value; 4] = [
        |inner| json!({"not": inner}),
        |inner| json!({"items": inner}),
        |inner| json!({"properties": {"a": inner}}),
        |inner| json!({"additionalProperties": inner}),
    ];
    for wrap in wraps {
        let (fits, deep) = (place(nested(60, wrap)), place(nested(200, wrap)));
        let (fits, deep) = on_small_stack(move || (decode(crd(), fits), decode(crd(), deep)));
        assert!(fits.is_ok());
        assert_eq!(deep, Err(WireError::TooDeep));
    }
}

#[test]
fn deep_messages_are_refused_before_the_stack_ends() {
    // JSONSchemaProps.not is field 28, and properties, a map, field 29.
    let place = |schema: &[u8]| field(2, &field(7, &field(4, &field(1, schema))));
    let not = |depth| (0..depth).fold(Vec::new(), |inner, _| field(28, &inner));
    let properties = |depth| (0..depth).fold(Vec::new(), |inner, _| field(29, &field(2, &inner)));
    let value = decode_message(crd(), &place(&not(3))).expect("shallow enough");
    assert_eq!(
        value["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        json!({"not": {"not": {"not": {}}}})
    );
    for (fits, deep) in [
        (place(&not(60)), place(&not(5000))),
        (place(&properties(60)), place(&properties(5000))),
    ] {
        let (fits, deep) =
            on_small_stack(move || (decode_message(crd(), &fits), decode_message(crd(), &deep)));
        assert!(fits.is_ok(), "{fits:?}");
        assert_eq!(deep, Err(WireError::TooDeep));
    }
}

#[test]
fn swarms_of_empty_elements_are_refused() {
    let containers = Value::Array(vec![json!({}); 400_000]);
    let outcome = decode(pod(), json!({"spec": {"containers": containers}}));
    assert!(matches!(outcome, Err(WireError::TooLarge(_))));
    // PodSpec.containers is field 2, and an empty element two bytes.
    let spec = [0x12, 0x00].repeat(1_000_000);
    assert!(matches!(
        decode_message(pod(), &field(2, &spec)),
        Err(WireError::TooLarge(_))
    ));
}

#[test]
fn bodies_are_refused_with_the_servers_words() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "empty data"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x0a\x05a", "unexpected EOF"),
        (b"k8s\0\x08\x05", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\0\x0c", "proto: wiretype end group for non-group"),
    ];
    for (body, want) in cases {
        assert_eq!(
            decode_proto(body).map_err(|e| e.to_string()),
            Err(want.to_owned()),
            "{body:?}"
        );
    }
    assert_eq!(
        decode_proto(&body("v1", "Nothing", b"")).map_err(|e| e.to_string()),
        Err("no kind \"Nothing\" is registered for version \"v1\"".to_owned())
    );
}

#[test]
fn fields_merge_and_unknown_numbers_are_skipped() {
    // metadata twice, first the name and then the namespace; field 900 is nobody's.
    let raw = [
        field(1, &field(1, b"p")),
        field(900, b"?"),
        field(1, &field(3, b"n")),
    ]
    .concat();
    let object = decode_proto(&body("v1", "Pod", &raw)).expect("a pod");
    assert_eq!(object.value["metadata"], json!({"name": "p", "namespace": "n"}));
    // Packed and single numbers in PodSecurityContext.supplementalGroups, field 4.
    let mut groups = field(4, &[1, 2]);
    groups.extend([0x20, 0x03]);
    let value = decode_message(pod(), &field(2, &field(14, &groups))).expect("a pod");
    assert_eq!(
        value["spec"]["securityContext"],
        json!({"supplementalGroups": [1, 2, 3]})
    );
    // Bytes that are no text.
    let value = decode_message(pod(), &field(1, &field(1, b"a\xff\xfeb"))).expect("a pod");
    assert_eq!(value["metadata"]["name"], "a\u{fffd}\u{fffd}b");
}

/// A message in which tags and lengths mostly fit, so that reading goes deep.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        vec(any::<u8>(), 0..12),
        (1u32..30, any::<u64>()).prop_map(|(number, value)| {
            let mut out = Vec::new();
            varint(u64::from(number) << 3, &mut out);
            varint(value, &mut out);
            out
        }),
    ];
    leaf.prop_recursive(8, 64, 6, |inner| {
        vec((1u32..30, inner), 0..6).prop_map(|fields| {
            fields
                .iter()
                .flat_map(|(number, bytes)| field(*number, bytes))
                .collect::<Vec<u8>>()
        })
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "containers",
        "template",
        "data",
        "items",
        "rules",
        "ports",
        "replicas",
        "creationTimestamp",
        "resources",
        "limits",
        "selector",
        "schema",
        "versions",
        "kind",
        "bogus",
        "openAPIV3Schema",
        "properties",
        "additionalProperties",
        "env",
        "managedFields",
        "fieldsV1",
        "targetPort",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9A-Za-z=:.+-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 128, 8, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let kinds: Vec<_> = types::kinds().collect();
        let _ = decode_message(kinds[at.index(kinds.len())].3, &bytes);
        let _ = decode_proto(&[b"k8s\0".as_slice(), &bytes].concat());
        let _ = decode_proto(&bytes);
    }

    #[test]
    fn no_message_makes_it_panic(bytes in message(), at in any::<prop::sample::Index>()) {
        let kinds: Vec<_> = types::kinds().collect();
        let (_, _, _, ty) = kinds[at.index(kinds.len())];
        let _ = decode_message(ty, &bytes);
    }

    #[test]
    fn decoding_twice_changes_nothing_more(value in any_json(), at in any::<prop::sample::Index>()) {
        let kinds: Vec<_> = types::kinds().collect();
        let (_, _, _, ty) = kinds[at.index(kinds.len())];
        if let Ok(once) = decode(ty, value) {
            let twice = decode(ty, once.value).expect("what was written can be read");
            prop_assert!(twice.unknown.is_empty());
            let thrice = decode(ty, twice.value.clone()).expect("what was written can be read");
            prop_assert_eq!(thrice.value, twice.value);
        }
    }
}
