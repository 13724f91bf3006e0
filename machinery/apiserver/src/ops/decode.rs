//! From a request's bytes to an object of its kind: decoded, checked for its type, pruned and defaulted.

use machinery_kinds::Gvk;
use machinery_value::Value;
use machinery_value::decode::{Decoded, from_json, from_yaml};
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;

use crate::custom::CustomVersion;
use crate::meta;
use crate::negotiate::BodyFormat;
use crate::ops::FieldValidation;
use crate::resource::{Resource, Source};
use crate::status::{ApiError, Subject};

/// The most warnings that one answer carries.
const MAX_WARNINGS: usize = 100;
/// How much of a body that cannot be read is shown.
const SHOWN: usize = 30;

/// Data that is not an object of the wanted kind. The words around it depend on where the data came from.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It says nothing of what it is.
    Unrecognized(String),
    /// It says what it is, and is not that, or not what is wanted here.
    Unhandled {
        kind: String,
        version: String,
        why: String,
    },
    /// The answer is made already.
    Answer(ApiError),
}

impl Refused {
    /// The answer for a body that should have been a `wanted`.
    pub(crate) fn of_body(self, wanted: &str, body: &[u8]) -> ApiError {
        match self {
            Self::Unrecognized(why) => ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {wanted}): {why} ({})",
                summary(body)
            )),
            Self::Unhandled { kind, version, why } => ApiError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {wanted}: {why}"
            )),
            Self::Answer(error) => error,
        }
    }

    /// The answer for options, whose type the path does not fix.
    pub(crate) fn of_options(self) -> ApiError {
        match self {
            Self::Unrecognized(why) | Self::Unhandled { why, .. } => ApiError::bad_request(why),
            Self::Answer(error) => error,
        }
    }

    /// The answer for what a patch made of an object; `shown` is the patch or its result.
    pub(crate) fn of_patch(self, shown: &Value) -> ApiError {
        match self {
            Self::Unrecognized(why) | Self::Unhandled { why, .. } => {
                let error = FieldError::invalid(&FieldPath::new("patch"), shown, why);
                ApiError::invalid(Subject { group: "", name: "" }, "", &[error])
            }
            Self::Answer(error) => error,
        }
    }
}

/// The beginning of a body: as text if it looks like JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    let cut = &body[..body.len().min(SHOWN)];
    let more = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(cut)),
        Some(_) => {
            let hex: String = cut.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}

/// Reads a body of any format into a value.
pub(crate) fn parse(format: BodyFormat, bytes: &[u8]) -> Result<Decoded, Refused> {
    match format {
        BodyFormat::Json => from_json(bytes).map_err(|error| {
            Refused::Unrecognized(format!("couldn't get version/kind; json parse error: {error}"))
        }),
        BodyFormat::Yaml => from_yaml(bytes).map_err(|error| Refused::Unrecognized(error.to_string())),
        BodyFormat::Protobuf => {
            let object =
                machinery_wire::decode_proto(bytes).map_err(|e| Refused::Unrecognized(e.to_string()))?;
            Ok(Decoded {
                value: object.value,
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
) -> Result<(Value, Vec<String>), Refused> {
    let nulls = |custom: &CustomVersion, value: &mut Value| custom.schema.apply_defaults(value);
    object_with(resource, decoded, validation, nulls)
}

/// The same for what a server-side apply came to. It is no body, in which nulls that are no values would be dropped: they
/// are left for validation to refuse.
pub(crate) fn applied(
    resource: &Resource,
    decoded: Decoded,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Refused> {
    let nulls = |custom: &CustomVersion, value: &mut Value| custom.schema.fill_defaults(value);
    object_with(resource, decoded, validation, nulls)
}

fn object_with(
    resource: &Resource,
    decoded: Decoded,
    validation: FieldValidation,
    defaults: impl Fn(&CustomVersion, &mut Value),
) -> Result<(Value, Vec<String>), Refused> {
    let Decoded {
        mut value,
        duplicates,
    } = decoded;
    check_type(resource, &mut value)?;
    // An empty list of owners says that they are to be forgotten; decoding would make nothing of it.
    let reset = value["metadata"]["managedFields"]
        .as_array()
        .is_some_and(Vec::is_empty);
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
        Source::Custom(custom) => defaults(custom, &mut value),
    }
    if reset {
        meta::meta_mut(&mut value).insert("managedFields".into(), json!([]));
    }
    meta::strip_type(&mut value);
    Ok((value, warnings))
}

/// Decodes a value by the Go type of a built-in kind; returns the fields that the type does not have.
pub(crate) fn normalize(
    group: &str,
    version: &str,
    kind: &str,
    value: Value,
) -> Result<(Value, Vec<String>), Refused> {
    let Some(ty) = machinery_wire::lookup(group, version, kind) else {
        return Ok((value, Vec::new()));
    };
    match machinery_wire::decode(ty, value) {
        Ok(normalized) => Ok((normalized.value, normalized.unknown)),
        Err(error) => {
            let (kind, version) = (kind.to_owned(), version.to_owned());
            Err(Refused::Unhandled {
                kind,
                version,
                why: error.to_string(),
            })
        }
    }
}

/// A body as options of `meta.k8s.io`, which every group serves under its own version.
pub(crate) fn options(kind: &str, value: Value) -> Result<Value, Refused> {
    let header = machinery_wire::interpret(&value).map_err(|e| Refused::Unrecognized(e.to_string()))?;
    if !header.kind.is_empty() && header.kind != kind {
        let own = join(&header.group, &header.version);
        return Err(Refused::Unrecognized(format!(
            "no kind \"{}\" is registered for version \"{own}\" in scheme \"pkg/runtime/scheme.go:111\"",
            header.kind
        )));
    }
    Ok(normalize("meta.k8s.io", "v1", kind, value)?.0)
}

/// A body as the review or subresource that `kind` names; what it says it is must fit.
pub(crate) fn typed(wanted: Gvk<'_>, mut value: Value) -> Result<Value, Refused> {
    if value.is_null() {
        value = json!({});
    }
    check_built_in_type(wanted.group, wanted.version, wanted.kind, &value)?;
    Ok(normalize(wanted.group, wanted.version, wanted.kind, value)?.0)
}

/// The metadata of a custom resource is that of every kind, and not its schema's.
fn decode_metadata(resource: &Resource, value: &mut Value) -> Result<Vec<String>, Refused> {
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
        Err(error) => Err(Refused::Unhandled {
            kind: resource.kind.clone(),
            version: resource.version.clone(),
            // The metadata is decoded by itself, so that its fields stand at the root of their path.
            why: error.to_string().replace("ObjectMeta.metadata.", "ObjectMeta."),
        }),
    }
}

fn check_type(resource: &Resource, value: &mut Value) -> Result<(), Refused> {
    if value.is_null() {
        *value = json!({});
    }
    match &resource.source {
        Source::BuiltIn { .. } => {
            check_built_in_type(&resource.group, &resource.version, &resource.kind, value)?;
        }
        Source::Custom(_) => check_custom_type(resource, value)?,
    }
    meta::set_type(value, &resource.api_version(), &resource.kind);
    Ok(())
}

fn check_custom_type(resource: &Resource, value: &Value) -> Result<(), Refused> {
    let header = machinery_wire::interpret(value).map_err(|e| Refused::Unrecognized(e.to_string()))?;
    if header.kind.is_empty() {
        let text = String::from_utf8_lossy(&machinery_value::encode::to_vec(value)).into_owned();
        return Err(Refused::Unrecognized(format!(
            "Object 'Kind' is missing in '{text}'"
        )));
    }
    let api_version = join(&header.group, &header.version);
    let expected = resource.api_version();
    if api_version != expected {
        return Err(Refused::Answer(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        ))));
    }
    if header.kind != resource.kind {
        let why = format!("must be {}", resource.kind);
        let error = FieldError::invalid(&FieldPath::new("kind"), &json!(header.kind), why);
        let subject = Subject {
            group: &resource.group,
            name: &header.kind,
        };
        return Err(Refused::Answer(ApiError::invalid(
            subject,
            meta::name(value),
            &[error],
        )));
    }
    Ok(())
}

/// What the data says of its type must be the wanted type; where it says nothing, that is meant.
fn check_built_in_type(group: &str, version: &str, kind: &str, value: &Value) -> Result<(), Refused> {
    let header = machinery_wire::interpret(value).map_err(|e| Refused::Unrecognized(e.to_string()))?;
    let says_version = !header.version.is_empty();
    let own_group = if says_version {
        header.group.as_str()
    } else {
        group
    };
    let own_version = if says_version {
        header.version.as_str()
    } else {
        version
    };
    let own_kind = if header.kind.is_empty() {
        kind
    } else {
        header.kind.as_str()
    };
    if (own_group, own_version, own_kind) == (group, version, kind) {
        return Ok(());
    }
    let unhandled = |why: String| Refused::Unhandled {
        kind: own_kind.to_owned(),
        version: own_version.to_owned(),
        why,
    };
    let own = join(own_group, own_version);
    if machinery_wire::lookup(own_group, own_version, own_kind).is_none() {
        return Err(unhandled(format!(
            "no kind \"{own_kind}\" is registered for version \"{own}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if own_kind == kind {
        return Err(Refused::Answer(ApiError::bad_request(format!(
            "the API version in the data ({own}) does not match the expected API version ({})",
            join(group, version)
        ))));
    }
    let package = if group.is_empty() {
        "core"
    } else {
        group.split('.').next().unwrap_or(group)
    };
    Err(unhandled(format!(
        "converting ({own_version}.{own_kind}) to ({package}.{kind}): unknown conversion"
    )))
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn field_validation(
    resource: &Resource,
    validation: FieldValidation,
    unknown: Vec<String>,
    duplicates: Vec<String>,
) -> Result<Vec<String>, Refused> {
    if validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let unknown = unknown
        .into_iter()
        .map(|path| format!("unknown field \"{path}\""));
    let duplicates = duplicates
        .into_iter()
        .map(|path| format!("duplicate field \"{path}\""));
    let findings: Vec<String> = unknown.chain(duplicates).take(MAX_WARNINGS).collect();
    if validation == FieldValidation::Strict && !findings.is_empty() {
        return Err(Refused::Unhandled {
            kind: resource.kind.clone(),
            version: resource.version.clone(),
            why: format!("strict decoding error: {}", findings.join(", ")),
        });
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_shown_in_short() {
        assert_eq!(summary(b""), "<empty>");
        assert_eq!(summary(b"{bad"), "{bad");
        assert_eq!(summary(b"k8s\0"), "6b387300");
        assert_eq!(
            summary(br#"{"metadata":{"name":"bad"},"spec":{}}"#),
            r#"{"metadata":{"name":"bad"},"sp ..."#
        );
    }
}
