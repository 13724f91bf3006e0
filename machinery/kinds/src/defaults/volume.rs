//! Volumes of pods, persistent volumes and claims.

use serde_json::Value;

use super::pod::pull_policy;
use crate::access::{Object, each, empty, make, set, set_text, with};

/// The file mode 0644 of volumes that are made of keys.
const KEYS_MODE: i64 = 0o644;

/// One volume of a pod.
pub(super) fn volume(volume: &mut Object) {
    if !volume.keys().any(|key| key != "name") {
        volume.insert("emptyDir".to_owned(), empty());
    }
    for key in ["secret", "configMap"] {
        with(volume, key, |source| set(source, "defaultMode", KEYS_MODE));
    }
    with(volume, "downwardAPI", |source| {
        set(source, "defaultMode", KEYS_MODE);
        downward(source);
    });
    with(volume, "projected", |source| {
        set(source, "defaultMode", KEYS_MODE);
        each(source, "sources", |source| {
            with(source, "serviceAccountToken", |token| {
                set(token, "expirationSeconds", 3600)
            });
            with(source, "downwardAPI", downward);
        });
    });
    with(volume, "image", |image| {
        let policy = pull_policy(image.get("reference").and_then(Value::as_str).unwrap_or_default());
        set_text(image, "pullPolicy", policy);
    });
    with(volume, "ephemeral", |source| {
        with(source, "volumeClaimTemplate", |template| {
            set(template, "metadata", empty());
            make(template, "spec", claim_spec);
        });
    });
    network_sources(volume);
}

fn downward(source: &mut Object) {
    each(source, "items", |item| {
        with(item, "fieldRef", |field| set_text(field, "apiVersion", "v1"));
        with(item, "resourceFieldRef", |field| set_text(field, "divisor", "0"));
    });
}

/// The sources that pods and persistent volumes share.
fn network_sources(owner: &mut Object) {
    with(owner, "hostPath", |path| set(path, "type", ""));
    with(owner, "iscsi", |disk| set_text(disk, "iscsiInterface", "default"));
    with(owner, "rbd", |disk| {
        set_text(disk, "pool", "rbd");
        set_text(disk, "user", "admin");
        set_text(disk, "keyring", "/etc/ceph/keyring");
    });
    with(owner, "azureDisk", |disk| {
        set_text(disk, "cachingMode", "ReadWrite");
        set_text(disk, "kind", "Shared");
        set_text(disk, "fsType", "ext4");
        set(disk, "readOnly", false);
    });
    with(owner, "scaleIO", |disk| {
        set_text(disk, "storageMode", "ThinProvisioned");
        set_text(disk, "fsType", "xfs");
    });
}

/// A PersistentVolume.
pub(super) fn persistent_volume(object: &mut Object) {
    make(object, "spec", persistent_volume_spec);
    make(object, "status", |status| set_text(status, "phase", "Pending"));
}

/// The spec of a PersistentVolume, also inside of a VolumeAttachment.
pub(super) fn persistent_volume_spec(spec: &mut Object) {
    set_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    set(spec, "volumeMode", "Filesystem");
    network_sources(spec);
}

/// A PersistentVolumeClaim.
pub(super) fn claim(object: &mut Object) {
    make(object, "spec", claim_spec);
    make(object, "status", |status| set_text(status, "phase", "Pending"));
}

fn claim_spec(spec: &mut Object) {
    set(spec, "volumeMode", "Filesystem");
    set(spec, "resources", empty());
    // Before 1.24 a snapshot or clone was named in dataSource alone; both fields now say the same.
    if !spec.contains_key("dataSourceRef")
        && let Some(source) = spec.get("dataSource").cloned()
    {
        spec.insert("dataSourceRef".to_owned(), source);
    }
}
