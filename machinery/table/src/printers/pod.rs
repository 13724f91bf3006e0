//! Pods: one word for the state of many containers.

use jiff::Timestamp;
use machinery_value::Value;
use serde_json::json;

use super::Kind;
use crate::age;
use crate::column::{AGE, Column, NAME};
use crate::view::{
    Context, NONE, at, condition_is_true, deleting, flag_or, int, list, name, row, text, text_or,
};

pub(super) const KINDS: &[Kind] = &[Kind {
    group: "",
    kind: "Pod",
    columns: &[
        NAME,
        Column::string("Ready"),
        Column::string("Status"),
        Column::string("Restarts"),
        AGE,
        Column::wide("IP"),
        Column::wide("Node"),
        Column::wide("Nominated Node"),
        Column::wide("Readiness Gates"),
    ],
    cells: pod,
}];

/// What a row says of itself beside its cells: that the pod will not run again.
pub(crate) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn pod(pod: &Value, context: Context<'_>) -> Vec<Value> {
    let state = State::of(pod);
    let restarts = match state.restarts.last {
        Some(last) if state.restarts.count != 0 => {
            format!(
                "{} ({} ago)",
                state.restarts.count,
                age::since(Some(last), context.now)
            )
        }
        _ => state.restarts.count.to_string(),
    };
    let first_ip = list(pod, "status.podIPs").first().map_or("", |ip| text(ip, "ip"));
    let ip = match text_or(pod, "status.podIP", first_ip) {
        "" => NONE,
        ip => ip,
    };
    row![
        name(pod),
        format!("{}/{}", state.ready, state.total),
        state.reason,
        restarts,
        context.age(pod),
        ip,
        text_or(pod, "spec.nodeName", NONE),
        text_or(pod, "status.nominatedNodeName", NONE),
        readiness_gates(pod),
    ]
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = |gate: &&Value| condition_is_true(pod, "status.conditions", text(gate, "conditionType"));
    format!("{}/{}", gates.iter().filter(open).count(), gates.len())
}

/// How often containers were restarted, and when that last happened.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(int(status, "restartCount"));
        self.last = self
            .last
            .max(age::time_of(at(status, "lastState.terminated.finishedAt")));
    }
}

struct State {
    reason: String,
    ready: usize,
    total: usize,
    restarts: Restarts,
}

impl State {
    fn of(pod: &Value) -> State {
        let sidecars: Vec<&str> = list(pod, "spec.initContainers")
            .iter()
            .filter(|container| text(container, "restartPolicy") == "Always")
            .map(|container| text(container, "name"))
            .collect();
        let mut state = State {
            reason: first_reason(pod).to_owned(),
            ready: 0,
            total: list(pod, "spec.containers").len() + sidecars.len(),
            restarts: Restarts::default(),
        };
        let sidecar_restarts = state.read_init_containers(pod, &sidecars);
        if let Some(restarts) = sidecar_restarts {
            state.restarts = restarts;
            state.read_containers(pod);
        }
        if deleting(pod) {
            let phase = text(pod, "status.phase");
            if text(pod, "status.reason") == "NodeLost" {
                "Unknown".clone_into(&mut state.reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut state.reason);
            }
        }
        state
    }

    /// Reads the init containers up to the first that is still at work. Returns the restarts of the sidecars
    /// among those when initialization is over, for they alone count from then on.
    fn read_init_containers(&mut self, pod: &Value, sidecars: &[&str]) -> Option<Restarts> {
        let mut sidecar_restarts = Restarts::default();
        for (index, status) in list(pod, "status.initContainerStatuses").iter().enumerate() {
            let sidecar = sidecars.contains(&text(status, "name"));
            self.restarts.add(status);
            if sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = at(status, "state.terminated");
            if !terminated.is_null() && int(terminated, "exitCode") == 0 {
                continue;
            }
            if sidecar && flag_or(status, "started", false) {
                self.ready += usize::from(flag_or(status, "ready", false));
                continue;
            }
            self.reason = match text(status, "state.waiting.reason") {
                _ if !terminated.is_null() => format!("Init:{}", termination_reason(terminated)),
                "" | "PodInitializing" => format!("Init:{index}/{}", list(pod, "spec.initContainers").len()),
                waiting => format!("Init:{waiting}"),
            };
            return condition_is_true(pod, "status.conditions", "Initialized").then_some(sidecar_restarts);
        }
        Some(sidecar_restarts)
    }

    /// Reads the containers from the last to the first, so that the first with something to say has the last word.
    fn read_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for status in list(pod, "status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "state.waiting.reason");
            let terminated = at(status, "state.terminated");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if !terminated.is_null() {
                self.reason = termination_reason(terminated);
                if int(terminated, "exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if flag_or(status, "ready", false) && !at(status, "state.running").is_null() {
                running = true;
                self.ready += 1;
            }
        }
        // One finished container does not make a pod complete.
        if self.reason == "Completed" {
            if running && condition_is_true(pod, "status.conditions", "Ready") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

/// The reason before any container is looked at.
fn first_reason(pod: &Value) -> &str {
    let gated = |condition: &Value| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    };
    if list(pod, "status.conditions").iter().any(gated) {
        return "SchedulingGated";
    }
    text_or(pod, "status.reason", text_or(pod, "status.phase", "Pending"))
}

fn termination_reason(terminated: &Value) -> String {
    match (text(terminated, "reason"), int(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", int(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
