//! What is known of a member's objects: for every kind that a Work names, the objects there that we manage.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::keys;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::lane::{DISPATCH, Errand, Lane, OBSERVE};
use crate::cache::{Cache, Cached, Change};
use crate::clock::later;
use crate::link::{Link, LinkError};
use crate::resource::Resource;
use crate::watch::{Following, follow};

/// How long a change of a member's object waits for more of the same.
const OBSERVE_AFTER: Duration = Duration::from_millis(30);
/// How long a new kind is waited for before its objects count as unknown.
const SYNC_PATIENCE: Duration = Duration::from_secs(10);
/// How soon a member that refused to show a kind is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The kinds of one member that are followed.
#[derive(Default)]
pub(crate) struct Objects {
    kinds: Mutex<HashMap<(String, String), Arc<Kind>>>,
}

/// One kind of a member's objects.
struct Kind {
    following: Following,
    /// The Works that wait until all of them are known.
    waiting: Mutex<HashSet<String>>,
    /// When the member was last asked although it had refused.
    asked: Mutex<Option<Timestamp>>,
    /// Nobody follows it any more.
    gone: CancellationToken,
}

/// Why the objects of a kind are not known.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// The member does not show them.
    Refused(LinkError),
    /// The member does not answer.
    Trouble(LinkError),
    /// It takes long.
    Slow,
}

impl Objects {
    /// The objects of a kind, once they are all known. If the member does not show them, or that takes too long, the Work
    /// that asks is looked at again as soon as they are known, however long it would wait by itself.
    pub(crate) async fn of(
        &self,
        lane: &Arc<Lane>,
        resource: &Resource,
        work: &str,
    ) -> Result<Arc<Cache>, Unknown> {
        let id = (resource.api_version(), resource.kind.clone());
        let kind = {
            let mut kinds = self.kinds.lock();
            // The way as it is now: another one comes before everything is forgotten that was read by this one.
            let Some(link) = lane.link() else {
                return Err(Unknown::Slow);
            };
            let start = || Kind {
                following: start(Arc::downgrade(lane), &link, resource),
                waiting: Mutex::default(),
                asked: Mutex::default(),
                gone: CancellationToken::new(),
            };
            kinds.entry(id).or_insert_with(|| Arc::new(start())).clone()
        };
        let cache = &kind.following.cache;
        if !cache.synced()
            && let Err(unknown) = kind.wait(lane.clock.now()).await
        {
            let mut waiting = kind.waiting.lock();
            if waiting.insert(work.to_owned()) && waiting.len() == 1 {
                tokio::spawn(wake_when_known(Arc::downgrade(lane), Arc::downgrade(&kind)));
            }
            return Err(unknown);
        }
        Ok(cache.clone())
    }

    /// The objects of a kind, if they are followed and known already.
    pub(crate) fn known(&self, resource: &Resource) -> Option<Arc<Cache>> {
        let kinds = self.kinds.lock();
        let cache = &kinds
            .get(&(resource.api_version(), resource.kind.clone()))?
            .following
            .cache;
        cache.synced().then(|| cache.clone())
    }

    /// Whether everything that is followed is known, as far as the member shows it.
    pub(crate) fn are_synced(&self) -> bool {
        let kinds = self.kinds.lock();
        kinds.values().all(|kind| {
            let cache = &kind.following.cache;
            cache.synced() || cache.trouble().as_ref().is_some_and(LinkError::is_refusal)
        })
    }

    /// The member answers again.
    pub(crate) fn hurry(&self) {
        self.kinds.lock().values().for_each(|kind| kind.following.hurry());
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.kinds.lock().clear();
    }

    /// What was last seen of a kind.
    pub(crate) fn seen(&self, api_version: &str, kind: &str) -> Option<u64> {
        let kinds = self.kinds.lock();
        let kind = kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        Some(kind.following.cache.seen_version())
    }
}

impl Kind {
    /// Returns when all objects are known, or says why they are not. A member that has refused is asked again, but not by
    /// each of the many Works that want to know.
    async fn wait(&self, now: Timestamp) -> Result<(), Unknown> {
        let cache = &self.following.cache;
        let mut troubles = cache.troubles();
        let known = troubles.borrow_and_update().clone().filter(LinkError::is_refusal);
        if let Some(refused) = known {
            let mut asked = self.asked.lock();
            if asked.is_some_and(|at| now < later(at, ASK_AGAIN)) {
                return Err(Unknown::Refused(refused));
            }
            *asked = Some(now);
            drop(asked);
            self.following.hurry();
        }
        let failed = async {
            while troubles.changed().await.is_ok() {
                if let Some(error) = troubles.borrow_and_update().clone() {
                    return error;
                }
            }
            std::future::pending().await
        };
        let answer = async {
            tokio::select! {
                () = cache.wait_synced() => Ok(()),
                error = failed => Err(match error.is_refusal() {
                    true => Unknown::Refused(error),
                    false => Unknown::Trouble(error),
                }),
            }
        };
        // Others may use its place meanwhile.
        tokio::time::timeout(SYNC_PATIENCE, answer)
            .await
            .unwrap_or(Err(Unknown::Slow))
    }
}

impl Drop for Kind {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

/// Has the Works that wait for a kind looked at when it is known.
async fn wake_when_known(lane: Weak<Lane>, kind: Weak<Kind>) {
    let Some((cache, gone)) = kind
        .upgrade()
        .map(|kind| (kind.following.cache.clone(), kind.gone.clone()))
    else {
        return;
    };
    tokio::select! {
        () = gone.cancelled() => {}
        () = cache.wait_synced() => {
            let (Some(lane), Some(kind)) = (lane.upgrade(), kind.upgrade()) else {
                return;
            };
            let waiting = std::mem::take(&mut *kind.waiting.lock());
            for work in waiting {
                lane.queue.add(Errand::Work(work), DISPATCH);
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
    let text = object.text();
    let head: Head<'_> = serde_json::from_slice(&text).ok()?;
    head.metadata
        .annotations
        .get(keys::WORK_NAME)
        .map(|name| name.to_string())
}
