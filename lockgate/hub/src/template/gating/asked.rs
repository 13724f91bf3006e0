//! Revisions that are kept, and what operators ask for that concerns them.

use jiff::Timestamp;
use lockgate_api::Binding;
use lockgate_engine::gate::record::{Good, RolloutRecord, Verb};
use lockgate_engine::gate::revision::Revision;

use crate::template::revisions;
use crate::template::{PassError, Walk, binding_id};

impl Walk<'_> {
    /// Keeps a revision that begins, and lets go of the oldest.
    pub(super) async fn keep(
        &self,
        next: &RolloutRecord,
        binding: &Binding,
        revision: &Revision,
    ) -> Result<(), PassError> {
        let id = binding_id(binding, self.id);
        revisions::keep(self.state, self.id, id, &next.current(), revision).await?;
        if usize::try_from(next.revision).is_ok_and(|number| number > revisions::KEPT) {
            let good = next.good.iter();
            let back = next.back.iter().filter_map(|back| back.to.as_ref());
            let mut needed: Vec<&str> = good.chain(back).map(|good| good.digest.as_str()).collect();
            needed.push(&next.digest);
            revisions::prune(self.state, self.id, id, &needed).await?;
        }
        if !next.is_settled() {
            let message = format!("Revision {} starts", next.revision);
            self.tell("RolloutStarted", &message, true);
        }
        Ok(())
    }

    /// Says of the revision that is given up now that it was.
    pub(super) async fn give_up(
        &self,
        before: Option<&RolloutRecord>,
        next: &RolloutRecord,
        binding: &Binding,
    ) -> Result<(), PassError> {
        let was = before.and_then(|before| before.back.as_ref());
        let Some(back) = next
            .back
            .as_ref()
            .filter(|back| !back.forward && was != Some(*back))
        else {
            return Ok(());
        };
        if back.from != next.revision || back.to.as_ref().is_some_and(|to| to.digest == next.digest) {
            return Ok(());
        }
        let id = binding_id(binding, self.id);
        revisions::give_up(self.state, self.id, id, &next.digest).await
    }

    /// Takes in what an operator asks for; whether another revision is to be sent from now on.
    pub(super) async fn obey(
        &self,
        next: &mut RolloutRecord,
        binding: &Binding,
        intent: &str,
        now: Timestamp,
    ) -> Result<bool, PassError> {
        let Some(request) = next.unseen(&self.template) else {
            return Ok(false);
        };
        let mut chosen = None;
        if request.verb == Verb::Undo {
            let entries = revisions::list(self.state, self.id, binding_id(binding, self.id)).await?;
            let found = match request.to {
                Some(number) => entries.into_iter().find(|entry| entry.number == number),
                // The one before, of those that nobody has given up.
                None => entries
                    .into_iter()
                    .find(|entry| entry.digest != next.digest && !entry.given_up),
            };
            chosen = found.map(|entry| Good {
                revision: entry.number,
                digest: entry.digest,
            });
            if chosen.is_none() {
                self.tell("RolloutUndoFailed", "There is no such revision", false);
            }
        }
        let before = next.back.clone();
        next.obey(request, intent, chosen, now);
        if let Some(command) = &next.command {
            self.tell("RolloutCommand", &command.told(), true);
        }
        Ok(next.back != before)
    }
}
