//! The operations on objects, apart from HTTP: what create, update, delete and the reads mean.
//!
//! Requests, the controllers inside the server and tests all come through here, so that admission, validation and
//! the rules of generation and finalizers hold for everybody.

pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod read;
pub(crate) mod select;
pub(crate) mod update;
pub(crate) mod upsert;

use std::sync::Arc;

use machinery_auth::UserInfo;
use machinery_auth::user::GROUP_AUTHENTICATED;
use machinery_store::{Change, Expect, WriteError};
use machinery_value::{Map, Value};
use parking_lot::Mutex;

use crate::audit::Trail;
use crate::indexes;
use crate::object::{Object, Stored};
use crate::ownership::Owner;
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::ApiError;

/// What a client is told of at most; callers in this process never ask for it.
const MAX_WARNINGS: usize = 100;

/// Who writes, and how.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) user: Arc<UserInfo>,
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
    /// To whom the changed fields belong.
    pub(crate) owner: Owner,
    /// What else the client asked for, as policies see it.
    pub(crate) given: Map<String, Value>,
    /// Whether policies were asked already: what follows from an admitted request is not asked about again.
    pub(crate) is_judged: bool,
    /// Where to note what is to be logged, if anything is.
    pub(crate) trail: Option<Trail>,
    /// What to tell the client besides the answer.
    warnings: Arc<Mutex<Vec<String>>>,
}

impl WriteOptions {
    pub(crate) fn new(user: Arc<UserInfo>, dry_run: bool, validation: FieldValidation, owner: Owner) -> Self {
        Self {
            user,
            dry_run,
            validation,
            owner,
            given: Map::new(),
            is_judged: false,
            trail: None,
            warnings: Arc::default(),
        }
    }

    /// The same for what follows from a request that policies have admitted.
    pub(crate) fn judged(self) -> Self {
        Self {
            is_judged: true,
            ..self
        }
    }

    /// A write of the server itself.
    pub(crate) fn internal() -> Self {
        Self::new(
            Arc::new(UserInfo::apiserver()),
            false,
            FieldValidation::Ignore,
            Owner::Server,
        )
    }

    /// A write that a cluster's controllers make through the API: policies judge it, and know it by the controller's account.
    pub(crate) fn controller(name: &str) -> Self {
        Self::cluster(UserInfo::service_account("kube-system", name, ""))
    }

    /// The same for what the controllers' process does in its own name.
    pub(crate) fn controllers() -> Self {
        Self::cluster(UserInfo::new(
            "system:kube-controller-manager",
            [GROUP_AUTHENTICATED],
        ))
    }

    fn cluster(user: UserInfo) -> Self {
        Self {
            user: Arc::new(user),
            ..Self::internal()
        }
    }

    /// Adds something to tell the client, once.
    pub(crate) fn warn(&self, warning: String) {
        let mut warnings = self.warnings.lock();
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// What there is to tell the client.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }
}

/// What happens to fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// What a write left behind.
#[derive(Clone, Debug)]
pub(crate) enum Saved {
    /// It is in the store.
    Stored(Stored),
    /// It would be, but for `dryRun`; a content without apiVersion and kind.
    Dry(Value),
    /// The write removed the last finalizer, and the object is gone; its final content.
    Gone(Value),
}

/// Writes `content` at `key` and tells those who keep something from it.
pub(crate) async fn put(
    server: &Inner,
    resource: &Resource,
    key: &str,
    expect: Expect,
    mut content: Value,
) -> Result<Result<Stored, Option<Stored>>, ApiError> {
    if let Some(conversion) = resource.conversion() {
        conversion.store(&resource.kind, &mut content);
    }
    let edition = resource.edition();
    let change = Change::put(move |revision| Object::encode(content, revision, edition));
    settle(server, resource, key, expect, change).await
}

/// Removes `key`; watchers see `last` with the revision of the removal.
pub(crate) async fn remove(
    server: &Inner,
    resource: &Resource,
    key: &str,
    expect: Expect,
    mut last: Value,
) -> Result<Result<Stored, Option<Stored>>, ApiError> {
    if let Some(conversion) = resource.conversion() {
        conversion.store(&resource.kind, &mut last);
    }
    let edition = resource.edition();
    let change = Change::delete(move |revision| Object::encode(last, revision, edition));
    settle(server, resource, key, expect, change).await
}

async fn settle(
    server: &Inner,
    resource: &Resource,
    key: &str,
    expect: Expect,
    change: Change<Object>,
) -> Result<Result<Stored, Option<Stored>>, ApiError> {
    let result = match indexes::concerned(resource) {
        None => server.store.write(key, expect, change).await,
        // A client that goes away while its write is on the way to the disk leaves a write that happens all the same. What
        // is stored must be in force, so that nobody's leaving comes between the two.
        Some(resource) => {
            let (server, key) = (server.shared(), key.to_owned());
            let write = async move {
                let result = server.store.write(&key, expect, change).await;
                if result.is_ok() {
                    server.indexes.changed(&server, resource, &key);
                }
                result
            };
            tokio::spawn(write).await.map_err(ApiError::internal)?
        }
    };
    match result {
        Ok(written) => Ok(Ok(written.entry)),
        Err(WriteError::Conflict(current)) => Ok(Err(current)),
        Err(error) => Err(ApiError::internal(error)),
    }
}
