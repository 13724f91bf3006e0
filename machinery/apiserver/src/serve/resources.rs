//! The verbs on resources.

use bytes::Bytes;
use http::{Method, Response};
use machinery_value::Value;
use serde_json::json;

use crate::body::Body;
use crate::negotiate::{Accept, body_format};
use crate::ops::delete::{DeleteOptions, Deleted, Propagation, delete};
use crate::ops::select::Selection;
use crate::ops::update::{Part, Target, update};
use crate::ops::{FieldValidation, WriteOptions, create, decode, read};
use crate::resource::Resource;
use crate::serve::{Call, patch, respond, reviews, subresources, watch};
use crate::status::{ApiError, Subject};
use crate::{meta, ops};

/// The most objects that one deletecollection deletes before it looks again.
const DELETE_PAGE: usize = 500;

/// Answers a request about a resource.
pub(crate) async fn dispatch(call: &Call, method: &Method, body: Bytes) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    let Some(resource) = call
        .server
        .registry
        .find(&info.group, &info.version, &info.resource)
    else {
        return Ok(crate::serve::text(404, "404 page not found\n"));
    };
    let in_namespace = !info.namespace.is_empty() && info.resource != "namespaces";
    if in_namespace != resource.namespaced
        && !(resource.namespaced && info.name.is_empty() && info.verb != "create")
    {
        return Err(ApiError::no_resource());
    }
    if info.verb == "watch" && info.subresource.is_empty() {
        return watch::answer(call, &resource, Accept::parse(&call.headers)?);
    }
    let resource = &*resource;
    if let Some(review) = reviews::answer(call, resource, method, &body)? {
        return Ok(review);
    }
    if !info.subresource.is_empty() {
        return subresources::dispatch(call, resource, method, body).await;
    }
    if !resource.verbs.iter().any(|v| v == info.verb) {
        return Err(ApiError::method_not_allowed());
    }
    let accept = Accept::parse(&call.headers)?;
    match info.verb {
        "get" => {
            let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
            respond::stored(call, resource, 200, accept, &stored)
        }
        "list" => {
            let selection = Selection::parse(resource, &call.query, &info.name)?;
            let listing = read::list(&call.server, resource, &info.namespace, &selection, &call.query)?;
            respond::list(call, resource, accept, &listing)
        }
        "create" if info.name.is_empty() => post(call, resource, accept, &body).await,
        "update" if !info.name.is_empty() => put(call, resource, Part::Main, accept, &body).await,
        "patch" if !info.name.is_empty() => patch::answer(call, resource, Part::Main, accept, body).await,
        "delete" => remove(call, resource, accept, &body).await,
        "deletecollection" => remove_collection(call, resource, accept, &body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// The options of a write from its query.
pub(crate) fn write_options(call: &Call, kind: &str) -> Result<WriteOptions, ApiError> {
    let invalid = |error| {
        ApiError::invalid(
            Subject {
                group: "meta.k8s.io",
                name: kind,
            },
            "",
            &[error],
        )
    };
    use machinery_value::field::{FieldError, FieldPath};
    for value in call.query.all("dryRun") {
        if value != "All" && !value.is_empty() {
            let path = FieldPath::from("dryRun");
            return Err(invalid(FieldError::not_supported(
                &path,
                &json!([value]),
                &["All"],
            )));
        }
    }
    let validation = match call.query.get("fieldValidation") {
        "Ignore" => FieldValidation::Ignore,
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        other => {
            let path = FieldPath::from("fieldValidation");
            let listed = ["Ignore", "Strict", "Warn"];
            return Err(invalid(FieldError::not_supported(&path, &json!(other), &listed)));
        }
    };
    let manager = call.query.get("fieldManager");
    if manager.len() > 128 {
        return Err(invalid(FieldError::too_long(
            &FieldPath::from("fieldManager"),
            128,
        )));
    }
    Ok(WriteOptions {
        user: call.user.clone(),
        dry_run: call.query.get("dryRun") == "All",
        validation,
    })
}

async fn post(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "CreateOptions")?;
    let decoded = decode::parse(body_format(&call.headers)?, body)?;
    let (content, warnings) = decode::object(resource, decoded, options.validation)?;
    let saved = create::create(&call.server, resource, &call.info.namespace, content, &options).await?;
    let mut response = respond::saved(call, resource, 201, accept, saved)?;
    respond::warn(&mut response, &warnings);
    deprecation(resource, &mut response);
    Ok(response)
}

/// Replaces an object, or its status.
pub(crate) async fn put(
    call: &Call,
    resource: &Resource,
    part: Part,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "UpdateOptions")?;
    let decoded = decode::parse(body_format(&call.headers)?, body)?;
    let (content, warnings) = decode::object(resource, decoded, options.validation)?;
    let info = &call.info;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part,
    };
    let result = update(&call.server, &target, &options, |_| Ok(content.clone())).await;
    let (code, saved) = match result {
        Err(error) if error.is_not_found() && part == Part::Main && creates_on_update(resource) => {
            let mut content = content.clone();
            let own = meta::name(&content);
            if !own.is_empty() && own != info.name {
                return Err(error);
            }
            meta::set_text(&mut content, "name", info.name.clone());
            (
                201,
                create::create(&call.server, resource, &info.namespace, content, &options).await?,
            )
        }
        other => (200, other?),
    };
    let mut response = respond::saved(call, resource, code, accept, saved)?;
    respond::warn(&mut response, &warnings);
    deprecation(resource, &mut response);
    Ok(response)
}

fn creates_on_update(resource: &Resource) -> bool {
    resource.custom().is_none() && machinery_kinds::strategy::allows_create_on_update(resource.gvk())
}

fn deprecation(resource: &Resource, response: &mut Response<Body>) {
    if let Some(warning) = resource.custom().and_then(|c| c.deprecation.clone()) {
        respond::warn(response, &[warning]);
    }
}

/// DeleteOptions from body and query; the query wins nothing, it only fills in.
fn delete_options(call: &Call, body: &[u8]) -> Result<(DeleteOptions, WriteOptions), ApiError> {
    let mut options = DeleteOptions::default();
    let mut write = write_options(call, "DeleteOptions")?;
    let mut orphan = None;
    let mut propagation = call.query.get("propagationPolicy").to_owned();
    if call.query.has("gracePeriodSeconds") {
        options.grace_period = call.query.get("gracePeriodSeconds").parse().ok();
    }
    if call.query.has("orphanDependents") {
        orphan = Some(call.query.flag("orphanDependents"));
    }
    if !body.is_empty() {
        let value = decode::parse(body_format(&call.headers)?, body)?.value;
        let (value, _) = decode::normalize("meta.k8s.io", "v1", "DeleteOptions", value)?;
        let text = |v: &Value| v.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        options.uid = text(&value["preconditions"]["uid"]);
        options.resource_version = text(&value["preconditions"]["resourceVersion"]);
        options.grace_period = value["gracePeriodSeconds"].as_i64().or(options.grace_period);
        orphan = value["orphanDependents"].as_bool().or(orphan);
        if let Some(policy) = text(&value["propagationPolicy"]) {
            propagation = policy;
        }
        if value["dryRun"]
            .as_array()
            .is_some_and(|list| list.iter().any(|v| v == "All"))
        {
            write.dry_run = true;
        }
    }
    options.propagation = match propagation.as_str() {
        "" => orphan.map(|orphan| {
            if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        }),
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        other => {
            use machinery_value::field::{FieldError, FieldPath};
            let error = FieldError::not_supported(
                &FieldPath::from("propagationPolicy"),
                &json!(other),
                &["Background", "Foreground", "Orphan", "nil"],
            );
            return Err(ApiError::invalid(
                Subject {
                    group: "meta.k8s.io",
                    name: "DeleteOptions",
                },
                "",
                &[error],
            ));
        }
    };
    Ok((options, write))
}

async fn remove(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let (wanted, options) = delete_options(call, body)?;
    let info = &call.info;
    match delete(
        &call.server,
        resource,
        &info.namespace,
        &info.name,
        &wanted,
        &options,
    )
    .await?
    {
        Deleted::Going(object) => respond::content(call, resource, 200, accept, object),
        Deleted::Gone(object) if returns_deleted(resource) => {
            respond::content(call, resource, 200, accept, object)
        }
        Deleted::Gone(object) => {
            let mut details = json!({"name": info.name, "kind": resource.plural, "uid": meta::uid(&object)});
            if !resource.group.is_empty() {
                details["group"] = json!(resource.group);
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
            });
            Ok(respond::value(200, accept, &status))
        }
    }
}

/// Kinds whose deletion answers with the object itself, as the real server's registries declare.
fn returns_deleted(resource: &Resource) -> bool {
    resource.group.is_empty()
        && matches!(
            resource.kind.as_str(),
            "Pod"
                | "Service"
                | "ServiceAccount"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "PodTemplate"
                | "ResourceQuota"
        )
}

async fn remove_collection(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let (wanted, options) = delete_options(call, body)?;
    let selection = Selection::parse(resource, &call.query, "")?;
    let listing = read::list(
        &call.server,
        resource,
        &call.info.namespace,
        &selection,
        &call.query,
    )?;
    let mut kept = Vec::new();
    for chunk in listing.items.chunks(DELETE_PAGE) {
        for item in chunk {
            let (namespace, name) = resource.split_key(&item.key);
            match delete(&call.server, resource, namespace, name, &wanted, &options).await {
                Ok(_) => kept.push(item.clone()),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    let listing = ops::read::Listing {
        items: kept,
        ..listing
    };
    respond::list(call, resource, accept, &listing)
}
