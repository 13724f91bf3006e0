//! The gate's part of a template's pass: which revision is on its way, who gets it now, and what is kept of it.
//!
//! Templates that follow no strategy pass without a look at any of this. For the others the binding's record is written
//! before the Works that follow from it, so that a pass that is cut off is taken up where it was.

mod asked;
mod referrers;
mod rows;
mod steps;
mod unmade;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::rollout_policy::{RolloutRun, RunCluster, RunGroup};
use lockgate_api::{Binding, RolloutPolicy, names};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::Record;
use lockgate_engine::dependencies::is_attached;
use lockgate_engine::gate::record::{Command, RolloutRecord};
use lockgate_engine::gate::revision::{Revision, intent, revision_digest};
use lockgate_engine::gate::run::{self, Act, Member, Phase, Run, RunInput};
use lockgate_engine::gate::standing::Status;
use lockgate_engine::gate::{self, FollowError, Followed};
use lockgate_engine::render;
use machinery_value::hash::ValueHash;
use serde_json::Value;

use self::referrers::{Referrer, given_up, is_part_of_a_change, referrers};
use self::rows::Row;
pub(super) use self::rows::{Plan, is_unsent, plan, work_id};
use self::steps::gate_of;
pub(super) use self::steps::{Gate, GateStep, unmark};
pub(super) use self::unmade::Unmade;
use super::holding::wake_dependents;
use super::revisions::{self, Stored};
use super::works::left;
use super::{PassError, Walk, binding_id, brief, is_frozen};
use crate::cache::Key;
use crate::events::EventTarget;
use crate::rollouts;
use crate::state::{self, State, WALK};

impl Walk<'_> {
    /// The hash of the template's content, as it was activated.
    pub(super) fn content(&self, binding: &Binding) -> (ValueHash, Option<String>) {
        let basis = Record::find(&self.template, Some(binding)).and_then(|record| record.basis);
        (render::activated_hash(&self.template, basis.as_deref()), basis)
    }

    /// What somebody wants of this template.
    fn intent(&self, binding: &Binding) -> String {
        let overrides = self.state.overrides.read().list();
        let (content, _) = self.content(binding);
        intent(
            &self.template,
            &content,
            binding.spec.placement.as_ref(),
            &binding.spec.conflict_resolution,
            &overrides,
        )
    }

    /// What is sent in the place of the template, if what it says was given up. A revision that somebody deleted cannot be
    /// sent: nothing is, then.
    pub(super) async fn way_back(&self, binding: &mut Binding) -> Result<Option<Arc<Stored>>, PassError> {
        let Some(mut record) = RolloutRecord::of(&binding.metadata).filter(|record| record.back.is_some())
        else {
            return Ok(None);
        };
        let intent = self.intent(binding);
        let Some(to) = record.back(&intent).and_then(|back| back.to.clone()) else {
            return Ok(None);
        };
        let stored = revisions::read(self.state, self.id, binding_id(binding, self.id), &to.digest).await?;
        if stored.is_none()
            && let Some(back) = &mut record.back
        {
            back.to = None;
            back.why.push_str(" (the revision to go back to is gone)");
            record.put(&mut binding.metadata);
        }
        Ok(stored)
    }

    /// Decides what goes now, and keeps in the binding what must be known of it.
    pub(super) async fn gate(&mut self) -> Result<Gate, PassError> {
        // What nobody owns stays as it is, and only others move it: in their order.
        let moves = |binding: &&Binding| !is_frozen(binding) || !binding.spec.required_by.is_empty();
        let Some(binding) = self.binding.as_deref().filter(moves) else {
            self.let_go_unneeded().await?;
            return Ok(Gate::default());
        };
        let record = RolloutRecord::of(&binding.metadata);
        let about = self.state.rollouts.read().about(&self.template);
        let mut ranked = gate::ranked(&about, &self.template);
        let referrers = referrers(self.state, binding)?;
        let own = !ranked.is_empty();
        if !own {
            // What others need goes in their order, unless it has one of its own.
            let inherited = referrers.iter().find(|referrer| !referrer.ranked.is_empty());
            ranked = inherited
                .map(|referrer| referrer.ranked.clone())
                .unwrap_or_default();
        }
        let back = record.as_ref().and_then(|record| record.back.as_ref());
        if ranked.is_empty() && back.is_none() {
            rollouts::note(self.state, self.id, &[], None);
            if let Some(mut record) = record
                && record.let_go()
            {
                let mut binding = binding.clone();
                record.put(&mut binding.metadata);
                self.write_binding(binding).await?;
            }
            return Ok(Gate::default());
        }
        let mut followed = match ranked.first() {
            None => Ok(Followed::all_at_once()),
            Some(policy) => Followed::read(policy),
        };
        if let (Ok(followed), false) = (&mut followed, own) {
            // What others need may be there twice, and is needed where they are until they are gone.
            followed.breaks_first = false;
        }
        let mut binding = binding.clone();
        let stored = self.way_back(&mut binding).await?;
        let gate = self
            .decide_releases(&mut binding, &ranked, followed, stored, &referrers)
            .await?;
        let before = self.binding.as_ref().map(|binding| &binding.metadata);
        if before.map(|before| &before.annotations) != Some(&binding.metadata.annotations) {
            let stood =
                |metadata| RolloutRecord::of(metadata).map(|record| (record.is_settled(), record.back));
            let turned = before.and_then(stood) != stood(&binding.metadata);
            self.write_binding(binding).await?;
            if let Some(binding) = self.binding.as_deref().filter(|_| turned) {
                // What it needs goes on, or back, with it.
                wake_dependents(self.state, binding);
            }
        }
        Ok(gate)
    }

    /// What was there for others alone and is not needed any more has no order to go in: it goes.
    async fn let_go_unneeded(&mut self) -> Result<(), PassError> {
        let Some(binding) = self.binding.as_deref().filter(|binding| is_attached(binding)) else {
            return Ok(());
        };
        rollouts::note(self.state, self.id, &[], None);
        let Some(mut record) = RolloutRecord::of(&binding.metadata) else {
            return Ok(());
        };
        let went_back = record.back.take().is_some();
        if record.let_go() || went_back {
            let mut binding = binding.clone();
            record.put(&mut binding.metadata);
            self.write_binding(binding).await?;
        }
        Ok(())
    }

    async fn decide_releases(
        &self,
        binding: &mut Binding,
        ranked: &[Arc<RolloutPolicy>],
        followed: Result<Followed, FollowError>,
        stored: Option<Arc<Stored>>,
        referrers: &[Referrer],
    ) -> Result<Gate, PassError> {
        let now = self.state.clock.now();
        let record = RolloutRecord::of(&binding.metadata);
        let intent = self.intent(binding);
        let breaks_first = followed.as_ref().is_ok_and(|followed| followed.breaks_first);
        // Where nothing may run twice, what is on its way out is still there.
        let leaving: Vec<String> = left(self.state, self.id, binding, breaks_first)
            .iter()
            .filter_map(|work| names::cluster_of(&work.namespace).map(str::to_owned))
            .collect();
        let of = binding.clone();
        let overrides = self.state.overrides.read().list();
        let (content, basis) = self.content(&of);
        let plan = plan(&self.template, content, &overrides, &of, stored.as_deref());
        let mut rows = self.rows(&of, &plan, referrers)?;
        let digest = revision_digest(rows.iter().map(|row| (row.cluster.as_str(), row.wanted.as_str())));
        let mut next = record.clone().unwrap_or_default();
        if next.back(&intent).is_none() {
            next.back = None;
            self.state.ways_back.lock().remove(self.id);
        }
        let everywhere = leaving.is_empty() && !rows.is_empty() && rows.iter().all(Row::is_there);
        if next.begin(&digest, everywhere) {
            next.begun = Some(now);
            let revision = match &stored {
                None => Revision::of(&self.template, basis, &of, &overrides),
                // What every cluster makes of it may have changed since it was kept.
                Some(stored) => Revision {
                    clusters: of.spec.clusters.clone(),
                    ..stored.revision.clone()
                },
            };
            self.keep(&next, &of, &revision).await?;
        }
        let turns = self.obey(&mut next, binding, &intent, now).await?
            || next.turn_with(&intent, given_up(referrers), now);
        if turns {
            self.tell_turn(&record.clone().unwrap_or_default(), &next);
            // What the rows tell is of another revision than the one that is sent from now on: the next pass begins with it.
            rollouts::note_removal(self.state, self.id, false, !leaving.is_empty());
            self.give_up(record.as_ref(), &next, &of).await?;
            next.put(&mut binding.metadata);
            self.state.templates.add(self.id.clone(), WALK);
            return Ok(Gate::closed(stored));
        }
        self.mark_due(&mut rows, referrers, next.begun);
        let members: Vec<Member<'_>> = rows.iter().map(Row::member).collect();
        // In the same write as what follows from it: what stops a rollout is known after a restart.
        self.take_refusals(&mut next, &members);
        let names: Vec<&str> = leaving.iter().map(String::as_str).collect();
        let before = next.clone();
        let put = |next: &RolloutRecord, binding: &mut Binding| {
            if record.as_ref() != Some(next) {
                next.put(&mut binding.metadata);
            }
        };
        let (followed, groups) = match self.groups(followed, &rows) {
            Ok(Some(both)) => both,
            unknown => {
                if let Err(error) = unknown {
                    let view = unfollowed(&rows, &next, title(ranked), &error);
                    rollouts::note(self.state, self.id, ranked, Some(&view));
                }
                rollouts::note_removal(self.state, self.id, false, !leaving.is_empty());
                self.give_up(record.as_ref(), &next, &of).await?;
                put(&next, binding);
                let refused = self.all_refused(&next);
                return Ok(Gate::held(&rows, &next, stored.clone(), refused));
            }
        };
        let input = RunInput {
            record: &before,
            back: before.back.as_ref(),
            followed: &followed,
            groups: &groups,
            members: &members,
            leaving: &names,
            now,
        };
        let mut run = run::run(&input);
        let unmade = self.all_unmade(&of, &plan, &rows, &next, &run);
        let limit = brief::limit_of_each(unmade.len());
        let members: Vec<Member<'_>> = members
            .iter()
            .map(|member| Member {
                unmade: unmade
                    .get(member.cluster)
                    .map(|why| brief::cut(&why.message, limit)),
                ..*member
            })
            .collect();
        let input = RunInput {
            members: &members,
            ..input
        };
        let mut tried = BTreeMap::new();
        if !unmade.is_empty() {
            let first = std::mem::replace(&mut run, run::run(&input));
            let starts = |step: &run::Step<'_>| matches!(step.act, Act::Release(_));
            if !run.steps.iter().any(starts) {
                // Whoever the hub refused is tried again in its turn, so that it is noticed when the hub takes it.
                let is_refused = |cluster: &str| unmade.get(cluster).is_some_and(|why| why.is_refused);
                let again = first.steps.iter();
                let again = again.filter(|step| starts(step) && is_refused(step.cluster));
                tried.extend(again.map(|step| (step.cluster.to_owned(), (step.act, step.marks))));
            }
        }
        self.conclude(&mut next, &run, &intent, is_part_of_a_change(referrers));
        self.give_up(record.as_ref(), &next, &of).await?;
        let is_new_way = next.back != before.back;
        put(&next, binding);
        rollouts::note(
            self.state,
            self.id,
            ranked,
            Some(&run.view(&input, &title(ranked))),
        );
        rollouts::note_removal(self.state, self.id, run.removes, !leaving.is_empty());
        rollouts::recheck(self.state, self.id, run.recheck_at);
        if is_new_way {
            // Another revision is to be sent from now on: the next pass begins with it.
            self.state.templates.add(self.id.clone(), WALK);
            return Ok(Gate::closed(stored.clone()));
        }
        rollouts::count(self.state, &run, &members);
        Ok(gate_of(
            &rows,
            &run,
            &next,
            stored.clone(),
            unmade.clone(),
            &tried,
        ))
    }

    /// What a decision changes in the record.
    fn conclude(&self, next: &mut RolloutRecord, run: &Run<'_>, intent: &str, belongs: bool) {
        let was = next.clone();
        next.conclude(run, intent, belongs, self.state.clock.now());
        if let Some(breach) = next.breach.as_ref().filter(|_| was.breach != next.breach) {
            let message = format!("Revision {} stops: {breach}", next.revision);
            self.tell("RolloutStopped", &message, false);
        }
        self.tell_turn(&was, next);
        if next.is_settled() && !was.is_settled() {
            let reason = match run.phase {
                Phase::RolledBack => "RolledBack",
                _ => "RolloutSucceeded",
            };
            self.tell(reason, &format!("Revision {} is everywhere", next.revision), true);
        }
    }

    /// Tells that a revision is given up, if it is now.
    fn tell_turn(&self, was: &RolloutRecord, next: &RolloutRecord) {
        let turned = next.back.as_ref().filter(|back| !back.forward);
        let Some(back) = turned.filter(|_| was.back != next.back) else {
            return;
        };
        let for_what = match &back.to {
            Some(to) => format!("for revision {}", to.revision),
            None => "and no revision has succeeded everywhere before".to_owned(),
        };
        let message = format!("Revision {} is given up {for_what}: {}", back.from, back.why);
        self.tell("RollingBack", &message, false);
    }

    fn tell(&self, reason: &str, message: &str, good: bool) {
        let target = EventTarget::of_value(&self.template);
        if good {
            self.state.events.notice(&target, reason, message);
        } else {
            self.state.events.warn(&target, reason, message);
        }
    }
}

fn title(ranked: &[Arc<RolloutPolicy>]) -> String {
    ranked
        .first()
        .map_or_else(|| "no policy".to_owned(), |policy| policy.title())
}

/// A rollout whose strategy cannot be followed: whoever has not got what is to go waits.
fn unfollowed(rows: &[Row], record: &RolloutRecord, policy: String, error: &FollowError) -> RolloutRun {
    let clusters = rows.iter().map(|row| {
        let (state, reason) = if row.is_there() {
            (Status::Skip, "")
        } else {
            (Status::ToApply, "held: the strategy cannot be followed")
        };
        RunCluster {
            name: row.cluster.clone(),
            state: state.name().to_owned(),
            reason: reason.to_owned(),
            revision: row.told.as_ref().map_or(0, |told| told.revision),
            ..RunCluster::default()
        }
    });
    RolloutRun {
        policy,
        revision: record.revision,
        good_revision: record.good.as_ref().map(|good| good.revision),
        phase: Phase::Failed.name().to_owned(),
        message: error.to_string(),
        command: record.command.as_ref().map(Command::told).unwrap_or_default(),
        groups: vec![RunGroup::of(0, "", clusters.collect())],
    }
}

/// Whether old copies of a template go before new ones come.
pub(crate) fn breaks_first(state: &State, id: &TemplateId) -> bool {
    let template: Option<Value> = state
        .kinds
        .served(&id.api_version, &id.kind)
        .and_then(|kind| kind.cache.get(&Key::new(&id.namespace, &id.name)))
        .and_then(|cached| state::parse(&cached));
    let Some(template) = template else { return false };
    let about = state.rollouts.read().about(&template);
    let ranked = gate::ranked(&about, &template);
    ranked
        .first()
        .and_then(|policy| Followed::read(policy).ok())
        .is_some_and(|followed| followed.breaks_first)
}
