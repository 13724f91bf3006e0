//! Installs the definitions on a hub, and waits until they are served.

use std::time::Duration;

use lockgate_api::definitions;
use serde_json::Value;

use crate::kinds::is_established;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// How often a definition is looked at until it is served.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why the definitions are not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The hub refused one.
    #[error("the hub refused {kind} {name}: {error}")]
    Refused {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the hub said.
        error: LinkError,
    },
    /// One is not served in time.
    #[error("{0} is not served after a minute")]
    NotServed(String),
}

/// Creates what is not there and replaces what differs; what is as it should be is not written.
pub async fn install(link: &Link) -> Result<(), InstallError> {
    for definition in definitions::definitions() {
        let kind = definition["kind"].as_str().unwrap_or_default().to_owned();
        let name = definition["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let Some(resource) = resource(&definition, &kind) else {
            continue;
        };
        let namespace = definition["metadata"]["namespace"].as_str().unwrap_or_default();
        put(link, &resource, namespace, &name, &definition)
            .await
            .map_err(|error| InstallError::Refused {
                kind: kind.clone(),
                name: name.clone(),
                error,
            })?;
    }
    for definition in definitions::crds() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        tokio::time::timeout(PATIENCE, established(link, name))
            .await
            .map_err(|_| InstallError::NotServed(name.to_owned()))?;
    }
    Ok(())
}

/// Makes one of our definitions again if it is gone by the server's own word.
pub(crate) async fn make_again(link: &Link, name: &str) -> Result<(), LinkError> {
    let ours = definitions::crds();
    let Some(definition) = ours
        .iter()
        .find(|definition| definition["metadata"]["name"] == name)
    else {
        return Ok(());
    };
    let resource = Resource::crds();
    match link.get(&resource.object("", name)).await {
        Err(LinkError::NotFound) => {}
        answer => return answer.map(drop),
    }
    let body = serde_json::to_vec(definition).unwrap_or_default();
    match link.create(&resource.collection(""), body).await {
        Ok(_) | Err(LinkError::AlreadyExists) => {
            tracing::warn!(definition = %name, "somebody deleted it: made again");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Makes the definition of one of our kinds again, and returns when the kind is served. One that is still going goes first.
pub(crate) async fn restore(link: &Link, kind: &Resource) -> Result<(), InstallError> {
    let name = format!("{}.{}", kind.plural, kind.group);
    let restored = async {
        loop {
            make_again(link, &name).await?;
            if link
                .get(&format!("{}?limit=1", kind.collection("")))
                .await
                .is_ok()
            {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(PATIENCE, restored).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(InstallError::Refused {
            kind: Resource::crds().kind,
            name,
            error,
        }),
        Err(_) => Err(InstallError::NotServed(name)),
    }
}

/// The resource of a definition. They are few, and their plurals are regular but for one.
fn resource(definition: &Value, kind: &str) -> Option<Resource> {
    let api_version = definition["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = match kind {
        "ValidatingAdmissionPolicy" => "validatingadmissionpolicies".to_owned(),
        other => format!("{}s", other.to_lowercase()),
    };
    let namespaced = definition["metadata"]["namespace"].is_string();
    Some(Resource::new(group, version, &plural, kind, namespaced))
}

/// The label of definitions that we installed on a member: those of others are left as they are.
const INSTALLED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "lockgate");

/// Installs a definition on a member that has none of its name, or an older one of ours.
pub(crate) async fn put_on_member(link: &Link, definition: &Value) -> Result<(), LinkError> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let mut wanted = definition.clone();
    let (label, ours) = INSTALLED_BY;
    wanted["metadata"]["labels"][label] = ours.into();
    let resource = Resource::crds();
    match link.get(&resource.object("", name)).await {
        Ok(body) => {
            let present: Value =
                serde_json::from_slice(&body).map_err(|e| LinkError::BadAnswer(e.to_string()))?;
            if present["metadata"]["labels"][label] != ours {
                return Ok(());
            }
        }
        Err(LinkError::NotFound) => {}
        Err(error) => return Err(error),
    }
    put(link, &resource, "", name, &wanted).await
}

async fn put(
    link: &Link,
    resource: &Resource,
    namespace: &str,
    name: &str,
    wanted: &Value,
) -> Result<(), LinkError> {
    let path = resource.object(namespace, name);
    let present: Value = match link.get(&path).await {
        Ok(body) => serde_json::from_slice(&body).map_err(|e| LinkError::BadAnswer(e.to_string()))?,
        Err(LinkError::NotFound) => {
            let body = serde_json::to_vec(wanted).unwrap_or_default();
            return match link.create(&resource.collection(namespace), body).await {
                Ok(_) | Err(LinkError::AlreadyExists) => Ok(()),
                Err(error) => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    if contains(&present, wanted) {
        return Ok(());
    }
    let mut body = wanted.clone();
    body["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"].clone();
    let body = serde_json::to_vec(&body).unwrap_or_default();
    link.replace(&path, body).await.map(drop)
}

/// Whether everything that is wanted is there; servers add defaults.
fn contains(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| present.get(key).is_some_and(|found| contains(found, value))),
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len() && present.iter().zip(wanted).all(|(a, b)| contains(a, b))
        }
        (present, wanted) => present == wanted,
    }
}

/// Returns when a definition is served.
pub(crate) async fn established(link: &Link, name: &str) {
    let path = Resource::crds().object("", name);
    loop {
        let found: Option<Value> = match link.get(&path).await {
            Ok(body) => serde_json::from_slice(&body).ok(),
            Err(_) => None,
        };
        if found.as_ref().is_some_and(is_established) && is_served(link, found.as_ref()).await {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Whether the kind itself answers: on a real server that comes a moment after the condition.
async fn is_served(link: &Link, definition: Option<&Value>) -> bool {
    let Some(spec) = definition.map(|definition| &definition["spec"]) else {
        return false;
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let version = text(&spec["versions"][0]["name"]);
    link.get(&format!("/apis/{group}/{version}/{plural}?limit=1"))
        .await
        .is_ok()
}
