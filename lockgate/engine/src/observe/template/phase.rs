//! Kinds that are in one phase: the phase that most deserves attention stands for all. A cluster that said nothing yet
//! is one where it is pending.

use serde_json::{Value, json};

use super::{MemberReport, set};

const PENDING: &str = "Pending";

fn phases<'a>(members: &[MemberReport<'a>]) -> Vec<&'a str> {
    members
        .iter()
        .map(|member| match member.status.map(|status| &status["phase"]) {
            Some(Value::String(phase)) if !phase.is_empty() => phase,
            _ => PENDING,
        })
        .collect()
}

/// Sets the first of these phases that some member is in.
fn set_first(members: &[MemberReport<'_>], order: &[&str], status: &mut Value) {
    let present = phases(members);
    if let Some(phase) = order.iter().find(|phase| present.contains(phase)) {
        set(status, "phase", Some(json!(phase)));
    }
}

/// Pods. Their containers are listed one cluster after the other.
pub(super) fn pod(members: &[MemberReport<'_>], status: &mut Value) {
    if members.is_empty() {
        return;
    }
    set_first(members, &["Failed", PENDING, "Running", "Succeeded"], status);
    let containers: Vec<Value> = members
        .iter()
        .filter_map(|member| member.status?.get("containerStatuses")?.as_array())
        .flatten()
        .cloned()
        .collect();
    let containers = (!containers.is_empty()).then_some(Value::Array(containers));
    set(status, "containerStatuses", containers);
}

/// Volumes.
pub(super) fn volume(members: &[MemberReport<'_>], status: &mut Value) {
    set_first(
        members,
        &["Failed", PENDING, "Available", "Bound", "Released"],
        status,
    );
}

/// Claims: bound if all are, lost if one is, else what the last one that is not bound says.
pub(super) fn claim(members: &[MemberReport<'_>], status: &mut Value) {
    let phases = phases(members);
    let phase = if phases.contains(&"Lost") {
        Some("Lost")
    } else {
        let last = phases.iter().rev().find(|phase| **phase != "Bound");
        last.or(phases.last()).copied()
    };
    if let Some(phase) = phase {
        set(status, "phase", Some(json!(phase)));
    }
}
