//! Time as the controllers see it. Tests and simulations move it by hand; nothing here sleeps to be right.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

/// A source of time. Clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    /// The wall clock at the start, and a monotonic clock from there: it never runs backwards.
    Real { start: Timestamp, origin: Instant },
    /// Moves when told.
    Manual {
        time: watch::Sender<Timestamp>,
        sleepers: Mutex<Sleepers>,
    },
}

/// Until when everybody sleeps.
#[derive(Debug, Default)]
struct Sleepers {
    last: u64,
    until: BTreeSet<(Timestamp, u64)>,
}

/// Who slept and is about to do something, until this is dropped: nobody else would know of it before it is done.
#[derive(Debug)]
pub struct Awake<'a> {
    _sleeper: Option<Sleeper<'a>>,
}

/// Somebody who sleeps, until this is dropped.
#[derive(Debug)]
struct Sleeper<'a> {
    among: &'a Mutex<Sleepers>,
    until: (Timestamp, u64),
}

impl<'a> Sleeper<'a> {
    fn new(among: &'a Mutex<Sleepers>, until: Timestamp) -> Self {
        let mut sleepers = among.lock();
        sleepers.last += 1;
        let until = (until, sleepers.last);
        sleepers.until.insert(until);
        drop(sleepers);
        Self { among, until }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.among.lock().until.remove(&self.until);
    }
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
        Self(Arc::new(Source::Manual {
            time: watch::Sender::new(start),
            sleepers: Mutex::default(),
        }))
    }

    /// Whether it moves only when told.
    pub fn is_manual(&self) -> bool {
        matches!(&*self.0, Source::Manual { .. })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            Source::Real { start, origin } => later(*start, origin.elapsed()),
            Source::Manual { time, .. } => *time.borrow(),
        }
    }

    /// Moves a manual clock forward, and wakes who waits; a real clock moves by itself.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { time, .. } = &*self.0 {
            time.send_modify(|now| *now = later(*now, by));
        }
    }

    /// Whether somebody sleeps by a manual clock whose time has come: about to wake up, and to do something.
    pub fn is_anybody_late(&self) -> bool {
        match &*self.0 {
            Source::Real { .. } => false,
            Source::Manual { sleepers, .. } => {
                let now = self.now();
                let sleepers = sleepers.lock();
                sleepers.until.first().is_some_and(|(until, _)| *until <= now)
            }
        }
    }

    /// Returns when that much time has passed on this clock.
    pub async fn sleep(&self, duration: Duration) -> Awake<'_> {
        self.sleep_until(later(self.now(), duration)).await
    }

    /// Returns when it is that late on this clock.
    pub async fn sleep_until(&self, due: Timestamp) -> Awake<'_> {
        match &*self.0 {
            Source::Real { .. } => {
                let left = Duration::try_from(due.duration_since(self.now())).unwrap_or_default();
                tokio::time::sleep(left).await;
                Awake { _sleeper: None }
            }
            Source::Manual { time, sleepers } => {
                let sleeper = Sleeper::new(sleepers, due);
                let mut seen = time.subscribe();
                // The sender lives as long as `self`, so that waiting cannot fail.
                let _ = seen.wait_for(|now| *now >= due).await;
                Awake {
                    _sleeper: Some(sleeper),
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_should_be_awake_is_known() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let sleeper = {
            let clock = clock.clone();
            tokio::spawn(async move { drop(clock.sleep(Duration::from_secs(5)).await) })
        };
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(4));
        assert!(!clock.is_anybody_late());
        clock.advance(Duration::from_secs(1));
        assert!(clock.is_anybody_late());
        sleeper.await.unwrap();
        assert!(!clock.is_anybody_late());
        // Who no longer sleeps is not waited for.
        let dropped = tokio::time::timeout(Duration::ZERO, clock.sleep(Duration::from_secs(1))).await;
        assert!(dropped.is_err());
        clock.advance(Duration::from_secs(2));
        assert!(!clock.is_anybody_late());
    }
}
