//! The status of a claim: what it was given, and who may use it.

use std::collections::BTreeSet;

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::{
    CONFIGS_MAX, Names, PARAMETERS_MAX, config, distinct, driver, few, pool, raw, request_names,
    request_reference, request_references, shown,
};
use crate::access::{is_empty, items, same, text};
use crate::validation::report::Report;
use crate::validation::{rules, scheduling};

const RESERVED_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
const CONDITIONS_MAX: usize = 8;
const ADDRESSES_MAX: usize = 16;

/// The status of a ResourceClaim that changes.
pub(in crate::validation) fn claim_status(new: &Value, old: &Value, report: &mut Report) {
    let path = FieldPath::new("status");
    let (status, before) = (&new["status"], &old["status"]);
    let uid = |user: &Value| text(&user["uid"]).to_owned();
    let reserved = &status["reservedFor"];
    let at = path.child("reservedFor");
    distinct(reserved, RESERVED_MAX, uid, &at, report, |user, path, report| {
        for key in ["resource", "name", "uid"] {
            if text(&user[key]).is_empty() {
                report.required(&path.child(key), "");
            }
        }
    });
    let allocated: BTreeSet<String> = items(&status["allocation"]["devices"]["results"])
        .iter()
        .map(identity)
        .collect();
    let all = usize::MAX;
    let devices = &status["devices"];
    distinct(
        devices,
        all,
        identity,
        &path.child("devices"),
        report,
        |device, path, report| {
            device_status(device, &allocated, path, report);
        },
    );
    if !is_empty(reserved) {
        if status["allocation"].is_null() {
            report.forbidden(&at, "may not be specified when `allocated` is not set");
        } else if !is_empty(&new["metadata"]["deletionTimestamp"]) {
            let known = |user: &Value| items(&before["reservedFor"]).iter().any(|old| same(old, user));
            if !items(reserved).iter().all(known) {
                let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
                report.forbidden(&at, detail);
            }
        }
    }
    let at = path.child("allocation");
    match (status["allocation"].is_null(), before["allocation"].is_null()) {
        (true, _) => {}
        (false, false) => {
            if !same(&status["allocation"], &before["allocation"]) {
                let shown = shown::allocation(&status["allocation"]);
                report.invalid_shown(&at, &shown, crate::validation::report::IMMUTABLE);
            }
        }
        (false, true) => {
            let names = request_names(&new["spec"]["devices"]);
            allocation(&status["allocation"], &names, &at, report);
        }
    }
}

/// A device among all: by its driver, its pool and its name.
fn identity(device: &Value) -> String {
    ["driver", "pool", "device"]
        .map(|key| text(&device[key]))
        .join("/")
}

fn allocation(allocation: &Value, names: &Names<'_>, path: &FieldPath, report: &mut Report) {
    let devices = &allocation["devices"];
    let at = path.child("devices");
    few(
        &devices["results"],
        RESULTS_MAX,
        &at.child("results"),
        report,
        |result, path, report| {
            request_reference(text(&result["request"]), names, &path.child("request"), report);
            driver(text(&result["driver"]), &path.child("driver"), report);
            pool(text(&result["pool"]), &path.child("pool"), report);
            report.dns_label(&path.child("device"), &result["device"]);
        },
    );
    // Those of the class, and those of the claim.
    few(
        &devices["config"],
        2 * CONFIGS_MAX,
        &at.child("config"),
        report,
        |one, path, report| {
            report.choice(&path.child("source"), &one["source"], &["FromClaim", "FromClass"]);
            request_references(&one["requests"], names, path, report);
            config(one, path, report);
        },
    );
    let selector = &allocation["nodeSelector"];
    if !selector.is_null() {
        let at = path.child("nodeSelector").child("nodeSelectorTerms");
        scheduling::node_terms(&selector["nodeSelectorTerms"], &at, report);
    }
}

fn device_status(device: &Value, allocated: &BTreeSet<String>, path: &FieldPath, report: &mut Report) {
    driver(text(&device["driver"]), &path.child("driver"), report);
    pool(text(&device["pool"]), &path.child("pool"), report);
    report.dns_label(&path.child("device"), &device["device"]);
    let identity = identity(device);
    if !allocated.contains(&identity) {
        let detail = "must be an allocated device in the claim";
        report.invalid_shown(path, &shown::device(device), detail);
    }
    let at = path.child("conditions");
    let conditions = items(&device["conditions"]);
    if conditions.len() > CONDITIONS_MAX {
        report.too_many(&at, conditions.len(), CONDITIONS_MAX);
    }
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        report.required_qualified_name(&at.child("type"), &condition["type"]);
        report.choice(
            &at.child("status"),
            &condition["status"],
            &["False", "True", "Unknown"],
        );
        if text(&condition["reason"]).is_empty() {
            report.required(&at.child("reason"), "");
        }
    }
    if !device["data"].is_null() {
        raw(&device["data"], PARAMETERS_MAX, &path.child("data"), report);
    }
    let network = &device["networkData"];
    let path = path.child("networkData");
    for (key, max) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        if text(&network[key]).len() > max {
            report.too_long(&path.child(key), max);
        }
    }
    let key = |address: &Value| text(address).to_owned();
    distinct(
        &network["ips"],
        ADDRESSES_MAX,
        key,
        &path.child("ips"),
        report,
        |address, path, report| {
            if rules::parse_cidr(text(address)).is_none() {
                let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
                report.invalid(path, address, detail);
            }
        },
    );
}
