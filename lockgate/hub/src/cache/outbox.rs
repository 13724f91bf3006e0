//! What a cache has to tell, in order, and who tells it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Change;

/// Who is told of a cache's differences.
pub(crate) type OnChange = Arc<dyn Fn(&Change) + Send + Sync>;

/// One thing to tell.
pub(super) enum News {
    Change(Change),
    /// Everything up to here was told.
    Seen(u64),
    /// The first list was told.
    Synced,
}

/// Tells one thing at a time, outside all locks. Whoever puts something in tells what waits, unless another is at it already:
/// then that one tells this too. So a callback may feed the cache that calls it.
pub(super) struct Outbox {
    line: Mutex<Line>,
    seen: AtomicU64,
    synced: watch::Sender<bool>,
}

struct Line {
    news: VecDeque<News>,
    telling: bool,
    on_change: Option<OnChange>,
}

impl Outbox {
    pub(super) fn new(on_change: OnChange) -> Self {
        Self {
            line: Mutex::new(Line {
                news: VecDeque::new(),
                telling: false,
                on_change: Some(on_change),
            }),
            seen: AtomicU64::new(0),
            synced: watch::Sender::new(false),
        }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    pub(super) fn synced(&self) -> bool {
        *self.synced.borrow()
    }

    pub(super) async fn wait_synced(&self) {
        // The sender lives as long as `self`, so that waiting cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// How much is untold.
    pub(super) fn len(&self) -> usize {
        self.line.lock().news.len()
    }

    pub(super) fn push(&self, news: impl IntoIterator<Item = News>) {
        self.line.lock().news.extend(news);
    }

    /// Nobody wants to be told any more.
    pub(super) fn hush(&self) {
        self.line.lock().on_change = None;
    }

    /// Tells what waits.
    pub(super) fn tell(&self) {
        {
            let mut line = self.line.lock();
            if line.telling || line.news.is_empty() {
                return;
            }
            line.telling = true;
        }
        // A callback that panics must not silence the cache for ever.
        let _telling = Telling(self);
        while let Some((news, on_change)) = self.next() {
            match news {
                News::Change(change) => {
                    if let Some(on_change) = on_change {
                        on_change(&change);
                    }
                }
                News::Seen(version) => self.seen.store(version, Ordering::Release),
                News::Synced => {
                    self.synced
                        .send_if_modified(|synced| !std::mem::replace(synced, true));
                }
            }
        }
    }

    /// The next thing to tell; telling ends when there is none, under the same lock, so that nothing is left behind.
    fn next(&self) -> Option<(News, Option<OnChange>)> {
        let mut line = self.line.lock();
        let news = line.news.pop_front();
        line.telling = news.is_some();
        Some((news?, line.on_change.clone()))
    }
}

struct Telling<'a>(&'a Outbox);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.line.lock().telling = false;
        }
    }
}
