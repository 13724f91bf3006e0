//! Who watches what. Watches hang in a tree of path segments, so that an event meets only the watches on its path.
//!
//! A watch hangs at the node of the whole segments of its prefix: `/apps/deployments/` at `/apps/deployments`, and so
//! does `/apps/deployments/web`, whose rest is compared for each event of that node.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::entry::Event;

/// Why no further event will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Lagged,
    Closed,
}

/// The events that a watch has not taken yet: the store puts them in, the watch takes them out.
pub(crate) struct Queue<V> {
    inner: Mutex<QueueInner<V>>,
    /// Told when there is something to take.
    pub(crate) ready: Notify,
    limit: usize,
}

struct QueueInner<V> {
    events: VecDeque<Arc<Event<V>>>,
    end: Option<End>,
}

/// What a look into a queue found.
pub(crate) enum Taken<V> {
    Event(Arc<Event<V>>),
    Nothing,
    End(End),
}

impl<V> Queue<V> {
    pub(crate) fn new(limit: usize) -> Self {
        let inner = Mutex::new(QueueInner {
            events: VecDeque::new(),
            end: None,
        });
        Self {
            inner,
            ready: Notify::new(),
            limit: limit.max(1),
        }
    }

    pub(crate) fn take(&self) -> Taken<V> {
        let mut inner = self.inner.lock();
        match (inner.events.pop_front(), inner.end) {
            (Some(event), _) => Taken::Event(event),
            (None, Some(end)) => Taken::End(end),
            (None, None) => {
                // A burst must not leave its memory behind.
                inner.events.shrink_to(64);
                Taken::Nothing
            }
        }
    }

    /// Whether all events so far were taken and more can come.
    pub(crate) fn is_drained(&self) -> bool {
        let inner = self.inner.lock();
        inner.events.is_empty() && inner.end.is_none()
    }

    /// Adds an event. Says whether the queue goes on, and whether its watch may be asleep.
    fn offer(&self, event: &Arc<Event<V>>) -> (bool, bool) {
        let mut inner = self.inner.lock();
        let asleep = inner.events.is_empty();
        if inner.events.len() >= self.limit {
            inner.end = Some(End::Lagged);
            return (false, asleep);
        }
        inner.events.push_back(event.clone());
        (true, asleep)
    }

    fn end(&self, end: End) {
        self.inner.lock().end.get_or_insert(end);
        self.ready.notify_one();
    }
}

struct Watcher<V> {
    id: u64,
    /// What the key must have after the path of the node.
    rest: Box<str>,
    queue: Arc<Queue<V>>,
}

struct Node<V> {
    children: HashMap<Box<str>, Node<V>>,
    watchers: Vec<Watcher<V>>,
}

impl<V> Node<V> {
    fn new() -> Self {
        Self {
            children: HashMap::new(),
            watchers: Vec::new(),
        }
    }

    /// Removes a watcher, and the nodes that nobody needs after that.
    fn remove(&mut self, path: &str, id: u64) {
        match path.split_once('/') {
            None => self.watchers.retain(|watcher| watcher.id != id),
            Some((segment, below)) => {
                if let Some(child) = self.children.get_mut(segment) {
                    child.remove(below, id);
                    if child.children.is_empty() && child.watchers.is_empty() {
                        self.children.remove(segment);
                    }
                }
            }
        }
    }

    fn end_all(&mut self, end: End) {
        for watcher in self.watchers.drain(..) {
            watcher.queue.end(end);
        }
        for (_, mut child) in self.children.drain() {
            child.end_all(end);
        }
    }
}

pub(crate) struct Registry<V> {
    root: Node<V>,
    next_id: u64,
    closed: bool,
}

impl<V> Registry<V> {
    pub(crate) fn new() -> Self {
        Self {
            root: Node::new(),
            next_id: 0,
            closed: false,
        }
    }

    /// Adds a watch and returns its id, for [`Registry::remove`].
    pub(crate) fn add(&mut self, prefix: &str, queue: Arc<Queue<V>>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.closed {
            queue.end(End::Closed);
            return id;
        }
        let mut node = &mut self.root;
        let mut path = prefix;
        while let Some((segment, below)) = path.split_once('/') {
            node = node.children.entry(segment.into()).or_insert_with(Node::new);
            path = below;
        }
        node.watchers.push(Watcher {
            id,
            rest: path.into(),
            queue,
        });
        id
    }

    pub(crate) fn remove(&mut self, prefix: &str, id: u64) {
        self.root.remove(prefix, id);
    }

    /// Hands an event to every watch whose prefix it has; the queues that may have to be woken go to `wake`.
    pub(crate) fn deliver(&mut self, event: &Arc<Event<V>>, wake: &mut Vec<Arc<Queue<V>>>) {
        let mut node = &mut self.root;
        let mut path: &str = &event.entry.key;
        loop {
            node.watchers.retain(|watcher| {
                if !path.starts_with(&*watcher.rest) {
                    return true;
                }
                let (goes_on, asleep) = watcher.queue.offer(event);
                if asleep {
                    wake.push(watcher.queue.clone());
                }
                goes_on
            });
            let Some((segment, below)) = path.split_once('/') else {
                break;
            };
            let Some(child) = node.children.get_mut(segment) else {
                break;
            };
            (node, path) = (child, below);
        }
    }

    /// Tells every watch, and every later one, that the store is closed.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.root.end_all(End::Closed);
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.root.children.is_empty() && self.root.watchers.is_empty()
    }
}
