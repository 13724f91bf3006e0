//! The end of a Work: it goes, and with it what is due to go from the member. What the Work holds and never sent, because it
//! was suspended or refused, is not sent now.

use std::sync::Arc;

use lockgate_api::Work;
use lockgate_engine::dispatch::{self, Withdraw};
use serde_json::Value;
use tokio::time::Instant;

use super::dispatching::{SendError, Sent, encode, member_resource, object_key};
use super::due::{Due, due};
use super::lane::Lane;
use super::telling;
use crate::cache::Key;
use crate::link::{DeleteOptions, Link, LinkError};
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
    let manifest = work.spec.workload.manifests.first();
    let mut sent = Sent::Settled;
    match (due(state, &lane.cluster, &work).await?, manifest) {
        (Due::NotYet(why), _) => return Err(SendError::NotYet(why)),
        (Due::Untouched, _) | (_, None) => {}
        (decided, Some(manifest)) => {
            let keep = decided == Due::Keep;
            let preserve = keep || work.spec.preserve_resources_on_deletion == Some(true);
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
    telling::let_go(state, key, &work);
    Ok(sent)
}

/// Removes a member's object, or our marks on it.
async fn withdraw(
    state: &State,
    lane: &Lane,
    link: &Link,
    manifest: &Value,
    preserve: bool,
) -> Result<Sent, SendError> {
    let Some(cluster) = state.cluster(&lane.cluster) else {
        return Ok(Sent::Settled);
    };
    let Some(resource) = member_resource(&cluster, manifest) else {
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
                Err(LinkError::NotFound | LinkError::NotServed) => None,
                Err(error) => return Err(SendError::Member(error)),
            },
        };
        let result = match dispatch::withdraw(manifest, live.as_ref(), preserve) {
            // That there is nothing to do is the member's to say.
            Withdraw::Nothing if remembered => continue,
            Withdraw::Nothing => return Ok(Sent::Member(begun.elapsed())),
            _ if !state.guard.may_write() => {
                return Err(SendError::NotYet(
                    "another controller may be leading by now".into(),
                ));
            }
            Withdraw::Strip(body) => link.replace(&path, encode(&body)).await.map(drop),
            Withdraw::Delete {
                uid,
                resource_version,
            } => {
                let options = DeleteOptions {
                    uid: Some(uid),
                    resource_version: Some(resource_version),
                    propagation: Some("Background"),
                };
                link.delete(&path, &options).await
            }
        };
        let (api_version, kind) = (resource.api_version(), &resource.kind);
        state
            .metrics
            .deleted(result.is_ok(), &api_version, kind, &lane.cluster);
        match result {
            Ok(()) | Err(LinkError::NotFound) => return Ok(Sent::Member(begun.elapsed())),
            Err(LinkError::Conflict) => {}
            Err(error) => return Err(SendError::Member(error)),
        }
    }
    Err(SendError::NotYet("the member's object keeps changing".into()))
}
