//! The pass over a template that is gone, or going: its Works are deleted, then its binding. Only this, a released removal
//! and an unjoin ever delete anything from members, and only this one is asked of the server itself: a list that came back
//! empty, a kind that is not served or a definition that is being deleted is no evidence.

use std::sync::Arc;

use lockgate_api::{Binding, ObjectMeta, Work, keys};
use lockgate_engine::TemplateId;
use lockgate_engine::object;
use serde_json::Value;

use super::keepsakes;
use super::owning;
use super::revisions;
use super::writes::{delete, delete_work, encode_own, replace};
use super::{PassError, binding_key, is_for, is_namespace, scope_keys};
use crate::cache::Key;
use crate::events::EventTarget;
use crate::kinds::Kind;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::state::State;
use crate::vanished;

/// Whether a template is there, by the server's own word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is there, with this uid.
    There { uid: String },
    /// It is gone, or its deletion was asked for. Of a Namespace: it is gone, or nothing is left in it.
    Gone,
    /// A Namespace whose deletion was asked for, and in which something is left.
    Going,
    /// Nobody can tell.
    Unknown,
}

/// Asks the server whether a template is there. `made` is what was made from it last: what its kind's definition is younger than
/// went with the definition before, and nobody asked for that.
pub(crate) async fn presence(
    state: &State,
    id: &TemplateId,
    made: &ObjectMeta,
) -> Result<Presence, PassError> {
    // An override may have given a copy another version than its template has.
    let Some(kind) = state.kinds.served_as_any(id) else {
        return Ok(Presence::Unknown);
    };
    if state.kinds.is_going(&kind.resource.api_version(), &id.kind) {
        return Ok(Presence::Unknown);
    }
    match state
        .link
        .get(&kind.resource.object(&id.namespace, &id.name))
        .await
    {
        Ok(body) => {
            let live: Value = serde_json::from_slice(&body).map_err(|e| PassError::NotYet(e.to_string()))?;
            if object::deleting(&live) {
                if went_with_definition(state, &kind, made).await? {
                    return Ok(Presence::Unknown);
                }
                return Ok(match is_namespace(id) && object::has_content(&live) {
                    // What is in it may be there to stay, and would go from members with it.
                    true => Presence::Going,
                    false => Presence::Gone,
                });
            }
            let _ = kind.cache.learn_read(&body);
            let uid = object::meta_text(&live, "uid").to_owned();
            Ok(Presence::There { uid })
        }
        Err(LinkError::NotFound) => Ok(match went_with_definition(state, &kind, made).await? {
            true => Presence::Unknown,
            false => Presence::Gone,
        }),
        Err(LinkError::NotServed) => Ok(Presence::Unknown),
        Err(error) => Err(PassError::Link {
            what: "failed to ask for the template",
            error,
        }),
    }
}

/// Whether what is gone went with the definition of its kind. Those that every server has go never.
async fn went_with_definition(state: &State, kind: &Kind, made: &ObjectMeta) -> Result<bool, PassError> {
    let resource = &kind.resource;
    // That there is no definition any more says more than that there was none.
    if !kind.defined && !state.kinds.is_defined(&resource.api_version(), &resource.kind) {
        return Ok(false);
    }
    let name = format!("{}.{}", resource.plural, resource.group);
    let definition = vanished::read(state, &Resource::crds().object("", &name)).await?;
    Ok(vanished::went_with(definition.as_ref(), made))
}

/// Cleans up after a template that is not in memory any more, or that is being deleted.
pub(super) async fn gone(state: &State, id: &TemplateId, resource: &Resource) -> Result<(), PassError> {
    let (cache, binding_resource) = state.bindings(&id.namespace);
    let key = binding_key(id);
    let binding = state.binding(&key).filter(|binding| is_for(binding, id));
    let works = works_of(state, id);
    if binding.is_none() && works.is_empty() {
        keepsakes::forget_binding(state, id).await?;
        forget(state, id);
        return Ok(());
    }
    let made = match (&binding, works.first()) {
        (Some(binding), _) => &binding.metadata,
        (None, Some(work)) => &work.metadata,
        (None, None) => return Ok(()),
    };
    match presence(state, id, made).await? {
        Presence::Gone => {}
        Presence::There { .. } => return Err(PassError::Again),
        // What becomes of it brings us here again.
        Presence::Going => return Ok(()),
        Presence::Unknown => {
            tracing::warn!(template = %id, resource = %resource.plural, "it went with its definition, or is not served: nothing is removed");
            if let Some(binding) = &binding {
                tell_unknown(state, id, binding, &binding_resource);
            }
            return Ok(());
        }
    }
    keepsakes::forget_binding(state, id).await?;
    if let Some(binding) = &binding {
        keepsakes::forget(state, &binding.metadata.uid).await?;
    }
    if binding
        .as_ref()
        .is_some_and(|binding| !binding.metadata.deleting())
    {
        delete(
            state,
            cache,
            &binding_resource,
            &key,
            "failed to delete the binding",
        )
        .await?;
    }
    for work in &works {
        let key = Key::new(&work.metadata.namespace, &work.metadata.name);
        if !work.metadata.deleting() {
            delete_work(state, &key).await?;
        } else if is_namespace(id) {
            // Somebody deleted it before, and the member waited for this.
            state.members.wake(&key);
        }
    }
    if !works.is_empty() {
        // The last Work that goes brings us here again.
        return Ok(());
    }
    if let Some(mut going) = state.binding(&key).map(Arc::unwrap_or_clone) {
        if going.metadata.annotation(keys::ROLLOUT).is_some() {
            revisions::forget(state, id, super::binding_id(&going, id)).await?;
        }
        let finalizer = scope_keys(id).1;
        going
            .metadata
            .finalizers
            .retain(|f| f != finalizer && f != keys::DEPENDENCIES_FINALIZER);
        let body = encode_own(&binding_resource, &going.metadata, &going.spec);
        match replace(
            state,
            cache,
            &binding_resource,
            &key,
            body,
            "failed to let the binding go",
        )
        .await
        {
            Ok(_) => cache.forget(&key, &going.metadata.uid),
            Err(PassError::Again) => {}
            Err(error) => return Err(error),
        }
    }
    forget(state, id);
    Ok(())
}

/// Keeps nothing in mind of a template that is gone.
fn forget(state: &State, id: &TemplateId) {
    state.verdicts.lock().remove(id);
    state.unmeasured.lock().remove(id);
    state.status_disputes.lock().remove(id);
    owning::stop_waiting(state, id);
}

/// Says that nobody asked for what became of a template, and what would end it.
fn tell_unknown(state: &State, id: &TemplateId, binding: &Binding, resource: &Resource) {
    let target = EventTarget {
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        namespace: binding.metadata.namespace.clone(),
        name: binding.metadata.name.clone(),
        uid: binding.metadata.uid.clone(),
    };
    let message = format!(
        "{id} went with the definition of its kind, which somebody deleted: nothing is removed from members. Create it again to go on; \
         to remove it everywhere, create it and delete it"
    );
    state.events.warn(&target, "DefinitionDeleted", &message);
}

/// The Works that were made from a template, whatever became of its binding.
fn works_of(state: &State, id: &TemplateId) -> Vec<Work> {
    let works = owning::works_of(state, id).into_iter();
    works.map(|(_, head)| head.work).collect()
}
