//! Change an object, or make it if it is missing: what every apply does, and a PUT of some kinds.

use machinery_value::Value;

use crate::meta;
use crate::ops::create::{create_if, place_in_namespace};
use crate::ops::update::{Target, check_name, parse_version, update};
use crate::ops::{Saved, WriteOptions};
use crate::server::Inner;
use crate::status::ApiError;

/// How often an object may come and go between the look and the write. Each time somebody else made or deleted it.
const ATTEMPTS: usize = 100;

/// Whether an object was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Updated,
    Created,
}

impl Outcome {
    /// How HTTP says it.
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Updated => 200,
            Self::Created => 201,
        }
    }
}

/// Changes one object, or makes it. `make` gets the present content, if there is any, and returns the wanted one;
/// `may_create` is asked before anything is made: who may change an object may not always make one.
pub(crate) async fn update_or_create(
    server: &Inner,
    target: &Target<'_>,
    options: &WriteOptions,
    may_create: impl Fn() -> Result<(), ApiError>,
    make: impl Fn(Option<&Value>) -> Result<Value, ApiError>,
) -> Result<(Outcome, Saved), ApiError> {
    let Target {
        resource,
        namespace,
        name,
        ..
    } = *target;
    let key = resource.key(namespace, name);
    for _ in 0..ATTEMPTS {
        match update(server, target, options, |present| make(Some(present))).await {
            Err(error) if error.is_not_found() && server.store.get(&key).is_none() => {}
            other => return other.map(|saved| (Outcome::Updated, saved)),
        }
        let mut content = make(None)?;
        place_in_namespace(resource, namespace, &mut content)?;
        check_name(name, &content)?;
        // Of what is not there no version can be the wrong one, as long as it is one.
        parse_version(meta::resource_version(&content))?;
        meta::meta_mut(&mut content).remove("resourceVersion");
        match create_if(server, resource, (namespace, name), content, options, &may_create).await {
            Err(error) if error.is_already_exists() => {}
            other => return other.map(|saved| (Outcome::Created, saved)),
        }
    }
    Err(ApiError::modified(resource.subject(), name))
}
