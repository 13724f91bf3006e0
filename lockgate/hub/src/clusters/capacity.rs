//! What a member has room for: its Nodes and Pods are watched, and their sums become `status.resourceSummary` of its Cluster.
//!
//! Nobody is watched before a placement asks for room. Of each Node and Pod only what counts is kept. However much happens
//! in a member, its Cluster is written at most once in [`WRITE_EVERY`]. What a member cannot tell leaves what it told last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::{Cluster, Condition};
use lockgate_engine::cluster::{CAPACITY_KNOWN, Capacity, Models, READY};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::task::Task;
use super::write::Part;
use super::{ClusterChange, Shared};
use crate::cache::{Cached, Change};
use crate::clock::{later, seconds};
use crate::link::{Link, LinkError};
use crate::resource::Resource;
use crate::watch::{Following, follow_slim};

/// From one write of a member's capacity to the next.
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// How often a member that does not tell is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The Nodes and Pods of a member.
pub(super) struct Collector {
    nodes: Following,
    pods: Following,
    sums: Arc<Mutex<Capacity>>,
    /// Whether something changed since the last write.
    dirty: Arc<AtomicBool>,
    /// The grades of nodes by which the last ones were counted.
    models: Option<Models>,
    /// Whether the first complete sums were written, or could not be had.
    told: bool,
    write_due: Timestamp,
}

impl Collector {
    fn start(shared: &Arc<Shared>, cluster: &str, link: &Link, wake: &Arc<Notify>) -> Self {
        let (sums, dirty) = (
            Arc::new(Mutex::new(Capacity::default())),
            Arc::new(AtomicBool::new(false)),
        );
        let told = |note: fn(&mut Capacity, &Cached, Option<&Value>)| {
            let (sums, dirty, wake) = (sums.clone(), dirty.clone(), wake.clone());
            let (shared, cluster) = (Arc::downgrade(shared), cluster.to_owned());
            move |change: &Change| {
                let Some(cached) = change.new.as_ref().or(change.old.as_ref()) else {
                    return;
                };
                let body: Option<Value> = change.new.as_ref().and_then(|new| new.parse().ok());
                note(&mut sums.lock(), cached, body.as_ref());
                // Many changes wake the task once.
                if !dirty.swap(true, Ordering::AcqRel)
                    && let Some(shared) = shared.upgrade()
                {
                    shared.update(&cluster, |state| state.asked += 1);
                    wake.notify_one();
                }
            }
        };
        Self {
            nodes: follow_slim(
                link,
                &Resource::nodes(),
                slim_node,
                told(|sums, cached, node| sums.node(&cached.key.name, node)),
            ),
            pods: follow_slim(
                link,
                &Resource::pods(),
                slim_pod,
                told(|sums, cached, pod| sums.pod(&cached.key.namespace, &cached.key.name, pod)),
            ),
            sums: sums.clone(),
            dirty: dirty.clone(),
            models: None,
            told: false,
            write_due: Timestamp::MIN,
        }
    }

    fn is_complete(&self) -> bool {
        self.nodes.cache.synced() && self.pods.cache.synced()
    }

    /// Why the member does not tell.
    fn trouble(&self) -> Option<String> {
        let caches = [&self.nodes.cache, &self.pods.cache];
        caches.into_iter().find_map(|cache| {
            let trouble = cache.trouble()?;
            Some(format!("{} cannot be listed: {trouble}", cache.resource().plural))
        })
    }

    /// Up to which version the objects of a kind were seen.
    pub(super) fn seen(&self, kind: &str) -> Option<u64> {
        match kind {
            "Node" => Some(self.nodes.cache.seen_version()),
            "Pod" => Some(self.pods.cache.seen_version()),
            _ => None,
        }
    }
}

impl Task {
    /// There is another way to the member, or none: what is known of its Nodes and Pods is read anew.
    pub(super) fn forget_capacity(&mut self) {
        if self.capacity.take().is_some() {
            // What is followed ends outside the lock, which those whom it tells may be waiting for.
            let ended = self.shared.update(&self.name, |state| {
                state.measured = true;
                state.capacity.take()
            });
            drop(ended);
        }
    }

    /// Watches the member's Nodes and Pods if somebody asks for room, and writes what changed.
    pub(super) async fn measure(&mut self, cluster: &Cluster) -> Result<Option<Duration>, LinkError> {
        let wanted = self.shared.measuring.load(Ordering::Acquire) && !cluster.metadata.deleting();
        let ready = Condition::find(&cluster.status.conditions, READY).is_some_and(Condition::is_true);
        if !wanted {
            return Ok(None);
        }
        if self.capacity.is_none() {
            let Some(Ok(link)) = self.connection.as_ref().map(|connection| &connection.link) else {
                return Ok(None);
            };
            if !ready {
                // Nobody waits for one that does not answer.
                return Ok(None);
            }
            let collector = Collector::start(&self.shared, &self.name, link, &self.wake);
            let capacity = Arc::new(Mutex::new(collector));
            self.shared.update(&self.name, |state| {
                state.capacity = Some(capacity.clone());
                state.measured = false;
            });
            self.capacity = Some(capacity);
        }
        let Some(capacity) = self.capacity.clone() else {
            return Ok(None);
        };
        let (complete, trouble, told, due) = {
            let collector = capacity.lock();
            (
                collector.is_complete(),
                collector.trouble(),
                collector.told,
                collector.write_due,
            )
        };
        if !complete && trouble.is_none() && ready {
            return Ok(None);
        }
        let now = self.now();
        let models = Models::of(cluster);
        let dirty = {
            let collector = capacity.lock();
            collector.dirty.load(Ordering::Acquire) || collector.models != models
        };
        if told && !dirty && trouble.is_none() {
            return Ok(None);
        }
        if told && due > now {
            return Ok(Some(self.until(due)));
        }
        {
            let mut collector = capacity.lock();
            collector.dirty.store(false, Ordering::Release);
            collector.models = models;
            collector.write_due = later(now, WRITE_EVERY);
        }
        self.write_capacity(&capacity, complete, trouble, now).await?;
        capacity.lock().told = true;
        // The supervisor may not have come to it yet.
        if let Some(newest) = self.current()?.map(Arc::new) {
            self.shared.update(&self.name, |state| state.cluster = newest);
        }
        self.shared.tell(&ClusterChange::Capacity(self.name.clone()));
        if !told {
            // Only now: whoever sees that it is known must find it. Those who waited are told once more.
            self.shared.update(&self.name, |state| state.measured = true);
            self.shared.tell(&ClusterChange::Capacity(self.name.clone()));
        }
        Ok(Some(WRITE_EVERY))
    }

    async fn write_capacity(
        &self,
        capacity: &Mutex<Collector>,
        complete: bool,
        trouble: Option<String>,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        let (summary, nodes, complaint) = {
            let collector = capacity.lock();
            let sums = collector.sums.lock();
            let summary = sums.summary(collector.models.as_ref());
            (summary, sums.node_summary(), sums.complaint())
        };
        let complaint = match (&trouble, complaint) {
            (Some(trouble), _) => Some(("NotTold", trouble.clone())),
            (None, Some(complaint)) => Some(("Impossible", complaint)),
            (None, None) => None,
        };
        self.write(Part::Status, |cluster| {
            let status = &mut cluster.status;
            if complete {
                status.rest.insert("resourceSummary".to_owned(), summary.clone());
                status.rest.insert("nodeSummary".to_owned(), nodes.clone());
            }
            match &complaint {
                Some((reason, message)) => Condition {
                    kind: CAPACITY_KNOWN.to_owned(),
                    status: "False".to_owned(),
                    reason: (*reason).to_owned(),
                    message: message.clone(),
                    last_transition_time: seconds(now),
                    ..Condition::default()
                }
                .put(&mut status.conditions),
                None => status
                    .conditions
                    .retain(|condition| condition.kind != CAPACITY_KNOWN),
            }
        })
        .await
        .map(drop)
    }

    /// Returns when the first sums can be written, or it is known that they cannot be had.
    pub(super) async fn first_measured(&self) {
        let Some(capacity) = &self.capacity else {
            return std::future::pending().await;
        };
        // The caches are shared, so that nothing is locked while they are waited for.
        let (nodes, pods, told) = {
            let collector = capacity.lock();
            (
                collector.nodes.cache.clone(),
                collector.pods.cache.clone(),
                collector.told,
            )
        };
        if told {
            return std::future::pending().await;
        }
        loop {
            tokio::select! {
                () = async {
                    nodes.wait_synced().await;
                    pods.wait_synced().await;
                } => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if nodes.trouble().is_some() || pods.trouble().is_some() {
                return;
            }
        }
    }
}

/// What counts of a Node.
fn slim_node(body: &[u8]) -> Vec<u8> {
    slimmed(body, |node| {
        let ready: Vec<&Value> = node["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|condition| condition["type"] == "Ready")
            .collect();
        json!({
            "spec": {"unschedulable": node["spec"]["unschedulable"]},
            "status": {"conditions": ready, "allocatable": node["status"]["allocatable"]},
        })
    })
}

/// What counts of a Pod.
fn slim_pod(body: &[u8]) -> Vec<u8> {
    slimmed(body, |pod| {
        let spec = &pod["spec"];
        let containers = |field: &str| -> Vec<Value> {
            let all = spec[field].as_array().into_iter().flatten();
            all.map(|container| {
                json!({"resources": container["resources"], "restartPolicy": container["restartPolicy"]})
            })
            .collect()
        };
        json!({
            "spec": {
                "nodeName": spec["nodeName"], "overhead": spec["overhead"], "resources": spec["resources"],
                "containers": containers("containers"), "initContainers": containers("initContainers"),
            },
            "status": {"phase": pod["status"]["phase"]},
        })
    })
}

fn slimmed(body: &[u8], keep: impl Fn(&Value) -> Value) -> Vec<u8> {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    keep(&object).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_counts_is_kept() {
        let pod = json!({
            "metadata": {"name": "a", "annotations": {"long": "text"}},
            "spec": {
                "nodeName": "n", "resources": {"requests": {"memory": "1Gi"}},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
            },
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        });
        let kept: Value = serde_json::from_slice(&slim_pod(pod.to_string().as_bytes())).unwrap();
        let mut sums = Capacity::default();
        sums.pod("", "a", Some(&kept));
        let mut whole = Capacity::default();
        whole.pod("", "a", Some(&pod));
        let open = json!({"status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        for capacity in [&mut sums, &mut whole] {
            capacity.node("n", Some(&open));
        }
        let taken = json!({"cpu": "2", "memory": "1Gi", "pods": "1"});
        assert_eq!(sums.summary(None)["allocated"], taken);
        assert_eq!(sums.summary(None), whole.summary(None));
        assert!(kept["metadata"].is_null() && kept["spec"]["containers"][0]["image"].is_null());
        let node = json!({
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"allocatable": {"cpu": "4"}, "images": [1, 2], "conditions": [
                {"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        let kept: Value = serde_json::from_slice(&slim_node(node.to_string().as_bytes())).unwrap();
        sums.node("n", Some(&kept));
        assert_eq!(sums.summary(None)["allocatable"], json!({"cpu": "4"}));
        assert!(kept["status"]["images"].is_null());
    }
}
