//! Answers: objects and lists in the shape and encoding that the client accepts.

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode, header};
use machinery_table::{
    IncludeObject, ListMeta, Printer, TableBuilder, object_table, partial_object_metadata,
    partial_object_metadata_list,
};
use machinery_value::Value;
use serde_json::{Map, json};

use crate::body::Body;
use crate::meta;
use crate::negotiate::{Accept, Encoding, Shape};
use crate::object::Stored;
use crate::ops::Saved;
use crate::ops::read::Listing;
use crate::resource::{Resource, Source};
use crate::serve::Call;
use crate::status::ApiError;

/// An answer of JSON bytes in pieces.
pub(crate) fn json_chunks(code: u16, chunks: impl IntoIterator<Item = Bytes>) -> Response<Body> {
    with_type(code, Body::chunks(chunks), "application/json")
}

/// An answer of one JSON value.
pub(crate) fn json_value(code: u16, value: &Value) -> Response<Body> {
    json_chunks(code, [Bytes::from(machinery_value::encode::to_vec(value))])
}

fn with_type(code: u16, body: Body, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A value in the client's encoding.
pub(crate) fn value(code: u16, accept: Accept, value: &Value) -> Response<Body> {
    match accept.encoding {
        Encoding::Json => json_value(code, value),
        Encoding::Yaml => with_type(
            code,
            Body::full(machinery_value::encode::to_yaml(value)),
            "application/yaml",
        ),
    }
}

/// A `Status` that is no refusal.
pub(crate) fn status(call: &Call, code: u16, accept: Accept, status: Value) -> Response<Body> {
    let response = value(code, accept, &status);
    if let Some(trail) = &call.trail {
        trail.answers(status);
    }
    response
}

/// Adds `Warning` headers.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, header);
        }
    }
}

/// Whether a request is for the object itself, which is shown without what reads leave out; subresources show it all.
fn is_main(call: &Call) -> bool {
    call.info.subresource.is_empty()
}

/// One stored object.
pub(crate) fn stored(
    call: &Call,
    resource: &Resource,
    code: u16,
    accept: Accept,
    stored: &Stored,
) -> Result<Response<Body>, ApiError> {
    let as_encoded = is_main(call) || resource.serves_as_stored(&stored.value);
    if as_encoded && accept.shape == Shape::Object && accept.encoding == Encoding::Json {
        return Ok(json_chunks(code, resource.encode(stored)));
    }
    let object = if is_main(call) {
        resource.shown(&stored.value)
    } else {
        resource.content(&stored.value)
    };
    content(call, resource, code, accept, object)
}

/// What a write left behind.
pub(crate) fn saved(
    call: &Call,
    resource: &Resource,
    code: u16,
    accept: Accept,
    saved: Saved,
) -> Result<Response<Body>, ApiError> {
    match saved {
        Saved::Stored(entry) => stored(call, resource, code, accept, &entry),
        Saved::Dry(mut object) => {
            if is_main(call) {
                resource.hide(&mut object);
            }
            content(call, resource, code, accept, object)
        }
        // The last state of what is gone is shown as it was stored.
        Saved::Gone(object) => content(call, resource, code, accept, object),
    }
}

/// One object, given as a content without apiVersion and kind.
pub(crate) fn content(
    call: &Call,
    resource: &Resource,
    code: u16,
    accept: Accept,
    mut object: Value,
) -> Result<Response<Body>, ApiError> {
    meta::set_type(&mut object, &resource.api_version(), &resource.kind);
    let shaped = match accept.shape {
        Shape::Object => object,
        Shape::Partial => partial_object_metadata(&object),
        Shape::Table => object_table(
            &printer(resource),
            &object,
            include(call)?,
            true,
            call.server.now(),
        ),
        Shape::PartialList => return Err(wrong_shape(resource, "List", "not a list", "")),
        Shape::Discovery => return Err(ApiError::not_acceptable(crate::negotiate::OFFERED)),
    };
    Ok(value(code, accept, &shaped))
}

/// A list.
pub(crate) fn list(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    listing: &Listing,
) -> Result<Response<Body>, ApiError> {
    let meta = ListMeta {
        resource_version: listing.revision.to_string(),
        r#continue: listing.next.clone().unwrap_or_default(),
        remaining_item_count: listing.remaining.and_then(|n| i64::try_from(n).ok()),
    };
    let metadata = list_metadata(&meta, resource.custom().is_some());
    let shaped = match accept.shape {
        Shape::Object if accept.encoding == Encoding::Json => {
            return Ok(json_list(resource, &metadata, listing));
        }
        Shape::Object => {
            let items: Vec<Value> = listing.items.iter().map(|i| list_item(resource, i)).collect();
            json!({"kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata, "items": items})
        }
        Shape::Partial => return Err(wrong_shape(resource, "", "a list", "List")),
        Shape::PartialList => {
            let items: Vec<Value> = listing.items.iter().map(|i| resource.whole(i)).collect();
            partial_object_metadata_list(&items, meta)
        }
        Shape::Table => {
            let printer = printer(resource);
            let mut table = TableBuilder::new(&printer, include(call)?, call.server.now());
            for item in &listing.items {
                table.push(&resource.whole(item));
            }
            table.finish(meta)
        }
        Shape::Discovery => return Err(ApiError::not_acceptable(crate::negotiate::OFFERED)),
    };
    Ok(value(200, accept, &shaped))
}

/// A client that asked for the metadata of one where there are many, or the other way round.
fn wrong_shape(resource: &Resource, asked: &str, is: &str, suffix: &str) -> ApiError {
    let package = match resource.group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    };
    ApiError::wrong_shape(format!(
        "you requested PartialObjectMetadata{asked}, but the requested object is {is} (*{package}.{}{suffix})",
        resource.kind
    ))
}

/// Items of built-in lists carry no type, those of custom lists do.
fn list_item(resource: &Resource, item: &Stored) -> Value {
    match resource.source {
        Source::BuiltIn { .. } => resource.shown(&item.value),
        Source::Custom(_) => resource.whole(item),
    }
}

/// A list without a parse: the stored bytes, one after the other.
fn json_list(resource: &Resource, metadata: &Value, listing: &Listing) -> Response<Body> {
    let size: usize = listing.items.iter().map(|i| i.value.body().len() + 64).sum();
    let mut out = BytesMut::with_capacity(size + 256);
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        Value::from(resource.list_kind.as_str()),
        Value::from(resource.api_version()),
    );
    out.extend_from_slice(head.as_bytes());
    for (index, item) in listing.items.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b",");
        }
        match resource.source {
            Source::BuiltIn { .. } if resource.serves_as_stored(&item.value) => {
                out.extend_from_slice(item.value.body());
            }
            Source::BuiltIn { .. } => {
                out.extend_from_slice(&machinery_value::encode::to_vec(&resource.shown(&item.value)));
            }
            Source::Custom(_) => {
                for piece in resource.encode(item) {
                    out.extend_from_slice(&piece);
                }
            }
        }
    }
    out.extend_from_slice(b"]}");
    json_chunks(200, [out.freeze()])
}

/// Lists of custom resources always say whether they go on.
fn list_metadata(meta: &ListMeta, custom: bool) -> Value {
    let mut out = Map::new();
    out.insert("resourceVersion".into(), json!(meta.resource_version));
    if custom || !meta.r#continue.is_empty() {
        out.insert("continue".into(), json!(meta.r#continue));
    }
    if let Some(remaining) = meta.remaining_item_count {
        out.insert("remainingItemCount".into(), json!(remaining));
    }
    Value::Object(out)
}

/// What prints the objects of a resource as rows.
pub(crate) fn printer(resource: &Resource) -> Printer {
    match &resource.source {
        Source::BuiltIn { .. } => Printer::builtin(&resource.group, &resource.version, &resource.kind),
        Source::Custom(custom) => Printer::custom(custom.columns.clone()),
    }
}

/// What the client wants each row to carry.
pub(crate) fn include(call: &Call) -> Result<IncludeObject, ApiError> {
    IncludeObject::parse(Some(call.query.get("includeObject"))).map_err(ApiError::bad_request)
}
