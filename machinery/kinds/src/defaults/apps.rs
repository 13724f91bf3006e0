//! Workloads of the apps group.

use serde_json::json;

use super::{pod, volume};
use crate::access::{Object, each, make, set, set_text, text};

/// A Deployment.
pub(super) fn deployment(object: &mut Object) {
    make(object, "spec", |spec| {
        set(spec, "replicas", 1);
        make(spec, "strategy", |strategy| {
            set_text(strategy, "type", "RollingUpdate");
            if strategy.get("type").map(text) == Some("RollingUpdate") {
                make(strategy, "rollingUpdate", |rolling| {
                    set(rolling, "maxUnavailable", "25%");
                    set(rolling, "maxSurge", "25%");
                });
            }
        });
        set(spec, "revisionHistoryLimit", 10);
        set(spec, "progressDeadlineSeconds", 600);
        pod::template(spec);
    });
    make(object, "status", |_| {});
}

/// A ReplicaSet.
pub(super) fn replica_set(object: &mut Object) {
    make(object, "spec", |spec| {
        set(spec, "replicas", 1);
        pod::template(spec);
    });
    make(object, "status", |status| set(status, "replicas", 0));
}

/// A DaemonSet.
pub(super) fn daemon_set(object: &mut Object) {
    make(object, "spec", |spec| {
        make(spec, "updateStrategy", |strategy| {
            set_text(strategy, "type", "RollingUpdate");
            if strategy.get("type").map(text) == Some("RollingUpdate") {
                make(strategy, "rollingUpdate", |rolling| {
                    set(rolling, "maxUnavailable", 1);
                    set(rolling, "maxSurge", 0);
                });
            }
        });
        set(spec, "revisionHistoryLimit", 10);
        pod::template(spec);
    });
    make(object, "status", |status| {
        for key in [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
        ] {
            set(status, key, 0);
        }
    });
}

/// A StatefulSet.
pub(super) fn stateful_set(object: &mut Object) {
    make(object, "spec", |spec| {
        set_text(spec, "podManagementPolicy", "OrderedReady");
        make(spec, "updateStrategy", |strategy| {
            let typed = strategy.get("type").is_some_and(|kind| !text(kind).is_empty());
            if !typed {
                set_text(strategy, "type", "RollingUpdate");
                make(strategy, "rollingUpdate", |_| {});
            }
            if strategy.get("type").map(text) == Some("RollingUpdate")
                && let Some(rolling) = strategy
                    .get_mut("rollingUpdate")
                    .and_then(|rolling| rolling.as_object_mut())
            {
                set(rolling, "partition", 0);
            }
        });
        set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
        make(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
            set_text(policy, "whenDeleted", "Retain");
            set_text(policy, "whenScaled", "Retain");
        });
        set(spec, "replicas", 1);
        set(spec, "revisionHistoryLimit", 10);
        pod::template(spec);
        each(spec, "volumeClaimTemplates", |claim| {
            set_text(claim, "apiVersion", "v1");
            set_text(claim, "kind", "PersistentVolumeClaim");
            volume::claim(claim);
        });
    });
    make(object, "status", |status| {
        set(status, "replicas", 0);
        set(status, "availableReplicas", 0);
    });
}
