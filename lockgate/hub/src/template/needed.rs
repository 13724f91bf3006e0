//! Dependencies in a template's pass: what it needs, written to its binding; and whom it is needed by, which places it beside
//! its own policy, or alone.

use std::collections::BTreeSet;

use lockgate_api::{Binding, Work, names};
use lockgate_engine::dependencies::{self, Need, RequireInput, Required, is_attached, require};
use lockgate_engine::{object, observe};

use super::works::placed;
use super::{PassError, Walk, binding_id, binding_key, is_frozen, owning, template_of};
use crate::cache::{Cached, Key};
use crate::discovery::discover;
use crate::events::EventTarget;
use crate::link::LinkError;
use crate::state::{self, State};

impl Walk<'_> {
    /// The binding, unless it is there for the sake of others alone: whoever claims the template finds it new.
    pub(super) fn owned(&self) -> Option<&Binding> {
        self.binding.as_deref().filter(|binding| !is_attached(binding))
    }

    /// Whom the template is needed by.
    pub(super) async fn required(&self, before: Option<&Binding>) -> Result<Required, PassError> {
        let own = binding_key(self.id);
        let referring = self.state.needs.referrers(self.id, &self.template);
        let mut keys = referring.clone();
        let told = before.map_or(&[][..], |binding| &binding.spec.required_by);
        keys.extend(
            told.iter()
                .map(|snapshot| Key::new(&snapshot.namespace, &snapshot.name)),
        );
        let kept = keys.remove(&own) && !referring.contains(&own);
        if keys.is_empty() && !kept {
            return Ok(Required::default());
        }
        let mut needs = Vec::new();
        let mut unknown = BTreeSet::new();
        for key in &keys {
            match self.state.binding(key) {
                Some(binding) if !binding.metadata.deleting() => {
                    needs.push(self.need(&binding, referring.contains(key)));
                }
                // Its copies go first.
                Some(_) => drop(unknown.insert((key.namespace.to_string(), key.name.to_string()))),
                None if is_gone(self.state, key).await? => {}
                None => drop(unknown.insert((key.namespace.to_string(), key.name.to_string()))),
            }
        }
        let alone = before.is_none() && self.owned().is_none();
        let copies = if alone { self.copies() } else { BTreeSet::new() };
        Ok(require(&RequireInput {
            before,
            own: (&own.namespace, &own.name),
            needs: &needs,
            unknown: &unknown,
            copies: &copies,
        }))
    }

    /// How a binding needs this template.
    fn need(&self, binding: &Binding, refers: bool) -> Need {
        let id = template_of(binding);
        let at = placed(binding);
        let works = owning::works_of(self.state, &id);
        let lingers = works.iter().filter_map(|(cached, head)| {
            let cluster = names::cluster_of(&cached.key.namespace)?;
            // Where nothing is to follow any more, nothing waits.
            if !binding.spec.propagate_deps || (refers && at.contains(cluster)) {
                return None;
            }
            let newest = at.contains(cluster) && observe::is_applied(&head.work) && !self.is_named_by(cached);
            let sent = head.work.status.last_applied.is_some();
            (sent && !newest).then(|| cluster.to_owned())
        });
        Need {
            namespace: binding.metadata.namespace.clone(),
            name: binding.metadata.name.clone(),
            id: binding_id(binding, &id).to_owned(),
            clusters: match refers {
                true => at.iter().map(|cluster| (*cluster).to_owned()).collect(),
                false => BTreeSet::new(),
            },
            lingers: lingers.collect(),
            overwrite: binding.spec.conflict_resolution == "Overwrite",
            preserve: binding.spec.preserve_resources_on_deletion == Some(true),
        }
    }

    /// Whether what a Work holds names this template.
    fn is_named_by(&self, cached: &Cached) -> bool {
        let Some(work) = state::parse::<Work>(cached) else {
            return true;
        };
        let Some(manifest) = work.spec.workload.manifests.first() else {
            return false;
        };
        // Nothing is locked while a script runs.
        let interpreter = self.state.interpreters.read().of_object(manifest);
        let told = interpreter.and_then(|interpreter| interpreter.dependencies(manifest));
        let needed = match told {
            None => dependencies::dependencies(manifest),
            Some(Ok(needed)) => needed,
            Some(Err(_)) => return true,
        };
        needed.iter().any(|needed| needed.means(&self.template))
    }

    /// The clusters that have copies of this template.
    fn copies(&self) -> BTreeSet<String> {
        let works = owning::works_of(self.state, self.id);
        works
            .iter()
            .filter(|(_, head)| !head.work.metadata.deleting())
            .filter_map(|(cached, _)| names::cluster_of(&cached.key.namespace))
            .map(str::to_owned)
            .collect()
    }

    /// Nobody's policy acts on the template. It goes where others need it, and stays as it is elsewhere.
    pub(super) async fn attend(&mut self) -> Result<(), PassError> {
        let before = self.binding.clone();
        let required = self.required(before.as_deref()).await?;
        let concerned = before
            .as_ref()
            .is_some_and(|binding| is_attached(binding) || !binding.spec.required_by.is_empty());
        if required.by.is_empty() && !concerned {
            return self.hold_frozen().await;
        }
        let mut binding = before.as_deref().cloned().unwrap_or_default();
        self.identify(&mut binding);
        let uid = object::meta_text(&self.template, "uid");
        if binding.spec.resource.uid != uid {
            binding.spec.resource = lockgate_engine::claim::reference(&self.template);
        }
        self.follow(&required, &mut binding);
        if before.as_deref() != Some(&binding) {
            self.write_binding(binding).await?;
            self.tell_disagreement(&required);
        }
        self.send().await?;
        self.hold_frozen().await
    }

    /// Has a binding go where it is needed.
    pub(super) fn follow(&self, required: &Required, binding: &mut Binding) {
        required.put(binding);
        let mut verdicts = self.state.verdicts.lock();
        let disagreement = required.disagreement.as_ref();
        verdicts.entry(self.id.clone()).or_default().disagreement = disagreement
            .filter(|_| is_attached(binding))
            .map(|disagreement| disagreement.message.clone());
    }

    fn tell_disagreement(&self, required: &Required) {
        if let (Some(binding), Some(disagreement)) = (&self.binding, &required.disagreement)
            && is_attached(binding)
        {
            let resource = self.state.bindings(&binding.metadata.namespace).1;
            let target = EventTarget {
                api_version: resource.api_version(),
                kind: resource.kind,
                namespace: binding.metadata.namespace.clone(),
                name: binding.metadata.name.clone(),
                uid: binding.metadata.uid.clone(),
            };
            let message = &disagreement.message;
            self.state
                .events
                .warn(&target, "DependencyPolicyConflict", message);
        }
    }
}

/// Whether a binding moves although nobody's policy acts on it: others need it.
pub(super) fn is_moved_by_others(binding: &Binding) -> bool {
    is_frozen(binding) && (is_attached(binding) || !binding.spec.required_by.is_empty())
}

/// Whether the template of a binding that is not there is gone, by the server's own word. Its name tells the kind.
async fn is_gone(state: &State, binding: &Key) -> Result<bool, PassError> {
    let failed = |error| PassError::Link {
        what: "failed to ask whether what needs it is gone",
        error,
    };
    let discovery = discover(&state.link).await.map_err(failed)?;
    if !discovery.unknown().is_empty() {
        return Ok(false);
    }
    let mut asked = false;
    for resource in discovery.preferred().filter(|resource| resource.namespaced) {
        let suffix = format!("-{}", resource.kind.to_lowercase());
        let Some(name) = binding.name.strip_suffix(&*suffix) else {
            continue;
        };
        asked = true;
        match state.link.get(&resource.object(&binding.namespace, name)).await {
            Ok(body) => {
                let live: serde_json::Value =
                    serde_json::from_slice(&body).map_err(|e| PassError::NotYet(e.to_string()))?;
                if !object::deleting(&live) {
                    return Ok(false);
                }
            }
            Err(LinkError::NotFound) => {}
            Err(LinkError::NotServed) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(asked)
}
