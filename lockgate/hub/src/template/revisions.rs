//! Revisions as the hub keeps them: one immutable object for each, in the control plane's own namespace. Those of Secrets
//! are Secrets.

use std::sync::Arc;

use lockgate_api::{ObjectMeta, OverridePolicy, keys};
use lockgate_engine::TemplateId;
use lockgate_engine::gate::record::Good;
use lockgate_engine::gate::revision::Revision;
use machinery_value::hash::ValueHash;
use serde::Deserialize;
use serde_json::{Value, json};

use super::envelope::{self, resource};
use super::{PassError, scope_keys};
use crate::link::{DeleteOptions, LinkError};
use crate::resource::Resource;
use crate::state::State;

/// How many revisions of a template are kept, beside the current one, the last good one and the one that is gone back to.
pub(crate) const KEPT: usize = 10;

/// A revision that was read again.
#[derive(Debug)]
pub(crate) struct Stored {
    /// What it holds.
    pub(crate) revision: Revision,
    /// Its override policies.
    pub(crate) overrides: Vec<Arc<OverridePolicy>>,
    /// The hash of its content.
    pub(crate) content: ValueHash,
}

/// The name of a revision: the same for the same content.
fn name(binding: &str, digest: &str) -> String {
    format!("{binding}-{digest}")
}

#[derive(Deserialize)]
struct Listed {
    items: Vec<ListedItem>,
}

#[derive(Deserialize)]
struct ListedItem {
    metadata: ObjectMeta,
}

/// A revision without its content.
pub(crate) struct Entry {
    /// Its number.
    pub(crate) number: i64,
    /// What every cluster got in it.
    pub(crate) digest: String,
    /// Whether it was given up.
    pub(crate) given_up: bool,
    metadata: ObjectMeta,
}

/// Keeps a revision under its number. One with the same content gets the new number.
pub(crate) async fn keep(
    state: &State,
    id: &TemplateId,
    binding: &str,
    good: &Good,
    revision: &Revision,
) -> Result<(), PassError> {
    let resource = resource(id);
    let metadata = json!({
        "name": name(binding, &good.digest),
        "namespace": keys::SYSTEM_NAMESPACE,
        "labels": {scope_keys(id).0: binding},
        "annotations": {
            keys::REVISION: good.revision.to_string(),
            keys::REVISION_DIGEST: good.digest,
        },
    });
    let object = envelope::wrap(&resource, metadata, good.revision, revision);
    let collection = resource.collection(keys::SYSTEM_NAMESPACE);
    match state
        .link
        .create(&collection, object.to_string().into_bytes())
        .await
    {
        Ok(_) => Ok(()),
        Err(LinkError::AlreadyExists) => renumber(state, &resource, binding, good).await,
        Err(error) => Err(failed("failed to keep a revision", error)),
    }
}

/// Gives a revision that is kept another number, and another chance.
async fn renumber(state: &State, resource: &Resource, binding: &str, good: &Good) -> Result<(), PassError> {
    let is_secret = resource.kind == "Secret";
    let number = good.revision.to_string();
    annotate(state, resource, binding, &good.digest, |object| {
        let annotations = &mut object["metadata"]["annotations"];
        let again = annotations[keys::REVISION] != number.as_str();
        annotations[keys::REVISION] = number.as_str().into();
        let annotations = annotations.as_object_mut();
        let given_up = annotations.and_then(|annotations| annotations.remove(keys::REVISION_GIVEN_UP));
        if !is_secret {
            object["revision"] = good.revision.into();
        }
        again || given_up.is_some()
    })
    .await
}

/// Says of a revision that it was given up: nobody goes back to it who does not name it.
pub(crate) async fn give_up(
    state: &State,
    id: &TemplateId,
    binding: &str,
    digest: &str,
) -> Result<(), PassError> {
    annotate(state, &resource(id), binding, digest, |object| {
        let given_up = &mut object["metadata"]["annotations"][keys::REVISION_GIVEN_UP];
        let is_new = given_up.is_null();
        *given_up = "true".into();
        is_new
    })
    .await
}

/// Changes what a revision says of itself, if it is kept.
async fn annotate(
    state: &State,
    resource: &Resource,
    binding: &str,
    digest: &str,
    change: impl FnOnce(&mut Value) -> bool,
) -> Result<(), PassError> {
    let path = resource.object(keys::SYSTEM_NAMESPACE, &name(binding, digest));
    let what = "failed to write a revision";
    let body = match state.link.get(&path).await {
        Ok(body) => body,
        Err(LinkError::NotFound) => return Ok(()),
        Err(error) => return Err(failed(what, error)),
    };
    let mut object: Value = serde_json::from_slice(&body).map_err(|e| PassError::NotYet(e.to_string()))?;
    if !change(&mut object) {
        return Ok(());
    }
    match state.link.replace(&path, object.to_string().into_bytes()).await {
        Ok(_) => Ok(()),
        Err(LinkError::Conflict | LinkError::NotFound) => Err(PassError::Again),
        Err(error) => Err(failed(what, error)),
    }
}

/// Reads a revision again; none if somebody deleted it.
pub(crate) async fn read(
    state: &State,
    id: &TemplateId,
    binding: &str,
    digest: &str,
) -> Result<Option<Arc<Stored>>, PassError> {
    if let Some((known, stored)) = state.ways_back.lock().get(id)
        && known == digest
    {
        return Ok(Some(stored.clone()));
    }
    let resource = resource(id);
    let path = resource.object(keys::SYSTEM_NAMESPACE, &name(binding, digest));
    let body = match state.link.get(&path).await {
        Ok(body) => body,
        Err(LinkError::NotFound) => return Ok(None),
        Err(error) => return Err(failed("failed to read a revision", error)),
    };
    let object: Value = serde_json::from_slice(&body).map_err(|e| PassError::NotYet(e.to_string()))?;
    let revision: Option<Revision> = envelope::unwrap(&resource, &object);
    let stored = revision.map(|revision| {
        Arc::new(Stored {
            overrides: revision.overrides.iter().cloned().map(Arc::new).collect(),
            content: revision.content(),
            revision,
        })
    });
    if let Some(stored) = &stored {
        let known = (digest.to_owned(), stored.clone());
        state.ways_back.lock().insert(id.clone(), known);
    }
    Ok(stored)
}

/// The revisions of a binding that are kept, the newest first.
pub(crate) async fn list(state: &State, id: &TemplateId, binding: &str) -> Result<Vec<Entry>, PassError> {
    let path = format!(
        "{}?labelSelector={}%3D{binding}",
        resource(id).collection(keys::SYSTEM_NAMESPACE),
        scope_keys(id).0
    );
    let body = state
        .link
        .get(&path)
        .await
        .map_err(|error| failed("failed to list revisions", error))?;
    let listed: Listed = serde_json::from_slice(&body).map_err(|e| PassError::NotYet(e.to_string()))?;
    let mut entries: Vec<Entry> = listed
        .items
        .into_iter()
        .filter_map(|item| {
            let number = item.metadata.annotation(keys::REVISION)?.parse().ok()?;
            let digest = item.metadata.annotation(keys::REVISION_DIGEST)?.to_owned();
            Some(Entry {
                number,
                digest,
                given_up: item.metadata.annotation(keys::REVISION_GIVEN_UP).is_some(),
                metadata: item.metadata,
            })
        })
        .collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.number));
    Ok(entries)
}

/// Deletes the oldest revisions, but none that is needed.
pub(crate) async fn prune(
    state: &State,
    id: &TemplateId,
    binding: &str,
    needed: &[&str],
) -> Result<(), PassError> {
    let entries = list(state, id, binding).await?;
    let over = entries.iter().skip(KEPT);
    delete(
        state,
        id,
        over.filter(|entry| !needed.contains(&entry.digest.as_str())),
    )
    .await
}

/// Deletes every revision of a binding: its template is gone.
pub(crate) async fn forget(state: &State, id: &TemplateId, binding: &str) -> Result<(), PassError> {
    state.ways_back.lock().remove(id);
    let entries = list(state, id, binding).await?;
    delete(state, id, entries.iter()).await
}

async fn delete<'a>(
    state: &State,
    id: &TemplateId,
    entries: impl Iterator<Item = &'a Entry>,
) -> Result<(), PassError> {
    let resource = resource(id);
    for entry in entries {
        let path = resource.object(keys::SYSTEM_NAMESPACE, &entry.metadata.name);
        let options = DeleteOptions {
            uid: Some(entry.metadata.uid.clone()),
            ..DeleteOptions::default()
        };
        match state.link.delete(&path, &options).await {
            Ok(()) | Err(LinkError::NotFound) => {}
            Err(error) => return Err(failed("failed to delete a revision", error)),
        }
    }
    Ok(())
}

fn failed(what: &'static str, error: LinkError) -> PassError {
    PassError::Link { what, error }
}
