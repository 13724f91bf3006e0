//! One member's lane.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockgate_api::names;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::complying::{self, Policies};
use super::dispatching::{self, Sent};
use super::fighting::Dispute;
use super::late::Removed;
use super::objects::Objects;
use super::window::Window;
use crate::cache::Key;
use crate::clock::Clock;
use crate::head::head;
use crate::link::{Link, LinkError};
use crate::metrics::QueueFigures;
use crate::queue::{Aspects, Queue, backoff};
use crate::state::State;
use crate::template::{self, REPORT_AFTER};

/// A Work's manifest must be compared with the member.
pub(crate) const DISPATCH: Aspects = 1;
/// The member's object changed.
pub(crate) const OBSERVE: Aspects = 2;

/// A lane that dealt with something so lately is one that moves: in a burst every lane deals with many in a second.
const MOVING: Duration = Duration::from_secs(3);

/// What needs attention on a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Errand {
    /// A Work in the member's execution namespace, by name.
    Work(String),
    /// A policy in the namespace of the cluster, by name; of no name: all that are on the member.
    Policy(String),
}

/// One member's Works and policies on their way.
pub(crate) struct Lane {
    pub(crate) cluster: String,
    pub(crate) queue: Queue<Errand>,
    pub(crate) objects: Objects,
    pub(crate) policies: Policies,
    /// The objects that were corrected lately, by Work.
    pub(crate) disputes: Mutex<HashMap<String, Dispute>>,
    /// The Works whose manifests are not what was rendered.
    pub(crate) doubted: Mutex<HashMap<String, Doubt>>,
    /// What was removed lately.
    pub(super) removed: Removed,
    link: Mutex<Option<Link>>,
    window: Mutex<Window>,
    pub(super) clock: Clock,
    trouble: Mutex<Trouble>,
    /// When a Work was last dealt with, well or badly.
    moved: Mutex<Option<Instant>>,
    resumed: Notify,
    /// The passes under way.
    passes: TaskTracker,
    /// How many of them hold a place in the window.
    flying: AtomicUsize,
    ended_one: Notify,
    pub(super) closed: CancellationToken,
}

/// A doubt about the manifest of a Work.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    uid: String,
    generation: i64,
    /// Whether it was written again, and the hub keeps it so.
    written: bool,
}

impl Doubt {
    pub(crate) fn new(uid: &str, generation: i64) -> Self {
        Self {
            uid: uid.to_owned(),
            generation,
            written: false,
        }
    }

    /// It was written again, and is of this generation now.
    pub(crate) fn believe(&mut self, uid: &str, generation: i64) {
        (self.uid, self.generation, self.written) = (uid.to_owned(), generation, true);
    }

    /// Whether a Work of this uid and generation was written again since it was doubted; none if it was not doubted.
    pub(crate) fn of(&self, uid: &str, generation: i64) -> Option<bool> {
        (self.uid == uid && self.generation == generation).then_some(self.written)
    }
}

/// A pass's place in the window. It is free before anybody is told so: who is told and finds no place would wait for an end
/// that never comes.
struct Place(Arc<Lane>);

impl Place {
    fn take(lane: &Arc<Lane>) -> Self {
        lane.flying.fetch_add(1, Ordering::AcqRel);
        Self(lane.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.flying.fetch_sub(1, Ordering::AcqRel);
        self.0.ended_one.notify_one();
    }
}

/// Whether the member answers.
#[derive(Debug, Default)]
struct Trouble {
    /// How many requests in a row got no answer.
    failures: u32,
    /// Whether the lane stands still.
    paused: bool,
}

impl Lane {
    pub(crate) fn new(cluster: &str, clock: Clock, figures: QueueFigures) -> Self {
        Self {
            cluster: cluster.to_owned(),
            queue: Queue::new(clock.clone(), figures),
            objects: Objects::default(),
            policies: Policies::default(),
            disputes: Mutex::default(),
            doubted: Mutex::default(),
            removed: Removed::default(),
            link: Mutex::default(),
            window: Mutex::default(),
            clock,
            trouble: Mutex::default(),
            moved: Mutex::default(),
            resumed: Notify::new(),
            passes: TaskTracker::new(),
            flying: AtomicUsize::new(0),
            ended_one: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    /// The way to the member, if it is known.
    pub(crate) fn link(&self) -> Option<Link> {
        self.link.lock().clone()
    }

    /// Gives the lane the way to its member, or takes it: what `read` finds under the lock, so that of two who connect at
    /// once the last has the newest. What was known of the objects there is read anew, from here on by the new way.
    pub(crate) fn connect(&self, read: impl FnOnce() -> Option<Link>) {
        {
            let mut link = self.link.lock();
            *link = read();
        }
        self.objects.clear();
        self.policies.clear();
        self.resume();
    }

    /// The member is well: no need to wait any longer.
    pub(crate) fn resume(&self) {
        let mut trouble = self.trouble.lock();
        trouble.failures = 0;
        trouble.paused = false;
        drop(trouble);
        self.hurry();
        self.resumed.notify_waiters();
    }

    /// What is followed does not wait any longer than the lane does.
    fn hurry(&self) {
        self.objects.hurry();
        self.policies.hurry();
    }

    /// Whether the lane stands still because its member does not answer, or cannot be reached at all.
    pub(crate) fn is_down(&self) -> bool {
        self.trouble.lock().paused || self.link.lock().is_none()
    }

    /// Whether it deals with one Work after the other: what has not been sent yet waits for the others before it.
    pub(crate) fn is_moving(&self) -> bool {
        self.moved.lock().is_some_and(|at| at.elapsed() < MOVING)
    }

    /// Whether there is nothing that could be sent now.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_down() || (self.queue.is_idle() && self.objects.are_synced() && self.policies.are_synced())
    }

    pub(crate) fn close(&self) {
        self.closed.cancel();
        self.queue.close();
        self.objects.clear();
        self.policies.clear();
    }

    /// Returns when a closed lane has nothing under way any more.
    pub(crate) async fn ended(&self) {
        self.passes.close();
        self.passes.wait().await;
    }

    /// Sends until the lane is closed.
    pub(crate) async fn run(self: Arc<Self>, state: Arc<State>) {
        tokio::select! {
            () = self.closed.cancelled() => return,
            () = state.members.begun() => {}
        }
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.ready() => {}
            }
            let ended = self.ended_one.notified();
            if self.flying.load(Ordering::Acquire) >= self.window.lock().limit() {
                // One ends before another begins.
                tokio::select! {
                    () = self.closed.cancelled() => return,
                    () = ended => {}
                }
                continue;
            }
            let next = tokio::select! {
                () = self.closed.cancelled() => return,
                next = self.queue.next() => next,
            };
            let Some((errand, aspects)) = next else { return };
            let (place, state) = (Place::take(&self), state.clone());
            self.passes.spawn(async move {
                let Place(lane) = &place;
                tokio::select! {
                    () = lane.closed.cancelled() => {}
                    () = lane.pass(&state, &errand, aspects) => {}
                }
            });
        }
    }

    /// Waits while the member does not answer.
    async fn ready(&self) {
        loop {
            let resumed = self.resumed.notified();
            let wait = {
                let trouble = self.trouble.lock();
                if !trouble.paused && self.link.lock().is_some() {
                    return;
                }
                trouble.paused.then(|| backoff(trouble.failures + 4))
            };
            match wait {
                None => resumed.await,
                Some(wait) => {
                    tokio::select! {
                        () = resumed => {}
                        awake = self.clock.sleep(wait) => {
                            self.trouble.lock().paused = false;
                            self.hurry();
                            // Whoever failed often waits longer than this; but somebody must find out how the member is.
                            self.queue.hurry();
                            drop(awake);
                        }
                    }
                }
            }
        }
    }

    async fn pass(self: &Arc<Self>, state: &Arc<State>, errand: &Errand, aspects: Aspects) {
        let begun = Instant::now();
        let result = match errand {
            Errand::Work(name) => {
                let result = dispatching::pass(state, self, name, aspects).await;
                state.metrics.sync_workload(result.is_ok(), begun.elapsed());
                result
            }
            Errand::Policy(name) => complying::pass(state, self, name).await,
        };
        match result {
            Ok(Sent::Settled) => {
                self.move_on();
                self.queue.done(errand);
                self.nothing_to_tell(state, errand);
            }
            Ok(Sent::Member(took)) => {
                self.answered(took);
                self.queue.done(errand);
                self.nothing_to_tell(state, errand);
            }
            Err(error) => self.failed(errand, aspects, begun, &error),
        }
    }

    /// A template's status may wait for an errand that, as it turns out, has nothing to tell.
    fn nothing_to_tell(&self, state: &State, errand: &Errand) {
        let Errand::Work(name) = errand else { return };
        if !state.members.is_anybody_waited_for() {
            return;
        }
        let key = Key::new(&names::execution_namespace(&self.cluster), name);
        if state.tellings.is_pending(&key) {
            return;
        }
        let head = state.caches.works.get(&key).and_then(|cached| head(&cached));
        let id = head.and_then(|head| Some(template::of_work(state, &head.work.metadata, head.id?)));
        if let Some(id) = id.filter(|id| state.members.is_waited_for(id)) {
            state.reports.add_soon(id, 1, REPORT_AFTER);
        }
    }

    fn move_on(&self) {
        *self.moved.lock() = Some(Instant::now());
    }

    fn answered(&self, after: Duration) {
        self.move_on();
        self.window.lock().answered(after);
        self.trouble.lock().failures = 0;
    }

    fn failed(&self, errand: &Errand, aspects: Aspects, begun: Instant, error: &dispatching::SendError) {
        tracing::debug!(cluster = %self.cluster, ?errand, %error, "not sent");
        match error {
            dispatching::SendError::Member(LinkError::Unreachable(_)) => {
                self.window.lock().shrink();
                let mut trouble = self.trouble.lock();
                trouble.failures = trouble.failures.saturating_add(1);
                // One request that found nobody may be an accident.
                trouble.paused = trouble.failures > 1;
            }
            dispatching::SendError::Member(LinkError::TooManyRequests { retry_after, .. }) => {
                self.window.lock().shrink();
                if let Some(pause) = *retry_after {
                    self.queue.retry_after(errand, aspects | DISPATCH, pause);
                    return;
                }
            }
            dispatching::SendError::Member(_) => self.answered(begun.elapsed()),
            dispatching::SendError::Again => {
                self.queue.again(errand, aspects);
                return;
            }
            _ => {}
        }
        self.queue.retry(errand, aspects | DISPATCH);
    }
}
