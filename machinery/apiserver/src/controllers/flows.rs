//! FlowSchemas: their status says whether their priority level is there.

use machinery_kinds::flows::dangling;
use machinery_value::Value;
use serde_json::json;

use crate::controllers::garbage::change;
use crate::controllers::keys;
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Looks at one schema.
pub(super) async fn tend(server: &Inner, name: &str) -> Result<(), ApiError> {
    tend_key(server, &format!("{}{name}", key_prefix(GROUP, "flowschemas"))).await
}

/// Looks at every schema, all at once so that they share their way to the disk.
pub(crate) async fn tend_every(server: &Inner) -> Result<(), ApiError> {
    let keys = keys(server, &key_prefix(GROUP, "flowschemas"));
    let looks = keys.iter().map(|key| tend_key(server, key));
    futures::future::try_join_all(looks).await.map(drop)
}

/// Looks at all schemas that name a level.
pub(super) async fn tend_all(server: &Inner, level: &str) -> Result<(), ApiError> {
    for key in keys(server, &key_prefix(GROUP, "flowschemas")) {
        let names_it = |schema: &Value| level_of(schema) == level;
        if server
            .store
            .get(&key)
            .is_some_and(|stored| names_it(&stored.value.content()))
        {
            tend_key(server, &key).await?;
        }
    }
    Ok(())
}

fn level_of(schema: &Value) -> &str {
    schema["spec"]["priorityLevelConfiguration"]["name"]
        .as_str()
        .unwrap_or("")
}

async fn tend_key(server: &Inner, key: &str) -> Result<(), ApiError> {
    let Some(stored) = server.store.get(key) else {
        return Ok(());
    };
    if told(server, &stored.value.content()) {
        return Ok(());
    }
    change(server, key, |schema| {
        if told(server, schema) {
            return;
        }
        let mut condition = wanted(server, schema);
        condition["lastTransitionTime"] = json!(server.now_text());
        let mut conditions: Vec<Value> = conditions(schema)
            .filter(|c| c["type"] != "Dangling")
            .cloned()
            .collect();
        conditions.push(condition);
        if !schema["status"].is_object() {
            schema["status"] = json!({});
        }
        schema["status"]["conditions"] = conditions.into();
    })
    .await
}

fn conditions(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["status"]["conditions"].as_array().into_iter().flatten()
}

/// The condition that a schema should have.
fn wanted(server: &Inner, schema: &Value) -> Value {
    let level = level_of(schema);
    let key = format!("{}{level}", key_prefix(GROUP, "prioritylevelconfigurations"));
    dangling(level, server.store.get(&key).is_some())
}

/// Whether a schema has the condition already.
fn told(server: &Inner, schema: &Value) -> bool {
    let wanted = wanted(server, schema);
    conditions(schema).any(|condition| {
        ["type", "status", "reason", "message"]
            .iter()
            .all(|key| condition[*key] == wanted[*key])
    })
}
