//! What a real kube-apiserver printed for some two hundred objects, against what we print for the same ones.
//!
//! `tests/record` makes the golden files. Each row was recorded together with the time at which it was printed, so
//! ages are compared to the letter like everything else.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use machinery_table::{CustomColumns, IncludeObject, Printer, object_table};
use serde_json::{Value, json};

fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden_files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    files
}

/// The printer of an object; definitions of custom resources are among the records themselves.
fn printer(object: &Value, records: &[Value]) -> Printer {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let definition = records.iter().map(|record| &record["object"]).find(|definition| {
        definition["kind"] == "CustomResourceDefinition"
            && definition["spec"]["group"] == group
            && definition["spec"]["names"]["kind"] == object["kind"]
    });
    match definition {
        None => Printer::builtin(group, version, object["kind"].as_str().unwrap()),
        Some(definition) => {
            let mut versions = definition["spec"]["versions"].as_array().unwrap().iter();
            Printer::custom(CustomColumns::of_version(
                versions.find(|v| v["name"] == version).unwrap(),
            ))
        }
    }
}

fn row(printer: &Printer, object: &Value, record: &Value) -> Value {
    let now: Timestamp = record["now"].as_str().unwrap().parse().unwrap();
    object_table(printer, object, IncludeObject::None, true, now)["rows"][0].clone()
}

/// Floats without a fraction are written without one, so they compare equal to whole numbers.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn assert_none(failures: &[String], compared: usize) {
    assert!(
        failures.is_empty(),
        "{} of {compared} rows differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn describe(object: &Value, want: &Value, got: &Value) -> String {
    let (api, kind, name) = (
        &object["apiVersion"],
        &object["kind"],
        &object["metadata"]["name"],
    );
    format!("{api} {kind} {name}\n  want {want}\n  got  {got}")
}

#[test]
fn rows_are_those_of_a_real_server() {
    let mut compared = 0;
    let mut failures = Vec::new();
    for file in golden_files() {
        let records = read(&file);
        for record in &records {
            let object = &record["object"];
            let printer = printer(object, &records);
            let got = row(&printer, object, record);
            if !same(&got, &record["row"]) {
                failures.push(describe(object, &record["row"], &got));
            }
            if let Some(columns) = record.get("columns") {
                let now = Timestamp::UNIX_EPOCH;
                let got =
                    &object_table(&printer, object, IncludeObject::None, true, now)["columnDefinitions"];
                assert_eq!(got, columns, "{}", object["metadata"]["name"]);
            }
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} rows were compared");
    assert_none(&failures, compared);
}

/// An object whose defaults were never written into it prints like the one the server completed.
#[test]
fn defaults_need_not_be_written() {
    let mut compared = 0;
    let mut failures = Vec::new();
    for file in golden_files() {
        let records = read(&file);
        for case in read(
            &file
                .parent()
                .unwrap()
                .join("cases")
                .join(file.file_name().unwrap()),
        ) {
            let mut object = case["object"].clone();
            if object["apiVersion"] == "lab.io/v1" {
                continue;
            }
            let same_object = |record: &&Value| {
                let recorded = &record["object"];
                recorded["apiVersion"] == object["apiVersion"]
                    && recorded["kind"] == object["kind"]
                    && recorded["metadata"]["name"] == object["metadata"]["name"]
            };
            let record = records.iter().find(same_object).unwrap();
            object["metadata"] = record["object"]["metadata"].clone();
            if let Some(status) = case.get("status") {
                object["status"] = status.clone();
            }
            // What the server chooses is not a default.
            match object["kind"].as_str().unwrap() {
                "Service" => object["spec"]["clusterIPs"] = record["object"]["spec"]["clusterIPs"].clone(),
                "Job" => object["spec"]["selector"] = record["object"]["spec"]["selector"].clone(),
                "Pod" if !object["spec"]["schedulingGates"].is_null() => {
                    object["status"] = json!({"conditions": record["object"]["status"]["conditions"]});
                }
                "Namespace" if case["delete"] == true => {
                    object["status"] = record["object"]["status"].clone()
                }
                _ => {}
            }
            let got = row(&printer(&object, &records), &object, record);
            if !same(&got, &record["row"]) {
                failures.push(describe(&object, &record["row"], &got));
            }
            compared += 1;
        }
    }
    assert!(compared > 150, "only {compared} rows were compared");
    assert_none(&failures, compared);
}
