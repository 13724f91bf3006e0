//! What a decision writes: first the template's marks, then the binding. A pass may be cut off between the two; the same
//! decision follows from what was written.

use lockgate_api::{Binding, PropagationPolicy, keys};
use serde_json::Value;

use super::binding::{activated_spec, held_suspension};
use super::mark::set;
use super::{Act, Because, Claim, Decision, Record};
use crate::{object, render};

impl Decision {
    /// The template with this decision's claim and, while it has no binding, its record; `None` if it is so already.
    pub fn mark(&self, template: &Value, binding: Option<&Binding>) -> Option<Value> {
        let mut marked = template.clone();
        let claim = self.holder.as_deref().map(Claim::by);
        let claimed = Claim::mark_template(claim.as_ref(), &mut marked);
        let recorded = binding.is_none() && self.record_on_template(template, claimed, &mut marked);
        (claimed || recorded).then_some(marked)
    }

    /// The binding as it must be written before the template is marked, if it must: what it says would explain the mark
    /// wrongly to whoever takes over in between.
    pub fn record_first(&self, template: &Value, binding: Option<&Binding>) -> Option<Binding> {
        let binding = binding?;
        // A binding with a claim whose template has none looks like one whose template was replaced by the user.
        let disowned = self.holder.is_none() && Claim::on_binding(&binding.metadata).is_some();
        if !self.defaulted && !disowned {
            return None;
        }
        self.mark(template, Some(binding))?;
        let mut recorded = binding.clone();
        if disowned {
            Claim::mark_binding(None, &mut recorded.metadata);
        }
        // Defaults have moved the content, and the mark may move the generation: together, that looks like an edit.
        if self.defaulted
            && let Some(record) = Record::find(template, Some(binding))
        {
            record_on(&mut recorded, &record.following(template));
        }
        (recorded != *binding).then_some(recorded)
    }

    /// Without a binding the template carries the record, in the claim's own write.
    fn record_on_template(&self, template: &Value, claimed: bool, marked: &mut Value) -> bool {
        let own = Record::find(template, None).filter(|record| record.is_of(template));
        let record = match (&self.act, &self.holder) {
            // What waits no longer for anybody has no past. What is not there needs no write.
            (Act::Wait, _) => {
                let stale = object::annotation(template, keys::ACTIVATED).is_some();
                set(marked, "annotations", keys::ACTIVATED, None);
                return stale;
            }
            // If we are cut off here, the record says what was decided. One that is there says why, and must go on saying
            // so until it has happened. Where nothing ever waits, nothing needs to be said.
            (Act::Activate(because), Some(policy)) if claimed && own.is_none() && self.waits.is_some() => {
                let mut record = Record::of(template).by(policy.permanent_id(), policy.metadata.generation);
                if *because == Because::Asked {
                    record.request = None;
                }
                record
            }
            (Act::Hold { refresh, .. }, _) if *refresh || claimed || self.restamps(own.as_ref()) => match own
            {
                Some(own) => own.following(template),
                None => Record::of(template).by(&unknown_past(template), 0),
            },
            _ => return false,
        };
        let record = self.stamp.put(record.on_template(template, marked)).encode();
        let differs = object::annotation(template, keys::ACTIVATED) != Some(&record);
        set(marked, "annotations", keys::ACTIVATED, Some(&record));
        differs
    }

    /// Brings a binding to what this decision says; where it goes is the next station's. The template is the one with
    /// this decision's marks.
    pub fn bind(&self, template: &Value, binding: &mut Binding) {
        match (&self.act, &self.holder) {
            (Act::Activate(_), Some(policy)) => {
                binding.spec = activated_spec(policy, template, Some(&binding.spec));
                let record = Record::of(template).by(policy.permanent_id(), policy.metadata.generation);
                put(binding, Some(&Claim::by(policy)), Some(&self.stamp.put(record)));
            }
            (Act::Keep { refresh }, Some(policy)) => self.keep(policy, template, *refresh, binding),
            (Act::Hold { refresh, .. }, Some(policy)) => {
                suspend(policy, binding);
                let claim = Claim::on_binding(&binding.metadata);
                let record = match Record::find(template, Some(binding)) {
                    Some(old) if *refresh || old.generation_moved(template) || self.restamps(Some(&old)) => {
                        Some(old.following(template))
                    }
                    Some(_) => None,
                    None => {
                        let activated = claim.as_ref().map_or("", |claim| &claim.id);
                        Some(Record::of(template).by(activated, 0))
                    }
                };
                let record = record.map(|record| self.stamp.put(record));
                put(binding, claim.as_ref(), record.as_ref());
            }
            (Act::Freeze { changed }, _) => {
                let old = Record::find(template, Some(binding)).filter(|_| !changed);
                let record = old.map(|old| self.stamp.put(old.following(template)));
                put(binding, None, record.as_ref());
            }
            _ => {}
        }
    }

    /// The holder says what was activated: the binding says so too.
    fn keep(&self, policy: &PropagationPolicy, template: &Value, refresh: bool, binding: &mut Binding) {
        suspend(policy, binding);
        if let Some(workload) = render::workload(template) {
            // Nobody but the template says how much of it there is, also if somebody wrote something else to the binding.
            binding.spec.replicas = workload.replicas;
            binding.spec.replica_requirements = workload.requirements;
        }
        let claim = Claim::by(policy);
        let old = Record::find(template, Some(binding));
        let settled = !refresh
            && Claim::on_binding(&binding.metadata).as_ref() == Some(&claim)
            && !self.restamps(old.as_ref())
            && old.as_ref().is_some_and(|old| !old.generation_moved(template));
        let record = match old {
            _ if settled => None,
            Some(old) => Some(old.following(template)),
            None => Some(Record::of(template)),
        };
        let record = record.map(|record| {
            let record = record.by(policy.permanent_id(), policy.metadata.generation);
            self.stamp.put(record)
        });
        put(binding, Some(&claim), record.as_ref());
    }

    /// Whether a record must say something else of the gate.
    fn restamps(&self, record: Option<&Record>) -> bool {
        record.is_some_and(|record| !self.stamp.is_on(record))
    }
}

/// What a policy suspends is suspended at once, whatever else of it waits.
fn suspend(policy: &PropagationPolicy, binding: &mut Binding) {
    let spec = &mut binding.spec;
    spec.suspension = held_suspension(policy.spec.suspension.as_ref(), spec.suspension.as_ref());
}

fn put(binding: &mut Binding, claim: Option<&Claim>, record: Option<&Record>) {
    Claim::mark_binding(claim, &mut binding.metadata);
    if let Some(record) = record {
        record_on(binding, record);
    }
}

fn record_on(binding: &mut Binding, record: &Record) {
    let annotations = &mut binding.metadata.annotations;
    annotations.insert(keys::ACTIVATED.to_owned(), record.encode());
    // For people: a column cannot look into the record.
    if record.policy_generation > 0 {
        let generation = record.policy_generation.to_string();
        annotations.insert(keys::ACTIVATED_GENERATION.to_owned(), generation);
    } else {
        annotations.remove(keys::ACTIVATED_GENERATION);
    }
}

/// Who may have activated a template that has a claim and no record; nobody if it has no claim, or came as a copy.
fn unknown_past(template: &Value) -> String {
    if Record::find(template, None).is_some() {
        return String::new();
    }
    Claim::on_template(template).map_or_else(String::new, |claim| claim.id)
}
