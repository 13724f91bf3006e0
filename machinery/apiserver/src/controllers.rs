//! The controllers without which an API server is no cluster: garbage collection, namespaces, definitions,
//! service accounts and their tokens, aggregated roles, the status of admission policies and flow schemas, the expiry of
//! events.
//!
//! One task for each server sees every change of the store and turns it into jobs; a job looks at the state as it
//! is when its turn comes, so that neither order nor repetition matters. When the task falls behind the store's
//! watch, it starts over from a listing.

mod accounts;
mod definitions;
mod events;
pub(crate) mod flows;
mod garbage;
mod namespaces;
mod policies;
mod roles;
mod sweep;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use machinery_store::{Kind, Next};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::object::Stored;
use crate::registry::built_in;
use crate::resource::{Resource, key_prefix};
use crate::server::Inner;
use crate::status::ApiError;

/// How far the task may fall behind before it starts over.
const BUFFER: usize = 65_536;
/// How long a job that failed rests.
const RETRY: Duration = Duration::from_millis(200);
/// How often expired events are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// Something to look at. Names and keys, never contents: a job reads the state when it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Job {
    /// An object with owners: does one of them still hold it?
    Dependent(String),
    /// An object on its way out that waits for its dependents.
    Owner(String),
    /// A namespace.
    Namespace(String),
    /// A definition.
    Definition(String),
    /// A Secret that may want a token.
    TokenSecret(String),
    /// A ValidatingAdmissionPolicy.
    Policy(String),
    /// A FlowSchema.
    Flow(String),
    /// All FlowSchemas of a priority level.
    Level(String),
    /// The aggregated roles.
    Roles,
}

impl Job {
    /// Whether somebody waits for it who has nothing to do with what else there is to do: a definition to be served, an account
    /// to get its token. A cascade may be long.
    fn is_short(&self) -> bool {
        !matches!(self, Self::Dependent(_) | Self::Owner(_) | Self::Namespace(_))
    }
}

/// How far a job came in its turn.
enum Progress {
    /// There is nothing left to do for now.
    Done,
    /// It goes on in another turn.
    More,
}

/// Starts the task.
pub(crate) fn start(server: &Arc<Inner>, cluster: bool) -> Vec<JoinHandle<()>> {
    let server = server.clone();
    vec![tokio::spawn(async move {
        loop {
            Caretaker::new(&server, cluster).run().await;
        }
    })]
}

struct Caretaker<'a> {
    server: &'a Inner,
    /// Whether anything but definitions, flow schemas and events is looked after.
    cluster: bool,
    graph: garbage::Graph,
    expiries: events::Expiries,
    /// Jobs that take a moment, and those that may be one of very many: they have their turns alternately, so that neither waits
    /// for all of the other.
    short: VecDeque<Job>,
    long: VecDeque<Job>,
    short_is_next: bool,
    queued: BTreeSet<Job>,
    resting: Vec<(Instant, Job)>,
}

impl<'a> Caretaker<'a> {
    fn new(server: &'a Inner, cluster: bool) -> Self {
        Self {
            server,
            cluster,
            graph: garbage::Graph::default(),
            expiries: events::Expiries::default(),
            short: VecDeque::new(),
            long: VecDeque::new(),
            short_is_next: true,
            queued: BTreeSet::new(),
            resting: Vec::new(),
        }
    }

    /// Works until the watch breaks.
    async fn run(&mut self) {
        let (page, mut watch) = self.server.store.list_and_watch("/", BUFFER);
        for entry in &page.entries {
            self.noticed(Kind::Put, entry);
        }
        drop(page);
        self.push(Job::Roles);
        let mut sweep = Instant::now() + SWEEP;
        loop {
            // What has happened comes before what is to be done about it.
            while let Some(next) = watch.try_next() {
                match next {
                    Next::Event(event) => self.noticed(event.kind, &event.entry),
                    Next::Lagged => return,
                    Next::Closed => return std::future::pending().await,
                }
            }
            let jobs = self.next_jobs();
            if !jobs.is_empty() {
                let work = jobs.iter().map(|job| self.work(job));
                let results = futures::future::join_all(work).await;
                for (job, result) in jobs.into_iter().zip(results) {
                    self.finish(job, result);
                }
                continue;
            }
            let wake = self
                .resting
                .iter()
                .map(|(at, _)| *at)
                .min()
                .unwrap_or(sweep)
                .min(sweep);
            tokio::select! {
                next = watch.next() => match next {
                    Next::Event(event) => self.noticed(event.kind, &event.entry),
                    Next::Lagged => return,
                    Next::Closed => return std::future::pending().await,
                },
                () = tokio::time::sleep_until(wake) => {
                    let now = Instant::now();
                    for (at, job) in std::mem::take(&mut self.resting) {
                        if at <= now { self.push(job) } else { self.resting.push((at, job)) }
                    }
                    if sweep <= now {
                        sweep = now + SWEEP;
                        self.expiries.sweep(self.server).await;
                    }
                }
            }
        }
    }

    /// What is done next: one job, or several objects that may have lost their owner, which share their way to the disk.
    fn next_jobs(&mut self) -> Vec<Job> {
        let lines = [&mut self.short, &mut self.long];
        let [first, second] = if self.short_is_next {
            lines
        } else {
            let [short, long] = lines;
            [long, short]
        };
        self.short_is_next = !self.short_is_next;
        let Some(job) = first.pop_front().or_else(|| second.pop_front()) else {
            return Vec::new();
        };
        let mut jobs = vec![job];
        while matches!(jobs[0], Job::Dependent(_)) && jobs.len() < sweep::AT_ONCE {
            match self.long.pop_front_if(|job| matches!(job, Job::Dependent(_))) {
                Some(job) => jobs.push(job),
                None => break,
            }
        }
        for job in &jobs {
            self.queued.remove(job);
        }
        jobs
    }

    /// Looks after a job that was worked on.
    fn finish(&mut self, job: Job, result: Result<Progress, ApiError>) {
        match result {
            Ok(Progress::Done) => {}
            // Behind all others, however short its turns are.
            Ok(Progress::More) => {
                if self.queued.insert(job.clone()) {
                    self.long.push_back(job);
                }
            }
            Err(error) => {
                tracing::debug!(?job, %error, "a job of the server failed and will be tried again");
                self.resting.push((Instant::now() + RETRY, job));
            }
        }
    }

    fn push(&mut self, job: Job) {
        // What a kube-apiserver does by itself is done always, the rest is the work of a cluster's controllers.
        let is_ours = matches!(job, Job::Definition(_) | Job::Flow(_) | Job::Level(_));
        if !self.cluster && !is_ours {
            return;
        }
        if self.queued.insert(job.clone()) {
            let line = if job.is_short() {
                &mut self.short
            } else {
                &mut self.long
            };
            line.push_back(job);
        }
    }

    /// Turns a change into jobs.
    fn noticed(&mut self, kind: Kind, entry: &Stored) {
        let links = entry.value.links();
        let place = Place::of(&entry.key);
        match (place.group, place.plural) {
            ("core", "events") => {
                if kind == Kind::Put {
                    self.expiries.note(self.server, entry);
                }
                return;
            }
            ("core", "namespaces") if kind == Kind::Put => self.push(Job::Namespace(place.name.to_owned())),
            ("core", "serviceaccounts") => self.account_changed(kind, &place),
            ("core", "secrets") if kind == Kind::Put => self.push(Job::TokenSecret(entry.key.to_string())),
            ("apiextensions.k8s.io", "customresourcedefinitions") => {
                self.push(Job::Definition(place.name.to_owned()));
                for job in self.graph.defined() {
                    self.push(job);
                }
            }
            ("rbac.authorization.k8s.io", "clusterroles") => self.push(Job::Roles),
            ("admissionregistration.k8s.io", "validatingadmissionpolicies") if kind == Kind::Put => {
                self.push(Job::Policy(place.name.to_owned()));
            }
            ("flowcontrol.apiserver.k8s.io", "flowschemas") if kind == Kind::Put => {
                self.push(Job::Flow(place.name.to_owned()));
            }
            ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
                self.push(Job::Level(place.name.to_owned()));
            }
            _ => {}
        }
        if kind == Kind::Delete {
            if !place.namespace.is_empty() && self.is_going("namespaces", place.namespace) {
                self.push(Job::Namespace(place.namespace.to_owned()));
            }
            if place.group != "core" {
                let definition = format!("{}.{}", place.plural, place.group);
                if self.definition_exists(&definition) {
                    self.push(Job::Definition(definition));
                }
            }
        }
        for job in self.graph.noticed(kind, &entry.key, &links) {
            self.push(job);
        }
    }

    fn account_changed(&mut self, kind: Kind, place: &Place<'_>) {
        // Secrets that wait for this account, or outlive it, have another look.
        let prefix = format!("{}{}/", key_prefix("", "secrets"), place.namespace);
        for key in keys(self.server, &prefix) {
            self.push(Job::TokenSecret(key));
        }
        if kind == Kind::Delete && place.name == accounts::DEFAULT {
            self.push(Job::Namespace(place.namespace.to_owned()));
        }
    }

    fn is_going(&self, plural: &str, name: &str) -> bool {
        let key = format!("{}{name}", key_prefix("", plural));
        self.server
            .store
            .get(&key)
            .is_some_and(|stored| stored.value.links().deletion_timestamp.is_some())
    }

    fn definition_exists(&self, name: &str) -> bool {
        let key = format!(
            "{}{name}",
            key_prefix("apiextensions.k8s.io", "customresourcedefinitions")
        );
        self.server.store.get(&key).is_some()
    }

    async fn work(&self, job: &Job) -> Result<Progress, ApiError> {
        match job {
            Job::Dependent(key) => garbage::dependent(self.server, &self.graph, key).await?,
            Job::Owner(key) => garbage::owner(self.server, &self.graph, key).await?,
            Job::Namespace(name) => return namespaces::tend(self.server, name).await,
            Job::Definition(name) => return definitions::tend(self.server, name).await,
            Job::TokenSecret(key) => accounts::token_secret(self.server, key).await?,
            Job::Policy(name) => policies::tend(self.server, name).await?,
            Job::Flow(name) => flows::tend(self.server, name).await?,
            Job::Level(name) => flows::tend_all(self.server, name).await?,
            Job::Roles => roles::aggregate(self.server).await?,
        }
        Ok(Progress::Done)
    }
}

/// A key, taken apart: `/GROUP/PLURAL/[NAMESPACE/]NAME`.
struct Place<'k> {
    group: &'k str,
    plural: &'k str,
    namespace: &'k str,
    name: &'k str,
}

impl<'k> Place<'k> {
    fn of(key: &'k str) -> Self {
        let mut parts = key.trim_start_matches('/').splitn(3, '/');
        let (group, plural) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let rest = parts.next().unwrap_or("");
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        Self {
            group,
            plural,
            namespace,
            name,
        }
    }
}

/// A resource through which the object at `key` can be written, in its stored shape.
pub(crate) fn resource_of(server: &Inner, key: &str) -> Option<Arc<Resource>> {
    let place = Place::of(key);
    let group = if place.group == "core" { "" } else { place.group };
    let is = |r: &&Arc<Resource>| r.group == group && r.plural == place.plural && r.conversion().is_none();
    let custom = server.registry.custom();
    let mut all = built_in().resources().iter().chain(custom.resources());
    all.find(is).cloned()
}

/// The keys under a prefix.
fn keys(server: &Inner, prefix: &str) -> Vec<String> {
    match server.store.range(machinery_store::Range {
        prefix,
        ..Default::default()
    }) {
        Ok(page) => page.entries.iter().map(|entry| entry.key.to_string()).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{ApiServer, Options};

    #[tokio::test]
    async fn what_is_short_waits_for_no_cascade() {
        let mut options = Options::new(Arc::new(machinery_auth::Pki::ephemeral().unwrap()));
        options.cluster_controllers = false;
        let server = ApiServer::start(options).await.unwrap();
        let mut caretaker = Caretaker::new(&server.inner, true);
        for number in 0..2 * sweep::AT_ONCE {
            caretaker.push(Job::Dependent(format!("/core/pods/n/p{number}")));
        }
        caretaker.push(Job::Namespace("n".to_owned()));
        caretaker.push(Job::Definition("a".to_owned()));
        caretaker.push(Job::Roles);
        let mut order = Vec::new();
        loop {
            let jobs = caretaker.next_jobs();
            let Some(first) = jobs.first() else { break };
            order.push(match first {
                Job::Dependent(_) => format!("{} dependents", jobs.len()),
                other => format!("{other:?}"),
            });
            // What goes on does so behind the others.
            if jobs == [Job::Definition("a".to_owned())] && order.len() < 4 {
                caretaker.finish(jobs[0].clone(), Ok(Progress::More));
            }
        }
        let dependents = format!("{} dependents", sweep::AT_ONCE);
        let expected = [
            "Definition(\"a\")",
            dependents.as_str(),
            "Roles",
            dependents.as_str(),
            "Namespace(\"n\")",
            "Definition(\"a\")",
        ];
        assert_eq!(order, expected);
    }
}
