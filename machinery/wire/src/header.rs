//! Which kind a document says it is, read before its type is known.

use machinery_value::Value;

use crate::WireError;

/// The struct that Go's reader decodes a header into; it shows in the error for a document that is no object.
const HEADER_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// What a document says it is; empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// Reads `apiVersion` and `kind`. As on the server the case of these two names does not matter.
///
/// # Errors
/// In the server's words: the document is no object, a name is no string, or the version has two slashes.
pub fn interpret(document: &Value) -> Result<Header, WireError> {
    let fail =
        |text: String| WireError::Decode(format!("couldn't get version/kind; json parse error: {text}"));
    let mut api_version = "";
    let mut kind = "";
    match document {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                let (name, slot) = if key.eq_ignore_ascii_case("apiVersion") {
                    ("apiVersion", &mut api_version)
                } else if key.eq_ignore_ascii_case("kind") {
                    ("kind", &mut kind)
                } else {
                    continue;
                };
                match value {
                    Value::Null => {}
                    Value::String(text) => *slot = text,
                    other => {
                        let what = crate::json::describe(other);
                        return Err(fail(format!(
                            "json: cannot unmarshal {what} into Go struct field .{name} of type string"
                        )));
                    }
                }
            }
        }
        other => {
            let what = crate::json::describe(other);
            return Err(fail(format!(
                "json: cannot unmarshal {what} into Go value of type {HEADER_TYPE}"
            )));
        }
    }
    let (group, version) = split(api_version)?;
    Ok(Header {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    })
}

/// The group and version of an `apiVersion`.
pub(crate) fn split(api_version: &str) -> Result<(&str, &str), WireError> {
    match api_version.split_once('/') {
        None => Ok(("", api_version)),
        Some((_, rest)) if rest.contains('/') => Err(WireError::Decode(format!(
            "unexpected GroupVersion string: {api_version}"
        ))),
        Some(parts) => Ok(parts),
    }
}
