//! What drivers offer: devices, their attributes and capacities.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::{distinct, driver, name_of, pool, qualified, shown};
use crate::access::{entries, items, same, text};
use crate::validation::report::Report;
use crate::validation::scheduling;

const DEVICES_MAX: usize = 128;
const ATTRIBUTES_MAX: usize = 32;
const VALUE_MAX: usize = 64;
/// How much of a key is shown.
const KEY_SHOWN: usize = 63 + 1 + 32;

/// A ResourceSlice, new or changed.
pub(in crate::validation) fn slice(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    driver(text(&spec["driver"]), &path.child("driver"), report);
    let at = path.child("pool");
    pool(text(&spec["pool"]["name"]), &at.child("name"), report);
    let number = |key: &str| spec["pool"][key].as_i64().unwrap_or_default();
    let count = number("resourceSliceCount");
    if count <= 0 {
        report.invalid(
            &at.child("resourceSliceCount"),
            &count.into(),
            "must be greater than zero",
        );
    }
    let generation = number("generation");
    if generation < 0 {
        report.invalid(
            &at.child("generation"),
            &generation.into(),
            "must be greater than or equal to zero",
        );
    }
    if let Some(old) = old.map(|old| &old["spec"]) {
        report.immutable_text(&at.child("name"), &spec["pool"]["name"], &old["pool"]["name"]);
        report.immutable_text(&path.child("driver"), &spec["driver"], &old["driver"]);
        if !same(&spec["nodeName"], &old["nodeName"]) {
            report.invalid(
                &path.child("nodeName"),
                &spec["nodeName"],
                crate::validation::report::IMMUTABLE,
            );
        }
    }
    nodes(spec, &path, report);
    distinct(
        &spec["devices"],
        DEVICES_MAX,
        name_of,
        &path.child("devices"),
        report,
        device,
    );
}

/// Where the devices can be reached from: said in exactly one way.
fn nodes(spec: &Value, path: &FieldPath, report: &mut Report) {
    let mut ways = Vec::new();
    if let Some(name) = spec["nodeName"].as_str() {
        let at = path.child("nodeName");
        if name.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            report.invalid(&at, &name.into(), detail);
        } else {
            ways.push("`nodeName`");
            report.dns_subdomain(&at, &spec["nodeName"]);
        }
    }
    let selector = &spec["nodeSelector"];
    if !selector.is_null() {
        ways.push("`nodeSelector`");
        let at = path.child("nodeSelector").child("nodeSelectorTerms");
        scheduling::node_terms(&selector["nodeSelectorTerms"], &at, report);
        if items(&selector["nodeSelectorTerms"]).len() != 1 {
            let terms = Value::from(items(&selector["nodeSelectorTerms"]));
            report.invalid_shown(
                &at,
                &shown::node_terms(&terms),
                "must have exactly one node selector term",
            );
        }
    }
    match spec["allNodes"].as_bool() {
        Some(true) => ways.push("`allNodes`"),
        Some(false) => {
            let detail = "must be either unset or set to true";
            report.invalid(&path.child("allNodes"), &spec["allNodes"], detail);
        }
        None => {}
    }
    let rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match ways.len() {
        0 => report.required(path, rule),
        1 => {}
        _ => {
            let ways = format!("{{{}}}", ways.join(", "));
            report.invalid(path, &ways.into(), format!("{rule}, but multiple fields are set"));
        }
    }
}

fn device(device: &Value, path: &FieldPath, report: &mut Report) {
    report.dns_label(&path.child("name"), &device["name"]);
    let count = ["attributes", "capacity"]
        .iter()
        .map(|key| entries(&device[*key]).count())
        .sum::<usize>();
    if count > ATTRIBUTES_MAX {
        let detail =
            format!("the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}");
        report.invalid(path, &count.into(), detail);
    }
    for key in ["attributes", "capacity"] {
        for (name, value) in entries(&device[key]) {
            let at = path.child(key).key(&cut(name));
            qualified(name, &at, report);
            if key == "attributes" {
                attribute(value, &at, report);
            }
        }
    }
}

fn attribute(value: &Value, path: &FieldPath, report: &mut Report) {
    let there = ["int", "bool", "string", "version"]
        .iter()
        .filter(|key| !value[**key].is_null())
        .count();
    let too_long = |key: &str| text(&value[key]).len() > VALUE_MAX;
    if too_long("string") {
        report.too_long(&path.child("string"), VALUE_MAX);
    }
    if let Some(version) = value["version"].as_str() {
        let at = path.child("version");
        if !is_semantic_version(version) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            report.invalid(&at, &value["version"], detail);
        }
        if too_long("version") {
            report.too_long(&at, VALUE_MAX);
        }
    }
    let detail = "exactly one value must be specified";
    match there {
        0 => report.invalid(path, &"".into(), detail),
        1 => {}
        _ => report.invalid_shown(path, &shown::attribute(value), detail),
    }
}

/// A long key, without its middle.
fn cut(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    if letters.len() <= KEY_SHOWN {
        return key.to_owned();
    }
    let rest = KEY_SHOWN - 3;
    let start = letters.iter().take(rest.div_ceil(2));
    let end = letters.iter().skip(letters.len() - rest / 2);
    start.chain(&['.', '.', '.']).chain(end).collect()
}

fn is_semantic_version(version: &str) -> bool {
    let (rest, build) = match version.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (version, None),
    };
    let (numbers, before) = match rest.split_once('-') {
        Some((numbers, before)) => (numbers, Some(before)),
        None => (rest, None),
    };
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    let is_number = |number: &str| {
        !number.is_empty()
            && number.bytes().all(|c| c.is_ascii_digit())
            && (number == "0" || !number.starts_with('0'))
    };
    let is_before =
        |word: &str| is_word(word) && (!word.bytes().all(|c| c.is_ascii_digit()) || is_number(word));
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && before.is_none_or(|before| before.split('.').all(is_before))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for good in [
            "1.2.3",
            "0.0.0",
            "1.2.3-alpha.1",
            "1.2.3-0a",
            "1.2.3+build.01",
            "1.2.3--x+y",
        ] {
            assert!(is_semantic_version(good), "{good}");
        }
        for bad in [
            "", "1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3.4", "v1.2.3",
        ] {
            assert!(!is_semantic_version(bad), "{bad}");
        }
    }

    #[test]
    fn long_keys_are_cut_in_the_middle() {
        assert_eq!(cut("short"), "short");
        let cut = cut(&"ab".repeat(60));
        assert_eq!(cut.len(), KEY_SHOWN);
        assert!(cut.starts_with("abab") && cut.contains("...") && cut.ends_with("ab"));
    }
}
