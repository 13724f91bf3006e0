//! What the member told becomes the Cluster's status and taints.

use jiff::Timestamp;
use lockgate_api::Condition;
use lockgate_api::cluster::ClusterStatus;
use lockgate_engine::cluster::{
    Probe, READY, Served, collect, health, policy_taints, pull_not_served, taints, was_ever_ready,
};

use super::task::{Findings, Task};
use super::write::Part;
use crate::discovery::Discovery;
use crate::link::LinkError;
use crate::resource::Resource;

impl Task {
    pub(super) async fn write_status(&mut self, findings: &Findings) -> Result<(), LinkError> {
        let now = self.now();
        let thresholds = self.shared.options.thresholds;
        let (before, kinds) = (self.streak, self.kinds.known.clone());
        let mut streak = before;
        self.write(Part::Status, |cluster| {
            let ever_ready = was_ever_ready(cluster);
            let status = &mut cluster.status;
            if findings.probe == Probe::Healthy {
                if let Some(version) = &findings.version {
                    status.kubernetes_version.clone_from(version);
                }
                if let Some(nodes) = &findings.nodes {
                    status.rest.insert("nodeSummary".to_owned(), nodes.clone());
                }
                if kinds.is_some() || status.api_enablements.is_empty() {
                    put_kinds(status, kinds.as_deref(), now);
                }
            }
            let current = Condition::find(&status.conditions, READY);
            let (ready, next) = health(&findings.probe, before, current, ever_ready, now, thresholds);
            streak = Some(next);
            ready.put(&mut status.conditions);
        })
        .await?;
        self.streak = streak.or(self.streak);
        Ok(())
    }

    pub(super) async fn write_pull(&mut self) -> Result<(), LinkError> {
        let now = self.now();
        self.write(Part::Status, |cluster| {
            let conditions = &mut cluster.status.conditions;
            pull_not_served(Condition::find(conditions, READY), now).put(conditions);
        })
        .await?;
        self.write_taints().await
    }

    /// The taints follow from the stored condition, so that a pass that broke off between the two is made good.
    pub(super) async fn write_taints(&mut self) -> Result<(), LinkError> {
        // Also where no policy acts, a taint that makes workloads leave gets its time.
        let policies = (self.shared.options.taint_policies)().unwrap_or_default();
        let now = self.now();
        let written = self
            .write(Part::Main, |cluster| {
                let ready = Condition::find(&cluster.status.conditions, READY);
                if let Some(next) = ready.and_then(|ready| taints(&cluster.spec.taints, ready)) {
                    cluster.spec.taints = next;
                }
                if let Some(next) = policy_taints(cluster, &policies, now) {
                    cluster.spec.taints = next;
                }
            })
            .await;
        match written {
            Ok(true) => {
                self.success(
                    "TaintClusterSucceed",
                    "Taints were brought in line with the conditions.".to_owned(),
                );
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => {
                self.warn("TaintClusterFailed", format!("Failed to write taints: {error}"));
                Err(error)
            }
        }
    }
}

fn put_kinds(status: &mut ClusterStatus, kinds: Option<&Discovery>, now: Timestamp) {
    let resources: Vec<(String, &Resource)> = kinds
        .into_iter()
        .flat_map(|kinds| kinds.all())
        .map(|resource| (resource.api_version(), resource))
        .collect();
    let served = resources.iter().map(|(api_version, resource)| Served {
        api_version,
        name: &resource.plural,
        kind: &resource.kind,
    });
    let failed: Vec<String> = kinds
        .into_iter()
        .flat_map(|kinds| kinds.unknown())
        .map(|unknown| match unknown.version.as_str() {
            "" => unknown.group.clone(),
            version => format!("{}/{version}", unknown.group),
        })
        .collect();
    let collected = collect(served, &failed, &status.api_enablements, now);
    status.api_enablements = collected.enablements;
    collected.condition.put(&mut status.conditions);
}
