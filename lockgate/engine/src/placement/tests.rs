//! Placements: tables for what is decided, and properties of what is published.

mod decisions;
mod filters;
mod mirrors;
mod publishing;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lockgate_api::ocm::{ManagedCluster, Placement};
use serde_json::{Value, json};

use super::prioritize::{Context, Scores};
use super::{Candidate, Choice, Decided, Input, Kept, Misconfigured, Outcome, Rules, decide};

/// The time of these tests.
const NOW: &str = "2026-01-01T00:10:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A joined cluster, changed by `change`.
fn cluster(name: &str, change: Value) -> Candidate {
    let mut object = json!({
        "metadata": {"name": name},
        "spec": {"hubAcceptsClient": true},
        "status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"}]},
    });
    machinery_value::merge_patch::apply(&mut object, &change);
    let cluster: ManagedCluster = serde_json::from_value(object).unwrap();
    Candidate::new(cluster)
}

/// Clusters `c1` to `cN`.
fn fleet(count: usize) -> Vec<Candidate> {
    (1..=count)
        .map(|number| cluster(&format!("c{number}"), json!({})))
        .collect()
}

fn placement(spec: Value) -> Placement {
    serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec})).unwrap()
}

/// What add-ons say: cluster, resource, score, value.
struct Said(Vec<(&'static str, &'static str, &'static str, i64)>);

/// The AddOnPlacementScore of every cluster that ran out.
const ENDED: &str = "ended";

impl Scores for Said {
    fn all(&self, cluster: &str, resource: &str) -> Vec<(String, i64)> {
        let of = self
            .0
            .iter()
            .filter(|said| said.0 == cluster && said.1 == resource);
        of.map(|said| (said.2.to_owned(), said.3)).collect()
    }

    fn ended(&self, _: &str, resource: &str) -> Option<Timestamp> {
        (resource == ENDED).then(now)
    }
}

/// A fleet and what is known about it.
struct World {
    clusters: Vec<Candidate>,
    choice: Choice,
    decided: Vec<&'static str>,
    used: BTreeMap<&'static str, usize>,
    said: Said,
    now: Timestamp,
}

impl World {
    fn of(clusters: Vec<Candidate>) -> Self {
        Self {
            clusters,
            choice: Choice::Sets {
                sets: ["global".to_owned()].into(),
                unknown: Default::default(),
            },
            decided: Vec::new(),
            used: BTreeMap::new(),
            said: Said(Vec::new()),
            now: now(),
        }
    }

    fn with<T>(
        &self,
        spec: Value,
        look: impl FnOnce(&Input<'_>, &Outcome<'_>) -> T,
    ) -> Result<T, Misconfigured> {
        let rules = Rules::read(&placement(spec))?;
        let used = |cluster: &str| self.used.get(cluster).copied().unwrap_or(0);
        let input = Input {
            rules: &rules,
            choice: &self.choice,
            candidates: self.clusters.iter().collect(),
            is_decided: &|cluster| self.decided.contains(&cluster),
            context: Context {
                used: &used,
                most_used: self.used.values().copied().max().unwrap_or(0),
                scores: &self.said,
            },
            now: self.now,
        };
        let outcome = decide(&input, |place| rules.matches(input.candidates[place], &self.said));
        Ok(look(&input, &outcome))
    }

    /// What is decided.
    fn decided<T>(&self, spec: Value, look: impl FnOnce(&Decided<'_>) -> T) -> T {
        self.with(spec, |_, outcome| match outcome {
            Outcome::Decided(decided) => look(decided),
            Outcome::Kept(kept) => panic!("{kept:?}"),
        })
        .unwrap()
    }

    /// The clusters that are selected.
    fn selects(&self, spec: Value) -> Vec<String> {
        self.decided(spec, |decided| {
            let mut names: Vec<String> = decided
                .groups
                .clusters()
                .map(|(name, _)| name.to_owned())
                .collect();
            names.sort();
            names
        })
    }

    /// Why nothing is decided.
    fn keeps(&self, spec: Value) -> String {
        let kept = self.with(spec, |_, outcome| match outcome {
            Outcome::Decided(decided) => panic!("{decided:?}"),
            Outcome::Kept(Kept::Misconfigured(error)) => error.to_string(),
            Outcome::Kept(Kept::SetsUnknown(unknown)) => unknown.to_string(),
        });
        kept.unwrap_or_else(|error| error.to_string())
    }
}
