//! In which second a workload leaves a cluster: not more than [`AT_ONCE`] leave in one, so that a cluster that many must leave
//! does not make all members start everything at the same time. Who must wait is told its turn, and comes back then and not
//! every second.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use lockgate_engine::TemplateId;

/// How many workloads leave in one second.
pub(super) const AT_ONCE: usize = 10;
/// How many seconds a turn is kept for one that does not come.
const KEPT: i64 = 60;

/// Who leaves when.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    second: i64,
    /// How many have left in this second.
    left: usize,
    /// The places that are given away, in this second and those to come.
    given: BTreeMap<i64, usize>,
    /// When those may leave that must wait.
    turns: HashMap<TemplateId, i64>,
}

impl Departures {
    /// Whether a workload that has somewhere to go may leave now; if not, when.
    pub(super) fn admit(&mut self, id: &TemplateId, now: Timestamp) -> Result<(), Timestamp> {
        let now = now.as_second();
        if self.second != now {
            self.second = now;
            self.left = 0;
            self.given = self.given.split_off(&now);
            self.turns.retain(|_, turn| *turn + KEPT >= now);
        }
        let turn = match self.turns.get(id) {
            Some(turn) if *turn > now => *turn,
            // Its turn has come; one that comes late goes as soon as there is a place.
            Some(_) if self.left < AT_ONCE => now,
            Some(_) => self.give(now + 1),
            None => self.give(now),
        };
        if turn <= now && self.left < AT_ONCE {
            self.left += 1;
            self.turns.remove(id);
            return Ok(());
        }
        self.turns.insert(id.clone(), turn);
        Err(Timestamp::from_second(turn).unwrap_or(Timestamp::MAX))
    }

    /// The first second from this one on that has a place left, which is taken.
    fn give(&mut self, from: i64) -> i64 {
        let mut second = from;
        while self.given.get(&second).is_some_and(|given| *given >= AT_ONCE) {
            second += 1;
        }
        *self.given.entry(second).or_default() += 1;
        second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("within range")
    }

    fn workload(index: usize) -> TemplateId {
        TemplateId {
            name: index.to_string(),
            ..TemplateId::default()
        }
    }

    #[test]
    fn everyone_has_a_turn_and_keeps_it() {
        let mut departures = Departures::default();
        let turns: Vec<_> = (0..35)
            .map(|index| departures.admit(&workload(index), at(100)))
            .collect();
        for (index, turn) in turns.iter().enumerate() {
            match index / AT_ONCE {
                0 => assert_eq!(*turn, Ok(())),
                after => assert_eq!(*turn, Err(at(100 + after as i64)), "{index}"),
            }
        }
        // Whoever looks again before that is told the same, and takes no place of others.
        assert_eq!(departures.admit(&workload(34), at(101)), Err(at(103)));
        for index in 10..20 {
            assert_eq!(departures.admit(&workload(index), at(101)), Ok(()), "{index}");
        }
        assert_eq!(
            departures.admit(&workload(99), at(101)),
            Err(at(103)),
            "after those who wait"
        );
    }

    #[test]
    fn who_comes_late_goes_all_the_same() {
        let mut departures = Departures::default();
        for index in 0..50 {
            let _ = departures.admit(&workload(index), at(100));
        }
        // Nobody was looked at for a while: they go one after the other, and no faster.
        let mut gone = 0;
        let mut waiting: Vec<usize> = (10..50).collect();
        for second in 120..124 {
            waiting.retain(|index| departures.admit(&workload(*index), at(second)).is_err());
            assert_eq!(50 - waiting.len() - 10 - gone, AT_ONCE, "in second {second}");
            gone += AT_ONCE;
        }
        assert_eq!(waiting, [0; 0]);
        assert!(departures.turns.is_empty());
    }
}
