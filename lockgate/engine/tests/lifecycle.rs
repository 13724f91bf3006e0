//! What always holds of bindings and Works, line by line: appendix A.8 of the Karmada specification, as the stations decide it.
//! What takes a server to be seen is in the scenarios: that all is gone in the end (`pipeline/template-deleted`), that one id
//! is on the stored objects (`pipeline/one-id-on-all`), that a suspended Work sends nothing
//! (`suspension/suspended-work-sends-nothing`), that nobody else writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_api::binding::TargetCluster;
use lockgate_api::{Binding, BindingSpec, Cluster, PropagationPolicy, Work, keys, names};
use lockgate_engine::claim::{Act, Change, ClaimInput, ContentHashes, Record, claim};
use lockgate_engine::dispatch::{Dispatch, DispatchInput, Withdraw, dispatch, withdraw};
use lockgate_engine::gate::{self, Removal};
use lockgate_engine::place::{PlaceInput, Verdict, place};
use lockgate_engine::render::{RenderInput, render};
use lockgate_engine::selector::PolicyIndex;
use lockgate_engine::{Gates, TemplateId, object};
use serde_json::{Value, json};

/// A template, its policies and its binding, and how many writes the claim station asked for.
#[derive(Default)]
struct Hub {
    template: Value,
    policies: PolicyIndex,
    binding: Option<Binding>,
    gates: Gates,
}

impl Hub {
    fn new() -> Self {
        Self {
            template: json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "generation": 1, "resourceVersion": "5",
                             "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"replicas": 2},
            }),
            ..Self::default()
        }
    }

    fn apply(&mut self, namespace: &str, name: &str, spec: Value) -> &mut Self {
        let mut spec = spec;
        spec["resourceSelectors"] =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}]);
        spec["placement"] = json!({"clusterAffinity": {"clusterNames": ["m1", "m2"]}});
        let policy: PropagationPolicy = serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": name, "uid": format!("p-{namespace}-{name}"), "generation": 1,
                         "creationTimestamp": "2026-01-01T00:00:01Z"},
            "spec": spec,
        }))
        .unwrap();
        self.policies.insert(Arc::new(policy));
        self
    }

    /// One pass of the claim station; how many objects it writes.
    fn pass(&mut self) -> usize {
        let decision = claim(&ClaimInput {
            template: &self.template,
            policies: &self.policies,
            binding: self.binding.as_ref(),
            gates: self.gates,
            written: None,
        });
        let mut writes = 0;
        if let Some(recorded) = decision.record_first(&self.template, self.binding.as_ref()) {
            self.binding = Some(recorded);
            writes += 1;
        }
        if let Some(marked) = decision.mark(&self.template, self.binding.as_ref()) {
            self.template = marked;
            writes += 1;
        }
        if self.binding.is_none() && !matches!(decision.act, Act::Activate(_)) {
            return writes;
        }
        let mut binding = self.binding.clone().unwrap_or_default();
        decision.bind(&self.template, &mut binding);
        if self.binding.as_ref() != Some(&binding) {
            self.binding = Some(binding);
            writes += 1;
        }
        writes
    }

    fn settle(&mut self) -> &mut Self {
        for _ in 0..5 {
            if self.pass() == 0 {
                return self;
            }
        }
        panic!("it does not settle");
    }

    fn spec(&mut self) -> &mut BindingSpec {
        &mut self.binding.as_mut().unwrap().spec
    }

    /// What other stations have written.
    fn placed(&mut self) -> &mut Self {
        self.spec().clusters = targets(&["m1", "m2"]);
        self.spec().required_by =
            serde_json::from_value(json!([{"namespace": "shop", "name": "api-deployment"}])).unwrap();
        self.spec().graceful_eviction_tasks =
            serde_json::from_value(json!([{"fromCluster": "m9", "reason": "r", "producer": "p"}])).unwrap();
        self
    }
}

fn targets(names: &[&str]) -> Vec<TargetCluster> {
    let one = |name: &&str| json!({"name": name, "replicas": 2});
    names
        .iter()
        .map(|name| serde_json::from_value(one(name)).unwrap())
        .collect()
}

fn cluster(name: &str) -> Cluster {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "status": {"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]},
    }))
    .unwrap()
}

#[test]
fn deleting_a_policy_deletes_nothing() {
    let mut hub = Hub::new();
    hub.apply("shop", "p", json!({})).settle().placed();
    let before = hub.spec().clone();
    hub.policies.remove("shop", "p");
    hub.settle();
    assert_eq!(
        *hub.spec(),
        before,
        "the binding still says what was activated, and where it is"
    );
    // And what is there stays there: every cluster is still wanted.
    let nobody = BTreeSet::new();
    assert_eq!(gate::wanted(hub.spec()), BTreeSet::from(["m1", "m2"]));
    let mut nowhere = hub.spec().clone();
    nowhere.clusters.clear();
    nowhere.required_by.clear();
    assert_eq!(gate::removal(&nowhere, &nobody, Gates::default()), Removal::Hold);
}

#[test]
fn a_member_object_that_is_not_ours_is_never_deleted_and_changed_only_to_overwrite() {
    let manifest = |resolution: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop",
            "labels": {keys::MANAGED: "true", keys::WORK_ID: "w"},
            "annotations": {keys::CONFLICT_RESOLUTION: resolution, keys::WORK_NAME: "a-1", keys::WORK_NAMESPACE: "karmada-es-m1"}},
            "data": {"a": "1"}})
    };
    for (managed, resolution, written, deleted) in [
        (Some("true"), "abort", true, true),
        (Some("true"), "overwrite", true, true),
        (Some("false"), "abort", false, false),
        (None, "abort", false, false),
        (None, "overwrite", true, false),
        (Some("false"), "overwrite", true, false),
    ] {
        let manifest = manifest(resolution);
        let mut live = manifest.clone();
        live["data"] = json!({"a": "2"});
        live["metadata"]["uid"] = json!("u");
        live["metadata"]["resourceVersion"] = json!("7");
        match managed {
            Some(value) => live["metadata"]["labels"][keys::MANAGED] = json!(value),
            None => drop(
                live["metadata"]["labels"]
                    .as_object_mut()
                    .unwrap()
                    .remove(keys::MANAGED),
            ),
        }
        let decision = dispatch(&DispatchInput {
            manifest: &manifest,
            live: Some(&live),
            last_applied: None,
            work_generation: 1,
            interpreter: None,
        });
        let row = format!("{managed:?} {resolution}");
        assert_eq!(
            matches!(decision, Dispatch::Update(..)),
            written,
            "{row}: {decision:?}"
        );
        let withdrawn = withdraw(&manifest, Some(&live), false);
        assert_eq!(
            matches!(withdrawn, Withdraw::Delete { .. }),
            deleted,
            "{row}: {withdrawn:?}"
        );
    }
}

#[test]
fn a_template_that_is_made_again_is_another_one() {
    let mut hub = Hub::new();
    hub.apply("shop", "p", json!({})).settle();
    let record = Record::find(&hub.template, hub.binding.as_ref()).unwrap();
    let mut again = hub.template.clone();
    again["metadata"]["uid"] = json!("u-2");
    let change = |template: &Value| record.compare(template, &ContentHashes::of(template));
    assert_ne!(change(&hub.template), Change::ByUser);
    assert_eq!(change(&again), Change::ByUser, "with the same content");
    // Its binding is known by the uid.
    assert_eq!(hub.spec().resource.uid, "u-1");
    hub.template = Hub::new().template;
    hub.template["metadata"]["uid"] = json!("u-2");
    hub.binding = None;
    hub.settle();
    assert_eq!(hub.spec().resource.uid, "u-2");
}

#[test]
fn there_is_one_work_for_a_binding_and_a_cluster() {
    let id = |kind: &str, namespace: &str, name: &str| names::work_name(kind, namespace, name);
    assert_eq!(
        id("Deployment", "shop", "web"),
        "web-56d6c779bb",
        "on every machine the same"
    );
    let all = [
        id("Deployment", "shop", "web"),
        id("StatefulSet", "shop", "web"),
        id("Deployment", "shop", "api"),
        id("Deployment", "other", "web"),
        id("Deployment", "", "web"),
    ];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());

    let mut hub = Hub::new();
    hub.apply("shop", "p", json!({})).settle();
    let mut binding = hub.binding.clone().unwrap();
    binding.metadata.namespace = "shop".to_owned();
    let mut changed = hub.template.clone();
    changed["spec"]["replicas"] = json!(9);
    changed["metadata"]["generation"] = json!(4);
    for (template, replicas, cluster_name) in [
        (&hub.template, None, "m1"),
        (&changed, Some(3), "m1"),
        (&changed, Some(1), "m2"),
    ] {
        let cluster = cluster(cluster_name);
        let rendered = render(&RenderInput {
            template,
            binding: &binding,
            binding_id: "b-1",
            work_id: "w-1",
            cluster: &cluster,
            replicas,
            keeps: false,
            completions: None,
            reviser: None,
            overrides: &[],
            conflict_resolution: "Abort",
        })
        .unwrap();
        let of = TemplateId::of(template);
        assert_eq!(rendered.work_name, id(&of.kind, &of.namespace, &of.name));
        assert_eq!(object::label(&rendered.manifest, keys::WORK_ID), Some("w-1"));
    }
}

#[test]
fn a_binding_its_work_and_the_manifest_carry_one_id() {
    let cluster = cluster("m1");
    for (kind, namespace, key, other) in [
        ("Deployment", "shop", keys::RB_ID, keys::CRB_ID),
        ("ClusterRole", "", keys::CRB_ID, keys::RB_ID),
    ] {
        // The marks of a member's object, which came along with a copy of it, count for nothing.
        let template = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "web", "namespace": namespace, "uid": "u-1",
                              "labels": {key: "b-9"}}});
        let binding: Binding = serde_json::from_value(json!({
            "metadata": {"name": "web-binding", "namespace": namespace, "labels": {key: "b-1"}},
        }))
        .unwrap();
        let own = binding.metadata.label(key).unwrap();
        let rendered = render(&RenderInput {
            template: &template,
            binding: &binding,
            binding_id: own,
            work_id: "w-1",
            cluster: &cluster,
            replicas: None,
            keeps: false,
            completions: None,
            reviser: None,
            overrides: &[],
            conflict_resolution: "Abort",
        })
        .unwrap();
        assert_eq!(rendered.labels[key], own, "{kind}");
        assert_eq!(object::label(&rendered.manifest, key), Some(own), "{kind}");
        assert!(!rendered.labels.contains_key(other), "{kind}");
        assert_eq!(object::label(&rendered.manifest, other), None, "{kind}");
    }
}

#[test]
fn a_policy_writes_nothing_that_other_stations_write() {
    let mut hub = Hub::new();
    hub.apply("shop", "p", json!({})).settle().placed();
    let before = hub.spec().clone();
    hub.apply("shop", "p", json!({"conflictResolution": "Overwrite", "propagateDeps": true, "preserveResourcesOnDeletion": true}))
        .settle();
    let after = hub.spec().clone();
    assert_eq!(after.conflict_resolution, "Overwrite");
    assert_eq!(after.clusters, before.clusters);
    assert_eq!(after.required_by, before.required_by);
    assert_eq!(after.graceful_eviction_tasks, before.graceful_eviction_tasks);
}

#[test]
fn a_policy_that_says_the_same_writes_nothing() {
    for spec in [
        json!({}),
        json!({"activationPreference": "Lazy"}),
        json!({"priority": 3}),
    ] {
        let mut hub = Hub::new();
        hub.apply("shop", "p", spec.clone()).settle();
        hub.apply("shop", "p", spec.clone());
        assert_eq!(hub.pass(), 0, "{spec}");
    }
}

#[test]
fn nothing_fits_is_not_too_little_room() {
    let placing = |selected: &str, spread: i64, gates: Gates| {
        let spec: BindingSpec = serde_json::from_value(json!({
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"},
            "replicas": 2, "clusters": [{"name": "m1", "replicas": 2}],
            "placement": {"clusterAffinity": {"clusterNames": [selected]},
                          "spreadConstraints": [{"spreadByField": "cluster", "minGroups": spread, "maxGroups": spread}]},
        }))
        .unwrap();
        let clusters = [Arc::new(cluster("m1")), Arc::new(cluster("m2"))];
        place(&PlaceInput {
            spec: &spec,
            applied_placement: None,
            observed_affinity: "",
            last_scheduled: None,
            rebalanced: None,
            clusters: &clusters,
            rooms: None,
            neighbours: None,
            gates,
        })
        .verdict
    };
    let removes = Gates {
        no_cluster_fit_removes: true,
        ..Gates::default()
    };
    // As released it empties the result; here only behind a gate.
    for (gates, kept) in [(Gates::default(), true), (removes, false)] {
        let verdict = placing("m9", 1, gates);
        assert!(
            matches!(verdict, Verdict::NoClusterFit { keep, .. } if keep == kept),
            "{verdict:?}"
        );
        // Too few of them never does.
        let verdict = placing("m2", 2, gates);
        assert!(matches!(verdict, Verdict::Unschedulable { .. }), "{verdict:?}");
    }
}

#[test]
fn what_is_suspended_is_not_sent_and_can_be_deleted() {
    let suspension =
        serde_json::from_value(json!({"dispatchingOnClusters": {"clusterNames": ["m1"]}})).unwrap();
    assert!(gate::is_suspended(Some(&suspension), "m1"));
    assert!(!gate::is_suspended(Some(&suspension), "m2"));
    // Where it is no longer wanted it goes, suspended or not.
    let mut hub = Hub::new();
    hub.apply("shop", "p", json!({"suspension": {"dispatching": true}}))
        .settle();
    hub.spec().clusters = targets(&["m2"]);
    assert!(gate::is_suspended(hub.spec().suspension.as_ref(), "m1"));
    assert_eq!(
        gate::removal(hub.spec(), &BTreeSet::new(), Gates::default()),
        Removal::Remove
    );
    // Its Work says so, and that is what sending looks at; removing does not.
    for (suspended, marked, is_sent) in [
        (Some(true), false, false),
        (Some(false), false, true),
        (None, false, true),
        // The older mark, which an older control plane left behind.
        (Some(false), true, false),
    ] {
        let mut work = Work::default();
        work.spec.suspend_dispatching = suspended;
        if marked {
            let mark = (keys::INSTRUCTION.to_owned(), "suppressed".to_owned());
            work.metadata.annotations.extend([mark]);
        }
        assert_eq!(!work.is_suspended(), is_sent, "{suspended:?} {marked}");
    }
}

#[test]
fn there_is_one_claim_at_a_time() {
    let always = |priority: i32| json!({"preemption": "Always", "priority": priority});
    let gates = Gates {
        preemption: true,
        ..Gates::default()
    };
    // Namespace and priority of the first policy, and of the one that comes later.
    for (first, second) in [
        (("", 0), ("shop", 0)),
        (("", 0), ("", 5)),
        (("shop", 0), ("shop", 5)),
        (("shop", 0), ("", 5)),
    ] {
        let mut hub = Hub::new();
        hub.gates = gates;
        hub.apply(first.0, "one", always(first.1)).settle();
        hub.apply(second.0, "two", always(second.1)).settle();
        let binding = hub.binding.as_ref().unwrap();
        let on = |key: &str| {
            (
                object::label(&hub.template, key).is_some(),
                binding.metadata.label(key).is_some(),
            )
        };
        let (pp, cpp) = (on(keys::PP_ID), on(keys::CPP_ID));
        assert_eq!(pp.0, pp.1, "{first:?} {second:?}: template and binding agree");
        assert_eq!(cpp.0, cpp.1, "{first:?} {second:?}: template and binding agree");
        assert_ne!(pp.0, cpp.0, "{first:?} {second:?}: one claim, and one only");
    }
}
