//! What was stored before a definition demanded more stays usable: it may change, except where it is wrong.

use lockgate_api::definitions;
use serde_json::{Value, json};

use crate::harness::{Server, sample};

pub(crate) async fn check(server: &Server) {
    let wrong =
        json!([{"apiVersion": "a/b/c", "kind": "", "labelSelector": {"matchLabels": {"a b": "c d"}}}]);
    let affinity = json!({"labelSelector": {"matchLabels": {"a b": "c d"}}});
    for (kind, spec, change) in [
        (
            "PropagationPolicy",
            json!({"resourceSelectors": wrong, "placement": {"clusterAffinity": affinity}}),
            json!({"priority": 3}),
        ),
        (
            "OverridePolicy",
            json!({"resourceSelectors": wrong, "targetCluster": affinity}),
            json!({"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}),
        ),
        (
            "RolloutPolicy",
            json!({"resourceSelectors": wrong}),
            json!({"suspension": {"dispatching": true}}),
        ),
    ] {
        let definition = definitions::crds()
            .into_iter()
            .find(|crd| crd["spec"]["names"]["kind"] == kind)
            .unwrap();
        let mut older = definition.clone();
        lax(&mut older);
        server.apply(&older).await.granted();
        let mut policy = sample(kind, &spec);
        policy["metadata"]["name"] = json!("stored");
        server
            .until("the older definition", async || {
                (server.try_create(&policy).await.code == 201).then_some(())
            })
            .await;
        server.create(&policy).await.granted();
        server.apply(&definition).await.granted();
        let mut another = policy.clone();
        another["metadata"]["name"] = json!("another");
        server
            .until("the definition", async || {
                (server.try_create(&another).await.code == 422).then_some(())
            })
            .await;

        // A real server warns of rules that are broken as before.
        let labelled = json!({"metadata": {"labels": {"team": "a"}}});
        for change in [labelled, json!({"spec": change})] {
            let answer = server.merge(&policy, &change, None).await;
            assert_eq!(answer.code, 200, "{kind} {}", answer.body);
            assert_eq!(answer.body["spec"]["resourceSelectors"], wrong, "{kind}");
        }
        let worse = json!({"spec": {"resourceSelectors": [{"apiVersion": "a/b/c", "kind": "Pod"}]}});
        let answer = server.merge(&policy, &worse, None).await;
        assert_eq!(answer.code, 422, "{kind} {}", answer.body);
        server.delete(&policy).await.granted();
    }
}

/// A schema before it said how selectors look.
fn lax(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = fields.get("properties");
            if properties.is_some_and(|properties| properties["labelSelector"].is_object()) {
                fields.remove("x-kubernetes-validations");
            }
            if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
                for name in ["apiVersion", "kind", "matchLabels"] {
                    if let Some(property) = properties.get_mut(name).and_then(Value::as_object_mut) {
                        for keyword in [
                            "minLength",
                            "pattern",
                            "maxProperties",
                            "x-kubernetes-validations",
                        ] {
                            property.remove(keyword);
                        }
                        if property.contains_key("additionalProperties") {
                            property.insert("additionalProperties".to_owned(), json!({"type": "string"}));
                        }
                    }
                }
            }
            fields.values_mut().for_each(lax);
        }
        Value::Array(items) => items.iter_mut().for_each(lax),
        _ => {}
    }
}
