//! One member: the changes of its server go in, the actions of the decisions come out.
//!
//! One task owns everything. It takes in all changes that have happened before it decides anything, so that the
//! index is never behind the task's own writes.

mod api;
mod decide;

use std::collections::HashMap;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use machinery_apiserver::{ApiServer, Changed};
use tokio::task::JoinHandle;

use crate::SimOptions;
use crate::action::{Action, Key, Kind};
use crate::agenda::Agenda;
use crate::index::Index;
use crate::object;
use api::{Api, Failure};

/// How far a member may fall behind the changes before it starts over.
const BUFFER: usize = 65_536;
/// A round that ends sooner than this got nowhere.
const SHORT: Duration = Duration::from_secs(1);
/// After so many rounds that got nowhere the server is held to be gone.
const ROUNDS: u32 = 8;
/// The first rest of an object about which an action failed; it doubles.
const REST: Duration = Duration::from_millis(10);
/// The longest sleep; the server's clock may run differently from ours.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// A member that is being simulated. It ends when this is dropped.
#[derive(Debug)]
pub struct Member {
    task: JoinHandle<()>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Member {
    /// Simulates the cluster of a server in a task of its own. Needs a tokio runtime.
    pub fn start(server: &ApiServer, options: SimOptions) -> Self {
        Self {
            task: tokio::spawn(Self::run(server.clone(), options)),
        }
    }

    /// Simulates the cluster of a server until the server ends.
    pub async fn run(server: ApiServer, options: SimOptions) {
        let api = Api::new(&server);
        drop(server);
        let mut futile = 0;
        while futile < ROUNDS {
            let begun = tokio::time::Instant::now();
            Runner::new(&api, &options).round().await;
            // The watch broke: the server has ended, or this task was too slow and starts over.
            if begun.elapsed() < SHORT {
                futile += 1;
                tokio::time::sleep(Duration::from_millis(50) * 2_u32.pow(futile)).await;
            } else {
                futile = 0;
            }
        }
        tracing::debug!("the server of a simulated member has ended");
    }
}

/// The state of one round: from a listing until the watch breaks.
struct Runner<'a> {
    api: &'a Api,
    options: &'a SimOptions,
    index: Index,
    agenda: Agenda,
    failures: HashMap<Key, u32>,
}

impl<'a> Runner<'a> {
    fn new(api: &'a Api, options: &'a SimOptions) -> Self {
        Self {
            api,
            options,
            index: Index::new(options),
            agenda: Agenda::default(),
            failures: HashMap::new(),
        }
    }

    async fn round(&mut self) {
        self.make_nodes().await;
        let mut changes = self.api.local.changes(BUFFER);
        loop {
            while let Some(next) = changes.next().now_or_never() {
                let Some(changed) = next else { return };
                self.notice(&changed);
            }
            let now = self.api.local.now();
            self.agenda.wake_due(now);
            if let Some(key) = self.agenda.pop() {
                self.work(&key, now).await;
                tokio::task::coop::consume_budget().await;
                continue;
            }
            let next = match self.agenda.next_wake() {
                None => changes.next().await,
                Some(at) => {
                    let sleep = Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO);
                    // A little more than nothing, so that a clock that stands still does not keep us busy.
                    let sleep = sleep.clamp(Duration::from_millis(1), LONGEST_SLEEP);
                    tokio::select! {
                        next = changes.next() => next,
                        () = tokio::time::sleep(sleep) => continue,
                    }
                }
            };
            let Some(changed) = next else { return };
            self.notice(&changed);
        }
    }

    /// Makes the nodes that are missing. A node that somebody deletes later stays away until the next round.
    async fn make_nodes(&mut self) {
        for number in 1..=self.options.nodes.count {
            let node = crate::node::make(&self.options.nodes, number, self.api.local.now());
            let kind = Kind::Node;
            if self
                .api
                .local
                .get(kind.api_version(), kind.plural(), "", object::name(&node))
                .is_none()
                && let Err(error) = self.api.local.create(node).await
            {
                tracing::warn!(%error, number, "failed to make a node");
            }
        }
    }

    fn notice(&mut self, changed: &Changed) {
        let Some(kind) = Kind::of_plural(&changed.resource.group, &changed.resource.plural) else {
            return;
        };
        let key = Key::new(kind, &changed.namespace, &changed.name);
        let dirty = if changed.deleted {
            self.index.note(&key, None)
        } else if Index::reads(kind) {
            self.index.note(&key, Some(&changed.object()))
        } else {
            self.index.note_name(&key, false)
        };
        self.push(dirty);
    }

    fn push(&mut self, dirty: Vec<Key>) {
        for key in dirty {
            self.agenda.push(key);
        }
    }

    /// Decides about one object and does what was decided.
    async fn work(&mut self, key: &Key, now: Timestamp) {
        let actions = self.decide(key, now);
        let mut wake = None;
        let mut failed = false;
        for action in actions {
            if let Action::WakeAt(at) = action {
                wake = Some(at);
                continue;
            }
            match self.api.perform(action).await {
                Ok(Some(written)) => {
                    if let Some(key) = object::key(&written).filter(|key| Index::reads(key.kind)) {
                        let dirty = self.index.note(&key, Some(&written));
                        self.push(dirty);
                    }
                }
                Ok(None) => {}
                Err(Failure::Gone) => {}
                Err(Failure::Again(error)) => {
                    tracing::debug!(?key, error, "an action failed and will be decided again");
                    failed = true;
                    break;
                }
            }
        }
        if wake.is_none() {
            self.agenda.settle(key);
        }
        if failed {
            let count = self.failures.entry(key.clone()).or_default();
            *count = (*count + 1).min(12);
            let again = object::later(now, REST * 2_u32.pow(*count));
            wake = Some(wake.map_or(again, |wake: Timestamp| wake.min(again)));
        } else if !self.failures.is_empty() {
            self.failures.remove(key);
        }
        self.agenda.wake(key, wake);
    }
}
