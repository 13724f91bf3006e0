//! Garbage collection by owner references: background, foreground and orphaning.
//!
//! Evidence decides: an object goes when every owner that it names is known to be gone, or is itself going and
//! waits for it. An owner whose kind is not served, or that cannot be where the reference puts it, proves nothing.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use machinery_store::Kind;
use machinery_value::Value;
use parking_lot::Mutex;
use serde_json::json;

use crate::controllers::{Job, Place, resource_of};
use crate::meta;
use crate::object::{Links, OwnerReference};
use crate::ops::WriteOptions;
use crate::ops::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, delete};
use crate::ops::update::{Part, Target, update};
use crate::server::Inner;
use crate::status::ApiError;

/// Who depends on whom. Only objects with owners are in it.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The owners of each dependent.
    owners: HashMap<String, Owners>,
    /// The dependents' keys of each owner's uid.
    dependents: HashMap<String, BTreeSet<String>>,
    /// Objects that are going and wait for their dependents, by uid.
    waiting: HashMap<String, String>,
    /// Dependents with an owner whose kind was not served when they were looked at.
    unproven: Mutex<BTreeSet<String>>,
}

/// The owners that an object names.
#[derive(Debug, Default)]
struct Owners {
    uids: Vec<String>,
    /// A hash of all that the references say.
    said: u64,
}

impl Owners {
    fn of(references: &[OwnerReference]) -> Self {
        Self {
            uids: references.iter().map(|reference| reference.uid.clone()).collect(),
            said: said(references),
        }
    }
}

fn said(references: &[OwnerReference]) -> u64 {
    let mut hasher = DefaultHasher::new();
    references.hash(&mut hasher);
    hasher.finish()
}

impl Graph {
    /// Takes a change in, and says what to look at. An object that names the owners that it named is not looked at again for
    /// their sake: whoever of them goes brings it here.
    pub(super) fn noticed(&mut self, kind: Kind, key: &str, links: &Links) -> Vec<Job> {
        let mut jobs = Vec::new();
        let before = self.owners.get(key);
        for uid in before.iter().flat_map(|owners| &owners.uids) {
            if let Some(owner) = self.waiting.get(uid) {
                jobs.push(Job::Owner(owner.clone()));
            }
        }
        let references = &links.owner_references;
        let same = match before {
            Some(owners) => owners.said == said(references),
            None => references.is_empty(),
        };
        if kind == Kind::Delete || !same {
            self.unlink(key);
        }
        if kind == Kind::Delete {
            self.waiting.remove(&links.uid);
            jobs.extend(
                self.dependents
                    .get(&links.uid)
                    .into_iter()
                    .flatten()
                    .cloned()
                    .map(Job::Dependent),
            );
            return jobs;
        }
        if !same && !references.is_empty() {
            for reference in references {
                let dependents = self.dependents.entry(reference.uid.clone()).or_default();
                dependents.insert(key.to_owned());
            }
            self.owners.insert(key.to_owned(), Owners::of(references));
            jobs.push(Job::Dependent(key.to_owned()));
        }
        let holds = links.finalizers.iter().any(|f| f == FOREGROUND || f == ORPHAN);
        if links.deletion_timestamp.is_some() && holds {
            self.waiting.insert(links.uid.clone(), key.to_owned());
            jobs.push(Job::Owner(key.to_owned()));
        } else {
            self.waiting.remove(&links.uid);
        }
        jobs
    }

    /// A kind may be served now that was not: what to look at again.
    pub(super) fn defined(&mut self) -> Vec<Job> {
        let unproven = std::mem::take(self.unproven.get_mut());
        unproven.into_iter().map(Job::Dependent).collect()
    }

    fn unlink(&mut self, key: &str) {
        let before = self.owners.remove(key).unwrap_or_default();
        for uid in &before.uids {
            if let Some(set) = self.dependents.get_mut(uid) {
                set.remove(key);
                if set.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }

    fn dependents_of(&self, uid: &str) -> impl Iterator<Item = &String> {
        self.dependents.get(uid).into_iter().flatten()
    }
}

/// What an owner reference is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is there, or nothing proves that it is not.
    Holds,
    /// Its kind is not served, which proves nothing.
    Unserved,
    /// It is going, and waits for this dependent to go first.
    Waits,
    /// It is gone.
    Gone,
}

impl Owner {
    fn holds(self) -> bool {
        matches!(self, Self::Holds | Self::Unserved)
    }
}

fn judge(server: &Inner, namespace: &str, reference: &OwnerReference) -> Owner {
    let Some(resource) = server.registry.find_kind(&reference.api_version, &reference.kind) else {
        return Owner::Unserved;
    };
    if resource.namespaced && namespace.is_empty() {
        return Owner::Holds;
    }
    let Some(stored) = server.store.get(&resource.key(namespace, &reference.name)) else {
        return Owner::Gone;
    };
    let links = stored.value.links();
    if links.uid != reference.uid {
        return Owner::Gone;
    }
    let waits = links.deletion_timestamp.is_some() && links.finalizers.iter().any(|f| f == FOREGROUND);
    if waits && reference.block_owner_deletion {
        Owner::Waits
    } else {
        Owner::Holds
    }
}

/// Removes a dependent that nobody holds any more, or the references that hold nothing.
pub(super) async fn dependent(server: &Inner, graph: &Graph, key: &str) -> Result<(), ApiError> {
    let (Some(resource), Some(stored)) = (resource_of(server, key), server.store.get(key)) else {
        return Ok(());
    };
    let links = stored.value.links();
    if links.deletion_timestamp.is_some() || links.owner_references.is_empty() {
        return Ok(());
    }
    let place = Place::of(key);
    let judged: Vec<Owner> = links
        .owner_references
        .iter()
        .map(|o| judge(server, place.namespace, o))
        .collect();
    if judged.contains(&Owner::Unserved) {
        graph.unproven.lock().insert(key.to_owned());
    }
    if judged.iter().any(|owner| owner.holds()) {
        let stale: Vec<String> = links
            .owner_references
            .iter()
            .zip(&judged)
            .filter(|(_, owner)| !owner.holds())
            .map(|(reference, _)| reference.uid.clone())
            .collect();
        if !stale.is_empty() {
            drop_references(server, key, &stale).await?;
        }
        return Ok(());
    }
    let has_dependents = graph.dependents_of(&links.uid).next().is_some();
    let propagation = if links.finalizers.iter().any(|f| f == ORPHAN) {
        Propagation::Orphan
    } else if links.finalizers.iter().any(|f| f == FOREGROUND)
        || (judged.contains(&Owner::Waits) && has_dependents)
    {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let wanted = DeleteOptions {
        uid: Some(links.uid),
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    ignore_missing(
        delete(
            server,
            &resource,
            place.namespace,
            place.name,
            &wanted,
            &collector(),
        )
        .await,
    )
}

/// How policies know the garbage collector, whose writes they judge.
fn collector() -> WriteOptions {
    WriteOptions::controller("generic-garbage-collector")
}

/// Moves an object that waits for its dependents forward.
pub(super) async fn owner(server: &Inner, graph: &Graph, key: &str) -> Result<(), ApiError> {
    let Some(stored) = server.store.get(key) else {
        return Ok(());
    };
    let links = stored.value.links();
    if links.deletion_timestamp.is_none() {
        return Ok(());
    }
    let dependents: Vec<String> = graph.dependents_of(&links.uid).cloned().collect();
    if links.finalizers.iter().any(|f| f == ORPHAN) {
        for dependent in &dependents {
            drop_references(server, dependent, std::slice::from_ref(&links.uid)).await?;
        }
        return drop_finalizer(server, &collector(), key, ORPHAN).await;
    }
    if links.finalizers.iter().any(|f| f == FOREGROUND) {
        let mut blocked = false;
        for dependent_key in &dependents {
            let Some(stored) = server.store.get(dependent_key) else {
                continue;
            };
            let held = stored.value.links();
            blocked |= held
                .owner_references
                .iter()
                .any(|o| o.uid == links.uid && o.block_owner_deletion);
            dependent(server, graph, dependent_key).await?;
        }
        if !blocked {
            return drop_finalizer(server, &collector(), key, FOREGROUND).await;
        }
    }
    Ok(())
}

async fn drop_references(server: &Inner, key: &str, uids: &[String]) -> Result<(), ApiError> {
    change_as(server, &collector(), key, |content| {
        let Some(list) = content["metadata"]["ownerReferences"].as_array() else {
            return;
        };
        let kept: Vec<Value> = list
            .iter()
            .filter(|o| !uids.iter().any(|uid| o["uid"] == uid.as_str()))
            .cloned()
            .collect();
        let metadata = meta::meta_mut(content);
        if kept.is_empty() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".into(), json!(kept));
        }
    })
    .await
}

/// Takes one finalizer off the object at `key`.
pub(super) async fn drop_finalizer(
    server: &Inner,
    options: &WriteOptions,
    key: &str,
    finalizer: &str,
) -> Result<(), ApiError> {
    change_as(server, options, key, |content| {
        let kept = meta::finalizers(content)
            .into_iter()
            .filter(|f| *f != finalizer)
            .map(str::to_owned)
            .collect();
        meta::set_finalizers(content, kept);
    })
    .await
}

/// Changes the object at `key`, if it is there, in the server's own name.
pub(super) async fn change(server: &Inner, key: &str, edit: impl Fn(&mut Value)) -> Result<(), ApiError> {
    change_as(server, &WriteOptions::internal(), key, edit).await
}

async fn change_as(
    server: &Inner,
    options: &WriteOptions,
    key: &str,
    edit: impl Fn(&mut Value),
) -> Result<(), ApiError> {
    let Some(resource) = resource_of(server, key) else {
        return Ok(());
    };
    let place = Place::of(key);
    let target = Target {
        resource: &resource,
        namespace: place.namespace,
        name: place.name,
        part: Part::Whole,
    };
    let result = update(server, &target, options, |present| {
        let mut content = present.clone();
        edit(&mut content);
        Ok(content)
    })
    .await;
    ignore_missing(result)
}

/// What is gone needs no more work.
pub(super) fn ignore_missing<T>(result: Result<T, ApiError>) -> Result<(), ApiError> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(uid: &str, owners: &[(&str, &str)]) -> Links {
        let owner = |(uid, name): &(&str, &str)| OwnerReference {
            uid: (*uid).to_owned(),
            name: (*name).to_owned(),
            ..OwnerReference::default()
        };
        Links {
            uid: uid.to_owned(),
            owner_references: owners.iter().map(owner).collect(),
            ..Links::default()
        }
    }

    fn going(uid: &str) -> Links {
        Links {
            finalizers: vec![FOREGROUND.to_owned()],
            deletion_timestamp: Some("2026-01-01T00:00:00Z".to_owned()),
            ..links(uid, &[])
        }
    }

    #[test]
    fn a_dependent_is_looked_at_when_its_owners_change_or_go() {
        let mut graph = Graph::default();
        let dependent = || Job::Dependent("/pod".to_owned());
        let owner = || Job::Owner("/set".to_owned());
        let (put, delete) = (Kind::Put, Kind::Delete);
        let owned = links("p", &[("s", "set")]);
        for (what, (kind, key, links), jobs) in [
            ("it comes", (put, "/pod", owned.clone()), vec![dependent()]),
            ("its status changes", (put, "/pod", owned.clone()), vec![]),
            (
                "its owner has another name",
                (put, "/pod", links("p", &[("s", "other")])),
                vec![dependent()],
            ),
            (
                "another owner comes",
                (put, "/pod", links("p", &[("s", "set"), ("t", "two")])),
                vec![dependent()],
            ),
            (
                "that one goes",
                (delete, "/two", links("t", &[])),
                vec![dependent()],
            ),
            ("nobody owns it", (put, "/pod", links("p", &[])), vec![]),
            ("the owner is there", (put, "/set", links("s", &[])), vec![]),
            (
                "it is owned again",
                (put, "/pod", owned.clone()),
                vec![dependent()],
            ),
            ("the owner waits for it", (put, "/set", going("s")), vec![owner()]),
            (
                "it changes meanwhile",
                (put, "/pod", owned.clone()),
                vec![owner()],
            ),
            ("it goes", (delete, "/pod", owned.clone()), vec![owner()]),
            ("the owner goes", (delete, "/set", going("s")), vec![]),
        ] {
            assert_eq!(graph.noticed(kind, key, &links), jobs, "{what}");
        }
        assert!(graph.owners.is_empty() && graph.dependents.is_empty() && graph.waiting.is_empty());
    }
}
