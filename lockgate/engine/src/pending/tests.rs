use lockgate_api::keys;
use serde_json::json;

use super::*;
use crate::claim::{Act, Because, ClaimInput, Decision};

fn policy(name: &str, uid: &str, generation: i64, clusters: &[&str], lazy: bool) -> PropagationPolicy {
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": uid, "generation": generation, "resourceVersion": "5",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
            "activationPreference": if lazy { "Lazy" } else { "" },
        },
    }))
    .unwrap()
}

fn template() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "t", "generation": 1, "resourceVersion": "9",
            "creationTimestamp": "2026-01-01T00:00:10Z",
        },
        "spec": {"replicas": 2, "template": {"spec": {"containers": []}}},
    })
}

fn clusters() -> Vec<Arc<Cluster>> {
    ["m1", "m2", "m3"]
        .map(|name| {
            let enablements = json!([{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}]);
            let cluster = json!({"metadata": {"name": name}, "status": {"apiEnablements": enablements}});
            Arc::new(serde_json::from_value(cluster).unwrap())
        })
        .into()
}

/// A hub of one template.
struct World {
    policies: PolicyIndex,
    template: Value,
    binding: Option<Binding>,
    clusters: Vec<Arc<Cluster>>,
}

impl World {
    fn new(policies: &[PropagationPolicy]) -> Self {
        let mut world = Self {
            policies: PolicyIndex::default(),
            template: template(),
            binding: None,
            clusters: clusters(),
        };
        for policy in policies {
            world.policies.insert(Arc::new(policy.clone()));
        }
        world.pass();
        world
    }

    fn input(&self) -> PendingInput<'_> {
        PendingInput {
            template: &self.template,
            binding: self.binding.as_ref(),
            policies: &self.policies,
            clusters: &self.clusters,
            gates: Gates::default(),
        }
    }

    fn pending(&self) -> Option<Pending> {
        pending(&self.input())
    }

    /// A pass over the template, as far as claims and places go.
    fn pass(&mut self) -> Decision {
        let decision = claim::claim(&ClaimInput {
            template: &self.template,
            policies: &self.policies,
            binding: self.binding.as_ref(),
            gates: Gates::default(),
            written: None,
        });
        if let Some(marked) = decision.mark(&self.template, self.binding.as_ref()) {
            self.template = marked;
        }
        if self.binding.is_none() && !matches!(decision.act, Act::Activate(_)) {
            return decision;
        }
        let mut binding = self.binding.clone().unwrap_or_default();
        decision.bind(&self.template, &mut binding);
        let placed = place::preview(&PlaceInput {
            spec: &binding.spec,
            applied_placement: None,
            observed_affinity: "",
            last_scheduled: None,
            rebalanced: None,
            clusters: &self.clusters,
            rooms: None,
            neighbours: None,
            gates: Gates::default(),
        });
        if let Verdict::Clusters(targets) = placed.verdict
            && Claim::on_binding(&binding.metadata).is_some()
        {
            binding.spec.clusters = targets;
            let applied = serde_json::to_string(&binding.spec.placement).unwrap();
            let annotations = &mut binding.metadata.annotations;
            annotations.insert(keys::APPLIED_PLACEMENT.to_owned(), applied);
        }
        self.binding = Some(binding);
        decision
    }
}

fn names(targets: &[TargetCluster]) -> Vec<(&str, i64)> {
    targets
        .iter()
        .map(|target| (target.name.as_str(), target.replicas))
        .collect()
}

#[test]
fn an_edit_of_a_lazy_policy_waits_and_says_what_it_would_do() {
    let mut world = World::new(&[policy("p", "p", 1, &["m1", "m2"], true)]);
    assert_eq!(world.pending(), None);
    world
        .policies
        .insert(Arc::new(policy("p", "p", 2, &["m2", "m3"], true)));
    world.pass();
    let pending = world.pending().unwrap();
    assert_eq!(pending.id.to_string(), "Deployment shop/web");
    assert_eq!(pending.applied.as_ref().unwrap().generation, 1);
    assert_eq!(pending.current.as_ref().unwrap().metadata.generation, 2);
    let effect = pending.effect.unwrap();
    assert_eq!(names(&effect.added), [("m3", 2)]);
    assert_eq!(names(&effect.removed), [("m1", 2)]);
    assert!(effect.resized.is_empty() && effect.trouble.is_none());
    assert_eq!(effect.fields, ["placement"]);

    // What it says is what happens when somebody asks for it.
    world.template["metadata"]["annotations"][keys::ACTIVATE] = "now".into();
    assert_eq!(world.pass().act, Act::Activate(Because::Asked));
    let after = &world.binding.as_ref().unwrap().spec.clusters;
    assert_eq!(names(after), [("m2", 2), ("m3", 2)]);
    assert_eq!(world.pending(), None);
}

#[test]
fn replicas_that_would_move_are_told() {
    let divided = |generation, weights: [i64; 2]| {
        let mut policy = policy("p", "p", generation, &["m1", "m2"], true);
        let weight =
            |name: &str, weight: i64| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight});
        policy.spec.placement.replica_scheduling = serde_json::from_value(json!({
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [weight("m1", weights[0]), weight("m2", weights[1])]},
        }))
        .unwrap();
        policy
    };
    let mut world = World::new(&[]);
    world.template["spec"]["replicas"] = 4.into();
    world.policies.insert(Arc::new(divided(1, [1, 1])));
    world.pass();
    world.policies.insert(Arc::new(divided(2, [3, 1])));
    let effect = world.pending().unwrap().effect.unwrap();
    let resized: Vec<_> = effect
        .resized
        .iter()
        .map(|r| (r.cluster.as_str(), r.from, r.to))
        .collect();
    assert_eq!(resized, [("m1", 2, 3), ("m2", 2, 1)]);
    assert!(!effect.moves_nothing());
}

#[test]
fn a_placement_that_fits_nothing_says_so_and_removes_nothing() {
    let mut world = World::new(&[policy("p", "p", 1, &["m1"], true)]);
    world
        .policies
        .insert(Arc::new(policy("p", "p", 2, &["nowhere"], true)));
    let effect = world.pending().unwrap().effect.unwrap();
    assert!(effect.moves_nothing());
    assert!(effect.trouble.unwrap().starts_with("0/3 clusters are available"));
}

#[test]
fn the_next_policy_that_is_lazy_waits_behind_what_the_last_one_activated() {
    let mut world = World::new(&[policy("a", "a", 3, &["m1"], false)]);
    world.policies.remove("shop", "a");
    world
        .policies
        .insert(Arc::new(policy("b", "b", 1, &["m2"], true)));
    world.pass();
    let pending = world.pending().unwrap();
    let applied = pending.applied.unwrap();
    assert_eq!((applied.id.as_str(), applied.generation), ("a", 3));
    assert_eq!(pending.current.unwrap().metadata.name, "b");
}

#[test]
fn an_older_template_that_a_lazy_policy_claims_was_never_activated() {
    let mut lazy = policy("p", "p", 1, &["m1"], true);
    lazy.metadata.creation_timestamp = Some("2026-01-01T00:00:20Z".into());
    let world = World::new(&[lazy]);
    let pending = world.pending().unwrap();
    assert_eq!(pending.applied, None);
    assert_eq!(names(&pending.effect.unwrap().added), [("m1", 2)]);
}

#[test]
fn a_template_without_a_policy_waits_for_one() {
    let mut world = World::new(&[policy("a", "a", 1, &["m1"], false)]);
    world.policies.remove("shop", "a");
    world.pass();
    let pending = world.pending().unwrap();
    assert_eq!(
        (&pending.current, &pending.effect, pending.changed),
        (&None, &None, false)
    );
    world.template["spec"]["replicas"] = 5.into();
    world.template["metadata"]["generation"] = 9.into();
    world.pass();
    assert!(world.pending().unwrap().changed);
    assert_eq!(pending.applied.unwrap().id, "a");
}

#[test]
fn an_immediate_policy_leaves_nothing_waiting_and_nothing_waits_without_claim() {
    let mut world = World::new(&[policy("a", "a", 1, &["m1"], false)]);
    world
        .policies
        .insert(Arc::new(policy("a", "a", 2, &["m2"], false)));
    world.pass();
    assert_eq!(world.pending(), None);
    assert_eq!(World::new(&[]).pending(), None);
    assert!(as_if(&world.input()).effect.unwrap().moves_nothing());
}

#[test]
fn it_waits_since_the_later_of_edit_and_claim() {
    let entry = |manager: &str, second: u8| json!([{"manager": manager, "time": format!("2026-01-01T00:00:{second:02}Z")}]);
    let mut template = template();
    let mut edited = policy("p", "p", 2, &["m1"], true);
    template["metadata"]["managedFields"] = entry("lockgate", 20);
    edited
        .metadata
        .rest
        .insert("managedFields".into(), entry("kubectl", 40));
    let at = |second: i64| Some(Timestamp::from_second(1_767_225_600 + second).unwrap());
    assert_eq!(since(&template, Some(&edited)), at(40));
    assert_eq!(since(&template, None), at(20));
    template["metadata"]["managedFields"] = entry("lockgate", 50);
    assert_eq!(since(&template, Some(&edited)), at(50));
}
