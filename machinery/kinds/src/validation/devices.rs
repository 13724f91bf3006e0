//! Claims to devices, their templates, and the classes of devices.

use std::collections::{BTreeMap, BTreeSet};

use machinery_schema::cel::{CelType, Scope};
use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{meta, rules};
use crate::access::{items, same, text};

mod allocation;
mod shown;
mod slice;

pub(super) use allocation::claim_status;
pub(super) use slice::slice;

/// How many requests, and results of them, a claim may have.
const REQUESTS_MAX: usize = 32;
const SUBREQUESTS_MAX: usize = 8;
const CONSTRAINTS_MAX: usize = 32;
const CONFIGS_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const EXPRESSION_MAX: usize = 10 * 1024;
const PARAMETERS_MAX: usize = 10 * 1024;
const IDENTIFIER_MAX: usize = 32;

const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
     alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
     '[A-Za-z_][A-Za-z0-9_]*')";

/// The names of requests, with those of the requests inside them.
type Names<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// A DeviceClass.
pub(super) fn class(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    selectors(&spec["selectors"], &path.child("selectors"), report);
    few(
        &spec["config"],
        CONFIGS_MAX,
        &path.child("config"),
        report,
        config,
    );
}

/// A ResourceClaim.
pub(super) fn claim(object: &Value, report: &mut Report) {
    claim_spec(&object["spec"], &FieldPath::new("spec"), report);
}

/// A ResourceClaim that changes.
pub(super) fn claim_update(new: &Value, old: &Value, report: &mut Report) {
    if !same(&new["spec"], &old["spec"]) {
        let spec = shown::claim_spec(&new["spec"]);
        report.invalid_shown(&FieldPath::new("spec"), &spec, super::report::IMMUTABLE);
    }
}

/// A ResourceClaimTemplate.
pub(super) fn template(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let template = &object["spec"];
    let at = path.child("metadata");
    report.labels(&at.child("labels"), &template["metadata"]["labels"]);
    meta::annotations(
        &template["metadata"]["annotations"],
        &at.child("annotations"),
        report,
    );
    claim_spec(&template["spec"], &path.child("spec"), report);
}

/// A ResourceClaimTemplate that changes.
pub(super) fn template_update(new: &Value, old: &Value, report: &mut Report) {
    if !same(&new["spec"], &old["spec"]) {
        let spec = shown::template_spec(&new["spec"]);
        report.invalid_shown(&FieldPath::new("spec"), &spec, super::report::IMMUTABLE);
    }
}

fn claim_spec(spec: &Value, path: &FieldPath, report: &mut Report) {
    let path = path.child("devices");
    let devices = &spec["devices"];
    let names = request_names(devices);
    distinct(
        &devices["requests"],
        REQUESTS_MAX,
        name_of,
        &path.child("requests"),
        report,
        request,
    );
    few(
        &devices["constraints"],
        CONSTRAINTS_MAX,
        &path.child("constraints"),
        report,
        |constraint, path, report| {
            request_references(&constraint["requests"], &names, path, report);
            let at = path.child("matchAttribute");
            match constraint["matchAttribute"].as_str() {
                Some(name) => fully_qualified(name, &at, report),
                None => report.required(&at, ""),
            }
        },
    );
    few(
        &devices["config"],
        CONFIGS_MAX,
        &path.child("config"),
        report,
        |one, path, report| {
            request_references(&one["requests"], &names, path, report);
            config(one, path, report);
        },
    );
}

fn name_of(object: &Value) -> String {
    text(&object["name"]).to_owned()
}

/// The names of all requests of a claim.
fn request_names(devices: &Value) -> Names<'_> {
    items(&devices["requests"])
        .iter()
        .map(|request| {
            let below = items(&request["firstAvailable"]).iter();
            (
                text(&request["name"]),
                below.map(|sub| text(&sub["name"])).collect(),
            )
        })
        .collect()
}

/// The entries of a list that may be so long; a longer one is not looked at.
fn few(
    list: &Value,
    max: usize,
    path: &FieldPath,
    report: &mut Report,
    check: impl Fn(&Value, &FieldPath, &mut Report),
) -> bool {
    let list = items(list);
    if list.len() > max {
        report.too_many(path, list.len(), max);
        return false;
    }
    for (index, item) in list.iter().enumerate() {
        check(item, &path.index(index), report);
    }
    true
}

/// The same, and each entry has a key of its own.
fn distinct(
    list: &Value,
    max: usize,
    key: impl Fn(&Value) -> String,
    path: &FieldPath,
    report: &mut Report,
    check: impl Fn(&Value, &FieldPath, &mut Report),
) {
    if !few(list, max, path, report, check) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, item) in items(list).iter().enumerate() {
        let key = key(item);
        if seen.contains(&key) {
            report.duplicate(&path.index(index), &key.into());
        } else {
            seen.insert(key);
        }
    }
}

fn request(request: &Value, path: &FieldPath, report: &mut Report) {
    report.dns_label(&path.child("name"), &request["name"]);
    let exactly = &request["exactly"];
    let first = &request["firstAvailable"];
    match (!exactly.is_null(), !items(first).is_empty()) {
        (false, false) => {
            report.required(path, "exactly one of `exactly` or `firstAvailable` is required");
        }
        (true, true) => {
            let detail =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            report.invalid(path, &Value::Null, detail);
        }
        (true, false) => wanted(exactly, &path.child("exactly"), report),
        (false, true) => {
            let path = path.child("firstAvailable");
            distinct(
                first,
                SUBREQUESTS_MAX,
                name_of,
                &path,
                report,
                |sub, path, report| {
                    report.dns_label(&path.child("name"), &sub["name"]);
                    wanted(sub, path, report);
                },
            );
        }
    }
}

/// What is wanted of a class.
fn wanted(request: &Value, path: &FieldPath, report: &mut Report) {
    let at = path.child("deviceClassName");
    if text(&request["deviceClassName"]).is_empty() {
        report.required(&at, "");
    } else {
        report.dns_subdomain(&at, &request["deviceClassName"]);
    }
    selectors(&request["selectors"], &path.child("selectors"), report);
    let count = request["count"].as_i64().unwrap_or_default();
    match text(&request["allocationMode"]) {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            report.invalid(&path.child("count"), &count.into(), detail);
        }
        "ExactCount" if count <= 0 => {
            report.invalid(&path.child("count"), &count.into(), "must be greater than zero");
        }
        "All" | "ExactCount" => {}
        other => report.not_supported(
            &path.child("allocationMode"),
            &other.into(),
            &["All", "ExactCount"],
        ),
    }
}

fn selectors(list: &Value, path: &FieldPath, report: &mut Report) {
    few(list, SELECTORS_MAX, path, report, |selector, path, report| {
        let at = path.child("cel");
        if selector["cel"].is_null() {
            report.required(&at, "");
            return;
        }
        let expression = text(&selector["cel"]["expression"]);
        let at = at.child("expression");
        if expression.len() > EXPRESSION_MAX {
            report.too_long(&at, EXPRESSION_MAX);
        } else if let Some(problem) = expression_problem(expression) {
            report.invalid(&at, &expression.into(), problem);
        }
    });
}

/// What is wrong with an expression about a device.
fn expression_problem(expression: &str) -> Option<String> {
    let quantity = CelType::Named("kubernetes.Quantity");
    let device = CelType::object(
        "kubernetes.DRADevice",
        [
            ("driver", CelType::Text),
            ("attributes", CelType::map(CelType::map(CelType::Dyn))),
            ("capacity", CelType::map(CelType::map(quantity))),
        ],
    );
    let mut scope = Scope::default();
    scope.declare("device", device);
    match scope.check(expression) {
        Err(problem) => Some(format!("compilation failed: {problem}")),
        Ok(CelType::Bool | CelType::Dyn | CelType::Unknown | CelType::Free) => None,
        Ok(other) => Some(format!(
            "must evaluate to bool or the unknown type, not {}",
            other.output_name()
        )),
    }
}

/// Names of requests that the claim has.
fn request_references(list: &Value, names: &Names<'_>, path: &FieldPath, report: &mut Report) {
    let key = |name: &Value| text(name).to_owned();
    distinct(
        list,
        REQUESTS_MAX,
        key,
        &path.child("requests"),
        report,
        |name, path, report| {
            request_reference(text(name), names, path, report);
        },
    );
}

fn request_reference(name: &str, names: &Names<'_>, path: &FieldPath, report: &mut Report) {
    let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 {
        for part in &parts {
            report.messages(path, part, rules::dns_label(part));
        }
    }
    let is_known = match parts[..] {
        [request] => names.contains_key(request),
        [request, sub] => names.get(request).is_some_and(|below| below.contains(sub)),
        _ => false,
    };
    if !is_known {
        report.invalid(path, &name.into(), detail);
    }
}

/// Parameters of a driver.
fn config(config: &Value, path: &FieldPath, report: &mut Report) {
    let path = path.child("opaque");
    let opaque = &config["opaque"];
    if opaque.is_null() {
        report.required(&path, "");
        return;
    }
    driver(text(&opaque["driver"]), &path.child("driver"), report);
    raw(
        &opaque["parameters"],
        PARAMETERS_MAX,
        &path.child("parameters"),
        report,
    );
}

/// An object of whatever content.
fn raw(value: &Value, max: usize, path: &FieldPath, report: &mut Report) {
    if value.is_null() {
        report.required(path, "");
    } else if value.to_string().len() > max {
        report.too_long(path, max);
    } else if !value.is_object() {
        report.invalid(path, &"<value omitted>".into(), "must be a valid JSON object");
    }
}

/// The name of a driver, in whatever case.
fn driver(name: &str, path: &FieldPath, report: &mut Report) {
    if name.is_empty() {
        report.required(path, "");
        return;
    }
    if name.len() > 63 {
        report.too_long(path, 63);
    }
    report.messages(path, name, rules::dns_subdomain(&name.to_lowercase()));
}

/// The name of a pool: subdomains with slashes between them.
fn pool(name: &str, path: &FieldPath, report: &mut Report) {
    if name.is_empty() {
        report.required(path, "");
        return;
    }
    if name.len() > 253 {
        report.too_long(path, 253);
    }
    for part in name.split('/') {
        report.messages(path, part, rules::dns_subdomain(part));
    }
}

fn identifier(name: &str, path: &FieldPath, report: &mut Report) {
    if name.len() > IDENTIFIER_MAX {
        report.too_long(path, IDENTIFIER_MAX);
    }
    let is_letter = |c: u8| c.is_ascii_alphabetic() || c == b'_';
    let mut bytes = name.bytes();
    if !bytes.next().is_some_and(is_letter) || !bytes.all(|c| is_letter(c) || c.is_ascii_digit()) {
        report.invalid(path, &name.into(), C_IDENTIFIER);
    }
}

/// The name of an attribute, with the domain of whoever defines it or without.
fn qualified(name: &str, path: &FieldPath, report: &mut Report) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [id] => identifier(id, path, report),
        [domain, id] => {
            if domain.is_empty() {
                report.invalid(path, &"".into(), "the domain must not be empty");
            } else {
                driver(domain, path, report);
            }
            if id.is_empty() {
                report.invalid(path, &"".into(), "the name must not be empty");
            } else {
                identifier(id, path, report);
            }
        }
        // More slashes pass, as on a real server.
        _ => {}
    }
}

fn fully_qualified(name: &str, path: &FieldPath, report: &mut Report) {
    qualified(name, path, report);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        report.invalid(path, &name.into(), detail);
    }
}
