//! What an embedded server holds at this moment, and what its own controllers and its simulated kubelets still owe.
//!
//! One task follows every change. It can say up to which revision it has read, so that "nothing is owed" is a fact about
//! the present and not about a moment ago.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use lockgate_api::keys;
use lockgate_hub::Resource;
use lockgate_sim::{Action, SimOptions, fast};
use machinery_apiserver::{ApiServer, Changed, Local};
use machinery_auth::UserInfo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::plane::Watching;
use crate::server::{Snapshot, is_managed, version_of};

/// How many changes may wait.
const BUFFER: usize = 65_536;
/// How often the revision is looked at while nothing happens.
const LOOK: Duration = Duration::from_millis(2);
/// Kinds whose status is simulated.
const WORKLOADS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
];

/// A view of one server; it ends when this is dropped.
pub(crate) struct Tower {
    server: ApiServer,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
    simulated: Option<SimOptions>,
    local: Local,
}

#[derive(Default)]
struct State {
    /// Everything up to this revision has been read.
    read: u64,
    /// Set if the task fell behind and stopped.
    lost: bool,
    objects: BTreeMap<Key, Known>,
    /// The groups and kinds whose definitions are gone.
    undefined: HashSet<(String, String)>,
    /// The newest version of each resource, deletions counted; and the newest of an object that we manage, or did.
    newest: HashMap<(String, String), (Resource, u64, u64)>,
    /// The last version of each object, also of those that are gone, and its labels then and before.
    last: BTreeMap<Key, (u64, [Value; 2])>,
}

/// Group, plural, namespace, name.
type Key = (String, String, String, String);

struct Known {
    path: String,
    uid: String,
    version: String,
    owners: Vec<Owner>,
    finalizers: Vec<String>,
    deleting: bool,
    protected: bool,
    managed: bool,
    workload: Option<Value>,
}

/// What an object says of one that owns it.
struct Owner {
    group: String,
    kind: String,
    uid: String,
}

impl Drop for Tower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Tower {
    /// Follows a server; `simulated` says how its workloads behave, if they do.
    pub(crate) fn start(server: &ApiServer, simulated: Option<SimOptions>) -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let task = tokio::spawn(follow(server.clone(), state.clone()));
        Self {
            local: server.local(UserInfo::apiserver()),
            server: server.clone(),
            state,
            task,
            simulated,
        }
    }

    /// The newest revision of the server.
    pub(crate) fn revision(&self) -> u64 {
        self.server.revision()
    }

    /// The newest version of each resource; of the objects that we manage alone, if that is asked.
    pub(crate) fn newest(&self, managed: bool) -> Vec<(Resource, u64)> {
        let state = self.state.lock();
        let version = |all: u64, ours: u64| if managed { ours } else { all };
        state
            .newest
            .values()
            .map(|(resource, all, ours)| (resource.clone(), version(*all, *ours)))
            .collect()
    }

    /// The newest version of the objects that somebody looks at; 0 if there never was one.
    pub(crate) fn newest_of(&self, watching: &Watching) -> u64 {
        let state = self.state.lock();
        let (group, plural) = (&watching.resource.group, &watching.resource.plural);
        let from = (group.clone(), plural.clone(), String::new(), String::new());
        let same = state
            .last
            .range(from..)
            .take_while(|(key, _)| key.0 == *group && key.1 == *plural);
        let fits = same.filter(|((_, _, namespace, name), (_, [now, before]))| {
            watching.includes(namespace, name, [now, before])
        });
        fits.map(|(_, (version, _))| *version).max().unwrap_or(0)
    }

    /// Everything that is there, but for what comes and goes by itself.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state.lock();
        let lasting = state
            .objects
            .iter()
            .filter(|(key, _)| !matches!(key.1.as_str(), "events" | "leases"));
        lasting
            .map(|(_, known)| (known.path.clone(), (known.uid.clone(), known.version.clone())))
            .collect()
    }

    /// What somebody other than the controllers must still do; none if nothing.
    pub(crate) fn owed(&self) -> Option<String> {
        let revision = self.server.revision();
        let state = self.state.lock();
        if state.lost {
            return Some("the changes were too many to follow".to_owned());
        }
        if state.read < revision {
            return Some(format!("changes up to {revision} are read up to {}", state.read));
        }
        state
            .namespaces()
            .or_else(|| state.garbage())
            .or_else(|| self.workloads(&state, self.local.now()))
    }

    fn workloads(&self, state: &State, now: Timestamp) -> Option<String> {
        let options = self.simulated.as_ref()?;
        let nodes = state
            .objects
            .keys()
            .filter(|key| key.1 == "nodes" && key.0.is_empty());
        if nodes.count() < options.nodes.count {
            return Some("nodes are being made".to_owned());
        }
        let nodes = i64::try_from(options.nodes.count).unwrap_or(i64::MAX);
        state.objects.values().find_map(|known| {
            let seen = fast::Snapshot {
                workload: known.workload.as_ref()?,
                nodes,
                since: now,
                delay: options.delay,
            };
            let acts = |action: &Action| !matches!(action, Action::WakeAt(_));
            fast::decide(&seen, now)
                .iter()
                .any(acts)
                .then(|| format!("{} has not come to its status", known.path))
        })
    }
}

impl State {
    /// What the namespace controller and the account controller owe.
    fn namespaces(&self) -> Option<String> {
        for ((group, plural, _, name), known) in &self.objects {
            if !group.is_empty() || plural != "namespaces" {
                continue;
            }
            let inside = || self.objects.iter().filter(|(key, _)| key.2 == *name);
            if known.deleting {
                let stays = |(_, other): &(&Key, &Known)| !other.deleting && !other.protected;
                if let Some((_, other)) = inside().find(stays) {
                    return Some(format!("{} of a namespace that ends is still there", other.path));
                }
                if inside().next().is_none() {
                    return Some(format!("namespace {name} is empty and has not ended"));
                }
            } else {
                let account = (
                    String::new(),
                    "serviceaccounts".to_owned(),
                    name.clone(),
                    "default".to_owned(),
                );
                if !self.objects.contains_key(&account) {
                    return Some(format!("namespace {name} has no account yet"));
                }
            }
        }
        None
    }

    /// What the garbage collector owes.
    fn garbage(&self) -> Option<String> {
        let uids: HashSet<&str> = self.objects.values().map(|known| known.uid.as_str()).collect();
        self.objects.values().find_map(|known| {
            let owned = !known.owners.is_empty();
            // Of an owner whose kind is not served nobody knows whether it is gone.
            let holds = |owner: &Owner| {
                let kind = (owner.group.clone(), owner.kind.clone());
                uids.contains(owner.uid.as_str()) || self.undefined.contains(&kind)
            };
            if owned && !known.deleting && !known.owners.iter().any(holds) {
                return Some(format!("{} has lost its owners and is still there", known.path));
            }
            let has = |finalizer: &str| known.finalizers.iter().any(|other| other == finalizer);
            let owns = || {
                self.objects
                    .values()
                    .any(|other| other.owners.iter().any(|owner| owner.uid == known.uid))
            };
            if known.deleting && (has("orphan") || (has("foregroundDeletion") && !owns())) {
                return Some(format!("{} waits for the garbage collector", known.path));
            }
            None
        })
    }

    fn note(&mut self, changed: &Changed) {
        let object = changed.object();
        let resource = &changed.resource;
        let key = (
            resource.group.clone(),
            resource.plural.clone(),
            changed.namespace.clone(),
            changed.name.clone(),
        );
        let ours = Resource::new(
            &resource.group,
            &resource.version,
            &resource.plural,
            &resource.kind,
            resource.namespaced,
        );
        let path = ours.object(&changed.namespace, &changed.name);
        let version = version_of(&object);
        let newest = self
            .newest
            .entry((resource.group.clone(), resource.plural.clone()))
            .or_insert((ours, 0, 0));
        newest.1 = newest.1.max(version);
        if is_managed(&object) || self.objects.get(&key).is_some_and(|known| known.managed) {
            newest.2 = newest.2.max(version);
        }
        if resource.plural == "customresourcedefinitions" {
            let spec = &object["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let kind = (text(&spec["group"]), text(&spec["names"]["kind"]));
            if changed.deleted {
                self.undefined.insert(kind);
            } else {
                self.undefined.remove(&kind);
            }
        }
        let before = self
            .last
            .remove(&key)
            .map(|(_, [now, _])| now)
            .unwrap_or_default();
        let labels = object["metadata"]["labels"].clone();
        self.last.insert(key.clone(), (version, [labels, before]));
        if changed.deleted {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, Known::of(path, object));
        }
    }
}

impl Known {
    fn of(path: String, object: Value) -> Self {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let is_workload = WORKLOADS
            .iter()
            .any(|(api_version, kind)| object["apiVersion"] == *api_version && object["kind"] == *kind);
        Self {
            path,
            uid: text(&meta["uid"]),
            version: text(&meta["resourceVersion"]),
            owners: list(&meta["ownerReferences"])
                .iter()
                .map(|owner| {
                    let api_version = owner["apiVersion"].as_str().unwrap_or_default();
                    let group = api_version.split_once('/').map(|(group, _)| group);
                    Owner {
                        group: group.unwrap_or_default().to_owned(),
                        kind: text(&owner["kind"]),
                        uid: text(&owner["uid"]),
                    }
                })
                .collect(),
            finalizers: list(&meta["finalizers"]).iter().map(text).collect(),
            deleting: meta["deletionTimestamp"].is_string(),
            protected: meta["labels"][keys::DELETION_PROTECTED] == "Always",
            managed: is_managed(&object),
            workload: is_workload.then_some(object),
        }
    }
}

async fn follow(server: ApiServer, state: Arc<Mutex<State>>) {
    let mut changes = server.local(UserInfo::apiserver()).changes(BUFFER);
    loop {
        // Changes are handed out before the revision moves: whatever is ready now reaches at least up to here.
        let revision = server.revision();
        // Unconstrained, because a task whose turn is over would find nothing ready where something is.
        while let Some(next) = tokio::task::unconstrained(changes.next()).now_or_never() {
            match next {
                Some(changed) => state.lock().note(&changed),
                None => return state.lock().lost = true,
            }
        }
        state.lock().read = revision;
        tokio::select! {
            next = changes.next() => match next {
                Some(changed) => state.lock().note(&changed),
                None => return state.lock().lost = true,
            },
            // A change that nobody is told about moves the revision all the same.
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
