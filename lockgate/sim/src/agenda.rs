//! What is to be looked at: now, or later.
//!
//! Each object is at most once in the queue and has at most one time to wake, so that neither grows beyond the
//! number of objects.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use jiff::Timestamp;

use crate::action::Key;

/// A queue of objects, with times for those that wait.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    queue: VecDeque<Key>,
    queued: HashSet<Key>,
    wakes: BTreeSet<(Timestamp, Key)>,
    wake_of: HashMap<Key, Timestamp>,
    since: HashMap<Key, (u64, Timestamp)>,
}

impl Agenda {
    /// Puts an object at the end of the queue, unless it is in it.
    pub(crate) fn push(&mut self, key: Key) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    /// The next object. When the queue runs empty its memory is given back.
    pub(crate) fn pop(&mut self) -> Option<Key> {
        let key = self.queue.pop_front();
        match &key {
            Some(key) => {
                self.queued.remove(key);
            }
            None if self.queue.capacity() > 64 => {
                self.queue = VecDeque::new();
                self.queued = HashSet::new();
            }
            None => {}
        }
        key
    }

    /// Sets when an object is looked at again; none takes the time away.
    pub(crate) fn wake(&mut self, key: &Key, at: Option<Timestamp>) {
        let old = match at {
            Some(at) => self.wake_of.insert(key.clone(), at),
            None => self.wake_of.remove(key),
        };
        if let Some(old) = old {
            self.wakes.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.wakes.insert((at, key.clone()));
        }
    }

    /// The first time at which something wakes.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Queues everything whose time has come.
    pub(crate) fn wake_due(&mut self, now: Timestamp) {
        while self.next_wake().is_some_and(|at| at <= now)
            && let Some((_, key)) = self.wakes.pop_first()
        {
            self.wake_of.remove(&key);
            self.push(key);
        }
    }

    /// Since when an object is in a stage: from now on, if it was in another one.
    pub(crate) fn since(&mut self, key: &Key, stage: u64, now: Timestamp) -> Timestamp {
        match self.since.get(key) {
            Some((known, since)) if *known == stage => *since,
            _ => {
                self.since.insert(key.clone(), (stage, now));
                now
            }
        }
    }

    /// Forgets since when an object is in its stage: it waits for nothing any more.
    pub(crate) fn settle(&mut self, key: &Key) {
        self.since.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Kind;
    use crate::testing::at;

    fn key(name: &str) -> Key {
        Key::new(Kind::Pod, "default", name)
    }

    #[test]
    fn an_object_is_queued_once() {
        let mut agenda = Agenda::default();
        for name in ["a", "b", "a"] {
            agenda.push(key(name));
        }
        assert_eq!(
            [agenda.pop(), agenda.pop(), agenda.pop()],
            [Some(key("a")), Some(key("b")), None]
        );
    }

    #[test]
    fn the_last_time_to_wake_counts() {
        let mut agenda = Agenda::default();
        agenda.wake(&key("a"), Some(at(10)));
        agenda.wake(&key("a"), Some(at(20)));
        agenda.wake(&key("b"), Some(at(15)));
        agenda.wake(&key("c"), Some(at(12)));
        agenda.wake(&key("c"), None);
        agenda.wake_due(at(14));
        assert_eq!((agenda.pop(), agenda.next_wake()), (None, Some(at(15))));
        agenda.wake_due(at(20));
        assert_eq!(
            [agenda.pop(), agenda.pop(), agenda.pop()],
            [Some(key("b")), Some(key("a")), None]
        );
        assert_eq!(agenda.next_wake(), None);
    }

    #[test]
    fn a_stage_begins_when_it_is_first_seen() {
        let mut agenda = Agenda::default();
        assert_eq!(agenda.since(&key("a"), 1, at(5)), at(5));
        assert_eq!(agenda.since(&key("a"), 1, at(9)), at(5));
        assert_eq!(agenda.since(&key("a"), 2, at(9)), at(9));
        agenda.settle(&key("a"));
        assert_eq!(agenda.since(&key("a"), 2, at(12)), at(12));
    }
}
