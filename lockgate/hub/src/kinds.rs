//! The kinds of templates: those that a policy, a binding or a Work names, and Namespaces. Each is followed from the moment that it is
//! wanted and served; a new definition is noticed at once.
//!
//! A policy may have gone while nobody looked, and left a claim on a template that waited for it: kinds that no policy and no
//! binding names are asked for claims once, at the start.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockgate_api::keys;
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{Skips, Unserved};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::Notify;

use crate::cache::{Cache, Key};
use crate::discovery::{Discovery, discover};
use crate::intake;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::state::{self, State, WALK};
use crate::watch::{Following, follow};

/// apiVersion and kind.
pub(crate) type KindId = (String, String);

/// How soon a wanted kind that is not served is looked for again, if no definition says that it came.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How many kinds are asked for claims at once.
const QUESTIONS_AT_ONCE: usize = 8;

/// The kinds that are followed.
pub(crate) struct Kinds {
    followed: RwLock<HashMap<KindId, Arc<Kind>>>,
    discovery: Mutex<Option<Arc<Discovery>>>,
    definitions: Arc<Cache>,
    changed: Notify,
    looks: Mutex<Looks>,
    /// What is never a template.
    pub(crate) skips: Skips,
}

/// How often somebody asked which kinds are wanted and served, and up to which of these questions it was found out.
#[derive(Default)]
struct Looks {
    asked: u64,
    done: u64,
}

/// One kind of template.
pub(crate) struct Kind {
    pub(crate) resource: Resource,
    pub(crate) cache: Arc<Cache>,
    /// Whether it is served because of a definition.
    pub(crate) defined: bool,
    /// Whether all its objects are known.
    known: AtomicBool,
    /// Whether all of them were put on the queue since.
    introduced: AtomicBool,
    following: Following,
}

impl Kinds {
    pub(crate) fn new(definitions: Arc<Cache>, skips: Skips) -> Self {
        Self {
            followed: RwLock::default(),
            discovery: Mutex::default(),
            definitions,
            changed: Notify::new(),
            looks: Mutex::new(Looks { asked: 1, done: 0 }),
            skips,
        }
    }

    /// A kind whose objects are all known.
    pub(crate) fn served(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let followed = self.followed.read();
        let kind = followed.get(&(api_version.to_owned(), kind.to_owned()))?;
        kind.known.load(Ordering::Acquire).then(|| kind.clone())
    }

    /// Whether the hub serves a kind and has not shown all its objects: nobody can tell what is said of them.
    pub(crate) fn is_unread(&self, api_version: &str, kind: &str) -> bool {
        let followed = self.followed.read();
        let kind = followed.get(&(api_version.to_owned(), kind.to_owned()));
        kind.is_some_and(|kind| !kind.known.load(Ordering::Acquire))
    }

    /// The kind of a template whose objects are all known, in its own version or in any other.
    pub(crate) fn served_as_any(&self, id: &TemplateId) -> Option<Arc<Kind>> {
        self.served(&id.api_version, &id.kind)
            .or_else(|| self.versions(id.group(), &id.kind).into_iter().next())
    }

    /// Every version of a kind whose objects are all known.
    pub(crate) fn versions(&self, group: &str, kind: &str) -> Vec<Arc<Kind>> {
        let followed = self.followed.read();
        let same = followed
            .values()
            .filter(|known| known.resource.group == group && known.resource.kind == kind);
        same.filter(|known| known.known.load(Ordering::Acquire))
            .cloned()
            .collect()
    }

    /// Whether the kind's definition is being deleted, so that its objects go without anybody having asked for it.
    pub(crate) fn is_going(&self, api_version: &str, kind: &str) -> bool {
        self.definition(api_version, kind)
            .is_some_and(|definition| !definition["metadata"]["deletionTimestamp"].is_null())
    }

    /// Whether a kind has a definition, as far as is known, and is not one that every server has.
    pub(crate) fn is_defined(&self, api_version: &str, kind: &str) -> bool {
        self.definition(api_version, kind).is_some()
    }

    /// Every kind that is followed.
    pub(crate) fn all(&self) -> Vec<(KindId, Arc<Kind>)> {
        let followed = self.followed.read();
        let mut all: Vec<_> = followed
            .iter()
            .map(|(id, kind)| (id.clone(), kind.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Returns when everything that is followed is known, as far as the hub shows it.
    pub(crate) async fn wait_known(&self) {
        for (_, kind) in self.all() {
            let mut troubles = kind.cache.troubles();
            let refused = troubles.wait_for(|trouble| trouble.as_ref().is_some_and(LinkError::is_refusal));
            tokio::select! {
                biased;
                () = kind.cache.wait_synced() => {}
                _ = refused => continue,
            }
            while !kind.introduced.load(Ordering::Acquire) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The kinds that are followed and not known.
    pub(crate) fn unknown(&self) -> Vec<KindId> {
        let followed = self.followed.read();
        let unknown = followed
            .iter()
            .filter(|(_, kind)| !kind.known.load(Ordering::Acquire));
        unknown.map(|(id, _)| id.clone()).collect()
    }

    /// Why nothing of a kind is propagated, if that is so; none while it is being read.
    pub(crate) fn unserved(&self, api_version: &str, kind: &str) -> Option<Unserved> {
        if self.skips.skip_kind(api_version, kind) {
            return Some(Unserved::Never);
        }
        let id = (api_version.to_owned(), kind.to_owned());
        let Some(kind) = self.followed.read().get(&id).cloned() else {
            return Some(Unserved::NotServed);
        };
        if kind.defined && !self.is_defined(api_version, &id.1) {
            // A server may go on with a watch for a while.
            return Some(Unserved::NotServed);
        }
        match kind.cache.trouble()? {
            LinkError::NotServed => Some(Unserved::NotServed),
            error if error.is_refusal() && !kind.known.load(Ordering::Acquire) => {
                Some(Unserved::NotShown(error.to_string()))
            }
            _ => None,
        }
    }

    /// What is wanted or served may have changed.
    pub(crate) fn look(&self) {
        self.looks.lock().asked += 1;
        self.changed.notify_one();
    }

    /// Whether everything that is wanted and served is followed, and all of it is known.
    pub(crate) fn is_settled(&self) -> bool {
        let is_found_out = {
            let looks = self.looks.lock();
            looks.asked == looks.done
        };
        is_found_out
            && self
                .followed
                .read()
                .values()
                .all(|kind| kind.introduced.load(Ordering::Acquire) || kind.is_hidden())
            && !self.awaits_definition()
    }

    /// Whether something that is defined again is not followed again yet.
    fn awaits_definition(&self) -> bool {
        let unserved = |kind: &Kind| matches!(kind.cache.trouble(), Some(LinkError::NotServed));
        self.all().iter().any(|((api_version, name), kind)| {
            let definition = unserved(kind)
                .then(|| self.definition(api_version, name))
                .flatten();
            definition.is_some_and(|definition| defined(&definition, api_version, name).is_some())
        })
    }

    fn definition(&self, api_version: &str, kind: &str) -> Option<Value> {
        let (group, _) = api_version.split_once('/')?;
        let mut found = None;
        self.definitions.for_each(|cached| {
            // The name ends in the group, so that few need to be read.
            if found.is_none() && cached.key.name.ends_with(&format!(".{group}")) {
                found = state::parse::<Value>(cached).filter(|d| d["spec"]["names"]["kind"] == kind);
            }
        });
        found
    }

    /// The resource behind a kind, as its definition or discovery tells it.
    fn resource(&self, (api_version, kind): &KindId) -> Option<Resource> {
        if let Some(definition) = self.definition(api_version, kind) {
            return defined(&definition, api_version, kind);
        }
        let discovery = self.discovery.lock().clone()?;
        let resource = discovery.get(api_version, kind)?;
        ["list", "watch"]
            .iter()
            .all(|verb| resource.can(verb))
            .then(|| resource.clone())
    }
}

impl Kind {
    /// Whether the hub does not show its objects. Nobody waits for those.
    fn is_hidden(&self) -> bool {
        let trouble = self.cache.trouble();
        !self.cache.synced() && trouble.as_ref().is_some_and(LinkError::is_refusal)
    }
}

/// Whether what a definition defines is served, by its own word.
pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    })
}

/// A custom resource, if its definition is established and serves this version.
fn defined(definition: &Value, api_version: &str, kind: &str) -> Option<Resource> {
    let (group, version) = api_version.split_once('/')?;
    let spec = &definition["spec"];
    let served = spec["versions"]
        .as_array()?
        .iter()
        .any(|v| v["name"] == version && v["served"] == true);
    if !served || !is_established(definition) {
        return None;
    }
    let plural = spec["names"]["plural"].as_str()?;
    let namespaced = spec["scope"] == "Namespaced";
    Some(Resource::new(group, version, plural, kind, namespaced))
}

/// Keeps following what is wanted.
pub(crate) async fn run(state: Weak<State>) {
    let mut asked = false;
    loop {
        let Some(strong) = state.upgrade() else { return };
        if !asked {
            match find_claims(&strong).await {
                Ok(()) => asked = true,
                Err(error) => tracing::warn!(%error, "failed to ask for claims that nobody speaks of"),
            }
        }
        let looks = strong.kinds.looks.lock().asked;
        let missing = match sync(&strong).await {
            Ok(missing) => missing,
            Err(error) => {
                tracing::warn!(%error, "failed to ask which kinds are served");
                true
            }
        } || !asked;
        strong.kinds.looks.lock().done = looks;
        let changed = {
            let weak = Arc::downgrade(&strong);
            drop(strong);
            weak
        };
        let Some(strong) = changed.upgrade() else { return };
        let wait = async {
            if missing {
                tokio::time::sleep(LOOK_AGAIN).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = strong.kinds.changed.notified() => {}
            () = wait => *strong.kinds.discovery.lock() = None,
        }
    }
}

/// Wants the kinds that have claims although no policy and no binding names them.
async fn find_claims(state: &State) -> Result<(), LinkError> {
    let discovery = discover(&state.link).await?;
    let named = wanted(state);
    let unnamed: Vec<Resource> = discovery
        .preferred()
        .filter(|resource| {
            let id = (resource.api_version(), resource.kind.clone());
            !state.kinds.skips.skip_kind(&id.0, &id.1)
                && !named.contains(&id)
                && ["list", "watch"].iter().all(|verb| resource.can(verb))
        })
        .cloned()
        .collect();
    for some in unnamed.chunks(QUESTIONS_AT_ONCE) {
        let answers = some.iter().map(|resource| has_claims(state, resource));
        for (resource, answer) in some.iter().zip(futures::future::join_all(answers).await) {
            if answer? {
                let id = (resource.api_version(), resource.kind.clone());
                state.bound_kinds.lock().insert(id);
            }
        }
    }
    Ok(())
}

/// Whether an object of a kind is claimed by a policy.
async fn has_claims(state: &State, resource: &Resource) -> Result<bool, LinkError> {
    for label in [keys::PP_ID, keys::CPP_ID] {
        match has_label(state, resource, label).await {
            Ok(true) => return Ok(true),
            // What is not served any more, or is not ours to see, has no claims of ours.
            Ok(false) | Err(LinkError::NotFound | LinkError::NotServed | LinkError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether an object of a kind has this label.
async fn has_label(state: &State, resource: &Resource, label: &str) -> Result<bool, LinkError> {
    let label = label.replace('/', "%2F");
    let path = format!("{}?limit=1&labelSelector={label}", resource.collection(""));
    let answer = state.link.get(&path).await?;
    let list: Value =
        serde_json::from_slice(&answer).map_err(|error| LinkError::BadAnswer(error.to_string()))?;
    Ok(list["items"].as_array().is_some_and(|items| !items.is_empty()))
}

/// Follows what is wanted and not followed yet. Answers whether something wanted is not served.
pub(crate) async fn sync(state: &Arc<State>) -> Result<bool, LinkError> {
    let wanted = wanted(state);
    let new: Vec<KindId> = {
        let followed = state.kinds.followed.read();
        wanted
            .into_iter()
            .filter(|id| !followed.contains_key(id))
            .collect()
    };
    let mut missing = false;
    for id in new {
        if state.kinds.discovery.lock().is_none() && state.kinds.definition(&id.0, &id.1).is_none() {
            let discovery = Arc::new(discover(&state.link).await?);
            *state.kinds.discovery.lock() = Some(discovery);
        }
        let Some(resource) = state.kinds.resource(&id) else {
            missing = true;
            continue;
        };
        let defined = state.kinds.is_defined(&id.0, &id.1);
        let weak = Arc::downgrade(state);
        let following = follow(&state.link, &resource, "", None, move |change| {
            if let Some(state) = weak.upgrade() {
                intake::template(&state, change);
            }
        });
        let kind = Arc::new(Kind {
            resource,
            cache: following.cache.clone(),
            defined,
            known: AtomicBool::new(false),
            introduced: AtomicBool::new(false),
            following,
        });
        state.kinds.followed.write().insert(id.clone(), kind.clone());
        tokio::spawn(introduce(Arc::downgrade(state), id, kind));
    }
    Ok(missing)
}

/// Puts all objects of a kind on the queue as soon as all are known. Nothing is decided about any of them before.
async fn introduce(state: Weak<State>, (api_version, kind_name): KindId, kind: Arc<Kind>) {
    kind.cache.wait_synced().await;
    let Some(state) = state.upgrade() else { return };
    // From here on their passes look; so the flag comes first, and a pass that came too early is made good below.
    kind.known.store(true, Ordering::Release);
    for cached in kind.cache.list() {
        let id = TemplateId {
            api_version: api_version.clone(),
            kind: kind_name.clone(),
            namespace: cached.key.namespace.to_string(),
            name: cached.key.name.to_string(),
        };
        if api_version == "v1" && kind_name == "Namespace" {
            state.namespaces.add_bulk(id.name.clone(), 1);
        }
        state.templates.add_bulk(id, WALK);
    }
    look_at_policies(&state, &api_version, &kind_name);
    kind.introduced.store(true, Ordering::Release);
    let (mut troubles, weak) = (kind.cache.troubles(), Arc::downgrade(&state));
    drop((kind, state));
    // Whether it is served from now on is told by those who name it.
    let mut told = None;
    while troubles.changed().await.is_ok() {
        let Some(state) = weak.upgrade() else { return };
        let unserved = state.kinds.unserved(&api_version, &kind_name);
        if unserved != told {
            look_at_policies(&state, &api_version, &kind_name);
            told = unserved;
        }
    }
}

/// What the policies that name a kind of a definition say of it may be something else now. One that is served is followed
/// again at once.
pub(crate) fn look_at_defined(state: &State, definition: &Value) {
    let spec = &definition["spec"];
    let (group, kind) = (spec["group"].as_str(), spec["names"]["kind"].as_str());
    let (Some(group), Some(kind)) = (group, kind) else {
        return;
    };
    for version in spec["versions"].as_array().into_iter().flatten() {
        if let Some(version) = version["name"].as_str() {
            let api_version = format!("{group}/{version}");
            look_at_policies(state, &api_version, kind);
            let id = (api_version, kind.to_owned());
            if let Some(kind) = state.kinds.followed.read().get(&id) {
                kind.following.hurry();
            }
        }
    }
}

/// What the policies that name a kind say of it may be something else now.
fn look_at_policies(state: &State, api_version: &str, kind: &str) {
    for policy in state.policies.read().iter() {
        let mut selectors = policy.spec.resource_selectors.iter();
        if selectors.any(|selector| selector.api_version == api_version && selector.kind == kind) {
            let metadata = &policy.metadata;
            state.tally.look(&Key::new(&metadata.namespace, &metadata.name));
        }
    }
}

fn wanted(state: &State) -> BTreeSet<KindId> {
    let mut wanted: BTreeSet<KindId> = BTreeSet::from([("v1".to_owned(), "Namespace".to_owned())]);
    for (api_version, kind, _) in state.policies.read().kinds() {
        wanted.insert((api_version.to_owned(), kind.to_owned()));
    }
    wanted.extend(state.bound_kinds.lock().iter().cloned());
    wanted.retain(|(api_version, kind)| !state.kinds.skips.skip_kind(api_version, kind));
    wanted
}
