//! Overrides and rollout policies that are gone. Whoever deletes one wants it out of force; but all of them go with their
//! definition, and then what they kept from members would reach every one of them although nobody asked for that. So one that
//! is gone stays in force until the server says that it is gone and its definition is not.
//!
//! What went with its definition is in force as long as this process lives: that is the time to apply it again.

use std::sync::Arc;

use lockgate_api::ObjectMeta;
use serde_json::Value;

use crate::cache::Key;
use crate::events::EventTarget;
use crate::intake;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::state::State;
use crate::template::PassError;

/// What is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An OverridePolicy, or a ClusterOverridePolicy.
    Override,
    /// A RolloutPolicy, or a ClusterRolloutPolicy.
    Rollout,
}

impl Kind {
    fn resource(self, namespace: &str) -> Resource {
        match (self, namespace.is_empty()) {
            (Self::Override, true) => Resource::cluster_override_policies(),
            (Self::Override, false) => Resource::override_policies(),
            (Self::Rollout, true) => Resource::cluster_rollout_policies(),
            (Self::Rollout, false) => Resource::rollout_policies(),
        }
    }

    /// The metadata of the one that is in force.
    fn in_force(self, state: &State, key: &Key) -> Option<ObjectMeta> {
        let (namespace, name) = (&*key.namespace, &*key.name);
        match self {
            Self::Override => {
                let policy = state.overrides.read().get(namespace, name)?;
                Some(policy.metadata.clone())
            }
            Self::Rollout => {
                let policy = state.rollouts.read().get(namespace, name).cloned()?;
                Some(policy.metadata.clone())
            }
        }
    }

    /// Takes it out of force.
    fn drop(self, state: &State, key: &Key) {
        let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
        match self {
            Self::Override => {
                let policy = state.overrides.read().get(&namespace, &name);
                state.overrides.write().put((namespace, name), None);
                intake::wake_overridden(state, policy.into_iter());
            }
            Self::Rollout => {
                let policy: Option<Arc<_>> = state.rollouts.read().get(&namespace, &name).cloned();
                drop(state.rollouts.write().remove(&namespace, &name));
                intake::wake_held(state, policy.into_iter());
            }
        }
    }
}

/// Finds out whether something that is gone was deleted by somebody, and takes it out of force if so.
pub(crate) async fn pass(state: &State, kind: Kind, key: &Key) -> Result<(), PassError> {
    let Some(metadata) = kind.in_force(state, key) else {
        return Ok(());
    };
    let resource = kind.resource(&key.namespace);
    let definition = format!("{}.{}", resource.plural, resource.group);
    let definition = read(state, &Resource::crds().object("", &definition)).await?;
    if went_with(definition.as_ref(), &metadata) {
        tracing::warn!(object = %key, kind = resource.kind, "it went with its definition: it stays in force");
        let target = EventTarget {
            api_version: resource.api_version(),
            kind: resource.kind,
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            uid: metadata.uid,
        };
        let message = "it went with its definition, which somebody deleted: it stays in force until the controller is started \
                       again. Apply it again to keep it; to be rid of it, apply it and delete it";
        state.events.warn(&target, "DefinitionDeleted", message);
        return Ok(());
    }
    match read(state, &resource.object(&key.namespace, &key.name)).await? {
        // Another one came in its place, which is told by itself.
        Some(_) => {}
        None => kind.drop(state, key),
    }
    Ok(())
}

/// Whether an object that is gone went with its definition: that one is gone or going, or was made after the object.
pub(crate) fn went_with(definition: Option<&Value>, object: &ObjectMeta) -> bool {
    let Some(definition) = definition else {
        return true;
    };
    let metadata = &definition["metadata"];
    // Times of one server, all in the same form.
    let made = metadata["creationTimestamp"].as_str();
    !metadata["deletionTimestamp"].is_null() || made > object.creation_timestamp.as_deref()
}

/// An object by the server's own word; none where it is not there.
pub(crate) async fn read(state: &State, path: &str) -> Result<Option<Value>, PassError> {
    let what = "failed to ask for what is gone";
    match state.link.get(path).await {
        Ok(body) => serde_json::from_slice(&body)
            .map(Some)
            .map_err(|error| PassError::NotYet(error.to_string())),
        Err(LinkError::NotFound) => Ok(None),
        Err(error) => Err(PassError::Link { what, error }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_went_with_its_definition() {
        let object = ObjectMeta {
            creation_timestamp: Some("2026-11-15T08:59:21Z".to_owned()),
            ..ObjectMeta::default()
        };
        let definition = |made: &str, deleted: Value| {
            Some(json!({"metadata": {"creationTimestamp": made, "deletionTimestamp": deleted}}))
        };
        let table = [
            (None, true),
            (definition("2026-11-15T08:00:00Z", Value::Null), false),
            (definition("2026-11-15T08:59:21Z", Value::Null), false),
            (
                definition("2026-11-15T08:00:00Z", json!("2026-11-16T00:00:00Z")),
                true,
            ),
            // It is there again.
            (definition("2026-11-16T00:00:00Z", Value::Null), true),
        ];
        for (definition, expected) in table {
            assert_eq!(
                went_with(definition.as_ref(), &object),
                expected,
                "{definition:?}"
            );
        }
    }
}
