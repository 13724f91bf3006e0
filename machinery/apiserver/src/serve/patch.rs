//! PATCH: every patch type is a function from the present object to the wanted one.

use bytes::Bytes;
use http::Response;
use machinery_value::decode::{Decoded, from_json};
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::gofmt::GoValue;
use machinery_value::strategic::StrategicError;
use machinery_value::{Value, json_patch, merge_patch, strategic};
use serde_json::json;

use crate::body::Body;
use crate::meta;
use crate::negotiate::{Accept, media_type};
use crate::ops::create::create;
use crate::ops::decode::{self, Refused};
use crate::ops::update::{Part, Target, update};
use crate::ownership::{Owner, apply_object};
use crate::resource::{Resource, Source};
use crate::serve::Call;
use crate::serve::writes::{finish, write_options};
use crate::status::{ApiError, Subject};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Answers a PATCH on a part of an object.
pub(crate) async fn answer(
    call: &Call,
    resource: &Resource,
    part: Part,
    accept: Accept,
    body: Bytes,
) -> Result<Response<Body>, ApiError> {
    if media_type(&call.headers) == APPLY_PATCH {
        return apply(call, resource, part, accept, &body).await;
    }
    let options = write_options(call, "PatchOptions")?;
    if call.query.has("force") {
        let error = FieldError::forbidden(
            &FieldPath::from("force"),
            "may not be specified for non-apply patch",
        );
        let kind = Subject {
            group: "meta.k8s.io",
            name: "PatchOptions",
        };
        return Err(ApiError::invalid(kind, "", &[error]));
    }
    let patch = Patch::read(resource, &media_type(&call.headers), &body)?;
    let info = &call.info;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part,
    };
    let result = update(&call.server, &target, &options, |present| {
        let mut object = present.clone();
        meta::set_type(&mut object, &resource.api_version(), &resource.kind);
        patch.apply(resource, &mut object)?;
        let shown = object.clone();
        let decoded = Decoded {
            value: object,
            duplicates: patch.duplicates.clone(),
        };
        let (content, warnings) = decode::object(resource, decoded, options.validation)
            .map_err(|refused| patch.refused(refused, &shown))?;
        warnings.into_iter().for_each(|warning| options.warn(warning));
        Ok(content)
    })
    .await;
    finish(call, resource, accept, &options, result.map(|saved| (200, saved)))
}

/// Answers a server-side apply: the object is made if it is missing.
async fn apply(
    call: &Call,
    resource: &Resource,
    part: Part,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let mut options = write_options(call, "PatchOptions")?;
    let manager = call.query.get("fieldManager");
    if manager.is_empty() {
        let error = FieldError::required(&FieldPath::from("fieldManager"), "is required for apply patch");
        let kind = Subject {
            group: "meta.k8s.io",
            name: "PatchOptions",
        };
        return Err(ApiError::invalid(kind, "", &[error]));
    }
    let Decoded {
        value: applied,
        duplicates,
    } = machinery_value::decode::from_yaml(body)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    let force = call.query.flag("force");
    let subresource = if part == Part::Status { "status" } else { "" };
    options.owner = Owner::AsGiven;
    let make = |live: Option<&Value>| {
        let object = apply_object(
            &call.server,
            resource,
            subresource,
            manager,
            live,
            &applied,
            force,
        )?;
        let shown = object.clone();
        let decoded = Decoded {
            value: object,
            duplicates: duplicates.clone(),
        };
        let (content, warnings) =
            decode::applied(resource, decoded, options.validation).map_err(|refused| {
                refused.of_patch(&json!(String::from_utf8_lossy(&machinery_value::encode::to_vec(
                    &shown
                ))))
            })?;
        warnings.into_iter().for_each(|warning| options.warn(warning));
        Ok(content)
    };
    let info = &call.info;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part,
    };
    let result = match update(&call.server, &target, &options, |present| {
        let mut live = present.clone();
        meta::set_type(&mut live, &resource.api_version(), &resource.kind);
        make(Some(&live))
    })
    .await
    {
        Err(error) if error.is_not_found() && part == Part::Main => {
            let mut content = make(None)?;
            if meta::name(&content).is_empty() {
                meta::set_text(&mut content, "name", info.name.clone());
            }
            create(&call.server, resource, &info.namespace, content, &options)
                .await
                .map(|saved| (201, saved))
        }
        other => other.map(|saved| (200, saved)),
    };
    finish(call, resource, accept, &options, result)
}

/// A patch that was read and can be applied.
pub(crate) struct Patch {
    kind: Kind,
    value: Value,
    duplicates: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
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
            STRATEGIC_PATCH => {
                return Err(ApiError::unsupported_media_type(&[
                    JSON_PATCH,
                    MERGE_PATCH,
                    APPLY_PATCH,
                ]));
            }
            _ if built_in => return Err(ApiError::unroutable_media_type()),
            _ => {
                return Err(ApiError::unsupported_media_type(&[
                    JSON_PATCH,
                    MERGE_PATCH,
                    APPLY_PATCH,
                ]));
            }
        };
        let undecodable = |why: &dyn std::fmt::Display| {
            let before = if kind == Kind::Strategic {
                ""
            } else {
                "error decoding patch: "
            };
            ApiError::bad_request(format!("{before}{why}"))
        };
        let Decoded { value, duplicates } = from_json(body).map_err(|error| undecodable(&error))?;
        let wanted = match kind {
            Kind::Json if !value.is_array() => "[]handlers.jsonPatchOp",
            Kind::Merge if value.is_null() => return Err(ApiError::bad_request("Invalid JSON Patch")),
            Kind::Merge | Kind::Strategic if !value.is_object() => "map[string]interface {}",
            _ => {
                return Ok(Self {
                    kind,
                    value,
                    duplicates,
                });
            }
        };
        let what = match value {
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            Value::Null => "null",
        };
        Err(undecodable(&format_args!(
            "json: cannot unmarshal {what} into Go value of type {wanted}"
        )))
    }

    /// Turns the present object into the wanted one.
    pub(crate) fn apply(&self, resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
        match (self.kind, resource.schema()) {
            (Kind::Json, _) => json_patch::apply(object, &self.value).map_err(|error| match error {
                json_patch::PatchError::TooManyOperations(_) => ApiError::too_large(error.to_string()),
                json_patch::PatchError::Undecodable(why) => {
                    ApiError::bad_request(format!("error decoding patch: {why}"))
                }
                json_patch::PatchError::Failed(_) => ApiError::unprocessable(),
            }),
            (Kind::Strategic, Some(schema)) => {
                strategic::apply(schema, object, &self.value).map_err(|error| self.strategic_error(&error))
            }
            _ => {
                merge_patch::apply(object, &self.value);
                Ok(())
            }
        }
    }

    /// The answer for a patch that turned an object into something else.
    fn refused(&self, refused: Refused, result: &Value) -> ApiError {
        match (self.kind, refused) {
            (Kind::Strategic, Refused::Unhandled { kind, version, why }) => {
                // Strategic patches are decoded by another reader, which says less about wrong types.
                let why = match why.rsplit_once(" of type ") {
                    Some((_, ty)) if why.starts_with("json: cannot unmarshal") => {
                        format!("unrecognized type: {ty}")
                    }
                    _ => why,
                };
                Refused::Unhandled { kind, version, why }.of_patch(&json!(GoValue(&self.value).to_string()))
            }
            (_, refused) => {
                let text = String::from_utf8_lossy(&machinery_value::encode::to_vec(result)).into_owned();
                refused.of_patch(&json!(text))
            }
        }
    }

    fn strategic_error(&self, error: &StrategicError) -> ApiError {
        match error.status() {
            422 => {
                let shown = json!(GoValue(&self.value).to_string());
                let error = FieldError::invalid(&FieldPath::new("patch"), &shown, error.to_string());
                ApiError::invalid(Subject { group: "", name: "" }, "", &[error])
            }
            500 => ApiError::unclassified(error.to_string()),
            _ => ApiError::bad_request(error.to_string()),
        }
    }
}
