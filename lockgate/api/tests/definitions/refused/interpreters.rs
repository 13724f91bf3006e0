//! Customizations that are refused. Each is one step away from one that is accepted.

use serde_json::json;

use super::Case;
use crate::harness::Server;

const KIND: &str = "ResourceInterpreterCustomization";

pub(crate) fn interpreters() -> Vec<Case> {
    vec![
        (KIND, json!({"target": null}), "spec.target"),
        (
            KIND,
            json!({"target": {"apiVersion": "v1", "kind": ""}}),
            "spec.target.kind",
        ),
        (KIND, json!({"target": {"kind": "X"}}), "spec.target.apiVersion"),
        (KIND, json!({"customizations": null}), "spec.customizations"),
        (
            KIND,
            json!({"customizations": {"retention": {}}}),
            "spec.customizations.retention.luaScript",
        ),
        (
            KIND,
            json!({"customizations": {"healthInterpretation": {"luaScript": ""}}}),
            "spec.customizations.healthInterpretation.luaScript",
        ),
        (
            KIND,
            json!({"customizations": {"statusReflection": {"luaScript": 3}}}),
            "spec.customizations.statusReflection.luaScript",
        ),
    ]
}

/// Nothing calls interpreter webhooks, so that none is stored.
pub(crate) async fn webhooks(server: &Server) {
    let webhook = json!({
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": "sample"},
        "webhooks": [{"name": "a.example.com", "clientConfig": {"url": "https://a.example.com"}}],
    });
    let answer = server.try_create(&webhook).await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    let message = answer.message();
    let reason = "interpreter webhooks are not called: say how the kind is read in Lua";
    assert!(message.contains(reason), "{message}");
}
