//! The ManagedCluster of a Cluster. Cluster leads: its labels are copied, with a record of the keys, and how it is follows from
//! its readiness. OCM's own labels, taints of people, claims of others and whether the hub accepts it are the
//! ManagedCluster's own.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lockgate_api::ocm::cluster::{
    ACCEPTED, AVAILABLE, ClientConfig, ClusterClaim, JOINED, ManagedClusterStatus, Taint, Version,
};
use lockgate_api::ocm::{
    CLUSTER_NAME, CLUSTER_SET, COPIED_LABELS, DEFAULT_SET, ManagedCluster, TAINT_UNAVAILABLE,
    TAINT_UNREACHABLE, is_own_key,
};
use lockgate_api::{Cluster, Condition};
use serde_json::Value;

use crate::cluster::READY;

/// Claims that follow from the Cluster.
const CLAIMS: [&str; 4] = [
    "id.k8s.io",
    "kubeversion.open-cluster-management.io",
    "platform.open-cluster-management.io",
    "region.open-cluster-management.io",
];

/// The ManagedCluster as it should be; `None` while nothing is known of the cluster yet.
pub fn mirror(cluster: &Cluster, present: Option<&ManagedCluster>, now: Timestamp) -> Option<ManagedCluster> {
    let ready = Condition::find(&cluster.status.conditions, READY)?;
    let available = available(ready);
    let mut next = present.cloned().unwrap_or_default();
    // Of one that was mirrored before that stays as somebody left it, also when a backup or a careless tool lost the status.
    let joins = !next.joined() && next.metadata.annotation(COPIED_LABELS).is_none();
    next.metadata.name.clone_from(&cluster.metadata.name);
    copy_labels(cluster, &mut next);
    // Whoever joins a cluster accepts it; afterwards that is up to the ManagedCluster.
    next.spec.hub_accepts_client |= joins;
    if cluster.spec.api_endpoint.starts_with("https://") {
        let url = &cluster.spec.api_endpoint;
        let configs = &mut next.spec.managed_cluster_client_configs;
        if configs.iter().all(|config| config.url != *url) {
            *configs = vec![ClientConfig {
                url: url.clone(),
                ca_bundle: String::new(),
            }];
        }
    }
    taint(&mut next.spec.taints, available, now);
    tell(
        cluster,
        available,
        ready,
        next.spec.hub_accepts_client,
        &mut next.status,
        now,
    );
    Some(next)
}

/// The ManagedCluster of no Cluster: it is none of the fleet, and says how to become one.
pub fn unjoined(present: &ManagedCluster, now: Timestamp) -> ManagedCluster {
    let mut next = present.clone();
    stamp(&mut next.spec.taints, now);
    let name = &present.metadata.name;
    let message = format!(
        "there is no Cluster {name:?}: let it join with `lockgate join {name} --member-kubeconfig FILE`; until then no placement selects it"
    );
    condition(JOINED, "False", "NotJoined", message, now).put(&mut next.status.conditions);
    if let Some(available) = Condition::find(&present.status.conditions, AVAILABLE)
        && available.status != "Unknown"
    {
        let message = "nobody asks the cluster how it is: it has not joined".to_owned();
        condition(AVAILABLE, "Unknown", "NotJoined", message, now).put(&mut next.status.conditions);
    }
    next
}

fn copy_labels(cluster: &Cluster, next: &mut ManagedCluster) {
    let wanted: BTreeSet<&str> = cluster
        .metadata
        .labels
        .keys()
        .map(String::as_str)
        .filter(|key| !is_own_key(key))
        .collect();
    let copied = next
        .metadata
        .annotation(COPIED_LABELS)
        .unwrap_or_default()
        .to_owned();
    for key in copied.split(',').filter(|key| !wanted.contains(key)) {
        next.metadata.labels.remove(key);
    }
    for key in &wanted {
        if let Some(value) = cluster.metadata.labels.get(*key) {
            next.metadata.labels.insert((*key).to_owned(), value.clone());
        }
    }
    let record: Vec<&str> = wanted.into_iter().collect();
    next.metadata
        .annotations
        .insert(COPIED_LABELS.to_owned(), record.join(","));
    next.metadata
        .labels
        .insert(CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    next.metadata
        .labels
        .entry(CLUSTER_SET.to_owned())
        .or_insert_with(|| DEFAULT_SET.to_owned());
}

/// `True`, `False`, or `Unknown` where nobody answers.
fn available(ready: &Condition) -> &'static str {
    match (ready.status.as_str(), ready.reason.as_str()) {
        ("True", _) => "True",
        ("False", "ClusterNotReady") => "False",
        _ => "Unknown",
    }
}

/// The taints that follow from how a cluster is. Those of people stay, and get the time from which they count.
fn taint(taints: &mut Vec<Taint>, available: &str, now: Timestamp) {
    let wanted = match available {
        "True" => None,
        "False" => Some(TAINT_UNAVAILABLE),
        _ => Some(TAINT_UNREACHABLE),
    };
    let ours = |taint: &Taint| {
        taint.effect == "NoSelect" && (taint.key == TAINT_UNAVAILABLE || taint.key == TAINT_UNREACHABLE)
    };
    taints.retain(|taint| !ours(taint) || wanted == Some(taint.key.as_str()));
    if let Some(key) = wanted
        && !taints.iter().any(ours)
    {
        taints.push(Taint {
            key: key.to_owned(),
            effect: "NoSelect".to_owned(),
            ..Taint::default()
        });
    }
    stamp(taints, now);
}

fn stamp(taints: &mut [Taint], now: Timestamp) {
    for taint in taints.iter_mut().filter(|taint| taint.time_added.is_none()) {
        taint.time_added = Some(seconds(now));
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn condition(kind: &str, status: &str, reason: &str, message: String, now: Timestamp) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: seconds(now),
        ..Condition::default()
    }
}

fn tell(
    cluster: &Cluster,
    available: &str,
    ready: &Condition,
    accepted: bool,
    status: &mut ManagedClusterStatus,
    now: Timestamp,
) {
    let said = match accepted {
        true => ("True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
        false => ("False", "HubClusterAdminDenied", "Denied by hub cluster admin"),
    };
    condition(ACCEPTED, said.0, said.1, said.2.to_owned(), now).put(&mut status.conditions);
    let joined = "Managed cluster joined".to_owned();
    condition(JOINED, "True", "ManagedClusterJoined", joined, now).put(&mut status.conditions);
    let (reason, message) = match available {
        "True" => (
            "ManagedClusterAvailable",
            "Managed cluster is available".to_owned(),
        ),
        "False" => ("ManagedClusterKubeAPIServerUnavailable", ready.message.clone()),
        _ => ("ManagedClusterUnreachable", ready.message.clone()),
    };
    condition(AVAILABLE, available, reason, message, now).put(&mut status.conditions);
    if !cluster.status.kubernetes_version.is_empty() {
        status.version = Some(Version {
            kubernetes: cluster.status.kubernetes_version.clone(),
        });
    }
    if let Some(Value::Object(amounts)) = cluster
        .status
        .rest
        .get("resourceSummary")
        .and_then(|summary| summary.get("allocatable"))
    {
        let amounts = amounts
            .iter()
            .map(|(name, amount)| (name.clone(), amount.clone()));
        status.allocatable = amounts.collect();
        status.capacity.clone_from(&status.allocatable);
    }
    claims(cluster, &mut status.cluster_claims);
}

/// What follows from the Cluster, before what others have claimed.
fn claims(cluster: &Cluster, claims: &mut Vec<ClusterClaim>) {
    let values = [
        &cluster.spec.id,
        &cluster.status.kubernetes_version,
        &cluster.spec.provider,
        &cluster.spec.region,
    ];
    let ours = CLAIMS.iter().zip(values).filter(|(_, value)| !value.is_empty());
    let mut next: Vec<ClusterClaim> = ours
        .map(|(name, value)| ClusterClaim {
            name: (*name).to_owned(),
            value: value.clone(),
        })
        .collect();
    next.extend(
        claims
            .iter()
            .filter(|claim| !CLAIMS.contains(&claim.name.as_str()))
            .cloned(),
    );
    *claims = next;
}
