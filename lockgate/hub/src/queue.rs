//! A queue of keys that need attention. A key is handled by one worker at a time, however often it is added; what is added
//! while it is being handled makes it come again. User changes go before bulk work, and keys of a rank above 0 before both;
//! those below 0 come last.
//!
//! Three ways to come later: *soon* waits for more of the same (in real time), a *retry* after a failure grows from
//! milliseconds to minutes, and a *timer* is due at a time of the injected clock. A queue is idle when nothing is ready, in
//! hand or coming soon; retries that have failed often and timers do not count, for they may wait for ever.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clock::{Clock, later};
use crate::metrics::QueueFigures;

/// What of a key needs attention, as bits; their meaning is the owner's.
pub(crate) type Aspects = u8;

/// How many failures in a row are retried in real time; further ones wait on the injected clock.
const QUICK_RETRIES: u32 = 6;
/// How often in a row a key may come again at once.
const AT_ONCE: u32 = 3;
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// A queue of keys.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    clock: Clock,
}

#[derive(Debug)]
struct State<K> {
    entries: HashMap<K, Entry>,
    urgent: VecDeque<K>,
    bulk: VecDeque<K>,
    /// The keys that have a rank, and what of them is ready, the highest rank first.
    ranks: HashMap<K, i32>,
    ranked: BTreeMap<Reverse<i32>, VecDeque<K>>,
    soon: BinaryHeap<Reverse<(Instant, u64)>>,
    timers: BinaryHeap<Reverse<(Timestamp, u64)>>,
    /// The keys behind the numbers in the heaps, and the aspects that they bring.
    delayed: HashMap<u64, (K, Aspects)>,
    /// How many of `delayed` are coming soon.
    coming: usize,
    next: u64,
    in_hand: usize,
    closed: bool,
    figures: QueueFigures,
}

#[derive(Debug, Default)]
struct Entry {
    aspects: Aspects,
    queued: bool,
    /// Whether it is queued behind what users wait for.
    bulk: bool,
    in_hand: bool,
    failures: u32,
    /// The number under which it waits to be added soon, so that it waits once, and until when.
    soon: Option<(u64, Instant)>,
    /// Since when it is ready, or in hand.
    since: Option<Instant>,
}

impl Entry {
    fn is_ready(&self) -> bool {
        self.queued && !self.in_hand
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// An empty queue.
    pub(crate) fn new(clock: Clock, figures: QueueFigures) -> Self {
        Self {
            state: Mutex::new(State {
                entries: HashMap::new(),
                urgent: VecDeque::new(),
                bulk: VecDeque::new(),
                ranks: HashMap::new(),
                ranked: BTreeMap::new(),
                soon: BinaryHeap::new(),
                timers: BinaryHeap::new(),
                delayed: HashMap::new(),
                coming: 0,
                next: 0,
                in_hand: 0,
                closed: false,
                figures,
            }),
            changed: Notify::new(),
            clock,
        }
    }

    /// Adds a key, before all bulk work.
    pub(crate) fn add(&self, key: K, aspects: Aspects) {
        self.state.lock().put(key, aspects, false);
        self.changed.notify_one();
    }

    /// Gives a key a rank; 0 takes it away. One that is ready already takes its place among its rank.
    pub(crate) fn rank(&self, key: &K, rank: i32) {
        let mut state = self.state.lock();
        let before = if rank == 0 {
            state.ranks.remove(key)
        } else {
            state.ranks.insert(key.clone(), rank)
        };
        if before.unwrap_or(0) == rank {
            return;
        }
        if let Some(entry) = state.entries.get(key).filter(|entry| entry.is_ready()) {
            // Its old place is left behind, and skipped.
            let bulk = entry.bulk;
            state.line_up(key.clone(), bulk);
        }
    }

    /// Adds a key behind everything that users wait for.
    pub(crate) fn add_bulk(&self, key: K, aspects: Aspects) {
        self.state.lock().put(key, aspects, true);
        self.changed.notify_one();
    }

    /// Adds a key after a moment, so that what comes until then is handled with it. Of two moments the earlier counts; one
    /// that is handed out before, for whatever reason, does not come once more.
    pub(crate) fn add_soon(&self, key: K, aspects: Aspects, wait: Duration) {
        let mut state = self.state.lock();
        let entry = state.entries.entry(key.clone()).or_default();
        if entry.queued && !entry.in_hand {
            entry.aspects |= aspects;
            return;
        }
        state.come_soon(key, aspects, Instant::now() + wait);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key when the injected clock says so.
    pub(crate) fn add_at(&self, key: K, aspects: Aspects, due: Timestamp) {
        let mut state = self.state.lock();
        let number = state.delay(key, aspects);
        state.timers.push(Reverse((due, number)));
        drop(state);
        self.changed.notify_one();
    }

    /// Has everything come now that would come later by the injected clock.
    pub(crate) fn hurry(&self) {
        let mut state = self.state.lock();
        while let Some(Reverse((_, number))) = state.timers.pop() {
            state.wake_one(number);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Hands a key out, with everything that was asked of it; `None` when the queue is closed.
    pub(crate) async fn next(&self) -> Option<(K, Aspects)> {
        loop {
            let wake = self.changed.notified();
            let (soon, timer) = {
                let mut state = self.state.lock();
                if state.closed {
                    self.changed.notify_one();
                    return None;
                }
                state.wake(Instant::now(), self.clock.now());
                if let Some(taken) = state.take() {
                    // Others may be waiting, and there may be more.
                    self.changed.notify_one();
                    return Some(taken);
                }
                (
                    state.soon.peek().map(|Reverse((due, _))| *due),
                    state.timers.peek().map(|Reverse((due, _))| *due),
                )
            };
            tokio::select! {
                () = wake => {}
                () = sleep_until(soon) => {}
                () = self.sleep(timer) => {}
            }
        }
    }

    /// Says that a key is done. It comes again at once if it was added meanwhile.
    pub(crate) fn done(&self, key: &K) {
        self.finish(key, |_| None);
    }

    /// Says that handling a key failed: it comes again, later the more often it fails.
    pub(crate) fn retry(&self, key: &K, aspects: Aspects) {
        self.finish(key, |failures| Some((aspects, failures, backoff(failures))));
    }

    /// The same of one who was asked to leave a server alone for a while: it comes no earlier, by the injected clock.
    pub(crate) fn retry_after(&self, key: &K, aspects: Aspects, pause: Duration) {
        let pause = pause.min(LAST_RETRY);
        self.finish(key, |failures| {
            Some((aspects, failures, backoff(failures).max(pause)))
        });
    }

    /// Says that a key must be handled again with what is known by now: at once, unless that did not help before.
    pub(crate) fn again(&self, key: &K, aspects: Aspects) {
        self.finish(key, |failures| {
            let wait = if failures < AT_ONCE {
                Duration::ZERO
            } else {
                backoff(failures)
            };
            Some((aspects, failures, wait))
        });
    }

    fn finish(&self, key: &K, outcome: impl Fn(u32) -> Option<(Aspects, u32, Duration)>) {
        let mut state = self.state.lock();
        state.in_hand -= 1;
        let Some(entry) = state.entries.get_mut(key) else {
            return;
        };
        entry.in_hand = false;
        let worked = entry
            .since
            .take()
            .map(|since| since.elapsed())
            .unwrap_or_default();
        let again = outcome(entry.failures);
        entry.failures = again.map_or(0, |(_, failures, _)| failures.saturating_add(1));
        let came_meanwhile = entry.queued;
        state.figures.done(worked, again.is_some());
        if came_meanwhile && let Some(entry) = state.entries.get_mut(key) {
            // It was added while it was in hand.
            entry.queued = false;
            let aspects = std::mem::take(&mut entry.aspects) | again.map_or(0, |(aspects, ..)| aspects);
            state.put(key.clone(), aspects, false);
        } else if let Some((aspects, failures, wait)) = again {
            // What waits for longer than a failure would was asked to.
            if failures < QUICK_RETRIES && wait <= backoff(failures) {
                state.come_soon(key.clone(), aspects, Instant::now() + wait);
            } else {
                let number = state.delay(key.clone(), aspects);
                let due = later(self.clock.now(), wait);
                state.timers.push(Reverse((due, number)));
            }
        } else if state.entries.get(key).is_some_and(|entry| entry.soon.is_none()) {
            state.entries.remove(key);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Whether a key is ready, in hand or coming soon.
    pub(crate) fn is_pending(&self, key: &K) -> bool {
        let state = self.state.lock();
        state
            .entries
            .get(key)
            .is_some_and(|entry| entry.queued || entry.in_hand || entry.soon.is_some())
    }

    /// Whether a key is being handled.
    pub(crate) fn is_in_hand(&self, key: &K) -> bool {
        let state = self.state.lock();
        state.entries.get(key).is_some_and(|entry| entry.in_hand)
    }

    /// Whether nothing is ready, in hand or coming soon.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        let now = self.clock.now();
        state.urgent.is_empty()
            && state.bulk.is_empty()
            && state.ranked.is_empty()
            && state.in_hand == 0
            && state.coming == 0
            // A timer that is due is as good as ready.
            && state.timers.peek().is_none_or(|Reverse((due, _))| *due > now)
    }

    /// Whether something waits whose time has come by the injected clock.
    pub(crate) fn has_due(&self) -> bool {
        let now = self.clock.now();
        let state = self.state.lock();
        state.timers.peek().is_some_and(|Reverse((due, _))| *due <= now)
    }

    /// How many keys are ready or in hand.
    pub(crate) fn depth(&self) -> usize {
        let state = self.state.lock();
        let ranked: usize = state.ranked.values().map(VecDeque::len).sum();
        state.urgent.len() + state.bulk.len() + ranked + state.in_hand
    }

    /// Ends all waiting; nothing more is handed out.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    async fn sleep(&self, until: Option<Timestamp>) {
        match until {
            None => std::future::pending().await,
            // A timer that is due counts by itself.
            Some(due) => drop(self.clock.sleep_until(due).await),
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        None => std::future::pending().await,
        Some(due) => tokio::time::sleep_until(due).await,
    }
}

/// How long the failure after `failures` others waits.
pub(crate) fn backoff(failures: u32) -> Duration {
    FIRST_RETRY
        .saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX))
        .min(LAST_RETRY)
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn put(&mut self, key: K, aspects: Aspects, bulk: bool) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.aspects |= aspects;
        let overtakes = entry.bulk && !bulk;
        if entry.queued && !overtakes {
            return;
        }
        if !entry.queued && !entry.in_hand {
            entry.since = Some(Instant::now());
            self.figures.added();
        }
        entry.queued = true;
        entry.bulk = bulk;
        if !entry.in_hand {
            // One that overtakes leaves its place among the bulk behind, which is skipped.
            self.line_up(key, bulk);
        }
    }

    fn line_up(&mut self, key: K, bulk: bool) {
        match self.ranks.get(&key) {
            Some(rank) => self.ranked.entry(Reverse(*rank)).or_default().push_back(key),
            None if bulk => self.bulk.push_back(key),
            None => self.urgent.push_back(key),
        }
    }

    /// Has a key come at a moment, once: of two moments the earlier counts.
    fn come_soon(&mut self, key: K, aspects: Aspects, due: Instant) {
        let mut aspects = aspects;
        let soon = self.entries.entry(key.clone()).or_default().soon;
        if let Some((number, earlier)) = soon {
            if let Some((_, waiting)) = self.delayed.get_mut(&number) {
                *waiting |= aspects;
                aspects = *waiting;
            }
            if earlier <= due {
                return;
            }
            // Its number stays behind, and wakes nobody.
            self.delayed.remove(&number);
            self.coming -= 1;
        }
        let number = self.delay(key.clone(), aspects);
        self.entries.entry(key).or_default().soon = Some((number, due));
        self.coming += 1;
        self.soon.push(Reverse((due, number)));
    }

    fn delay(&mut self, key: K, aspects: Aspects) -> u64 {
        let number = self.next;
        self.next += 1;
        self.delayed.insert(number, (key, aspects));
        number
    }

    /// Moves what is due to the ready ones.
    fn wake(&mut self, now: Instant, time: Timestamp) {
        while let Some(Reverse((due, number))) = self.soon.peek().copied() {
            if due > now {
                break;
            }
            self.soon.pop();
            if self.delayed.contains_key(&number) {
                self.coming -= 1;
                self.wake_one(number);
            }
        }
        while let Some(Reverse((due, number))) = self.timers.peek().copied() {
            if due > time {
                break;
            }
            self.timers.pop();
            self.wake_one(number);
        }
    }

    fn wake_one(&mut self, number: u64) {
        if let Some((key, aspects)) = self.delayed.remove(&number) {
            if let Some(entry) = self.entries.get_mut(&key)
                && entry.soon.is_some_and(|(waiting, _)| waiting == number)
            {
                entry.soon = None;
            }
            self.put(key, aspects, false);
        }
    }

    /// The first of the highest rank, if that rank will do.
    fn pop_ranked(&mut self, will_do: impl Fn(i32) -> bool) -> Option<(K, i32)> {
        let mut highest = self.ranked.first_entry()?;
        let rank = highest.key().0;
        if !will_do(rank) {
            return None;
        }
        let key = highest.get_mut().pop_front();
        if highest.get().is_empty() {
            highest.remove();
        }
        key.map(|key| (key, rank))
    }

    /// The first place of all: whose it is or was, and of which rank.
    fn pop(&mut self) -> Option<(K, i32)> {
        let unranked = |key| (key, 0);
        self.pop_ranked(|rank| rank > 0)
            .or_else(|| self.urgent.pop_front().map(unranked))
            .or_else(|| self.bulk.pop_front().map(unranked))
            .or_else(|| self.pop_ranked(|_| true))
    }

    fn take(&mut self) -> Option<(K, Aspects)> {
        loop {
            let (key, rank) = self.pop()?;
            if self.ranks.get(&key).copied().unwrap_or(0) != rank {
                // It has a place among its rank, too.
                continue;
            }
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.is_ready()) else {
                continue;
            };
            let now = Instant::now();
            let since = entry.since.replace(now).unwrap_or(now);
            self.figures.taken(now.saturating_duration_since(since));
            entry.queued = false;
            entry.bulk = false;
            entry.in_hand = true;
            // What was to come soon is handled with it.
            if let Some((number, _)) = entry.soon.take()
                && let Some((_, aspects)) = self.delayed.remove(&number)
            {
                entry.aspects |= aspects;
                self.coming -= 1;
            }
            self.in_hand += 1;
            return Some((key, std::mem::take(&mut entry.aspects)));
        }
    }
}

impl<K> Drop for State<K> {
    fn drop(&mut self) {
        let ready = self.entries.values().filter(|entry| entry.is_ready()).count();
        self.figures.forgotten(ready);
    }
}
