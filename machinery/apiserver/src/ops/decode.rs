//! From a request's bytes to an object of its kind: decoded, checked for its type, pruned and defaulted.

use machinery_value::decode::{Decoded, from_json, from_yaml};
use machinery_value::{Value, decode::DecodeError};
use serde_json::json;

use crate::meta;
use crate::negotiate::BodyFormat;
use crate::ops::FieldValidation;
use crate::resource::{Resource, Source};
use crate::status::ApiError;

/// The most warnings that one answer carries.
const MAX_WARNINGS: usize = 100;

/// Reads a body of any format into a value.
pub(crate) fn parse(format: BodyFormat, bytes: &[u8]) -> Result<Decoded, ApiError> {
    let refuse = |error: DecodeError| ApiError::bad_request(error.to_string());
    match format {
        BodyFormat::Json => from_json(bytes).map_err(refuse),
        BodyFormat::Yaml => from_yaml(bytes).map_err(refuse),
        BodyFormat::Protobuf => {
            let object =
                machinery_wire::decode_proto(bytes).map_err(|e| ApiError::bad_request(e.to_string()))?;
            let mut value = object.value;
            if let Value::Object(map) = &mut value {
                map.entry("apiVersion")
                    .or_insert_with(|| json!(object.api_version));
                map.entry("kind").or_insert_with(|| json!(object.kind));
            }
            Ok(Decoded {
                value,
                duplicates: Vec::new(),
            })
        }
    }
}

/// A value as an object of `resource`, without apiVersion and kind, and the warnings to tell.
pub(crate) fn object(
    resource: &Resource,
    decoded: Decoded,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let Decoded {
        mut value,
        duplicates,
    } = decoded;
    check_type(resource, &mut value)?;
    let unknown = match &resource.source {
        Source::BuiltIn { .. } => {
            let normalized = normalize(&resource.group, &resource.version, &resource.kind, value)?;
            value = normalized.0;
            normalized.1
        }
        Source::Custom(custom) => {
            let mut unknown = decode_metadata(resource, &mut value)?;
            unknown.extend(custom.schema.prune(&mut value));
            unknown
        }
    };
    let warnings = field_validation(resource, validation, unknown, duplicates)?;
    match &resource.source {
        Source::BuiltIn { .. } => {
            machinery_kinds::defaults::apply(&resource.group, &resource.version, &resource.kind, &mut value);
        }
        Source::Custom(custom) => custom.schema.apply_defaults(&mut value),
    }
    // Field ownership is the server's to write.
    meta::meta_mut(&mut value).remove("managedFields");
    meta::strip_type(&mut value);
    Ok((value, warnings))
}

/// Decodes a value by the Go type of a built-in kind; returns the fields that the type does not have.
pub(crate) fn normalize(
    group: &str,
    version: &str,
    kind: &str,
    value: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let Some(ty) = machinery_wire::lookup(group, version, kind) else {
        return Ok((value, Vec::new()));
    };
    match machinery_wire::decode(ty, value) {
        Ok(normalized) => Ok((normalized.value, normalized.unknown)),
        Err(error) => Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"
        ))),
    }
}

/// The metadata of a custom resource is that of every kind, and not its schema's.
fn decode_metadata(resource: &Resource, value: &mut Value) -> Result<Vec<String>, ApiError> {
    let Some(ty) = machinery_wire::lookup("meta.k8s.io", "v1", "PartialObjectMetadata") else {
        return Ok(Vec::new());
    };
    let Some(metadata) = value.get_mut("metadata").map(Value::take) else {
        return Ok(Vec::new());
    };
    match machinery_wire::decode(ty, json!({"metadata": metadata})) {
        Ok(mut normalized) => {
            value["metadata"] = normalized.value["metadata"].take();
            Ok(normalized.unknown)
        }
        Err(error) => Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {error}",
            kind = resource.kind,
            version = resource.version,
        ))),
    }
}

fn check_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    let Value::Object(map) = value else {
        return Err(ApiError::bad_request(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go_type(value)
        )));
    };
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let expected = resource.api_version();
    let custom = resource.custom().is_some();
    if custom && kind.is_empty() {
        return Err(ApiError::bad_request(format!(
            "Object 'Kind' is missing in '{}'",
            String::from_utf8_lossy(&machinery_value::encode::to_vec(value))
        )));
    }
    if !kind.is_empty() && kind != resource.kind {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let message = if custom {
            format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme")
        } else if machinery_wire::lookup(group, version, &kind).is_some() {
            let package = |group: &str| {
                if group.is_empty() {
                    "core".to_owned()
                } else {
                    group.split('.').next().unwrap_or(group).to_owned()
                }
            };
            format!(
                "{kind} in version \"{version}\" cannot be handled as a {expected}: converting ({version}.{kind}) to ({}.{expected}): unknown conversion",
                package(&resource.group),
                expected = resource.kind,
            )
        } else {
            format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
            )
        };
        return Err(ApiError::bad_request(message));
    }
    if !api_version.is_empty() && api_version != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    map.insert("apiVersion".into(), json!(expected));
    map.insert("kind".into(), json!(resource.kind));
    Ok(())
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn field_validation(
    resource: &Resource,
    validation: FieldValidation,
    unknown: Vec<String>,
    duplicates: Vec<String>,
) -> Result<Vec<String>, ApiError> {
    if validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let findings: Vec<String> = unknown
        .into_iter()
        .map(|path| format!("unknown field \"{path}\""))
        .chain(
            duplicates
                .into_iter()
                .map(|path| format!("duplicate field \"{path}\"")),
        )
        .take(MAX_WARNINGS)
        .collect();
    if validation == FieldValidation::Strict && !findings.is_empty() {
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {}",
            findings.join(", "),
            kind = resource.kind,
            version = resource.version,
        )));
    }
    Ok(findings)
}
