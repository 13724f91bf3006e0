//! Requests for a token: `POST …/serviceaccounts/NAME/token`.

use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;

use crate::user::{text, texts};

/// How long a token lives if nobody asks otherwise.
const DEFAULT_EXPIRATION: i64 = 3600;
const MIN_EXPIRATION: i64 = 600;
const MAX_EXPIRATION: i64 = 1 << 32;

/// The `spec` of a TokenRequest, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// For whom; empty means the API server.
    pub audiences: Vec<String>,
    /// For how long.
    pub expiration_seconds: i64,
    /// With whose end it is to end.
    pub bound: Option<BoundObjectRef>,
}

/// A reference to the object that a token is to be bound to. The server must find it and compare the uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundObjectRef {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid, if the client insists on one.
    pub uid: String,
}

impl TokenRequest {
    /// Reads and checks a TokenRequest object.
    pub fn from_json(object: &Value) -> Result<Self, Vec<FieldError>> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let expiration_seconds = spec
            .get("expirationSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(DEFAULT_EXPIRATION);
        let wrong = |detail| {
            let path = FieldPath::new("spec").child("expirationSeconds");
            Err(vec![FieldError::invalid(
                &path,
                &json!(expiration_seconds),
                detail,
            )])
        };
        if expiration_seconds < MIN_EXPIRATION {
            return wrong("may not specify a duration less than 10 minutes");
        }
        if expiration_seconds > MAX_EXPIRATION {
            return wrong("may not specify a duration larger than 2^32 seconds");
        }
        let bound = spec
            .get("boundObjectRef")
            .filter(|bound| bound.is_object())
            .map(|bound| BoundObjectRef {
                api_version: text(bound, "apiVersion").to_owned(),
                kind: text(bound, "kind").to_owned(),
                name: text(bound, "name").to_owned(),
                uid: text(bound, "uid").to_owned(),
            });
        Ok(Self {
            audiences: texts(spec.get("audiences")),
            expiration_seconds,
            bound,
        })
    }
}
