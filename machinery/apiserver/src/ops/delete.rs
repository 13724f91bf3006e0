//! Delete: preconditions, propagation, finalizers; one object or a collection.

use jiff::Timestamp;
use machinery_store::Expect;
use machinery_value::Value;
use serde_json::json;

use crate::admission::{self, Operation};
use crate::definitions::set_condition;
use crate::meta;
use crate::ops::update::{RETRIES, ready_to_go};
use crate::ops::{WriteOptions, put, remove};
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::ApiError;

/// Holds an owner until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Holds an owner until its dependents have been let go.
pub(crate) const ORPHAN: &str = "orphan";
/// Holds a definition until its objects are gone.
pub(crate) const CUSTOM_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// DeleteOptions, as far as they change what happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_period: Option<i64>,
}

impl DeleteOptions {
    /// The grace that was asked for.
    fn grace(&self) -> Option<i64> {
        self.grace_period.map(at_least_a_second)
    }
}

/// Less than no time stands for a second.
fn at_least_a_second(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What a delete left behind.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object is gone; its last content.
    Gone(Value),
    /// The object stays until its finalizers are done; its present content.
    Going(Value),
}

/// Deletes one object, or marks it for deletion.
pub(crate) async fn delete(
    server: &Inner,
    resource: &Resource,
    namespace: &str,
    name: &str,
    wanted: &DeleteOptions,
    options: &WriteOptions,
) -> Result<Deleted, ApiError> {
    let key = resource.key(namespace, name);
    for _ in 0..RETRIES {
        let stored = server
            .store
            .get(&key)
            .ok_or_else(|| ApiError::not_found(resource.subject(), name))?;
        let old = resource.content(&stored.value);
        check_preconditions(resource, name, &old, wanted)?;
        admission::namespace::check_delete(resource, name)?;
        let asked = admission::Asked {
            resource,
            subresource: "",
            operation: Operation::Delete,
            name,
            path_name: name,
        };
        admission::validate(server, &asked, None, Some(&old), options)?;

        let mut new = old.clone();
        mark(server, resource, &mut new, wanted, options);
        if ready_to_go(resource, &new) {
            if options.dry_run {
                return Ok(Deleted::Gone(if is_pod(resource) { new } else { old }));
            }
            // A Pod that goes at once is marked before, so that whoever watches it sees why.
            let (last, revision) = if is_pod(resource) && new != old {
                match put(server, resource, &key, Expect::Revision(stored.revision), new).await? {
                    Ok(marked) => (resource.content(&marked.value), marked.revision),
                    Err(_) => continue,
                }
            } else {
                (old, stored.revision)
            };
            match remove(server, resource, &key, Expect::Revision(revision), last).await? {
                Ok(last) => return Ok(Deleted::Gone(resource.content(&last.value))),
                Err(_) => continue,
            }
        }
        if new == old || options.dry_run {
            return Ok(Deleted::Going(new));
        }
        match put(server, resource, &key, Expect::Revision(stored.revision), new).await? {
            Ok(stored) => return Ok(Deleted::Going(resource.content(&stored.value))),
            Err(_) => continue,
        }
    }
    Err(ApiError::modified(resource.subject(), name))
}

/// What the client says of the object must hold.
pub(crate) fn check_preconditions(
    resource: &Resource,
    name: &str,
    old: &Value,
    wanted: &DeleteOptions,
) -> Result<(), ApiError> {
    if let Some(uid) = &wanted.uid
        && uid != meta::uid(old)
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). \
             The object might have been deleted and then recreated",
            meta::uid(old)
        );
        return Err(ApiError::conflict(resource.kind_subject(), name, why));
    }
    if let Some(version) = &wanted.resource_version
        && version != meta::resource_version(old)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            meta::resource_version(old)
        );
        return Err(ApiError::conflict(resource.kind_subject(), name, why));
    }
    Ok(())
}

/// Sets what a deletion sets on an object that cannot go at once; harmless on one that can.
fn mark(
    server: &Inner,
    resource: &Resource,
    object: &mut Value,
    wanted: &DeleteOptions,
    options: &WriteOptions,
) {
    let is_deleting = meta::is_deleting(object);
    let present = object["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0);
    // Who ends gracefully is told nothing new but that it has less time.
    if is_deleting && present > 0 && wanted.grace().is_none_or(|grace| grace >= present) {
        return;
    }
    let mut finalizers: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
    let propagation = wanted
        .propagation
        .or_else(|| default_propagation(resource, &finalizers, options));
    if let Some(propagation) = propagation {
        finalizers.retain(|f| f != FOREGROUND && f != ORPHAN);
        match propagation {
            Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
            Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
            Propagation::Background => {}
        }
    }
    let is_definition =
        resource.group == "apiextensions.k8s.io" && resource.kind == "CustomResourceDefinition";
    if is_definition && !finalizers.iter().any(|f| f == CUSTOM_CLEANUP) && !is_deleting {
        finalizers.push(CUSTOM_CLEANUP.to_owned());
    }
    meta::set_finalizers(object, finalizers);

    if is_deleting {
        if let Some(grace) = wanted.grace().filter(|grace| *grace < present) {
            shorten(object, (present, grace), server.now());
        }
        return;
    }
    let grace = grace_period(resource, object, wanted);
    meta::set_text(object, "deletionTimestamp", server.time_text(grace));
    // Namespaces and definitions are marked by registries of their own, which set less.
    if is_definition {
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let condition = ("True", "InstanceDeletionPending", message.to_owned());
        set_condition(
            &mut object["status"],
            "Terminating",
            condition,
            &server.now_text(),
        );
    } else if resource.group.is_empty() && resource.kind == "Namespace" {
        object["status"]["phase"] = json!("Terminating");
    } else {
        meta::meta_mut(object).insert("deletionGracePeriodSeconds".into(), json!(grace));
        meta::bump_generation(object);
    }
}

/// Moves the end of a graceful deletion forward, and not into the past.
fn shorten(object: &mut Value, (present, mut grace): (i64, i64), now: Timestamp) {
    let now = now.as_second();
    let end = meta::text(object, "deletionTimestamp")
        .parse::<Timestamp>()
        .map_or(now, Timestamp::as_second);
    let mut end = end.saturating_sub(present).saturating_add(grace);
    if end <= now {
        end = now;
        // The time is over already; whoever ends the Pod still has to say so.
        grace = grace.min(1);
    }
    let end = Timestamp::from_second(end).unwrap_or(Timestamp::UNIX_EPOCH);
    meta::set_text(object, "deletionTimestamp", end.to_string());
    meta::meta_mut(object).insert("deletionGracePeriodSeconds".into(), json!(grace));
}

/// Jobs let their Pods live, for clients that never asked otherwise; everything else takes its dependents along.
fn default_propagation(
    resource: &Resource,
    finalizers: &[String],
    options: &WriteOptions,
) -> Option<Propagation> {
    let chosen = finalizers.iter().any(|f| f == FOREGROUND || f == ORPHAN);
    let is_job = resource.group == "batch" && resource.kind == "Job";
    if chosen || !is_job {
        return None;
    }
    let warning = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                   remove them or set propagationPolicy=Orphan to suppress this warning";
    options.warn(warning.to_owned());
    Some(Propagation::Orphan)
}

fn is_pod(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.kind == "Pod"
}

/// Only a Pod that runs on a node ends gracefully; everything else goes at once.
fn grace_period(resource: &Resource, object: &Value, wanted: &DeleteOptions) -> i64 {
    let placed = object["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let finished = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_pod(resource) || !placed || finished {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"]
        .as_i64()
        .map(at_least_a_second)
        .unwrap_or(30);
    wanted.grace().unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_grace_moves_the_end_forward() {
        let time = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        // (grace before, grace wanted, seconds since the first deletion) → (grace, seconds until the end)
        let cases = [
            ((60, 30, 0), (30, 30)),
            ((60, 30, 10), (30, 20)),
            ((60, 5, 10), (1, 0)),
            ((60, 5, 5), (1, 0)),
            ((60, 0, 10), (0, 0)),
        ];
        for ((before, wanted, passed), (grace, until)) in cases {
            let now = time(1_000_000);
            let end = time(1_000_000 - passed + before);
            let mut pod = json!({"metadata": {"deletionTimestamp": end.to_string(), "deletionGracePeriodSeconds": before}});
            shorten(&mut pod, (before, wanted), now);
            let expected = json!({"deletionTimestamp": time(1_000_000 + until).to_string(), "deletionGracePeriodSeconds": grace});
            assert_eq!(pod["metadata"], expected, "{before} {wanted} {passed}");
        }
    }
}
