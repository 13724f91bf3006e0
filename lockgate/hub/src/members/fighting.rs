//! Fights over a member's object: somebody there changes back what is corrected. Each correction of a fight is followed by a
//! longer pause, and the Work says who is on the other side for as long as the fight lasts.

use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::{Work, names};
use lockgate_engine::dispatch::{self, Fight, Fights};
use serde_json::Value;

use super::dispatching::{SendError, Sending, template_of};
use super::lane::{DISPATCH, Errand, Lane};
use crate::state::State;

/// So many differences of an object are looked at.
const DIFFERENCES: usize = 64;

/// The corrections of one object.
#[derive(Debug, Default)]
pub(crate) struct Dispute {
    fights: Fights,
    /// Who changes what, if this is a fight.
    who_and_what: String,
}

/// Who changes a Work's object whenever it is corrected, and what of it; none while there is no fight.
pub(super) fn dispute(state: &State, work: &Work) -> Option<String> {
    let cluster = names::cluster_of(&work.metadata.namespace)?;
    let lane = state.members.lane(cluster)?;
    let disputes = lane.disputes.lock();
    let dispute = disputes.get(&work.metadata.name)?;
    dispute.fights.peace(state.clock.now())?;
    Some(dispute.who_and_what.clone())
}

/// Has a Work of which a fight is told looked at when the fight is over.
pub(super) fn look_again(state: &State, lane: &Lane, name: &str) {
    let disputes = lane.disputes.lock();
    let peace = disputes
        .get(name)
        .and_then(|dispute| dispute.fights.peace(state.clock.now()));
    if let Some(peace) = peace {
        let after = crate::clock::later(peace, Duration::from_secs(1));
        lane.queue.add_at(Errand::Work(name.to_owned()), DISPATCH, after);
    }
}

impl Sending<'_> {
    /// Whether an object that somebody changed is left as it is for now, because this is a fight and was fought a moment ago.
    pub(super) fn is_left_changed(&self) -> bool {
        self.is_left(Fights::left_changed_until)
    }

    /// Whether an object that somebody deleted is not made again for now, because this is a fight and was fought a moment ago.
    pub(super) fn is_left_deleted(&self) -> bool {
        self.is_left(Fights::left_deleted_until)
    }

    fn is_left(&self, until: impl FnOnce(&Fights, Timestamp) -> Option<Timestamp>) -> bool {
        let name = &self.work.metadata.name;
        let disputes = self.lane.disputes.lock();
        let dispute = disputes.get(name);
        let until = dispute.and_then(|dispute| until(&dispute.fights, self.state.clock.now()));
        if let Some(until) = until {
            let errand = Errand::Work(name.clone());
            self.lane.queue.add_at(errand, DISPATCH, until);
        }
        until.is_some()
    }

    /// The object with who wrote what of it, if correcting it now may be part of a fight: afterwards it was we who wrote it. What
    /// is remembered of an object does not say that, so that the member is asked.
    pub(super) async fn read_managers(&self) -> Result<Value, SendError> {
        let now = self.state.clock.now();
        let may_fight = {
            let disputes = self.lane.disputes.lock();
            let dispute = disputes.get(&self.work.metadata.name);
            dispute.is_some_and(|dispute| dispute.fights.may_fight(now))
        };
        if !may_fight {
            return Ok(Value::Null);
        }
        let path = self
            .resource
            .object(&self.object_key.namespace, &self.object_key.name);
        let answer = self.link.get(&path).await.map_err(SendError::Member)?;
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// What somebody changed was corrected. What differs from before is what they changed: the manifest differs in more, since
    /// servers write some values in their own way and add others.
    pub(super) fn was_corrected(&self, before: &Value, after: &Value, managers: &Value) {
        let fields = dispatch::differing_paths(after, before, DIFFERENCES);
        let record = |fights: &mut Fights, now| fights.corrected(&fields, now);
        let Some(Fight { field, backoff }) = self.record(record) else {
            return;
        };
        let manager = dispatch::manager_of(managers, &field);
        let who = manager.as_deref().unwrap_or("somebody");
        let what = if field.is_empty() {
            "one field or another"
        } else {
            &field
        };
        let (object, cluster, seconds) = (self.object_key, &self.lane.cluster, backoff.as_secs());
        let message = format!(
            "{who} keeps changing {what} of {object} in cluster {cluster}; it is corrected now, and not again within {seconds} s"
        );
        self.tell_fight(format!("{who} keeps changing {what}"), &message);
    }

    /// What somebody deleted was made again.
    pub(super) fn was_made_again(&self) {
        let Some(pause) = self.record(Fights::made_again) else {
            return;
        };
        let (object, cluster, seconds) = (self.object_key, &self.lane.cluster, pause.as_secs());
        let message = format!(
            "somebody keeps deleting {object} in cluster {cluster}; it is made again now, and not again within {seconds} s"
        );
        // Nobody can be asked who did it.
        self.tell_fight("somebody keeps deleting it".to_owned(), &message);
    }

    fn record<T>(&self, record: impl FnOnce(&mut Fights, Timestamp) -> T) -> T {
        let mut disputes = self.lane.disputes.lock();
        let dispute = disputes.entry(self.work.metadata.name.clone()).or_default();
        record(&mut dispute.fights, self.state.clock.now())
    }

    fn tell_fight(&self, who_and_what: String, message: &str) {
        let target = template_of(self.manifest);
        self.state.events.warn(&target, "DriftFight", message);
        if let Some(dispute) = self.lane.disputes.lock().get_mut(&self.work.metadata.name) {
            dispute.who_and_what = who_and_what;
        }
    }
}
