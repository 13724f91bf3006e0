//! When what reached each member, told by the member's own changes.

use std::sync::Arc;
use std::time::Instant;

use machinery_apiserver::ApiServer;
use machinery_auth::UserInfo;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::fleet::load::{NAMESPACE, STAMP, number};

/// One object of one member.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Since when it is there with its present stamp; none if it is not there.
    since: Option<Instant>,
    stamp: u32,
}

/// What one member has.
#[derive(Debug, Default)]
struct Seen {
    slots: Vec<Slot>,
    present: usize,
    /// How many carry the newest stamp.
    stamped: usize,
    newest: u32,
    /// The member's changes came faster than they were read.
    lost: bool,
}

/// Follows one member.
pub(crate) struct Arrivals {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Arrivals {
    /// Follows a member whose objects have numbers below `objects`.
    pub(crate) fn follow(member: &ApiServer, objects: usize) -> Self {
        let seen = Arc::new(Mutex::new(Seen {
            slots: vec![Slot::default(); objects],
            ..Seen::default()
        }));
        // Every object changes a few times in a phase; status is written too.
        let buffer = objects.saturating_mul(8).max(1 << 16);
        let mut changes = member.local(UserInfo::apiserver()).changes(buffer);
        let told = seen.clone();
        let task = tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                if change.namespace != NAMESPACE || change.resource.plural != "deployments" {
                    continue;
                }
                let Some(number) = number(&change.name) else {
                    continue;
                };
                let stamp = (!change.deleted).then(|| stamp_of(&change.object()));
                told.lock().note(number, stamp, Instant::now());
            }
            told.lock().lost = true;
        });
        Self { seen, task }
    }

    /// From now on this stamp is the newest.
    pub(crate) fn expect(&self, stamp: u32) {
        let mut seen = self.seen.lock();
        seen.newest = stamp;
        seen.stamped = seen
            .slots
            .iter()
            .filter(|slot| slot.since.is_some() && slot.stamp == stamp)
            .count();
    }

    /// How many objects there are, and how many of them carry the newest stamp.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let seen = self.seen.lock();
        (seen.present, seen.stamped)
    }

    /// Since when an object is there, with its present stamp.
    pub(crate) fn since(&self, number: usize) -> Option<Instant> {
        self.seen.lock().slots.get(number)?.since
    }

    /// Whether some changes were missed, so that nothing here can be trusted.
    pub(crate) fn lost(&self) -> bool {
        self.seen.lock().lost
    }
}

impl Seen {
    /// An object is there with a stamp, or gone.
    fn note(&mut self, number: usize, stamp: Option<u32>, now: Instant) {
        let newest = self.newest;
        let Some(slot) = self.slots.get_mut(number) else {
            return;
        };
        let before = slot.since.is_some().then_some(slot.stamp);
        if before == stamp {
            return;
        }
        *slot = Slot {
            since: stamp.map(|_| now),
            stamp: stamp.unwrap_or_default(),
        };
        let counts = |stamp: Option<u32>| (usize::from(stamp.is_some()), usize::from(stamp == Some(newest)));
        let (was, now) = (counts(before), counts(stamp));
        self.present = self.present + now.0 - was.0;
        self.stamped = self.stamped + now.1 - was.1;
    }
}

fn stamp_of(object: &serde_json::Value) -> u32 {
    let stamp = object["metadata"]["labels"][STAMP].as_str();
    stamp.and_then(|stamp| stamp.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_change_and_go() {
        let mut seen = Seen {
            slots: vec![Slot::default(); 3],
            newest: 1,
            ..Seen::default()
        };
        let first = Instant::now();
        for (number, stamp, present, stamped) in [
            (0, Some(0), 1, 0),
            (1, Some(1), 2, 1),
            (0, Some(1), 2, 2),
            (0, Some(1), 2, 2),
            (1, None, 1, 1),
            (1, None, 1, 1),
            (9, Some(1), 1, 1),
            (1, Some(1), 2, 2),
        ] {
            seen.note(number, stamp, first);
            assert_eq!(
                (seen.present, seen.stamped),
                (present, stamped),
                "{number} {stamp:?}"
            );
        }
    }

    #[test]
    fn the_first_sight_of_a_stamp_counts() {
        let mut seen = Seen {
            slots: vec![Slot::default(); 1],
            ..Seen::default()
        };
        let first = Instant::now();
        let later = first + std::time::Duration::from_secs(1);
        seen.note(0, Some(0), first);
        seen.note(0, Some(0), later);
        assert_eq!(seen.slots[0].since, Some(first));
        seen.note(0, Some(1), later);
        assert_eq!(seen.slots[0].since, Some(later));
    }
}
