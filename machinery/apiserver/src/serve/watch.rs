//! Watches: the changes of a collection as a stream, one JSON object a line.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http::Response;
use machinery_store::{Event, From, Kind, Next, ReadError, Watch};
use machinery_table::{IncludeObject, object_table, partial_object_metadata};
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;
use std::sync::Arc;
use tokio::time::Instant;

use crate::body::Body;
use crate::negotiate::{Accept, Encoding, Shape};
use crate::object::{Object, Stored};
use crate::ops::read::parse_version;
use crate::ops::select::Selection;
use crate::places::Turns;
use crate::resource::Resource;
use crate::serve::lists::PIECE;
use crate::serve::{Call, respond};
use crate::status::{ApiError, Subject};

/// How many events may wait for a slow reader before its watch ends.
const BUFFER: usize = 4096;
/// How many objects are looked at before others have their turn.
const TURN: usize = 128;
/// How often a quiet watch says where it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lives at least when the client does not say, and at most that long again: watches that were opened
/// together shall not all come back together.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// No watch lives longer than this.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Answers a watch.
pub(crate) fn answer(
    call: &Call,
    resource: &Arc<Resource>,
    accept: Accept,
) -> Result<Response<Body>, ApiError> {
    if accept.encoding != Encoding::Json || matches!(accept.shape, Shape::Discovery | Shape::PartialList) {
        return Err(ApiError::not_acceptable(crate::negotiate::OFFERED));
    }
    let query = &call.query;
    let selection = Selection::parse(resource, query, &call.info.name)?;
    let wants = Wants::parse(query)?;
    let prefix = resource.collection(&call.info.namespace);
    let store = &call.server.store;
    let mut first: VecDeque<Bytes> = VecDeque::new();
    let mut initial = None;
    let printer = Printer {
        resource: resource.clone(),
        shape: accept.shape,
        rows: respond::printer(resource),
        include: respond::include(call)?,
        server: call.server.clone(),
        columns_sent: false,
    };
    // Initial events at least as new as a version that nobody was ever told cannot be had. No version is waited for, as lists do
    // not wait: what was written is read at once here.
    let current = store.revision();
    let watch = if wants.initial_events && wants.after > current {
        let status = ApiError::too_large_resource_version(wants.after, current).to_status();
        first.push_back(line(&json!({"type": "ERROR", "object": status})));
        None
    } else if wants.initial_events {
        let (page, watch) = store.list_and_watch(&prefix, BUFFER);
        initial = Some(Initial {
            entries: page.entries.into_iter(),
            end: (wants.bookmarks && wants.marks_end).then_some(page.revision),
            turns: Turns::new(&call.server.workplaces, &call.user.name),
        });
        Some(watch)
    } else {
        // A version of the future is waited for: what comes before it is left out.
        let from = if wants.after > current {
            From::Now
        } else {
            From::After(wants.after)
        };
        match store.watch(&prefix, from, BUFFER) {
            Ok(watch) => Some(watch),
            Err(ReadError::Compacted { .. }) => {
                // Inside a 200: clients look for it in the stream, and some never look at the status code.
                let message = format!("too old resource version: {} ({})", wants.after, store.revision());
                let status = ApiError::expired(message).to_status();
                first.push_back(line(&json!({"type": "ERROR", "object": status})));
                None
            }
            Err(error) => return Err(ApiError::internal(error)),
        }
    };
    let state = Stream {
        first,
        initial,
        watch,
        printer,
        selection,
        // What follows initial events follows all of them.
        after: if wants.initial_events { 0 } else { wants.after },
        bookmarks: wants.bookmarks,
        deadline: Instant::now() + wants.timeout,
        next_bookmark: Instant::now() + BOOKMARK_EVERY,
        retirement: resource.custom().map(|custom| custom.retirement()),
    };
    let body = Body::stream(stream::unfold(state, |mut state| async move {
        state.next().await.map(|chunk| (chunk, state))
    }));
    let mut response = Response::new(body);
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

/// What a watch asks for.
struct Wants {
    after: u64,
    initial_events: bool,
    /// Whether a bookmark says that the initial events are over.
    marks_end: bool,
    bookmarks: bool,
    timeout: Duration,
}

impl Wants {
    fn parse(query: &crate::request::Query) -> Result<Self, ApiError> {
        let send = query
            .has("sendInitialEvents")
            .then(|| query.flag("sendInitialEvents"));
        let matching = query.get("resourceVersionMatch");
        let mut errors = Vec::new();
        let forbid = |field: &str, why: &str| FieldError::forbidden(&FieldPath::from(field), why);
        if send.is_some() && matching != "NotOlderThan" {
            errors.push(forbid(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if send.is_some() && !matching.is_empty() && matching != "NotOlderThan" {
            let path = FieldPath::from("resourceVersionMatch");
            errors.push(FieldError::not_supported(
                &path,
                &json!(matching),
                &["NotOlderThan"],
            ));
        }
        if send.is_none() && !matching.is_empty() {
            errors.push(forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid(
                Subject {
                    group: "meta.k8s.io",
                    name: "ListOptions",
                },
                "",
                &errors,
            ));
        }
        let version = parse_version(query.get("resourceVersion")).map_err(ApiError::unclassified)?;
        let timeout = match query.get("timeoutSeconds") {
            "" | "0" => {
                let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
                DEFAULT_TIMEOUT + DEFAULT_TIMEOUT * u32::from(random) / 256
            }
            text => {
                let unreadable = |_| {
                    ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
                };
                let seconds = text.parse::<i64>().map_err(unreadable)?;
                Duration::from_secs(seconds.max(0).unsigned_abs()).min(MAX_TIMEOUT)
            }
        };
        let unset = version.is_none_or(|v| v == 0);
        let bookmarks = query.flag("allowWatchBookmarks");
        Ok(Self {
            after: version.unwrap_or(0),
            initial_events: send.unwrap_or(unset),
            marks_end: send.unwrap_or(version == Some(0)),
            bookmarks,
            timeout,
        })
    }
}

/// A watch on its way to the client.
struct Stream {
    first: VecDeque<Bytes>,
    /// What there was when it began, as far as it is not sent yet.
    initial: Option<Initial>,
    watch: Option<Watch<Object>>,
    printer: Printer,
    selection: Selection,
    /// Events up to this revision are none of this client's business: it named the future.
    after: u64,
    bookmarks: bool,
    deadline: Instant,
    next_bookmark: Instant,
    /// Tells when the definition of a custom resource has changed. The watch ends then, and its client comes back to one that
    /// knows the new shape: this one would cut off what the definition has learned since.
    retirement: Option<Retirement>,
}

/// The objects that a watch begins with. They may be a whole collection: events are made of them as the client takes them.
struct Initial {
    entries: std::vec::IntoIter<Stored>,
    /// The revision for the bookmark after them, if the client wants one.
    end: Option<u64>,
    turns: Turns,
}

type Retirement = tokio::sync::watch::Receiver<Option<u64>>;

/// Waits until a definition no longer says what it said.
async fn retired(retirement: Option<&mut Retirement>) {
    match retirement {
        // The sender is part of the resource that the watch holds.
        Some(retirement) => drop(retirement.wait_for(Option::is_some).await),
        None => std::future::pending().await,
    }
}

impl Stream {
    /// The next bytes to send; none when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.first.pop_front() {
                return Some(chunk);
            }
            if let Some(chunk) = self.initial_events().await {
                return Some(chunk);
            }
            let watch = self.watch.as_mut()?;
            let wake = if self.bookmarks {
                self.deadline.min(self.next_bookmark)
            } else {
                self.deadline
            };
            tokio::select! {
                biased;
                next = watch.next() => match next {
                    Next::Event(event) if self.is_past(event.revision) => self.watch = None,
                    Next::Event(event) => {
                        if event.revision > self.after {
                            self.take(&event);
                        }
                    }
                    Next::Lagged | Next::Closed => {
                        self.watch = None;
                    }
                },
                // Only when nothing waits to be sent: what happened before the change is told.
                () = retired(self.retirement.as_mut()) => self.watch = None,
                () = tokio::time::sleep_until(wake) => {
                    let over = Instant::now() >= self.deadline;
                    if self.bookmarks {
                        let revision = watch.progress().max(self.after);
                        self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                        self.first.push_back(self.printer.bookmark(revision, false));
                    }
                    if over {
                        self.watch = None;
                    }
                }
            }
        }
    }

    /// The next piece of the initial events; none when they are all sent.
    async fn initial_events(&mut self) -> Option<Bytes> {
        let initial = self.initial.as_mut()?;
        let mut out = BytesMut::new();
        while out.is_empty() {
            // Also if nothing is selected: looking for it is work, too.
            initial.turns.next().await;
            for _ in 0..TURN {
                let Some(entry) = initial.entries.next() else {
                    if let Some(revision) = initial.end {
                        out.extend_from_slice(&self.printer.bookmark(revision, true));
                    }
                    self.initial = None;
                    return (!out.is_empty()).then(|| out.freeze());
                };
                if self.selection.matches(&self.printer.resource, &entry) {
                    for piece in self.printer.line("ADDED", &entry) {
                        out.extend_from_slice(&piece);
                    }
                }
                if out.len() >= PIECE {
                    break;
                }
            }
        }
        initial.turns.rest();
        Some(out.freeze())
    }

    /// Whether the definition had changed before this revision.
    fn is_past(&self, revision: u64) -> bool {
        let until = self.retirement.as_ref().and_then(|r| *r.borrow());
        until.is_some_and(|until| revision > until)
    }

    /// What an event of the store is to this client: an object may enter or leave its selection.
    fn take(&mut self, event: &Event<Object>) {
        let resource = &self.printer.resource;
        let matched = |entry: &Stored| self.selection.matches(resource, entry);
        let before = event.previous.as_ref().is_some_and(matched);
        let kind = match event.kind {
            Kind::Delete => before.then_some("DELETED"),
            Kind::Put => match (before, matched(&event.entry)) {
                (false, true) => Some("ADDED"),
                (true, true) => Some("MODIFIED"),
                (true, false) => Some("DELETED"),
                (false, false) => None,
            },
        };
        if let Some(kind) = kind {
            // What left the selection by a change is shown as it was, at the revision of the change.
            self.first.extend(match (kind, event.kind, &event.previous) {
                ("DELETED", Kind::Put, Some(previous)) => self.printer.left(previous, event.revision),
                _ => self.printer.line(kind, &event.entry),
            });
        }
    }
}

/// Writes events in the shape that the client accepts.
struct Printer {
    resource: Arc<Resource>,
    shape: Shape,
    rows: machinery_table::Printer,
    include: IncludeObject,
    server: Arc<crate::server::Inner>,
    columns_sent: bool,
}

impl Printer {
    fn line(&mut self, kind: &str, stored: &Stored) -> Vec<Bytes> {
        if self.shape == Shape::Object {
            let [head, body] = self.resource.encode(stored);
            let open = match kind {
                "ADDED" => "{\"type\":\"ADDED\",\"object\":",
                "MODIFIED" => "{\"type\":\"MODIFIED\",\"object\":",
                _ => "{\"type\":\"DELETED\",\"object\":",
            };
            let mut out = bytes::BytesMut::with_capacity(open.len() + head.len() + body.len() + 2);
            out.extend_from_slice(open.as_bytes());
            out.extend_from_slice(&head);
            out.extend_from_slice(&body);
            out.extend_from_slice(b"}\n");
            return vec![out.freeze()];
        }
        let object = self.resource.whole(stored);
        vec![self.shaped(kind, object)]
    }

    /// An object that left the selection: its former content, at the revision at which it left.
    fn left(&mut self, previous: &Stored, revision: u64) -> Vec<Bytes> {
        let mut object = self.resource.whole(previous);
        crate::meta::set_text(&mut object, "resourceVersion", revision.to_string());
        vec![self.shaped("DELETED", object)]
    }

    fn shaped(&mut self, kind: &str, object: Value) -> Bytes {
        let object = match self.shape {
            Shape::Partial => partial_object_metadata(&object),
            Shape::Table => {
                let first = !std::mem::replace(&mut self.columns_sent, true);
                object_table(&self.rows, &object, self.include, first, self.server.now())
            }
            _ => object,
        };
        line(&json!({"type": kind, "object": object}))
    }

    fn bookmark(&mut self, revision: u64, end_of_initial: bool) -> Bytes {
        let mut object = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if end_of_initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        match self.shape {
            Shape::Partial => {
                object["kind"] = json!("PartialObjectMetadata");
                object["apiVersion"] = json!("meta.k8s.io/v1");
                line(&json!({"type": "BOOKMARK", "object": object}))
            }
            Shape::Table => self.shaped("BOOKMARK", object),
            _ => line(&json!({"type": "BOOKMARK", "object": object})),
        }
    }
}

fn line(value: &Value) -> Bytes {
    let mut bytes = machinery_value::encode::to_vec(value);
    bytes.push(b'\n');
    bytes.into()
}
