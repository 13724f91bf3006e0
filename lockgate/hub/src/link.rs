//! The link to one API server: requests and answers as bytes, over a [`kube::Client`].
//!
//! Nothing is retried here, and nothing paced but by [`Link::with_writes_at_once`] and the order of links that share a
//! precedence: who asks knows better. Every answer is bounded in size and time, and every write names us as its manager. Make the client with `Config::default_retry` off, else kube retries underneath.

mod error;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::election::Guard;
use crate::precedence::{Precedence, UnderWay};
pub use error::LinkError;

/// The name under which the server records what we write.
pub const FIELD_MANAGER: &str = "lockgate";

/// No answer is read beyond this; a page of a list may come near it.
const MAX_ANSWER: usize = 256 << 20;

/// No more of an answer that is an error is read.
const MAX_ERROR: usize = 1 << 20;

/// How long an answer may take, unless it is a stream.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const MERGE_PATCH: HeaderValue = HeaderValue::from_static("application/merge-patch+json");

/// A connection to an API server. Clones share it.
#[derive(Clone)]
pub struct Link {
    client: kube::Client,
    within: Duration,
    /// How many writes may be under way at once.
    writes: Option<Arc<Semaphore>>,
    guard: Guard,
    order: Order,
}

/// A link's place among those that write to one server.
#[derive(Clone, Default)]
enum Order {
    #[default]
    Any,
    /// Its writes go first.
    First(Precedence),
    /// Its writes wait for those.
    After(Precedence),
}

/// A write's turn: it lasts until this is dropped.
struct Turn<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    _under_way: Option<UnderWay>,
}

/// What a deletion may insist on.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Delete only the object with this uid.
    pub uid: Option<String>,
    /// Delete only this version.
    pub resource_version: Option<String>,
    /// `Background`, `Foreground` or `Orphan`; the server decides when there is none.
    pub propagation: Option<&'static str>,
}

impl DeleteOptions {
    /// Deletes an object as it was read, and no later form of it; what it owns goes after it.
    pub(crate) fn as_read(uid: &str, resource_version: &str) -> Self {
        Self {
            uid: Some(uid.to_owned()),
            resource_version: Some(resource_version.to_owned()),
            propagation: Some("Background"),
        }
    }
}

/// What became of an object that was deleted.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// Finalizers or a grace period keep it; this is how it looks now.
    Going(Bytes),
}

impl Link {
    /// A link over this client.
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            within: ANSWER_WITHIN,
            writes: None,
            guard: Guard::always(),
            order: Order::Any,
        }
    }

    /// The same link for writes that go first.
    pub(crate) fn first(mut self, precedence: &Precedence) -> Self {
        self.order = Order::First(precedence.clone());
        self
    }

    /// The same link for writes that wait for those that go first.
    pub(crate) fn after(mut self, precedence: &Precedence) -> Self {
        self.order = Order::After(precedence.clone());
        self
    }

    /// The same link for one who may lose the right to write: asked when a write's turn has come, so that nothing is sent
    /// that was decided before.
    pub fn while_leading(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// The same connection with at most so many writes under way at once; the others wait for their turn. A server does no
    /// more with more of them, and each has a connection of its own.
    pub fn with_writes_at_once(mut self, writes: usize) -> Self {
        self.writes = Some(Arc::new(Semaphore::new(writes)));
        self
    }

    /// Waits for a write's turn; an error if nothing may be written any more when it comes.
    async fn turn(&self) -> Result<Turn<'_>, LinkError> {
        let under_way = match &self.order {
            Order::Any => None,
            // What waits for a permit is part of the burst.
            Order::First(precedence) => Some(precedence.go_first()),
            Order::After(precedence) => {
                precedence.give_way().await;
                None
            }
        };
        let permit = match &self.writes {
            // The semaphore is never closed.
            Some(writes) => writes.acquire().await.ok(),
            None => None,
        };
        if self.guard.may_write() {
            return Ok(Turn {
                _permit: permit,
                _under_way: under_way,
            });
        }
        Err(LinkError::Refused {
            code: 0,
            reason: "NotLeading".into(),
            message: "another controller may be leading by now".into(),
        })
    }

    /// The same link with another bound on the time of an answer.
    pub fn answering_within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// The client underneath.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// What is at a path; a query may be part of it.
    pub async fn get(&self, path: &str) -> Result<Bytes, LinkError> {
        self.get_as(path, JSON).await
    }

    /// What is at a path, in the form that is asked for.
    pub(crate) async fn get_as(&self, path: &str, accept: HeaderValue) -> Result<Bytes, LinkError> {
        self.ask(request(Method::GET, path, accept, None)?).await
    }

    /// Creates an object in a collection. `NotFound` says that its namespace is missing.
    pub async fn create(&self, collection: &str, body: Vec<u8>) -> Result<Bytes, LinkError> {
        self.write(Method::POST, collection, JSON, body).await
    }

    /// Creates an object under a manager's name of its own, by which its maker is known for as long as it lives.
    pub(crate) async fn create_as(
        &self,
        manager: &str,
        collection: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, LinkError> {
        self.write_as(manager, Method::POST, collection, JSON, body).await
    }

    /// Replaces an object, or its status.
    pub async fn replace(&self, path: &str, body: Vec<u8>) -> Result<Bytes, LinkError> {
        self.write(Method::PUT, path, JSON, body).await
    }

    /// Merges a patch into an object, or its status.
    pub async fn merge_patch(&self, path: &str, body: Vec<u8>) -> Result<Bytes, LinkError> {
        self.write(Method::PATCH, path, MERGE_PATCH, body).await
    }

    /// Deletes an object.
    pub async fn delete(&self, path: &str, options: &DeleteOptions) -> Result<(), LinkError> {
        self.delete_answer(path, options).await.map(drop)
    }

    /// Deletes an object, and says whether it is gone.
    pub async fn delete_answer(&self, path: &str, options: &DeleteOptions) -> Result<Deleted, LinkError> {
        let deleted = self.delete_noting(path, options, || ());
        deleted.await.map(|(answer, ())| answer)
    }

    /// Deletes an object, and notes it like [`Link::create_noting`].
    pub(crate) async fn delete_noting<T>(
        &self,
        path: &str,
        options: &DeleteOptions,
        begin: impl FnOnce() -> T,
    ) -> Result<(Deleted, T), LinkError> {
        let body = serde_json::to_vec(&DeleteBody::from(options))
            .map_err(|e| LinkError::BadAnswer(format!("cannot encode delete options: {e}")))?;
        let _turn = self.turn().await?;
        let noted = begin();
        let answer = self
            .ask(request(Method::DELETE, path, JSON, Some((JSON, body)))?)
            .await?;
        let lasting = serde_json::from_slice::<Lasting>(&answer).is_ok_and(|object| object.lasts());
        let deleted = if lasting {
            Deleted::Going(answer)
        } else {
            Deleted::Gone
        };
        Ok((deleted, noted))
    }

    /// Opens a stream: the answer's head came in time, its body has no end that we know.
    pub(crate) async fn stream(&self, path: &str) -> Result<Body, LinkError> {
        let request = request(Method::GET, path, JSON, None)?;
        let answer = tokio::time::timeout(self.within, self.send(request))
            .await
            .map_err(|_| self.late())??;
        Ok(answer.into_body())
    }

    /// Creates an object. `begin` is called when the write's turn has come, and what it makes lasts as long as the answer.
    pub(crate) async fn create_noting<T>(
        &self,
        collection: &str,
        body: Vec<u8>,
        begin: impl FnOnce() -> T,
    ) -> Result<(Bytes, T), LinkError> {
        self.write_noting(FIELD_MANAGER, Method::POST, collection, JSON, body, begin)
            .await
    }

    /// Replaces an object, or its status, and notes it like [`Link::create_noting`].
    pub(crate) async fn replace_noting<T>(
        &self,
        path: &str,
        body: Vec<u8>,
        begin: impl FnOnce() -> T,
    ) -> Result<(Bytes, T), LinkError> {
        self.write_noting(FIELD_MANAGER, Method::PUT, path, JSON, body, begin)
            .await
    }

    async fn write(
        &self,
        method: Method,
        path: &str,
        content_type: HeaderValue,
        body: Vec<u8>,
    ) -> Result<Bytes, LinkError> {
        self.write_as(FIELD_MANAGER, method, path, content_type, body)
            .await
    }

    async fn write_as(
        &self,
        manager: &str,
        method: Method,
        path: &str,
        content_type: HeaderValue,
        body: Vec<u8>,
    ) -> Result<Bytes, LinkError> {
        let written = self.write_noting(manager, method, path, content_type, body, || ());
        written.await.map(|(answer, ())| answer)
    }

    async fn write_noting<T>(
        &self,
        manager: &str,
        method: Method,
        path: &str,
        content_type: HeaderValue,
        body: Vec<u8>,
        begin: impl FnOnce() -> T,
    ) -> Result<(Bytes, T), LinkError> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut path = format!("{path}{joint}fieldManager={manager}");
        if !path.contains("fieldValidation=") {
            // A server looks for unknown fields only to warn of them, and nobody would read it.
            path.push_str("&fieldValidation=Ignore");
        }
        let _turn = self.turn().await?;
        let noted = begin();
        let answer = self
            .ask(request(method, &path, JSON, Some((content_type, body)))?)
            .await?;
        Ok((answer, noted))
    }

    /// Sends, and reads the whole answer.
    async fn ask(&self, request: Request<Body>) -> Result<Bytes, LinkError> {
        tokio::time::timeout(self.within, async {
            let answer = self.send(request).await?;
            collect(answer.into_body(), MAX_ANSWER).await
        })
        .await
        .map_err(|_| self.late())?
    }

    /// Sends; an answer that is no success is an error.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, LinkError> {
        let answer = self
            .client
            .send(request)
            .await
            .map_err(|e| LinkError::Unreachable(chain(&e)))?;
        let code = answer.status();
        if code.is_success() {
            return Ok(answer);
        }
        Err(refusal(code, answer).await)
    }

    fn late(&self) -> LinkError {
        LinkError::Unreachable(format!("no answer within {:?}", self.within))
    }
}

async fn refusal(code: StatusCode, answer: Response<Body>) -> LinkError {
    let retry_after = answer
        .headers()
        .get(http::header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|seconds| seconds.trim().parse().ok())
        .map(Duration::from_secs);
    match collect(answer.into_body(), MAX_ERROR).await {
        Ok(body) => LinkError::of_answer(code.as_u16(), retry_after, &body),
        // The code alone still says most of it.
        Err(_) => LinkError::of_answer(code.as_u16(), retry_after, b""),
    }
}

fn request(
    method: Method,
    path: &str,
    accept: HeaderValue,
    body: Option<(HeaderValue, Vec<u8>)>,
) -> Result<Request<Body>, LinkError> {
    let builder = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    match body {
        Some((content_type, body)) => builder.header(CONTENT_TYPE, content_type).body(Body::from(body)),
        None => builder.body(Body::empty()),
    }
    .map_err(|e| LinkError::Refused {
        code: 0,
        reason: "BadRequest".into(),
        message: format!("{path:?} is no path: {e}"),
    })
}

/// Reads a body up to a bound. A body of one frame is not copied.
async fn collect(mut body: Body, limit: usize) -> Result<Bytes, LinkError> {
    let mut only = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| LinkError::Unreachable(chain(&e)))?;
        let Ok(data) = frame.into_data() else { continue };
        if only.len() + all.len() + data.len() > limit {
            return Err(LinkError::BadAnswer(format!("longer than {limit} bytes")));
        }
        if all.is_empty() && only.is_empty() {
            only = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut only));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { only } else { all.freeze() })
}

/// An error with its causes, which often hold the only useful word.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteBody<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<Preconditions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

impl<'a> From<&'a DeleteOptions> for DeleteBody<'a> {
    fn from(options: &'a DeleteOptions) -> Self {
        let uid = options.uid.as_deref();
        let resource_version = options.resource_version.as_deref();
        Self {
            api_version: "v1",
            kind: "DeleteOptions",
            preconditions: (uid.is_some() || resource_version.is_some()).then_some(Preconditions {
                uid,
                resource_version,
            }),
            propagation_policy: options.propagation,
        }
    }
}

/// As much of a deletion's answer as tells whether the object is still there.
#[derive(Deserialize)]
struct Lasting {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: crate::cache::Lifetime,
}

impl Lasting {
    fn lasts(&self) -> bool {
        self.kind != "Status" && self.metadata.terminating() && !self.metadata.over()
    }
}
