//! One watch: reads its events, and checks that they are the writes, each once, in order.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Deserialize;

use super::Times;
use crate::client::{Call, Client};
use crate::error::BenchError;
use crate::payload::number;

/// A watch that sees nothing for so long has missed something.
const SILENCE: Duration = Duration::from_secs(60);
/// How long to listen for events that must not come, after the last one that must.
const AFTERMATH: Duration = Duration::from_millis(300);
const MOST_RESUMES: usize = 100;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
}

/// What a watch has seen so far.
pub(super) struct Seen {
    /// When each write was seen; zero if it was not.
    pub(super) at: Vec<u64>,
    /// How often the server ended the watch and it went on.
    pub(super) resumed: usize,
    count: usize,
    last_version: u64,
}

/// An open watch.
pub(super) struct Reader {
    client: Arc<Client>,
    lane: usize,
    collection: String,
    body: Incoming,
    seen: Seen,
}

impl Reader {
    /// Opens a watch of what comes after `version`.
    pub(super) async fn open(
        client: Arc<Client>,
        lane: usize,
        collection: String,
        version: u64,
        writes: usize,
    ) -> Result<Self, BenchError> {
        let body = client.open(lane, &call(&collection, version)).await?;
        let seen = Seen {
            at: vec![0; writes],
            resumed: 0,
            count: 0,
            last_version: version,
        };
        Ok(Self {
            client,
            lane,
            collection,
            body,
            seen,
        })
    }

    /// Reads until every write was seen.
    pub(super) async fn read(mut self, times: &Times) -> Result<Seen, BenchError> {
        let mut buffer = BytesMut::new();
        loop {
            let (count, total) = (self.seen.count, self.seen.at.len());
            let patience = if count == total { AFTERMATH } else { SILENCE };
            let frame = match tokio::time::timeout(patience, self.body.frame()).await {
                Err(_) | Ok(None) if count == total => return Ok(self.seen),
                Err(_) => {
                    return Err(BenchError::wrong(format!(
                        "a watch saw {count} of {total} events"
                    )));
                }
                Ok(None) => {
                    buffer.clear();
                    self.resume().await?;
                    continue;
                }
                Ok(Some(frame)) => frame.map_err(|e| BenchError::wrong(format!("a watch broke off: {e}")))?,
            };
            let Some(data) = frame.data_ref() else { continue };
            let now = times.now();
            let mut searched = buffer.len();
            buffer.extend_from_slice(data);
            while let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
                self.seen.take(&buffer[..searched + end], now)?;
                buffer.advance(searched + end + 1);
                searched = 0;
            }
        }
    }

    async fn resume(&mut self) -> Result<(), BenchError> {
        self.seen.resumed += 1;
        if self.seen.resumed > MOST_RESUMES {
            return Err(BenchError::wrong(format!(
                "a watch was ended {MOST_RESUMES} times"
            )));
        }
        self.body = self
            .client
            .open(self.lane, &call(&self.collection, self.seen.last_version))
            .await?;
        Ok(())
    }
}

fn call(collection: &str, version: u64) -> Call {
    Call::get(format!(
        "{collection}?watch=true&resourceVersion={version}&timeoutSeconds=600"
    ))
}

impl Seen {
    fn take(&mut self, line: &[u8], now: u64) -> Result<(), BenchError> {
        let event: Event<'_> = serde_json::from_slice(line)
            .map_err(|e| BenchError::wrong(format!("an event is not as expected: {e}")))?;
        let meta = &event.object.metadata;
        // Objects that a controller puts in every namespace are nobody's write.
        if event.kind == "BOOKMARK" || (event.kind == "ADDED" && !meta.name.starts_with("bench-")) {
            return Ok(());
        }
        let known = number(&meta.name).filter(|number| *number < self.at.len());
        let (Some(number), "ADDED") = (known, &*event.kind) else {
            return Err(BenchError::wrong(format!(
                "a watch saw {} of {:?}",
                event.kind, meta.name
            )));
        };
        let version = meta.resource_version.parse().unwrap_or(0);
        if version <= self.last_version {
            return Err(BenchError::wrong(format!(
                "a watch saw {} out of order",
                meta.name
            )));
        }
        if self.at[number] != 0 {
            return Err(BenchError::wrong(format!("a watch saw {} twice", meta.name)));
        }
        self.last_version = version;
        self.at[number] = now.max(1);
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, name: &str, version: &str) -> String {
        format!(
            r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"data":{{}}}}}}"#
        )
    }

    #[test]
    fn each_write_once_and_in_order() {
        let mut seen = Seen {
            at: vec![0; 3],
            resumed: 0,
            count: 0,
            last_version: 0,
        };
        let mut take =
            |kind: &str, name: &str, version: &str| seen.take(line(kind, name, version).as_bytes(), 9);
        take("ADDED", "bench-0000001", "10").unwrap();
        take("ADDED", "kube-root-ca.crt", "11").unwrap();
        take("BOOKMARK", "", "11").unwrap();
        for (kind, name, version, complaint) in [
            ("ADDED", "bench-0000000", "10", "out of order"),
            ("ADDED", "bench-0000001", "12", "twice"),
            ("ADDED", "bench-0000003", "12", "bench-0000003"),
            ("MODIFIED", "bench-0000000", "12", "MODIFIED"),
            ("ERROR", "", "", "ERROR"),
        ] {
            let error = take(kind, name, version).unwrap_err().to_string();
            assert!(error.contains(complaint), "{kind} {name} {version}: {error}");
        }
        take("ADDED", "bench-0000000", "12").unwrap();
        assert_eq!((seen.count, seen.at), (2, vec![9, 9, 0]));
    }
}
