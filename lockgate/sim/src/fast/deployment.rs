//! Deployments without Pods.
//!
//! A rollout in the middle and one that is stuck look the same: as many old Pods are left as must be available, and
//! the new ones fill what the surge allows. Which template the status speaks of stands in the message of its
//! condition `Progressing`, as it does in a real cluster.

use jiff::Timestamp;
use serde_json::Value;

use super::Progress;
use crate::deployment::{REVISION, availability, limits, set_name, set_progress, time_out};
use crate::object::{annotation, condition, int, replicas, set_annotation, set_count, status_of, text};

struct Counts {
    replicas: i64,
    updated: i64,
    available: i64,
}

pub(super) fn next(deployment: &Value, progress: Progress, now: Timestamp) -> (Value, Option<Timestamp>) {
    let set = set_name(deployment);
    let mut status = status_of(deployment);
    let said = |field: &str| condition(&status, "Progressing").map_or("", |c| text(&c[field]));
    let known = said("message").contains(&format!("\"{set}\""));
    let rolled_out = said("reason") == "NewReplicaSetAvailable";
    // A paused Deployment keeps its old template and can still be scaled.
    let paused = deployment["spec"]["paused"] == true && !known;
    let held = paused && rolled_out;
    let settled = (known && rolled_out) || held;
    let progress = if held {
        Progress::There { well: true }
    } else {
        progress
    };

    let wanted = replicas(deployment);
    let before = int(&status["availableReplicas"]);
    let counts = match progress {
        // It was paused before anything was rolled out.
        _ if paused && !held => Counts {
            replicas: 0,
            updated: 0,
            available: 0,
        },
        Progress::There { well: true } => Counts {
            replicas: wanted,
            updated: wanted,
            available: wanted,
        },
        // What was rolled out and then fails has nothing else to fall back on.
        Progress::There { well: false } if settled => Counts {
            replicas: wanted,
            updated: wanted,
            available: 0,
        },
        Progress::Moving if settled => scaled(wanted, before),
        _ => rolling(deployment, before),
    };
    status["observedGeneration"] = deployment["metadata"]["generation"].clone();
    set_count(&mut status, "replicas", counts.replicas);
    set_count(
        &mut status,
        "updatedReplicas",
        if held { 0 } else { counts.updated },
    );
    set_count(&mut status, "readyReplicas", counts.available);
    set_count(&mut status, "availableReplicas", counts.available);
    set_count(
        &mut status,
        "unavailableReplicas",
        counts.replicas - counts.available,
    );
    availability(deployment, &mut status, now);
    match progress {
        _ if settled || paused => {}
        Progress::There { well: true } => {
            let message = format!("ReplicaSet \"{set}\" has successfully progressed.");
            set_progress(&mut status, true, "NewReplicaSetAvailable", &message, now);
        }
        _ if !known => {
            let message = format!("ReplicaSet \"{set}\" is progressing.");
            set_progress(&mut status, true, "ReplicaSetUpdated", &message, now);
        }
        _ => {}
    }

    let mut changed = deployment.clone();
    changed["status"] = status;
    if !known && !paused {
        let revision = annotation(deployment, REVISION)
            .and_then(|text| text.parse::<i64>().ok())
            .unwrap_or(0)
            + 1;
        set_annotation(&mut changed, REVISION, Some(&revision.to_string()));
    }
    let wake = time_out(&mut changed, &set, now);
    (changed, wake)
}

/// The present template, in another number.
fn scaled(wanted: i64, before: i64) -> Counts {
    Counts {
        replicas: wanted,
        updated: wanted,
        available: before.min(wanted),
    }
}

/// A new template, as far as it gets without one of its Pods becoming ready.
fn rolling(deployment: &Value, before: i64) -> Counts {
    let wanted = replicas(deployment);
    let (surge, unavailable) = limits(deployment);
    let recreate = deployment["spec"]["strategy"]["type"] == "Recreate";
    let left = if recreate {
        0
    } else {
        before.min(wanted - unavailable)
    };
    let updated = (wanted + surge - left).min(wanted);
    Counts {
        replicas: left + updated,
        updated,
        available: left,
    }
}
