//! Following a resource: a list in pages, then a watch that goes on from there, for ever.
//!
//! What always holds: the cache is complete as of [`Cache::seen`]; a watch that ends is taken up where it ended; a watch that
//! the server can no longer continue is replaced by a new list, whose differences are told like any others. Failures are
//! waited out, at most half a minute at a time, and never empty the cache. A kind that is not served yet is asked for again
//! every few seconds.

mod lines;

use std::sync::Arc;
use std::time::Duration;

use machinery_value::labels::LabelSelector;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cache::{Cache, Change, Item, Slim};
use crate::link::{Link, LinkError};
use crate::resource::{Resource, push_escaped};
use lines::Lines;

/// How many objects a page holds. At a start a dozen lists are read at once, and a page is held twice while it is: larger ones
/// are hardly faster, and are what a controller's memory is measured by.
const PAGE: usize = 200;
/// Pages that were too long or too slow are halved, down to this.
const SMALLEST_PAGE: usize = 10;
/// How long the server may keep a watch open.
const WATCH_SECONDS: u64 = 300;
/// A watch that is silent for so long may hang on a dead connection: servers send bookmarks about once a minute.
const SILENCE: Duration = Duration::from_secs(100);
/// The first pause after a failure; each further one doubles it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a kind that is not served is asked for.
const NOT_SERVED_PAUSE: Duration = Duration::from_secs(3);
/// A watch that ends sooner than this without a word counts as a failure.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// A resource that is being followed, until this is dropped. Nothing is told after that.
pub struct Following {
    /// What is known of it.
    pub cache: Arc<Cache>,
    task: JoinHandle<()>,
    hurry: Arc<Notify>,
}

impl Following {
    /// The server is known to answer again: a failure is not waited out any longer.
    pub(crate) fn hurry(&self) {
        self.hurry.notify_waiters();
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
        self.cache.hush();
    }
}

/// Follows a resource in one namespace (in all, or in the cluster, when that is empty), restricted to the objects that a label
/// selector matches. `on_change` is called once for each difference, in order; it must be quick. Needs a tokio runtime.
pub fn follow(
    link: &Link,
    resource: &Resource,
    namespace: &str,
    label_selector: Option<&str>,
    on_change: impl Fn(&Change) + Send + Sync + 'static,
) -> Following {
    // A selector that cannot be read selects nothing here; the server says what is wrong with it.
    let selector =
        label_selector.map(|s| LabelSelector::parse(s).unwrap_or_else(|_| LabelSelector::nothing()));
    let cache = Cache::new(resource, namespace, selector, Arc::new(on_change));
    start(link, cache, label_selector, "")
}

/// Follows the objects of one name, in one namespace or in all.
pub(crate) fn follow_named(
    link: &Link,
    resource: &Resource,
    namespace: &str,
    name: &str,
    on_change: impl Fn(&Change) + Send + Sync + 'static,
) -> Following {
    let cache = Cache::new(resource, namespace, None, Arc::new(on_change));
    start(link, cache, None, name)
}

/// Follows all objects of a resource, of which only what `slim` leaves is kept.
pub(crate) fn follow_slim(
    link: &Link,
    resource: &Resource,
    slim: Slim,
    on_change: impl Fn(&Change) + Send + Sync + 'static,
) -> Following {
    let cache = Cache::new(resource, "", None, Arc::new(on_change)).keeping(slim);
    start(link, cache, None, "")
}

fn start(link: &Link, cache: Cache, label_selector: Option<&str>, name: &str) -> Following {
    let cache = Arc::new(cache);
    let (resource, namespace) = (cache.resource(), cache.namespace());
    let mut query = resource.collection(namespace);
    query.push('?');
    if let Some(selector) = label_selector {
        query.push_str("labelSelector=");
        push_escaped(&mut query, selector);
        query.push('&');
    }
    if !name.is_empty() {
        query.push_str("fieldSelector=metadata.name%3D");
        push_escaped(&mut query, name);
        query.push('&');
    }
    let hurry: Arc<Notify> = Arc::default();
    let follower = Follower {
        hurry: hurry.clone(),
        link: link.clone(),
        cache: cache.clone(),
        query,
        page: PAGE,
        pause: SHORTEST_PAUSE,
        relist_pause: SHORTEST_PAUSE,
    };
    Following {
        cache,
        task: tokio::spawn(follower.run()),
        hurry,
    }
}

struct Follower {
    /// Ends the pause after a failure.
    hurry: Arc<Notify>,
    link: Link,
    cache: Arc<Cache>,
    /// The collection with the start of a query.
    query: String,
    page: usize,
    /// The next pause after a failure.
    pause: Duration,
    /// The next pause before a list that follows a list with no word from a watch between them.
    relist_pause: Duration,
}

/// How a watch ended.
enum End {
    /// It may go on from where it is.
    Resume,
    /// The server cannot go on from there.
    Relist,
}

impl Follower {
    async fn run(mut self) {
        loop {
            while let Err(error) = self.list().await {
                if matches!(error, LinkError::BadAnswer(_) | LinkError::Unreachable(_)) {
                    self.page = (self.page / 2).max(SMALLEST_PAGE);
                }
                self.wait_out(error).await;
            }
            self.page = PAGE;
            self.watch_on().await;
            // A server that cannot continue any watch must not be listed without a break.
            sleep_and_double(&mut self.relist_pause).await;
        }
    }

    /// Watches, one watch after another, until the server cannot go on from where the last one ended.
    async fn watch_on(&mut self) {
        loop {
            let begun = Instant::now();
            let before = self.cache.streamed();
            match self.watch().await {
                Ok(End::Resume) => {
                    if begun.elapsed() < SHORT_LIFE && self.cache.streamed() == before {
                        sleep_and_double(&mut self.pause).await;
                    }
                }
                Ok(End::Relist) | Err(LinkError::Gone | LinkError::NotServed) => return,
                Err(error) => self.wait_out(error).await,
            }
        }
    }

    async fn list(&mut self) -> Result<(), LinkError> {
        self.cache.list_begins();
        let mut page_at = String::new();
        let mut first = true;
        loop {
            let mut path = format!("{}limit={}", self.query, self.page);
            if !page_at.is_empty() {
                path.push_str("&continue=");
                push_escaped(&mut path, &page_at);
            }
            let answer = self.link.get(&path).await?;
            let text = std::str::from_utf8(&answer).map_err(|e| LinkError::BadAnswer(e.to_string()))?;
            let page: Page<'_> =
                serde_json::from_str(text).map_err(|e| LinkError::BadAnswer(format!("not a list: {e}")))?;
            if std::mem::take(&mut first) {
                self.cache.list_is_at(&page.metadata.resource_version);
            }
            for item in page.items.into_iter().flatten() {
                self.cache.list_item(item.get())?;
                self.cache.breathe().await;
            }
            if page.metadata.next.is_empty() {
                self.cache.list_ends(&page.metadata.resource_version);
                self.well();
                return Ok(());
            }
            page_at = page.metadata.next;
        }
    }

    async fn watch(&mut self) -> Result<End, LinkError> {
        let path = format!(
            "{}watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
            self.query,
            self.cache.streamed(),
        );
        let mut lines = Lines::new(self.link.stream(&path).await?);
        loop {
            let line = match tokio::time::timeout(SILENCE, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None)) | Err(_) => return Ok(End::Resume),
                Ok(Err(error)) => return Err(error),
            };
            if let Some(end) = self.take_in(&line).await? {
                return Ok(end);
            }
            self.well();
            self.relist_pause = SHORTEST_PAUSE;
            self.cache.breathe().await;
        }
    }

    async fn take_in(&self, line: &[u8]) -> Result<Option<End>, LinkError> {
        let text = std::str::from_utf8(line).map_err(|e| LinkError::BadAnswer(e.to_string()))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let event: Event<'_> =
            serde_json::from_str(text).map_err(|e| LinkError::BadAnswer(format!("not an event: {e}")))?;
        let object = event.object.get();
        match event.kind {
            "ADDED" | "MODIFIED" => {
                let item = Item::parse(object)?;
                self.cache.await_answers(&item).await;
                self.cache.watch_item(&item);
            }
            "DELETED" => {
                let item = Item::parse(object)?;
                self.cache.await_answers(&item).await;
                self.cache.watch_deleted(&item);
            }
            "BOOKMARK" => {
                if !self.cache.watch_bookmark(object)? {
                    return Ok(Some(End::Relist));
                }
            }
            "ERROR" => {
                return match LinkError::of_event(object.as_bytes()) {
                    LinkError::Gone => Ok(Some(End::Relist)),
                    error => Err(error),
                };
            }
            other => tracing::debug!(resource = %self.cache.resource(), event = other, "unknown event"),
        }
        Ok(None)
    }

    fn well(&mut self) {
        self.pause = SHORTEST_PAUSE;
        self.cache.set_trouble(None);
    }

    /// Waits as long as the error asks for.
    async fn wait_out(&mut self, error: LinkError) {
        let resource = self.cache.resource();
        let pause = match &error {
            LinkError::NotServed => {
                tracing::debug!(%resource, "not served yet");
                Some(NOT_SERVED_PAUSE)
            }
            LinkError::Gone => None,
            error => {
                tracing::warn!(%resource, %error, "failed to follow");
                error.retry_after().map(|pause| pause.min(LONGEST_PAUSE))
            }
        };
        // Before anybody can see the trouble, and hurry because of it.
        let hurry = self.hurry.clone();
        let hurried = hurry.notified();
        self.cache.set_trouble(Some(error));
        let waited = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => sleep_and_double(&mut self.pause).await,
            }
        };
        tokio::select! {
            () = waited => {}
            () = hurried => self.pause = SHORTEST_PAUSE,
        }
    }
}

async fn sleep_and_double(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}
