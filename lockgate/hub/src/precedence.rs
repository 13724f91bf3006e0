//! What members are to get goes first. Everything that tells of it (statuses, events, the end of a removal) waits until such
//! writes pause, so that a burst reaches the members before it is talked about. A burst that does not end is talked about
//! while it lasts.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A burst is over when nothing was written for so long: about twice what one object needs from one write to its next.
const PAUSE: Duration = Duration::from_millis(50);
/// Nothing waits longer for a burst to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who writes first, and who waits. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Precedence(Arc<Mutex<Burst>>);

#[derive(Default)]
struct Burst {
    /// How many of its writes are under way.
    under_way: usize,
    since: Option<Instant>,
    last: Option<Instant>,
}

impl Burst {
    /// How long to wait until it may be over, at `now`; `None` if it is, or has lasted long enough.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let patience = PATIENCE.checked_sub(now.saturating_duration_since(self.since?))?;
        let pause = if self.under_way > 0 {
            PAUSE
        } else {
            PAUSE.checked_sub(now.saturating_duration_since(self.last?))?
        };
        Some(pause.min(patience)).filter(|wait| !wait.is_zero())
    }
}

/// A write of a burst, under way.
pub(crate) struct UnderWay(Precedence);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut burst = self.0.0.lock();
        burst.under_way -= 1;
        burst.last = Some(Instant::now());
    }
}

impl Precedence {
    /// Begins a write that goes first.
    pub(crate) fn go_first(&self) -> UnderWay {
        let now = Instant::now();
        let mut burst = self.0.lock();
        let over = burst.under_way == 0
            && burst
                .last
                .is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if over {
            burst.since = Some(now);
        }
        burst.under_way += 1;
        UnderWay(self.clone())
    }

    /// Waits until nothing goes first any more.
    pub(crate) async fn give_way(&self) {
        loop {
            let Some(wait) = self.0.lock().wait(Instant::now()) else {
                return;
            };
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn waited(precedence: &Precedence) -> Duration {
        let begun = Instant::now();
        precedence.give_way().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_when_nothing_moves() {
        assert_eq!(waited(&Precedence::default()).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_waits_for_a_pause() {
        let precedence = Precedence::default();
        let writes = precedence.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                let under_way = writes.go_first();
                tokio::time::sleep(Duration::from_millis(20)).await;
                drop(under_way);
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        });
        tokio::task::yield_now().await;
        let waited = waited(&precedence).await;
        // The tenth write ends after 470 ms.
        assert!(
            (520..580).contains(&waited.as_millis()),
            "waited {waited:?}, not until the last write and a pause"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_that_does_not_end_is_not_waited_for() {
        let precedence = Precedence::default();
        let _under_way = precedence.go_first();
        assert_eq!(waited(&precedence).await, PATIENCE);
        // Not even by others, as long as it lasts.
        assert_eq!(waited(&precedence).await, Duration::ZERO);
    }
}
