//! The record of an activation: what of the template was activated, by which policy. It is kept on the binding, in the
//! write that changes the spec that it describes; before there is a binding, on the template, in the write of the claim.

use lockgate_api::{Binding, PropagationPolicy, keys};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::ContentHashes;
use crate::object::{self, TemplateId};

/// What was activated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The policy's id; empty in a record of a template that only waits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// The policy's generation; 0 if nobody knows it.
    #[serde(skip_serializing_if = "is_zero")]
    pub policy_generation: i64,
    /// The template's uid.
    pub uid: String,
    /// The template's generation after our own claim; 0 for kinds without one.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// The hash of the template's user metadata.
    pub metadata: String,
    /// The hash of the rest of its user content.
    pub content: String,
    /// The hash of the content that was activated, if defaults have moved it since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// The request for activation that this one answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whether the gate `StaticPolicy` was on when this was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub static_policy: bool,
    /// The policy, with its generation, that would have acted when the gate was switched, and was passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<String>,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// What happened to a template since it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is no record.
    Unknown,
    /// Nothing.
    None,
    /// The content moved at the same generation: a default was added.
    ByDefaults,
    /// The generation moved and nothing else: our own claim does that to a Deployment.
    ByClaim,
    /// The user changed it.
    ByUser,
}

impl Record {
    /// What is recorded of a template, on its binding or else on the template itself. What is not a whole record is none.
    ///
    /// A record on a template that names another uid came with a copy of its manifest: see [`Record::is_of`].
    pub fn find(template: &Value, binding: Option<&Binding>) -> Option<Self> {
        let text = match binding {
            Some(binding) => binding.metadata.annotation(keys::ACTIVATED),
            None => object::annotation(template, keys::ACTIVATED),
        };
        let record: Self = serde_json::from_str(text?).ok()?;
        let whole = !record.uid.is_empty() && !record.metadata.is_empty() && !record.content.is_empty();
        whole.then_some(record)
    }

    /// The record of a template as it is now, activated by nobody yet.
    pub fn of(template: &Value) -> Self {
        let hashes = ContentHashes::of(template);
        Self {
            uid: object::meta_text(template, "uid").to_owned(),
            generation: object::counted_generation(template),
            metadata: hashes.metadata,
            content: hashes.content,
            request: request(template).map(str::to_owned),
            ..Self::default()
        }
    }

    /// The same, activated by a policy.
    pub fn by(mut self, policy: &str, generation: i64) -> Self {
        policy.clone_into(&mut self.policy);
        self.policy_generation = generation;
        self
    }

    /// The same activation, of the template as it is now: for changes that are not the user's.
    pub(super) fn following(&self, template: &Value) -> Self {
        let mut record = Self::of(template).by(&self.policy, self.policy_generation);
        record.request.clone_from(&self.request);
        record.static_policy = self.static_policy;
        record.passed.clone_from(&self.passed);
        let basis = self.basis.as_ref().unwrap_or(&self.content);
        record.basis = (*basis != record.content).then(|| basis.clone());
        record
    }

    /// The same, as it is written to the template itself together with the claim, where that write moves the generation.
    pub(super) fn on_template(mut self, before: &Value, marked: &Value) -> Self {
        let moves = match MovedBy::of(before) {
            MovedBy::Content => false,
            MovedBy::Labels => object::labels(before) != object::labels(marked),
            // The record is one.
            MovedBy::Annotations => true,
        };
        if moves {
            self.generation += 1;
        }
        self
    }

    /// Whether it speaks of this template, and not of one that this is a copy of.
    pub fn is_of(&self, template: &Value) -> bool {
        self.uid == object::meta_text(template, "uid")
    }

    /// Whether this policy, as it is now, was activated.
    pub(super) fn is_by(&self, policy: &PropagationPolicy) -> bool {
        self.policy == policy.permanent_id() && self.policy_generation == policy.metadata.generation
    }

    /// Whether the template's generation is another one now.
    pub(super) fn generation_moved(&self, template: &Value) -> bool {
        self.generation != object::counted_generation(template)
    }

    /// As it is written to the annotation.
    pub fn encode(&self) -> String {
        // A struct of strings and numbers always encodes.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What happened to the template since.
    pub fn compare(&self, template: &Value, hashes: &ContentHashes) -> Change {
        if !self.is_of(template) || self.metadata != hashes.metadata {
            return Change::ByUser;
        }
        let content_moved = self.content != hashes.content;
        let without_generation = object::counted_generation(template) == 0;
        match (content_moved, self.generation_moved(template)) {
            (false, false) => Change::None,
            (false, true) => Change::ByClaim,
            (true, false) if !without_generation => Change::ByDefaults,
            (true, _) => Change::ByUser,
        }
    }
}

/// What moves a kind's generation besides its content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MovedBy {
    /// Nothing, as far as we know.
    Content,
    /// Labels.
    Labels,
    /// Annotations.
    Annotations,
}

impl MovedBy {
    pub(super) fn of(template: &Value) -> Self {
        let id = TemplateId::of(template);
        match (id.group(), id.kind.as_str()) {
            ("apps", "Deployment") => Self::Annotations,
            ("discovery.k8s.io", "EndpointSlice") => Self::Labels,
            _ => Self::Content,
        }
    }
}

/// The activation that somebody asked for.
pub(super) fn request(template: &Value) -> Option<&str> {
    object::annotation(template, keys::ACTIVATE).filter(|request| !request.is_empty())
}

/// What is known of a template's past.
#[derive(Debug)]
pub(super) struct Past {
    /// What was activated; without a binding, what was about to be or waits.
    pub(super) record: Option<Record>,
    /// Whether its annotations came with the manifest of another template.
    pub(super) copied: bool,
    /// What happened to the template since.
    pub(super) change: Change,
    /// Whether somebody asked for an activation that has not happened yet.
    pub(super) asked: bool,
}

impl Past {
    pub(super) fn of(template: &Value, binding: Option<&Binding>) -> Self {
        let found = Record::find(template, binding);
        let asked = request(template).is_some_and(|request| {
            found
                .as_ref()
                .is_none_or(|record| record.request.as_deref() != Some(request))
        });
        let copied = binding.is_none() && found.as_ref().is_some_and(|record| !record.is_of(template));
        let record = found.filter(|_| !copied);
        let change = record.as_ref().map_or(Change::Unknown, |record| {
            record.compare(template, &ContentHashes::of(template))
        });
        Self {
            record,
            copied,
            change,
            asked,
        }
    }

    /// Whether the user changed the template since it was recorded.
    pub(super) fn changed(&self) -> bool {
        self.change == Change::ByUser
    }
}

#[cfg(test)]
mod tests;
