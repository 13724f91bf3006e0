//! Claims to devices: what belongs to features that are not on is dropped, and devices that were given back are forgotten.

use serde_json::Value;

use super::Object;
use crate::access::{each, items, text, with};

/// A claim's spec without what nobody looks at.
pub(super) fn drop_of_claim(spec: &mut Object) {
    with(spec, "devices", |devices| {
        each(devices, "constraints", |constraint| {
            constraint.remove("distinctAttribute");
        });
        each(devices, "requests", |request| {
            with(request, "exactly", drop_of_request);
            each(request, "firstAvailable", drop_of_request);
        });
    });
}

fn drop_of_request(request: &mut Object) {
    request.remove("tolerations");
    request.remove("capacity");
}

/// A slice without what nobody looks at.
pub(super) fn drop_of_slice(spec: &mut Object) {
    spec.remove("sharedCounters");
    spec.remove("perDeviceNodeSelection");
    each(spec, "devices", |device| {
        for key in [
            "taints",
            "consumesCounters",
            "nodeName",
            "nodeSelector",
            "allNodes",
            "bindingConditions",
            "bindingFailureConditions",
            "bindsToNode",
            "allowMultipleAllocations",
        ] {
            device.remove(key);
        }
        with(device, "capacity", |capacity| {
            for amount in capacity.values_mut().filter_map(Value::as_object_mut) {
                amount.remove("requestPolicy");
            }
        });
    });
}

/// The status of a claim without what nobody looks at, and without what is said of devices that it no longer has.
pub(super) fn drop_of_status(status: &mut Object, old: &Value) {
    with(status, "allocation", |allocation| {
        with(allocation, "devices", |devices| {
            each(devices, "results", |result| {
                for key in [
                    "shareID",
                    "consumedCapacity",
                    "bindingConditions",
                    "bindingFailureConditions",
                ] {
                    result.remove(key);
                }
            });
        });
    });
    each(status, "devices", |device| {
        device.remove("shareID");
    });
    let identity = |device: &Value| ["driver", "pool", "device"].map(|key| text(&device[key]).to_owned());
    let now = status.get("allocation").cloned().unwrap_or_default();
    let results = |allocation: &Value| -> Vec<_> {
        items(&allocation["devices"]["results"])
            .iter()
            .map(identity)
            .collect()
    };
    let kept = results(&now);
    let gone: Vec<_> = results(&old["status"]["allocation"])
        .into_iter()
        .filter(|device| !kept.contains(device))
        .collect();
    if let Some(Value::Array(devices)) = status.get_mut("devices") {
        devices.retain(|device| !gone.contains(&identity(device)));
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn devices_that_were_given_back_are_forgotten() {
        let device = |name: &str| json!({"driver": "d", "pool": "p", "device": name});
        let old = json!({"status": {"allocation": {"devices": {"results": [device("a"), device("b")]}}}});
        let mut status = json!({
            "allocation": {"devices": {"results": [device("a")]}},
            "devices": [device("a"), device("b"), device("c")],
        });
        drop_of_status(status.as_object_mut().unwrap(), &old);
        assert_eq!(status["devices"], json!([device("a"), device("c")]));
    }
}
