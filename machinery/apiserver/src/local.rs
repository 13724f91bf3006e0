//! The API without HTTP, for programs that live in the same process: simulated kubelets, tests.
//!
//! The same operations as over the wire, with admission and validation; only the encoding is spared.

use std::sync::Arc;

use machinery_auth::UserInfo;
use machinery_store::{Event, Kind, Next, Range, Watch};
use machinery_value::Value;
use machinery_value::decode::Decoded;

use crate::meta;
use crate::object::Object;
use crate::ops::create::create;
use crate::ops::delete::{DeleteOptions, Deleted, delete};
use crate::ops::update::{Part, Target, update};
use crate::ops::{FieldValidation, Saved, WriteOptions, decode};
use crate::ownership::Owner;
use crate::resource::Resource;
use crate::server::{ApiServer, Inner};
use crate::status::ApiError;

/// A server as one user of this process sees it.
#[derive(Clone)]
pub struct Local {
    server: Arc<Inner>,
    options: WriteOptions,
}

impl ApiServer {
    /// The API without HTTP, as `user`. Roles are not asked: the caller is the server's own process.
    pub fn local(&self, user: UserInfo) -> Local {
        let options = {
            let owner = Owner::Manager(user.name.clone());
            WriteOptions::new(Arc::new(user), false, FieldValidation::Ignore, owner)
        };
        Local {
            server: self.inner.clone(),
            options,
        }
    }
}

impl Local {
    fn resource(&self, object: &Value) -> Result<Arc<Resource>, ApiError> {
        let text = |key: &str| object[key].as_str().unwrap_or("");
        self.server
            .registry
            .find_kind(text("apiVersion"), text("kind"))
            .ok_or_else(ApiError::no_resource)
    }

    fn named(&self, api_version: &str, plural: &str) -> Result<Arc<Resource>, ApiError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.server
            .registry
            .find(group, version, plural)
            .ok_or_else(ApiError::no_resource)
    }

    /// The server's time.
    pub fn now(&self) -> jiff::Timestamp {
        self.server.now()
    }

    /// One object; none when it is missing.
    pub fn get(&self, api_version: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.named(api_version, plural).ok()?;
        let stored = self.server.store.get(&resource.key(namespace, name))?;
        Some(resource.whole(&stored))
    }

    /// All objects of a resource, in one namespace or (with an empty one) in all.
    pub fn list(&self, api_version: &str, plural: &str, namespace: &str) -> Vec<Value> {
        let Ok(resource) = self.named(api_version, plural) else {
            return Vec::new();
        };
        let prefix = resource.collection(namespace);
        match self.server.store.range(Range {
            prefix: &prefix,
            ..Range::default()
        }) {
            Ok(page) => page.entries.iter().map(|stored| resource.whole(stored)).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Creates an object, given with its apiVersion and kind.
    pub async fn create(&self, object: Value) -> Result<Value, ApiError> {
        let resource = self.resource(&object)?;
        let namespace = meta::namespace(&object).to_owned();
        let decoded = Decoded::from(object);
        let (content, _) = decode::object(&resource, decoded, FieldValidation::Ignore, decode::Origin::Body)
            .map_err(|refused| refused.of_body(&resource.kind, b""))?;
        let saved = create(&self.server, &resource, &namespace, content, &self.options).await?;
        Ok(finish(&resource, saved))
    }

    /// Replaces an object, its status apart; with a resource version in it only that version.
    pub async fn update(&self, object: Value) -> Result<Value, ApiError> {
        self.write(object, Part::Main).await
    }

    /// Replaces an object's status.
    pub async fn update_status(&self, object: Value) -> Result<Value, ApiError> {
        self.write(object, Part::Status).await
    }

    async fn write(&self, object: Value, part: Part) -> Result<Value, ApiError> {
        let resource = self.resource(&object)?;
        let (namespace, name) = (
            meta::namespace(&object).to_owned(),
            meta::name(&object).to_owned(),
        );
        let decoded = Decoded::from(object);
        let (content, _) = decode::object(&resource, decoded, FieldValidation::Ignore, decode::Origin::Body)
            .map_err(|refused| refused.of_body(&resource.kind, b""))?;
        let target = Target {
            resource: &resource,
            namespace: &namespace,
            name: &name,
            part,
        };
        let saved = update(&self.server, &target, &self.options, |_| Ok(content.clone())).await?;
        Ok(finish(&resource, saved))
    }

    /// Deletes an object at once, without grace; if `uid` is given, only the object that has it.
    pub async fn delete(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<(), ApiError> {
        let resource = self.named(api_version, plural)?;
        let wanted = DeleteOptions {
            uid: uid.map(str::to_owned),
            grace_period: Some(0),
            ..DeleteOptions::default()
        };
        match delete(&self.server, &resource, namespace, name, &wanted, &self.options).await? {
            Deleted::Gone(_) | Deleted::Going(_) => Ok(()),
        }
    }

    /// Every object that there is, and then every change, of all resources.
    pub fn changes(&self, buffer: usize) -> Changes {
        let (page, watch) = self.server.store.list_and_watch("/", buffer);
        Changes {
            server: self.server.clone(),
            first: page.entries.into_iter(),
            watch,
        }
    }
}

fn finish(resource: &Resource, saved: Saved) -> Value {
    match saved {
        Saved::Stored(stored) => resource.whole(&stored),
        Saved::Dry(mut content) | Saved::Gone(mut content) => {
            meta::set_type(&mut content, &resource.api_version(), &resource.kind);
            content
        }
    }
}

/// The objects of a server and their changes.
pub struct Changes {
    server: Arc<Inner>,
    first: std::vec::IntoIter<crate::object::Stored>,
    watch: Watch<Object>,
}

/// One change: which object, and whether it is gone. The object itself is read when somebody asks.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The resource of the object, in its stored version.
    pub resource: Arc<Resource>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Whether it was deleted.
    pub deleted: bool,
    stored: crate::object::Stored,
}

impl Changed {
    /// The object as it was then; its final state if it was deleted.
    pub fn object(&self) -> Value {
        self.resource.whole(&self.stored)
    }
}

impl Changes {
    /// The next change; none when the reader fell behind or the server ended, and must start over.
    pub async fn next(&mut self) -> Option<Changed> {
        loop {
            if let Some(stored) = self.first.next() {
                if let Some(changed) = self.make(stored, false) {
                    return Some(changed);
                }
                continue;
            }
            match self.watch.next().await {
                Next::Event(event) => {
                    let Event { kind, entry, .. } = &*event;
                    if let Some(changed) = self.make(entry.clone(), *kind == Kind::Delete) {
                        return Some(changed);
                    }
                }
                Next::Lagged | Next::Closed => return None,
            }
        }
    }

    fn make(&self, stored: crate::object::Stored, deleted: bool) -> Option<Changed> {
        let resource = crate::controllers::resource_of(&self.server, &stored.key)?;
        let (namespace, name) = resource.split_key(&stored.key);
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(Changed {
            resource,
            namespace,
            name,
            deleted,
            stored,
        })
    }
}
