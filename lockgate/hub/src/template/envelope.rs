//! How the hub keeps what is no object of its own: in a ControllerRevision, and what may be secret in a Secret. Both are in
//! the control plane's own namespace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lockgate_engine::TemplateId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::resource::Resource;

/// Where the content is in a Secret.
const FIELD: &str = "revision";

/// What keeps something of a template.
pub(super) fn resource(id: &TemplateId) -> Resource {
    if id.kind == "Secret" && id.api_version == "v1" {
        Resource::secrets()
    } else {
        Resource::controller_revisions()
    }
}

/// An object that keeps some content.
pub(super) fn wrap(resource: &Resource, metadata: Value, number: i64, content: &impl Serialize) -> Value {
    let mut object = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": metadata,
    });
    if resource.kind == "Secret" {
        let text = serde_json::to_string(content).unwrap_or_default();
        object["immutable"] = true.into();
        object["type"] = "lockgate.karmada.io/revision".into();
        object["data"] = json!({FIELD: STANDARD.encode(text)});
    } else {
        object["revision"] = number.into();
        object["data"] = serde_json::to_value(content).unwrap_or_default();
    }
    object
}

/// The content that an object keeps, if it can be read.
pub(super) fn unwrap<T: DeserializeOwned>(resource: &Resource, object: &Value) -> Option<T> {
    if resource.kind == "Secret" {
        let data = object["data"][FIELD].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(data).unwrap_or_default();
        serde_json::from_slice(&bytes).ok()
    } else {
        T::deserialize(&object["data"]).ok()
    }
}
