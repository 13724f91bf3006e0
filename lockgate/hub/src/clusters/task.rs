//! One Cluster's task: a pass over it whenever something changed or a probe is due. What it remembers between passes only makes
//! it cheaper or more patient; a new task with an empty memory decides the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use lockgate_api::{Cluster, keys};
use lockgate_engine::cluster::{Probe, Streak};
use machinery_value::hash::canonical_hash;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::capacity::Collector;
use super::probe::{self, Kinds};
use super::token::Claims;
use super::write::Part;
use super::{Caches, ClusterChange, Shared};
use crate::clock::later;
use crate::connect::secret_text;
use crate::events::EventTarget;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// From one probe to the next.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// From one look at version and nodes to the next.
const LOOK_CLOSER_EVERY: Duration = Duration::from_secs(60);
/// While somebody else may write.
const STANDBY: Duration = Duration::from_secs(1);
/// After the first failure of the hub; each further one doubles it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
/// How many failures in a row are tried again in real time, and waited for.
const QUICK_RETRIES: u32 = 3;
/// While the execution namespace cannot be made because the former one is going.
const SPACE_PAUSE: Duration = Duration::from_secs(2);

/// A Cluster's task and its memory.
pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) caches: Arc<Caches>,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) connection: Option<Connection>,
    pub(super) streak: Option<Streak>,
    pub(super) kinds: Kinds,
    probe_due: Timestamp,
    closer_look_due: Timestamp,
    pub(super) renewal_due: Timestamp,
    /// The member's Nodes and Pods, while somebody asks for room.
    pub(super) capacity: Option<Arc<Mutex<Collector>>>,
    /// Wakes this task.
    pub(super) wake: Arc<Notify>,
    /// The last warning for each reason: the same one is not said twice in a row.
    warned: BTreeMap<&'static str, String>,
}

/// How the member is reached, and from what that follows.
pub(super) struct Connection {
    made_from: String,
    pub(super) link: Result<Link, String>,
    /// The token that it carries and the Secret that holds it, if that can be renewed.
    pub(super) token: Option<(Claims, Value)>,
}

/// What a probe brought to light.
pub(super) struct Findings {
    pub(super) probe: Probe,
    pub(super) version: Option<String>,
    pub(super) nodes: Option<Value>,
}

/// Runs until it is dropped.
pub(super) async fn run(shared: Arc<Shared>, caches: Arc<Caches>, name: String, wake: Arc<Notify>) {
    let Some(uid) = caches
        .clusters
        .cache
        .find("", &name)
        .map(|cached| cached.uid.clone())
    else {
        return;
    };
    let clock = shared.options.clock.clone();
    let mut task = Task {
        shared,
        caches,
        name,
        uid,
        connection: None,
        streak: None,
        kinds: Kinds::default(),
        probe_due: Timestamp::MIN,
        closer_look_due: Timestamp::MIN,
        renewal_due: Timestamp::MIN,
        capacity: None,
        wake: wake.clone(),
        warned: BTreeMap::new(),
    };
    let mut failure_pause = SHORTEST_PAUSE;
    let mut failures = 0;
    let mut is_due = false;
    loop {
        let asked = task.shared.update(&task.name, |state| state.asked).unwrap_or(0);
        let passed = task.pass().await;
        // Before it is told that nothing is to do: then the clock may move.
        let now = clock.now();
        let pause = match passed {
            Ok(pause) => {
                failure_pause = SHORTEST_PAUSE;
                failures = 0;
                task.shared.update(&task.name, |state| state.done = asked);
                pause
            }
            Err(error) => {
                tracing::warn!(cluster = task.name, %error, "failed to reconcile a Cluster; trying again");
                let pause = error.retry_after().unwrap_or(failure_pause);
                failure_pause = (failure_pause * 2).min(PROBE_EVERY);
                failures += 1;
                if is_due {
                    // It comes again at its time, for which nobody waits.
                    task.shared.update(&task.name, |state| state.asked -= 1);
                }
                if failures > QUICK_RETRIES {
                    // Nobody waits for what fails again and again.
                    task.shared.update(&task.name, |state| state.done = asked);
                }
                pause
            }
        };
        is_due = false;
        let is_quick = (1..=QUICK_RETRIES).contains(&failures);
        tokio::select! {
            () = wake.notified() => {}
            // Whoever waits for this may move the clock only when it is done.
            () = tokio::time::sleep(pause), if is_quick => {}
            awake = clock.sleep_until(later(now, pause)), if !is_quick => {
                // Whoever moves the clock waits for what is due then. In real time there is always some probe.
                is_due = clock.is_manual();
                if is_due {
                    task.shared.update(&task.name, |state| state.asked += 1);
                }
                drop(awake);
            }
            () = task.first_measured() => {}
        }
    }
}

impl Task {
    pub(super) fn now(&self) -> Timestamp {
        self.shared.options.clock.now()
    }

    /// One pass; says when the next one is due if nothing happens before.
    async fn pass(&mut self) -> Result<Duration, LinkError> {
        let Some(cluster) = self.current()? else {
            return Ok(PROBE_EVERY);
        };
        if !self.shared.options.guard.may_write() {
            return Ok(STANDBY);
        }
        let mut pause = PROBE_EVERY;
        if cluster.metadata.deleting() {
            pause = self.leave(&cluster).await?;
        } else {
            self.write(Part::Main, |cluster| {
                let metadata = &mut cluster.metadata;
                if !metadata.deleting() && !metadata.finalizers.iter().any(|f| f == keys::CLUSTER_FINALIZER) {
                    metadata.finalizers.push(keys::CLUSTER_FINALIZER.to_owned());
                }
                let spec = &mut cluster.spec;
                if spec.zones.is_empty() && !spec.zone.is_empty() {
                    // Columns, and others who read Clusters, know zones alone.
                    spec.zones = vec![spec.zone.clone()];
                }
            })
            .await?;
            if !self.ensure_space().await? {
                pause = SPACE_PAUSE;
            }
        }
        let Some(cluster) = self.current()? else {
            return Ok(pause);
        };
        if cluster.spec.sync_mode == "Pull" {
            self.drop_link();
            self.write_pull().await?;
            return Ok(pause);
        }
        self.connect(&cluster).await?;
        if self.now() >= self.probe_due {
            self.probe_due = later(self.now(), PROBE_EVERY);
            let begun = Instant::now();
            let findings = self.ask_member().await;
            let metrics = &self.shared.options.metrics;
            metrics.cluster_sync(&self.name, begun.elapsed());
            let well = findings.probe == Probe::Healthy;
            self.write_status(&findings).await?;
            if well {
                self.renew_token().await;
            }
        }
        self.write_taints().await?;
        if let Some(cluster) = self.current()?
            && let Some(due) = self.measure(&cluster).await?
        {
            pause = pause.min(due);
        }
        Ok(pause.min(self.until(self.probe_due)))
    }

    /// The newest form of the Cluster; `None` if it is gone.
    pub(super) fn current(&self) -> Result<Option<Cluster>, LinkError> {
        match self.caches.clusters.cache.find("", &self.name) {
            Some(cached) if cached.uid == self.uid => cached.parse().map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn until(&self, time: Timestamp) -> Duration {
        Duration::try_from(time.duration_since(self.now()).max(SignedDuration::ZERO)).unwrap_or(PROBE_EVERY)
    }

    /// Makes the connection anew if what it is made from changed; the member is then asked at once.
    async fn connect(&mut self, cluster: &Cluster) -> Result<(), LinkError> {
        let secret = self.secret(cluster).await?;
        let spec = &cluster.spec;
        let made_from = canonical_hash(&json!([
            spec.api_endpoint,
            spec.insecure_skip_tls_verification,
            spec.proxy_url,
            spec.proxy_header,
            spec.secret_ref,
            secret.as_ref().map(|secret| &secret["data"]),
        ]))
        .to_string();
        if self
            .connection
            .as_ref()
            .is_some_and(|present| present.made_from == made_from)
        {
            return Ok(());
        }
        let link = match self
            .shared
            .options
            .connector
            .connect(cluster, secret.as_ref(), &self.shared.options.guard)
            .await
        {
            Ok(client) => Ok(Link::new(client)),
            Err(error) => Err(error.to_string()),
        };
        self.shared
            .update(&self.name, |state| state.link = link.as_ref().ok().cloned());
        let token = secret.and_then(|secret| {
            let token = secret_text(&secret, "token").ok().flatten()?;
            Some((Claims::of(&token)?, secret))
        });
        self.connection = Some(Connection {
            made_from,
            link: link.map(|link| link.answering_within(probe::ANSWER_WITHIN)),
            token,
        });
        self.forget_capacity();
        self.kinds = Kinds::default();
        self.probe_due = Timestamp::MIN;
        self.closer_look_due = Timestamp::MIN;
        self.renewal_due = Timestamp::MIN;
        self.shared.tell(&ClusterChange::Link(self.name.clone()));
        Ok(())
    }

    fn drop_link(&mut self) {
        self.forget_capacity();
        if self.connection.take().is_some() {
            self.shared.update(&self.name, |state| state.link = None);
            self.shared.tell(&ClusterChange::Link(self.name.clone()));
        }
    }

    /// The Secret that the Cluster names.
    async fn secret(&self, cluster: &Cluster) -> Result<Option<Value>, LinkError> {
        let Some(reference) = &cluster.spec.secret_ref else {
            return Ok(None);
        };
        if reference.namespace == keys::CLUSTER_NAMESPACE {
            let cached = self
                .caches
                .secrets
                .cache
                .find(&reference.namespace, &reference.name);
            return cached.map(|cached| cached.parse()).transpose();
        }
        // Elsewhere nobody watches: it is read with every pass.
        let path = Resource::secrets().object(&reference.namespace, &reference.name);
        match self.shared.options.hub.get(&path).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| LinkError::BadAnswer(error.to_string())),
            Err(LinkError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ask_member(&mut self) -> Findings {
        let mut findings = Findings {
            probe: Probe::NoConnection(String::new()),
            version: None,
            nodes: None,
        };
        let link = match self.connection.as_ref().map(|connection| &connection.link) {
            Some(Ok(link)) => link.clone(),
            Some(Err(problem)) => {
                findings.probe = Probe::NoConnection(problem.clone());
                return findings;
            }
            None => return findings,
        };
        findings.probe = probe::health(&link).await;
        if findings.probe != Probe::Healthy {
            return findings;
        }
        let closer = self.now() >= self.closer_look_due;
        if closer {
            self.closer_look_due = later(self.now(), LOOK_CLOSER_EVERY);
            let (version, nodes) = tokio::join!(probe::version(&link), probe::nodes(&link));
            findings.version = self.or_log("version", version);
            findings.nodes = self.or_log("nodes", nodes);
        }
        let refreshed = self.kinds.refresh(&link, closer).await;
        if self.or_log("kinds", refreshed) == Some(true) {
            let known = self.kinds.known.clone();
            self.shared.update(&self.name, |state| state.kinds = known);
            self.shared.tell(&ClusterChange::Kinds(self.name.clone()));
        }
        findings
    }

    /// What a member could not tell this time is told the next; what was known stays.
    fn or_log<T>(&self, what: &str, answer: Result<T, LinkError>) -> Option<T> {
        answer
            .inspect_err(|error| tracing::info!(cluster = self.name, what, %error, "the member did not tell"))
            .ok()
    }

    /// Tells of something that went well.
    pub(super) fn success(&mut self, reason: &'static str, message: String) {
        // What went wrong before is worth saying again if it comes back.
        if let Some(failed) = reason.strip_suffix("Succeed") {
            self.warned
                .retain(|warned, _| warned.strip_suffix("Failed") != Some(failed));
        }
        self.shared
            .options
            .events
            .success(&self.target(), reason, &message);
    }

    /// Tells of something that is not well, unless that was the last thing told.
    pub(super) fn warn(&mut self, reason: &'static str, message: String) {
        if self.warned.get(reason) != Some(&message) {
            self.shared.options.events.warn(&self.target(), reason, &message);
            self.warned.insert(reason, message);
        }
    }

    fn target(&self) -> EventTarget {
        let resource = Resource::clusters();
        EventTarget {
            api_version: resource.api_version(),
            kind: resource.kind,
            namespace: String::new(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}
