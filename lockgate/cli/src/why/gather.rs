//! Reads what a placement looks at, and decides as the controllers do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lockgate_api::ocm::placement::PlacementStatus;
use lockgate_api::ocm::{
    AddOnPlacementScore, DISABLED, GROUP_INDEX, GROUP_NAME, ManagedCluster, ManagedClusterSet,
    ManagedClusterSetBinding, PLACEMENT, Placement, PlacementDecision,
};
use lockgate_engine::placement::explain::{Explained, explain, kept};
use lockgate_engine::placement::prioritize::{Context, Scores, end};
use lockgate_engine::placement::sets::choose;
use lockgate_engine::placement::{
    Candidate, Choice, Input, Kept, Membership, Outcome, Published, Rules, decide, tell,
};

use crate::connect::Connection;
use crate::exit::Failure;

const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const SETS: &str = "/apis/cluster.open-cluster-management.io/v1beta2";
const PLACEMENTS: &str = "/apis/cluster.open-cluster-management.io/v1beta1";
const SCORES: &str = "/apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores";

/// What a placement looks at.
pub(super) struct Objects {
    placement: Placement,
    clusters: Vec<Candidate>,
    sets: BTreeMap<String, Membership>,
    bound: BTreeSet<String>,
    decisions: Vec<PlacementDecision>,
    scores: Vec<AddOnPlacementScore>,
}

/// What is to be said of a placement.
pub(super) struct Answer {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The sets that it chooses from.
    pub(super) sets: Vec<String>,
    /// What it should say of itself.
    pub(super) status: PlacementStatus,
    /// What is worth a word.
    pub(super) notes: Vec<String>,
    /// Every cluster.
    pub(super) clusters: Vec<Explained>,
}

/// Reads what a placement looks at.
pub(super) async fn gather(hub: &Connection, namespace: &str, name: &str) -> Result<Objects, Failure> {
    let path = format!("{PLACEMENTS}/namespaces/{namespace}/placements/{name}");
    let Some(placement) = hub.get::<Placement>(&path).await? else {
        if hub
            .get::<serde_json::Value>(&format!("{PLACEMENTS}/placements?limit=1"))
            .await?
            .is_none()
        {
            return Err(Failure::Other(crate::crds::missing(&hub.url)));
        }
        return Err(Failure::Other(format!(
            "there is no Placement {name:?} in the namespace {namespace}; name another with -n"
        )));
    };
    let (mut clusters, mut sets, mut bound) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    let (mut decisions, mut scores) = (Vec::new(), Vec::new());
    hub.list(CLUSTERS, "", |cluster: ManagedCluster| {
        clusters.push(Candidate::new(cluster))
    })
    .await?;
    hub.list(
        &format!("{SETS}/managedclustersets"),
        "",
        |set: ManagedClusterSet| {
            sets.insert(set.metadata.name.clone(), Membership::of(&set));
        },
    )
    .await?;
    let bindings = format!("{SETS}/namespaces/{namespace}/managedclustersetbindings");
    hub.list(&bindings, "", |binding: ManagedClusterSetBinding| {
        bound.insert(binding.spec.cluster_set);
    })
    .await?;
    hub.list(
        &format!("{PLACEMENTS}/placementdecisions"),
        "",
        |decision: PlacementDecision| {
            decisions.push(decision);
        },
    )
    .await?;
    hub.list(SCORES, "", |score: AddOnPlacementScore| scores.push(score))
        .await?;
    clusters.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(Objects {
        placement,
        clusters,
        sets,
        bound,
        decisions,
        scores,
    })
}

/// The scores that count at a time.
struct ScoresAt<'a>(&'a [AddOnPlacementScore], Timestamp);

impl ScoresAt<'_> {
    fn find(&self, cluster: &str, resource: &str) -> Option<&AddOnPlacementScore> {
        let mut all = self.0.iter();
        all.find(|score| score.metadata.namespace == cluster && score.metadata.name == resource)
    }
}

impl Scores for ScoresAt<'_> {
    fn all(&self, cluster: &str, resource: &str) -> Vec<(String, i64)> {
        let score = self.find(cluster, resource);
        let valid = score.filter(|score| end(score).is_none_or(|end| self.1 < end));
        let scores = valid.into_iter().flat_map(|score| &score.status.scores);
        scores
            .map(|score| (score.name.clone(), i64::from(score.value)))
            .collect()
    }

    fn ended(&self, cluster: &str, resource: &str) -> Option<Timestamp> {
        end(self.find(cluster, resource)?).filter(|end| *end <= self.1)
    }
}

impl Objects {
    /// Decides, and explains.
    pub(super) fn answer(&self, now: Timestamp) -> Answer {
        let metadata = &self.placement.metadata;
        let published: Vec<Published<'_>> = self
            .decisions
            .iter()
            .filter(|decision| self.is_own(decision))
            .map(published)
            .collect();
        let decided: BTreeSet<&str> = published
            .iter()
            .flat_map(|decision| decision.clusters.iter().copied())
            .collect();
        let mut others: BTreeMap<&str, usize> = BTreeMap::new();
        for decision in self.decisions.iter().filter(|decision| !self.is_own(decision)) {
            for cluster in decision.clusters() {
                *others.entry(cluster).or_insert(0) += 1;
            }
        }
        let choice = choose(
            self.bound.iter().map(String::as_str),
            &self.placement.spec.cluster_sets,
            |set| self.sets.get(set),
            self.clusters
                .iter()
                .filter(|cluster| decided.contains(cluster.name())),
        );
        let scores = ScoresAt(&self.scores, now);
        let (clusters, outcome_status) = match Rules::read(&self.placement) {
            Err(error) => {
                let outcome = Outcome::Kept(Kept::Misconfigured(error));
                (
                    kept(&self.clusters, &published),
                    self.status(&choice, &outcome, now),
                )
            }
            Ok(rules) => {
                let input = Input {
                    rules: &rules,
                    choice: &choice,
                    candidates: self.candidates(&choice, &decided),
                    is_decided: &|cluster| decided.contains(cluster),
                    context: Context {
                        used: &|cluster| others.get(cluster).copied().unwrap_or(0),
                        most_used: others.values().copied().max().unwrap_or(0),
                        scores: &scores,
                    },
                    now,
                };
                let outcome = decide(&input, |place| rules.matches(input.candidates[place], &scores));
                let clusters = explain(&input, &outcome, &self.clusters, &published);
                let status = self.status(&choice, &outcome, now);
                (clusters, status)
            }
        };
        Answer {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            sets: match choice {
                Choice::Sets { sets, .. } => sets.into_iter().collect(),
                _ => Vec::new(),
            },
            notes: self.notes(),
            status: outcome_status,
            clusters,
        }
    }

    fn candidates(&self, choice: &Choice, decided: &BTreeSet<&str>) -> Vec<&Candidate> {
        let Choice::Sets { sets, .. } = choice else {
            return Vec::new();
        };
        let belongs = |cluster: &&Candidate| {
            let mut memberships = sets.iter().filter_map(|set| self.sets.get(set));
            memberships.any(|membership| membership.includes(cluster))
                || choice.keeps_decided() && decided.contains(cluster.name())
        };
        self.clusters.iter().filter(belongs).collect()
    }

    fn status(&self, choice: &Choice, outcome: &Outcome<'_>, now: Timestamp) -> PlacementStatus {
        let own = self.decisions.iter().filter(|decision| self.is_own(decision));
        tell::status(&self.placement, own, choice, outcome, now)
    }

    fn is_own(&self, decision: &PlacementDecision) -> bool {
        let metadata = &self.placement.metadata;
        decision.metadata.namespace == metadata.namespace
            && decision.metadata.label(PLACEMENT) == Some(&metadata.name)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let metadata = &self.placement.metadata;
        if metadata.annotation(DISABLED) == Some("true") {
            notes.push(format!(
                "the annotation {DISABLED}=true: nobody decides, and this is what would be decided"
            ));
        }
        if metadata.deleting() {
            notes.push("it is being deleted".to_owned());
        }
        if self.placement.spec.rest.contains_key("spreadPolicy") {
            notes.push("spreadPolicy is accepted, and nothing follows from it".to_owned());
        }
        notes
    }
}

fn published(decision: &PlacementDecision) -> Published<'_> {
    let metadata = &decision.metadata;
    let index = metadata.label(GROUP_INDEX).and_then(|index| index.parse().ok());
    Published {
        name: &metadata.name,
        group: index.zip(metadata.label(GROUP_NAME).map(str::to_owned)),
        clusters: decision.clusters().collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::print::Paint;
    use crate::why::show;

    fn now() -> Timestamp {
        "2026-01-01T00:10:00Z".parse().unwrap()
    }

    fn cluster(name: &str, labels: Value, taints: Value) -> Candidate {
        let cluster = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"hubAcceptsClient": true, "taints": taints},
            "status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"}]},
        });
        Candidate::new(serde_json::from_value(cluster).unwrap())
    }

    fn objects(spec: Value) -> Objects {
        let gold = || json!({"tier": "gold", "all": "yes"});
        let set = json!({"metadata": {"name": "global"}, "spec": {"clusterSelector": {
            "selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"all": "yes"}}}}});
        let set: ManagedClusterSet = serde_json::from_value(set).unwrap();
        let decision = json!({
            "metadata": {"name": "web-decision-1", "namespace": "shop", "labels": {
                PLACEMENT: "web", GROUP_INDEX: "0", GROUP_NAME: "canary"}},
            "status": {"decisions": [{"clusterName": "member2", "reason": ""}]},
        });
        let placement = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec,
            "status": {"numberOfSelectedClusters": 1}});
        Objects {
            placement: serde_json::from_value(placement).unwrap(),
            clusters: vec![
                cluster("member1", gold(), json!([])),
                cluster("member2", gold(), json!([])),
                cluster("member3", json!({"all": "yes"}), json!([])),
                cluster("member4", gold(), json!([{"key": "gpu", "effect": "NoSelect"}])),
                cluster("member5", json!({}), json!([])),
            ],
            sets: [("global".to_owned(), Membership::of(&set))].into(),
            bound: ["global".to_owned()].into(),
            decisions: vec![serde_json::from_value(decision).unwrap()],
            scores: Vec::new(),
        }
    }

    fn gold(rest: Value) -> Value {
        let mut spec = json!({
            "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}],
            "numberOfClusters": 1,
        });
        machinery_value::merge_patch::apply(&mut spec, &rest);
        spec
    }

    #[test]
    fn every_cluster_is_explained() {
        let answer = objects(gold(json!({"spreadPolicy": {}}))).answer(now());
        assert_eq!(
            show::table(&answer, false, true, Paint::OFF),
            "placement/web -n shop   1 selected, from the sets global\n\
             AllDecisionsScheduled: All cluster decisions scheduled\n\
             spreadPolicy is accepted, and nothing follows from it\n\
             \n\
             CLUSTER   SELECTED   GROUP   SCORE   WHY\n\
             member1   – no               100     others are preferred: 1 were asked for, and the last of them has the score 200\n\
             member2   ✔ yes      0       200\n\
             member3   – no                       its labels do not match tier=gold\n\
             member4   – no                       the taint gpu:NoSelect is not tolerated\n\
             member5   – no                       it is in none of the sets global\n"
        );
        let wide = show::table(&answer, true, false, Paint::OFF);
        assert!(wide.contains("Balance 100x1, Steady 100x1"), "{wide}");
        let value = show::value(&answer);
        assert_eq!(value["clusters"][1]["group"], json!({"index": 0, "name": ""}));
        assert_eq!(value["clusters"][1]["score"], 200);
        assert_eq!(value["clusters"][3]["selected"], false);
        assert_eq!(value["clusterSets"], json!(["global"]));
    }

    #[test]
    fn what_is_kept_is_said() {
        let bad = gold(json!({"prioritizerPolicy": {"mode": "Sometimes"}}));
        let answer = objects(bad).answer(now());
        let text = show::table(&answer, false, true, Paint::OFF);
        assert!(
            text.contains("Misconfigured: Prioritizer:the mode \"Sometimes\""),
            "{text}"
        );
        assert!(
            text.contains(
                "member2   ✔ yes      0 (canary)           it was decided before, and that is kept"
            ),
            "{text}"
        );
        assert!(text.contains("member1   – no"), "{text}");
        let mut gone = objects(gold(json!({})));
        gone.sets.clear();
        let answer = gone.answer(now());
        let text = show::table(&answer, false, true, Paint::OFF);
        assert!(
            text.contains("there is no ManagedClusterSet global; the last decisions are kept"),
            "{text}"
        );
        assert!(text.contains("member2   ✔ yes      0 (canary)"), "{text}");
    }
}
