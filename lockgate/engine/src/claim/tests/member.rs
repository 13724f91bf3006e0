//! What one member sees of the template: a Work that is rendered again when its inputs move, as the hub does it.

use std::sync::Arc;

use lockgate_api::{Cluster, OverridePolicy};
use serde_json::{Value, json};

use super::world::World;
use crate::claim::{Claim, Record};
use crate::render::{RenderInput, activated_hash, inputs_digest_with, render};

/// A member that gets everything that is sent anywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    cluster: Cluster,
    overrides: Vec<Arc<OverridePolicy>>,
    /// The digest of what was sent, and what the user sees of it.
    sent: Option<(String, Value)>,
    /// Whether an override has changed since something was sent.
    overridden: bool,
}

impl Member {
    /// Somebody changes the override.
    pub(super) fn override_with(&mut self, value: u8) {
        let policy = json!({
            "metadata": { "name": "label", "namespace": "shop" },
            "spec": { "overriders": { "labelsOverrider": [
                { "operator": "add", "value": { "overridden": value.to_string() } },
            ] } },
        });
        self.overrides = vec![Arc::new(serde_json::from_value(policy).unwrap())];
        self.overridden = true;
    }

    /// What it sees of the template.
    pub(super) fn sees(&self) -> Option<&Value> {
        self.sent.as_ref().map(|(_, content)| content)
    }

    /// Whether an override has changed since something was sent.
    pub(super) fn is_overridden(&self) -> bool {
        self.overridden
    }

    /// Sends what has moved. A binding that nobody owns is frozen.
    pub(super) fn send(&mut self, w: &World) {
        let (Some(template), Some(binding)) = (&w.template, &w.binding) else {
            self.sent = None;
            return;
        };
        if Claim::on_binding(&binding.metadata).is_none() {
            return;
        }
        let input = RenderInput {
            template,
            binding,
            binding_id: "binding",
            work_id: "work",
            cluster: &self.cluster,
            replicas: None,
            keeps: false,
            completions: None,
            reviser: None,
            overrides: &self.overrides,
            conflict_resolution: &binding.spec.conflict_resolution,
        };
        let basis = Record::find(template, Some(binding)).and_then(|record| record.basis);
        let content = activated_hash(template, basis.as_deref());
        self.overridden = false;
        if self
            .sent
            .as_ref()
            .is_some_and(|(digest, _)| *digest == inputs_digest_with(&content, &input))
        {
            return;
        }
        let mut manifest = render(&input).unwrap().manifest;
        for field in ["labels", "annotations"] {
            if let Some(map) = manifest["metadata"][field].as_object_mut() {
                map.retain(|key, _| !key.contains("karmada.io"));
            }
        }
        self.sent = Some((inputs_digest_with(&content, &input), manifest));
    }
}
