//! How far a template's rollout is, as its binding keeps it: the current, the last good and the rejected revision, and what
//! an operator asked for last. With what each Work says of itself, everything follows from it; no status is needed.

mod refusals;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use lockgate_api::{ObjectMeta, keys};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::Run;
use crate::object;

pub use refusals::{Refused, WORDS};

/// The longest reason that is kept, in characters.
const REASON: usize = 1024;

/// How far a rollout is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutRecord {
    /// The number of the current revision. A way back has one of its own.
    pub revision: i64,
    /// What every cluster gets in it.
    pub digest: String,
    /// The last revision that succeeded everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<Good>,
    /// What is not sent until it changes, and what is sent in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
    /// Why nothing more starts, while too many failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breach: Option<String>,
    /// What the hub did not take, by cluster: each has failed until the hub takes it, or something else is to go there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, Refused>,
    /// Why nothing more starts, while an operator wants so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// What an operator asked for last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// When somebody ended the soaks and waits of the current revision; whatever is asked for later, they stay ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted: Option<Timestamp>,
    /// Whether that goes for all of them, those to come too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promoted_full: bool,
    /// When somebody let start again what had failed in the current revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<Timestamp>,
    /// When the current revision began, where somebody asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<Timestamp>,
    /// Whether the strategy went while the revision was on its way: nobody says any more in which order it goes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub let_go: bool,
}

/// A revision that succeeded everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Good {
    /// Its number.
    pub revision: i64,
    /// What every cluster got in it.
    pub digest: String,
}

/// A way back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Back {
    /// The revision that is given up.
    pub from: i64,
    /// What somebody wants that is not sent until it changes.
    pub intent: String,
    /// The revision that is sent in its place; absent: nothing is, and clusters stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Good>,
    /// Whether it goes the usual way and not the reverse: an operator chose the revision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forward: bool,
    /// Whether it goes back with what needs it, and forth with it again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub with_referrer: bool,
    /// When it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Why, for people.
    pub why: String,
}

/// What an operator may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// Nothing more starts.
    Pause,
    /// It goes on.
    Resume,
    /// The present soak or wait is over.
    Promote,
    /// All soaks and waits of this revision are over.
    PromoteFull,
    /// What failed starts again.
    Retry,
    /// Everything goes back to the last good revision.
    Abort,
    /// Everything goes to an earlier revision.
    Undo,
}

impl Verb {
    /// Its name, as the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Promote => "promote",
            Self::PromoteFull => "promote --full",
            Self::Retry => "retry",
            Self::Abort => "abort",
            Self::Undo => "undo",
        }
    }
}

/// What an operator asks for, as an annotation of the template carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Names the request, so that it is answered once.
    pub id: String,
    /// What.
    pub verb: Verb,
    /// The revision to go to, for [`Verb::Undo`]; absent: the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Who.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// A request that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// What was asked for.
    #[serde(flatten)]
    pub request: Request,
    /// When it was seen.
    pub at: Timestamp,
    /// During which revision.
    pub revision: i64,
}

impl Command {
    /// What was asked for, by whom and why, for people.
    pub fn told(&self) -> String {
        let Request { verb, reason, by, .. } = &self.request;
        let mut text = verb.name().to_owned();
        if !by.is_empty() {
            text.push_str(" by ");
            text.push_str(by);
        }
        if !reason.is_empty() {
            text.push_str(": ");
            text.extend(reason.chars().take(REASON));
        }
        text
    }
}

impl RolloutRecord {
    /// What a binding says. What cannot be read is as good as absent: everything that it could hold back stays held by the
    /// Works themselves.
    pub fn of(binding: &ObjectMeta) -> Option<Self> {
        serde_json::from_str(binding.annotation(keys::ROLLOUT)?).ok()
    }

    /// Makes a binding say it.
    pub fn put(&self, binding: &mut ObjectMeta) {
        // Strings and numbers always encode.
        let text = serde_json::to_string(self).unwrap_or_default();
        binding.annotations.insert(keys::ROLLOUT.to_owned(), text);
    }

    /// The number of the last revision that succeeded everywhere; 0: none.
    pub fn good_revision(&self) -> i64 {
        self.good.as_ref().map_or(0, |good| good.revision)
    }

    /// Whether the current revision is not on its way: it has succeeded everywhere, or nobody asks for an order any more.
    pub fn is_settled(&self) -> bool {
        let good = self.good.as_ref();
        self.let_go || good.is_some_and(|good| good.revision == self.revision && good.digest == self.digest)
    }

    /// The strategy is gone: everything goes, and nothing is left that would hold back what comes later. The number stays, for
    /// revisions are counted once. Whether anything changes.
    pub fn let_go(&mut self) -> bool {
        if self.is_settled() && self.paused.is_none() && self.breach.is_none() && self.refused.is_empty() {
            return false;
        }
        (self.paused, self.breach, self.let_go) = (None, None, true);
        self.refused.clear();
        true
    }

    /// What is sent in the place of what somebody wants, if that is not to be sent.
    pub fn back(&self, intent: &str) -> Option<&Back> {
        self.back.as_ref().filter(|back| back.intent == intent)
    }

    /// A request on the template that was not seen before.
    pub fn unseen(&self, template: &Value) -> Option<Request> {
        let text = object::annotation(template, keys::ROLLOUT_REQUEST)?;
        let request: Request = serde_json::from_str(text).ok()?;
        let seen = self.command.as_ref().map(|command| command.request.id.as_str());
        (seen != Some(request.id.as_str())).then_some(request)
    }

    /// Takes a request in. Abort and undo say where to go: to the last good revision, or to one of those that are kept,
    /// which the caller has found.
    pub fn obey(&mut self, request: Request, intent: &str, chosen: Option<Good>, now: Timestamp) {
        // What was told since the last command is later than that, and so is this one.
        let last = self.command.as_ref().map(|command| command.at);
        let after = last.and_then(|at| at.checked_add(SignedDuration::from_micros(2)).ok());
        let why = Command {
            request: request.clone(),
            at: after.map_or(now, |after| after.max(now)),
            revision: self.revision,
        };
        match request.verb {
            Verb::Pause => self.paused = Some(why.told()),
            // What failed may start again, once everything may.
            Verb::Retry => {}
            _ => self.paused = None,
        }
        match request.verb {
            Verb::Promote => self.promoted = Some(why.at),
            Verb::PromoteFull => self.promoted_full = true,
            Verb::Retry => self.retried = Some(why.at),
            Verb::Abort => self.turn_back(intent, &why.told(), why.at),
            Verb::Undo => {
                if let Some(chosen) = chosen {
                    self.back = Some(Back {
                        from: self.revision,
                        intent: intent.to_owned(),
                        to: Some(chosen),
                        forward: true,
                        with_referrer: false,
                        at: Some(why.at),
                        why: why.told(),
                    });
                }
            }
            _ => {}
        }
        self.command = Some(why);
    }

    /// Begins another revision if clusters are to get something else than before; whether it does. What was everywhere before
    /// anybody asked for an order has succeeded.
    pub fn begin(&mut self, digest: &str, is_everywhere: bool) -> bool {
        if self.revision > 0 && self.digest == digest && !self.let_go {
            return false;
        }
        self.let_go = false;
        (self.promoted, self.promoted_full, self.retried) = (None, false, None);
        self.begun = None;
        let first = self.revision == 0;
        self.revision += 1;
        digest.clone_into(&mut self.digest);
        if first && is_everywhere {
            self.good = Some(self.current());
        }
        true
    }

    /// The current revision.
    pub fn current(&self) -> Good {
        Good {
            revision: self.revision,
            digest: self.digest.clone(),
        }
    }

    /// Takes in what a decision means for the record: a breach, a way back, a success. One that belongs to the change of
    /// somebody else has not succeeded before that has.
    pub fn conclude(&mut self, run: &Run<'_>, intent: &str, belongs: bool, now: Timestamp) {
        self.breach.clone_from(&run.breach);
        if run.rolls_back {
            self.turn_back(intent, run.breach.as_deref().unwrap_or_default(), now);
        }
        if run.is_complete() && !belongs {
            self.good = Some(self.current());
        }
    }

    /// Gives the current revision up for the last good one. One that is a way back itself is not given up, so that nothing
    /// goes back and forth, unless an operator chose it; and one that succeeded is no longer on its way.
    pub fn turn_back(&mut self, intent: &str, why: &str, now: Timestamp) {
        if self.back(intent).is_some_and(|back| !back.forward) || self.is_settled() {
            return;
        }
        self.back = Some(Back {
            from: self.revision,
            intent: intent.to_owned(),
            to: self.good.clone(),
            forward: false,
            with_referrer: false,
            at: Some(now),
            why: why.to_owned(),
        });
    }

    /// Goes with what needs it: back, where a change that both were part of is given up, and forth again, where it is not
    /// any more. What began to change later is a change of its own. Whether it turns.
    pub fn turn_with(&mut self, intent: &str, given_up: Option<&GivenUp>, now: Timestamp) -> bool {
        match (self.back(intent), given_up) {
            (Some(back), None) if back.with_referrer => self.back = None,
            (None, Some(given_up)) if !self.is_settled() && self.begun <= given_up.at => {
                self.turn_back(intent, &given_up.why, now);
                if let Some(back) = &mut self.back {
                    back.with_referrer = true;
                }
            }
            _ => return false,
        }
        true
    }

    /// What those who are needed by this must know of a way back.
    pub fn given_up(&self, who: &str) -> Option<GivenUp> {
        let back = self.back.as_ref().filter(|back| !back.forward)?;
        Some(GivenUp {
            at: back.at,
            why: format!("{who} was given up: {}", back.why),
        })
    }
}

/// That a change was given up of something that needs this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// When.
    pub at: Option<Timestamp>,
    /// Why, for people.
    pub why: String,
}

#[cfg(test)]
mod tests;
