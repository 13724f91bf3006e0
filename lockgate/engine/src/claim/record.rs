//! The record of an activation: what of the template was activated, by which policy. It is kept on the binding, in the
//! write that changes the spec that it describes; before there is a binding, on the template.

use lockgate_api::{Binding, keys};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::ContentHashes;
use crate::object;

/// What was activated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The policy's id; empty in a record of a template that only waits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// The policy's generation.
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
    /// The request for activation that this one answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
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
    /// What is recorded of a template, on its binding or else on the template itself.
    pub fn find(template: &Value, binding: Option<&Binding>) -> Option<Self> {
        let text = match binding {
            Some(binding) => binding.metadata.annotation(keys::ACTIVATED),
            None => object::annotation(template, keys::ACTIVATED),
        };
        serde_json::from_str(text?).ok()
    }

    /// The record of a template as it is now, activated by nobody yet.
    pub fn of(template: &Value) -> Self {
        let hashes = ContentHashes::of(template);
        Self {
            uid: object::meta_text(template, "uid").to_owned(),
            generation: object::generation(template),
            metadata: hashes.metadata,
            content: hashes.content,
            request: object::annotation(template, keys::ACTIVATE)
                .filter(|request| !request.is_empty())
                .map(str::to_owned),
            ..Self::default()
        }
    }

    /// The same, activated by a policy.
    pub fn by(mut self, policy: &str, generation: i64) -> Self {
        policy.clone_into(&mut self.policy);
        self.policy_generation = generation;
        self
    }

    /// The same, as it is written to the template itself together with the claim: that write moves a Deployment's generation.
    pub fn on_template(mut self, template: &Value) -> Self {
        if object::text(template, "apiVersion") == "apps/v1" && object::text(template, "kind") == "Deployment" {
            self.generation += 1;
        }
        self
    }

    /// As it is written to the annotation.
    pub fn encode(&self) -> String {
        // A struct of strings and numbers always encodes.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What happened to the template since.
    pub fn compare(&self, template: &Value, hashes: &ContentHashes) -> Change {
        let generation = object::generation(template);
        let content_moved = self.content != hashes.content;
        let generation_moved = self.generation != generation;
        if self.uid != object::meta_text(template, "uid") || self.metadata != hashes.metadata {
            return Change::ByUser;
        }
        match (content_moved, generation_moved, generation) {
            (false, false, _) => Change::None,
            (true, _, 0) | (true, true, _) => Change::ByUser,
            (true, false, _) => Change::ByDefaults,
            (false, true, _) => Change::ByClaim,
        }
    }
}
