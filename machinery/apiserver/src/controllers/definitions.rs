//! Definitions: their status says that they are served; one that goes takes its objects with it.

use serde_json::json;

use crate::controllers::garbage::{change, drop_finalizer, ignore_missing};
use crate::controllers::{Place, keys};
use crate::definitions::{set_condition, status};
use crate::ops::WriteOptions;
use crate::ops::delete::{CUSTOM_CLEANUP, DeleteOptions, delete};
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// Brings a definition forward.
pub(super) async fn tend(server: &Inner, name: &str) -> Result<(), ApiError> {
    let key = format!(
        "{}{name}",
        key_prefix("apiextensions.k8s.io", "customresourcedefinitions")
    );
    let Some(stored) = server.store.get(&key) else {
        return Ok(());
    };
    let links = stored.value.links();
    let now = server.now_text();
    if links.deletion_timestamp.is_none() {
        return change(server, &key, |definition| {
            definition["status"] = status(&server.registry, definition, &now);
        })
        .await;
    }
    if !links.finalizers.iter().any(|f| f == CUSTOM_CLEANUP) {
        return Ok(());
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
    let mut left = 0;
    if let Some(resource) = resource {
        for object in keys(server, &resource.collection("")) {
            let place = Place::of(&object);
            let (wanted, options) = (DeleteOptions::default(), WriteOptions::internal());
            ignore_missing(delete(server, resource, place.namespace, place.name, &wanted, &options).await)?;
            left += usize::from(server.store.get(&object).is_some());
        }
    }
    if left == 0 {
        return drop_finalizer(server, &key, CUSTOM_CLEANUP).await;
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
    .await
}
