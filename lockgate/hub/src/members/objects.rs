//! What is known of a member's objects: for every kind that a Work names, the objects there that we manage.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockgate_api::keys;
use parking_lot::Mutex;
use serde::Deserialize;

use super::lane::{DISPATCH, Errand, Lane, OBSERVE};
use crate::cache::{Cache, Cached, Change};
use crate::link::Link;
use crate::resource::Resource;
use crate::watch::{Following, follow};

/// How long a change of a member's object waits for more of the same.
const OBSERVE_AFTER: Duration = Duration::from_millis(30);
/// How long a new kind is waited for before its objects count as unknown.
const SYNC_PATIENCE: Duration = Duration::from_secs(10);

/// The kinds of one member that are followed.
#[derive(Default)]
pub(crate) struct Objects {
    kinds: Mutex<HashMap<(String, String), Arc<Following>>>,
}

impl Objects {
    /// The objects of a kind, once they are all known. `None` if that takes too long: then the Work that asks is looked at
    /// again as soon as they are, however long it would wait by itself.
    pub(crate) async fn of(
        &self,
        lane: &Arc<Lane>,
        link: &Link,
        resource: &Resource,
        work: &str,
    ) -> Option<Arc<Cache>> {
        let id = (resource.api_version(), resource.kind.clone());
        let following = {
            let mut kinds = self.kinds.lock();
            kinds
                .entry(id)
                .or_insert_with(|| Arc::new(start(Arc::downgrade(lane), link, resource)))
                .clone()
        };
        if !following.cache.synced() {
            let known = tokio::time::timeout(SYNC_PATIENCE, following.cache.wait_synced());
            if known.await.is_err() {
                tokio::spawn(add_when_known(
                    Arc::downgrade(lane),
                    following,
                    Errand::Work(work.to_owned()),
                ));
                return None;
            }
        }
        Some(following.cache.clone())
    }

    /// The objects of a kind, if they are followed and known already.
    pub(crate) fn known(&self, resource: &Resource) -> Option<Arc<Cache>> {
        let kinds = self.kinds.lock();
        let following = kinds.get(&(resource.api_version(), resource.kind.clone()))?;
        following.cache.synced().then(|| following.cache.clone())
    }

    /// Whether everything that is followed is known.
    pub(crate) fn are_synced(&self) -> bool {
        self.kinds
            .lock()
            .values()
            .all(|following| following.cache.synced())
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.kinds.lock().clear();
    }

    /// What was last seen of a kind.
    pub(crate) fn seen(&self, api_version: &str, kind: &str) -> Option<u64> {
        let kinds = self.kinds.lock();
        let following = kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        Some(following.cache.seen_version())
    }
}

async fn add_when_known(lane: Weak<Lane>, following: Arc<Following>, errand: Errand) {
    let Some(closed) = lane.upgrade().map(|lane| lane.closed.clone()) else {
        return;
    };
    tokio::select! {
        () = closed.cancelled() => {}
        () = following.cache.wait_synced() => {
            if let Some(lane) = lane.upgrade() {
                lane.queue.add(errand, DISPATCH);
            }
        }
    }
}

fn start(lane: Weak<Lane>, link: &Link, resource: &Resource) -> Following {
    let selector = format!("{}=true", keys::MANAGED);
    follow(link, resource, "", Some(&selector), move |change| {
        if let Some(lane) = lane.upgrade() {
            changed(&lane, change);
        }
    })
}

/// The Work of an object that changed needs attention.
fn changed(lane: &Lane, change: &Change) {
    if change.own {
        return;
    }
    let work = change
        .new
        .as_deref()
        .and_then(work_of)
        .or_else(|| change.old.as_deref().and_then(work_of));
    let Some(work) = work.map(Errand::Work) else {
        return;
    };
    // Something that is gone is made again at once; the rest may tell more soon.
    if change.new.is_none() {
        lane.queue.add(work, OBSERVE);
    } else {
        lane.queue.add_soon(work, OBSERVE, OBSERVE_AFTER);
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Annotated<'a>,
}

#[derive(Deserialize)]
struct Annotated<'a> {
    #[serde(borrow, default)]
    annotations: HashMap<&'a str, std::borrow::Cow<'a, str>>,
}

/// The name of the Work that an object says it is from.
fn work_of(object: &Cached) -> Option<String> {
    let head: Head<'_> = serde_json::from_slice(&object.body).ok()?;
    head.metadata
        .annotations
        .get(keys::WORK_NAME)
        .map(|name| name.to_string())
}
