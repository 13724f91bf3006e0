//! One watch: reads its events, and checks that they are the writes, each once, in order.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Deserialize;

use super::Times;
use crate::error::BenchError;
use crate::payload::number;

/// A watch that sees nothing for so long has missed something.
const SILENCE: Duration = Duration::from_secs(30);
/// How long to listen for events that must not come, after the last one that must.
const AFTERMATH: Duration = Duration::from_millis(300);

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
struct Seen {
    /// When each write was seen; zero if it was not.
    at: Vec<u64>,
    count: usize,
    last_version: u64,
}

/// Reads until every write was seen.
pub(super) async fn read(mut body: Incoming, times: &Times) -> Result<Vec<u64>, BenchError> {
    let mut seen = Seen {
        at: vec![0; times.sent.len()],
        count: 0,
        last_version: 0,
    };
    let mut buffer = BytesMut::new();
    loop {
        let complete = seen.count == seen.at.len();
        let patience = if complete { AFTERMATH } else { SILENCE };
        let frame = match tokio::time::timeout(patience, body.frame()).await {
            Err(_) if complete => return Ok(seen.at),
            Err(_) => {
                return Err(BenchError::wrong(format!(
                    "a watch saw {} of {} events",
                    seen.count,
                    seen.at.len()
                )));
            }
            Ok(None) => {
                return Err(BenchError::wrong(format!(
                    "a watch ended after {} events",
                    seen.count
                )));
            }
            Ok(Some(frame)) => frame.map_err(|e| BenchError::wrong(format!("a watch broke off: {e}")))?,
        };
        let Some(data) = frame.data_ref() else { continue };
        let now = times.now();
        let mut searched = buffer.len();
        buffer.extend_from_slice(data);
        while let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            seen.take(&buffer[..searched + end], now)?;
            buffer.advance(searched + end + 1);
            searched = 0;
        }
    }
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
