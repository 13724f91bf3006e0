//! PATCH: every patch type is a function from the present object to the wanted one.

use bytes::Bytes;
use http::Response;
use machinery_value::Value;
use machinery_value::decode::Decoded;
use machinery_value::field::{FieldError, FieldPath};

use crate::body::Body;
use crate::meta;
use crate::negotiate::{Accept, media_type};
use crate::ops::decode;
use crate::ops::update::{Part, Target, update};
use crate::resource::{Resource, Source};
use crate::serve::resources::write_options;
use crate::serve::{Call, respond};
use crate::status::{ApiError, Subject};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Answers a PATCH on a part of an object.
pub(crate) async fn answer(
    call: &Call,
    resource: &Resource,
    part: Part,
    accept: Accept,
    body: Bytes,
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "PatchOptions")?;
    if call.query.has("force") {
        let error = FieldError::forbidden(
            &FieldPath::from("force"),
            "may not be specified for non-apply patch",
        );
        return Err(ApiError::invalid(
            Subject {
                group: "meta.k8s.io",
                name: "PatchOptions",
            },
            "",
            &[error],
        ));
    }
    let patch = Patch::read(resource, &media_type(&call.headers), &body)?;
    let info = &call.info;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part,
    };
    let mut warnings = Vec::new();
    let saved = update(&call.server, &target, &options, |present| {
        let mut object = present.clone();
        meta::set_type(&mut object, &resource.api_version(), &resource.kind);
        patch.apply(resource, &mut object)?;
        let duplicates = patch.duplicates.clone();
        let (content, found) = decode::object(
            resource,
            Decoded {
                value: object,
                duplicates,
            },
            options.validation,
        )?;
        warnings = found;
        Ok(content)
    })
    .await?;
    let mut response = respond::saved(call, resource, 200, accept, saved)?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

/// A patch that was read and can be applied.
pub(crate) struct Patch {
    kind: Kind,
    value: Value,
    duplicates: Vec<String>,
}

enum Kind {
    Json,
    Merge,
    Strategic,
}

impl Patch {
    /// Reads a patch of one of the types that `resource` takes.
    pub(crate) fn read(resource: &Resource, media_type: &str, body: &[u8]) -> Result<Self, ApiError> {
        let built_in = matches!(resource.source, Source::BuiltIn { .. });
        let kind = match media_type {
            JSON_PATCH => Kind::Json,
            MERGE_PATCH => Kind::Merge,
            STRATEGIC_PATCH if built_in => Kind::Strategic,
            _ if built_in => {
                return Err(ApiError::unsupported_media_type(&[
                    JSON_PATCH,
                    MERGE_PATCH,
                    STRATEGIC_PATCH,
                ]));
            }
            _ => return Err(ApiError::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH])),
        };
        let decoded = decode::parse(crate::negotiate::BodyFormat::Json, body)?;
        if !matches!(kind, Kind::Json) && !decoded.value.is_object() {
            return Err(ApiError::bad_request(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                match decoded.value {
                    Value::Array(_) => "array",
                    Value::String(_) => "string",
                    Value::Number(_) => "number",
                    Value::Bool(_) => "bool",
                    _ => "null",
                }
            )));
        }
        Ok(Self {
            kind,
            value: decoded.value,
            duplicates: decoded.duplicates,
        })
    }

    /// Turns the present object into the wanted one.
    pub(crate) fn apply(&self, resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
        use machinery_value::{json_patch, merge_patch, strategic};
        match self.kind {
            Kind::Json => json_patch::apply(object, &self.value).map_err(|error| match error {
                json_patch::PatchError::TooManyOperations(_) => ApiError::too_large(error.to_string()),
                json_patch::PatchError::Undecodable(_) => ApiError::bad_request(error.to_string()),
                _ => {
                    ApiError::unprocessable("the server rejected our request due to an error in our request")
                }
            }),
            Kind::Merge => {
                merge_patch::apply(object, &self.value);
                Ok(())
            }
            Kind::Strategic => match resource.schema() {
                Some(schema) => strategic::apply(schema, object, &self.value).map_err(strategic_error),
                None => {
                    merge_patch::apply(object, &self.value);
                    Ok(())
                }
            },
        }
    }
}

fn strategic_error(error: machinery_value::strategic::StrategicError) -> ApiError {
    match error.status() {
        422 => ApiError::unprocessable(error.to_string()),
        500 => ApiError::unclassified(error.to_string()),
        _ => ApiError::bad_request(error.to_string()),
    }
}
