//! What policies ask for, read from the server.

use std::cell::OnceCell;
use std::sync::Arc;

use machinery_auth::user::{service_account_groups, service_account_user};
use machinery_auth::{Attributes, RbacIndex, UserInfo};
use machinery_schema::cel::{Authority, Authorizer, Question, Verdict};
use machinery_store::Range;
use machinery_value::labels::LabelSelector;
use machinery_value::{Map, Value};
use parking_lot::RwLock;
use serde_json::json;

use super::Request;
use super::decide::World;
use super::matching::{Asked, Kind, Matched, Neighbours, Place};
use crate::admission::Operation;
use crate::authenticate::core_object;
use crate::meta;
use crate::ops::WriteOptions;
use crate::registry;
use crate::resource::Resource;
use crate::server::Inner;

/// A request and the server that it reached.
pub(super) struct Gathered<'a> {
    server: &'a Inner,
    request: &'a Request<'a>,
    place: Place,
    namespace: String,
    equivalents: OnceCell<(Vec<Arc<Resource>>, Vec<Place>)>,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(server: &'a Inner, request: &'a Request<'a>) -> Self {
        let resource = request.resource;
        let object = request.new.or(request.old).unwrap_or(&Value::Null);
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let namespace = if is_namespace {
            request.name
        } else {
            meta::namespace(object)
        };
        Self {
            server,
            request,
            place: place(resource, request.subresource),
            namespace: namespace.to_owned(),
            equivalents: OnceCell::new(),
        }
    }

    pub(super) fn asked(&self) -> Asked<'_> {
        let Request {
            subresource,
            operation,
            name,
            new,
            old,
            ..
        } = *self.request;
        Asked {
            operation,
            place: &self.place,
            subresource,
            namespace: &self.namespace,
            name,
            new,
            old,
        }
    }

    fn others(&self) -> &(Vec<Arc<Resource>>, Vec<Place>) {
        self.equivalents.get_or_init(|| {
            let Request {
                resource,
                subresource,
                ..
            } = *self.request;
            let catalog = self.server.registry.custom();
            let all = if resource.custom().is_some() {
                &*catalog
            } else {
                registry::built_in()
            };
            let other = |other: &&Arc<Resource>| {
                other.prefix == resource.prefix
                    && (&other.group, &other.version) != (&resource.group, &resource.version)
                    && (subresource.is_empty() || other.subresource(subresource).is_some())
            };
            let resources: Vec<Arc<Resource>> = all.resources().iter().filter(other).cloned().collect();
            let places = resources
                .iter()
                .map(|resource| place(resource, subresource))
                .collect();
            (resources, places)
        })
    }

    fn place_of(&self, matched: Matched) -> &Place {
        match matched {
            Matched::Itself => &self.place,
            Matched::Equivalent(index) => self.others().1.get(index).unwrap_or(&self.place),
        }
    }

    fn param_resource(&self, kind: &Kind) -> Option<Arc<Resource>> {
        self.server.registry.find_kind(&kind.api_version(), &kind.kind)
    }
}

fn place(resource: &Resource, subresource: &str) -> Place {
    let (group, version, kind) = match resource.subresource(subresource) {
        Some(sub) => (&sub.group, &sub.version, &sub.kind),
        None => (&resource.group, &resource.version, &resource.kind),
    };
    Place {
        group: resource.group.clone(),
        version: resource.version.clone(),
        resource: resource.plural.clone(),
        kind: Kind {
            group: group.clone(),
            version: version.clone(),
            kind: kind.clone(),
        },
    }
}

impl Neighbours for Gathered<'_> {
    fn equivalents(&self) -> &[Place] {
        &self.others().1
    }

    fn namespace(&self, name: &str) -> Option<Value> {
        core_object(self.server, "namespaces", "", name)
    }
}

impl World for Gathered<'_> {
    fn objects(&self, matched: Matched) -> (Value, Value) {
        let place = self.place_of(matched);
        let target = match matched {
            Matched::Itself => None,
            Matched::Equivalent(index) => self.others().0.get(index),
        };
        let shaped = |content: Option<&Value>| {
            let Some(mut object) = content.cloned() else {
                return Value::Null;
            };
            // The kind of a subresource such as `scale` is the same for all versions.
            if let Some(target) = target.filter(|target| target.kind == place.kind.kind) {
                convert(self.request.resource, target, &mut object);
            }
            meta::set_type(&mut object, &place.kind.api_version(), &place.kind.kind);
            object
        };
        (shaped(self.request.new), shaped(self.request.old))
    }

    fn request(&self, matched: Matched) -> Value {
        let (at, own) = (self.place_of(matched), &self.place);
        let Request {
            subresource,
            operation,
            name,
            options,
            ..
        } = *self.request;
        let mut request = json!({
            "kind": kind_value(&at.kind),
            "resource": resource_value(at),
            "requestKind": kind_value(&own.kind),
            "requestResource": resource_value(own),
            "operation": operation.name(),
            "userInfo": user_value(&options.user),
            "dryRun": options.dry_run,
            "options": options_value(operation, options),
        });
        let texts = [
            ("subResource", subresource),
            ("requestSubResource", subresource),
            ("name", name),
            ("namespace", self.namespace.as_str()),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[key] = json!(text);
        }
        request
    }

    fn is_namespaced(&self, kind: &Kind) -> Option<bool> {
        self.param_resource(kind).map(|resource| resource.namespaced)
    }

    fn authorizer(&self) -> Authorizer {
        let request = Question {
            group: self.place.group.clone(),
            resource: self.place.resource.clone(),
            subresource: self.request.subresource.to_owned(),
            namespace: self.namespace.clone(),
            name: self.request.name.to_owned(),
            ..Question::default()
        };
        let roles = Roles {
            rbac: Arc::clone(&self.server.indexes.rbac),
            user: Arc::clone(&self.request.options.user),
        };
        Authorizer::new(Arc::new(roles), request)
    }

    fn param(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.param_resource(kind)?;
        let stored = self.server.store.get(&resource.key(namespace, name))?;
        Some(resource.whole(&stored))
    }

    fn params(&self, kind: &Kind, namespace: &str, selector: &LabelSelector) -> Vec<Value> {
        let Some(resource) = self.param_resource(kind) else {
            return Vec::new();
        };
        let prefix = resource.collection(namespace);
        let Ok(page) = self.server.store.range(Range {
            prefix: &prefix,
            ..Range::default()
        }) else {
            return Vec::new();
        };
        let selected = page
            .entries
            .iter()
            .filter(|stored| selector.matches(|key| stored.value.label(key)));
        selected.map(|stored| resource.whole(stored)).collect()
    }
}

/// What the roles say about whoever makes a request.
struct Roles {
    rbac: Arc<RwLock<RbacIndex>>,
    user: Arc<UserInfo>,
}

impl Authority for Roles {
    fn answer(&self, question: &Question) -> Verdict {
        // An account that is asked about has not proved who it is: it is in no group of those who have.
        let account = question.account.as_ref().map(|(namespace, name)| {
            UserInfo::new(
                service_account_user(namespace, name),
                service_account_groups(namespace),
            )
        });
        let user = account.as_ref().unwrap_or(&self.user);
        let attributes = match &question.path {
            Some(path) => Attributes::path(user, &question.verb, path),
            None => Attributes {
                subresource: &question.subresource,
                namespace: &question.namespace,
                name: &question.name,
                ..Attributes::resource(user, &question.verb, &question.group, &question.resource)
            },
        };
        let decision = self.rbac.read().authorize(&attributes);
        Verdict {
            allowed: decision.allowed,
            reason: decision.reason(),
            error: None,
        }
    }
}

/// Brings an object from one version's shape into another's.
fn convert(from: &Resource, to: &Resource, object: &mut Value) {
    if let Some(conversion) = from.conversion() {
        conversion.store(&from.kind, object);
    }
    if let Some(conversion) = to.conversion() {
        conversion.serve(&to.group, &to.version, &to.kind, object);
    }
}

fn kind_value(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn resource_value(place: &Place) -> Value {
    json!({"group": place.group, "version": place.version, "resource": place.resource})
}

/// A user; what is empty is left out.
pub(super) fn user_value(user: &UserInfo) -> Value {
    let mut value = Map::new();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            value.insert(key.to_owned(), json!(text));
        }
    }
    if !user.groups.is_empty() {
        value.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        value.insert("extra".to_owned(), json!(user.extra));
    }
    Value::Object(value)
}

/// The options of the operation, as far as they are known here.
pub(super) fn options_value(operation: Operation, options: &WriteOptions) -> Value {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut value = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if options.dry_run {
        value["dryRun"] = json!(["All"]);
    }
    if let Value::Object(value) = &mut value {
        value.extend(options.given.clone());
    }
    value
}
