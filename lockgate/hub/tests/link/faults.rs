//! Faults on the way to a server: a tower service around another.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt};

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The server is not reached.
    Cut,
    /// The server does what it was asked, and its answer is lost.
    AnswerLost,
    /// This is the answer: a code, a body, and the header `Retry-After`.
    Answer(u16, String, Option<&'static str>),
    /// The answer's body fails after so many frames.
    CutAfter(usize),
    /// The answer's body ends in good order after so many frames.
    EndAfter(usize),
    /// The answer is a stream of these bytes, after which nothing comes, for ever.
    Stream(String),
    /// The answer never comes.
    Hang,
}

impl Fault {
    /// A `Status` as servers answer it.
    pub(crate) fn status(code: u16, reason: &str) -> Self {
        let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": reason, "message": reason, "code": code});
        Self::Answer(code, status.to_string(), None)
    }
}

/// Faults to come, and what was asked for: `METHOD path?query`. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    coming: Arc<Mutex<VecDeque<(&'static str, Fault)>>>,
    always: Arc<Mutex<Option<(&'static str, Fault)>>>,
    asked: watch::Sender<Vec<String>>,
}

impl Faults {
    /// The next request that contains `part` meets this fault. Faults of the same part are met in turn.
    pub(crate) fn next(&self, part: &'static str, fault: Fault) -> &Self {
        self.coming.lock().push_back((part, fault));
        self
    }

    /// Every request that contains `part` meets this fault, until told otherwise.
    pub(crate) fn always(&self, fault: Option<(&'static str, Fault)>) {
        *self.always.lock() = fault;
    }

    /// What was asked for that contains `part`.
    pub(crate) fn asked(&self, part: &str) -> Vec<String> {
        let asked = self.asked.borrow();
        asked.iter().filter(|r| r.contains(part)).cloned().collect()
    }

    /// Waits until so many requests that contain `part` were made.
    pub(crate) async fn reach(&self, count: usize, part: &str) {
        let enough = |all: &Vec<String>| all.iter().filter(|r| r.contains(part)).count() >= count;
        self.asked.subscribe().wait_for(enough).await.unwrap();
    }

    /// A service with these faults before it.
    pub(crate) fn on<S>(&self, service: S) -> Faulty<S> {
        Faulty {
            service,
            faults: self.clone(),
        }
    }

    fn take(&self, request: &str) -> Option<Fault> {
        self.asked.send_modify(|asked| asked.push(request.to_owned()));
        let mut coming = self.coming.lock();
        if let Some(at) = coming.iter().position(|(part, _)| request.contains(part)) {
            return coming.remove(at).map(|(_, fault)| fault);
        }
        let always = self.always.lock();
        always
            .as_ref()
            .filter(|(part, _)| request.contains(part))
            .map(|(_, fault)| fault.clone())
    }
}

#[derive(Clone)]
pub(crate) struct Faulty<S> {
    service: S,
    faults: Faults,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl<S, B> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let fault = self
            .faults
            .take(&format!("{} {}", request.method(), request.uri()));
        let service = self.service.clone();
        Box::pin(async move {
            let ask = |request| async {
                let Ok(answer) = service.oneshot(request).await;
                answer.map(|body| body.map_err(Into::into).boxed_unsync())
            };
            match fault {
                None => Ok(ask(request).await),
                Some(Fault::Cut) => Err("connection refused".into()),
                Some(Fault::AnswerLost) => {
                    drop(ask(request).await);
                    Err("connection reset".into())
                }
                Some(Fault::Answer(code, body, retry_after)) => {
                    let mut answer = Response::builder().status(StatusCode::from_u16(code)?);
                    if let Some(seconds) = retry_after {
                        answer = answer.header("retry-after", seconds);
                    }
                    let body = Full::new(Bytes::from(body)).map_err(|e| match e {});
                    Ok(answer.body(body.boxed_unsync())?)
                }
                Some(Fault::CutAfter(frames)) => {
                    let cut = futures::stream::iter([Err("connection reset".into())]);
                    Ok(ask(request).await.map(|body| {
                        let frames = frames_of(body).take(frames);
                        StreamBody::new(frames.chain(cut)).boxed_unsync()
                    }))
                }
                Some(Fault::EndAfter(frames)) => Ok(ask(request)
                    .await
                    .map(|body| StreamBody::new(frames_of(body).take(frames)).boxed_unsync())),
                Some(Fault::Stream(text)) => {
                    let frame = http_body::Frame::data(Bytes::from(text));
                    let frames = futures::stream::iter([Ok(frame)]).chain(futures::stream::pending());
                    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
                }
                Some(Fault::Hang) => std::future::pending().await,
            }
        })
    }
}

type Frames = Pin<Box<dyn futures::Stream<Item = Result<http_body::Frame<Bytes>, BoxError>> + Send>>;

fn frames_of(body: UnsyncBoxBody<Bytes, BoxError>) -> Frames {
    Box::pin(futures::stream::unfold(body, |mut body| async {
        let frame = body.frame().await?;
        Some((frame, body))
    }))
}
