//! Thresholds, deadlines and the names of groups.

use lockgate_api::rollout::{IntOrString, MandatoryDecisionGroup, parse_deadline, parse_threshold};
use lockgate_engine::gate::groups::GroupKey;
use lockgate_engine::gate::rules;
use serde_json::{Value, json};

use crate::{expected, same};

pub(crate) fn threshold_size(case: &Value) -> Result<(), String> {
    let value: IntOrString = serde_json::from_value(case["value"].clone()).unwrap();
    let number = |name: &str| usize::try_from(case[name].as_u64().unwrap()).unwrap();
    let found = match parse_threshold(&value) {
        Ok(threshold) => json!(rules::threshold_size(
            threshold,
            number("total"),
            number("default")
        )),
        Err(_) => json!({ "error": "percent" }),
    };
    same("size", &found, expected(case))
}

pub(crate) fn deadline_text(case: &Value) -> Result<(), String> {
    let found = match parse_deadline(case["text"].as_str().unwrap()) {
        Ok(None) => json!("unlimited"),
        Ok(Some(deadline)) if deadline.subsec_nanos() == 0 => json!(deadline.as_secs()),
        Ok(Some(deadline)) => json!(deadline.as_secs_f64()),
        Err(_) => json!({ "error": true }),
    };
    let expected = case.get("recommended_seconds").unwrap_or(&case["expect_seconds"]);
    match (expected.as_f64(), found.as_f64()) {
        (Some(expected), Some(found)) if expected == found => Ok(()),
        _ => same("deadline", &found, expected),
    }
}

/// The keys of mandatory entries, which are written with `name` and `index`.
pub(crate) fn keys(entries: &Value) -> Vec<GroupKey> {
    let entries = entries.as_array().into_iter().flatten();
    let keys = entries.map(|entry| {
        let group = MandatoryDecisionGroup {
            group_name: entry["name"].as_str().unwrap_or_default().to_owned(),
            group_index: entry["index"].as_i64().map(|index| i32::try_from(index).unwrap()),
        };
        GroupKey::from(&group)
    });
    keys.collect()
}

pub(crate) fn mandatory_entries(case: &Value) -> Result<(), String> {
    let keys = keys(&case["entries"]).into_iter().map(|key| match key {
        GroupKey::Name(name) => json!({ "name": name, "index": 0 }),
        GroupKey::Index(index) => json!({ "name": "", "index": index }),
    });
    same("keys", &keys.collect(), &case["expect_keys"])
}
