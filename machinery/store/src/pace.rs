//! How many writes the journal waits for before it syncs.
//!
//! A sync costs about the same for one write as for fifty, and where writers come one by one faster than the disk turns
//! around, each would pay for one of its own. So the journal expects as many writes as came last time, and for a moment
//! waits for them: writers that work side by side share a sync, and one that is alone waits for nobody, but for once after
//! the others have gone.

use std::time::Duration;

/// How long the journal waits, from when it ended the batch before, for each write that it expects: a few are not worth a long
/// wait, and thirty take milliseconds to come where the cores are busy.
const LINGER_EACH: Duration = Duration::from_micros(250);

/// The longest that it waits.
const LINGER: Duration = Duration::from_millis(5);

/// After so many batches that were as large as expected, more is expected.
const CONTENT: u32 = 8;

#[derive(Debug)]
pub(crate) struct Pace {
    expected: usize,
    /// How many batches in a row met the expectation.
    met: u32,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { expected: 1, met: 0 }
    }

    /// How many writes are worth a sync at once, without waiting for more.
    pub(crate) fn expected(&self) -> usize {
        self.expected
    }

    /// How long they are worth waiting for.
    pub(crate) fn patience(&self) -> Duration {
        let expected = u32::try_from(self.expected).unwrap_or(u32::MAX);
        LINGER_EACH.saturating_mul(expected).min(LINGER)
    }

    /// Learns from a batch.
    pub(crate) fn took(&mut self, writes: usize) {
        if writes != self.expected {
            *self = Self {
                expected: writes.max(1),
                met: 0,
            };
            return;
        }
        self.met += 1;
        // One that is alone stays so: two writers show themselves by waiting behind the same sync.
        if self.met == CONTENT && writes > 1 {
            *self = Self {
                expected: writes + writes.div_ceil(4),
                met: 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(batches: &[usize]) -> usize {
        let mut pace = Pace::new();
        for writes in batches {
            pace.took(*writes);
        }
        pace.expected()
    }

    #[test]
    fn one_writer_alone_is_never_made_to_wait() {
        assert_eq!(after(&[1; 100]), 1);
        // It was not alone before, and is waited for once.
        assert_eq!(after(&[40, 1]), 1);
        // Nothing but a reservation of revisions.
        assert_eq!(after(&[40, 0]), 1);
    }

    #[test]
    fn writers_side_by_side_share_a_sync() {
        assert_eq!(after(&[2]), 2);
        assert_eq!(after(&[2, 2, 2]), 2);
        assert_eq!(after(&[3, 40, 32]), 32);
    }

    #[test]
    fn many_are_waited_for_longer_than_few() {
        let mut pace = Pace::new();
        pace.took(2);
        assert_eq!(pace.patience(), Duration::from_micros(500));
        pace.took(1000);
        assert_eq!(pace.patience(), LINGER);
    }

    #[test]
    fn more_is_expected_now_and_then() {
        assert_eq!(after(&[8; 8]), 8);
        assert_eq!(after(&[8; 9]), 10);
        // They did not come.
        let mut batches = vec![8; 9];
        batches.push(8);
        assert_eq!(after(&batches), 8);
    }
}
