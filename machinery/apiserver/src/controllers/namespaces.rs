//! Namespaces: each has its default service account, and one that goes takes its content with it.

use std::collections::BTreeMap;

use serde_json::json;

use crate::controllers::garbage::change;
use crate::controllers::sweep::Sweep;
use crate::controllers::{Place, Progress, accounts};
use crate::definitions::set_condition;
use crate::ops::WriteOptions;
use crate::ops::delete::{DeleteOptions, Propagation};
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// The finalizer in a namespace's spec that stands for its content.
const CONTENT: &str = "kubernetes";

/// Brings a namespace forward.
pub(super) async fn tend(server: &Inner, name: &str) -> Result<Progress, ApiError> {
    let key = format!("{}{name}", key_prefix("", "namespaces"));
    let Some(stored) = server.store.get(&key) else {
        return Ok(Progress::Done);
    };
    if stored.value.links().deletion_timestamp.is_none() {
        accounts::ensure_default(server, name).await?;
        return Ok(Progress::Done);
    }
    let wanted = DeleteOptions {
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    let options = WriteOptions::controller("namespace-controller");
    let mut sweep = Sweep::default();
    for resource in server.registry.stored() {
        if resource.namespaced {
            sweep
                .collection(server, (&*resource, name), &wanted, &options)
                .await;
            if sweep.is_over() {
                return Ok(Progress::More);
            }
        }
    }
    tell(server, &key, &sweep).await?;
    // What was refused is tried again.
    sweep.failures.pop().map_or(Ok(Progress::Done), Err)
}

/// Says what is left of a namespace's content, or lets it go.
async fn tell(server: &Inner, key: &str, sweep: &Sweep) -> Result<(), ApiError> {
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for stored in &sweep.left {
        let place = Place::of(&stored.key);
        let group = if place.group == "core" { "" } else { place.group };
        *left.entry(format!("{}.{group}", place.plural)).or_default() += 1;
        for finalizer in stored.value.links().finalizers {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let now = server.now_text();
    if left.is_empty() {
        return change(server, key, |namespace| {
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
    let mut failures: Vec<String> = sweep.failures.iter().map(ToString::to_string).collect();
    failures.sort();
    failures.dedup();
    change(server, key, |namespace| {
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
        let condition = if failures.is_empty() {
            let message = "All content successfully deleted, may be waiting on finalization";
            ("False", "ContentDeleted", message.to_owned())
        } else {
            let message = format!(
                "Failed to delete all resource types, {} remaining: {}",
                failures.len(),
                failures.join(", ")
            );
            ("True", "ContentDeletionFailed", message)
        };
        set_condition(status, "NamespaceDeletionContentFailure", condition, &now);
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
    .await
}
