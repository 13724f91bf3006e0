//! Label selectors of objects: their form, and whether they match.

use machinery_value::field::FieldPath;
use machinery_value::labels::LabelSelector;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{is_empty, items, text};

/// The form of a `matchLabels`/`matchExpressions` selector.
pub(super) fn check(selector: &Value, path: &FieldPath, report: &mut Report) {
    report.labels(&path.child("matchLabels"), &selector["matchLabels"]);
    for (index, rule) in items(&selector["matchExpressions"]).iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = items(&rule["values"]);
        match text(&rule["operator"]) {
            "In" | "NotIn" if values.is_empty() => {
                report.required(
                    &path.child("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                report.forbidden(&path.child("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => report.invalid(
                &path.child("operator"),
                &other.into(),
                "not a valid selector operator",
            ),
        }
        report.qualified_name(&path.child("key"), text(&rule["key"]));
        for (index, value) in values.iter().enumerate() {
            report.messages(
                &path.child("values").index(index),
                text(value),
                rules::label_value(text(value)),
            );
        }
    }
}

/// Whether a selector has no requirement, and so matches everything.
pub(super) fn matches_all(selector: &Value) -> bool {
    is_empty(&selector["matchLabels"]) && is_empty(&selector["matchExpressions"])
}

/// Whether a well-formed selector matches `labels`; `None` if it is malformed. None at all matches nothing.
pub(super) fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    let selector = LabelSelector::from_object(Some(selector).filter(|selector| !selector.is_null())).ok()?;
    Some(selector.matches_labels(labels.as_object()))
}
