//! Corrections of one thing that somebody changes back.
//!
//! Every correction is a write on the member and often a rollout of pods, so a fight is fought slowly: from the third
//! correction within ten minutes on, each is followed by a longer pause.

use std::time::Duration;

use jiff::Timestamp;

/// Corrections that are closer together than this are one fight.
const WINDOW: Duration = Duration::from_secs(600);
/// The pause after the third correction.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// The corrections of one thing, such as a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    /// The last two, the older first.
    recent: [Option<Timestamp>; 2],
    /// The pause after the last one, if there was a fight.
    pause: Option<Duration>,
}

impl Corrections {
    /// Records that it was corrected now. Answers how long to leave it alone; none while this is no fight.
    pub fn record(&mut self, now: Timestamp) -> Option<Duration> {
        self.pause = self.next_pause(now);
        self.recent = [self.recent[1], Some(now)];
        self.pause
    }

    /// Whether a correction now would be one of a fight.
    pub fn would_fight(&self, now: Timestamp) -> bool {
        self.next_pause(now).is_some()
    }

    /// Whether what was recorded still counts.
    pub fn counts(&self, now: Timestamp) -> bool {
        within(self.recent[1], now, WINDOW + self.pause.unwrap_or_default())
    }

    fn next_pause(&self, now: Timestamp) -> Option<Duration> {
        let [older, last] = self.recent;
        match self.pause {
            // A fight goes on until the thing was left alone for a while after the pause.
            Some(pause) if within(last, now, WINDOW + pause) => Some((pause * 2).min(LONGEST_PAUSE)),
            _ => within(older, now, WINDOW).then_some(FIRST_PAUSE),
        }
    }

    /// Until when it is left alone, if it is.
    pub fn paused_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = self.recent[1]?.checked_add(self.pause?).ok()?;
        (now < until).then_some(until)
    }

    /// When the fight is over if nobody goes on with it; none if there is none.
    pub fn peace(&self, now: Timestamp) -> Option<Timestamp> {
        let pause = self.pause?;
        let peace = self.recent[1]?.checked_add(WINDOW + pause).ok()?;
        (now <= peace).then_some(peace)
    }
}

/// Whether `then` was and is no longer ago than `limit`. A clock that went back counts as no time at all.
fn within(then: Option<Timestamp>, now: Timestamp, limit: Duration) -> bool {
    then.is_some_and(|then| {
        let elapsed = Duration::try_from(now.duration_since(then)).unwrap_or_default();
        elapsed <= limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses in seconds after corrections at these seconds.
    fn pauses(times: &[i64]) -> Vec<Option<u64>> {
        let mut corrections = Corrections::default();
        let at = |second: &i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        times
            .iter()
            .map(|second| {
                let would_fight = corrections.would_fight(at(second));
                let pause = corrections.record(at(second));
                assert_eq!(would_fight, pause.is_some());
                pause.map(|pause| pause.as_secs())
            })
            .collect()
    }

    #[test]
    fn the_third_correction_in_ten_minutes_is_a_fight() {
        assert_eq!(pauses(&[0, 300, 600]), [None, None, Some(15)]);
        assert_eq!(pauses(&[0, 300, 601, 900]), [None, None, None, Some(15)]);
        assert_eq!(pauses(&[0, 700, 1400, 2100]), [None; 4]);
    }

    #[test]
    fn pauses_grow_to_a_bound_and_end_with_peace() {
        let mut now = 0;
        let mut times = vec![0, 1, 2];
        for pause in [15, 30, 60, 120, 240, 480, 600, 600] {
            now = times.last().unwrap() + pause;
            times.push(now);
        }
        let grown = pauses(&times);
        assert_eq!(grown[2..], [15, 30, 60, 120, 240, 480, 600, 600, 600].map(Some));
        times.push(now + 600 + 600 + 1);
        assert_eq!(pauses(&times).last(), Some(&None));
    }

    #[test]
    fn the_pause_is_known_afterwards_and_a_clock_may_go_back() {
        let mut corrections = Corrections::default();
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(corrections.paused_until(start), None);
        corrections.record(start);
        corrections.record(start);
        assert_eq!(corrections.paused_until(start), None);
        assert_eq!(corrections.peace(start), None);
        let earlier = Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(corrections.record(earlier), Some(FIRST_PAUSE));
        let until = earlier.checked_add(FIRST_PAUSE).unwrap();
        assert_eq!(corrections.paused_until(earlier), Some(until));
        assert_eq!(corrections.paused_until(until), None);
        let peace = until.checked_add(WINDOW).unwrap();
        assert_eq!(corrections.peace(until), Some(peace));
        assert!(corrections.counts(peace));
        let after = peace.checked_add(Duration::from_secs(1)).unwrap();
        assert_eq!(corrections.peace(after), None);
        assert!(!corrections.counts(after));
    }
}
