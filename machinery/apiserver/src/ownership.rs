//! Who owns which field: managedFields for every write, and server-side apply.
//!
//! The rules are those of `machinery_fieldset`; this module tells it which versions a kind has, what they look like and
//! how one is turned into another.

use std::borrow::Cow;
use std::sync::Arc;

use machinery_fieldset::apply::ApplyError;
use machinery_fieldset::managed::Time;
use machinery_fieldset::scale::{SCALE_VERSION, to_object, to_scale};
use machinery_fieldset::{Path, Reset, Shape, Versions, Write, apply, update};
use machinery_value::Value;
use serde_json::json;

use crate::meta;
use crate::ops::decode;
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;

/// To whom the fields that a write changes belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// To nobody: the server itself writes, and leaves the list as it is.
    Server,
    /// To this manager.
    Manager(String),
    /// The list is worked out already.
    AsGiven,
}

/// The versions in which objects of one kind are served.
struct Family(Vec<Arc<Resource>>);

impl Family {
    fn of(server: &Inner, resource: &Resource) -> Self {
        let same = |r: &&Arc<Resource>| r.prefix == resource.prefix && r.kind == resource.kind;
        match &resource.source {
            Source::BuiltIn { .. } => Self(
                crate::registry::built_in()
                    .resources()
                    .iter()
                    .filter(same)
                    .cloned()
                    .collect(),
            ),
            Source::Custom(_) => Self(
                server
                    .registry
                    .custom()
                    .resources()
                    .iter()
                    .filter(same)
                    .cloned()
                    .collect(),
            ),
        }
    }

    fn find(&self, api_version: &str) -> Option<&Arc<Resource>> {
        self.0
            .iter()
            .find(|resource| resource.api_version() == api_version)
    }
}

impl Versions for Family {
    fn shape(&self, api_version: &str) -> Option<Shape<'_>> {
        let resource = self.find(api_version)?;
        Some(match (&resource.source, resource.schema()) {
            (Source::BuiltIn { .. }, Some(schema)) => Shape::built_in(schema),
            (Source::Custom(_), Some(schema)) => Shape::custom(schema),
            (_, None) => Shape::deduced(),
        })
    }

    fn convert<'v>(&self, object: &'v Value, from: &str, to: &str) -> Cow<'v, Value> {
        let (Some(from), Some(to)) = (self.find(from), self.find(to)) else {
            return Cow::Borrowed(object);
        };
        if from.conversion().is_none() && to.conversion().is_none() {
            return Cow::Borrowed(object);
        }
        let mut object = object.clone();
        if let Some(conversion) = from.conversion() {
            conversion.store(&from.kind, &mut object);
        }
        if let Some(conversion) = to.conversion() {
            conversion.serve(&to.group, &to.version, &to.kind, &mut object);
        }
        Cow::Owned(object)
    }
}

/// An object of this kind with nothing set.
fn empty(resource: &Resource) -> Value {
    match &resource.source {
        Source::BuiltIn { .. } => {
            decode::normalize(&resource.group, &resource.version, &resource.kind, json!({}))
                .map(|(value, _)| value)
                .unwrap_or_else(|_| json!({}))
        }
        Source::Custom(_) => json!({}),
    }
}

fn with_write<T>(
    server: &Inner,
    resource: &Resource,
    subresource: &str,
    manager: &str,
    work: impl FnOnce(&Write<'_>) -> T,
) -> T {
    let family = Family::of(server, resource);
    let reset = match &resource.source {
        Source::BuiltIn { .. } => Reset::built_in(&resource.group, &resource.kind, subresource),
        Source::Custom(custom) => Reset::custom(custom.has_status, subresource),
    };
    let now = Time::from_seconds(server.now().as_second());
    let write = Write {
        versions: &family,
        api_version: &resource.api_version(),
        kind: &resource.kind,
        subresource,
        reset: &reset,
        manager,
        now: now.unwrap_or_else(|| Time::from_seconds(0).expect("the epoch is a time")),
        empty: &empty(resource),
    };
    work(&write)
}

/// Gives what a create, an update or a patch changes to its manager. `live` is none for a create.
pub(crate) fn track(
    server: &Inner,
    resource: &Resource,
    subresource: &str,
    owner: &Owner,
    live: Option<&Value>,
    new: &mut Value,
) {
    match owner {
        Owner::AsGiven => {}
        Owner::Server => {
            let kept = live
                .and_then(|live| live["metadata"].get("managedFields"))
                .cloned();
            let metadata = meta::meta_mut(new);
            match kept {
                Some(list) => metadata.insert("managedFields".into(), list),
                None => metadata.remove("managedFields"),
            };
        }
        Owner::Manager(manager) => with_write(server, resource, subresource, manager, |write| match live {
            Some(live) => update(write, live, new),
            None => update(write, write.empty, new),
        }),
    }
}

/// What an apply makes of an object, or of nothing; with its managedFields, apiVersion and kind.
pub(crate) fn apply_object(
    server: &Inner,
    resource: &Resource,
    subresource: &str,
    manager: &str,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let result = with_write(server, resource, subresource, manager, |write| {
        apply(write, live.unwrap_or(write.empty), applied, force)
    });
    result.map(|applied| applied.object).map_err(refusal)
}

/// Why an apply is refused, for the client.
fn refusal(error: ApplyError) -> ApiError {
    match error {
        ApplyError::BadRequest(message) => ApiError::bad_request(message),
        ApplyError::Failed(message) => ApiError::unclassified(message),
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<Value> = conflicts
                .causes()
                .map(|(message, field)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}))
                .collect();
            ApiError::apply_conflict(conflicts.to_string(), causes)
        }
    }
}

/// Gives the replicas to whoever wrote them through the scale subresource: `content` is what becomes of `present`.
pub(crate) fn scale_ownership(
    server: &Inner,
    resource: &Resource,
    owner: &Owner,
    present: &Value,
    wanted: &Value,
    content: &mut Value,
) {
    let Owner::Manager(manager) = owner else { return };
    let mut new = wanted.clone();
    if let Some(metadata) = new["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let updated = with_scale(server, resource, manager, present, |write, live| {
        update(write, live, &mut new);
    });
    if updated.is_some() {
        own_scale(server, resource, present, &new, content);
    }
}

/// What an apply makes of an object's `Scale`, with the managedFields that the `Scale` has then: [`own_scale`] brings them back.
pub(crate) fn apply_scale(
    server: &Inner,
    resource: &Resource,
    manager: &str,
    present: &Value,
    applied: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let result = with_scale(server, resource, manager, present, |write, live| {
        apply(write, live, applied, force)
    });
    match result {
        Some(result) => result.map(|applied| applied.object).map_err(refusal),
        None => Err(ApiError::unclassified(
            "the managedFields of the object cannot be read",
        )),
    }
}

/// Gives an object the managedFields that its `Scale` got.
pub(crate) fn own_scale(
    server: &Inner,
    resource: &Resource,
    present: &Value,
    scale: &Value,
    content: &mut Value,
) {
    let paths = replica_paths(server, resource);
    let (before, after) = (
        present["metadata"].get("managedFields"),
        scale["metadata"].get("managedFields"),
    );
    if let Ok(list) = to_object(before, after, &resource.api_version(), &borrowed(&paths))
        && !list.is_empty()
    {
        meta::meta_mut(content).insert("managedFields".into(), Value::Array(list));
    }
}

/// A write of an object's `Scale`, and the `Scale` as it is; none if its managedFields cannot be read.
fn with_scale<R>(
    server: &Inner,
    resource: &Resource,
    manager: &str,
    present: &Value,
    work: impl FnOnce(&Write<'_>, &Value) -> R,
) -> Option<R> {
    let now = Time::from_seconds(server.now().as_second())?;
    let paths = replica_paths(server, resource);
    let mut live = crate::scale::view(resource, present);
    let fields = to_scale(present["metadata"].get("managedFields"), &borrowed(&paths)).ok()?;
    live["metadata"]["managedFields"] = Value::Array(fields);
    let schema = machinery_kinds::schemas::schema(machinery_kinds::Gvk::new("autoscaling", "v1", "Scale"));
    let versions: &[(&str, Shape<'_>)] =
        &[(SCALE_VERSION, schema.map_or_else(Shape::deduced, Shape::built_in))];
    let write = Write {
        versions: &versions,
        api_version: SCALE_VERSION,
        kind: "Scale",
        subresource: "scale",
        reset: &Reset::default(),
        manager,
        now,
        empty: &json!({}),
    };
    Some(work(&write, &live))
}

/// Where each version of a resource keeps its replicas.
fn replica_paths(server: &Inner, resource: &Resource) -> Vec<(String, Option<Path>)> {
    let family = Family::of(server, resource);
    let path = |member: &Arc<Resource>| match member.custom() {
        None => Some(Path::of_fields(&["spec", "replicas"])),
        Some(custom) => custom.scale.as_ref().map(|scale| {
            let fields: Vec<&str> = scale.spec_replicas.iter().map(String::as_str).collect();
            Path::of_fields(&fields)
        }),
    };
    let paths = family.0.iter().map(|member| (member.api_version(), path(member)));
    paths.collect()
}

fn borrowed(paths: &[(String, Option<Path>)]) -> Vec<(&str, Option<Path>)> {
    let each = paths
        .iter()
        .map(|(version, path)| (version.as_str(), path.clone()));
    each.collect()
}
