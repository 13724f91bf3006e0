//! The behaviour of the rollout engine as data: decisions, groups, thresholds and deadlines, each with its expected answer;
//! and how objects are compared with the templates of policies.
//!
//! `tests/vectors/rollout.json` and `object-match.json` are run, or the files of those names in the folder that
//! `LOCKGATE_VECTORS` names, as far as it has them. Where a case has
//! a recommended answer, that is the expected one: it corrects a known defect of the library that the case was taken from.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

mod decisions;
mod grouping;
mod objects;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde_json::{Value, json};

/// Says what is wrong with a case.
type Check = fn(&Value) -> Result<(), String>;

const SUITES: [(&str, Check); 10] = [
    ("rollout", decisions::rollout),
    ("classify_one_cluster", decisions::classify_one_cluster),
    ("nearest_recheck", decisions::nearest_recheck),
    ("threshold_size", texts::threshold_size),
    ("deadline_text", texts::deadline_text),
    ("mandatory_entries", texts::mandatory_entries),
    ("group_lookup", grouping::group_lookup),
    ("decision_grouping", grouping::decision_grouping),
    ("root_compliance", decisions::root_compliance),
    ("root_rollout", decisions::root_rollout),
];

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn read(folder: PathBuf, name: &str, schema: &str) -> Value {
    let file = folder.join(name);
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let vectors: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(vectors["schema"], schema, "{}", file.display());
    vectors
}

fn folder() -> PathBuf {
    std::env::var_os("LOCKGATE_VECTORS").map_or_else(here, PathBuf::from)
}

/// The answer that a case expects.
fn expected(case: &Value) -> &Value {
    case.get("recommended").unwrap_or(&case["expect"])
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected}, found {found}"))
}

/// Runs every case of a suite; what is wrong, each with the name of its case.
fn run(suite: &str, check: Check, cases: &Value) -> Vec<String> {
    let Some(cases) = cases.as_array().filter(|cases| !cases.is_empty()) else {
        return vec![format!("{suite}: there are no cases")];
    };
    let failed = cases.iter().filter_map(|case| {
        // A case that cannot be read fails by its name, too, and lets the others run.
        let outcome = catch_unwind(AssertUnwindSafe(|| check(case)));
        let error = outcome
            .unwrap_or_else(|_| Err("it cannot be read".to_owned()))
            .err()?;
        let text = |field: &str| case[field].as_str().unwrap_or_default();
        Some(format!("{suite} {} {}\n    {error}", text("id"), text("title")))
    });
    failed.collect()
}

#[test]
fn every_case_is_decided_as_expected() {
    let given = std::env::var_os("LOCKGATE_VECTORS").is_some();
    // Of a folder that is given, the files and suites are run that it has; of our own, all.
    let has = |file: &str| !given || folder().join(file).exists();
    let mut failed = Vec::new();
    let mut ran = 0;
    if has("rollout.json") {
        let vectors = read(folder(), "rollout.json", "ocm-rollout-vectors/1");
        let suites = vectors["suites"].as_object().unwrap();
        failed.extend(
            suites
                .keys()
                .filter(|name| !SUITES.iter().any(|(suite, _)| suite == name))
                .map(|name| format!("{name}: nobody knows how to run this suite")),
        );
        for (suite, check) in SUITES {
            if !given || suites.contains_key(suite) {
                failed.extend(run(suite, check, &vectors["suites"][suite]));
                ran += 1;
            }
        }
    }
    if has("object-match.json") {
        let objects = read(folder(), "object-match.json", "ocm-object-match-vectors/1");
        failed.extend(run("object-match", objects::object_match, &objects["vectors"]));
        ran += 1;
    }
    assert!(ran > 0, "{}: there is nothing to run", folder().display());
    assert!(
        failed.is_empty(),
        "{}: {} failed\n{}",
        folder().display(),
        failed.len(),
        failed.join("\n")
    );
}

/// A runner that finds nothing wrong with wrong answers would find nothing at all.
#[test]
fn wrong_answers_are_found_and_named() {
    let objects = read(here(), "object-match.json", "ocm-object-match-vectors/1");
    for case in objects["vectors"].as_array().unwrap() {
        for answer in objects::wrong_answers(case) {
            let mut case = case.clone();
            for (name, value) in answer.as_object().unwrap() {
                case[name] = value.clone();
            }
            let failed = run("object-match", objects::object_match, &json!([case]));
            assert_eq!(failed.len(), 1, "{} {answer}", case["id"]);
        }
    }
    let vectors = read(here(), "rollout.json", "ocm-rollout-vectors/1");
    for (suite, check) in SUITES {
        for case in vectors["suites"][suite].as_array().unwrap() {
            let id = case["id"].as_str().unwrap();
            for answer in wrong_answers(suite, case) {
                let mut case = case.clone();
                for (name, value) in answer.as_object().unwrap() {
                    case[name] = value.clone();
                }
                let failed = run(suite, check, &json!([case]));
                assert_eq!(failed.len(), 1, "{suite} {id} {answer}");
                assert!(failed[0].contains(id), "{failed:?}");
            }
        }
        assert_eq!(
            run(suite, check, &json!([])),
            [format!("{suite}: there are no cases")]
        );
        assert_eq!(run(suite, check, &Value::Null).len(), 1);
    }
}

/// Answers that are wrong for a case, as the fields that are replaced in it.
fn wrong_answers(suite: &str, case: &Value) -> Vec<Value> {
    let replaced = |replace: &dyn Fn(&mut Value)| {
        let mut answer = expected(case).clone();
        replace(&mut answer);
        json!({ "expect": answer, "recommended": answer })
    };
    match suite {
        "rollout" if case["expect"].get("error").is_some() => vec![replaced(&|answer| {
            *answer =
                json!({ "to_rollout": [], "timed_out": [], "removed": [], "max_failure_breach": false });
        })],
        "rollout" => vec![
            replaced(&|answer| answer["max_failure_breach"] = json!(answer["max_failure_breach"] == false)),
            replaced(&|answer| answer["recheck_after_s"] = json!(7777)),
            replaced(&|answer| answer["removed"] = json!([{ "cluster": "other", "status": "Failed" }])),
            replaced(&|answer| answer["timed_out"] = json!([{ "cluster": "other", "status": "TimeOut" }])),
            replaced(&|answer| {
                answer["to_rollout"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({ "cluster": "z", "status": "ToApply" }));
            }),
        ],
        "mandatory_entries" => vec![json!({ "expect_keys": [{ "name": "other", "index": 0 }] })],
        "group_lookup" if case.get("before").is_some() => vec![json!({ "expect_added": ["other"] })],
        "group_lookup" => vec![json!({ "expect_rest_indices": [77] })],
        "deadline_text" => vec![json!({ "expect_seconds": 77 })],
        "classify_one_cluster" => vec![replaced(&|answer| answer["list"] = json!("other"))],
        "decision_grouping" => vec![replaced(&|answer| *answer = json!({ "groups": [] }))],
        _ => vec![replaced(&|answer| *answer = json!(7777))],
    }
}
