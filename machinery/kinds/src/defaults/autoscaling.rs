//! HorizontalPodAutoscalers.

use serde_json::json;

use crate::access::{Object, is_empty, make, set, with};

/// autoscaling/v1.
pub(super) fn autoscaler_v1(object: &mut Object) {
    let metrics = object
        .get("metadata")
        .map(|meta| &meta["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]);
    let other_metrics = metrics.is_some_and(|metrics| !metrics.is_null());
    make(object, "spec", |spec| {
        set(spec, "minReplicas", 1);
        if !other_metrics {
            set(spec, "targetCPUUtilizationPercentage", 80);
        }
    });
    make(object, "status", |status| {
        set(status, "currentReplicas", 0);
        set(status, "desiredReplicas", 0);
    });
}

/// autoscaling/v2.
pub(super) fn autoscaler_v2(object: &mut Object) {
    make(object, "spec", |spec| {
        set(spec, "minReplicas", 1);
        if spec.get("metrics").is_none_or(is_empty) {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
            spec.insert("metrics".to_owned(), json!([metric]));
        }
        with(spec, "behavior", |behavior| {
            make(behavior, "scaleUp", |rules| {
                set(rules, "stabilizationWindowSeconds", 0);
                set(rules, "selectPolicy", "Max");
                let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
                let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
                set(rules, "policies", json!([pods, percent]));
            });
            make(behavior, "scaleDown", |rules| {
                set(rules, "selectPolicy", "Max");
                set(
                    rules,
                    "policies",
                    json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
                );
            });
        });
    });
    make(object, "status", |status| set(status, "desiredReplicas", 0));
}
