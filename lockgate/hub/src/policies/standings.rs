//! How each template is with the policy that owns it, as its last pass left it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use lockgate_engine::TemplateId;
use lockgate_engine::claim::Standing;

use crate::cache::Key;

/// What a pass over a template found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// The policy that owns it.
    pub(super) policy: Key,
    /// The generation of the policy that was looked at.
    pub(super) generation: i64,
    /// How it is with it.
    pub(super) standing: Standing,
}

/// A template of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) generation: i64,
    pub(super) standing: Standing,
    pub(super) failing: bool,
}

/// The templates of every policy.
#[derive(Debug, Default)]
pub(super) struct Standings {
    owners: HashMap<Arc<TemplateId>, Key>,
    /// In order, so that what is told of them is the same in every run.
    templates: HashMap<Key, BTreeMap<Arc<TemplateId>, Judged>>,
    /// Templates that fail, also those whose owner is not noted yet.
    failing: HashSet<TemplateId>,
}

impl Standings {
    /// Takes in what a pass found; no owner takes the template out. Answers which policies have something else to say.
    pub(super) fn note(&mut self, id: &TemplateId, noted: Option<Noted>) -> Vec<Key> {
        let mut touched = Vec::new();
        let owner = self
            .owners
            .get_key_value(id)
            .map(|(id, key)| (id.clone(), key.clone()));
        let moved = owner.as_ref().map(|(_, key)| key) != noted.as_ref().map(|noted| &noted.policy);
        if let Some((id, key)) = owner.as_ref().filter(|_| moved) {
            self.take_out(id, key);
            touched.push(key.clone());
        }
        let Some(noted) = noted else {
            self.failing.remove(id);
            return touched;
        };
        let shared = owner.map_or_else(|| Arc::new(id.clone()), |(id, _)| id);
        let judged = Judged {
            generation: noted.generation,
            standing: noted.standing,
            failing: self.failing.contains(id),
        };
        let templates = self.templates.entry(noted.policy.clone()).or_default();
        if templates.insert(shared.clone(), judged) != Some(judged) {
            touched.push(noted.policy.clone());
        }
        if moved {
            self.owners.insert(shared, noted.policy);
        }
        touched
    }

    fn take_out(&mut self, id: &Arc<TemplateId>, key: &Key) {
        self.owners.remove(id);
        if let Some(templates) = self.templates.get_mut(key) {
            templates.remove(id);
            if templates.is_empty() {
                self.templates.remove(key);
            }
        }
    }

    /// Who owns a template.
    pub(super) fn owner(&self, id: &TemplateId) -> Option<&Key> {
        self.owners.get(id)
    }

    /// Takes in whether a template fails. Answers which policy has something else to say.
    pub(super) fn note_failing(&mut self, id: &TemplateId, failing: bool) -> Option<Key> {
        let changed = if failing {
            self.failing.insert(id.clone())
        } else {
            self.failing.remove(id)
        };
        let key = self.owners.get(id).filter(|_| changed)?;
        let judged = self.templates.get_mut(key)?.get_mut(id)?;
        judged.failing = failing;
        Some(key.clone())
    }

    /// The templates of a policy that were judged by another generation of it.
    pub(super) fn stale(&self, key: &Key, generation: i64) -> Vec<Arc<TemplateId>> {
        let judged = self.of(key).filter(|(_, judged)| judged.generation != generation);
        judged.map(|(id, _)| id.clone()).collect()
    }

    /// Takes in a judgement of this generation, unless the template has another owner by now; without one it is as it was.
    pub(super) fn judge(&mut self, key: &Key, id: &TemplateId, generation: i64, standing: Option<Standing>) {
        if let Some(judged) = self
            .templates
            .get_mut(key)
            .and_then(|templates| templates.get_mut(id))
        {
            judged.generation = generation;
            judged.standing = standing.unwrap_or(judged.standing);
        }
    }

    /// The templates of a policy.
    pub(super) fn of(&self, key: &Key) -> impl Iterator<Item = (&Arc<TemplateId>, &Judged)> {
        self.templates.get(key).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use lockgate_engine::claim::HoldReason;

    use super::*;

    const HELD: Standing = Standing::Held(HoldReason::Lazy);

    fn id(name: &str) -> TemplateId {
        TemplateId {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    fn noted(policy: &str, generation: i64, standing: Standing) -> Option<Noted> {
        Some(Noted {
            policy: Key::new("shop", policy),
            generation,
            standing,
        })
    }

    fn shown(standings: &Standings, policy: &str) -> Vec<(String, Judged)> {
        let key = Key::new("shop", policy);
        let templates = standings.of(&key);
        templates.map(|(id, judged)| (id.name.clone(), *judged)).collect()
    }

    #[test]
    fn a_template_has_one_owner_and_moves_are_told_to_both() {
        let mut standings = Standings::default();
        let (a, b) = (Key::new("shop", "a"), Key::new("shop", "b"));
        assert_eq!(
            standings.note(&id("x"), noted("a", 1, HELD)),
            std::slice::from_ref(&a)
        );
        assert!(
            standings.note(&id("x"), noted("a", 1, HELD)).is_empty(),
            "nothing new"
        );
        assert_eq!(
            standings.note(&id("x"), noted("a", 2, HELD)),
            std::slice::from_ref(&a)
        );
        assert_eq!(standings.note(&id("x"), noted("b", 1, HELD)), [a, b.clone()]);
        assert!(shown(&standings, "a").is_empty());
        assert_eq!(shown(&standings, "b").len(), 1);
        assert_eq!(standings.note(&id("x"), None), [b]);
        assert!(standings.note(&id("x"), None).is_empty());
        assert!(standings.templates.is_empty() && standings.owners.is_empty());
    }

    #[test]
    fn failures_are_known_before_and_after_the_owner() {
        let mut standings = Standings::default();
        let a = Key::new("shop", "a");
        assert_eq!(standings.note_failing(&id("x"), true), None);
        standings.note(&id("x"), noted("a", 1, Standing::UpToDate));
        assert!(shown(&standings, "a")[0].1.failing);
        assert_eq!(standings.note_failing(&id("x"), false), Some(a.clone()));
        assert_eq!(standings.note_failing(&id("x"), false), None);
        assert!(!shown(&standings, "a")[0].1.failing);
        standings.note_failing(&id("x"), true);
        standings.note(&id("x"), None);
        assert!(standings.failing.is_empty());
    }

    #[test]
    fn what_an_older_generation_was_judged_for_is_stale() {
        let mut standings = Standings::default();
        let a = Key::new("shop", "a");
        standings.note(&id("x"), noted("a", 1, Standing::UpToDate));
        standings.note(&id("y"), noted("a", 2, Standing::UpToDate));
        standings.note(&id("z"), noted("a", 1, HELD));
        let stale: Vec<String> = standings.stale(&a, 2).iter().map(|id| id.name.clone()).collect();
        assert_eq!(stale, ["x", "z"]);
        standings.judge(&a, &id("x"), 2, Some(HELD));
        standings.judge(&a, &id("z"), 2, None);
        standings.judge(&a, &id("other"), 2, Some(HELD));
        assert!(standings.stale(&a, 2).is_empty());
        let held: Vec<bool> = shown(&standings, "a")
            .iter()
            .map(|(_, j)| j.standing == HELD)
            .collect();
        assert_eq!(held, [true, false, true]);
    }
}
