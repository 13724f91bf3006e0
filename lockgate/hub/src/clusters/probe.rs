//! What is asked of a member: whether it is well, its version, its kinds, its nodes. Every request is bounded in time, and what
//! has not changed costs a request without a body.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Request, StatusCode};
use kube::client::Body;
use lockgate_engine::cluster::Probe;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::discovery::{Discovery, discover};
use crate::link::{Link, LinkError, chain};

/// The longest that one question may take.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How many nodes are counted at once.
const PAGE: usize = 500;
/// More pages of nodes than any cluster has.
const MAX_PAGES: usize = 200;

const AGGREGATED: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
);
const TABLE: HeaderValue =
    HeaderValue::from_static("application/json;as=Table;v=v1;g=meta.k8s.io,application/json");

/// Whether a member is well.
pub(super) async fn health(link: &Link) -> Probe {
    let answer = match link.get("/readyz").await {
        Err(LinkError::NotServed | LinkError::NotFound) => link.get("/healthz").await,
        other => other,
    };
    match answer {
        Ok(_) => Probe::Healthy,
        Err(LinkError::Unreachable(why)) => Probe::Unreachable(why),
        // The code says enough; what stands behind it differs from probe to probe.
        Err(LinkError::Refused {
            code,
            reason,
            message,
        }) => {
            let detail = if code >= 500 {
                String::new()
            } else {
                format!(" {message}")
            };
            Probe::Unhealthy(format!("{code} {reason}{detail}"))
        }
        Err(other) => Probe::Unhealthy(other.to_string()),
    }
}

/// A member's version.
pub(super) async fn version(link: &Link) -> Result<String, LinkError> {
    let answer = link.get("/version").await?;
    let answer: Value =
        serde_json::from_slice(&answer).map_err(|e| LinkError::BadAnswer(format!("/version: {e}")))?;
    match answer["gitVersion"].as_str() {
        Some(version) if !version.is_empty() => Ok(version.to_owned()),
        _ => Err(LinkError::BadAnswer("/version: no gitVersion in it".to_owned())),
    }
}

/// What is known of a member's kinds, and how to learn cheaply that they are still the same.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    tags: Vec<HeaderValue>,
    /// The last answer.
    pub(super) known: Option<Arc<Discovery>>,
}

impl Kinds {
    /// Asks again if something may have changed; `Ok(true)` if [`Kinds::known`] is new. A server that gives no tags answers
    /// with dozens of documents, so that it is asked at `length` only.
    pub(super) async fn refresh(&mut self, link: &Link, length: bool) -> Result<bool, LinkError> {
        let tagged = self.tags.len() == ROOTS.len();
        if self.known.is_some() && !tagged && !length {
            return Ok(false);
        }
        let complete = self
            .known
            .as_ref()
            .is_some_and(|known| known.unknown().is_empty());
        if complete && tagged {
            let mut same = true;
            for (root, tag) in ROOTS.iter().zip(&self.tags) {
                same = same && tag_of(link, root, Some(tag)).await? == Tag::Same;
            }
            if same {
                return Ok(false);
            }
        }
        // The tags are taken first: a change between the two is then noticed with the next probe.
        let mut tags = Vec::new();
        for root in ROOTS {
            if let Tag::New(tag) = tag_of(link, root, None).await? {
                tags.push(tag);
            }
        }
        let found = discover(link).await?;
        self.tags = tags;
        self.known = Some(Arc::new(found));
        Ok(true)
    }
}

const ROOTS: [&str; 2] = ["/api", "/apis"];

#[derive(Debug, PartialEq)]
enum Tag {
    Same,
    New(HeaderValue),
    /// The server does not speak of it: older than aggregated discovery, or a proxy took the tag away.
    None,
}

async fn tag_of(link: &Link, root: &str, known: Option<&HeaderValue>) -> Result<Tag, LinkError> {
    let mut request = Request::get(root)
        .header(ACCEPT, AGGREGATED)
        .body(Body::empty())
        .map_err(|error| LinkError::BadAnswer(error.to_string()))?;
    if let Some(tag) = known {
        request.headers_mut().insert(IF_NONE_MATCH, tag.clone());
    }
    let answer = tokio::time::timeout(ANSWER_WITHIN, link.client().send(request))
        .await
        .map_err(|_| LinkError::Unreachable(format!("no answer within {ANSWER_WITHIN:?}")))?
        .map_err(|error| LinkError::Unreachable(chain(&error)))?;
    if answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(Tag::Same);
    }
    let aggregated = answer
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.contains("APIGroupDiscoveryList"));
    Ok(match answer.headers().get(ETAG) {
        Some(tag) if aggregated && answer.status().is_success() => match known {
            Some(known) if known == tag => Tag::Same,
            _ => Tag::New(tag.clone()),
        },
        _ => Tag::None,
    })
}

/// How many nodes a member has and how many are ready, as `status.nodeSummary` says it: zeros are left out.
pub(super) async fn nodes(link: &Link) -> Result<Value, LinkError> {
    let (mut total, mut ready) = (0_u64, 0_u64);
    let mut path = format!("/api/v1/nodes?limit={PAGE}&includeObject=None");
    for _ in 0..MAX_PAGES {
        let answer = link.get_as(&path, TABLE).await?;
        let page: NodePage =
            serde_json::from_slice(&answer).map_err(|e| LinkError::BadAnswer(format!("nodes: {e}")))?;
        let (more, ready_here) = page.count();
        total += more;
        ready += ready_here;
        if page.metadata.next.is_empty() {
            break;
        }
        path = format!("/api/v1/nodes?limit={PAGE}&includeObject=None&continue=");
        crate::resource::push_escaped(&mut path, &page.metadata.next);
    }
    let mut summary = Map::new();
    for (key, count) in [("totalNum", total), ("readyNum", ready)] {
        if count > 0 {
            summary.insert(key.to_owned(), json!(count));
        }
    }
    Ok(Value::Object(summary))
}

/// A page of nodes as a table, or as a list if the server makes no tables.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct NodePage {
    metadata: PageMeta,
    column_definitions: Vec<Column>,
    rows: Vec<Row>,
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMeta {
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
}

impl NodePage {
    /// All, and those that are ready.
    fn count(&self) -> (u64, u64) {
        let status = self.column_definitions.iter().position(|c| c.name == "Status");
        let ready_rows = self.rows.iter().filter(|row| {
            let cell = status.and_then(|at| row.cells.get(at)).and_then(Value::as_str);
            cell.is_some_and(|text| text.split(',').any(|word| word == "Ready"))
        });
        let ready_items = self.items.iter().filter(|node| {
            node["status"]["conditions"].as_array().is_some_and(|all| {
                all.iter()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            })
        });
        let total = self.rows.len() + self.items.len();
        (total as u64, (ready_rows.count() + ready_items.count()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_counted_from_tables_and_lists() {
        let table = json!({
            "kind": "Table", "columnDefinitions": [{"name": "Name"}, {"name": "Status"}],
            "rows": [{"cells": ["a", "Ready"]}, {"cells": ["b", "NotReady"]},
                     {"cells": ["c", "Ready,SchedulingDisabled"]}, {"cells": ["d", "NotReady,SchedulingDisabled"]}],
        });
        let list = json!({"kind": "NodeList", "items": [
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            {},
        ]});
        for (page, expected) in [(table, (4, 2)), (list, (3, 1)), (json!({}), (0, 0))] {
            let page: NodePage = serde_json::from_value(page).expect("a page");
            assert_eq!(page.count(), expected);
        }
    }
}
