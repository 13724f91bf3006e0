//! What a template says of itself, read by scripts where there are some: its replicas, its parts, and what it needs.

use lockgate_api::{Binding, keys};
use lockgate_engine::dependencies::{self, Dependency};
use serde_json::Value;

use super::{PassError, Walk};
use crate::events::EventTarget;

impl Walk<'_> {
    /// Has a binding say how many replicas its template asks for, and what it needs. What a script does not tell stays as it
    /// was; a template of which nothing was ever told waits. Answers what is wrong.
    pub(super) fn interpret(
        &self,
        before: Option<&Binding>,
        binding: &mut Binding,
        sent: &Value,
    ) -> Result<Option<String>, PassError> {
        let replicas = self
            .put_replicas(before, binding)
            .and_then(|()| self.put_components(binding))
            .err();
        let needed = self.put_dependencies(binding, sent).err();
        let wrong: Vec<String> = [&replicas, &needed]
            .into_iter()
            .flatten()
            .map(|(_, message)| message.clone())
            .collect();
        if wrong.is_empty() {
            return Ok(None);
        }
        let message = wrong.join("; ");
        let told = self
            .state
            .verdicts
            .lock()
            .get(self.id)
            .and_then(|verdict| verdict.uninterpreted.clone());
        if told.as_ref() != Some(&message) {
            let target = EventTarget::of_value(&self.template);
            for (reason, message) in [&replicas, &needed].into_iter().flatten() {
                self.state.events.warn(&target, reason, message);
            }
        }
        if replicas.is_some() && before.is_none_or(|before| before.spec.placement.is_none()) {
            // Nothing is placed before it is known how much of it there is.
            self.state
                .verdicts
                .lock()
                .entry(self.id.clone())
                .or_default()
                .uninterpreted = Some(message.clone());
            return Err(PassError::NotYet(message));
        }
        Ok(Some(message))
    }

    fn put_replicas(
        &self,
        before: Option<&Binding>,
        binding: &mut Binding,
    ) -> Result<(), (&'static str, String)> {
        let told = self
            .interpreter
            .as_ref()
            .and_then(|interpreter| interpreter.replicas(&self.template));
        match told {
            None => Ok(()),
            Some(Ok(workload)) => {
                binding.spec.replicas = workload.replicas;
                binding.spec.replica_requirements = workload.requirements;
                Ok(())
            }
            Some(Err(error)) => {
                if let Some(before) = before {
                    binding.spec.replicas = before.spec.replicas;
                    binding
                        .spec
                        .replica_requirements
                        .clone_from(&before.spec.replica_requirements);
                }
                Err(("GetReplicasFailed", error.to_string()))
            }
        }
    }

    /// Has a binding say which parts of its template have replicas of their own. Without the gate nobody asks.
    fn put_components(&self, binding: &mut Binding) -> Result<(), (&'static str, String)> {
        if !self.state.gates.multiple_pod_templates {
            return Ok(());
        }
        let told = self
            .interpreter
            .as_ref()
            .and_then(|interpreter| interpreter.components(&self.template));
        binding.spec.components = match told {
            None => Vec::new(),
            Some(Ok(components)) => components,
            Some(Err(error)) => return Err(("GetComponentsFailed", error.to_string())),
        };
        Ok(())
    }

    /// Has a binding say what is needed by what is sent: the template, or what is sent in its place.
    fn put_dependencies(&self, binding: &mut Binding, sent: &Value) -> Result<(), (&'static str, String)> {
        let annotations = &mut binding.metadata.annotations;
        if !binding.spec.propagate_deps || self.id.namespace.is_empty() {
            annotations.remove(keys::DEPENDENCIES);
            return Ok(());
        }
        if !self.state.gates.propagate_deps {
            // What follows already is not taken away by a switch.
            return Ok(());
        }
        let needed = self
            .dependencies(sent)
            .map_err(|why| ("GetDependenciesFailed", why))?;
        annotations.insert(keys::DEPENDENCIES.to_owned(), dependencies::encode(&needed));
        Ok(())
    }

    fn dependencies(&self, sent: &Value) -> Result<Vec<Dependency>, String> {
        let told = self
            .interpreter
            .as_ref()
            .and_then(|interpreter| interpreter.dependencies(sent));
        // What a script answers fits already.
        if let Some(told) = told {
            return told.map_err(|error| error.to_string());
        }
        let needed = dependencies::dependencies(sent);
        match dependencies::too_many(&needed) {
            None => Ok(needed),
            Some(why) => Err(format!(
                "the template refers to {why}: those that followed it before still do"
            )),
        }
    }
}
