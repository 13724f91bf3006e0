//! The status of a new pod, with its quality of service.

use std::collections::BTreeMap;

use machinery_value::quantity::Quantity;
use serde_json::{Value, json};

use crate::access::{Object, entries, items, text};

/// A new pod is pending; a gated one says why it is not scheduled.
pub(super) fn initial_status(fields: &mut Object) {
    let spec = fields.get("spec").cloned().unwrap_or_default();
    let mut status = json!({"phase": "Pending", "qosClass": class(&spec)});
    if !items(&spec["schedulingGates"]).is_empty() {
        let now = fields
            .get("metadata")
            .map(|meta| meta["creationTimestamp"].clone());
        status["conditions"] = json!([{
            "lastTransitionTime": now,
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    fields.insert("status".to_owned(), status);
}

type Amounts = BTreeMap<String, Quantity>;

/// Adds what counts: cpu and memory above zero. Tells whether both were there.
fn add(total: &mut Amounts, list: &Value) -> bool {
    let mut found = 0;
    for (name, value) in entries(list) {
        let Ok(amount) = Quantity::parse(text(value)) else {
            continue;
        };
        if !matches!(name.as_str(), "cpu" | "memory") || amount.is_zero() || amount.is_negative() {
            continue;
        }
        found += 1;
        let sum = total
            .get(name)
            .and_then(|sum| sum.checked_add(&amount))
            .unwrap_or(amount);
        total.insert(name.clone(), sum);
    }
    found == 2
}

/// `Guaranteed` when every container has limits for cpu and memory that it also requests; `BestEffort` when none
/// has any; else `Burstable`.
pub(crate) fn class(spec: &Value) -> &'static str {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut guaranteed = true;
    let pod = &spec["resources"];
    if pod.is_null() {
        for container in items(&spec["containers"])
            .iter()
            .chain(items(&spec["initContainers"]))
        {
            add(&mut requests, &container["resources"]["requests"]);
            guaranteed &= add(&mut limits, &container["resources"]["limits"]);
        }
    } else {
        add(&mut requests, &pod["requests"]);
        guaranteed = add(&mut limits, &pod["limits"]) || pod["limits"].is_null();
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let table = [
            (json!({"containers": [{}]}), "BestEffort"),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}),
                "BestEffort",
            ),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}),
                "Burstable",
            ),
            (
                json!({"containers": [{"resources": {"requests": both, "limits": both}}]}),
                "Guaranteed",
            ),
            (
                json!({"containers": [{"resources": {"requests": both, "limits": both}}, {}]}),
                "Burstable",
            ),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": both}}]}),
                "Guaranteed",
            ),
            (
                json!({"containers": [{}], "resources": {"requests": both, "limits": both}}),
                "Guaranteed",
            ),
        ];
        for (spec, expected) in table {
            assert_eq!(class(&spec), expected, "{spec}");
        }
    }
}
