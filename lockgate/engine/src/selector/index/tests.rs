//! The index gives the answers of a scan over all policies.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::PropagationPolicy;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::PolicyIndex;
use crate::object;
use crate::selector::{policy_match, selector_priority};

fn policy(metadata: Value, priority: i32, selectors: Vec<Value>) -> Arc<PropagationPolicy> {
    let spec = json!({ "priority": priority, "preemption": "Always", "resourceSelectors": selectors });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
}

fn names(policies: &[&Arc<PropagationPolicy>]) -> Vec<String> {
    let name =
        |policy: &&Arc<PropagationPolicy>| format!("{}/{}", policy.metadata.namespace, policy.metadata.name);
    policies.iter().map(name).collect()
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "namespace": namespace, "name": name, "labels": { "app": "n" } } })
}

#[test]
fn match_order() {
    let all = || json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
    let with = |key: &str, value: Value| {
        let mut selector = all();
        selector[key] = value;
        selector
    };
    let mut index = PolicyIndex::default();
    for policy in [
        policy(json!({ "name": "cluster-high" }), 100, vec![all()]),
        policy(
            json!({ "name": "cluster-named" }),
            0,
            vec![with("name", "x".into())],
        ),
        policy(
            json!({ "namespace": "a", "name": "low" }),
            -5,
            vec![with("name", "x".into())],
        ),
        policy(
            json!({ "namespace": "a", "name": "named" }),
            0,
            vec![all(), with("name", "x".into())],
        ),
        policy(json!({ "namespace": "a", "name": "high" }), 1, vec![all()]),
        policy(
            json!({ "namespace": "a", "name": "b-labels" }),
            0,
            vec![with("labelSelector", json!({}))],
        ),
        policy(
            json!({ "namespace": "a", "name": "a-labels" }),
            0,
            vec![with("labelSelector", json!({}))],
        ),
        policy(json!({ "namespace": "b", "name": "elsewhere" }), 9, vec![all()]),
        policy(
            json!({ "namespace": "a", "name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z" }),
            9,
            vec![all()],
        ),
    ] {
        index.insert(policy);
    }
    let order = [
        "a/high",
        "a/named",
        "a/a-labels",
        "a/b-labels",
        "a/low",
        "/cluster-high",
        "/cluster-named",
    ];
    assert_eq!(names(&index.candidates(&deployment("a", "x"))), order);
    assert_eq!(index.best(&deployment("a", "x")).unwrap().metadata.name, "high");
    // Only what names the very template preempts; a cluster policy must give the namespace too.
    assert_eq!(
        names(&index.preemptors(&deployment("a", "x"))),
        ["a/named", "a/low"]
    );
    assert_eq!(
        index.best(&deployment("c", "y")).unwrap().metadata.name,
        "cluster-high"
    );
    // A policy that is being deleted still counts.
    assert_eq!(index.kinds().collect::<Vec<_>>(), [("apps/v1", "Deployment", 9)]);
    index.remove("a", "going");
    assert_eq!(index.kinds().collect::<Vec<_>>(), [("apps/v1", "Deployment", 8)]);
}

#[test]
fn a_replaced_policy_is_found_by_its_new_selectors_alone() {
    let named = |name: &str| vec![json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name })];
    let mut index = PolicyIndex::default();
    index.insert(policy(json!({ "namespace": "a", "name": "p" }), 0, named("x")));
    index.insert(policy(json!({ "namespace": "a", "name": "p" }), 0, named("y")));
    assert_eq!(index.len(), 1);
    assert!(index.best(&deployment("a", "x")).is_none());
    assert!(index.best(&deployment("a", "y")).is_some());
}

fn label_selector() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["k", "l"]);
    let value = prop::sample::select(vec!["1", "2"]);
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Near"]);
    let values = prop::collection::vec(value.clone(), 0..3);
    let expression = (key.clone(), operator, values).prop_map(|(key, operator, values)| {
        let values = if operator.ends_with("In") {
            values
        } else {
            Vec::new()
        };
        json!({ "key": key, "operator": operator, "values": values })
    });
    (
        prop::collection::btree_map(key, value, 0..3),
        prop::collection::vec(expression, 0..3),
    )
        .prop_map(|(labels, expressions)| json!({ "matchLabels": labels, "matchExpressions": expressions }))
}

fn selector() -> impl Strategy<Value = Value> {
    (
        prop::sample::select(vec!["v1", "v2"]),
        prop::sample::select(vec!["A", "B"]),
        prop::sample::select(vec!["", "", "n1", "n2"]),
        prop::sample::select(vec!["", "", "x", "y"]),
        prop::option::of(label_selector()),
    )
        .prop_map(|(api_version, kind, namespace, name, labels)| {
            json!({ "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name,
                "labelSelector": labels })
        })
}

#[derive(Clone, Debug)]
enum Change {
    Insert(Arc<PropagationPolicy>),
    Remove(&'static str, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let namespace = prop::sample::select(vec!["", "n1", "n2"]);
    let name = prop::sample::select(vec!["p", "q", "r", "s", "t"]);
    let key = (namespace, name);
    let policy = (
        key.clone(),
        -1..2_i32,
        prop::bool::weighted(0.1),
        prop::sample::select(vec!["Always", "Never"]),
        prop::collection::vec(selector(), 0..4),
    );
    prop_oneof![
        4 => policy.prop_map(|((namespace, name), priority, going, preemption, selectors)| {
            let deleted = going.then_some("2026-01-01T00:00:00Z");
            Change::Insert(Arc::new(serde_json::from_value(json!({
                "metadata": { "namespace": namespace, "name": name, "deletionTimestamp": deleted },
                "spec": { "priority": priority, "preemption": preemption, "resourceSelectors": selectors },
            })).unwrap()))
        }),
        1 => key.prop_map(|(namespace, name)| Change::Remove(namespace, name)),
    ]
}

fn template() -> impl Strategy<Value = Value> {
    let label = (
        prop::sample::select(vec!["k", "l"]),
        prop::sample::select(vec!["1", "2", "3"]),
    );
    (
        prop::sample::select(vec!["v1", "v2"]),
        prop::sample::select(vec!["A", "B"]),
        prop::sample::select(vec!["", "n1", "n2", "n3"]),
        prop::sample::select(vec!["x", "y", "z"]),
        prop::collection::vec(label, 0..3),
    )
        .prop_map(|(api_version, kind, namespace, name, labels)| {
            json!({ "apiVersion": api_version, "kind": kind, "metadata": {
                "namespace": namespace, "name": name, "labels": BTreeMap::from_iter(labels) } })
        })
}

type Model = BTreeMap<(String, String), Arc<PropagationPolicy>>;

fn scan<'a>(model: &'a Model, template: &Value) -> Vec<&'a Arc<PropagationPolicy>> {
    let mut matching: Vec<_> = model
        .values()
        .filter_map(|policy| Some((policy_match(policy, template)?, policy)))
        .collect();
    matching.sort_by_key(|(by, policy)| {
        let metadata = &policy.metadata;
        (
            metadata.namespace.is_empty(),
            Reverse(policy.spec.priority),
            Reverse(*by),
            metadata.name.clone(),
        )
    });
    matching.into_iter().map(|(_, policy)| policy).collect()
}

/// The policies that take a template by naming it, from the same scan.
fn scan_preemptors<'a>(model: &'a Model, template: &Value) -> Vec<&'a Arc<PropagationPolicy>> {
    let names_it = |policy: &PropagationPolicy| {
        let namespace = object::meta_text(template, "namespace");
        let local = !policy.metadata.namespace.is_empty();
        policy.spec.resource_selectors.iter().any(|selector| {
            let exact = local || selector.namespace == namespace;
            exact && !selector.name.is_empty() && selector_priority(selector, template).is_some()
        })
    };
    let mut matching = scan(model, template);
    matching.retain(|policy| policy.spec.preempts() && names_it(policy));
    matching
}

proptest! {
    #![proptest_config(crate::properties::cases(300))]

    #[test]
    fn equals_a_scan(
        changes in prop::collection::vec(change(), 0..40),
        templates in prop::collection::vec(template(), 1..20),
    ) {
        let mut index = PolicyIndex::default();
        let mut model = Model::new();
        for change in changes {
            match change {
                Change::Insert(policy) => {
                    let key = (policy.metadata.namespace.clone(), policy.metadata.name.clone());
                    model.insert(key, policy.clone());
                    index.insert(policy);
                }
                Change::Remove(namespace, name) => {
                    let removed = model.remove(&(namespace.to_owned(), name.to_owned()));
                    prop_assert_eq!(index.remove(namespace, name), removed);
                }
            }
        }
        prop_assert_eq!(index.len(), model.len());
        for template in &templates {
            let expected = names(&scan(&model, template));
            prop_assert_eq!(&names(&index.candidates(template)), &expected);
            let best: Vec<_> = index.best(template).into_iter().collect();
            prop_assert_eq!(&names(&best), &expected[..expected.len().min(1)]);
            prop_assert_eq!(
                names(&index.preemptors(template)),
                names(&scan_preemptors(&model, template))
            );
        }
        let mut kinds = BTreeMap::new();
        for policy in model.values() {
            for (api_version, kind) in super::kinds_of(policy) {
                *kinds.entry((api_version, kind)).or_insert(0) += 1;
            }
        }
        let counted: BTreeMap<_, _> = index.kinds().map(|(version, kind, count)| ((version, kind), count)).collect();
        prop_assert_eq!(counted, kinds);
        // Nothing is left behind.
        for (namespace, name) in model.keys() {
            index.remove(namespace, name);
        }
        prop_assert!(index.is_empty() && index.kinds.is_empty() && index.policies.is_empty());
    }

    /// The lists of a kind are dropped with the last policy in them, also while the kind stays.
    #[test]
    fn empty_lists_are_not_kept(policies in prop::collection::vec(change(), 0..20)) {
        let mut index = PolicyIndex::default();
        let anchor = json!({ "apiVersion": "v1", "kind": "A", "namespace": "elsewhere", "name": "only" });
        index.insert(policy(json!({ "name": "anchor" }), 0, vec![anchor]));
        let mut keys = Vec::new();
        for change in policies {
            if let Change::Insert(policy) = change {
                keys.push((policy.metadata.namespace.clone(), policy.metadata.name.clone()));
                index.insert(policy);
            }
        }
        for (namespace, name) in keys {
            index.remove(&namespace, &name);
        }
        let postings = &index.kinds["v1"]["A"];
        prop_assert!(postings.local.is_empty());
        prop_assert_eq!(postings.global.keys().collect::<Vec<_>>(), ["elsewhere"]);
    }
}
