//! The end of a Work: it goes, and with it what is due to go from the member. What the Work holds and never sent, because it
//! was suspended or refused, is not sent now.

use std::sync::Arc;

use lockgate_api::Work;
use lockgate_engine::dispatch::{self, Withdraw};
use lockgate_engine::object;
use serde_json::Value;
use tokio::time::Instant;

use super::dispatching::{SendError, Sent, encode, member_resource, object_key};
use super::due::{Due, due};
use super::lane::Lane;
use super::telling;
use crate::cache::Key;
use crate::link::{DeleteOptions, Link, LinkError};
use crate::resource::Resource;
use crate::state::{self, State};

/// Lets a Work go, and with it what is due to go.
pub(super) async fn remove(
    state: &Arc<State>,
    lane: &Arc<Lane>,
    link: &Link,
    key: &Key,
    work: Work,
) -> Result<Sent, SendError> {
    if telling::is_let_go(state, key) {
        return Ok(Sent::Settled);
    }
    if dispatch::is_stranger(&work) {
        // Nothing of it was sent.
        telling::let_go(state, key, &work, false);
        return Ok(Sent::Settled);
    }
    let manifest = work.spec.workload.manifests.first();
    let (mut sent, mut again) = (Sent::Settled, false);
    match (due(state, &lane.cluster, &work).await?, manifest) {
        (Due::NotYet(why), _) => return Err(SendError::NotYet(why)),
        (Due::Untouched, _) => again = true,
        (Due::Nothing, _) | (_, None) => {}
        (decided, Some(manifest)) => {
            let keep = decided == Due::Keep;
            let preserve = match work.spec.preserve_resources_on_deletion {
                // Everything of a cluster that leaves stays with it, namespaces too.
                _ if keep => Preserve::Everything,
                Some(true) => Preserve::This,
                _ => Preserve::Nothing,
            };
            match withdraw(state, lane, link, manifest, preserve).await {
                Ok(withdrawn) => sent = withdrawn,
                // A cluster that leaves and cannot be reached keeps what it has, marks and all.
                Err(SendError::Member(error)) if keep => {
                    tracing::warn!(cluster = %lane.cluster, work = %key.name, %error, "the member keeps our marks");
                }
                Err(error) => return Err(error),
            }
        }
    }
    telling::let_go(state, key, &work, again);
    Ok(sent)
}

/// What stays in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preserve {
    Nothing,
    /// The object, and so its namespace.
    This,
    /// Whatever is there.
    Everything,
}

/// Has the namespace of an object that is preserved stay in the member, whenever it would go: the object would go with it.
async fn keep_namespace(state: &State, lane: &Lane, link: &Link, manifest: &Value) -> Result<(), SendError> {
    let name = object::meta_text(manifest, "namespace");
    if name.is_empty() {
        return Ok(());
    }
    let resource = Resource::namespaces();
    let (key, path) = (Key::new("", name), resource.object("", name));
    let mut known: Option<Value> = lane
        .objects
        .known(&resource)
        .and_then(|objects| objects.get(&key))
        .and_then(|cached| state::parse(&cached));
    for _ in 0..4 {
        let live: Value = match known.take() {
            Some(known) => known,
            None => match link.get(&path).await {
                Ok(answer) => {
                    serde_json::from_slice(&answer).map_err(|e| SendError::NotYet(e.to_string()))?
                }
                // Then the object is not there either.
                Err(LinkError::NotFound) => return Ok(()),
                Err(error) => return Err(SendError::Member(error)),
            },
        };
        let Some(marked) = dispatch::keeping(&live) else {
            return Ok(());
        };
        if !state.guard.may_write() {
            return Err(not_leading());
        }
        match link.replace(&path, encode(&marked)).await {
            Ok(_) | Err(LinkError::NotFound) => return Ok(()),
            Err(LinkError::Conflict) => {}
            Err(error) => return Err(SendError::Member(error)),
        }
    }
    Err(SendError::NotYet("the member's namespace keeps changing".into()))
}

fn not_leading() -> SendError {
    SendError::NotYet("another controller may be leading by now".into())
}

/// Removes a member's object, or our marks on it.
pub(super) async fn withdraw(
    state: &State,
    lane: &Lane,
    link: &Link,
    manifest: &Value,
    preserve: Preserve,
) -> Result<Sent, SendError> {
    let Some(cluster) = state.cluster(&lane.cluster) else {
        return Ok(Sent::Settled);
    };
    let Some(resource) = member_resource(&cluster, manifest) else {
        if cluster.status.api_enablements.is_empty() {
            return Err(SendError::NotYet(
                "what the member serves is not known yet".into(),
            ));
        }
        // What the member does not serve, it does not have.
        return Ok(Sent::Settled);
    };
    let key = object_key(manifest);
    let path = resource.object(&key.namespace, &key.name);
    let begun = Instant::now();
    // What is known of the object will do at first: the request names its version, and a member that has another refuses.
    let mut known: Option<Value> = lane
        .objects
        .known(&resource)
        .and_then(|objects| objects.get(&key))
        .and_then(|cached| state::parse(&cached));
    for _ in 0..4 {
        let remembered = known.is_some();
        let live: Option<Value> = match known.take() {
            Some(known) => Some(known),
            None => match link.get(&path).await {
                Ok(answer) => {
                    Some(serde_json::from_slice(&answer).map_err(|e| SendError::NotYet(e.to_string()))?)
                }
                Err(LinkError::NotFound) => None,
                // It served the kind when it was last asked. Whether it does is found out by the next probe; until then
                // this may be the word of something in between.
                Err(LinkError::NotServed) => {
                    return Err(SendError::NotYet(format!(
                        "the member does not serve its {} at the moment",
                        resource.plural
                    )));
                }
                Err(error) => return Err(SendError::Member(error)),
            },
        };
        let withdrawn = dispatch::withdraw(manifest, live.as_ref(), preserve != Preserve::Nothing);
        if preserve == Preserve::This && matches!(withdrawn, Withdraw::Strip(_)) {
            keep_namespace(state, lane, link, manifest).await?;
        }
        let mut removed = None;
        let result = match withdrawn {
            // That there is nothing to do is the member's to say.
            Withdraw::Nothing if remembered => continue,
            Withdraw::Nothing => return Ok(Sent::Member(begun.elapsed())),
            _ if !state.guard.may_write() => {
                return Err(not_leading());
            }
            Withdraw::Strip(body) => link.replace(&path, encode(&body)).await.map(drop),
            Withdraw::Delete {
                uid,
                resource_version,
            } => {
                let options = DeleteOptions::as_read(&uid, &resource_version);
                removed = Some(uid);
                link.delete(&path, &options).await
            }
        };
        let (api_version, kind) = (resource.api_version(), &resource.kind);
        state
            .metrics
            .deleted(result.is_ok(), &api_version, kind, &lane.cluster);
        match result {
            Ok(()) | Err(LinkError::NotFound) => {
                if let Some(uid) = removed {
                    lane.removed.note(manifest, &uid, state.clock.now());
                }
                return Ok(Sent::Member(begun.elapsed()));
            }
            Err(LinkError::Conflict) => {}
            Err(error) => return Err(SendError::Member(error)),
        }
    }
    Err(SendError::NotYet("the member's object keeps changing".into()))
}
