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
use crate::ops::decode::{self, Refused};
use crate::ops::update::{Part, Target, update};
use crate::ops::upsert::update_or_create;
use crate::ops::{FieldValidation, WriteOptions};
use crate::ownership::{Owner, apply_object};
use crate::resource::{Resource, Source};
use crate::serve::writes::{finish, write_options};
use crate::serve::{Call, authorize_create};
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
    if Applied::is(call) {
        return apply(call, resource, part, accept, &body).await;
    }
    let options = write_options(call, "PatchOptions")?;
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
        let (content, warnings) = decode::object(
            resource,
            Decoded::from(object),
            options.validation,
            patch.origin(),
        )
        .map_err(|refused| patch.refused(refused, &shown))?;
        warnings.into_iter().for_each(|warning| options.warn(warning));
        Ok(content)
    })
    .await;
    finish(call, resource, accept, &options, result.map(|saved| (200, saved)))
}

/// Who applies says in whose name; only an apply can be forced.
pub(crate) fn check_options(call: &Call) -> Option<FieldError> {
    if Applied::is(call) {
        let path = FieldPath::from("fieldManager");
        let unnamed = call.query.get("fieldManager").is_empty();
        return unnamed.then(|| FieldError::required(&path, "is required for apply patch"));
    }
    let path = FieldPath::from("force");
    let why = "may not be specified for non-apply patch";
    call.query.has("force").then(|| FieldError::forbidden(&path, why))
}

/// What somebody applies, and in whose name.
pub(crate) struct Applied<'a> {
    pub(crate) manager: &'a str,
    pub(crate) value: Value,
    pub(crate) force: bool,
}

impl<'a> Applied<'a> {
    /// Whether a request is an apply.
    pub(crate) fn is(call: &Call) -> bool {
        media_type(&call.headers) == APPLY_PATCH
    }

    pub(crate) fn read(call: &'a Call, options: &WriteOptions, body: &[u8]) -> Result<Self, ApiError> {
        let manager = call.query.get("fieldManager");
        let Decoded { value, repeats, .. } = machinery_value::decode::from_yaml(body)
            .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
        // That keys are repeated is told by this reader alone; what is unknown is left for the schema to refuse.
        match options.validation {
            FieldValidation::Strict if !repeats.is_empty() => {
                return Err(ApiError::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {}",
                    decode::repeated(&repeats)
                )));
            }
            FieldValidation::Warn => repeats.into_iter().for_each(|warning| options.warn(warning)),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        Ok(Self {
            manager,
            value,
            force: call.query.flag("force"),
        })
    }
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
    let applied = Applied::read(call, &options, body)?;
    options.owner = Owner::AsGiven;
    let make = |live: Option<&Value>| {
        let object = apply_object(
            &call.server,
            resource,
            part.subresource(),
            applied.manager,
            live,
            &applied.value,
            applied.force,
        )?;
        let shown = object.clone();
        let (content, warnings) = decode::applied(resource, Decoded::from(object), options.validation)
            .map_err(|refused| {
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
    let change = |present: &Value| {
        let mut live = present.clone();
        meta::set_type(&mut live, &resource.api_version(), &resource.kind);
        make(Some(&live))
    };
    if part != Part::Main {
        let result = update(&call.server, &target, &options, change).await;
        return finish(call, resource, accept, &options, result.map(|saved| (200, saved)));
    }
    let allowed = || authorize_create(call);
    let result = update_or_create(
        &call.server,
        &target,
        &options,
        allowed,
        |present| match present {
            Some(present) => change(present),
            None => make(None).and_then(|content| refuse_uid(&target, content)),
        },
    )
    .await;
    let result = result.map(|(outcome, saved)| (outcome.code(), saved));
    finish(call, resource, accept, &options, result)
}

/// Who names a uid means an object that was there once.
fn refuse_uid(target: &Target<'_>, content: Value) -> Result<Value, ApiError> {
    let uid = meta::uid(&content);
    if uid.is_empty() {
        return Ok(content);
    }
    let why =
        format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Err(ApiError::conflict(target.resource.subject(), target.name, why))
}

/// A patch that was read and can be applied.
pub(crate) struct Patch {
    kind: Kind,
    value: Value,
    /// What there is to say of the patch itself.
    faults: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Merge,
    Strategic,
}

impl Kind {
    fn of(resource: &Resource, media_type: &str) -> Result<Self, ApiError> {
        let built_in = matches!(resource.source, Source::BuiltIn { .. });
        match media_type {
            JSON_PATCH => Ok(Self::Json),
            MERGE_PATCH => Ok(Self::Merge),
            STRATEGIC_PATCH if built_in => Ok(Self::Strategic),
            _ if built_in => Err(ApiError::unroutable_media_type()),
            _ => Err(ApiError::unsupported_media_type(&[
                JSON_PATCH,
                MERGE_PATCH,
                APPLY_PATCH,
            ])),
        }
    }
}

/// Refuses a patch of a type that `resource` does not take.
pub(crate) fn check_type(call: &Call, resource: &Resource) -> Result<(), ApiError> {
    if Applied::is(call) {
        return Ok(());
    }
    Kind::of(resource, &media_type(&call.headers)).map(drop)
}

impl Patch {
    /// Reads a patch of one of the types that `resource` takes.
    pub(crate) fn read(resource: &Resource, media_type: &str, body: &[u8]) -> Result<Self, ApiError> {
        let kind = Kind::of(resource, media_type)?;
        let undecodable = |why: &dyn std::fmt::Display| {
            let before = if kind == Kind::Strategic {
                ""
            } else {
                "error decoding patch: "
            };
            ApiError::bad_request(format!("{before}{why}"))
        };
        let Decoded {
            value, duplicates, ..
        } = from_json(body).map_err(|error| undecodable(&error))?;
        let wanted = match kind {
            Kind::Json if !value.is_array() => "[]handlers.jsonPatchOp",
            Kind::Merge if value.is_null() => return Err(ApiError::bad_request("Invalid JSON Patch")),
            Kind::Merge | Kind::Strategic if !value.is_object() => "map[string]interface {}",
            _ => {
                let faults = if kind == Kind::Json {
                    operation_faults(&value, &duplicates)
                } else {
                    let faults = duplicates
                        .iter()
                        .map(|path| format!("duplicate field \"{path}\""));
                    faults.collect()
                };
                return Ok(Self { kind, value, faults });
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

    /// Where the faults of what the patch made of an object are from.
    pub(crate) fn origin(&self) -> decode::Origin<'_> {
        decode::Origin::Patch(&self.faults)
    }

    /// The answer for a patch that turned an object into something else.
    pub(crate) fn refused(&self, refused: Refused, result: &Value) -> ApiError {
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

/// What operations have that is unknown or repeated, by operation.
fn operation_faults(operations: &Value, duplicates: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, operation) in operations.as_array().into_iter().flatten().enumerate() {
        let unknown: Vec<String> = operation
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys())
            .filter(|key| !matches!(key.as_str(), "op" | "path" | "from" | "value"))
            .map(|key| format!("[{index}].{key}"))
            .collect();
        let start = format!("[{index}].");
        // What is in a field that nobody knows is not looked at.
        let known = |path: &&String| !unknown.iter().any(|unknown| path.starts_with(unknown.as_str()));
        let repeated = duplicates
            .iter()
            .filter(|path| path.starts_with(&start))
            .filter(known);
        faults.extend(repeated.map(|path| format!("json patch duplicate field \"{path}\"")));
        faults.extend(
            unknown
                .iter()
                .map(|path| format!("json patch unknown field \"{path}\"")),
        );
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_with_unknown_and_repeated_fields() {
        let body = br#"[{"op":"add","op":"add","path":"/a","value":1},{"op":"add","path":"/b","value":{"x":1,"x":2}},
            {"op":"add","path":"/c","value":1,"bogus":{"y":1,"y":2}}]"#;
        let Decoded {
            value, duplicates, ..
        } = from_json(body).unwrap();
        assert_eq!(
            operation_faults(&value, &duplicates),
            [
                "json patch duplicate field \"[0].op\"",
                "json patch duplicate field \"[1].value.x\"",
                "json patch unknown field \"[2].bogus\""
            ]
        );
    }
}
