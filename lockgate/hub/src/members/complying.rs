//! Policies on a member: each replica in the namespace of a cluster is copied there, its ConfigurationPolicies are made, the
//! objects that they name are looked at and perhaps changed, and what was found is told to the replica.
//!
//! ```text
//! replica ─▶ [sync] ─▶ copy, ConfigurationPolicies ─▶ [evaluate] ─▶ [carry] ─▶ objects
//!    ▲                                                     │
//!    └── [report] ◀── statuses ◀───────────────────────────┘
//! ```
//!
//! What always holds: this pass is the only writer of copies and ConfigurationPolicies, and of the compliance of replicas. Only
//! what policies select is watched, and a member without policies is asked nothing. A copy goes only when its replica is gone
//! by the hub's own word and its root does not want it back. A second look at what is settled writes nothing.

mod carry;
mod evaluate;
mod own;
mod remove;
mod report;
mod sync;
mod watches;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::{REVISION, ROOT_POLICY};
use lockgate_engine::comply::replica::{self, Told};
use lockgate_engine::comply::{Fault, Rules};
use lockgate_engine::governance::revision::Mark;
use parking_lot::Mutex;

use self::own::Own;
use self::report::Word;
use self::watches::{Watch, Watched};
use super::dispatching::{SendError, Sent};
use super::lane::{DISPATCH, Errand, Lane};
use crate::cache::Key;
use crate::clock::later;
use crate::link::{Link, LinkError};
use crate::resource::Resource;
use crate::state::{self, State};
use crate::watch::Following;

/// How long what is followed may take to be known.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what may pass by itself may take, in a policy that enforces, before it counts as a failure: a status that does not
/// come, a namespace or a kind that is made meanwhile, a deletion.
const PASSING_PATIENCE: Duration = Duration::from_secs(60);

/// What is known of a member's policies.
#[derive(Default)]
pub(crate) struct Policies {
    /// The copies and ConfigurationPolicies; nothing until the first policy.
    own: Mutex<Option<Arc<Own>>>,
    /// What the member serves, by group and version.
    served: Mutex<HashMap<String, Arc<Vec<Resource>>>>,
    watches: Mutex<HashMap<Watched, Watch>>,
    memories: Mutex<HashMap<String, Memory>>,
}

/// What is remembered of one policy; all of it can be lost.
#[derive(Default)]
struct Memory {
    templates: BTreeMap<String, TemplateMemory>,
    /// When it comes again by itself.
    alarm: Option<Timestamp>,
    /// Whether something that it waits for may decide about it.
    waits: bool,
}

/// What is remembered of one ConfigurationPolicy.
#[derive(Clone)]
struct TemplateMemory {
    uid: String,
    generation: i64,
    rules: Arc<Result<Rules, Fault>>,
    /// When it was last looked at.
    evaluated: Timestamp,
    /// The namespaces that it selected then; none if nobody knows.
    namespaces: Option<Vec<String>>,
    /// Whether the member did not keep then what it must know to prune; none if nobody has looked.
    forgets: Option<bool>,
    /// What the server said to changes that were only tried.
    tried: BTreeMap<carry::Try, carry::Tried>,
}

impl Policies {
    /// Forgets everything.
    pub(super) fn clear(&self) {
        *self.own.lock() = None;
        self.served.lock().clear();
        self.watches.lock().clear();
        self.memories.lock().clear();
    }

    /// The member answers again.
    pub(super) fn hurry(&self) {
        if let Some(own) = self.own() {
            own.hurry();
        }
        self.watches.lock().values().for_each(Watch::hurry);
    }

    /// What the member serves may have changed.
    pub(super) fn ask_again(&self) {
        self.served.lock().clear();
    }

    /// Whether everything that is followed is known, as far as it can be.
    pub(super) fn are_synced(&self) -> bool {
        let own = self.own.lock().clone();
        own.is_none_or(|own| own.is_synced()) && self.watches.lock().values().all(Watch::is_synced)
    }

    /// Whether a policy is, or was a moment ago, on the member.
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.own().is_some_and(|own| own.copies().get(key).is_some())
    }

    fn own(&self) -> Option<Arc<Own>> {
        self.own.lock().clone()
    }

    /// Up to which version each watch has seen, with what it follows: resource, namespace, name and label selector.
    pub(crate) fn seen(&self) -> Vec<(Resource, String, String, String, u64)> {
        let mut all: Vec<_> = self
            .watches
            .lock()
            .iter()
            .map(|(id, watch)| watch.seen(id))
            .collect();
        if let Some(own) = self.own() {
            all.extend(own.seen());
        }
        all
    }
}

/// One policy on its member.
struct Visit<'a> {
    state: &'a Arc<State>,
    lane: &'a Arc<Lane>,
    link: &'a Link,
    own: &'a Own,
    name: &'a str,
}

impl Visit<'_> {
    fn cluster(&self) -> &str {
        &self.lane.cluster
    }

    /// Whether a member may be written now.
    fn may_write(&self) -> Result<(), SendError> {
        if self.state.guard.may_write() {
            return Ok(());
        }
        Err(SendError::NotYet(
            "another controller may be leading by now".into(),
        ))
    }
}

/// Brings a member to one policy, or looks which policies it has.
pub(super) async fn pass(state: &Arc<State>, lane: &Arc<Lane>, name: &str) -> Result<Sent, SendError> {
    let Some(link) = lane.link() else {
        return Err(SendError::Member(LinkError::Unreachable(
            "the way to the member is not known".into(),
        )));
    };
    let Some(cluster) = state.cluster(&lane.cluster) else {
        return Ok(Sent::Settled);
    };
    if cluster.metadata.deleting() {
        // What it has, it keeps.
        return Ok(Sent::Settled);
    }
    if name.is_empty() {
        return look(state, lane, &link).await;
    }
    let key = Key::new(&lane.cluster, name);
    let Some(replica) = replica(state, &key) else {
        return remove::pass(state, lane, &link, &key).await;
    };
    let own = match own::follow(lane, &link, true).await {
        Ok(own) => own,
        Err(SendError::Member(error @ LinkError::Refused { .. })) if error.is_refusal() => {
            let message = format!(
                "cluster {} refuses the definitions of policies: {error}",
                lane.cluster
            );
            report::failed(state, &key, &replica, &message).await?;
            return Err(SendError::Member(error));
        }
        Err(error) => return Err(error),
    };
    let visit = Visit {
        state,
        lane,
        link: &link,
        own: &own,
        name,
    };
    match visit.keep(&replica).await {
        Err(SendError::Member(error @ LinkError::Refused { .. })) if error.is_refusal() => {
            let message = format!("cluster {} refuses the policy: {error}", lane.cluster);
            report::failed(state, &key, &replica, &message).await?;
            Err(SendError::Member(error))
        }
        result => result,
    }
}

/// Wakes every policy that the member has or should have. Nothing is asked of a member that never had one.
async fn look(state: &Arc<State>, lane: &Arc<Lane>, link: &Link) -> Result<Sent, SendError> {
    let policies = state.ocm.policy_cache();
    for cached in policies.list_in(&lane.cluster) {
        lane.queue
            .add_bulk(Errand::Policy(cached.key.name.to_string()), DISPATCH);
    }
    let serves = state.cluster(&lane.cluster).is_some_and(|cluster| {
        let mut enabled = cluster.status.api_enablements.iter();
        enabled.any(|group| group.group_version == replica::API_VERSION)
    });
    if serves {
        // What is found there wakes itself.
        let own = own::follow(lane, link, false).await?;
        for copy in own.copies().list() {
            lane.queue
                .add_bulk(Errand::Policy(copy.key.name.to_string()), DISPATCH);
        }
    }
    Ok(Sent::Settled)
}

/// Returns when everything of a kind is known, or why that may take long. A member that had not answered, or refused, is asked
/// again.
async fn known(following: &Following) -> Result<(), SendError> {
    let cache = &following.cache;
    if cache.synced() {
        return Ok(());
    }
    let mut troubles = cache.troubles();
    if troubles.borrow_and_update().is_some() {
        following.hurry();
    }
    let failed = async {
        while troubles.changed().await.is_ok() {
            if let Some(error) = troubles.borrow_and_update().clone() {
                return error;
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        () = cache.wait_synced() => Ok(()),
        error = failed => Err(SendError::Member(error)),
        // It has not failed to answer: the list may be long.
        () = tokio::time::sleep(PATIENCE) => Err(SendError::NotYet(format!(
            "the member's {} are not known yet",
            cache.resource().plural
        ))),
    }
}

/// The replica of a policy, if it is one and stays.
fn replica(state: &State, key: &Key) -> Option<Policy> {
    let cached = state.ocm.policy_cache().get(key)?;
    let policy: Policy = state::parse(&cached)?;
    (policy.metadata.label(ROOT_POLICY).is_some() && !policy.metadata.deleting()).then_some(policy)
}

/// The compliance that a replica says one of its templates has.
fn replica_says<'a>(replica: &'a Policy, template: &str) -> &'a str {
    let mut details = replica.status.iter().flat_map(|status| &status.details);
    let found = details.find(|details| details.template_meta.name == template);
    found.map_or("", |details| &details.compliant)
}

impl Visit<'_> {
    /// Brings the member to a policy, and tells what was found.
    async fn keep(&self, replica: &Policy) -> Result<Sent, SendError> {
        let begun = tokio::time::Instant::now();
        let planned = replica::plan(replica, self.cluster());
        self.note_waiting(planned.iter().any(|planned| !planned.dependencies.is_empty()));
        let copy = self.sync_copy(replica).await?;
        let mut told: Vec<(&str, Told<'static>)> = Vec::new();
        let mut statuses = Vec::new();
        let mut refused = None;
        let mut due: Option<Timestamp> = None;
        // Another revision asks for another look, whatever the intervals say.
        let revision = replica.metadata.annotation(REVISION).unwrap_or_default();
        let evaluated = replica
            .status
            .as_ref()
            .map_or("", |status| &status.evaluated_revision);
        let fresh = revision != evaluated;
        let released = Mark::of(replica).map_or(Timestamp::UNIX_EPOCH, |mark| mark.at);
        let mut word = Word::Last;
        let mut watched = BTreeSet::new();
        for planned in &planned {
            let pending = self.pending(planned);
            let object = match (&planned.object, pending) {
                (Err(message), _) => {
                    told.push((&planned.name, Told::Wrong(message.clone())));
                    statuses.push(None);
                    continue;
                }
                (_, Some(Err(message))) => {
                    told.push((&planned.name, Told::Wrong(message)));
                    statuses.push(None);
                    continue;
                }
                (_, Some(Ok(mut message))) => {
                    if let Some(why) = self.put_away(planned).await? {
                        message = format!("{message}; {why}");
                        refused = refused.or(Some(why));
                    }
                    let ignored = planned.ignore_pending;
                    told.push((&planned.name, Told::Pending { message, ignored }));
                    statuses.push(None);
                    continue;
                }
                (Ok(object), None) => object,
            };
            let mut synced = self.sync_template(&copy, &planned.name, object).await;
            if matches!(synced, Ok(None)) {
                // Whoever has the name wakes this one when it is free; it may have been freed meanwhile.
                self.note_waiting(true);
                synced = self.sync_template(&copy, &planned.name, object).await;
            }
            let template = match synced {
                Ok(Some(template)) => template,
                Ok(None) => {
                    let message = format!(
                        "another policy of the cluster has a template with the name {}",
                        planned.name
                    );
                    told.push((&planned.name, Told::Wrong(message)));
                    statuses.push(None);
                    continue;
                }
                // What is wrong with this one keeps no other from it. The member may be of another mind later.
                Err(SendError::Member(error @ LinkError::Refused { code: 400 | 422, .. })) => {
                    let message = format!(
                        "the ConfigurationPolicy is refused by cluster {}: {error}",
                        self.cluster()
                    );
                    refused = refused.or_else(|| Some(message.clone()));
                    told.push((&planned.name, Told::Wrong(message)));
                    statuses.push(None);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let said = replica_says(replica, &planned.name);
            let outcome = self.evaluate(&template, fresh, said, &mut watched).await?;
            refused = refused.or(outcome.refused);
            due = [due, outcome.due].into_iter().flatten().min();
            if outcome.is_hidden {
                word = Word::None;
            } else if outcome.is_going {
                word = word.min(Word::Earlier);
            }
            if let Some(since) = outcome.awaits_since {
                // What may pass by itself may take its time before it counts as a failure.
                let until = later(since.max(released), PASSING_PATIENCE);
                if fresh && until > self.state.clock.now() {
                    word = word.min(Word::Earlier);
                    due = [due, Some(until)].into_iter().flatten().min();
                    // Nobody says so when it is served.
                    refused = refused.or(outcome.unserved);
                }
            }
            if outcome.forgets {
                let message = format!(
                    "the definition of ConfigurationPolicy in cluster {}, which is somebody else's, does not keep \
                     status.pendingPrune, status.furtherObjects and enforcedByPolicy of related objects: what \
                     pruneObjectBehavior says cannot be followed; delete the definition there, or set it to None",
                    self.cluster()
                );
                told.push((&planned.name, Told::Wrong(message)));
                statuses.push(None);
                continue;
            }
            told.push((&planned.name, Told::Unknown));
            statuses.push(Some(outcome.status));
        }
        let left = self.put_away_rest(replica, &planned).await?;
        for (name, why) in &left {
            word = word.min(Word::Earlier);
            refused = refused.or_else(|| Some(why.clone()));
            told.push((name, Told::Wrong(why.clone())));
            statuses.push(None);
        }
        self.unwatch(&watched);
        self.remember(due);
        let told: Vec<(&str, Told<'_>)> = told
            .into_iter()
            .zip(&statuses)
            .map(|((name, told), status)| match status {
                Some(status) => (name, Told::Evaluated(status)),
                None => (name, told),
            })
            .collect();
        self.report(&told, revision, word).await?;
        match refused {
            Some(what) => Err(SendError::NotYet(what)),
            None => Ok(Sent::Member(begun.elapsed())),
        }
    }

    /// Keeps in mind whether others may decide about it. That comes before they are looked at: who changes meanwhile wakes it.
    fn note_waiting(&self, waits: bool) {
        let mut memories = self.lane.policies.memories.lock();
        memories.entry(self.name.to_owned()).or_default().waits = waits;
    }

    /// Keeps in mind when to come again.
    fn remember(&self, due: Option<Timestamp>) {
        let mut memories = self.lane.policies.memories.lock();
        let memory = memories.entry(self.name.to_owned()).or_default();
        let now = self.state.clock.now();
        if let Some(due) = due
            && memory.alarm.is_none_or(|alarm| alarm <= now || alarm > due)
        {
            memory.alarm = Some(due);
            let errand = Errand::Policy(self.name.to_owned());
            self.lane.queue.add_at(errand, DISPATCH, due);
        }
    }
}
