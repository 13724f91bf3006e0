//! Namespaces: each has its default service account, and one that goes takes its content with it.

use std::collections::BTreeMap;

use serde_json::json;

use crate::controllers::garbage::{change, ignore_missing};
use crate::controllers::{Place, accounts, keys};
use crate::definitions::set_condition;
use crate::ops::WriteOptions;
use crate::ops::delete::{DeleteOptions, Propagation, delete};
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// The finalizer in a namespace's spec that stands for its content.
const CONTENT: &str = "kubernetes";

/// Brings a namespace forward.
pub(super) async fn tend(server: &Inner, name: &str) -> Result<(), ApiError> {
    let key = format!("{}{name}", key_prefix("", "namespaces"));
    let Some(stored) = server.store.get(&key) else {
        return Ok(());
    };
    if stored.value.links().deletion_timestamp.is_none() {
        return accounts::ensure_default(server, name).await;
    }
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    let mut refused = None;
    for resource in server.registry.stored() {
        if !resource.namespaced {
            continue;
        }
        for object in keys(server, &resource.collection(name)) {
            let place = Place::of(&object);
            let wanted = DeleteOptions {
                propagation: Some(Propagation::Background),
                ..DeleteOptions::default()
            };
            let done = delete(
                server,
                &resource,
                name,
                place.name,
                &wanted,
                &WriteOptions::internal(),
            )
            .await;
            // What may not be deleted stays, and the rest goes all the same.
            refused = ignore_missing(done).err().or(refused);
            if let Some(stored) = server.store.get(&object) {
                let what = format!("{}.{}", resource.plural, resource.group);
                *left.entry(what).or_default() += 1;
                for finalizer in stored.value.links().finalizers {
                    *finalizers.entry(finalizer).or_default() += 1;
                }
            }
        }
    }
    let now = server.now_text();
    if left.is_empty() {
        return change(server, &key, |namespace| {
            if let Some(list) = namespace["spec"]["finalizers"].as_array_mut() {
                list.retain(|f| f != CONTENT);
            }
        })
        .await;
    }
    let remaining: Vec<String> = left
        .iter()
        .map(|(what, n)| format!("{what} has {n} resource instances"))
        .collect();
    let held: Vec<String> = finalizers
        .iter()
        .map(|(f, n)| format!("{f} in {n} resource instances"))
        .collect();
    let remaining = format!("Some resources are remaining: {}", remaining.join(", "));
    let held_text = format!(
        "Some content in the namespace has finalizers remaining: {}",
        held.join(", ")
    );
    change(server, &key, |namespace| {
        let status = &mut namespace["status"];
        status["phase"] = json!("Terminating");
        for (kind, reason, message) in [
            (
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
        ] {
            set_condition(status, kind, ("False", reason, message.to_owned()), &now);
        }
        let deleted = match &refused {
            Some(error) => (
                "True",
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining: {error}",
                    left.len()
                ),
            ),
            None => (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
        };
        set_condition(status, "NamespaceDeletionContentFailure", deleted, &now);
        set_condition(
            status,
            "NamespaceContentRemaining",
            ("True", "SomeResourcesRemain", remaining.clone()),
            &now,
        );
        let condition = if held.is_empty() {
            (
                "False",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            ("True", "SomeFinalizersRemain", held_text.clone())
        };
        set_condition(status, "NamespaceFinalizersRemaining", condition, &now);
    })
    .await?;
    refused.map_or(Ok(()), Err)
}
