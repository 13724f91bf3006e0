//! What somebody deleted and is to be made again as it was: it is kept from before it goes until it is there again, so that
//! it is not lost with the process that was to make it.

use std::collections::{BTreeSet, HashMap};

use lockgate_api::{Binding, Work, keys};
use lockgate_engine::TemplateId;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use super::{PassError, envelope};
use crate::cache::Key;
use crate::link::{DeleteOptions, LinkError};
use crate::members::telling;
use crate::resource::Resource;
use crate::state::{self, State, WALK};

const WORK: &str = "work";
const BINDING: &str = "binding";

/// What is kept, or may be, until it is there again.
#[derive(Default)]
pub(crate) struct Keepsakes {
    /// In what, by the uid of what it was.
    kept: Mutex<HashMap<String, Resource>>,
    /// The templates of Works that go and are made again: until then, too, nobody else has their names.
    returning: Mutex<HashMap<Key, TemplateId>>,
    /// The same for bindings. Whether one that went is made again is known when its template was looked at.
    names_held: Mutex<HashMap<Key, TemplateId>>,
}

impl Keepsakes {
    /// A Work goes, and is made again.
    pub(crate) fn expect(&self, work: &Key, id: TemplateId) {
        self.returning.lock().insert(work.clone(), id);
    }

    /// A Work is there again, or does not come any more.
    pub(crate) fn returned(&self, work: &Key) {
        self.returning.lock().remove(work);
    }

    /// Whose Work is about to be made again, if one of this name is.
    pub(super) fn returning(&self, work: &Key) -> Option<TemplateId> {
        self.returning.lock().get(work).cloned()
    }

    /// A binding goes or went, and its template is about to be looked at.
    pub(crate) fn hold_name(&self, binding: &Key, id: &TemplateId) {
        self.names_held.lock().insert(binding.clone(), id.clone());
    }

    /// For whom the name of a binding is kept that is not there.
    pub(super) fn name_held(&self, binding: &Key) -> Option<TemplateId> {
        self.names_held.lock().get(binding).cloned()
    }

    /// Nobody needs the name of a binding, or the binding is there.
    pub(super) fn release_name(&self, binding: &Key) {
        self.names_held.lock().remove(binding);
    }
}

/// A binding that is to be made again.
#[derive(Clone)]
pub(crate) struct LostBinding {
    /// What it was.
    uid: String,
    /// What it is to be.
    pub(super) binding: Binding,
}

/// Keeps a Work that goes and is to be made again.
pub(crate) async fn keep_work(state: &State, work: &Work) -> Result<(), PassError> {
    let Some(manifest) = work.spec.workload.manifests.first() else {
        return Ok(());
    };
    let resource = envelope::resource(&TemplateId::of(manifest));
    keep(state, resource, WORK, &work.metadata.uid, work).await
}

/// Keeps a binding that goes, and remembers it until it is there again.
pub(super) async fn keep_binding(state: &State, id: &TemplateId, old: &Binding) -> Result<(), PassError> {
    let resource = Resource::controller_revisions();
    keep(state, resource, BINDING, &old.metadata.uid, old).await?;
    remember(state, id.clone(), old.clone());
    Ok(())
}

fn remember(state: &State, id: TemplateId, mut binding: Binding) {
    let uid = binding.metadata.uid.clone();
    binding.metadata.make_new();
    binding.status = lockgate_api::BindingStatus::default();
    let lost = LostBinding { uid, binding };
    state.keepsakes.hold_name(&super::binding_key(&id), &id);
    state.lost_bindings.lock().insert(id, lost);
}

/// A template's binding is there, or is not needed any more.
pub(super) async fn forget_binding(state: &State, id: &TemplateId) -> Result<(), PassError> {
    let lost = state.lost_bindings.lock().remove(id);
    match lost {
        Some(lost) => forget(state, &lost.uid).await,
        None => Ok(()),
    }
}

fn name(uid: &str) -> String {
    format!("kept-{uid}")
}

async fn keep(
    state: &State,
    resource: Resource,
    what: &str,
    uid: &str,
    content: &impl Serialize,
) -> Result<(), PassError> {
    let metadata = json!({
        "name": name(uid),
        "namespace": keys::SYSTEM_NAMESPACE,
        "labels": {keys::KEPT: what},
    });
    let object = envelope::wrap(&resource, metadata, 1, content);
    let collection = resource.collection(keys::SYSTEM_NAMESPACE);
    state.keepsakes.kept.lock().insert(uid.to_owned(), resource);
    let body = object.to_string().into_bytes();
    match state.link.create(&collection, body).await {
        Ok(_) | Err(LinkError::AlreadyExists) => Ok(()),
        Err(error) if error.is_transient() => {
            let what = "failed to keep what was deleted";
            Err(PassError::Link { what, error })
        }
        Err(error) => {
            // Almost always there is nobody who stops this process between here and there.
            tracing::warn!(uid, %error, "it is made again from memory alone");
            Ok(())
        }
    }
}

/// What was kept is there again, or must not be.
pub(crate) async fn forget(state: &State, uid: &str) -> Result<(), PassError> {
    let Some(resource) = state.keepsakes.kept.lock().get(uid).cloned() else {
        return Ok(());
    };
    let path = resource.object(keys::SYSTEM_NAMESPACE, &name(uid));
    match state.link.delete(&path, &DeleteOptions::default()).await {
        Err(error) if error.is_transient() => {
            let what = "failed to delete what was kept";
            Err(PassError::Link { what, error })
        }
        _ => {
            state.keepsakes.kept.lock().remove(uid);
            Ok(())
        }
    }
}

/// Takes up what an earlier process did not get to. All Works and bindings are known.
pub(crate) async fn recall(state: &State) -> Result<(), LinkError> {
    for resource in [Resource::controller_revisions(), Resource::secrets()] {
        let collection = resource.collection(keys::SYSTEM_NAMESPACE);
        let body = match state
            .link
            .get(&format!(
                "{collection}?labelSelector={}",
                keys::KEPT.replace('/', "%2F")
            ))
            .await
        {
            Ok(body) => body,
            // Who may not see them has not kept any.
            Err(LinkError::Refused { code: 403, .. }) => continue,
            Err(error) => return Err(error),
        };
        let list: Value =
            serde_json::from_slice(&body).map_err(|error| LinkError::BadAnswer(error.to_string()))?;
        let mut found = BTreeSet::new();
        for kept in list["items"].as_array().into_iter().flatten() {
            let uid = match kept["metadata"]["labels"][keys::KEPT].as_str() {
                Some(WORK) => envelope::unwrap(&resource, kept).map(|work| recall_work(state, work)),
                Some(BINDING) => {
                    envelope::unwrap(&resource, kept).map(|binding| recall_binding(state, binding))
                }
                _ => None,
            };
            let Some((uid, is_found)) = uid else { continue };
            let known = (uid.clone(), resource.clone());
            state.keepsakes.kept.lock().extend([known]);
            if is_found {
                found.insert(uid);
            }
        }
        for uid in found {
            if let Err(error) = forget(state, &uid).await {
                tracing::warn!(uid, %error, "it is forgotten the next time");
            }
        }
    }
    Ok(())
}

/// Its uid, and whether it is there again.
fn recall_work(state: &State, work: Work) -> (String, bool) {
    let uid = work.metadata.uid.clone();
    let key = Key::new(&work.metadata.namespace, &work.metadata.name);
    let known = state::work(&state.caches.works, &key);
    let found = known.as_ref().is_some_and(|known| known.metadata.uid != uid);
    if known.is_none() {
        telling::let_go(state, &key, &work, true);
    }
    (uid, found)
}

/// Its uid, and whether it is there again.
fn recall_binding(state: &State, binding: Binding) -> (String, bool) {
    let uid = binding.metadata.uid.clone();
    let id = super::template_of(&binding);
    let known = state
        .binding(&super::binding_key(&id))
        .filter(|known| super::is_for(known, &id));
    let found = known.as_ref().is_some_and(|known| known.metadata.uid != uid);
    if known.is_none() {
        let kind = (id.api_version.clone(), id.kind.clone());
        state.bound_kinds.lock().insert(kind);
        state.templates.add(id.clone(), WALK);
        remember(state, id, binding);
    }
    (uid, found)
}
