//! Storage classes, CSI drivers, volume attachments and priority classes.

use serde_json::json;

use super::volume;
use crate::access::{Object, is_empty, make, set, with};

/// A StorageClass.
pub(super) fn storage_class(object: &mut Object) {
    set(object, "reclaimPolicy", "Delete");
    set(object, "volumeBindingMode", "Immediate");
}

/// A CSIDriver.
pub(super) fn csi_driver(object: &mut Object) {
    make(object, "spec", |spec| {
        set(spec, "attachRequired", true);
        set(spec, "podInfoOnMount", false);
        set(spec, "storageCapacity", false);
        set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if spec.get("volumeLifecycleModes").is_none_or(is_empty) {
            spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
        }
        set(spec, "requiresRepublish", false);
        set(spec, "seLinuxMount", false);
    });
}

/// A VolumeAttachment.
pub(super) fn volume_attachment(object: &mut Object) {
    with(object, "spec", |spec| {
        with(spec, "source", |source| {
            with(source, "inlineVolumeSpec", volume::persistent_volume_spec);
        });
    });
    make(object, "status", |status| set(status, "attached", false));
}

/// A PriorityClass.
pub(super) fn priority_class(object: &mut Object) {
    set(object, "value", 0);
    set(object, "preemptionPolicy", "PreemptLowerPriority");
}
