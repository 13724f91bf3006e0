//! The objects of a join, and how they are made so that doing it twice does no harm.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lockgate_api::keys;
use serde::Deserialize;
use serde_json::{Value, json};

use super::JoinRequest;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

pub(super) fn hub_secret(request: &JoinRequest, token: &str) -> Value {
    let mut data = json!({"token": STANDARD.encode(token)});
    if let Some(bundle) = &request.ca_bundle {
        data["caBundle"] = json!(STANDARD.encode(bundle));
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": keys::CLUSTER_NAMESPACE, "name": request.name},
        "data": data,
    })
}

pub(super) fn cluster_object(request: &JoinRequest, id: &str) -> Value {
    let mut spec = json!({
        "id": id,
        "syncMode": "Push",
        "apiEndpoint": request.endpoint,
        "secretRef": {"namespace": keys::CLUSTER_NAMESPACE, "name": request.name},
    });
    if request.insecure {
        spec["insecureSkipTLSVerification"] = json!(true);
    }
    let texts = [
        ("proxyURL", &request.proxy_url),
        ("provider", &request.provider),
        ("region", &request.region),
    ];
    for (key, value) in texts {
        if !value.is_empty() {
            spec[key] = json!(value);
        }
    }
    if !request.zones.is_empty() {
        spec["zones"] = json!(request.zones);
    }
    let mut metadata = json!({"name": request.name});
    if !request.labels.is_empty() {
        metadata["labels"] = json!(request.labels);
    }
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": metadata, "spec": spec})
}

/// Makes an object, or brings the parts of it that `wanted` names up to date. Writes nothing if they are so already.
pub(super) async fn ensure(
    link: &Link,
    resource: &Resource,
    namespace: &str,
    wanted: Value,
) -> Result<(), LinkError> {
    let collection = resource.collection(namespace);
    match link.create(&collection, wanted.to_string().into_bytes()).await {
        Err(LinkError::AlreadyExists) => {}
        other => return other.map(drop),
    }
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let path = resource.object(namespace, name);
    // Somebody else may write at the same time, but not for ever.
    for _ in 0..5 {
        let present: Value = parse(&link.get(&path).await?)?;
        let mut next = present.clone();
        overlay(&mut next, &wanted);
        if next == present {
            return Ok(());
        }
        match link.replace(&path, next.to_string().into_bytes()).await {
            Err(LinkError::Conflict) => {}
            other => return other.map(drop),
        }
    }
    Err(LinkError::Conflict)
}

/// Puts what `wanted` says over an object: maps are merged, everything else is replaced.
fn overlay(object: &mut Value, wanted: &Value) {
    match (object, wanted) {
        (Value::Object(object), Value::Object(wanted)) => {
            for (key, value) in wanted {
                overlay(object.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (object, wanted) => *object = wanted.clone(),
    }
}

pub(super) fn describe(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    match text(&metadata["namespace"]) {
        namespace if namespace.is_empty() => format!("{} {}", text(&object["kind"]), text(&metadata["name"])),
        namespace => format!(
            "{} {namespace}/{}",
            text(&object["kind"]),
            text(&metadata["name"])
        ),
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, LinkError> {
    serde_json::from_slice(body).map_err(|error| LinkError::BadAnswer(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_added_survives() {
        let mut object =
            json!({"metadata": {"uid": "u", "labels": {"theirs": "1"}}, "rules": [1, 2], "x": 1});
        overlay(
            &mut object,
            &json!({"metadata": {"labels": {"ours": "2"}}, "rules": [3]}),
        );
        assert_eq!(
            object,
            json!({"metadata": {"uid": "u", "labels": {"theirs": "1", "ours": "2"}}, "rules": [3], "x": 1})
        );
    }
}
