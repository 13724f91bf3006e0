//! The `storage.k8s.io` group. Storage capacities have no table of their own.

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, ATTACHER, Column, NAME};
use crate::view::{Context, UNSET, annotation, at, count, flag_or, list, name, present_or, row, text, texts};

const GROUP: &str = "storage.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: GROUP,
        kind: "StorageClass",
        columns: &[
            NAME,
            Column::string("Provisioner"),
            Column::string("ReclaimPolicy"),
            Column::string("VolumeBindingMode"),
            Column::string("AllowVolumeExpansion"),
            AGE,
        ],
        cells: storage_class,
    },
    Kind {
        group: GROUP,
        kind: "VolumeAttributesClass",
        columns: &[NAME, Column::string("DriverName"), AGE],
        cells: volume_attributes_class,
    },
    Kind {
        group: GROUP,
        kind: "VolumeAttachment",
        columns: &[
            NAME,
            ATTACHER,
            Column::string("PV"),
            Column::string("Node"),
            Column::boolean("Attached"),
            AGE,
        ],
        cells: volume_attachment,
    },
    Kind {
        group: GROUP,
        kind: "CSINode",
        columns: &[NAME, Column::integer("Drivers"), AGE],
        cells: csi_node,
    },
    Kind {
        group: GROUP,
        kind: "CSIDriver",
        columns: &[
            NAME,
            Column::boolean("AttachRequired"),
            Column::boolean("PodInfoOnMount"),
            Column::boolean("StorageCapacity"),
            Column::string("TokenRequests"),
            Column::boolean("RequiresRepublish"),
            Column::string("Modes"),
            AGE,
        ],
        cells: csi_driver,
    },
];

fn storage_class(object: &Value, context: Context<'_>) -> Vec<Value> {
    let default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| annotation(object, key) == Some("true"));
    let name = if default {
        format!("{} (default)", name(object))
    } else {
        name(object).to_owned()
    };
    row![
        name,
        text(object, "provisioner"),
        present_or(object, "reclaimPolicy", "Delete"),
        present_or(object, "volumeBindingMode", "Immediate"),
        flag_or(object, "allowVolumeExpansion", false),
        context.age(object),
    ]
}

fn volume_attributes_class(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![name(object), text(object, "driverName"), context.age(object)]
}

fn volume_attachment(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, "spec.attacher"),
        text(object, "spec.source.persistentVolumeName"),
        text(object, "spec.nodeName"),
        flag_or(object, "status.attached", false),
        context.age(object),
    ]
}

fn csi_node(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![name(object), count(object, "spec.drivers"), context.age(object)]
}

fn csi_driver(object: &Value, context: Context<'_>) -> Vec<Value> {
    let tokens = match at(object, "spec.tokenRequests") {
        Value::Null => UNSET.to_owned(),
        _ => texts(object, "spec.tokenRequests", Some("audience")).join(","),
    };
    let modes = match list(object, "spec.volumeLifecycleModes") {
        [] => "Persistent".to_owned(),
        _ => texts(object, "spec.volumeLifecycleModes", None).join(","),
    };
    row![
        name(object),
        flag_or(object, "spec.attachRequired", true),
        flag_or(object, "spec.podInfoOnMount", false),
        flag_or(object, "spec.storageCapacity", false),
        tokens,
        flag_or(object, "spec.requiresRepublish", false),
        modes,
        context.age(object),
    ]
}
