//! Small kinds of the core group.

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, Column, NAME};
use crate::view::{
    Context, UNSET, annotation, at, condition, containers, count, deleting, int, int_or, labels, list, name,
    present_or, quantity, row, text, text_or,
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "",
        kind: "ReplicationController",
        columns: &[
            NAME,
            Column::integer("Desired"),
            Column::integer("Current"),
            Column::integer("Ready"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: replication_controller,
    },
    Kind {
        group: "",
        kind: "Namespace",
        columns: &[NAME, Column::string("Status"), AGE],
        cells: namespace,
    },
    Kind {
        group: "",
        kind: "ServiceAccount",
        columns: &[NAME, AGE],
        cells: service_account,
    },
    Kind {
        group: "",
        kind: "Secret",
        columns: &[NAME, Column::string("Type"), Column::string("Data"), AGE],
        cells: secret,
    },
    Kind {
        group: "",
        kind: "ConfigMap",
        columns: &[NAME, Column::string("Data"), AGE],
        cells: config_map,
    },
    Kind {
        group: "",
        kind: "PersistentVolume",
        columns: &[
            NAME,
            Column::string("Capacity"),
            Column::string("Access Modes"),
            Column::string("Reclaim Policy"),
            Column::string("Status"),
            Column::string("Claim"),
            Column::string("StorageClass"),
            Column::string("VolumeAttributesClass"),
            Column::string("Reason"),
            AGE,
            Column::wide("VolumeMode"),
        ],
        cells: persistent_volume,
    },
    Kind {
        group: "",
        kind: "PersistentVolumeClaim",
        columns: &[
            NAME,
            Column::string("Status"),
            Column::string("Volume"),
            Column::string("Capacity"),
            Column::string("Access Modes"),
            Column::string("StorageClass"),
            Column::string("VolumeAttributesClass"),
            AGE,
            Column::wide("VolumeMode"),
        ],
        cells: persistent_volume_claim,
    },
    Kind {
        group: "",
        kind: "ResourceQuota",
        columns: &[NAME, Column::string("Request"), Column::string("Limit"), AGE],
        cells: resource_quota,
    },
    Kind {
        group: "",
        kind: "PodTemplate",
        columns: &[
            NAME,
            Column::string("Containers"),
            Column::string("Images"),
            Column::string("Pod Labels"),
        ],
        cells: pod_template,
    },
    Kind {
        group: "",
        kind: "ComponentStatus",
        columns: &[
            NAME,
            Column::string("Status"),
            Column::string("Message"),
            Column::string("Error"),
        ],
        cells: component_status,
    },
];

fn replication_controller(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.template"));
    // Without a selector of its own the controller selects what its template makes.
    let selector = match count(object, "spec.selector") {
        0 => at(object, "spec.template.metadata.labels"),
        _ => at(object, "spec.selector"),
    };
    row![
        name(object),
        int_or(object, "spec.replicas", 1),
        int(object, "status.replicas"),
        int(object, "status.readyReplicas"),
        context.age(object),
        names,
        images,
        labels(selector),
    ]
}

fn namespace(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text_or(object, "status.phase", "Active"),
        context.age(object)
    ]
}

fn service_account(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![name(object), context.age(object)]
}

fn secret(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text_or(object, "type", "Opaque"),
        count(object, "data"),
        context.age(object)
    ]
}

fn config_map(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        count(object, "data") + count(object, "binaryData"),
        context.age(object)
    ]
}

/// The short names of the access modes, each once and always in the same order.
fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = short
        .iter()
        .filter(|(long, _)| modes.iter().any(|mode| mode == long));
    present.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// The storage class; the annotation it was once named in still goes first.
fn storage_class(object: &Value) -> &str {
    annotation(object, "volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| text(object, "spec.storageClassName"))
}

fn phase(object: &Value) -> &str {
    if deleting(object) {
        "Terminating"
    } else {
        text_or(object, "status.phase", "Pending")
    }
}

fn persistent_volume(object: &Value, context: Context<'_>) -> Vec<Value> {
    let claim = at(object, "spec.claimRef");
    let claim = match claim {
        Value::Null => String::new(),
        _ => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
    };
    row![
        name(object),
        quantity(at(object, "spec.capacity.storage")),
        access_modes(list(object, "spec.accessModes")),
        text_or(object, "spec.persistentVolumeReclaimPolicy", "Retain"),
        phase(object),
        claim,
        storage_class(object),
        present_or(object, "spec.volumeAttributesClassName", UNSET),
        text(object, "status.reason"),
        context.age(object),
        present_or(object, "spec.volumeMode", "Filesystem"),
    ]
}

fn persistent_volume_claim(object: &Value, context: Context<'_>) -> Vec<Value> {
    let volume = text(object, "spec.volumeName");
    // What the volume offers is known once there is one.
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (
            quantity(at(object, "status.capacity.storage")),
            access_modes(list(object, "status.accessModes")),
        ),
    };
    row![
        name(object),
        phase(object),
        volume,
        capacity,
        modes,
        storage_class(object),
        present_or(object, "spec.volumeAttributesClassName", UNSET),
        context.age(object),
        present_or(object, "spec.volumeMode", "Filesystem"),
    ]
}

fn resource_quota(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    if let Some(hard) = at(object, "status.hard").as_object() {
        let used = at(object, "status.used");
        // The map is ordered by name, and so are the cells.
        for (resource, hard) in hard {
            let used = used.get(resource).unwrap_or(&Value::Null);
            let printed = format!("{resource}: {}/{}", quantity(used), quantity(hard));
            if resource.starts_with("limits.") {
                limits.push(printed)
            } else {
                requests.push(printed)
            }
        }
    }
    row![
        name(object),
        requests.join(", "),
        limits.join(", "),
        context.age(object)
    ]
}

fn pod_template(object: &Value, _: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "template"));
    row![
        name(object),
        names,
        images,
        labels(at(object, "template.metadata.labels"))
    ]
}

fn component_status(object: &Value, _: Context<'_>) -> Vec<Value> {
    match condition(object, "conditions", "Healthy") {
        None => row![name(object), "Unknown", "", ""],
        Some(healthy) => {
            let status = if text(healthy, "status") == "True" {
                "Healthy"
            } else {
                "Unhealthy"
            };
            row![
                name(object),
                status,
                text(healthy, "message"),
                text(healthy, "error")
            ]
        }
    }
}
