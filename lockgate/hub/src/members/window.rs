//! How many requests a member is given at once: one more for every round that goes well, half as many when it says that it is
//! too much or takes much longer than it can.

use std::time::Duration;

/// The bound of requests in flight to one member.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    limit: f64,
    /// The quickest answers lately, in seconds; what the member can do.
    floor: f64,
    /// How many requests may still be in flight that were when the window last shrank: they tell of the same trouble.
    told: f64,
}

const START: f64 = 16.0;
const LEAST: f64 = 1.0;
const MOST: f64 = 32.0;
/// An answer that takes this much longer than the quickest, and longer than `SLOW`, means that the member has too much to do.
const TOO_LONG: f64 = 20.0;
const SLOW: f64 = 0.5;

impl Default for Window {
    fn default() -> Self {
        Self {
            limit: START,
            floor: f64::INFINITY,
            told: 0.0,
        }
    }
}

impl Window {
    /// How many requests may be in flight.
    pub(crate) fn limit(&self) -> usize {
        // Between 1 and 32 by construction.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded above"
        )]
        let limit = self.limit as usize;
        limit
    }

    /// The member answered after this time.
    pub(crate) fn answered(&mut self, after: Duration) {
        let seconds = after.as_secs_f64();
        // The floor rises slowly, so that one quick answer does not count for ever.
        self.floor = seconds.min(self.floor * 1.01).max(0.0001);
        if seconds > SLOW && seconds > self.floor * TOO_LONG {
            self.shrink();
        } else {
            self.told = (self.told - 1.0).max(0.0);
            self.limit = (self.limit + 1.0 / self.limit).min(MOST);
        }
    }

    /// The member said that it is too much, or did not answer.
    pub(crate) fn shrink(&mut self) {
        if self.told >= 1.0 {
            self.told -= 1.0;
        } else {
            self.told = self.limit - 1.0;
            self.limit = (self.limit / 2.0).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_one_a_round_and_is_bounded() {
        let mut window = Window::default();
        let before = window.limit();
        for _ in 0..before {
            window.answered(Duration::from_millis(5));
        }
        assert!(
            (before..=before + 1).contains(&window.limit()),
            "{}",
            window.limit()
        );
        for _ in 0..100_000 {
            window.answered(Duration::from_millis(5));
        }
        assert_eq!(window.limit(), 32);
    }

    #[test]
    fn trouble_halves_it_once_a_round_down_to_one() {
        let mut window = Window::default();
        for limit in [8, 4, 2, 1, 1, 1] {
            for _ in 0..window.limit() {
                window.shrink();
                assert_eq!(window.limit(), limit, "one round is one trouble");
            }
        }
    }

    #[test]
    fn slow_answers_shrink_it_and_slow_members_are_not_punished() {
        let mut quick = Window::default();
        quick.answered(Duration::from_millis(5));
        quick.answered(Duration::from_secs(2));
        assert_eq!(quick.limit(), 8);
        let mut far_away = Window::default();
        for _ in 0..50 {
            far_away.answered(Duration::from_millis(600));
        }
        assert!(far_away.limit() >= 16, "always slow is just far away");
    }
}
