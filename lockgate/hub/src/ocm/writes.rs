//! Writes of these kinds. Each is a create, or a PUT or a DELETE with the resource version that was read.

use std::sync::Arc;

use serde::Serialize;

use crate::cache::{Cache, Key};
use crate::link::LinkError;
use crate::resource::Resource;
use crate::state::State;
use crate::template::{PassError, encode, refresh};

/// Creates an object, and remembers the answer.
pub(super) async fn create<T: Serialize>(
    state: &State,
    cache: &Arc<Cache>,
    key: &Key,
    object: &T,
    what: &'static str,
) -> Result<(), PassError> {
    let resource = cache.resource();
    match cache.create(&state.link, key, encode(resource, object)).await {
        Ok(_) => Ok(()),
        Err(LinkError::AlreadyExists) => {
            refresh(state, cache, resource, key).await?;
            Err(PassError::Again)
        }
        Err(error) => Err(PassError::Link { what, error }),
    }
}

/// Deletes exactly the object that was seen, and remembers that.
pub(super) async fn delete(
    state: &State,
    cache: &Arc<Cache>,
    key: &Key,
    what: &'static str,
) -> Result<(), PassError> {
    let Some(seen) = cache.get(key) else {
        return Ok(());
    };
    match cache.delete(&state.link, &seen).await {
        Ok(()) => Ok(()),
        Err(LinkError::Conflict | LinkError::NotFound) => {
            refresh(state, cache, cache.resource(), key).await?;
            Err(PassError::Again)
        }
        Err(error) => Err(PassError::Link { what, error }),
    }
}

/// Which part of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All but the status.
    Main,
    /// The status, of which somebody waits for what follows.
    Status,
}

/// Replaces an object or its status, and remembers the answer.
pub(super) async fn replace(
    state: &State,
    cache: &Arc<Cache>,
    key: &Key,
    part: Part,
    body: Vec<u8>,
    what: &'static str,
) -> Result<(), PassError> {
    let resource: &Resource = cache.resource();
    let path = match part {
        Part::Main => resource.object(&key.namespace, &key.name),
        Part::Status => resource.status(&key.namespace, &key.name),
    };
    match cache.replace(&state.link, key, &path, body).await {
        Ok(_) => Ok(()),
        Err(LinkError::Conflict | LinkError::NotFound) => {
            refresh(state, cache, resource, key).await?;
            Err(PassError::Again)
        }
        Err(error) => Err(PassError::Link { what, error }),
    }
}
