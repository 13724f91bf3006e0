//! Compares with what Go makes of the same inputs; `derive/run` writes the files.

use base64::Engine as _;
use machinery_wire::{TypeRef, decode, decode_proto, interpret, lookup};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Outcome {
    kind: String,
    r#in: Value,
    #[serde(default)]
    out: Value,
    #[serde(default)]
    unknown: Vec<String>,
    err: Option<String>,
}

#[derive(Deserialize)]
struct Pair {
    kind: String,
    proto: String,
    json: Value,
    again: Option<Value>,
}

fn type_of(kind: &str) -> TypeRef {
    let mut parts = kind.rsplitn(3, '/');
    let mut next = || parts.next().expect("group/version/kind");
    let (kind, version, group) = (next(), next(), next());
    let found = lookup(group, version, kind);
    assert!(found.is_some(), "{group}/{version}/{kind} is not in the table");
    found.expect("it was just asked")
}

/// What differs, as lines to read; empty if nothing does.
fn compare(line: &Outcome) -> Option<String> {
    let (got, unknown) = if line.kind.is_empty() {
        match interpret(&line.r#in) {
            Ok(header) => (Ok(json!([header.group, header.version, header.kind])), Vec::new()),
            Err(error) => (Err(error.to_string()), Vec::new()),
        }
    } else {
        match decode(type_of(&line.kind), line.r#in.clone()) {
            Ok(done) => (Ok(done.value), done.unknown),
            Err(error) => (Err(error.to_string()), Vec::new()),
        }
    };
    let want = match &line.err {
        Some(text) => Err(text.clone()),
        None => Ok(line.out.clone()),
    };
    if got == want && unknown == line.unknown {
        return None;
    }
    let show = |r: Result<Value, String>| r.map_or_else(|e| e, |v| v.to_string());
    Some(format!(
        "{} {}\n  got  {} {unknown:?}\n  want {} {:?}",
        line.kind,
        line.r#in,
        show(got),
        show(want),
        line.unknown
    ))
}

fn check(lines: &str, at_least: usize) {
    let lines: Vec<Outcome> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of the file"))
        .collect();
    assert!(lines.len() >= at_least, "{} cases", lines.len());
    let wrong: Vec<String> = lines.iter().filter_map(compare).collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ\n{}",
        wrong.len(),
        lines.len(),
        wrong.join("\n")
    );
}

#[test]
fn documents_become_what_go_makes_of_them() {
    check(include_str!("../testdata/json.jsonl"), 150);
}

#[test]
fn wrong_types_are_refused_in_gos_words() {
    check(include_str!("../testdata/errors.jsonl"), 400);
}

fn pairs() -> Vec<Pair> {
    let lines = include_str!("../testdata/proto.jsonl").lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line of the file"))
        .collect()
}

fn bytes(pair: &Pair) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(&pair.proto)
        .expect("base64")
}

#[test]
fn protobuf_becomes_the_json_of_the_same_object() {
    let pairs = pairs();
    assert!(pairs.len() > 200, "{} objects", pairs.len());
    let mut wrong = Vec::new();
    for pair in &pairs {
        match decode_proto(&bytes(pair)) {
            Ok(object) if object.value == pair.json => {
                let (version, kind) = pair.kind.rsplit_once('/').expect("a kind");
                assert_eq!(object.kind, kind);
                assert_eq!(object.api_version, version.trim_start_matches('/'));
            }
            Ok(object) => wrong.push(format!(
                "{}\n  got  {}\n  want {}",
                pair.kind, object.value, pair.json
            )),
            Err(error) => wrong.push(format!("{}\n  got  {error}\n  want {}", pair.kind, pair.json)),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ\n{}",
        wrong.len(),
        pairs.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_go_wrote_stays_as_it_is_unless_go_says_otherwise() {
    for pair in pairs() {
        let done =
            decode(type_of(&pair.kind), pair.json.clone()).unwrap_or_else(|e| panic!("{}: {e}", pair.kind));
        assert_eq!(done.value, pair.again.unwrap_or(pair.json), "{}", pair.kind);
        assert_eq!(done.unknown, Vec::<String>::new(), "{}", pair.kind);
    }
}

#[test]
fn truncated_messages_are_errors_or_shorter_objects() {
    for pair in pairs().iter().take(60) {
        let whole = bytes(pair);
        for end in 0..whole.len() {
            let _ = decode_proto(&whole[..end]);
        }
    }
}
