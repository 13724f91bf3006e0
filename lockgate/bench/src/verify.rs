//! Reads back what the server holds. Nothing here is timed.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Call, Client};
use crate::error::BenchError;
use crate::payload::{Kind, name, number};

/// How many objects a page of a list has.
pub(crate) const PAGE: usize = 500;

/// An answer must be the object of that number and revision.
pub(crate) fn object(kind: &Kind, answer: &[u8], number: usize, revision: u64) -> Result<(), BenchError> {
    if kind.is(&parse(answer)?, number, revision) {
        return Ok(());
    }
    Err(BenchError::wrong(format!(
        "{} {} is not as it was written",
        kind.name,
        name(number)
    )))
}

/// The collection must be the objects `0..count` at that revision and nothing else, with different content each.
pub(crate) async fn collection(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    count: usize,
    revision: u64,
) -> Result<(), BenchError> {
    let mut seen = vec![false; count];
    let mut page = page_path(kind, namespace, "");
    loop {
        let list = parse::<Value>(&client.call(0, &Call::get(page)).await?)?;
        for item in list["items"].as_array().into_iter().flatten() {
            let item_name = item["metadata"]["name"].as_str().unwrap_or_default();
            // Every namespace has one of these, made by a controller, where one runs.
            if item_name == "kube-root-ca.crt" {
                continue;
            }
            let known = number(item_name).filter(|number| *number < count);
            let Some(number) = known else {
                return Err(BenchError::wrong(format!("{item_name:?} was never written")));
            };
            if std::mem::replace(&mut seen[number], true) {
                return Err(BenchError::wrong(format!("{item_name} was listed twice")));
            }
            if !kind.is(item, number, revision) {
                return Err(BenchError::wrong(format!("{item_name} is not as it was written")));
            }
        }
        match list["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => page = page_path(kind, namespace, token),
            _ => break,
        }
    }
    match seen.iter().filter(|seen| !**seen).count() {
        0 => Ok(()),
        missing => Err(BenchError::wrong(format!(
            "{missing} of {count} objects are missing in {namespace}"
        ))),
    }
}

/// The path of a page. Tokens of both servers are made of characters that need no escape but `=` and `+`.
pub(crate) fn page_path(kind: &Kind, namespace: &str, token: &str) -> String {
    let token = token.replace('+', "%2B").replace('=', "%3D").replace('/', "%2F");
    let from = if token.is_empty() {
        String::new()
    } else {
        format!("&continue={token}")
    };
    format!("{}?limit={PAGE}{from}", kind.collection(namespace))
}

/// What is read of a list while the clock runs: no more than is needed to count and go on.
#[derive(Deserialize)]
pub(crate) struct ListOutline {
    pub(crate) metadata: ListMeta,
    pub(crate) items: Vec<serde::de::IgnoredAny>,
}

/// The metadata of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMeta {
    #[serde(default)]
    pub(crate) resource_version: String,
    #[serde(default, rename = "continue")]
    pub(crate) next: String,
}

#[derive(Deserialize)]
struct ObjectOutline {
    metadata: ListMeta,
}

/// The resource version of an object in an answer.
pub(crate) fn resource_version(answer: &Bytes) -> Result<String, BenchError> {
    let version = parse::<ObjectOutline>(answer)?.metadata.resource_version;
    if version.is_empty() {
        Err(BenchError::wrong("an object has no resourceVersion"))
    } else {
        Ok(version)
    }
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, BenchError> {
    serde_json::from_slice(answer)
        .map_err(|e| BenchError::wrong(format!("an answer is not as expected: {e}")))
}
