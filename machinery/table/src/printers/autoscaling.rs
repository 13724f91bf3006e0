//! Autoscalers: what they measure against what they aim at.
//!
//! Version 1 has room for the CPU alone and keeps everything else in annotations, in an older shape. It is
//! brought into the shape of version 2 first, so that both print alike. (The order of the metrics is lost on the way:
//! who has the object in version 2 should print that.)

use machinery_value::{Map, Value};
use serde_json::json;

use super::Kind;
use crate::age::UNKNOWN;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, NONE, annotation, at, int, int_or, list, name, quantity, row, text};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "autoscaling",
        kind: "HorizontalPodAutoscaler",
        columns: &[
            NAME,
            Column::string("Reference"),
            Column::string("Targets"),
            Column::string("MinPods"),
            Column::string("MaxPods"),
            Column::string("Replicas"),
            AGE,
        ],
        cells: autoscaler,
    },
    Kind {
        group: "autoscaling",
        kind: "Scale",
        columns: &[
            Column::string("Name"),
            Column::integer("Desired"),
            Column::integer("Available"),
            AGE,
        ],
        cells: scale,
    },
];

/// How many metrics are shown.
const SHOWN: usize = 2;

fn scale(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        int(object, "spec.replicas"),
        int(object, "status.replicas"),
        context.age(object)
    ]
}

fn autoscaler(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (mut specs, statuses) = match context.version {
        "v1" => (first_specs(object), first_statuses(object)),
        _ => (
            list(object, "spec.metrics").to_vec(),
            list(object, "status.currentMetrics").to_vec(),
        ),
    };
    if specs.is_empty() {
        specs.push(cpu_target(80));
    }
    let target = at(object, "spec.scaleTargetRef");
    row![
        name(object),
        format!("{}/{}", text(target, "kind"), text(target, "name")),
        targets(&specs, &statuses),
        int_or(object, "spec.minReplicas", 1).to_string(),
        int(object, "spec.maxReplicas"),
        int(object, "status.currentReplicas"),
        context.age(object),
    ]
}

fn targets(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let shown: Vec<String> = specs
        .iter()
        .take(SHOWN)
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    match specs.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} + {more} more...", shown.join(", ")),
        _ => shown.join(", "),
    }
}

/// One metric. The status at its place is that of the same metric, if it has the same source.
fn metric(spec: &Value, status: &Value) -> String {
    let source = match text(spec, "type") {
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let (spec, status) = (at(spec, source), at(status, source));
    let (target, current) = (at(spec, "target"), at(status, "current"));
    let average = at(target, "averageValue");
    let named = text(spec, "name");
    match source {
        "external" | "object" if !average.is_null() => {
            let current = match at(current, "averageValue") {
                Value::Null => UNKNOWN.to_owned(),
                average => quantity(average),
            };
            format!("{current}/{} (avg)", quantity(average))
        }
        "external" | "object" => {
            format!("{}/{}", reported(status, "value"), pointed(at(target, "value")))
        }
        "pods" => format!("{}/{}", reported(status, "averageValue"), pointed(average)),
        _ if !average.is_null() => {
            format!(
                "{named}: {}/{}",
                reported(status, "averageValue"),
                quantity(average)
            )
        }
        _ => format!(
            "{named}: {}/{}",
            percentage(at(current, "averageUtilization"), UNKNOWN),
            percentage(at(target, "averageUtilization"), "<auto>"),
        ),
    }
}

/// A value of a status: unknown while there is no status for the metric.
fn reported(status: &Value, field: &str) -> String {
    if status.is_null() {
        UNKNOWN.to_owned()
    } else {
        pointed(at(at(status, "current"), field))
    }
}

/// A quantity that should be there; its absence shows.
fn pointed(value: &Value) -> String {
    if value.is_null() {
        "<nil>".to_owned()
    } else {
        quantity(value)
    }
}

fn percentage(value: &Value, otherwise: &str) -> String {
    value
        .as_i64()
        .map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
}

fn cpu_target(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": percent}}})
}

/// The metrics of a version 1 object: those of the annotation, then the CPU.
fn first_specs(object: &Value) -> Vec<Value> {
    let mut specs = annotated(object, "autoscaling.alpha.kubernetes.io/metrics");
    for spec in &mut specs {
        for (source, aim) in sources(spec) {
            let fields = match source {
                "resource" | "containerResource" => [
                    ("targetAverageUtilization", "averageUtilization"),
                    ("targetAverageValue", "averageValue"),
                ],
                "object" => [("targetValue", "value"), ("averageValue", "averageValue")],
                _ => [("targetValue", "value"), ("targetAverageValue", "averageValue")],
            };
            regroup(aim, "target", &fields);
        }
    }
    if let Some(percent) = at(object, "spec.targetCPUUtilizationPercentage").as_i64() {
        specs.push(cpu_target(percent));
    }
    specs
}

/// The current metrics of a version 1 object: those of the annotation say more than the CPU's own field.
fn first_statuses(object: &Value) -> Vec<Value> {
    let mut statuses = annotated(object, "autoscaling.alpha.kubernetes.io/current-metrics");
    for status in &mut statuses {
        for (source, state) in sources(status) {
            let average = if source == "object" {
                "averageValue"
            } else {
                "currentAverageValue"
            };
            let fields = [
                ("currentAverageUtilization", "averageUtilization"),
                ("currentValue", "value"),
                (average, "averageValue"),
            ];
            regroup(state, "current", &fields);
        }
    }
    if statuses.is_empty()
        && let Some(percent) = at(object, "status.currentCPUUtilizationPercentage").as_i64()
    {
        let current = json!({"averageUtilization": percent});
        statuses.push(json!({"type": "Resource", "resource": {"name": "cpu", "current": current}}));
    }
    statuses
}

fn annotated(object: &Value, key: &str) -> Vec<Value> {
    annotation(object, key)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The sources of a metric that are written out, to be changed in place.
fn sources(metric: &mut Value) -> impl Iterator<Item = (&str, &mut Map<String, Value>)> {
    let fields = metric.as_object_mut().into_iter().flatten();
    fields.filter_map(|(source, value)| Some((source.as_str(), value.as_object_mut()?)))
}

/// Moves fields into one group under their newer names. (An older object metric has its *object* where the newer
/// one has its aim, which is why the group replaces what has its name.)
fn regroup(fields: &mut Map<String, Value>, group: &str, names: &[(&str, &str)]) {
    let moved: Map<String, Value> = names
        .iter()
        .filter_map(|(old, new)| Some(((*new).to_owned(), fields.remove(*old)?)))
        .filter(|(_, value)| !value.is_null())
        .collect();
    fields.insert(group.to_owned(), Value::Object(moved));
}
