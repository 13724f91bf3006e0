//! Recorded behaviour of the API server of Kubernetes 1.35.
//!
//! Each line of a file in `vectors/` is a schema with cases; what is expected was written by the server's own
//! code. Errors are compared as sets of texts with their kinds, because the server visits fields in random order.

use machinery_schema::{CustomSchema, StructuralOptions, check_crd_schema};
use machinery_value::field::{FieldError, FieldPath};
use serde_json::Value;

struct Vector {
    schema: Value,
    status: bool,
    cases: Vec<Value>,
}

fn vectors(file: &str) -> Vec<Vector> {
    file.lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).expect("each line is JSON");
            let Value::Array(cases) = line["cases"].take() else {
                unreachable!("cases are a list")
            };
            Vector {
                schema: line["schema"].take(),
                status: line["status"] == true,
                cases,
            }
        })
        .collect()
}

fn shown(errors: &[FieldError]) -> Vec<String> {
    let mut shown: Vec<String> = errors
        .iter()
        .map(|error| format!("{} {error}", error.kind.reason()))
        .collect();
    shown.sort();
    shown
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn json(value: &Value) -> String {
    String::from_utf8_lossy(&machinery_value::encode::to_vec(value)).into_owned()
}

/// Runs a check over all cases of a file and reports all that differ.
fn run(file: &str, check: impl Fn(&Vector, &Value) -> Result<(), String>) {
    let mut differing = Vec::new();
    let mut count = 0;
    for vector in vectors(file) {
        for case in &vector.cases {
            count += 1;
            if let Err(difference) = check(&vector, case) {
                differing.push(format!("{}: {difference}", case["name"]));
            }
        }
    }
    assert!(count > 0, "the file holds no cases");
    assert!(
        differing.is_empty(),
        "{} of {count} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

fn compare(found: &[String], wanted: &[String]) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!(
        "\n  found  {}\n  wanted {}",
        found.join("\n         "),
        wanted.join("\n         ")
    ))
}

#[test]
fn validation_says_what_the_server_says() {
    run(include_str!("vectors/validate.jsonl"), |vector, case| {
        let schema = CustomSchema::new(&vector.schema).map_err(|error| error.to_string())?;
        let errors = schema.validate(&case["object"], case.get("old"));
        compare(&shown(&errors), &strings(&case["errors"]))
    });
}

#[test]
fn pruning_removes_what_the_server_removes() {
    run(include_str!("vectors/prune.jsonl"), |vector, case| {
        let schema = CustomSchema::new(&vector.schema).map_err(|error| error.to_string())?;
        let mut object = case["object"].clone();
        let mut unknown = schema.prune(&mut object);
        unknown.sort();
        compare(&unknown, &strings(&case["unknown"]))?;
        compare(&[json(&object)], &[json(&case["result"])])
    });
}

#[test]
fn defaulting_fills_what_the_server_fills() {
    run(include_str!("vectors/default.jsonl"), |vector, case| {
        let schema = CustomSchema::new(&vector.schema).map_err(|error| error.to_string())?;
        let mut object = case["object"].clone();
        schema.apply_defaults(&mut object);
        compare(&[json(&object)], &[json(&case["result"])])
    });
}

#[test]
fn admission_of_schemas_says_what_the_server_says() {
    let path = FieldPath::from("spec.validation.openAPIV3Schema");
    run(include_str!("vectors/crd.jsonl"), |vector, case| {
        let options = StructuralOptions {
            status_subresource: vector.status,
        };
        let errors = check_crd_schema(&vector.schema, &path, options);
        compare(&shown(&errors), &strings(&case["errors"]))
    });
}
