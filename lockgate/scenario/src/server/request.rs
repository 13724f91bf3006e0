//! Requests and their answers.

use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde_json::Value;

use super::{Problem, Server};

/// The longest answer that is read.
const MAX_ANSWER: usize = 64 << 20;
/// The longest that a request may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

impl Server {
    /// Sends a request and reads its answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Value, Problem> {
        self.send_accepting(method, path, content_type, body, "application/json")
            .await
    }

    pub(super) async fn send_accepting(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
        accept: &str,
    ) -> Result<Value, Problem> {
        let title = format!("{method} {path}");
        let broken = |what: &dyn std::fmt::Display| Problem::Broken(format!("{title}: {what}"));
        let exchange = async {
            let mut request = Request::builder()
                .method(method)
                .uri(path)
                .header("accept", accept);
            if !content_type.is_empty() {
                request = request.header("content-type", content_type);
            }
            let request = request
                .body(Body::from(body.into_bytes()))
                .map_err(|error| broken(&error))?;
            let response = self
                .client()
                .send(request)
                .await
                .map_err(|error| broken(&error))?;
            let code = response.status().as_u16();
            let bytes = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await
                .map_err(|error| broken(&error))?
                .to_bytes();
            let value = serde_json::from_slice::<Value>(&bytes);
            if code >= 400 {
                let message = value
                    .ok()
                    .and_then(|status| status["message"].as_str().map(str::to_owned))
                    .unwrap_or_else(|| String::from_utf8_lossy(&bytes).trim().to_owned());
                return Err(Problem::Refused { code, message });
            }
            value.map_err(|error| broken(&error))
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(broken(&format!("no answer within {PATIENCE:?}"))),
        }
    }

    /// Opens a watch.
    pub(super) async fn watch(&self, path: &str) -> Result<Events, Problem> {
        let broken = |what: &dyn std::fmt::Display| Problem::Broken(format!("GET {path}: {what}"));
        let request = Request::get(path)
            .header("accept", "application/json")
            .body(Body::empty())
            .map_err(|error| broken(&error))?;
        let response = self
            .client()
            .send(request)
            .await
            .map_err(|error| broken(&error))?;
        if !response.status().is_success() {
            return Err(broken(&response.status()));
        }
        Ok(Events {
            body: response.into_body(),
            buffer: Vec::new(),
        })
    }
}

/// The events of a watch.
pub(super) struct Events {
    body: Body,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Problem> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let event = serde_json::from_slice(&line);
                return event
                    .map(Some)
                    .map_err(|error| Problem::Broken(format!("a watch: {error}")));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .map_err(|_| Problem::Broken(format!("a watch was silent for {PATIENCE:?}")))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(Problem::Broken(format!("a watch: {error}"))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                    if self.buffer.len() > MAX_ANSWER {
                        return Err(Problem::Broken("a watch sent a line without end".to_owned()));
                    }
                }
            }
        }
    }
}

/// Text as a value of a query.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
