//! Rendering is a function of its inputs and of nothing else.

use lockgate_api::keys;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::interpret::{Interpreters, Operation};

fn any_overriders() -> impl Strategy<Value = Value> {
    let operator = || prop_oneof![Just("add"), Just("replace"), Just("remove")];
    let path = prop_oneof![
        Just("/spec/replicas"),
        Just("/spec/paused"),
        Just("/spec/none/deep"),
        Just("/metadata/labels/app"),
        Just("/metadata/name"),
        Just("/status"),
        Just("/spec/template/spec/containers/0/image"),
        Just("/spec/template/spec/containers/-"),
    ];
    prop_oneof![
        (path, operator(), any::<u8>()).prop_map(|(path, operator, value)| {
            json!({"plaintext": [{"path": path, "operator": operator, "value": value}]})
        }),
        (operator(), "[a-c]").prop_map(|(operator, key)| {
            json!({"labelsOverrider": [{"operator": operator, "value": {key: "x"}}]})
        }),
        (
            prop_oneof![Just("Registry"), Just("Repository"), Just("Tag")],
            operator(),
            "[a-z.]{0,4}"
        )
            .prop_map(|(component, operator, value)| {
                json!({"imageOverrider": [{"component": component, "operator": operator, "value": value}]})
            }),
        (operator(), "[a-c]").prop_map(|(operator, key)| {
            json!({"annotationsOverrider": [{"operator": operator, "value": {key: "x"}}]})
        }),
        (
            prop_oneof![
                Just("/spec/template/spec/containers/0/image"),
                Just("/spec/template/spec/containers/7/image"),
                Just("/spec/replicas"),
            ],
            operator(),
        )
            .prop_map(|(path, operator)| {
                json!({"imageOverrider": [
                    {"predicate": {"path": path}, "component": "Tag", "operator": operator, "value": "v2"},
                ]})
            }),
        (
            prop_oneof![Just("argsOverrider"), Just("commandOverrider")],
            prop_oneof![Just("web"), Just("nobody")],
            "[a-c]{1,2}",
            prop_oneof![Just("add"), Just("remove")]
        )
            .prop_map(|(overrider, container, value, operator)| {
                json!({overrider: [{"containerName": container, "operator": operator, "value": [value]}]})
            }),
        (
            prop_oneof![
                Just(("/data/json", "json")),
                Just(("/data/yaml", "yaml")),
                Just(("/data/yaml", "json")),
                Just(("/data/none", "yaml")),
            ],
            prop_oneof![Just("/a"), Just("/b/c")],
            operator(),
        )
            .prop_map(|((field, format), path, operator)| {
                let change = match operator {
                    "remove" => json!({"subPath": path, "operator": operator}),
                    _ => json!({"subPath": path, "operator": operator, "value": 7}),
                };
                json!({"fieldOverrider": [{"fieldPath": field, format: [change]}]})
            }),
    ]
}

/// Scripts that set a cluster's replicas: one that does, one that fails, one that looks elsewhere.
fn any_reviser() -> impl Strategy<Value = Option<Script>> {
    let sources = [
        "function ReviseReplica(o, n) o.spec.replicas = n return o end",
        "function ReviseReplica(o, n) error('no') end",
        "function ReviseReplica(o, n) o.spec.parallelism = n * 2 return o end",
    ];
    let script = |source: &str| {
        let customization = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"target": {"apiVersion": "apps/v1", "kind": "Deployment"},
                     "customizations": {"replicaRevision": {"luaScript": source}}},
        }))
        .unwrap();
        let interpreter = Interpreters::of([&customization]).of_object(&web()).unwrap();
        interpreter.script(Operation::Revise).cloned()
    };
    let scripts: Vec<Option<Script>> = sources.into_iter().map(script).chain([None, None]).collect();
    proptest::sample::select(scripts)
}

fn any_policy() -> impl Strategy<Value = Arc<OverridePolicy>> {
    let target = prop_oneof![
        Just(Value::Null),
        Just(json!({"clusterNames": ["member1"]})),
        Just(json!({"clusterNames": ["member2"]})),
        Just(json!({"labelSelector": {"matchLabels": {"env": "prod"}}})),
    ];
    let selectors = prop_oneof![
        Just(json!([])),
        Just(json!([{"apiVersion": "apps/v1", "kind": "Deployment"}])),
        Just(json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])),
        Just(json!([{"apiVersion": "v1", "kind": "Secret"}])),
    ];
    let rules = proptest::collection::vec((target, any_overriders()), 1..3);
    ("[a-e]", any::<bool>(), selectors, rules).prop_map(|(name, namespaced, selectors, rules)| {
        let rules: Vec<Value> = rules
            .into_iter()
            .map(|(target, overriders)| json!({"targetCluster": target, "overriders": overriders}))
            .collect();
        policy(json!({
            "metadata": {"name": name, "namespace": if namespaced { "shop" } else { "" }},
            "spec": {"resourceSelectors": selectors, "overrideRules": rules},
        }))
    })
}

fn any_case() -> impl Strategy<Value = Case> {
    let policies = proptest::collection::vec(any_policy(), 0..5);
    let shares = (
        proptest::option::of(0_i64..9),
        proptest::option::of(0_i64..9),
        any_reviser(),
    );
    let carried = proptest::option::of("[a-z]{1,3}");
    (policies, any::<bool>(), any::<bool>(), shares, carried).prop_map(
        |(mut policies, prod, job, shares, carried)| {
            // Two policies of one name are one policy.
            policies.sort_by_key(|policy| (policy.metadata.namespace.clone(), policy.metadata.name.clone()));
            policies.dedup_by_key(|policy| (policy.metadata.namespace.clone(), policy.metadata.name.clone()));
            let mut case = Case::new(web());
            case.overrides = policies;
            case.template["data"] = json!({"json": "{\"a\": 1}", "yaml": "a: 1\n"});
            (case.replicas, case.completions, case.reviser) = shares;
            if job {
                case.template["apiVersion"] = json!("batch/v1");
                case.template["kind"] = json!("Job");
                case.template["spec"]["completions"] = json!(6);
            }
            if let Some(state) = carried {
                let carried = json!({"cluster": "member1", "labels": {"state": state}}).to_string();
                case.binding
                    .metadata
                    .annotations
                    .insert(keys::CARRIED_STATE.to_owned(), carried);
            }
            if prod {
                case.cluster
                    .metadata
                    .labels
                    .insert("env".to_owned(), "prod".to_owned());
            }
            case
        },
    )
}

proptest! {
    /// Whatever is not an input changes nothing: the order in which policies are known, what servers write, what the
    /// cluster is beside its labels, other policies.
    #[test]
    fn rendering_is_a_function_of_its_inputs(case in any_case(), turn in 0_usize..5) {
        let rendered = render(&case.input());
        prop_assert_eq!(&render(&case.input()), &rendered);

        let mut other = case.clone();
        let count = other.overrides.len().max(1);
        other.overrides.rotate_left(turn % count);
        other.overrides.push(policy(json!({
            "metadata": {"name": "zz", "namespace": "elsewhere"},
            "spec": {"overrideRules": [{"overriders": {"plaintext": [{"path": "/x", "operator": "remove"}]}}]},
        })));
        other.template["status"] = json!({"replicas": turn});
        other.template["metadata"]["resourceVersion"] = json!(turn.to_string());
        other.template["metadata"]["managedFields"] = json!([{"manager": "m"}]);
        other.cluster.metadata.annotations.insert("a".to_owned(), turn.to_string());
        prop_assert_eq!(render(&other.input()), rendered);
        prop_assert_eq!(inputs_digest(&other.input()), inputs_digest(&case.input()));
    }

    /// Equal digests are equal manifests, as long as the template's own generation and uid are.
    #[test]
    fn the_digest_tells_the_manifest(one in any_case(), other in any_case()) {
        if inputs_digest(&one.input()) == inputs_digest(&other.input()) {
            prop_assert_eq!(render(&one.input()), render(&other.input()));
        }
    }

    /// What is explained is what is done.
    #[test]
    fn an_explanation_tells_what_rendering_does(case in any_case()) {
        let explained = explain(&case.input());
        prop_assert_eq!(&explained.result, &render(&case.input()));
        let failed = explained.steps.iter().any(|step| step.failed.is_some());
        prop_assert_eq!(failed, matches!(explained.result, Err(RenderError::Override(_))));
        if let Ok(rendered) = &explained.result {
            prop_assert_eq!(explained.steps.len(), rendered.applied.len());
        }
    }
}
