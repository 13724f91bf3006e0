//! What the hub did not take of a rollout, as its record keeps it.
//!
//! A cluster whose Work the hub refuses has failed without having been told anything, and no Work says so. Were it known to a process
//! alone, a rollout that stopped for it would go on with the next clusters after a restart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RolloutRecord;
use crate::gate::run::Member;

/// How many clusters are kept: all of them must fit into one annotation.
const CLUSTERS: usize = 512;
/// The longest reason of one of them, in bytes.
pub const WORDS: usize = 1024;
/// How long the reasons of all of them may be together. Beyond that it is kept that they were refused, and not why.
const TOGETHER: usize = 16 * 1024;

/// What the hub did not take for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Refused {
    /// Which content.
    pub digest: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl RolloutRecord {
    /// Takes in what the hub did not take lately, and forgets, there and here, what counts no more: the cluster was told that
    /// content after all, is to get another one, or none. What is known stays as it was told first, so that being refused again
    /// changes nothing.
    pub fn take_refusals(&mut self, lately: &mut BTreeMap<String, Refused>, members: &[Member<'_>]) {
        let counts = |cluster: &String, refused: &mut Refused| {
            let at = members.binary_search_by(|member| member.cluster.cmp(cluster));
            let member = at.ok().and_then(|at| members.get(at));
            member.is_some_and(|member| member.waits_for(&refused.digest))
        };
        self.refused.retain(counts);
        lately.retain(counts);
        for (cluster, refused) in &*lately {
            let known = self.refused.get(cluster);
            if known.is_some_and(|known| known.digest == refused.digest)
                || known.is_none() && self.refused.len() >= CLUSTERS
            {
                continue;
            }
            let told: usize = self.refused.values().map(|refused| refused.why.len()).sum();
            let limit = WORDS.min(TOGETHER.saturating_sub(told));
            let why = &refused.why[..refused.why.floor_char_boundary(limit)];
            let kept = Refused {
                digest: refused.digest.clone(),
                why: why.to_owned(),
            };
            self.refused.insert(cluster.clone(), kept);
        }
    }
}

#[cfg(test)]
mod tests;
