//! Runtime classes.

use machinery_value::field::FieldPath;
use serde_json::{Value, json};

use super::report::Report;
use super::{resources, scheduling};
use crate::access::{items, same, text};

/// A RuntimeClass.
pub(super) fn runtime_class(object: &Value, report: &mut Report) {
    report.dns_label(&FieldPath::new("handler"), &object["handler"]);
    let overhead = &object["overhead"];
    if !overhead.is_null() {
        // What a Pod costs by itself is checked as if a container were limited to it.
        let limits = json!({"limits": overhead["podFixed"]});
        resources::container(&limits, &FieldPath::new("overhead"), report);
    }
    let path = FieldPath::new("scheduling");
    let placed = &object["scheduling"];
    report.labels(&path.child("nodeSelector"), &placed["nodeSelector"]);
    let path = path.child("tolerations");
    scheduling::tolerations(&placed["tolerations"], &path, report);
    let all = items(&placed["tolerations"]);
    for (index, toleration) in all.iter().enumerate() {
        let twin = |other: &Value| {
            ["key", "operator", "value", "effect"]
                .iter()
                .all(|key| same(&other[*key], &toleration[*key]))
        };
        if all.iter().take(index).any(twin) {
            report.duplicate_shown(&path.index(index), &shown_toleration(toleration));
        }
    }
}

/// A toleration as it is inside the server.
fn shown_toleration(toleration: &Value) -> String {
    let quoted = |key: &str| Value::from(text(&toleration[key]));
    format!(
        "{{\"Key\":{},\"Operator\":{},\"Value\":{},\"Effect\":{},\"TolerationSeconds\":{}}}",
        quoted("key"),
        quoted("operator"),
        quoted("value"),
        quoted("effect"),
        toleration["tolerationSeconds"]
    )
}

/// A RuntimeClass that changes.
pub(super) fn runtime_class_update(new: &Value, old: &Value, report: &mut Report) {
    report.immutable_text(&FieldPath::new("handler"), &new["handler"], &old["handler"]);
}
