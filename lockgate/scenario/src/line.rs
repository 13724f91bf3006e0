//! The lines on which the controllers reach servers: what goes over one is counted, and a line can be cut.
//!
//! A cut is what a crash or a dead network looks like from outside: requests fail, and watches break off. The runner's
//! own requests go over no line.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tower::BoxError;

use crate::file::Fault;

/// A line to one server. Its state outlives the controllers that use it.
#[derive(Debug)]
pub struct Line {
    fault: watch::Sender<Fault>,
    writes: AtomicU64,
    /// Which lists come late; none with 0.
    late: AtomicU64,
    /// The last writes, for reports.
    recent: Mutex<std::collections::VecDeque<String>>,
    /// The first write that changes or deletes whatever is there.
    blind: Mutex<Option<String>>,
}

/// How many writes are remembered for reports.
const RECENT: usize = 50;
/// How late a list comes that comes late: much later than all others.
const LATE: Duration = Duration::from_millis(30);

impl Default for Line {
    fn default() -> Self {
        Self {
            fault: watch::Sender::new(Fault::Up),
            writes: AtomicU64::new(0),
            late: AtomicU64::new(0),
            recent: Mutex::default(),
            blind: Mutex::default(),
        }
    }
}

impl Line {
    /// Breaks the line, or mends it.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// What is wrong with it.
    pub fn fault(&self) -> Fault {
        self.fault.borrow().clone()
    }

    /// From now on about a third of all lists come late, others with each number. Controllers that start may not act on what
    /// they know before they know everything.
    pub fn come_late(&self, number: u64) {
        self.late.store(number, Ordering::Release);
    }

    /// Whether the answer to a request comes late.
    fn is_late(&self, request: &Request<Body>) -> bool {
        let number = self.late.load(Ordering::Acquire);
        let is_list = *request.method() == Method::GET
            && request.uri().query().is_some_and(|query| {
                let mut pairs = query.split('&');
                // One that asks for a single object asks only whether there is any.
                pairs.any(|pair| pair.starts_with("limit=") && pair != "limit=1")
            });
        if number == 0 || !is_list {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        (number, request.uri().path()).hash(&mut hasher);
        hasher.finish().is_multiple_of(3)
    }

    /// How many writes went over it. Events, leases and questions about rights and tokens do not count.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// The last writes, oldest first.
    pub fn recent(&self, count: u64) -> Vec<String> {
        let recent = self.recent.lock();
        let skip = recent
            .len()
            .saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        recent.iter().skip(skip).cloned().collect()
    }

    /// A write that went over it and did not say which version it changes or deletes, if there was one.
    pub fn blind(&self) -> Option<String> {
        self.blind.lock().clone()
    }

    fn note(&self, write: String) {
        self.writes.fetch_add(1, Ordering::AcqRel);
        let mut recent = self.recent.lock();
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(write);
    }
}

/// Ends everything that some controllers do after a number of writes, as if they were killed then: the last write is
/// done, and its answer is lost.
#[derive(Debug)]
pub struct Fuse {
    left: Mutex<Option<u64>>,
    blown: watch::Sender<bool>,
}

impl Fuse {
    /// A fuse that never blows by itself.
    pub fn none() -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(None),
            blown: watch::Sender::new(false),
        })
    }

    /// From now on, blow with this many writes.
    pub fn arm(&self, writes: u64) {
        *self.left.lock() = Some(writes);
    }

    /// How many writes are left; none if it never blows.
    pub fn left(&self) -> Option<u64> {
        *self.left.lock()
    }

    /// Blows it now.
    pub fn blow(&self) {
        self.blown.send_replace(true);
    }

    /// Whether it has blown.
    pub fn blown(&self) -> bool {
        *self.blown.borrow()
    }

    /// A write was done; says whether its answer gets through.
    fn spend(&self) -> bool {
        let mut left = self.left.lock();
        if let Some(number) = &mut *left {
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.blow();
            }
        }
        !self.blown()
    }
}

/// The same client, over a line and behind a fuse.
pub(crate) fn over(client: kube::Client, line: Arc<Line>, fuse: Arc<Fuse>) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, line, fuse) = (client.clone(), line.clone(), fuse.clone());
        async move { pass(client, &line, &fuse, request).await }
    });
    kube::Client::new(service, namespace)
}

async fn pass(
    client: kube::Client,
    line: &Line,
    fuse: &Fuse,
    request: Request<Body>,
) -> Result<Response<Cut>, BoxError> {
    if fuse.blown() {
        return Err(refused("the controllers were stopped here"));
    }
    let counts = is_counted(request.method(), request.uri().path());
    let fault = line.fault.borrow().clone();
    match fault {
        Fault::Up => {}
        Fault::Down => return Err(refused("the scenario took this member down")),
        Fault::Refuses {
            resources,
            code,
            message,
        } => {
            if counts && resources.iter().any(|plural| names(request.uri().path(), plural)) {
                return answer(code, &message);
            }
        }
        Fault::Hides {
            resources,
            code,
            message,
        } => {
            if resources.iter().any(|plural| names(request.uri().path(), plural)) {
                return answer(code, &message);
            }
        }
    }
    if line.is_late(&request) {
        tokio::time::sleep(LATE).await;
    }
    // What is only tried changes nothing.
    let tried = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("dryRun=All"));
    let path = request.uri().path().to_owned();
    let title = (counts && !tried).then(|| format!("{} {}", request.method(), request.uri().path()));
    let (head, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    if let Some(title) = &title
        && !names_version(&head.method, &body)
    {
        line.blind.lock().get_or_insert_with(|| title.clone());
    }
    let response = client.send(Request::from_parts(head, body.into())).await?;
    if let Some(title) = title {
        if response.status().is_success() {
            line.note(title);
        }
        if !fuse.spend() {
            return Err(refused("the controllers were stopped here"));
        }
    }
    let mut down = line.fault.subscribe();
    let mut blown = fuse.blown.subscribe();
    let cut = async move {
        tokio::select! {
            _ = down.wait_for(|fault| path.split('/').any(|part| !fault.shows(part))) => {}
            _ = blown.wait_for(|blown| *blown) => {}
        }
    };
    Ok(response.map(|inner| Cut {
        inner,
        cut: Some(Box::pin(cut)),
    }))
}

fn refused(why: &str) -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionRefused, why).into()
}

/// An answer that is no success.
fn answer(code: u16, message: &str) -> Result<Response<Cut>, BoxError> {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        408 | 504 => "Timeout",
        422 => "Invalid",
        503 => "ServiceUnavailable",
        400..500 => "BadRequest",
        _ => "InternalError",
    };
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    Ok(Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Cut {
            inner: Body::from(status.to_string().into_bytes()),
            cut: None,
        })?)
}

/// Whether a path leads to this resource, or to something in it.
fn names(path: &str, plural: &str) -> bool {
    path.split('/').skip(1).any(|part| part == plural)
}

/// Whether a request is a write that counts.
fn is_counted(method: &Method, path: &str) -> bool {
    let aside = [
        "/events",
        "/leases",
        "/apis/authorization.k8s.io/",
        "/apis/authentication.k8s.io/",
    ];
    !matches!(*method, Method::GET | Method::HEAD)
        && !aside.iter().any(|part| path.contains(part))
        && !path.ends_with("/token")
}

/// Whether a write is a create, or says which version of the object it is about.
fn names_version(method: &Method, body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let version = match *method {
        Method::POST => return true,
        Method::DELETE => &body["preconditions"]["resourceVersion"],
        _ => &body["metadata"]["resourceVersion"],
    };
    version.as_str().is_some_and(|version| !version.is_empty())
}

/// A body that breaks off when its line is cut.
pub(crate) struct Cut {
    inner: Body,
    cut: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(cut) = &mut self.cut
            && cut.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(refused("the line was cut"))));
        }
        Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_count() {
        for (method, path, counts) in [
            (Method::GET, "/api/v1/namespaces", false),
            (Method::POST, "/api/v1/namespaces", true),
            (
                Method::PUT,
                "/apis/apps/v1/namespaces/a/deployments/b/status",
                true,
            ),
            (Method::POST, "/api/v1/namespaces/a/events", false),
            (Method::POST, "/apis/events.k8s.io/v1/namespaces/a/events", false),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
                false,
            ),
            (
                Method::POST,
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                false,
            ),
            (
                Method::POST,
                "/api/v1/namespaces/a/serviceaccounts/b/token",
                false,
            ),
        ] {
            assert_eq!(is_counted(&method, path), counts, "{method} {path}");
        }
    }

    #[test]
    fn writes_that_name_a_version() {
        for (method, body, names) in [
            (Method::POST, "{}", true),
            (Method::PUT, r#"{"metadata": {"resourceVersion": "7"}}"#, true),
            (Method::PUT, r#"{"metadata": {"uid": "u"}}"#, false),
            (
                Method::DELETE,
                r#"{"preconditions": {"uid": "u", "resourceVersion": "7"}}"#,
                true,
            ),
            (Method::DELETE, r#"{"preconditions": {"uid": "u"}}"#, false),
            (Method::DELETE, "", false),
        ] {
            assert_eq!(names_version(&method, body.as_bytes()), names, "{method} {body}");
        }
    }

    #[test]
    fn some_lists_come_late_others_each_time() {
        let line = Line::default();
        let get = |uri: &str| Request::get(uri).body(Body::empty()).unwrap();
        let late = |number| {
            line.come_late(number);
            let paths = (0..30).map(|path| get(&format!("/apis/example.com/v1/kind{path}?limit=500")));
            paths.map(|request| line.is_late(&request)).collect::<Vec<_>>()
        };
        assert!(!late(0).contains(&true));
        let (first, second) = (late(1), late(2));
        assert!(first.contains(&true) && first.contains(&false));
        assert_ne!(first, second);
        assert_eq!(first, late(1));
        for other in ["/api/v1/pods?limit=1", "/api/v1/pods?watch=true", "/api/v1/pods"] {
            assert!((1..20).all(|number| {
                line.come_late(number);
                !line.is_late(&get(other))
            }));
        }
    }

    #[test]
    fn a_fuse_blows_with_its_last_write() {
        let fuse = Fuse::none();
        assert!(fuse.spend());
        fuse.arm(2);
        assert!(fuse.spend());
        assert!(!fuse.spend());
        assert!(fuse.blown());
    }
}
