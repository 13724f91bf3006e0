//! What a Work's status says, written once for each difference. Telling is apart from sending: what members get goes first,
//! and several things that happen to one Work are told together.

use jiff::Timestamp;
use lockgate_api::work::{LastApplied, ManifestStatus, WorkStatus};
use lockgate_api::{Condition, Work, keys, names};
use lockgate_engine::observe::{self, Trouble};
use lockgate_engine::{TemplateId, object};
use serde_json::Value;

use super::dispatching::{SendError, last_applied};
use super::due::{Due, due};
use super::fighting;
use crate::cache::Key;
use crate::events::EventTarget;
use crate::head::head;
use crate::link::LinkError;
use crate::rollouts;
use crate::state::{self, State};
use crate::template::{self, PassError, REPORT_AFTER, keepsakes, owning};

/// What came of a Work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The member has it.
    Applied {
        /// The object was gone and is made again.
        recreated: bool,
    },
    /// The member said no.
    Failed {
        /// Why.
        message: String,
        /// The object was gone and could not be made again.
        recreated: bool,
        /// The member has no such object.
        absent: bool,
    },
    /// The member's object is gone, and not made again for now, for this reason.
    Lost(String),
    /// Nothing was sent, because it is suspended.
    Suspended {
        /// By whom, and why, beside the policy that places it.
        by: String,
        /// What was seen of the member's object.
        seen: Seen,
    },
    /// Nothing was sent, and what was said before still holds.
    Unchanged,
    /// The Work is being deleted, and the member is done with it: it may go.
    Over,
}

/// What was seen of the object of a Work that is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nobody could look.
    Unknown,
    /// It is not there.
    Absent,
    /// It is something else than what would be sent.
    Differs,
    /// It is what would be sent.
    Agrees,
}

/// What is to be told of a Work.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    outcome: Outcome,
    /// The Work's generation when it happened.
    generation: i64,
    /// What was sent, and what the object was then.
    sent: Option<LastApplied>,
    /// What was seen of the object, if it is ours.
    seen: Option<ManifestStatus>,
    /// Why nobody can say what it reports, or how it does.
    trouble: Option<Trouble>,
    /// Who changes it back whenever it is corrected, and what of it.
    dispute: Option<String>,
    /// The Work that is made again once this one is gone.
    again: Option<Box<Work>>,
}

impl Told {
    fn of(state: &State, work: &Work, outcome: Outcome, live: Option<&Value>) -> Self {
        let ours = live.filter(|live| object::label(live, keys::MANAGED) == Some("true"));
        let seen = ours.map(|live| {
            let interpreter = state.interpreters.read().of_object(live);
            observe::manifest_status_by(live, 0, interpreter.as_deref())
        });
        let (seen, trouble) = seen.unzip();
        Self {
            outcome,
            generation: work.metadata.generation,
            sent: live.map(|live| last_applied(work, live)),
            seen,
            trouble: trouble.flatten(),
            dispute: fighting::dispute(state, work),
            again: None,
        }
    }

    /// This, after something else that was not told yet.
    fn after(mut self, earlier: &Self) -> Self {
        match (&earlier.outcome, &self.outcome) {
            // What ended was the Work before this one.
            (Outcome::Over, _) => {}
            (_, Outcome::Unchanged) => {
                self.outcome.clone_from(&earlier.outcome);
                self.generation = earlier.generation;
            }
            (Outcome::Applied { recreated: true }, Outcome::Applied { .. })
                if earlier.generation == self.generation =>
            {
                self.outcome = Outcome::Applied { recreated: true };
            }
            _ => {}
        }
        self
    }

    /// This without the status that was seen, which the hub does not store; none if there is nothing to leave out, or if the hub
    /// says nothing about it. How the object does is known all the same.
    fn without_seen(&self, error: &PassError) -> Option<Self> {
        let seen = self.seen.as_ref().filter(|seen| seen.status.is_some())?;
        let PassError::Link { error, .. } = error else {
            return None;
        };
        let seen = ManifestStatus {
            status: None,
            ..seen.clone()
        };
        error.is_about_content().then(|| Self {
            seen: Some(seen),
            trouble: Some(Trouble::refused(&error.to_string())),
            ..self.clone()
        })
    }

    /// What the Work's status says from now on.
    fn status(&self, before: &WorkStatus, now: Timestamp) -> WorkStatus {
        let mut status = before.clone();
        match &self.outcome {
            Outcome::Applied { recreated } => {
                observe::dispatching(now).put(&mut status.conditions);
                self.put_applied(*recreated, &mut status, now);
            }
            Outcome::Failed {
                message,
                recreated,
                absent,
            } => {
                observe::dispatching(now).put(&mut status.conditions);
                observe::applied(Err(message), *recreated, self.generation, now).put(&mut status.conditions);
                if *absent {
                    forget_copy(&mut status);
                }
            }
            Outcome::Lost(why) => {
                observe::dispatching(now).put(&mut status.conditions);
                observe::applied(Err(why), true, self.generation, now).put(&mut status.conditions);
                forget_copy(&mut status);
            }
            Outcome::Suspended { by, seen } => {
                observe::suspended(by, now).put(&mut status.conditions);
                match seen {
                    // Nobody makes it again for now, and nobody says that it is there, or well.
                    Seen::Absent => {
                        forget_copy(&mut status);
                        status
                            .conditions
                            .retain(|condition| condition.kind != observe::APPLIED);
                    }
                    // What is held back is there already.
                    Seen::Agrees => self.put_applied(false, &mut status, now),
                    Seen::Unknown | Seen::Differs => {}
                }
            }
            Outcome::Unchanged | Outcome::Over => {}
        }
        match &self.dispute {
            Some(dispute) => observe::disputed(dispute, now).put(&mut status.conditions),
            None => status
                .conditions
                .retain(|condition| condition.kind != observe::UNDISPUTED),
        }
        if let Some(seen) = &self.seen {
            status.manifest_statuses = vec![seen.clone()];
            match &self.trouble {
                Some(trouble) => observe::unobserved(trouble, now).put(&mut status.conditions),
                None => status
                    .conditions
                    .retain(|condition| condition.kind != observe::OBSERVED),
            }
        }
        status
    }

    /// The member has what the Work holds.
    fn put_applied(&self, recreated: bool, status: &mut WorkStatus, now: Timestamp) {
        // How it came to be applied is history once it is.
        let known = Condition::find(&status.conditions, "Applied").is_some_and(|known| {
            known.is_true()
                && known
                    .observed_generation
                    .is_none_or(|seen| seen == self.generation)
                && !recreated
        });
        if !known {
            observe::applied(Ok(()), recreated, self.generation, now).put(&mut status.conditions);
        }
        if let Some(sent) = &self.sent {
            // What was noted before replicas were is not written again for their sake.
            let uncounted = LastApplied {
                replicas: None,
                ..sent.clone()
            };
            if status.last_applied.as_ref() != Some(&uncounted) {
                status.last_applied = Some(sent.clone());
            }
        }
    }
}

/// The member has no copy, whatever was sent before: nothing goes elsewhere for its sake.
fn forget_copy(status: &mut WorkStatus) {
    status.last_applied = None;
    status.manifest_statuses.clear();
}

/// Has a Work's status say what happened, if that is new.
pub(crate) fn tell(state: &State, key: &Key, work: &Work, outcome: Outcome, live: Option<&Value>) {
    let told = Told::of(state, work, outcome, live);
    let mut untold = state.untold.lock();
    let told = match untold.get(key) {
        Some(earlier) => told.after(earlier),
        None => told,
    };
    // While somebody writes what was told before, or wrote it since this Work was read, there may be something to take back.
    let is_newest = || {
        let cached = state.caches.works.get(key);
        cached.is_some_and(|cached| cached.resource_version == work.metadata.resource_version)
            && !state.tellings.is_in_hand(key)
    };
    if told.status(&work.status, state.clock.now()) == work.status && is_newest() {
        untold.remove(key);
        return;
    }
    untold.insert(key.clone(), told);
    drop(untold);
    state.tellings.add(key.clone(), 1);
}

/// Has a Work go that is being deleted: the member is done with it. If it stands for something it is made `again` as it was:
/// where nothing can be rendered now, what the member has would be looked after by nobody.
pub(crate) fn let_go(state: &State, key: &Key, work: &Work, again: bool) {
    let mut told = Told::of(state, work, Outcome::Over, None);
    told.again = again.then(|| Box::new(work.clone()));
    if let Some(manifest) = work.spec.workload.manifests.first().filter(|_| again) {
        // Nobody else has its name meanwhile.
        let id = template::of_work(state, &work.metadata, TemplateId::of(manifest));
        state.keepsakes.expect(key, id);
    }
    state.untold.lock().insert(key.clone(), told);
    state.tellings.add(key.clone(), 1);
}

/// Whether the member is done with a Work that is being deleted.
pub(crate) fn is_let_go(state: &State, key: &Key) -> bool {
    let untold = state.untold.lock();
    untold.get(key).is_some_and(|told| told.outcome == Outcome::Over)
}

/// Removes our hold on a Work that is being deleted, and makes it again if that is due.
async fn release(state: &State, key: &Key, again: Option<&Work>) -> Result<(), PassError> {
    let going = state::work(&state.caches.works, key).filter(|work| work.metadata.deleting());
    if let Some(work) = &going {
        if again.is_some() {
            keepsakes::keep_work(state, work).await?;
        }
        template::release_work(state, key, work).await?;
        let cluster = names::cluster_of(&key.namespace);
        if let Some(lane) = cluster.and_then(|cluster| state.members.lane(cluster)) {
            lane.disputes.lock().remove(&*key.name);
        }
    }
    if let Some(work) = again {
        make_again(state, key, work).await?;
    }
    let work = going.as_ref().or(again);
    if let Some(work) = work {
        keepsakes::forget(state, &work.metadata.uid).await?;
    }
    // It is there again, which may not be for good, or does not come any more: also if it was expected before.
    state.keepsakes.returned(key);
    owning::wake_waiting(state, &key.name);
    if let Some(work) = work
        && let Some(manifest) = work.spec.workload.manifests.first()
    {
        let id = template::of_work(state, &work.metadata, TemplateId::of(manifest));
        if template::is_namespace(&id) {
            state.namespaces.add(id.name.clone(), 1);
        }
        template::wake_after(state, &id);
        template::wake(state, id);
    }
    Ok(())
}

/// Makes a Work again as it was. Should it have to go by now, it is made for that alone, and sends nothing.
async fn make_again(state: &State, key: &Key, work: &Work) -> Result<(), PassError> {
    let cluster = names::cluster_of(&key.namespace).unwrap_or_default();
    let mut again = work.clone();
    match due(state, cluster, work).await {
        Ok(Due::Untouched | Due::NotYet(_)) | Err(SendError::NotYet(_)) => {}
        Ok(Due::Remove | Due::Keep) => again.spec.suspend_dispatching = Some(true),
        Ok(Due::Nothing) => return Ok(()),
        Err(SendError::Hub(error)) => return Err(error),
        Err(error) => return Err(PassError::NotYet(error.to_string())),
    }
    template::make_work_again(state, key, &again).await
}

/// Writes one Work's status, or lets it go.
pub(crate) async fn pass(state: &State, key: &Key) -> Result<(), PassError> {
    let Some(told) = state.untold.lock().remove(key) else {
        return Ok(());
    };
    if told.outcome == Outcome::Over {
        let result = release(state, key, told.again.as_deref()).await;
        if result.is_err() {
            state.untold.lock().entry(key.clone()).or_insert(told);
        }
        return result;
    }
    let Some(head) = state.caches.works.get(key).and_then(|cached| head(&cached)) else {
        return Ok(());
    };
    let work = head.work;
    let id = head.id.map(|id| template::of_work(state, &work.metadata, id));
    if work.metadata.deleting() {
        return Ok(());
    }
    let status = told.status(&work.status, state.clock.now());
    if status == work.status {
        // There is nothing to tell after all, for which somebody waits.
        if let Some(id) = id.filter(|id| state.members.is_waited_for(id)) {
            state.reports.add_soon(id, 1, REPORT_AFTER);
        }
        return Ok(());
    }
    let was_sent = |status: &WorkStatus| {
        Condition::find(&status.conditions, "Dispatching").is_none_or(Condition::is_true)
    };
    tell_unobserved(state, &work, &status, &told);
    if was_sent(&work.status) != was_sent(&status) {
        tell_turned(state, &work, &status);
    }
    let mut written = template::write_work_status(state, key, &work.metadata, &status).await;
    if let Some(less) = written.as_ref().err().and_then(|error| told.without_seen(error)) {
        // What happened to the Work is told all the same.
        let status = less.status(&work.status, state.clock.now());
        tell_unobserved(state, &work, &status, &less);
        written = match status == work.status {
            true => Ok(()),
            false => template::write_work_status(state, key, &work.metadata, &status).await,
        };
    }
    if let Err(error) = written {
        tell_refused(state, &work, &error);
        // What came meanwhile is newer.
        state.untold.lock().entry(key.clone()).or_insert(told);
        return Err(error);
    }
    if let Some(id) = id {
        rollouts::heard(state, &id);
        // What it needs may have waited for this.
        template::wake_after(state, &id);
        state.reports.add_soon(id, 1, REPORT_AFTER);
    }
    Ok(())
}

/// Says that nobody can tell what a member's object reports, or how it does. What was told is not told again.
fn tell_unobserved(state: &State, work: &Work, status: &WorkStatus, told: &Told) {
    let said = |status: &WorkStatus| {
        Condition::find(&status.conditions, observe::OBSERVED).map(|condition| condition.message.clone())
    };
    let (Some(trouble), true) = (&told.trouble, said(&work.status) != said(status)) else {
        return;
    };
    let target = EventTarget::of_work(work);
    state.events.warn(&target, trouble.event, &trouble.message);
}

/// Says that the hub does not take what became of a Work. What passes with time is not told.
fn tell_refused(state: &State, work: &Work, error: &PassError) {
    if let PassError::Link { error: refused, .. } = error
        && matches!(refused, LinkError::Refused { .. })
        && refused.is_refusal()
    {
        let target = EventTarget::of_work(work);
        state
            .events
            .warn(&target, "ReflectStatusFailed", &error.to_string());
    }
}

/// Says that a Work is not sent any more, or that it is again. That a new one is sent goes without saying.
fn tell_turned(state: &State, work: &Work, status: &WorkStatus) {
    if let Some(condition) = Condition::find(&status.conditions, "Dispatching") {
        let target = EventTarget::of_work(work);
        state
            .events
            .success(&target, "WorkDispatching", &condition.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hub_refuses_to_store_is_left_out_and_told() {
        let told = |status: Option<Value>| Told {
            outcome: Outcome::Applied { recreated: false },
            generation: 2,
            sent: None,
            seen: Some(ManifestStatus {
                status,
                health: "Healthy".to_owned(),
                ..ManifestStatus::default()
            }),
            trouble: None,
            dispute: None,
            again: None,
        };
        let refused = |code: u16| PassError::Link {
            what: "failed to write the Work's status",
            error: LinkError::Refused {
                code,
                reason: String::new(),
                message: "too much".to_owned(),
            },
        };
        let less = told(Some(Value::Bool(true))).without_seen(&refused(413)).unwrap();
        let status = less.status(&WorkStatus::default(), Timestamp::UNIX_EPOCH);
        assert!(
            Condition::find(&status.conditions, observe::APPLIED)
                .unwrap()
                .is_true()
        );
        let observed = Condition::find(&status.conditions, observe::OBSERVED).unwrap();
        assert_eq!((&*observed.status, &*observed.reason), ("False", "StatusRefused"));
        assert!(observed.message.ends_with("too much"));
        let seen = &status.manifest_statuses[0];
        assert_eq!((&seen.status, &*seen.health), (&None, "Healthy"));
        // The next time it says the same, also later.
        let later = Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(60);
        assert_eq!(less.status(&status, later), status);
        // There is nothing to leave out, or it is not what was refused.
        assert!(told(None).without_seen(&refused(413)).is_none());
        for error in [refused(401), refused(403), refused(503), PassError::Again] {
            assert!(told(Some(Value::Bool(true))).without_seen(&error).is_none());
        }
    }
}
