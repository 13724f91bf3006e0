//! Who may write: one process at a time, by a Lease.
//!
//! What always holds: times are measured by this process's own monotonic clock, from before a renewal was sent, so that nobody
//! else can hold the lease while [`Guard::may_write`] is true, however the wall clocks differ. Every write of the Lease names
//! the version that it replaces. A machine that is suspended as a whole stops that clock too: writes that were decided before
//! it slept carry resource versions, which is what refuses them.

mod client;
mod lease;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::link::{Link, LinkError};
use lease::{Lease, Seat};

/// How an election is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who we are; no two processes may share it.
    pub identity: String,
    /// How long a holder that is silent keeps the lease.
    pub duration: Duration,
    /// How often the holder renews it.
    pub renew: Duration,
    /// How often others ask for it, and how soon a failed renewal is tried again.
    pub retry: Duration,
}

impl Default for ElectionOptions {
    fn default() -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "lockgate".into());
        Self {
            namespace: lockgate_api::keys::SYSTEM_NAMESPACE.into(),
            name: "lockgate-controller".into(),
            identity: format!("{host}_{}", uuid::Uuid::new_v4()),
            duration: Duration::from_secs(15),
            renew: Duration::from_secs(5),
            retry: Duration::from_secs(2),
        }
    }
}

/// Says whether this process may write now. Clones share one answer.
#[derive(Clone)]
pub struct Guard(Option<Arc<Term>>);

/// One term of office.
struct Term {
    /// A third of the lease: what a write may need to arrive.
    margin: Duration,
    /// Until when nobody else may take the lease.
    until: Mutex<Instant>,
    lost: watch::Sender<bool>,
}

impl Guard {
    /// For a process that has no rivals.
    pub fn always() -> Self {
        Self(None)
    }

    /// Whether a write that is sent now arrives before anybody else may write.
    pub fn may_write(&self) -> bool {
        self.0.as_ref().is_none_or(|term| {
            !*term.lost.borrow() && term.until.lock().saturating_duration_since(Instant::now()) >= term.margin
        })
    }

    /// Whether another may lead by now.
    fn is_over(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|term| *term.lost.borrow() || Instant::now() >= *term.until.lock())
    }

    /// Returns when the term is over; never, where there are no rivals. There is no way back: stop, and stand for election
    /// again.
    pub async fn lost(&self) {
        match &self.0 {
            // The sender lives as long as `self`, so that waiting cannot fail.
            Some(term) => drop(term.lost.subscribe().wait_for(|lost| *lost).await),
            None => std::future::pending().await,
        }
    }
}

/// A term of office, renewed until this is dropped. Dropping it without [`Election::release`] leaves the lease to run out.
pub struct Election {
    guard: Guard,
    term: Arc<Term>,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<Option<(Seat, Lease)>>>,
}

impl Drop for Election {
    fn drop(&mut self) {
        self.term.lost.send_replace(true);
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Election {
    /// Stands for election until it is won. Needs a tokio runtime.
    pub async fn win(link: &Link, options: &ElectionOptions, clock: &Clock) -> Self {
        // A request that hangs must not use up the lease.
        let link = link.clone().answering_within(options.renew);
        let seat = Seat::new(link, options.clone(), clock.clone());
        let (lease, begun) = seat.win().await;
        let term = Arc::new(Term {
            margin: options.duration / 3,
            until: Mutex::new(begun + options.duration),
            lost: watch::Sender::new(false),
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(hold(seat, lease, term.clone(), stopped));
        tracing::info!(identity = options.identity, "elected");
        Self {
            guard: Guard(Some(term.clone())),
            term,
            stop,
            task: Some(task),
        }
    }

    /// What those who write ask.
    pub fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// Returns when the term is over.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        let guard = self.guard.clone();
        async move { guard.lost().await }
    }

    /// Gives the lease up, so that another need not wait. Call it when nothing writes any more.
    pub async fn release(mut self) -> Result<(), LinkError> {
        self.term.lost.send_replace(true);
        self.stop.send_replace(true);
        let Some(task) = self.task.take() else {
            return Ok(());
        };
        match task.await {
            Ok(Some((seat, lease))) => seat.give_up(lease).await,
            // It was lost before, or the runtime ends: there is nothing to give up.
            _ => Ok(()),
        }
    }
}

/// Renews until told to stop, or until the lease is lost; gives back what is still held.
async fn hold(
    seat: Seat,
    mut lease: Lease,
    term: Arc<Term>,
    mut stopped: watch::Receiver<bool>,
) -> Option<(Seat, Lease)> {
    let mut pause = seat.options.renew;
    loop {
        let until = *term.until.lock();
        let due = (Instant::now() + pause).min(until);
        tokio::select! {
            // The sender's end means a dropped election, whose task is aborted anyway.
            _ = stopped.wait_for(|stop| *stop) => return Some((seat, lease)),
            () = tokio::time::sleep_until(due) => {}
        }
        if Instant::now() >= until {
            tracing::warn!("lost the lease: it could not be renewed in time");
            term.lost.send_replace(true);
            return None;
        }
        let begun = Instant::now();
        match tokio::time::timeout_at(until, seat.renew(&lease)).await {
            Ok(Ok(Some(renewed))) => {
                lease = renewed;
                *term.until.lock() = begun + seat.options.duration;
                pause = seat.options.renew;
            }
            Ok(Ok(None)) => {
                tracing::warn!("lost the lease to another");
                term.lost.send_replace(true);
                return None;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to renew the lease");
                pause = seat.options.retry;
            }
            Err(_) => pause = Duration::ZERO,
        }
    }
}
