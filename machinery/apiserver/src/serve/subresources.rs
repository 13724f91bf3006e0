//! Subresources: status, scale, finalize, token, eviction, binding.

use bytes::Bytes;
use http::{Method, Response};
use machinery_kinds::Gvk;
use machinery_value::Value;
use serde_json::json;

use crate::body::Body;
use crate::negotiate::{Accept, body_format, media_type};
use crate::ops::delete::{DeleteOptions, delete};
use crate::ops::update::{Part, Target, update};
use crate::ops::{Saved, decode, read};
use crate::ownership::{Owner, scale_ownership};
use crate::resource::Resource;
use crate::serve::writes::{put, read_body, write_options};
use crate::serve::{Call, patch, respond};
use crate::status::{ApiError, Subject};
use crate::{meta, scale, tokens};

const SCALE: Gvk<'static> = Gvk {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
};

/// A body as an object of a type that the resource's own is not.
fn read_typed(call: &Call, wanted: Gvk<'_>, body: &[u8]) -> Result<Value, ApiError> {
    decode::parse(body_format(&call.headers)?, body)
        .and_then(|decoded| decode::typed(wanted, decoded.value))
        .map_err(|refused| refused.of_body(wanted.kind, body))
}

/// Answers a request about a subresource.
pub(crate) async fn dispatch(
    call: &Call,
    resource: &Resource,
    method: &Method,
    body: Bytes,
) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    let Some(sub) = resource.subresource(&info.subresource) else {
        return Err(match resource.custom() {
            Some(_) => ApiError::not_found(resource.subject(), &info.name),
            None => ApiError::no_resource(),
        });
    };
    if !sub.verbs.iter().any(|v| v == info.verb) {
        return Err(ApiError::method_not_allowed());
    }
    let accept = Accept::parse(&call.headers)?;
    match (sub.name.as_str(), info.verb) {
        ("status", "get") => {
            let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
            respond::stored(call, resource, 200, accept, &stored)
        }
        ("status", "update") => put(call, resource, Part::Status, accept, &body).await,
        ("status", "patch") => patch::answer(call, resource, Part::Status, accept, body).await,
        ("scale", verb) => scale_answer(call, resource, verb, accept, &body).await,
        ("finalize", _) => finalize(call, resource, accept, &body).await,
        ("token", "create") => token(call, resource, accept, &body).await,
        ("eviction", "create") => evict(call, resource, accept, &body).await,
        ("binding", "create") => bind(call, resource, accept, &body).await,
        _ if method == Method::GET && sub.kind == resource.kind => {
            let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
            respond::stored(call, resource, 200, accept, &stored)
        }
        (name, _) => Err(ApiError::bad_request(format!(
            "subresource \"{name}\" needs a node that runs containers; this server has none"
        ))),
    }
}

async fn scale_answer(
    call: &Call,
    resource: &Resource,
    verb: &str,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    if verb == "get" {
        let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
        let view = scale::view(resource, &resource.content(&stored.value));
        return Ok(respond::value(200, accept, &view));
    }
    let mut options = write_options(
        call,
        if verb == "patch" {
            "PatchOptions"
        } else {
            "UpdateOptions"
        },
    )?;
    let wanted = if verb == "update" {
        Some(read_typed(call, SCALE, body)?)
    } else {
        None
    };
    let scale_patch = if verb == "patch" {
        Some(patch::Patch::read(resource, &media_type(&call.headers), body)?)
    } else {
        None
    };
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part: Part::Main,
    };
    let owner = std::mem::replace(&mut options.owner, Owner::AsGiven);
    let saved = update(&call.server, &target, &options, |present| {
        let view = match (&wanted, &scale_patch) {
            (Some(wanted), _) => wanted.clone(),
            (None, Some(patch)) => {
                let mut view = scale::view(resource, present);
                patch.apply(resource, &mut view)?;
                decode::typed(SCALE, view).map_err(|refused| refused.of_body(SCALE.kind, body))?
            }
            (None, None) => scale::view(resource, present),
        };
        let mut content = scale::apply(resource, present, &view)?;
        scale_ownership(&call.server, resource, &owner, present, &view, &mut content);
        Ok(content)
    })
    .await?;
    let content = match saved {
        Saved::Stored(stored) => resource.content(&stored.value),
        Saved::Dry(content) | Saved::Gone(content) => content,
    };
    Ok(respond::value(200, accept, &scale::view(resource, &content)))
}

/// A namespace's own finalizers, which only this subresource changes.
async fn finalize(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "UpdateOptions")?;
    let wanted = read_body(call, resource, &options, body)?;
    let target = Target {
        resource,
        namespace: &call.info.namespace,
        name: &call.info.name,
        part: Part::Whole,
    };
    let saved = update(&call.server, &target, &options, |present| {
        let mut content = present.clone();
        if !meta::resource_version(&wanted).is_empty() {
            meta::set_text(&mut content, "resourceVersion", meta::resource_version(&wanted));
        }
        match wanted["spec"].get("finalizers") {
            Some(list) => content["spec"]["finalizers"] = list.clone(),
            None => {
                if let Some(spec) = content["spec"].as_object_mut() {
                    spec.remove("finalizers");
                }
            }
        }
        Ok(content)
    })
    .await?;
    respond::saved(call, resource, 200, accept, saved)
}

async fn token(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
    let request = read_typed(
        call,
        Gvk::new("authentication.k8s.io", "v1", "TokenRequest"),
        body,
    )?;
    let account = resource.content(&stored.value);
    let answer = tokens::answer_request(&call.server, &account, &request)?;
    Ok(respond::value(201, accept, &answer))
}

/// Eviction here is a delete: no disruption budget is counted (see the handbook's list of kinds).
async fn evict(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "CreateOptions")?;
    let eviction = read_typed(call, Gvk::new("policy", "v1", "Eviction"), body)?;
    let info = &call.info;
    let name = meta::name(&eviction);
    if !name.is_empty() && name != info.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    let wanted = &eviction["deleteOptions"];
    let wanted = DeleteOptions {
        uid: text(&wanted["preconditions"]["uid"]),
        resource_version: text(&wanted["preconditions"]["resourceVersion"]),
        propagation: None,
        grace_period: wanted["gracePeriodSeconds"].as_i64(),
    };
    delete(
        &call.server,
        resource,
        &info.namespace,
        &info.name,
        &wanted,
        &options,
    )
    .await?;
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(respond::value(201, accept, &status))
}

/// Puts a Pod on a node.
async fn bind(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "CreateOptions")?;
    let value = read_typed(call, Gvk::new("", "v1", "Binding"), body)?;
    let node = value["target"]["name"].as_str().unwrap_or("").to_owned();
    let info = &call.info;
    let now = call.server.now_text();
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part: Part::Whole,
    };
    update(&call.server, &target, &options, |present| {
        if present["spec"]["nodeName"]
            .as_str()
            .is_some_and(|n| !n.is_empty())
        {
            let node = present["spec"]["nodeName"].as_str().unwrap_or("");
            let why = format!("pod {} is already assigned to node {node:?}", info.name);
            let subject = Subject { group: "", name: "pods/binding" };
            return Err(ApiError::conflict(subject, &info.name, why));
        }
        let mut content = present.clone();
        content["spec"]["nodeName"] = json!(node);
        let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
        if !content["status"]["conditions"].is_array() {
            content["status"]["conditions"] = json!([]);
        }
        if let Some(list) = content["status"]["conditions"].as_array_mut() {
            list.retain(|c| c["type"] != "PodScheduled");
            list.push(scheduled);
        }
        Ok(content)
    })
    .await?;
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(respond::value(201, accept, &status))
}
