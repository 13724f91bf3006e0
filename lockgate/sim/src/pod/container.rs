//! One container: waiting, running, exited, waiting for its restart.
//!
//! A step goes as far as the present allows, so that without delays one step suffices.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimOptions;
use crate::behaviour::Behaviour;
use crate::hash::template_hash;
use crate::object::{int, later, name, namespace, stamp, text, time, uid};

/// The longest rest between two restarts.
const LONGEST_REST: Duration = Duration::from_secs(300);
/// The shortest: times in a status have whole seconds.
const SHORTEST_REST: Duration = Duration::from_secs(1);

/// Why a container waits whose image cannot be pulled.
const PULL_BACKOFF: &str = "ImagePullBackOff";

/// The Pod and the time of a step.
pub(super) struct Moment<'a> {
    /// Since when the Pod is in its stage.
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
    pub(super) options: &'a SimOptions,
    pub(super) pod: &'a Value,
}

/// How long a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// It is restarted whenever it exits.
    Forever,
    /// It ends with success, and is restarted until it does.
    UntilDone,
    /// It runs once, whatever comes out.
    Once,
}

/// Whether a container has ever run.
pub(super) fn has_started(status: &Value) -> bool {
    !status["state"]["running"].is_null()
        || !status["state"]["terminated"].is_null()
        || int(&status["restartCount"]) > 0
        || !status["lastState"]["terminated"].is_null()
}

/// Whether an init container lets the next one start: it succeeded, or it stays and has started.
pub(super) fn is_past_init(status: &Value) -> bool {
    exit_code(status) == Some(0) || !status["state"]["running"].is_null()
}

/// With what a container ended for good.
pub(super) fn exit_code(status: &Value) -> Option<i64> {
    status["state"]["terminated"]["exitCode"].as_i64()
}

/// A container that waits for something else.
pub(super) fn waiting(spec: &Value, old: Option<&Value>, reason: &str) -> Value {
    status(spec, old, json!({"waiting": {"reason": reason}}), false)
}

/// The next status of a container, and when to look again.
pub(super) fn step(
    spec: &Value,
    old: Option<&Value>,
    behaviour: Behaviour,
    run: Run,
    init: bool,
    moment: &Moment<'_>,
) -> (Value, Option<Timestamp>) {
    let state = old.map_or(&Value::Null, |old| &old["state"]);
    if !state["terminated"].is_null() {
        return (old.cloned().unwrap_or_default(), None);
    }
    if !state["running"].is_null() {
        let old = old.cloned().unwrap_or_default();
        return running(spec, old, behaviour, run, init, moment);
    }
    if let Some(old) = old
        && !old["lastState"]["terminated"].is_null()
    {
        return resting(spec, old, behaviour, run, init, moment);
    }
    // An image that could not be pulled is not tried again until something changes: this Pod is settled.
    if let Some(old) = old
        && behaviour == Behaviour::PullError
        && state["waiting"]["reason"] == PULL_BACKOFF
    {
        return (old.clone(), None);
    }
    let usual = if init {
        Duration::ZERO
    } else {
        moment.options.delay
    };
    let start = later(moment.since, behaviour.start_delay(usual));
    if moment.now < start {
        let reason = if init {
            "PodInitializing"
        } else {
            "ContainerCreating"
        };
        return (waiting(spec, old, reason), Some(start));
    }
    if behaviour == Behaviour::PullError {
        let message = format!("Back-off pulling image \"{}\"", text(&spec["image"]));
        let state = json!({"waiting": {"reason": PULL_BACKOFF, "message": message}});
        return (status(spec, old, state, false), None);
    }
    start_now(spec, old, 0, behaviour, run, init, moment)
}

fn start_now(
    spec: &Value,
    old: Option<&Value>,
    restarts: i64,
    behaviour: Behaviour,
    run: Run,
    init: bool,
    moment: &Moment<'_>,
) -> (Value, Option<Timestamp>) {
    let mut new = status(
        spec,
        old,
        json!({"running": {"startedAt": stamp(moment.now)}}),
        true,
    );
    new["restartCount"] = json!(restarts);
    let identity = json!([uid(moment.pod), spec["name"], restarts]);
    new["containerID"] = json!(format!("sim://{}", template_hash(&identity, 0)));
    running(spec, new, behaviour, run, init, moment)
}

/// A container that runs: it goes on, or exits when its time has come.
fn running(
    spec: &Value,
    mut old: Value,
    behaviour: Behaviour,
    run: Run,
    init: bool,
    moment: &Moment<'_>,
) -> (Value, Option<Timestamp>) {
    let started = time(&old["state"]["running"]["startedAt"]).unwrap_or(moment.now);
    let end = match (behaviour, run) {
        (Behaviour::Fail, _) => Some((1, Duration::ZERO)),
        (Behaviour::Crash, _) => Some((139, moment.options.crash_after)),
        (_, Run::Forever) => None,
        _ if init => Some((0, Duration::ZERO)),
        _ => Some((0, moment.options.delay)),
    };
    let Some((code, duration)) = end else {
        let ready = behaviour != Behaviour::NeverReady;
        old["ready"] = json!(ready);
        old["started"] = json!(true);
        return (old, None);
    };
    let end = later(started, duration);
    if moment.now < end {
        old["ready"] = json!(behaviour != Behaviour::NeverReady && !init);
        return (old, Some(end));
    }
    let terminated = json!({
        "exitCode": code,
        "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": stamp(started),
        "finishedAt": stamp(moment.now),
        "containerID": old["containerID"],
    });
    let again = run == Run::Forever || (run == Run::UntilDone && code != 0);
    old["ready"] = json!(init && !again && code == 0);
    old["started"] = json!(false);
    if !again {
        old["state"] = json!({"terminated": terminated});
        return (old, None);
    }
    let rest = rest(int(&old["restartCount"]), moment);
    let message = format!(
        "back-off {}s restarting failed container={} pod={}_{}({})",
        rest.as_secs(),
        text(&spec["name"]),
        name(moment.pod),
        namespace(moment.pod),
        uid(moment.pod),
    );
    old["lastState"] = json!({"terminated": terminated});
    old["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
    (old, Some(later(moment.now, rest)))
}

/// A container that rests between two runs. One that now behaves well is not kept waiting.
fn resting(
    spec: &Value,
    old: &Value,
    behaviour: Behaviour,
    run: Run,
    init: bool,
    moment: &Moment<'_>,
) -> (Value, Option<Timestamp>) {
    let restarts = int(&old["restartCount"]);
    let ended = time(&old["lastState"]["terminated"]["finishedAt"]).unwrap_or(moment.now);
    let end = later(ended, rest(restarts, moment));
    if moment.now < end && !behaviour.ends_well() {
        return (old.clone(), Some(end));
    }
    start_now(spec, Some(old), restarts + 1, behaviour, run, init, moment)
}

fn rest(restarts: i64, moment: &Moment<'_>) -> Duration {
    let doubled = u32::try_from(restarts.clamp(0, 16)).unwrap_or(0);
    (moment.options.backoff * 2_u32.pow(doubled)).clamp(SHORTEST_REST, LONGEST_REST)
}

fn status(spec: &Value, old: Option<&Value>, state: Value, started: bool) -> Value {
    let kept = |field: &str, default: Value| old.and_then(|old| old.get(field)).cloned().unwrap_or(default);
    let mut status = json!({
        "name": spec["name"],
        "image": spec["image"],
        "imageID": if started { spec["image"].clone() } else { kept("imageID", json!("")) },
        "state": state,
        "lastState": kept("lastState", json!({})),
        "restartCount": kept("restartCount", json!(0)),
        "ready": false,
        "started": started,
    });
    if let Some(id) = old.and_then(|old| old.get("containerID")) {
        status["containerID"] = id.clone();
    }
    status
}
