//! The writes of a template's pass. Each is a create, or a PUT with the resource version that was read; a conflict brings
//! the newest object into memory and the pass starts again.

use std::borrow::Cow;
use std::sync::Arc;

use lockgate_api::work::WorkStatus;
use lockgate_api::{Binding, ObjectMeta, Work, keys};
use lockgate_engine::claim::{Record, suspension_of};
use lockgate_engine::{TemplateId, object};
use serde::Serialize;
use serde_json::{Value, json};

use super::keepsakes::{self, LostBinding};
use super::{PassError, Walk, binding_key, owning, scope_keys};
use crate::cache::{Cache, Key};
use crate::head::head;
use crate::link::{DeleteOptions, Deleted, Link, LinkError};
use crate::resource::Resource;
use crate::state::{self, State};

/// Replaces an object, and remembers the answer.
pub(crate) async fn replace(
    state: &State,
    cache: &Arc<Cache>,
    resource: &Resource,
    key: &Key,
    body: Vec<u8>,
    what: &'static str,
) -> Result<bytes::Bytes, PassError> {
    let path = resource.object(&key.namespace, &key.name);
    put(state, &state.link, cache, resource, key, path, body, what).await
}

/// Replaces an object's status, and remembers the answer.
pub(crate) async fn replace_status(
    state: &State,
    cache: &Arc<Cache>,
    resource: &Resource,
    key: &Key,
    body: Vec<u8>,
    what: &'static str,
) -> Result<bytes::Bytes, PassError> {
    let path = resource.status(&key.namespace, &key.name);
    put(state, &state.status_link, cache, resource, key, path, body, what).await
}

#[expect(
    clippy::too_many_arguments,
    reason = "one request, and what becomes of its answer"
)]
async fn put(
    state: &State,
    link: &Link,
    cache: &Arc<Cache>,
    resource: &Resource,
    key: &Key,
    path: String,
    body: Vec<u8>,
    what: &'static str,
) -> Result<bytes::Bytes, PassError> {
    match cache.replace(link, key, &path, body).await {
        Ok(answer) => Ok(answer),
        Err(LinkError::Conflict | LinkError::NotFound) => {
            refresh(state, cache, resource, key).await?;
            Err(PassError::Again)
        }
        Err(error) => Err(PassError::Link { what, error }),
    }
}

/// Brings the newest form of an object into memory.
pub(crate) async fn refresh(
    state: &State,
    cache: &Arc<Cache>,
    resource: &Resource,
    key: &Key,
) -> Result<(), PassError> {
    match state.link.get(&resource.object(&key.namespace, &key.name)).await {
        Ok(answer) => {
            if let Err(error) = cache.learn_read(&answer) {
                tracing::warn!(%error, "what was read again cannot be read");
            }
        }
        Err(LinkError::NotFound) => {
            if let Some(cached) = cache.get(key) {
                cache.forget_gone(key, &cached.uid);
            }
        }
        Err(error) => {
            return Err(PassError::Link {
                what: "failed to read again what has changed",
                error,
            });
        }
    }
    Ok(())
}

/// Deletes exactly the object that was seen.
pub(crate) async fn delete(
    state: &State,
    cache: &Arc<Cache>,
    resource: &Resource,
    key: &Key,
    what: &'static str,
) -> Result<(), PassError> {
    let Some(cached) = cache.get(key) else {
        return Ok(());
    };
    let options = DeleteOptions {
        uid: Some(cached.uid.clone()),
        resource_version: Some(cached.resource_version.clone()),
        propagation: None,
    };
    let path = resource.object(&key.namespace, &key.name);
    match state.link.delete_answer(&path, &options).await {
        // Known at once, so that no pass before the watch tells of it deletes it again.
        Ok(Deleted::Going(answer)) => {
            cache.remember(&answer);
            Ok(())
        }
        Ok(Deleted::Gone) | Err(LinkError::NotFound) => {
            cache.forget_gone(key, &cached.uid);
            Ok(())
        }
        Err(LinkError::Conflict) => {
            refresh(state, cache, resource, key).await?;
            Err(PassError::Again)
        }
        Err(error) => Err(PassError::Link { what, error }),
    }
}

/// An object of ours with its type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a, T> {
    api_version: String,
    kind: &'a str,
    #[serde(flatten)]
    object: &'a T,
}

/// An object of ours as the server takes it.
pub(crate) fn encode<T: Serialize>(resource: &Resource, object: &T) -> Vec<u8> {
    let typed = Typed {
        api_version: resource.api_version(),
        kind: &resource.kind,
        object,
    };
    // Encoding strings, numbers, lists and maps cannot fail.
    serde_json::to_vec(&typed).unwrap_or_default()
}

/// A binding or a Work as the server takes it, without its status: the server keeps that as it is.
///
/// A replacement has the server forget who manages which of its fields. These kinds have one writer, and to keep it takes a
/// server an eighth of the time of each later write, and as much of the object's size. It begins again when somebody applies
/// to one, until our next write.
pub(crate) fn encode_own<S: Serialize>(resource: &Resource, metadata: &ObjectMeta, spec: &S) -> Vec<u8> {
    #[derive(Serialize)]
    struct Own<'a, S> {
        metadata: Cow<'a, ObjectMeta>,
        spec: &'a S,
    }
    let mut metadata = Cow::Borrowed(metadata);
    if !metadata.resource_version.is_empty() {
        let forgotten = json!([{}]);
        metadata
            .to_mut()
            .rest
            .insert("managedFields".to_owned(), forgotten);
    }
    encode(resource, &Own { metadata, spec })
}

/// A status as the server takes it. It keeps the rest of the object, so that the rest is not sent.
pub(crate) fn encode_status<S: Serialize>(resource: &Resource, metadata: &ObjectMeta, status: &S) -> Vec<u8> {
    #[derive(Serialize)]
    struct Reported<'a, S> {
        metadata: ObjectMeta,
        status: &'a S,
    }
    let reported = Reported {
        metadata: ObjectMeta {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            ..ObjectMeta::default()
        },
        status,
    };
    encode(resource, &reported)
}

impl Walk<'_> {
    /// Writes the template's own metadata.
    pub(super) async fn replace_template(&self, template: &Value) -> Result<Value, PassError> {
        let key = Key::new(&self.id.namespace, &self.id.name);
        let Some(kind) = self.state.kinds.served(&self.id.api_version, &self.id.kind) else {
            return Err(PassError::NotYet(format!("{} is not served", self.id.kind)));
        };
        let body = serde_json::to_vec(template).unwrap_or_default();
        let answer = replace(
            self.state,
            &kind.cache,
            &self.resource,
            &key,
            body,
            "failed to claim the template",
        )
        .await?;
        match kind.cache.get(&key).and_then(|cached| state::parse(&cached)) {
            Some(template) => Ok(template),
            None => serde_json::from_slice(&answer).map_err(|error| PassError::NotYet(error.to_string())),
        }
    }

    /// Creates or replaces the binding.
    pub(super) async fn write_binding(&mut self, binding: Binding) -> Result<(), PassError> {
        let (cache, resource) = self.state.bindings(&self.id.namespace);
        let key = binding_key(self.id);
        let body = encode_own(&resource, &binding.metadata, &binding.spec);
        if binding.metadata.resource_version.is_empty() {
            let what = "failed to create the binding";
            match cache.create(&self.state.link, &key, body).await {
                Ok(_) => {}
                Err(LinkError::AlreadyExists) => {
                    refresh(self.state, cache, &resource, &key).await?;
                    return Err(PassError::Again);
                }
                Err(error) => return Err(PassError::Link { what, error }),
            }
        } else {
            replace(
                self.state,
                cache,
                &resource,
                &key,
                body,
                "failed to write the binding",
            )
            .await?;
        }
        self.binding = self.state.binding(&key);
        Ok(())
    }

    /// A binding of another template of this name, or one that somebody is deleting, makes way. No Work is touched: the new
    /// binding takes them over.
    pub(super) async fn settle_binding(&mut self) -> Result<(), PassError> {
        let Some(old) = self.binding.clone() else {
            return self.make_binding_again().await;
        };
        let same_template = old.spec.resource.uid == object::meta_text(&self.template, "uid");
        if same_template && !old.metadata.deleting() {
            return Ok(());
        }
        let (cache, resource) = self.state.bindings(&self.id.namespace);
        let key = binding_key(self.id);
        // Rare and grave enough to ask the server itself whether the template is there.
        let live = match self
            .state
            .link
            .get(&self.resource.object(&self.id.namespace, &self.id.name))
            .await
        {
            Ok(live) => live,
            Err(LinkError::NotFound) => {
                return Err(PassError::NotYet("the template is going".to_owned()));
            }
            Err(error) => {
                let what = "failed to ask for the template";
                return Err(PassError::Link { what, error });
            }
        };
        let live: Value = serde_json::from_slice(&live).map_err(|e| PassError::NotYet(e.to_string()))?;
        if object::meta_text(&live, "uid") != object::meta_text(&self.template, "uid")
            || object::deleting(&live)
        {
            return Err(PassError::NotYet("the template is not what it was".to_owned()));
        }
        if same_template {
            // Until the binding is there again, the template itself carries what was activated.
            if let Some(record) = Record::find(&self.template, Some(&old)) {
                let mut template = self.template.clone();
                if super::set_annotation(&mut template, keys::ACTIVATED, &record.encode()) {
                    self.template = self.replace_template(&template).await?;
                }
            }
        }
        // Before it goes: whatever fails from here on, it is not forgotten.
        keepsakes::keep_binding(self.state, self.id, &old).await?;
        if !old.metadata.deleting() {
            delete(
                self.state,
                cache,
                &resource,
                &key,
                "failed to delete an old binding",
            )
            .await?;
            refresh(self.state, cache, &resource, &key).await?;
        }
        if let Some(mut going) = self.state.binding(&key).map(Arc::unwrap_or_clone) {
            let finalizer = scope_keys(self.id).1;
            going
                .metadata
                .finalizers
                .retain(|f| f != finalizer && f != keys::DEPENDENCIES_FINALIZER);
            let body = encode_own(&resource, &going.metadata, &going.spec);
            let path = resource.object(&key.namespace, &key.name);
            match self.state.link.replace(&path, body).await {
                Ok(_) | Err(LinkError::NotFound) => {}
                Err(LinkError::Conflict) => {
                    refresh(self.state, cache, &resource, &key).await?;
                    return Err(PassError::Again);
                }
                Err(error) => {
                    let what = "failed to let an old binding go";
                    return Err(PassError::Link { what, error });
                }
            }
            refresh(self.state, cache, &resource, &key).await?;
            if cache.get(&key).is_some() {
                return Err(PassError::NotYet(
                    "an old binding is held by other finalizers".to_owned(),
                ));
            }
        }
        self.binding = None;
        self.make_binding_again().await
    }

    /// Makes a binding again as it was that somebody deleted, also if that was not possible when it went: its definition may
    /// have gone with it. One of a template that has another uid now leaves only what [`Walk::inherit`] takes from it.
    async fn make_binding_again(&mut self) -> Result<(), PassError> {
        let lost = self.state.lost_bindings.lock().get(self.id).cloned();
        let uid = object::meta_text(&self.template, "uid");
        if let Some(lost) = lost.filter(|lost| lost.binding.spec.resource.uid == uid) {
            self.write_binding(lost.binding).await?;
            keepsakes::forget_binding(self.state, self.id).await?;
        }
        Ok(())
    }

    /// Has a new binding go on from where the one before placed the template, which had the same name and another uid: a backup
    /// that was restored moves nothing.
    pub(super) fn inherit(&self, binding: &mut Binding) {
        let lost = self.state.lost_bindings.lock();
        let Some(LostBinding { binding: old, .. }) = lost.get(self.id) else {
            return;
        };
        let (from, spec) = (&old.spec, &mut binding.spec);
        spec.clusters.clone_from(&from.clusters);
        spec.graceful_eviction_tasks
            .clone_from(&from.graceful_eviction_tasks);
        spec.reschedule_triggered_at
            .clone_from(&from.reschedule_triggered_at);
        spec.suspension = suspension_of(None, from.suspension.as_ref());
        for key in [
            keys::APPLIED_PLACEMENT,
            keys::PLACED,
            keys::UNHEALTHY_SINCE,
            keys::CARRIED_STATE,
        ] {
            if let Some(value) = old.metadata.annotation(key) {
                let annotations = &mut binding.metadata.annotations;
                annotations.insert(key.to_owned(), value.to_owned());
            }
        }
    }
}

/// Creates or replaces a Work, and remembers the answer.
pub(crate) async fn write_work(state: &State, work: &Work) -> Result<(), PassError> {
    let resource = Resource::works();
    let key = Key::new(&work.metadata.namespace, &work.metadata.name);
    let body = encode_own(&resource, &work.metadata, &work.spec);
    let answer = if work.metadata.resource_version.is_empty() {
        match state.caches.works.create(&state.link, &key, body).await {
            Ok(answer) => answer,
            Err(LinkError::AlreadyExists) => {
                refresh(state, &state.caches.works, &resource, &key).await?;
                return Err(PassError::Again);
            }
            Err(error) => {
                let what = "failed to create the Work";
                return Err(PassError::Link { what, error });
            }
        }
    } else {
        replace(
            state,
            &state.caches.works,
            &resource,
            &key,
            body,
            "failed to write the Work",
        )
        .await?
    };
    state.members.written(&key, work, &answer);
    state.members.wake(&key);
    Ok(())
}

/// Makes a Work again as it was: somebody deleted it. Whoever made one meanwhile was right.
pub(crate) async fn make_work_again(state: &State, key: &Key, work: &Work) -> Result<(), PassError> {
    let cluster = lockgate_api::names::cluster_of(&key.namespace).and_then(|name| state.cluster(name));
    if cluster.is_none_or(|cluster| cluster.metadata.deleting()) {
        return Ok(());
    }
    let mut again = work.clone();
    again.metadata.make_new();
    again.status = WorkStatus::default();
    let result = write_work(state, &again).await;
    if !matches!(result, Err(PassError::Again)) {
        return result;
    }
    let made = state.caches.works.get(key).and_then(|cached| head(&cached));
    let Some(made) = made.filter(|head| !head.work.metadata.deleting()) else {
        return result;
    };
    let manifest = work.spec.workload.manifests.first();
    let id = manifest.map(|manifest| owning::of_work(state, &work.metadata, TemplateId::of(manifest)));
    match id.and_then(|id| owning::taken_by(state, &id, key, Some(&made))) {
        None => Ok(()),
        Some(owner) => Err(PassError::NotYet(format!("{owner} has the name of the Work now"))),
    }
}

/// Deletes a Work.
pub(crate) async fn delete_work(state: &State, key: &Key) -> Result<(), PassError> {
    let works = &state.caches.works;
    delete(state, works, &Resource::works(), key, "failed to delete a Work").await?;
    state.members.wake(key);
    let cluster = lockgate_api::names::cluster_of(&key.namespace).unwrap_or_default();
    if state.cluster(cluster).is_none() {
        // No lane would let it go: its cluster is gone, and with it whatever was there.
        refresh(state, works, &Resource::works(), key).await?;
        if let Some(work) = state::work(works, key) {
            release_work(state, key, &work).await?;
        }
    }
    Ok(())
}

/// Brings the newest form of a Work into memory.
pub(crate) async fn refresh_work(state: &State, key: &Key) -> Result<(), PassError> {
    refresh(state, &state.caches.works, &Resource::works(), key).await
}

/// Lets a Work go that is being deleted.
pub(crate) async fn release_work(state: &State, key: &Key, work: &Work) -> Result<(), PassError> {
    let resource = Resource::works();
    let works = &state.caches.works;
    let mut going = work.clone();
    going.metadata.finalizers.retain(|f| f != keys::WORK_FINALIZER);
    let body = encode_own(&resource, &going.metadata, &going.spec);
    let path = resource.object(&key.namespace, &key.name);
    let what = "failed to let a Work go";
    // Nothing that members are to get waits for this.
    match put(state, &state.status_link, works, &resource, key, path, body, what).await {
        Ok(_) => {
            if going.metadata.finalizers.is_empty() {
                works.forget(key, &work.metadata.uid);
            }
            Ok(())
        }
        // Somebody else has let it go.
        Err(PassError::Again) if works.get(key).is_none() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a Work's status.
pub(crate) async fn write_work_status(
    state: &State,
    key: &Key,
    metadata: &ObjectMeta,
    status: &WorkStatus,
) -> Result<(), PassError> {
    let resource = Resource::works();
    let works = &state.caches.works;
    let body = encode_status(&resource, metadata, status);
    let what = "failed to write the Work's status";
    replace_status(state, works, &resource, key, body, what).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_objects_are_sent_without_status_and_managers() {
        let mut work = Work::default();
        work.metadata.name = "web".to_owned();
        work.spec.suspend_dispatching = Some(true);
        work.status.conditions.push(Default::default());
        let sent = |work: &Work| -> Value {
            serde_json::from_slice(&encode_own(&Resource::works(), &work.metadata, &work.spec)).unwrap()
        };
        let spec = json!({"workload": {}, "suspendDispatching": true});
        let whole = |metadata: Value| json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": metadata, "spec": spec});
        assert_eq!(sent(&work), whole(json!({"name": "web"})));
        work.metadata.resource_version = "7".to_owned();
        let replaced = json!({"name": "web", "resourceVersion": "7", "managedFields": [{}]});
        assert_eq!(sent(&work), whole(replaced));
    }
}
