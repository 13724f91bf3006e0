//! What placing looks at in a cluster, as one value to compare.

use lockgate_api::{Cluster, Condition};
use machinery_value::hash::canonical_hash;
use serde_json::json;

use super::{COMPLETE_ENABLEMENTS, READY};
use crate::selector::affinity::Field;

/// Equal for two states of a cluster iff every decision about placing on it is the same for both. Times, messages and counts
/// are not in it: a member that only breathes has the same fingerprint.
pub fn fingerprint(cluster: &Cluster) -> String {
    let status = |kind: &str| {
        Condition::find(&cluster.status.conditions, kind).map(|condition| condition.status.as_str())
    };
    let taints: Vec<_> = cluster
        .spec
        .taints
        .iter()
        .map(|taint| json!([taint.key, taint.value, taint.effect, taint.time_added]))
        .collect();
    canonical_hash(&json!({
        "uid": cluster.metadata.uid,
        "deleting": cluster.metadata.deleting(),
        "labels": cluster.metadata.labels,
        "syncMode": cluster.spec.sync_mode,
        "provider": cluster.spec.provider,
        "region": cluster.spec.region,
        "zones": Field::Zone.of(cluster),
        "taints": taints,
        "enablements": cluster.status.api_enablements,
        "ready": status(READY),
        "complete": status(COMPLETE_ENABLEMENTS),
    }))
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_api::cluster::Taint;

    #[test]
    fn only_what_placing_looks_at_counts() {
        type Change = fn(&mut Cluster);
        let ready = |status: &str| Condition {
            kind: READY.into(),
            status: status.into(),
            ..Condition::default()
        };
        let mut base = Cluster::default();
        base.spec.zone = "z0".into();
        base.status.conditions.push(ready("True"));
        let cases: [(&str, bool, Change); 8] = [
            ("label", true, |c| {
                c.metadata.labels.insert("tier".into(), "gold".into());
            }),
            ("zone", true, |c| c.spec.zones.push("z1".into())),
            ("the older form of zones", false, |c| {
                c.spec.zones.push("z0".into());
            }),
            ("taint", true, |c| c.spec.taints.push(Taint::default())),
            ("ready", true, |c| c.status.conditions[0].status = "False".into()),
            ("deleting", true, |c| {
                c.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
            }),
            ("message", false, |c| c.status.conditions[0].message = "x".into()),
            ("nodes", false, |c| {
                c.status.rest.insert("nodeSummary".into(), json!({"totalNum": 3}));
            }),
        ];
        for (name, counts, change) in cases {
            let mut changed = base.clone();
            change(&mut changed);
            assert_eq!(fingerprint(&changed) != fingerprint(&base), counts, "{name}");
        }
    }
}
