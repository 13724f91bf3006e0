//! What changed about a cluster, as far as placements and overrides can name it: so that a label that nobody asks for wakes
//! nobody.

use std::collections::BTreeSet;

use lockgate_api::placement::ClusterAffinityTerm;
use lockgate_api::{Cluster, ClusterAffinity, OverridePolicy, Placement};

use super::fingerprint;
use crate::selector::affinity::Field;

/// What changed about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The keys of labels that came, went or have another value.
    pub labels: BTreeSet<String>,
    /// The fields that changed.
    fields: Vec<Field>,
    /// Whether anything else changed that placing looks at: taints, kinds, readiness, deletion. It may concern everybody.
    pub other: bool,
}

impl Difference {
    /// What differs between two states of a cluster.
    pub fn between(old: &Cluster, new: &Cluster) -> Self {
        let (before, after) = (&old.metadata.labels, &new.metadata.labels);
        let labels = before
            .iter()
            .chain(after)
            .filter(|(key, _)| before.get(*key) != after.get(*key))
            .map(|(key, _)| key.clone())
            .collect();
        let fields = [Field::Provider, Field::Region, Field::Zone]
            .into_iter()
            .filter(|field| field.of(old) != field.of(new))
            .collect();
        // What is left once labels and fields are the same.
        let mut same = old.clone();
        same.metadata.labels.clone_from(after);
        same.spec.provider.clone_from(&new.spec.provider);
        same.spec.region.clone_from(&new.spec.region);
        same.spec.zone.clone_from(&new.spec.zone);
        same.spec.zones.clone_from(&new.spec.zones);
        Self {
            labels,
            fields,
            other: fingerprint(&same) != fingerprint(new),
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What changed, by name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().map(|field| field.name());
        self.labels.iter().map(String::as_str).chain(fields)
    }

    /// Whether a placement names a label or a field that changed.
    pub fn is_mentioned_by(&self, placement: &Placement) -> bool {
        let term = |term: &ClusterAffinityTerm| {
            self.concerns(&term.affinity)
                || term
                    .overflow_affinities
                    .iter()
                    .any(|overflow| self.concerns(&overflow.affinity))
        };
        let weights = placement
            .replica_scheduling
            .iter()
            .filter_map(|scheduling| scheduling.weight_preference.as_ref())
            .flat_map(|weights| &weights.static_weight_list);
        placement
            .cluster_affinity
            .iter()
            .any(|affinity| self.concerns(affinity))
            || placement.cluster_affinities.iter().any(term)
            || weights
                .into_iter()
                .any(|rule| self.concerns(&rule.target_cluster))
            || placement.spread_constraints.iter().any(|constraint| {
                self.labels.contains(&constraint.spread_by_label)
                    || self.has_field(&constraint.spread_by_field)
            })
    }

    /// Whether an override names a label or a field that changed.
    pub fn is_mentioned_by_override(&self, policy: &OverridePolicy) -> bool {
        let rules = policy.spec.override_rules.iter();
        rules
            .filter_map(|rule| rule.target_cluster.as_ref())
            .chain(policy.spec.target_cluster.as_ref())
            .any(|affinity| self.concerns(affinity))
    }

    fn concerns(&self, affinity: &ClusterAffinity) -> bool {
        let labels = affinity.label_selector.iter().any(|selector| {
            selector.match_labels.keys().any(|key| self.labels.contains(key))
                || selector
                    .match_expressions
                    .iter()
                    .any(|expression| self.labels.contains(&expression.key))
        });
        let fields = affinity.field_selector.iter().any(|selector| {
            selector
                .match_expressions
                .iter()
                .any(|expression| self.has_field(&expression.key))
        });
        labels || fields
    }

    fn has_field(&self, name: &str) -> bool {
        Field::parse(name).is_some_and(|field| self.fields.contains(&field))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(value: Value) -> Cluster {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_what_is_named_counts() {
        let old = json!({ "metadata": { "labels": { "env": "prod", "tier": "gold" } }, "spec": { "region": "eu" } });
        let relabelled =
            json!({ "metadata": { "labels": { "env": "test", "new": "x" } }, "spec": { "region": "eu" } });
        let moved = json!({ "metadata": { "labels": { "env": "prod", "tier": "gold" } }, "spec": { "region": "us" } });
        let by_label = |key: &str| json!({ "labelSelector": { "matchLabels": { key: "prod" } } });
        let exists = |key: &str| json!({ "labelSelector": { "matchExpressions": [{ "key": key, "operator": "Exists" }] } });
        let by_field = |key: &str| json!({ "fieldSelector": { "matchExpressions": [{ "key": key, "operator": "In", "values": ["eu"] }] } });
        let group = |affinity: &Value| {
            let mut term = affinity.clone();
            term["affinityName"] = json!("g");
            json!({ "clusterAffinities": [term] })
        };
        let overflow = |affinity: &Value| {
            let mut term = affinity.clone();
            term["affinityName"] = json!("o");
            json!({ "clusterAffinities": [{ "affinityName": "g", "overflowAffinities": [term] }] })
        };
        let weighted = |affinity: &Value| json!({ "replicaScheduling": { "weightPreference": { "staticWeightList": [{ "targetCluster": affinity, "weight": 1 }] } } });
        let table = [
            (&relabelled, json!({}), false),
            (&relabelled, json!({ "clusterAffinity": by_label("env") }), true),
            (&relabelled, json!({ "clusterAffinity": exists("tier") }), true),
            (&relabelled, json!({ "clusterAffinity": exists("new") }), true),
            (&relabelled, json!({ "clusterAffinity": exists("other") }), false),
            (
                &relabelled,
                json!({ "clusterAffinity": by_field("region") }),
                false,
            ),
            (&relabelled, group(&by_label("env")), true),
            (&relabelled, overflow(&by_label("env")), true),
            (&relabelled, weighted(&by_label("env")), true),
            (&relabelled, weighted(&by_label("else")), false),
            (&moved, json!({ "clusterAffinity": by_label("env") }), false),
            (&moved, json!({ "clusterAffinity": by_field("region") }), true),
            (&moved, json!({ "clusterAffinity": by_field("zone") }), false),
            (
                &moved,
                json!({ "spreadConstraints": [{ "spreadByField": "region" }] }),
                true,
            ),
            (
                &moved,
                json!({ "spreadConstraints": [{ "spreadByField": "cluster" }] }),
                false,
            ),
        ];
        for (new, placement, expected) in table {
            let difference = Difference::between(&cluster(old.clone()), &cluster(new.clone()));
            assert!(!difference.other, "{new}");
            let placement: Placement = serde_json::from_value(placement).unwrap();
            assert_eq!(
                difference.is_mentioned_by(&placement),
                expected,
                "{new} {placement:?}"
            );
        }
        assert!(Difference::between(&cluster(old.clone()), &cluster(old.clone())).is_empty());
        let mut tainted = cluster(old.clone());
        tainted.spec.taints = vec![Default::default()];
        assert!(Difference::between(&cluster(old), &tainted).other);
    }
}
