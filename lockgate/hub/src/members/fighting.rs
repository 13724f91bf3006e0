//! Fights over a member's object: somebody there changes back what is corrected. Each correction of a fight is followed by a
//! longer pause, and the Work says who is on the other side for as long as the fight lasts.

use lockgate_api::{Work, names};
use lockgate_engine::dispatch::{self, Corrections};
use serde_json::Value;

use super::dispatching::{SendError, Sending, template_of};
use super::lane::{DISPATCH, Errand, Lane};
use crate::state::State;

/// The corrections of one object.
#[derive(Debug, Default)]
pub(crate) struct Dispute {
    corrections: Corrections,
    /// Who changes what, if this is a fight.
    who_and_what: String,
    /// That the object was deleted is recorded, and it was not made again since.
    lost: bool,
}

/// Who changes a Work's object whenever it is corrected, and what of it; none while there is no fight.
pub(super) fn dispute(state: &State, work: &Work) -> Option<String> {
    let cluster = names::cluster_of(&work.metadata.namespace)?;
    let lane = state.members.lane(cluster)?;
    let disputes = lane.disputes.lock();
    let dispute = disputes.get(&work.metadata.name)?;
    dispute.corrections.peace(state.clock.now())?;
    Some(dispute.who_and_what.clone())
}

/// Has a Work of which a fight is told looked at when the fight is over.
pub(super) fn look_again(state: &State, lane: &Lane, name: &str) {
    let disputes = lane.disputes.lock();
    let peace = disputes
        .get(name)
        .and_then(|dispute| dispute.corrections.peace(state.clock.now()));
    if let Some(peace) = peace {
        let after = crate::clock::later(peace, std::time::Duration::from_secs(1));
        lane.queue.add_at(Errand::Work(name.to_owned()), DISPATCH, after);
    }
}

impl Sending<'_> {
    /// Whether an object that somebody changed or deleted is left as it is for now, because this is a fight and was fought a moment
    /// ago. If not, it is corrected.
    pub(super) async fn leaves_alone(&self, live: Option<&Value>) -> Result<bool, SendError> {
        let now = self.state.clock.now();
        let name = &self.work.metadata.name;
        let pause = {
            let mut disputes = self.lane.disputes.lock();
            let dispute = disputes.entry(name.clone()).or_default();
            if let Some(until) = dispute.corrections.paused_until(now) {
                let errand = Errand::Work(name.clone());
                self.lane.queue.add_at(errand, DISPATCH, until);
                return Ok(true);
            }
            // One that the member does not take again was deleted once, however often that is tried.
            if live.is_none() && std::mem::replace(&mut dispute.lost, true) {
                return Ok(false);
            }
            dispute.corrections.record(now).backoff
        };
        let Some(pause) = pause else {
            return Ok(false);
        };
        let (object, cluster, seconds) = (self.object_key, &self.lane.cluster, pause.as_secs());
        let (who_and_what, message) = match live {
            Some(live) => {
                let who_and_what = self.who_changes(live).await?;
                let message = format!(
                    "{who_and_what} of {object} in cluster {cluster}; it is corrected now, and not again within {seconds} s"
                );
                (who_and_what, message)
            }
            // Nobody can be asked who did it.
            None => (
                "somebody keeps deleting it".to_owned(),
                format!(
                    "somebody keeps deleting {object} in cluster {cluster}; it is made again now, and not again within \
                     {seconds} s"
                ),
            ),
        };
        let target = template_of(self.manifest);
        self.state.events.warn(&target, "DriftFight", &message);
        if let Some(dispute) = self.lane.disputes.lock().get_mut(name) {
            dispute.who_and_what = who_and_what;
        }
        Ok(false)
    }

    /// The object is there again.
    pub(super) fn is_made_again(&self) {
        if let Some(dispute) = self.lane.disputes.lock().get_mut(&self.work.metadata.name) {
            dispute.lost = false;
        }
    }

    /// Who is on the other side, and what is fought over. What is remembered of an object does not say who wrote it, so
    /// that the member is asked.
    async fn who_changes(&self, live: &Value) -> Result<String, SendError> {
        let field = dispatch::differing_path(self.manifest, live).unwrap_or_default();
        let path = self
            .resource
            .object(&self.object_key.namespace, &self.object_key.name);
        let answer = self.link.get(&path).await.map_err(SendError::Member)?;
        let manager = serde_json::from_slice::<Value>(&answer)
            .ok()
            .and_then(|live| dispatch::manager_of(&live, &field));
        Ok(format!(
            "{} keeps changing {field}",
            manager.as_deref().unwrap_or("somebody")
        ))
    }
}
