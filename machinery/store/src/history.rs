//! The newest events, for watches that start in the past and for reads as of an older revision.
//!
//! The ring holds every event after its floor and is bounded by count and by the memory that it alone keeps alive.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::entry::{Event, Kind, Record};

/// What an event costs beside the values that it keeps alive: itself, an entry and its counters.
const EVENT_OVERHEAD: usize = 160;

pub(crate) struct History<V> {
    events: VecDeque<Arc<Event<V>>>,
    /// Every event after this revision is in the ring.
    floor: u64,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

impl<V: Record> History<V> {
    pub(crate) fn new(floor: u64, max_events: usize, max_bytes: usize) -> Self {
        Self {
            events: VecDeque::new(),
            floor,
            bytes: 0,
            max_events,
            max_bytes,
        }
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Adds the newest event and drops the oldest ones past the bounds.
    pub(crate) fn push(&mut self, event: Arc<Event<V>>) {
        self.bytes += cost(&event);
        self.events.push_back(event);
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            if !self.drop_oldest() {
                break;
            }
        }
    }

    /// Forgets every event up to `revision`.
    pub(crate) fn trim(&mut self, revision: u64) {
        while self
            .events
            .front()
            .is_some_and(|event| event.revision <= revision)
        {
            self.drop_oldest();
        }
        self.floor = self.floor.max(revision);
        self.events.shrink_to_fit();
    }

    /// The events after `revision`, oldest first.
    pub(crate) fn after(&self, revision: u64) -> impl Iterator<Item = &Arc<Event<V>>> {
        let start = self.events.partition_point(|event| event.revision <= revision);
        self.events.range(start..)
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(event) = self.events.pop_front() else {
            return false;
        };
        self.bytes -= cost(&event);
        self.floor = event.revision;
        true
    }
}

/// The memory that is kept alive by history alone: what an event replaced, and the final state of a delete. The new
/// state of a put is either current, or is what a later event replaced.
fn cost<V: Record>(event: &Event<V>) -> usize {
    let replaced = event
        .previous
        .as_ref()
        .map_or(0, |entry| entry.key.len() + entry.value.bytes().len());
    let last = match event.kind {
        Kind::Put => 0,
        Kind::Delete => event.entry.key.len() + event.entry.value.bytes().len(),
    };
    EVENT_OVERHEAD + replaced + last
}
