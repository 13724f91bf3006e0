//! From a request's bytes to an object of its kind: decoded, checked for its type, pruned and defaulted.

use machinery_kinds::Gvk;
use machinery_value::Value;
use machinery_value::decode::{Decoded, from_json, from_yaml};
use machinery_value::field::{FieldError, FieldPath};
use machinery_wire::WireError;
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

/// Reads a body of any format into a value. Protobuf is read as what it says it is, or as what is `wanted` where it says
/// nothing.
pub(crate) fn parse(format: BodyFormat, wanted: Gvk<'_>, bytes: &[u8]) -> Result<Decoded, Refused> {
    match format {
        BodyFormat::Json => from_json(bytes).map_err(|error| {
            Refused::Unrecognized(format!("couldn't get version/kind; json parse error: {error}"))
        }),
        BodyFormat::Yaml => from_yaml(bytes).map_err(|error| Refused::Unrecognized(error.to_string())),
        BodyFormat::Protobuf => parse_proto(wanted, bytes).map(Decoded::from),
    }
}

fn parse_proto(wanted: Gvk<'_>, bytes: &[u8]) -> Result<Value, Refused> {
    let unrecognized = |error: WireError| Refused::Unrecognized(error.to_string());
    let envelope = machinery_wire::decode_envelope(bytes).map_err(unrecognized)?;
    // A version that cannot be read is taken for none.
    let header = json!({"apiVersion": envelope.api_version});
    let header = machinery_wire::interpret(&header).ok();
    let says = header.as_ref().filter(|header| !header.version.is_empty());
    let (group, version) = says.map_or((wanted.group, wanted.version), |header| {
        (header.group.as_str(), header.version.as_str())
    });
    let kind = match envelope.kind.as_str() {
        "" => wanted.kind,
        kind => kind,
    };
    let Some(ty) = machinery_wire::lookup(group, version, kind) else {
        return Err(not_registered(group, version, kind));
    };
    let mut value = machinery_wire::decode_message(ty, envelope.raw).map_err(unrecognized)?;
    meta::set_type(&mut value, &join(group, version), kind);
    Ok(value)
}

/// A kind that nobody here knows.
fn not_registered(group: &str, version: &str, kind: &str) -> Refused {
    Refused::Unhandled {
        kind: kind.to_owned(),
        version: version.to_owned(),
        why: format!(
            "no kind \"{kind}\" is registered for version \"{}\" in scheme \"pkg/runtime/scheme.go:111\"",
            join(group, version)
        ),
    }
}

/// Where a value comes from, which decides in what order its faults are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin<'a> {
    /// A body whose order is not known, or does not count: YAML is sorted before its fields are read.
    Body,
    /// The bytes of a JSON body.
    Json(&'a [u8]),
    /// A patch was applied, and this is what there is to say of the patch itself.
    Patch(&'a [String]),
}

impl<'a> Origin<'a> {
    /// That of a body of this format.
    pub(crate) fn of_body(format: BodyFormat, bytes: &'a [u8]) -> Self {
        match format {
            BodyFormat::Json => Self::Json(bytes),
            BodyFormat::Yaml | BodyFormat::Protobuf => Self::Body,
        }
    }
}

/// A value as an object of `resource`, without apiVersion and kind, and the warnings to tell.
pub(crate) fn object(
    resource: &Resource,
    decoded: Decoded,
    validation: FieldValidation,
    origin: Origin<'_>,
) -> Result<(Value, Vec<String>), Refused> {
    let nulls = |custom: &CustomVersion, value: &mut Value| custom.schema.apply_defaults(value);
    object_with(resource, decoded, validation, origin, nulls)
}

/// The same for what a server-side apply came to. It is no body, in which nulls that are no values would be dropped: they
/// are left for validation to refuse.
pub(crate) fn applied(
    resource: &Resource,
    decoded: Decoded,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Refused> {
    let nulls = |custom: &CustomVersion, value: &mut Value| custom.schema.fill_defaults(value);
    object_with(resource, decoded, validation, Origin::Patch(&[]), nulls)
}

fn object_with(
    resource: &Resource,
    decoded: Decoded,
    validation: FieldValidation,
    origin: Origin<'_>,
    defaults: impl Fn(&CustomVersion, &mut Value),
) -> Result<(Value, Vec<String>), Refused> {
    let Decoded {
        mut value,
        duplicates,
        repeats,
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
    let findings = Findings {
        unknown,
        duplicates,
        repeats,
        origin,
    };
    let warnings = findings.judge(resource.gvk(), validation)?;
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

/// A body as the review or subresource that `kind` names, and the warnings to tell; what it says it is must fit.
pub(crate) fn typed(
    wanted: Gvk<'_>,
    decoded: Decoded,
    validation: FieldValidation,
    origin: Origin<'_>,
) -> Result<(Value, Vec<String>), Refused> {
    let Decoded {
        mut value,
        duplicates,
        repeats,
    } = decoded;
    if value.is_null() {
        value = json!({});
    }
    check_built_in_type(wanted.group, wanted.version, wanted.kind, &value)?;
    let (value, unknown) = normalize(wanted.group, wanted.version, wanted.kind, value)?;
    let findings = Findings {
        unknown,
        duplicates,
        repeats,
        origin,
    };
    let warnings = findings.judge(wanted, validation)?;
    Ok((value, warnings))
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
        return Err(not_registered(own_group, own_version, own_kind));
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

/// What is in a body that its kind does not have, or more than once.
struct Findings<'a> {
    unknown: Vec<String>,
    duplicates: Vec<String>,
    repeats: Vec<String>,
    origin: Origin<'a>,
}

impl Findings<'_> {
    /// What there is to say of fields. A body of a built-in kind is read along its type, and each fault is told where it
    /// is; a custom resource, and the result of a patch, are read first and held against their schema then.
    fn fields(&self, kind: Gvk<'_>) -> Vec<String> {
        if self.unknown.is_empty() && self.duplicates.is_empty() {
            return match self.origin {
                Origin::Patch(said) => said.to_vec(),
                Origin::Body | Origin::Json(_) => Vec::new(),
            };
        }
        let ty = machinery_wire::lookup(kind.group, kind.version, kind.kind);
        let said = match (self.origin, ty) {
            (Origin::Json(body), Some(ty)) => return machinery_wire::strict_findings(ty, body),
            (Origin::Patch(said), _) => said,
            _ => &[],
        };
        let duplicates = self
            .duplicates
            .iter()
            .map(|path| format!("duplicate field \"{path}\""));
        let unknown = self
            .unknown
            .iter()
            .map(|path| format!("unknown field \"{path}\""));
        said.iter().cloned().chain(duplicates).chain(unknown).collect()
    }

    /// The warnings to tell, or a refusal, as the client wants it.
    fn judge(self, kind: Gvk<'_>, validation: FieldValidation) -> Result<Vec<String>, Refused> {
        if validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let fields = self.fields(kind);
        if validation == FieldValidation::Warn {
            return Ok(self
                .repeats
                .into_iter()
                .chain(fields)
                .take(MAX_WARNINGS)
                .collect());
        }
        let repeats = (!self.repeats.is_empty()).then(|| repeated(&self.repeats));
        let findings: Vec<String> = repeats.into_iter().chain(fields).take(MAX_WARNINGS).collect();
        if findings.is_empty() {
            return Ok(findings);
        }
        Err(Refused::Unhandled {
            kind: kind.kind.to_owned(),
            version: kind.version.to_owned(),
            why: format!("strict decoding error: {}", findings.join(", ")),
        })
    }
}

/// What the reader of YAML says of keys that are there more than once.
pub(crate) fn repeated(repeats: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeats.join("\n  "))
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

    #[test]
    fn the_faults_of_a_body_are_told_in_its_order_and_those_of_a_patch_first() {
        let findings = |origin| Findings {
            origin,
            unknown: vec!["aa".to_owned(), "zz".to_owned()],
            duplicates: vec!["data.a".to_owned()],
            repeats: Vec::new(),
        };
        let body = br#"{"zz":1,"data":{"a":"1","a":"2"},"aa":2}"#;
        let [aa, zz, data] = [
            "unknown field \"aa\"",
            "unknown field \"zz\"",
            "duplicate field \"data.a\"",
        ];
        let built_in = Gvk::new("", "v1", "ConfigMap");
        assert_eq!(findings(Origin::Json(body)).fields(built_in), [zz, data, aa]);
        assert_eq!(findings(Origin::Body).fields(built_in), [data, aa, zz]);
        let custom = Gvk::new("lab.io", "v1", "Widget");
        assert_eq!(findings(Origin::Json(body)).fields(custom), [data, aa, zz]);
        let said = ["json patch unknown field \"[0].x\"".to_owned()];
        let patched = Findings {
            duplicates: Vec::new(),
            ..findings(Origin::Patch(&said))
        };
        assert_eq!(patched.fields(built_in), [said[0].as_str(), aa, zz]);
    }

    #[test]
    fn what_a_kind_does_not_have_is_told_or_refused() {
        let findings = || Findings {
            origin: Origin::Body,
            unknown: vec!["bogus".to_owned()],
            duplicates: vec!["spec".to_owned()],
            repeats: vec!["line 1: x".to_owned(), "line 2: y".to_owned()],
        };
        let kind = Gvk::new("autoscaling", "v1", "Scale");
        assert!(
            findings()
                .judge(kind, FieldValidation::Ignore)
                .unwrap()
                .is_empty()
        );
        let told = findings().judge(kind, FieldValidation::Warn).unwrap();
        let expected = [
            "line 1: x",
            "line 2: y",
            "duplicate field \"spec\"",
            "unknown field \"bogus\"",
        ];
        assert_eq!(told, expected);
        let refused = findings().judge(kind, FieldValidation::Strict).unwrap_err();
        assert_eq!(
            refused.of_body("Scale", b"").message,
            "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: yaml: unmarshal errors:\n  line 1: x\n  \
             line 2: y, duplicate field \"spec\", unknown field \"bogus\""
        );
    }
}
