//! Answers: objects and lists in the shape and encoding that the client accepts.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use machinery_table::{IncludeObject, Printer, object_table, partial_object_metadata};
use machinery_value::Value;

use crate::body::Body;
use crate::meta;
use crate::negotiate::{Accept, Encoding, Shape};
use crate::object::Stored;
use crate::ops::Saved;
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

pub(super) fn with_type(code: u16, body: Body, content_type: &'static str) -> Response<Body> {
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

/// Adds `Warning` headers, in whatever script; only what holds control characters cannot be said in a header.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings.iter().filter(|text| !text.contains(char::is_control)) {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
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

/// A client that asked for the metadata of one where there are many, or the other way round.
pub(super) fn wrong_shape(resource: &Resource, asked: &str, is: &str, suffix: &str) -> ApiError {
    let package = match resource.group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    };
    ApiError::wrong_shape(format!(
        "you requested PartialObjectMetadata{asked}, but the requested object is {is} (*{package}.{}{suffix})",
        resource.kind
    ))
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
