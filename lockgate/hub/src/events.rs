//! Events: what people read in `kubectl describe`. They matter least of all that is written, so that one request at a time is
//! sent, and successes are sent at a modest pace from a short queue, or not at all. Notices and warnings are never dropped for
//! lack of pace: those about one object with one reason become one, with a count.

mod queue;
mod sender;

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::cache::Cached;
use crate::clock::Clock;
use crate::link::Link;
use crate::metrics::Metrics;
use crate::resource::Resource;
use queue::{News, Queue, Tone};

/// What an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTarget {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for objects of the cluster, whose events are in `default`.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl EventTarget {
    /// An object of a cache.
    pub fn of_cached(resource: &Resource, cached: &Cached) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            namespace: cached.key.namespace.to_string(),
            name: cached.key.name.to_string(),
            uid: cached.uid.clone(),
        }
    }

    /// A Work.
    pub(crate) fn of_work(work: &lockgate_api::Work) -> Self {
        let resource = Resource::works();
        Self {
            api_version: resource.api_version(),
            kind: resource.kind,
            namespace: work.metadata.namespace.clone(),
            name: work.metadata.name.clone(),
            uid: work.metadata.uid.clone(),
        }
    }

    /// An object.
    pub fn of_value(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
        }
    }
}

/// How events are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOptions {
    /// How many successes may wait; more are dropped.
    pub queue: usize,
    /// How many successes are sent in a second, when there are many.
    pub successes_per_second: u32,
    /// How many of them are sent at once after a quiet time.
    pub burst: u32,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self {
            queue: 64,
            successes_per_second: 10,
            burst: 20,
        }
    }
}

/// Where events are handed in. Clones share one queue; it ends with the last of them.
#[derive(Clone)]
pub struct Events {
    shared: Arc<Shared>,
    _task: Arc<Task>,
}

struct Shared {
    queue: parking_lot::Mutex<Queue>,
    wake: Notify,
    /// Whether everything was sent.
    idle: watch::Sender<bool>,
    metrics: Arc<Metrics>,
}

struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Events {
    /// Starts to send events over a link. Needs a tokio runtime.
    pub fn start(link: &Link, clock: &Clock, metrics: Arc<Metrics>, options: &EventOptions) -> Self {
        let shared = Arc::new(Shared {
            queue: parking_lot::Mutex::new(Queue::new(options.queue)),
            wake: Notify::new(),
            idle: watch::Sender::new(true),
            metrics,
        });
        let task = sender::run(link.clone(), clock.clone(), shared.clone(), options.clone());
        Self {
            shared,
            _task: Arc::new(Task(tokio::spawn(task))),
        }
    }

    /// Something went well. It may never be sent.
    pub fn success(&self, on: &EventTarget, reason: &str, message: &str) {
        self.hand_in(Tone::Success, on, reason, message);
    }

    /// Something went well, and somebody must know. It is sent, merged with others of its object and reason.
    pub fn notice(&self, on: &EventTarget, reason: &str, message: &str) {
        self.hand_in(Tone::Notice, on, reason, message);
    }

    /// Something did not go well. It is sent, merged with others of its object and reason.
    pub fn warn(&self, on: &EventTarget, reason: &str, message: &str) {
        self.hand_in(Tone::Warning, on, reason, message);
    }

    /// Returns when everything that was handed in is sent or given up.
    pub async fn drained(&self) {
        // The sender lives as long as `self`, so that waiting cannot fail.
        let _ = self.shared.idle.subscribe().wait_for(|idle| *idle).await;
    }

    fn hand_in(&self, tone: Tone, on: &EventTarget, reason: &str, message: &str) {
        let news = News::new(tone, on.clone(), reason, message);
        {
            let mut queue = self.shared.queue.lock();
            if !queue.push(news) {
                self.shared.metrics.event_dropped();
                return;
            }
            self.shared.idle.send_replace(false);
        }
        self.shared.wake.notify_one();
    }
}
