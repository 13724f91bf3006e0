//! The pass over one policy: what became of it. The only writer of the statuses of policies.
//!
//! The passes over templates note how each is with its policy; here they are counted. A status is told when the templates
//! have been looked at, so that an edit over many of them is told once, and a restart, which looks at all of them, tells
//! nothing. An edit that moves nothing wakes no template: those that were judged by an older generation of the policy are
//! judged here, by their bindings alone.

mod standings;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockgate_api::PropagationPolicy;
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{self, Claim, Counts, Decision, Standing};
use parking_lot::Mutex;
use serde_json::Value;

use self::standings::{Noted, Standings};
use crate::cache::Key;
use crate::clock::Clock;
use crate::metrics::QueueFigures;
use crate::queue::Queue;
use crate::state::{self, State, WALK};
use crate::template::{PassError, REPORT_AFTER, binding_key, encode_status, is_for, replace_status};

/// How long a status waits for templates that are being looked at.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for those that were never looked at, because we have just started.
const FIRST_PATIENCE: Duration = Duration::from_secs(120);
/// After so many templates others get a turn.
const AT_ONCE: usize = 256;

/// How templates are with their policies.
pub(crate) struct Tally {
    /// The policies whose status needs attention.
    pub(crate) queue: Queue<Key>,
    standings: Mutex<Standings>,
    /// Since when a policy waits for its templates.
    waiting: Mutex<HashMap<Key, Instant>>,
    /// Whether all templates were looked at once.
    settled: AtomicBool,
}

impl Tally {
    pub(crate) fn new(clock: Clock, figures: QueueFigures) -> Self {
        Self {
            queue: Queue::new(clock, figures),
            standings: Mutex::default(),
            waiting: Mutex::default(),
            settled: AtomicBool::new(false),
        }
    }

    /// A policy's status may have something else to say.
    pub(crate) fn look(&self, key: &Key) {
        self.queue.add_soon(key.clone(), 1, REPORT_AFTER);
    }

    /// Whether a policy owns a template, by its last pass.
    pub(crate) fn owns(&self, policy: &Key, id: &TemplateId) -> bool {
        self.standings.lock().owner(id) == Some(policy)
    }

    /// Whether a policy goes on waiting for templates that are looked at.
    fn waits(&self, key: &Key, busy: bool) -> bool {
        let mut waiting = self.waiting.lock();
        let patience = if self.settled.load(Ordering::Relaxed) {
            PATIENCE
        } else {
            FIRST_PATIENCE
        };
        let since = *waiting.entry(key.clone()).or_insert_with(Instant::now);
        if busy && since.elapsed() < patience {
            return true;
        }
        waiting.remove(key);
        self.settled.store(true, Ordering::Relaxed);
        false
    }
}

/// Notes how a template is with its policy after a pass.
pub(crate) fn note(state: &State, id: &TemplateId, template: &Value, decision: &Decision, done: bool) {
    let claimed = Claim::on_template(template);
    let noted = decision.holder.as_ref().filter(|policy| {
        // What could not be claimed is nobody's yet.
        done || claimed.as_ref() == Some(&Claim::by(policy))
    });
    let noted = noted.map(|policy| Noted {
        policy: Key::new(&policy.metadata.namespace, &policy.metadata.name),
        generation: policy.metadata.generation,
        standing: if done {
            decision.standing()
        } else {
            Standing::NotYet
        },
    });
    let touched = state.tally.standings.lock().note(id, noted);
    for key in touched {
        state.tally.look(&key);
    }
}

/// Notes that a template is gone, or none.
pub(crate) fn forget(state: &State, id: &TemplateId) {
    crate::rollouts::forget(state, id);
    let touched = state.tally.standings.lock().note(id, None);
    for key in touched {
        state.tally.look(&key);
    }
}

/// Notes whether what was activated for a template could be carried out.
pub(crate) fn note_failing(state: &State, id: &TemplateId, failing: bool) {
    let touched = state.tally.standings.lock().note_failing(id, failing);
    if let Some(key) = touched {
        state.tally.look(&key);
    }
}

/// Writes a policy's status, if it has something else to say.
pub(crate) async fn pass(state: &State, key: &Key) -> Result<(), PassError> {
    let (cache, resource) = state.policies_of(&key.namespace);
    let Some(cached) = cache.get(key) else {
        state.tally.waiting.lock().remove(key);
        return Ok(());
    };
    let busy = !state.kinds.is_settled()
        || !state.templates.is_idle()
        || !state.unmeasured.lock().is_empty()
        || !state.reports.is_idle();
    if state.tally.waits(key, busy) {
        state.tally.look(key);
        return Ok(());
    }
    let Some(policy) = state::policy(&cached).filter(|policy| !policy.metadata.deleting()) else {
        return Ok(());
    };
    judge(state, key, &policy).await;
    let before = policy.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let now = state.clock.now();
    counts(state, key, &policy).tell(policy.metadata.generation, now, &mut status);
    claim::tell_selectors(&policy, state::written(&cached), &mut status);
    let is_namespaced = |selector: &lockgate_api::ResourceSelector| {
        let kind = state.kinds.served(&selector.api_version, &selector.kind)?;
        Some(kind.resource.namespaced)
    };
    claim::preemption(&policy, state.gates, is_namespaced, now, &mut status);
    claim::effective(&policy, state.gates, now, &mut status);
    let unserved = |selector: &lockgate_api::ResourceSelector| {
        let (api_version, kind) = (&selector.api_version, &selector.kind);
        let has_none = || !key.namespace.is_empty() && is_namespaced(selector) == Some(false);
        let unserved = state.kinds.unserved(api_version, kind);
        unserved.or_else(|| has_none().then_some(claim::Unserved::NotNamespaced))
    };
    claim::kinds_served(&policy, unserved, now, &mut status);
    if status == before {
        return Ok(());
    }
    let body = encode_status(&resource, &policy.metadata, &status);
    let what = "failed to write the policy's status";
    replace_status(state, cache, &resource, key, body, what).await?;
    Ok(())
}

/// Judges the templates that an older generation of the policy was judged for, and that nobody is about to look at.
async fn judge(state: &State, key: &Key, policy: &PropagationPolicy) {
    let generation = policy.metadata.generation;
    let stale = state.tally.standings.lock().stale(key, generation);
    for (number, id) in stale.into_iter().enumerate() {
        if number % AT_ONCE == AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        if state.templates.is_pending(&id) {
            continue;
        }
        let binding = state
            .binding(&binding_key(&id))
            .filter(|binding| is_for(binding, &id));
        let standing = binding
            .as_ref()
            .map(|binding| claim::standing(policy, binding, state.gates));
        state.tally.standings.lock().judge(key, &id, generation, standing);
        if let (Some(binding), Some(Standing::UpToDate)) = (&binding, standing)
            && Claim::on_binding(&binding.metadata).as_ref() != Some(&Claim::by(policy))
        {
            // What another policy activated is what this one says: the binding is to say whose it is now.
            state.templates.add_bulk(TemplateId::clone(&id), WALK);
        }
    }
}

fn counts(state: &State, key: &Key, policy: &PropagationPolicy) -> Counts {
    let mut counts = Counts::default();
    let standings = state.tally.standings.lock();
    for (id, judged) in standings.of(key) {
        // What is still to be looked at is not known to be as the policy says.
        let standing = if judged.generation == policy.metadata.generation {
            judged.standing
        } else {
            Standing::NotYet
        };
        let id: &Arc<TemplateId> = id;
        counts.add(id, standing, judged.failing);
    }
    counts
}
