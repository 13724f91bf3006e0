//! Kinds that are served in two shapes and stored in one.
//!
//! Events of `events.k8s.io/v1` are stored as core events, and `autoscaling/v1` autoscalers as those of v2: what one
//! client writes in one shape, another reads in the other.

use machinery_value::{Map, Value};
use serde_json::json;

/// How a second version's shape is turned into the stored one and back.
#[derive(Debug)]
pub struct Conversion {
    /// The group under which objects are stored.
    pub(crate) storage_group: &'static str,
    /// The version that is stored.
    pub(crate) storage_version: &'static str,
    to_storage: fn(&mut Value),
    from_storage: fn(&mut Value),
}

impl Conversion {
    /// Turns a content of the served shape into the stored one.
    pub(crate) fn store(&self, kind: &str, content: &mut Value) {
        (self.to_storage)(content);
        complete(self.storage_group, self.storage_version, kind, content);
    }

    /// Turns a stored content into the shape that `resource` serves.
    pub(crate) fn serve(&self, group: &str, version: &str, kind: &str, content: &mut Value) {
        (self.from_storage)(content);
        complete(group, version, kind, content);
    }
}

/// Adds the fields that a type always writes, also when they are empty.
fn complete(group: &str, version: &str, kind: &str, content: &mut Value) {
    let Some(ty) = machinery_wire::lookup(group, version, kind) else {
        return;
    };
    if let Ok(normalized) = machinery_wire::decode(ty, content.clone()) {
        *content = normalized.value;
    }
}

/// The conversion of a built-in kind, if its shape is not the stored one.
pub(crate) fn conversion(group: &str, version: &str, kind: &str) -> Option<&'static Conversion> {
    match (group, version, kind) {
        ("events.k8s.io", "v1", "Event") => Some(&EVENTS),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some(&AUTOSCALERS),
        _ => None,
    }
}

static EVENTS: Conversion = Conversion {
    storage_group: "",
    storage_version: "v1",
    to_storage: |event| rename(event, EVENT_FIELDS.iter().map(|(new, core)| (*new, *core))),
    from_storage: |event| rename(event, EVENT_FIELDS.iter().map(|(new, core)| (*core, *new))),
};

/// Fields of `events.k8s.io/v1`, and their names in core.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
];

fn rename(object: &mut Value, pairs: impl Iterator<Item = (&'static str, &'static str)>) {
    let Value::Object(map) = object else { return };
    for (from, to) in pairs {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}

static AUTOSCALERS: Conversion = Conversion {
    storage_group: "autoscaling",
    storage_version: "v2",
    to_storage: |scaler| {
        if let Some(spec) = scaler.get_mut("spec").and_then(Value::as_object_mut) {
            cpu_to_metrics(spec, "targetCPUUtilizationPercentage", "metrics", "target");
        }
        if let Some(status) = scaler.get_mut("status").and_then(Value::as_object_mut) {
            cpu_to_metrics(
                status,
                "currentCPUUtilizationPercentage",
                "currentMetrics",
                "current",
            );
        }
    },
    from_storage: |scaler| {
        if let Some(spec) = scaler.get_mut("spec").and_then(Value::as_object_mut) {
            metrics_to_cpu(spec, "targetCPUUtilizationPercentage", "metrics", "target");
            spec.remove("behavior");
        }
        if let Some(status) = scaler.get_mut("status").and_then(Value::as_object_mut) {
            metrics_to_cpu(
                status,
                "currentCPUUtilizationPercentage",
                "currentMetrics",
                "current",
            );
            status.remove("conditions");
        }
    },
};

fn cpu_to_metrics(map: &mut Map<String, Value>, flat: &str, metrics: &str, side: &str) {
    if let Some(percent) = map.remove(flat) {
        let mut value = json!({"averageUtilization": percent});
        if side == "target" {
            value["type"] = json!("Utilization");
        }
        map.insert(
            metrics.to_owned(),
            json!([{"type": "Resource", "resource": {"name": "cpu", side: value}}]),
        );
    }
}

fn metrics_to_cpu(map: &mut Map<String, Value>, flat: &str, metrics: &str, side: &str) {
    let Some(list) = map.remove(metrics) else { return };
    let cpu = list.as_array().and_then(|list| {
        list.iter()
            .filter(|m| m["type"] == "Resource" && m["resource"]["name"] == "cpu")
            .find_map(|m| m["resource"][side]["averageUtilization"].as_i64())
    });
    if let Some(percent) = cpu {
        map.insert(flat.to_owned(), json!(percent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_two_shapes_and_one_content() {
        let mut event = json!({"regarding": {"name": "w"}, "note": "hello", "reason": "Why", "reportingController": "lab"});
        let before = event.clone();
        (EVENTS.to_storage)(&mut event);
        assert_eq!(
            event,
            json!({"involvedObject": {"name": "w"}, "message": "hello", "reason": "Why", "reportingComponent": "lab"})
        );
        (EVENTS.from_storage)(&mut event);
        assert_eq!(event, before);
    }

    #[test]
    fn a_cpu_target_is_a_metric() {
        let mut scaler = json!({"spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}});
        let before = scaler.clone();
        (AUTOSCALERS.to_storage)(&mut scaler);
        assert_eq!(
            scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            80
        );
        (AUTOSCALERS.from_storage)(&mut scaler);
        assert_eq!(scaler, before);
    }
}
