//! Pods: what the kubelet does with one that has a node.
//!
//! Each container goes its own way (see `container`); the Pod's phase and conditions follow from theirs.

mod container;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimOptions;
use crate::action::Action;
use crate::behaviour::of_container;
use crate::object::{
    Says, int, is_deleting, items, key, later, set_condition, stamp, status_of, text, uid, with_status,
};
use container::{Moment, Run};

/// What a decision about a Pod looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The Pod; it has a node.
    pub pod: &'a Value,
    /// What the node is like.
    pub node: NodeState,
    /// The address of the node.
    pub host_ip: &'a str,
    /// The address that the Pod gets if it has none.
    pub pod_ip: &'a str,
    /// Since when it is in its present [`stage`].
    pub since: Timestamp,
}

/// What the node of a Pod is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It works.
    Ready,
    /// It is there, but nobody hears from it.
    NotReady,
    /// There is no such node.
    Gone,
}

/// A number that changes when a Pod begins to wait for something else.
pub fn stage(pod: &Value) -> u64 {
    u64::from(is_deleting(pod))
}

/// Whether a Pod has come to its end.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// What is to be done for a Pod that has a node.
pub fn decide(seen: &Snapshot<'_>, options: &SimOptions, now: Timestamp) -> Vec<Action> {
    let pod = seen.pod;
    let delete = || {
        key(pod).map(|key| Action::Delete {
            key,
            uid: uid(pod).to_owned(),
        })
    };
    if seen.node == NodeState::Gone {
        return delete().into_iter().collect();
    }
    if is_deleting(pod) {
        let grace = u64::try_from(int(&pod["metadata"]["deletionGracePeriodSeconds"])).unwrap_or(0);
        if grace == 0 {
            // Its containers are gone; whoever holds a finalizer has the word.
            return Vec::new();
        }
        let end = later(
            seen.since,
            options.delay.min(std::time::Duration::from_secs(grace)),
        );
        return if seen.node == NodeState::NotReady {
            Vec::new()
        } else if now < end {
            vec![Action::WakeAt(end)]
        } else {
            delete().into_iter().collect()
        };
    }
    if is_finished(pod) {
        return Vec::new();
    }
    if seen.node == NodeState::NotReady {
        let mut status = status_of(pod);
        if !items(&status["conditions"])
            .iter()
            .any(|c| c["type"] == "Ready" && c["status"] == "True")
        {
            return Vec::new();
        }
        let says = Says::new(false, "NodeNotReady", "");
        set_condition(&mut status, "Ready", &says, probed(), now);
        return with_status(pod, status)
            .map(Action::UpdateStatus)
            .into_iter()
            .collect();
    }
    let (status, wake) = next(seen, options, now);
    let mut actions: Vec<Action> = with_status(pod, status)
        .map(Action::UpdateStatus)
        .into_iter()
        .collect();
    actions.extend(wake.map(Action::WakeAt));
    actions
}

/// All containers of one list after their next step.
struct Steps {
    statuses: Vec<Value>,
    wake: Option<Timestamp>,
}

impl Steps {
    fn push(&mut self, status: Value, wake: Option<Timestamp>) {
        self.statuses.push(status);
        self.wake = match (self.wake, wake) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

fn next(seen: &Snapshot<'_>, options: &SimOptions, now: Timestamp) -> (Value, Option<Timestamp>) {
    let pod = seen.pod;
    let moment = Moment {
        since: seen.since,
        now,
        options,
        pod,
    };
    let init = init_steps(&moment);
    let initialized = init.statuses.iter().all(container::is_past_init);
    let main = if initialized {
        main_steps(&moment)
    } else {
        waiting_steps(pod)
    };

    let mut status = status_of(pod);
    let phase = phase(pod, &init.statuses, &main.statuses);
    status["phase"] = json!(phase);
    if pod["metadata"]["generation"].is_i64() {
        status["observedGeneration"] = pod["metadata"]["generation"].clone();
    }
    status["hostIP"] = json!(seen.host_ip);
    status["hostIPs"] = json!([{"ip": seen.host_ip}]);
    if status["startTime"].is_null() {
        status["startTime"] = json!(stamp(now));
    }
    let started = init
        .statuses
        .iter()
        .chain(&main.statuses)
        .any(container::has_started);
    if started && text(&status["podIP"]).is_empty() {
        let ip = if pod["spec"]["hostNetwork"] == true {
            seen.host_ip
        } else {
            seen.pod_ip
        };
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{"ip": ip}]);
    }
    conditions(&mut status, phase, &init.statuses, &main.statuses, started, now);
    if !init.statuses.is_empty() {
        status["initContainerStatuses"] = json!(init.statuses);
    }
    status["containerStatuses"] = json!(main.statuses);
    let wake = [init.wake, main.wake].into_iter().flatten().min();
    (
        status,
        if matches!(phase, "Succeeded" | "Failed") {
            None
        } else {
            wake
        },
    )
}

fn before<'v>(pod: &'v Value, list: &str, name: &Value) -> Option<&'v Value> {
    items(&pod["status"][list])
        .iter()
        .find(|status| status["name"] == *name)
}

fn restart_policy(pod: &Value) -> &str {
    match text(&pod["spec"]["restartPolicy"]) {
        "" => "Always",
        policy => policy,
    }
}

/// Init containers run one after the other; those that stay (sidecars) only have to start.
fn init_steps(moment: &Moment<'_>) -> Steps {
    let pod = moment.pod;
    let mut steps = Steps {
        statuses: Vec::new(),
        wake: None,
    };
    let mut open = true;
    for spec in items(&pod["spec"]["initContainers"]) {
        let old = before(pod, "initContainerStatuses", &spec["name"]);
        if !open {
            steps.push(container::waiting(spec, old, "PodInitializing"), None);
            continue;
        }
        let run = match (text(&spec["restartPolicy"]), restart_policy(pod)) {
            ("Always", _) => Run::Forever,
            (_, "Never") => Run::Once,
            _ => Run::UntilDone,
        };
        let (status, wake) = container::step(spec, old, of_container(pod, spec), run, true, moment);
        open = container::is_past_init(&status);
        steps.push(status, wake);
    }
    steps
}

fn main_steps(moment: &Moment<'_>) -> Steps {
    let pod = moment.pod;
    let run = match restart_policy(pod) {
        "Never" => Run::Once,
        "OnFailure" => Run::UntilDone,
        _ => Run::Forever,
    };
    let mut steps = Steps {
        statuses: Vec::new(),
        wake: None,
    };
    for spec in items(&pod["spec"]["containers"]) {
        let old = before(pod, "containerStatuses", &spec["name"]);
        let (status, wake) = container::step(spec, old, of_container(pod, spec), run, false, moment);
        steps.push(status, wake);
    }
    steps
}

fn waiting_steps(pod: &Value) -> Steps {
    let wait = |spec: &Value| {
        container::waiting(
            spec,
            before(pod, "containerStatuses", &spec["name"]),
            "PodInitializing",
        )
    };
    Steps {
        statuses: items(&pod["spec"]["containers"]).iter().map(wait).collect(),
        wake: None,
    }
}

fn phase(pod: &Value, init: &[Value], main: &[Value]) -> &'static str {
    let failed = |status: &&Value| container::exit_code(status).is_some_and(|code| code != 0);
    if init
        .iter()
        .find(|status| !container::is_past_init(status))
        .is_some_and(|status| failed(&status))
    {
        return "Failed";
    }
    if restart_policy(pod) != "Always" && main.iter().all(|status| container::exit_code(status).is_some()) {
        return if main.iter().any(|status| failed(&status)) {
            "Failed"
        } else {
            "Succeeded"
        };
    }
    let all_started = init.iter().all(container::is_past_init) && main.iter().all(container::has_started);
    if all_started { "Running" } else { "Pending" }
}

fn unready(statuses: &[Value], is_ready: impl Fn(&Value) -> bool) -> Vec<&str> {
    statuses
        .iter()
        .filter(|status| !is_ready(status))
        .map(|status| text(&status["name"]))
        .collect()
}

/// Conditions of Pods have the time of a probe, which nobody sets.
fn probed() -> Value {
    json!({"lastProbeTime": null})
}

fn conditions(
    status: &mut Value,
    phase: &str,
    init: &[Value],
    main: &[Value],
    started: bool,
    now: Timestamp,
) {
    let finished = matches!(phase, "Succeeded" | "Failed");
    let is_ready = |status: &Value| status["ready"] == true;
    let sandbox = if started && !finished {
        Says::yes()
    } else {
        Says::new(false, "", "")
    };
    set_condition(status, "PodReadyToStartContainers", &sandbox, probed(), now);

    let open = unready(init, container::is_past_init);
    let message = format!("containers with incomplete status: [{}]", open.join(" "));
    let says = match (open.is_empty(), finished) {
        (true, _) if phase == "Succeeded" => Says::new(true, "PodCompleted", ""),
        (true, _) => Says::yes(),
        (false, _) => Says::new(false, "ContainersNotInitialized", &message),
    };
    set_condition(status, "Initialized", &says, probed(), now);

    let open = unready(main, is_ready);
    let message = format!("containers with unready status: [{}]", open.join(" "));
    let says = match phase {
        "Succeeded" => Says::new(false, "PodCompleted", ""),
        "Failed" => Says::new(false, "PodFailed", ""),
        _ if open.is_empty() => Says::yes(),
        _ => Says::new(false, "ContainersNotReady", &message),
    };
    set_condition(status, "Ready", &says, probed(), now);
    set_condition(status, "ContainersReady", &says, probed(), now);
    if !items(&status["conditions"])
        .iter()
        .any(|c| c["type"] == "PodScheduled")
    {
        set_condition(status, "PodScheduled", &Says::yes(), probed(), now);
    }
}
