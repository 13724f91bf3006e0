//! A watch: the events of a prefix, one after the other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use crate::entry::{Event, Record};
use crate::registry::{End, Queue, Taken};
use crate::store::Shared;

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the first event after this revision.
    After(u64),
    /// With the next event.
    Now,
}

/// What a watch returns.
pub enum Next<V> {
    /// The next event.
    Event(Arc<Event<V>>),
    /// The watch was too slow, events after the last one are lost to it, and it is over: list and watch again.
    Lagged,
    /// The store was closed and the watch is over.
    Closed,
}

impl<V: Record> fmt::Debug for Next<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Lagged => f.write_str("Lagged"),
            Self::Closed => f.write_str("Closed"),
        }
    }
}

/// The events of a prefix in revision order. Dropping it ends it.
pub struct Watch<V: Record> {
    shared: Weak<Shared<V>>,
    prefix: Box<str>,
    id: u64,
    /// Events from before the watch began. They do not count against the buffer.
    replay: VecDeque<Arc<Event<V>>>,
    queue: Arc<Queue<V>>,
    /// The newest revision up to which everything was returned, as far as returned events tell.
    returned: u64,
}

impl<V: Record> Watch<V> {
    pub(crate) fn new(
        shared: Weak<Shared<V>>,
        prefix: &str,
        id: u64,
        replay: VecDeque<Arc<Event<V>>>,
        queue: Arc<Queue<V>>,
        returned: u64,
    ) -> Self {
        Self {
            shared,
            prefix: prefix.into(),
            id,
            replay,
            queue,
            returned,
        }
    }

    /// Waits for the next event, or for the end. It may be dropped while it waits; no event is lost by that.
    pub async fn next(&mut self) -> Next<V> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            // There is one waiter, and a notice that comes before it waits is kept for it.
            self.queue.ready.notified().await;
        }
    }

    /// The next event or the end, if it is already there.
    pub fn try_next(&mut self) -> Option<Next<V>> {
        let event = match self.replay.pop_front() {
            Some(event) => {
                if self.replay.is_empty() {
                    self.replay = VecDeque::new();
                }
                event
            }
            None => match self.queue.take() {
                Taken::Event(event) => event,
                Taken::Nothing => return None,
                Taken::End(End::Lagged) => return Some(Next::Lagged),
                Taken::End(End::Closed) => return Some(Next::Closed),
            },
        };
        self.returned = event.revision;
        Some(Next::Event(event))
    }

    /// A revision such that every event of this prefix up to it has been returned.
    pub fn progress(&self) -> u64 {
        let Some(shared) = self.shared.upgrade() else {
            return self.returned;
        };
        // The order matters: what is published was put into the queue before, so that a queue which is empty after
        // this revision was read has been emptied of everything up to it.
        let published = shared.published();
        if self.replay.is_empty() && self.queue.is_drained() {
            published.max(self.returned)
        } else {
            self.returned
        }
    }
}

impl<V: Record> Drop for Watch<V> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.forget_watch(&self.prefix, self.id);
        }
    }
}

impl<V: Record> fmt::Debug for Watch<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("prefix", &self.prefix)
            .field("returned", &self.returned)
            .finish()
    }
}
