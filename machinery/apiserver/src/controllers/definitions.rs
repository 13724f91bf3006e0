//! Definitions: their status says that they are served; one that goes takes its objects with it.

use serde_json::json;

use crate::controllers::Progress;
use crate::controllers::garbage::{change, drop_finalizer};
use crate::controllers::sweep::Sweep;
use crate::definitions::{set_condition, status};
use crate::ops::WriteOptions;
use crate::ops::delete::{CUSTOM_CLEANUP, DeleteOptions};
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// Brings a definition forward.
pub(super) async fn tend(server: &Inner, name: &str) -> Result<Progress, ApiError> {
    let key = format!(
        "{}{name}",
        key_prefix("apiextensions.k8s.io", "customresourcedefinitions")
    );
    let Some(stored) = server.store.get(&key) else {
        return Ok(Progress::Done);
    };
    let links = stored.value.links();
    let now = server.now_text();
    if links.deletion_timestamp.is_none() {
        change(server, &key, |definition| {
            definition["status"] = status(&server.registry, definition, &now);
        })
        .await?;
        return Ok(Progress::Done);
    }
    if !links.finalizers.iter().any(|f| f == CUSTOM_CLEANUP) {
        return Ok(Progress::Done);
    }
    let content = stored.value.content();
    let text = |path: &str| {
        content
            .pointer(path)
            .and_then(|v| v.as_str())
            .unwrap_or("")
            .to_owned()
    };
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let served = server.registry.custom();
    let resource = served
        .resources()
        .iter()
        .find(|r| r.group == group && r.plural == plural);
    let mut sweep = Sweep::default();
    if let Some(resource) = resource {
        // Whoever deleted the definition was asked about it; its objects are not asked about again.
        let (wanted, options) = (DeleteOptions::default(), WriteOptions::internal().judged());
        sweep
            .collection(server, (&**resource, ""), &wanted, &options)
            .await;
    }
    if sweep.is_over() {
        return Ok(Progress::More);
    }
    let left = sweep.left.len();
    if left == 0 {
        drop_finalizer(server, &WriteOptions::internal(), &key, CUSTOM_CLEANUP).await?;
        return Ok(Progress::Done);
    }
    change(server, &key, |definition| {
        if !definition["status"].is_object() {
            definition["status"] = json!({});
        }
        let message = format!("CustomResource deletion is in progress: {left} remain");
        set_condition(
            &mut definition["status"],
            "Terminating",
            ("True", "InstanceDeletionInProgress", message),
            &now,
        );
    })
    .await?;
    sweep.failures.pop().map_or(Ok(Progress::Done), Err)
}
