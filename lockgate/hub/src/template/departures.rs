//! In which second a workload leaves a cluster: not more than [`AT_ONCE`] leave in one, so that a cluster that many must leave
//! does not make all members start everything at the same time. Who must wait is told its turn, and comes back then and not
//! every second.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_engine::TemplateId;

use super::WAITING_FOR_TURN;
use crate::metrics::Metrics;
use crate::state::State;

/// How many workloads leave in one second.
pub(super) const AT_ONCE: usize = 10;
/// How many seconds a turn is kept for one that does not come.
const KEPT: i64 = 60;

/// Who leaves when.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    metrics: Arc<Metrics>,
    second: i64,
    /// How many have left in this second.
    left: usize,
    /// The places that are given away, in this second and those to come.
    given: BTreeMap<i64, usize>,
    /// When those may leave that must wait.
    turns: HashMap<TemplateId, Turn>,
}

/// The turn of one that must wait.
#[derive(Debug)]
struct Turn {
    second: i64,
    since: Timestamp,
    /// The clusters that it is to leave.
    from: Vec<String>,
}

impl Departures {
    /// Nobody waits. Who does is counted.
    pub(crate) fn counted(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            ..Self::default()
        }
    }

    /// Whether a workload that has somewhere to go may leave these clusters now, and since when it was to; if not, when it may.
    pub(super) fn admit(
        &mut self,
        id: &TemplateId,
        from: &[String],
        time: Timestamp,
    ) -> Result<Timestamp, Timestamp> {
        let now = time.as_second();
        if self.second != now {
            self.begin(now);
        }
        let known = self.forget(id);
        let since = known.as_ref().map_or(time, |turn| turn.since);
        let second = match known {
            Some(turn) if turn.second > now => turn.second,
            // Its turn has come; one that comes late goes as soon as there is a place.
            Some(_) if self.left < AT_ONCE => now,
            Some(_) => self.give(now + 1),
            None => self.give(now),
        };
        if second <= now && self.left < AT_ONCE {
            self.left += 1;
            return Ok(since);
        }
        let from = from.to_vec();
        self.keep(id.clone(), Turn { second, since, from });
        Err(Timestamp::from_second(second).unwrap_or(Timestamp::MAX))
    }

    /// A workload that waits need not leave any more: its place is free.
    fn withdraw(&mut self, id: &TemplateId) {
        let turn = self.forget(id);
        if let Some(given) = turn.and_then(|turn| self.given.get_mut(&turn.second)) {
            *given = given.saturating_sub(1);
        }
    }

    /// A new second: those who did not come for long have no turn any more.
    fn begin(&mut self, now: i64) {
        self.second = now;
        self.left = 0;
        self.given = self.given.split_off(&now);
        let late = self.turns.extract_if(|_, turn| turn.second + KEPT < now);
        for (id, turn) in late {
            count(&self.metrics, &id, &turn, -1);
        }
    }

    fn keep(&mut self, id: TemplateId, turn: Turn) {
        count(&self.metrics, &id, &turn, 1);
        self.turns.insert(id, turn);
    }

    fn forget(&mut self, id: &TemplateId) -> Option<Turn> {
        let turn = self.turns.remove(id)?;
        count(&self.metrics, id, &turn, -1);
        Some(turn)
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

/// One that waits counts once for each cluster that it is to leave.
fn count(metrics: &Metrics, id: &TemplateId, turn: &Turn, more: i64) {
    for cluster in &turn.from {
        metrics.evictions_waiting(&id.namespace, cluster, more);
    }
}

/// Takes the turn from one that was looked at and does not wait any more: it is gone, or need not leave.
pub(super) fn settle(state: &State, id: &TemplateId) {
    if !state.departures.lock().turns.contains_key(id) {
        return;
    }
    let verdicts = state.verdicts.lock();
    let staying = verdicts.get(id).and_then(|verdict| verdict.staying.as_ref());
    let waits = staying.is_some_and(|(why, _)| *why == WAITING_FOR_TURN);
    drop(verdicts);
    if !waits {
        state.departures.lock().withdraw(id);
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

    /// Asks for a workload, which is to leave one cluster.
    fn admit(departures: &mut Departures, index: usize, second: i64) -> Result<Timestamp, Timestamp> {
        departures.admit(&workload(index), &["m1".to_owned()], at(second))
    }

    #[test]
    fn everyone_has_a_turn_and_keeps_it() {
        let mut departures = Departures::default();
        let turns: Vec<_> = (0..35).map(|index| admit(&mut departures, index, 100)).collect();
        for (index, turn) in turns.iter().enumerate() {
            match index / AT_ONCE {
                0 => assert_eq!(*turn, Ok(at(100))),
                after => assert_eq!(*turn, Err(at(100 + after as i64)), "{index}"),
            }
        }
        // Whoever looks again before that is told the same, and takes no place of others.
        assert_eq!(admit(&mut departures, 34, 101), Err(at(103)));
        for index in 10..20 {
            assert_eq!(admit(&mut departures, index, 101), Ok(at(100)), "{index}");
        }
        assert_eq!(
            admit(&mut departures, 99, 101),
            Err(at(103)),
            "after those who wait"
        );
    }

    #[test]
    fn who_comes_late_goes_all_the_same() {
        let mut departures = Departures::default();
        for index in 0..50 {
            let _ = admit(&mut departures, index, 100);
        }
        // Nobody was looked at for a while: they go one after the other, and no faster.
        let mut gone = 0;
        let mut waiting: Vec<usize> = (10..50).collect();
        for second in 120..124 {
            waiting.retain(|index| admit(&mut departures, *index, second).is_err());
            assert_eq!(50 - waiting.len() - 10 - gone, AT_ONCE, "in second {second}");
            gone += AT_ONCE;
        }
        assert_eq!(waiting, [0; 0]);
        assert!(departures.turns.is_empty());
    }

    /// What is counted of those who wait.
    fn waiting(departures: &Departures) -> Vec<String> {
        let text = departures.metrics.encode();
        let of_those = ["eviction_queue_depth{", "eviction_kind_total{"];
        let lines = text
            .lines()
            .filter(|line| of_those.iter().any(|name| line.starts_with(name)));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn who_waits_is_counted() {
        let mut departures = Departures::default();
        let nobody = [
            r#"eviction_queue_depth{name="binding-eviction"} 0"#,
            r#"eviction_queue_depth{name="cluster-binding-eviction"} 0"#,
        ];
        for index in 0..AT_ONCE {
            assert_eq!(admit(&mut departures, index, 100), Ok(at(100)));
        }
        assert_eq!(waiting(&departures), nobody, "nobody has to wait");
        let namespaced = TemplateId {
            namespace: "shop".to_owned(),
            ..TemplateId::default()
        };
        let both = ["m1".to_owned(), "m2".to_owned()];
        for _ in 0..2 {
            // Whoever asks again is counted once.
            assert_eq!(departures.admit(&namespaced, &both, at(100)), Err(at(101)));
            assert_eq!(admit(&mut departures, 10, 100), Err(at(101)));
        }
        assert_eq!(
            waiting(&departures),
            [
                r#"eviction_kind_total{member_cluster="m1",resource_kind="ClusterResourceBinding"} 1"#,
                r#"eviction_kind_total{member_cluster="m1",resource_kind="ResourceBinding"} 1"#,
                r#"eviction_kind_total{member_cluster="m2",resource_kind="ResourceBinding"} 1"#,
                r#"eviction_queue_depth{name="binding-eviction"} 2"#,
                r#"eviction_queue_depth{name="cluster-binding-eviction"} 1"#,
            ]
        );
        // One leaves, and the other is not heard of again.
        assert_eq!(departures.admit(&namespaced, &both, at(101)), Ok(at(100)));
        assert_eq!(admit(&mut departures, 11, 101 + KEPT), Ok(at(101 + KEPT)));
        assert_eq!(waiting(&departures).len(), 3, "a turn is kept for a while");
        assert_eq!(admit(&mut departures, 12, 102 + KEPT), Ok(at(102 + KEPT)));
        assert_eq!(waiting(&departures), nobody);
    }

    #[test]
    fn who_need_not_leave_makes_room() {
        let mut departures = Departures::default();
        for index in 0..2 * AT_ONCE {
            let _ = admit(&mut departures, index, 100);
        }
        departures.withdraw(&workload(AT_ONCE));
        assert_eq!(admit(&mut departures, 98, 100), Err(at(101)), "in its place");
        assert_eq!(admit(&mut departures, 99, 100), Err(at(102)));
    }
}
