//! The Lease: reading it, taking it, renewing it, giving it up.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ElectionOptions;
use crate::clock::Clock;
use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// A Lease as the server holds it; fields of others are kept.
#[derive(Clone, Debug)]
pub(super) struct Lease(Value);

impl Lease {
    fn parse(body: &[u8]) -> Result<Self, LinkError> {
        serde_json::from_slice(body)
            .map(Self)
            .map_err(|e| LinkError::BadAnswer(format!("not a lease: {e}")))
    }

    fn holder(&self) -> &str {
        self.0["spec"]["holderIdentity"].as_str().unwrap_or_default()
    }

    /// How long its holder may be silent, as the holder says.
    fn seconds(&self) -> u64 {
        self.0["spec"]["leaseDurationSeconds"].as_u64().unwrap_or(0)
    }

    fn version(&self) -> &str {
        self.0["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }

    fn set(&mut self, key: &str, value: Value) {
        if let Some(lease) = self.0.as_object_mut() {
            let spec = lease.entry("spec").or_insert_with(|| json!({}));
            if !spec.is_object() {
                *spec = json!({});
            }
            spec[key] = value;
        }
    }
}

/// Where the elected sits: the Lease on its server, and who we are.
pub(super) struct Seat {
    link: Link,
    pub(super) options: ElectionOptions,
    clock: Clock,
    collection: String,
    path: String,
}

impl Seat {
    pub(super) fn new(link: Link, options: ElectionOptions, clock: Clock) -> Self {
        let leases = Resource::leases();
        Self {
            collection: leases.collection(&options.namespace),
            path: leases.object(&options.namespace, &options.name),
            link,
            options,
            clock,
        }
    }

    /// Waits for the lease. The instant is from before the request that took it was sent.
    pub(super) async fn win(&self) -> (Lease, Instant) {
        // The version that was seen last, and when it was seen first: a version that stands still for as long as its holder
        // said has no holder any more.
        let mut seen: Option<(String, Instant)> = None;
        loop {
            let begun = Instant::now();
            match self.try_win(&mut seen).await {
                Ok(Some(lease)) => return (lease, begun),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "failed to ask for the lease"),
            }
            tokio::time::sleep(self.options.retry).await;
        }
    }

    async fn try_win(&self, seen: &mut Option<(String, Instant)>) -> Result<Option<Lease>, LinkError> {
        let lease = match self.link.get(&self.path).await {
            Ok(body) => Lease::parse(&body)?,
            Err(LinkError::NotFound) => return self.create().await.map(Some),
            Err(error) => return Err(error),
        };
        let since = match seen {
            Some((version, since)) if version == lease.version() => *since,
            _ => {
                let now = Instant::now();
                *seen = Some((lease.version().to_owned(), now));
                now
            }
        };
        let silent = since.elapsed();
        let holder = lease.holder();
        let free = holder.is_empty()
            || holder == self.options.identity
            || silent > std::time::Duration::from_secs(lease.seconds());
        if !free {
            return Ok(None);
        }
        let changes_hands = holder != self.options.identity;
        let mut lease = lease;
        if changes_hands {
            let transitions = lease.0["spec"]["leaseTransitions"].as_i64().unwrap_or(0);
            lease.set("leaseTransitions", transitions.saturating_add(1).into());
            lease.set("acquireTime", self.now().into());
        }
        self.put(lease).await.map(Some)
    }

    async fn create(&self) -> Result<Lease, LinkError> {
        let mut lease = Lease(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.options.name, "namespace": self.options.namespace},
            "spec": {"acquireTime": self.now(), "leaseTransitions": 0},
        }));
        self.hold(&mut lease);
        let made = self.link.create(&self.collection, lease.bytes()).await;
        if made == Err(LinkError::NotFound) {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": self.options.namespace}});
            let namespaces = Resource::namespaces().collection("");
            self.link
                .create(&namespaces, namespace.to_string().into_bytes())
                .await?;
            return Lease::parse(&self.link.create(&self.collection, lease.bytes()).await?);
        }
        Lease::parse(&made?)
    }

    /// Renews the lease; none when another holds it.
    pub(super) async fn renew(&self, lease: &Lease) -> Result<Option<Lease>, LinkError> {
        match self.put(lease.clone()).await {
            // Somebody else wrote it: to take it, to touch its metadata, to delete it. Or an answer to us was lost on its way.
            Err(LinkError::Conflict | LinkError::NotFound) => {}
            renewed => return renewed.map(Some),
        }
        let current = match self.link.get(&self.path).await {
            Ok(body) => Lease::parse(&body)?,
            Err(LinkError::NotFound) => {
                return match self.create().await {
                    Err(LinkError::AlreadyExists) => Ok(None),
                    made => made.map(Some),
                };
            }
            Err(error) => return Err(error),
        };
        if current.holder() != self.options.identity {
            return Ok(None);
        }
        self.put(current).await.map(Some)
    }

    /// Leaves the lease to whoever comes first.
    pub(super) async fn give_up(&self, mut lease: Lease) -> Result<(), LinkError> {
        lease.set("holderIdentity", "".into());
        lease.set("leaseDurationSeconds", 1.into());
        lease.set("renewTime", self.now().into());
        match self.link.replace(&self.path, lease.bytes()).await {
            // It is another's by now, or nobody's.
            Ok(_) | Err(LinkError::Conflict | LinkError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn put(&self, mut lease: Lease) -> Result<Lease, LinkError> {
        self.hold(&mut lease);
        Lease::parse(&self.link.replace(&self.path, lease.bytes()).await?)
    }

    fn hold(&self, lease: &mut Lease) {
        // Others round this to whole seconds too, and must not think it shorter than we do.
        let seconds = self.options.duration.as_millis().div_ceil(1000).max(1);
        lease.set("holderIdentity", self.options.identity.as_str().into());
        lease.set(
            "leaseDurationSeconds",
            u64::try_from(seconds).unwrap_or(u64::MAX).into(),
        );
        lease.set("renewTime", self.now().into());
    }

    fn now(&self) -> String {
        micros(self.clock.now())
    }
}

/// RFC 3339 with microseconds, as Leases carry it.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
