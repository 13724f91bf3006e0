//! The members: for each one a lane of Works to be sent and policies to be kept, and what is known of the objects there.
//!
//! A lane has a bounded number of requests in flight. A member that is down or slow delays its own lane and no other.

mod complying;
mod dispatching;
mod due;
mod failing;
mod fighting;
mod lane;
mod late;
mod objects;
pub(crate) mod telling;
mod window;
mod withdrawing;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use lockgate_api::{Work, keys, names};
use lockgate_engine::TemplateId;
use lockgate_engine::render::manifest_hash;
use parking_lot::{Mutex, RwLock};
use tokio::sync::SetOnce;
use tokio::time::Instant;

use crate::cache::Key;
use crate::clock::Clock;
use crate::link::Link;
use crate::metrics::QueueFigures;
use lane::Errand;
pub(crate) use lane::Lane;

/// How long a template's status waits for Works on their way.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// While every lane that it waits for moves.
    pub(crate) while_moving: Duration,
    /// While one does not.
    pub(crate) otherwise: Duration,
    /// How soon it looks again whether they have arrived, if nobody says so: at first, and at last.
    pub(crate) look_again: (Duration, Duration),
}

/// All members that have a lane.
pub(crate) struct Members {
    clock: Clock,
    figures: QueueFigures,
    lanes: RwLock<BTreeMap<String, Arc<Lane>>>,
    /// Whether all is known that says what is sent, and how.
    begun: SetOnce<()>,
    /// Since when a template's status waits for Works on their way.
    waiting: Mutex<HashMap<TemplateId, Instant>>,
}

impl Members {
    pub(crate) fn new(clock: Clock, figures: QueueFigures) -> Self {
        Self {
            clock,
            figures,
            lanes: RwLock::default(),
            begun: SetOnce::new(),
            waiting: Mutex::default(),
        }
    }

    /// From here on lanes send. Before, a Work is there and perhaps not the script that says what its member keeps.
    pub(crate) fn begin(&self) {
        let _ = self.begun.set(());
    }

    /// Returns when lanes may send.
    async fn begun(&self) {
        self.begun.wait().await;
    }

    /// A member's lane, made if there is none. The caller starts it.
    pub(crate) fn open(&self, cluster: &str) -> (Arc<Lane>, bool) {
        if let Some(lane) = self.lanes.read().get(cluster) {
            return (lane.clone(), false);
        }
        let mut lanes = self.lanes.write();
        let mut made = false;
        let lane = lanes.entry(cluster.to_owned()).or_insert_with(|| {
            made = true;
            Arc::new(Lane::new(cluster, self.clock.clone(), self.figures.clone()))
        });
        (lane.clone(), made)
    }

    /// A member's lane.
    pub(crate) fn lane(&self, cluster: &str) -> Option<Arc<Lane>> {
        self.lanes.read().get(cluster).cloned()
    }

    /// Ends a member's lane.
    pub(crate) fn close(&self, cluster: &str) {
        if let Some(lane) = self.lanes.write().remove(cluster) {
            lane.close();
        }
    }

    /// Ends all lanes.
    pub(crate) fn close_all(&self) -> Vec<Arc<Lane>> {
        let lanes: Vec<_> = std::mem::take(&mut *self.lanes.write()).into_values().collect();
        for lane in &lanes {
            lane.close();
        }
        lanes
    }

    /// Gives a member the way to it, or takes it.
    pub(crate) fn connect(&self, cluster: &str, read: impl FnOnce() -> Option<Link>) {
        if let Some(lane) = self.lane(cluster) {
            lane.connect(read);
        }
    }

    /// A Work needs attention.
    pub(crate) fn wake(&self, work: &Key) {
        if let Some(lane) = names::cluster_of(&work.namespace).and_then(|cluster| self.lane(cluster)) {
            lane.queue
                .add(Errand::Work(work.name.to_string()), lane::DISPATCH);
        }
    }

    /// A policy in the namespace of a cluster needs attention.
    pub(crate) fn wake_policy(&self, policy: &Key) {
        if let Some(lane) = self.lane(&policy.namespace) {
            lane.queue
                .add(Errand::Policy(policy.name.to_string()), lane::DISPATCH);
        }
    }

    /// The root of a policy changed: where it is, and where it was, it is looked at.
    pub(crate) fn wake_policy_everywhere(&self, name: &str) {
        for lane in self.lanes.read().values() {
            if lane.policies.holds(&Key::new(&lane.cluster, name)) {
                lane.queue
                    .add_bulk(Errand::Policy(name.to_owned()), lane::DISPATCH);
            }
        }
    }

    /// What a member serves has changed, or a member can be reached again: everything about its policies is looked at.
    pub(crate) fn wake_policies(&self, cluster: &str) {
        if let Some(lane) = self.lane(cluster) {
            lane.policies.ask_again();
            lane.queue.add_bulk(Errand::Policy(String::new()), lane::DISPATCH);
        }
    }

    /// A Work was written. If it was doubted, and this is what was rendered, the answer is what the hub makes of that.
    pub(crate) fn written(&self, key: &Key, work: &Work, answer: &[u8]) {
        let lane = names::cluster_of(&key.namespace).and_then(|cluster| self.lane(cluster));
        let is_rendered = || {
            let hash = work.spec.workload.manifests.first().map(manifest_hash);
            hash.as_deref() == work.metadata.annotation(keys::RENDERED)
        };
        if let Some(lane) = lane
            && let Some(doubt) = lane.doubted.lock().get_mut(&*key.name)
            && is_rendered()
            && let Ok(kept) = serde_json::from_slice::<Work>(answer)
        {
            doubt.believe(&kept.metadata.uid, kept.metadata.generation);
        }
    }

    /// Whether a template's status waits.
    pub(crate) fn is_waited_for(&self, id: &TemplateId) -> bool {
        self.waiting.lock().contains_key(id)
    }

    /// Whether any template's status waits.
    fn is_anybody_waited_for(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// How soon to look again, if a template's status should wait a little for Works that are on their way. Its walk may be
    /// about to make more of them.
    pub(crate) fn wait_for(
        &self,
        id: &TemplateId,
        works: &[Key],
        is_walked: bool,
        is_untold: impl Fn(&Key) -> bool,
        patience: Patience,
    ) -> Option<Duration> {
        let (mut under_way, mut moving) = (is_walked, true);
        for work in works {
            let lane = names::cluster_of(&work.namespace).and_then(|cluster| self.lane(cluster));
            let unsent = lane.filter(|lane| {
                !lane.is_down() && lane.queue.is_pending(&Errand::Work(work.name.to_string()))
            });
            moving &= unsent.as_ref().is_none_or(|lane| lane.is_moving());
            under_way |= unsent.is_some() || is_untold(work);
        }
        let mut waiting = self.waiting.lock();
        if !under_way {
            waiting.remove(id);
            return None;
        }
        let waited = waiting.entry(id.clone()).or_insert_with(Instant::now).elapsed();
        let limit = if moving {
            patience.while_moving
        } else {
            patience.otherwise
        };
        if waited < limit {
            // Among many thousands everybody waits long, and to look often would cost more than to send.
            let again = waited.clamp(patience.look_again.0, patience.look_again.1);
            return Some(again.min(limit - waited));
        }
        waiting.remove(id);
        None
    }

    /// Whether nothing is to be sent that could be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.lanes.read().values().all(|lane| lane.is_idle())
    }

    /// How many Works wait in all lanes.
    pub(crate) fn depth(&self) -> usize {
        self.lanes.read().values().map(|lane| lane.queue.depth()).sum()
    }
}
