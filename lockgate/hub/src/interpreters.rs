//! How kinds are read that are read in a way of their own: customizations in memory, what a change of one wakes, and what they
//! say of themselves.

mod running;

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_api::definitions::WEBHOOKS_REFUSED;
use lockgate_api::interpreter::InterpreterStatus;
use lockgate_api::{Condition, InterpreterCustomization};
use lockgate_engine::interpret::{self, InterpretError, Interpreters, Runner, Shadowed};
use serde_json::{Value, json};

use crate::cache::{Cached, Change, Key};
use crate::chores::Chore;
use crate::clock::seconds;
use crate::events::EventTarget;
use crate::head::head;
use crate::intake;
use crate::kinds::KindId;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{self, PassError};

/// How many scripts that cannot be used are named.
const NAMED: usize = 3;
/// The condition of a customization that does not say all that it would.
const EFFECTIVE: &str = "Effective";
/// How many webhooks that are not called are told.
const MOST_WEBHOOKS: usize = 100;

pub(crate) use running::Scripts;

/// Reads all customizations.
pub(crate) fn read(state: &State) {
    let all: Vec<InterpreterCustomization> = state
        .caches
        .interpreters
        .list()
        .iter()
        .filter_map(|cached| state::parse(cached))
        .collect();
    let runner: Arc<dyn Runner> = state.scripts.clone();
    *state.interpreters.write() = Arc::new(Interpreters::run_by(Some(&runner), &all));
    // All of them: one that changes may stand in another's place, or no longer.
    for one in &all {
        state.chores.add(Chore::Interpreter(one.metadata.name.clone()), 1);
    }
}

/// Says of every interpreter webhook that it is not called. None can be made here; one may be left of another control plane.
pub(crate) async fn tell_webhooks(state: &State) {
    let resource = Resource::interpreter_webhooks();
    let path = format!("{}?limit={MOST_WEBHOOKS}", resource.collection(""));
    let answer = match state.link.get(&path).await {
        Ok(answer) => answer,
        Err(LinkError::NotServed | LinkError::NotFound) => return,
        Err(error) => {
            tracing::warn!(%error, "failed to ask for interpreter webhooks");
            return;
        }
    };
    let list: Value = serde_json::from_slice(&answer).unwrap_or_default();
    for item in list["items"].as_array().into_iter().flatten() {
        let mut webhook = item.clone();
        webhook["apiVersion"] = json!(resource.api_version());
        webhook["kind"] = json!(resource.kind);
        tracing::warn!(name = %webhook["metadata"]["name"], "{WEBHOOKS_REFUSED}");
        let target = EventTarget::of_value(&webhook);
        state.events.warn(&target, "NotCalled", WEBHOOKS_REFUSED);
    }
}

/// A customization changed: everything of its kind, now or before, is looked at again.
pub(crate) fn changed(state: &State, change: &Change) {
    if change.own {
        return;
    }
    let parse = |cached: &Option<Arc<Cached>>| -> Option<InterpreterCustomization> {
        cached.as_ref().and_then(|cached| state::parse(cached))
    };
    let (old, new) = (parse(&change.old), parse(&change.new));
    let said = |one: &Option<InterpreterCustomization>| {
        one.as_ref().map(|one| {
            (
                one.spec.clone(),
                one.metadata.deleting(),
                one.metadata.name.clone(),
            )
        })
    };
    if said(&old) == said(&new) {
        return;
    }
    read(state);
    let kinds: BTreeSet<KindId> = [&old, &new]
        .into_iter()
        .flatten()
        .map(|one| (one.spec.target.api_version.clone(), one.spec.target.kind.clone()))
        .collect();
    for kind in &kinds {
        intake::wake_kind(state, kind);
    }
    // What members have is read again.
    state.caches.works.for_each(|cached| {
        let is_of = head(cached)
            .and_then(|head| head.id)
            .is_some_and(|id| kinds.contains(&(id.api_version, id.kind)));
        if is_of {
            state.members.wake(&cached.key);
        }
    });
    intake::report_kinds(state, &kinds);
}

/// Writes whether the scripts of a customization can be used.
pub(crate) async fn tell(state: &State, name: &str) -> Result<(), PassError> {
    let key = Key::new("", name);
    let cache = &state.caches.interpreters;
    let Some(customization) = cache
        .get(&key)
        .and_then(|cached| state::parse::<InterpreterCustomization>(&cached))
        .filter(|one| !one.metadata.deleting())
    else {
        return Ok(());
    };
    let mut status = customization.status.clone().unwrap_or_default();
    status.observed_generation = customization.metadata.generation;
    let now = seconds(state.clock.now());
    let mut wrong = Vec::new();
    state
        .scripts
        .run(&mut || wrong = interpret::check(&customization));
    accepted(&wrong, &now).put(&mut status.conditions);
    match shadowed(state.interpreters.read().shadowed(name), &now) {
        Some(condition) => condition.put(&mut status.conditions),
        None => status.conditions.retain(|condition| condition.kind != EFFECTIVE),
    }
    if customization.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let resource = Resource::interpreter_customizations();
    let body = template::encode_status::<InterpreterStatus>(&resource, &customization.metadata, &status);
    let what = "failed to write the status of a customization";
    match template::replace_status(state, cache, &resource, &key, body, what).await {
        Ok(_) => Ok(()),
        // It is gone, or its definition is one that has no status.
        Err(PassError::Again) if cache.get(&key).is_none() => Ok(()),
        Err(PassError::Link {
            error: LinkError::NotServed,
            ..
        }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Says which scripts are not asked, and whose are in their place.
fn shadowed(scripts: &[Shadowed], now: &str) -> Option<Condition> {
    let named: Vec<String> = scripts
        .iter()
        .map(|script| format!("{}: that of {} counts", script.field, script.by))
        .collect();
    (!named.is_empty()).then(|| Condition {
        kind: EFFECTIVE.to_owned(),
        status: "False".to_owned(),
        reason: "Shadowed".to_owned(),
        message: named.join("; "),
        last_transition_time: now.to_owned(),
        ..Condition::default()
    })
}

fn accepted(found: &[InterpretError], now: &str) -> Condition {
    let (status, reason, message) = if found.is_empty() {
        (
            "True",
            "ScriptsReadable",
            "every script can be read and defines its function".to_owned(),
        )
    } else {
        let named: Vec<String> = found
            .iter()
            .take(NAMED)
            .map(|wrong| format!("{}: {}", wrong.field, wrong.error))
            .collect();
        ("False", "ScriptFailed", named.join("; "))
    };
    Condition {
        kind: "Accepted".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: now.to_owned(),
        ..Condition::default()
    }
}
