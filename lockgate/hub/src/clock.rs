//! Time as the controllers see it. Tests and simulations move it by hand; nothing here sleeps to be right.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A source of time. Clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    /// The wall clock at the start, and a monotonic clock from there: it never runs backwards.
    Real { start: Timestamp, origin: Instant },
    /// Moves when told.
    Manual(watch::Sender<Timestamp>),
}

impl Clock {
    /// The machine's time.
    pub fn real() -> Self {
        Self(Arc::new(Source::Real {
            start: Timestamp::now(),
            origin: Instant::now(),
        }))
    }

    /// A time that stands still until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(Arc::new(Source::Manual(watch::Sender::new(start))))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            Source::Real { start, origin } => later(*start, origin.elapsed()),
            Source::Manual(time) => *time.borrow(),
        }
    }

    /// Moves a manual clock forward, and wakes who waits; a real clock moves by itself.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(time) = &*self.0 {
            time.send_modify(|now| *now = later(*now, by));
        }
    }

    /// Returns when that much time has passed on this clock.
    pub async fn sleep(&self, duration: Duration) {
        match &*self.0 {
            Source::Real { .. } => tokio::time::sleep(duration).await,
            Source::Manual(time) => {
                let due = later(self.now(), duration);
                let mut seen = time.subscribe();
                // The sender lives as long as `self`, so that waiting cannot fail.
                let _ = seen.wait_for(|now| *now >= due).await;
            }
        }
    }
}

/// A time that much later; the end of time at the latest.
pub fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| time.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

/// RFC 3339 with whole seconds, as conditions carry it.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
