//! Create: names, server-written metadata, admission, validation.

use machinery_store::Expect;
use machinery_value::Value;
use serde_json::json;

use crate::admission::{self, Operation};
use crate::object::Stored;
use crate::ops::{Saved, WriteOptions, decode, put};
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;
use crate::{meta, ownership, validate};

/// How often a generated name that is taken is drawn again.
const GENERATE_ATTEMPTS: usize = 8;

/// Creates `content`, which is decoded and defaulted, in `namespace`.
pub(crate) async fn create(
    server: &Inner,
    resource: &Resource,
    namespace: &str,
    content: Value,
    options: &WriteOptions,
) -> Result<Saved, ApiError> {
    create_if(server, resource, (namespace, ""), content, options, || Ok(())).await
}

/// Creates an object whose maker is asked for a leave of its own; that is told after what is wrong with the object. The place is
/// that of the request: a POST has no name in it.
pub(crate) async fn create_if(
    server: &Inner,
    resource: &Resource,
    (namespace, path_name): (&str, &str),
    mut content: Value,
    options: &WriteOptions,
    allowed: impl Fn() -> Result<(), ApiError>,
) -> Result<Saved, ApiError> {
    place_in_namespace(resource, namespace, &mut content)?;
    let generated = draw_name(&mut content, server);
    let now = server.now_text();
    {
        let meta = meta::meta_mut(&mut content);
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta.remove(field);
        }
        meta.insert("uid".into(), json!(server.new_uid()));
        meta.insert("creationTimestamp".into(), json!(now));
    }
    if !meta::resource_version(&content).is_empty() {
        return Err(ApiError::unclassified(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    meta::meta_mut(&mut content).remove("resourceVersion");
    ownership::track(server, resource, "", &options.owner, None, &mut content);
    admission::check_served(resource, meta::name(&content))?;
    admission::namespace::check_create(server, resource, namespace, meta::name(&content))?;
    prepare(resource, &mut content);
    meta::drop_repeated_owners(&mut content);
    admission::mutate(server, resource, &mut content, None, options)?;
    validate::create(server, resource, &mut content)?;
    admission::warn(resource, &content, None, options);
    allowed()?;
    let mut attempts = if generated { GENERATE_ATTEMPTS } else { 1 };
    loop {
        let name = meta::name(&content).to_owned();
        let asked = admission::Asked {
            resource,
            subresource: "",
            operation: Operation::Create,
            name: &name,
            path_name,
        };
        admission::validate(server, &asked, Some(&content), None, options)?;
        let key = resource.key(namespace, &name);
        if options.dry_run {
            if let Some(present) = server.store.get(&key) {
                return Err(taken(resource, &name, &present));
            }
            return Ok(Saved::Dry(content));
        }
        let attempt = if attempts > 1 {
            content.clone()
        } else {
            std::mem::take(&mut content)
        };
        match put(server, resource, &key, Expect::Absent, attempt).await? {
            Ok(stored) => return Ok(Saved::Stored(stored)),
            Err(_) if attempts > 1 => {
                attempts -= 1;
                meta::set_text(&mut content, "name", "");
                draw_name(&mut content, server);
            }
            Err(Some(present)) => return Err(taken(resource, &name, &present)),
            Err(None) => return Err(ApiError::already_exists(resource.subject(), &name)),
        }
    }
}

/// The refusal of a name that another object has, and perhaps not for long.
fn taken(resource: &Resource, name: &str, present: &Stored) -> ApiError {
    let mut error = ApiError::already_exists(resource.subject(), name);
    if present.value.links().deletion_timestamp.is_some() {
        error.message = format!("object is being deleted: {}", error.message);
    }
    error
}

/// The namespace of the path is the object's; another one in the body is a mistake.
pub(crate) fn place_in_namespace(
    resource: &Resource,
    namespace: &str,
    content: &mut Value,
) -> Result<(), ApiError> {
    if resource.namespaced {
        let own = meta::namespace(content);
        if !own.is_empty() && own != namespace {
            return Err(other_namespace());
        }
        meta::set_text(content, "namespace", namespace);
    } else {
        meta::meta_mut(content).remove("namespace");
    }
    Ok(())
}

/// The refusal of an object of another namespace than the path's.
pub(crate) fn other_namespace() -> ApiError {
    ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// Draws a name from `generateName` when there is none. Returns whether it did.
fn draw_name(content: &mut Value, server: &Inner) -> bool {
    let base = meta::text(content, "generateName");
    if base.is_empty() || !meta::name(content).is_empty() {
        return false;
    }
    // A name has at most 63 characters, five of them drawn.
    let cut = base
        .char_indices()
        .map(|(i, _)| i)
        .chain([base.len()])
        .take_while(|i| *i <= 58)
        .last()
        .unwrap_or(0);
    let name = format!("{}{}", &base[..cut], server.random_suffix());
    meta::set_text(content, "name", name);
    true
}

fn prepare(resource: &Resource, content: &mut Value) {
    match &resource.source {
        Source::BuiltIn { .. } => {
            machinery_kinds::strategy::prepare_create(resource.gvk(), content);
            // What the strategy put in place of what the client sent has its empty fields, too.
            if let Ok((complete, _)) =
                decode::normalize(&resource.group, &resource.version, &resource.kind, content.take())
            {
                *content = complete;
            }
            meta::strip_type(content);
        }
        Source::Custom(custom) => {
            if custom.has_status
                && let Value::Object(map) = content
            {
                map.remove("status");
            }
            meta::meta_mut(content).insert("generation".into(), json!(1));
        }
    }
}
