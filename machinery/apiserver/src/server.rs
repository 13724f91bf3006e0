//! The server: its state, and how it is put together.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use machinery_auth::{Pki, UserInfo};
use machinery_store::{OpenError, Options as StoreOptions, Store};
use tokio::task::JoinHandle;

use crate::audit::AuditLog;
use crate::authenticate::Authenticator;
use crate::indexes::Indexes;
use crate::object::Object;
use crate::places::Places;
use crate::registry::Registry;
use crate::{bootstrap, controllers};

/// Where a server's time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a server is set up.
#[derive(Clone)]
pub struct Options {
    /// The file that keeps its objects; none keeps them in memory.
    pub path: Option<PathBuf>,
    /// Who signs and who is trusted.
    pub pki: Arc<Pki>,
    /// Bearer tokens that are known from the start, and whose they are.
    pub tokens: Vec<(String, UserInfo)>,
    /// The time.
    pub clock: Clock,
    /// How many requests are worked on at once; more wait for their turn. A list or a watch counts until its answer begins: what is
    /// long about it is made in turns.
    pub max_in_flight: usize,
    /// How long a request's body may take to come.
    pub body_within: Duration,
    /// How long a connection may be silent before its first request.
    pub first_bytes_within: Duration,
    /// Whether the usual roles and bindings are made on start.
    pub bootstrap_roles: bool,
    /// Whether namespaces, owners, accounts and aggregated roles are looked after; a bare API server leaves that to
    /// controllers of its own.
    pub cluster_controllers: bool,
    /// How many changes are remembered for watches and lists of the past; older ones are told to start over.
    pub history_events: usize,
    /// Where requests are logged, if anywhere.
    pub audit: Option<AuditLog>,
}

impl Options {
    /// The usual settings: in memory, the system's clock.
    pub fn new(pki: Arc<Pki>) -> Self {
        Self {
            path: None,
            pki,
            tokens: Vec::new(),
            clock: Arc::new(Timestamp::now),
            max_in_flight: 200,
            body_within: Duration::from_secs(60),
            first_bytes_within: Duration::from_secs(30),
            bootstrap_roles: true,
            cluster_controllers: true,
            history_events: StoreOptions::default().history_events,
            audit: None,
        }
    }
}

/// A Kubernetes API server. Clones are handles of the same one.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
    tasks: Arc<Tasks>,
}

/// What all handles share.
pub(crate) struct Inner {
    pub(crate) store: Store<Object>,
    pub(crate) registry: Registry,
    pub(crate) indexes: Indexes,
    pub(crate) authenticator: Authenticator,
    pub(crate) places: Places,
    /// Where long answers are made, part by part.
    pub(crate) workplaces: Places,
    pub(crate) body_within: Duration,
    pub(crate) first_bytes_within: Duration,
    /// The authority that clients of this cluster trust.
    pub(crate) ca_pem: String,
    pub(crate) audit: Option<AuditLog>,
    clock: Clock,
    /// Itself, for what must go on when the request that began it is dropped.
    me: Weak<Inner>,
}

/// The controllers' tasks; they end with the last handle.
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl ApiServer {
    /// Opens the store, makes what every cluster has, and starts the controllers. Needs a tokio runtime.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let bounds = StoreOptions {
            history_events: options.history_events,
            ..StoreOptions::default()
        };
        let store = match &options.path {
            Some(path) => Store::open(path, bounds)?,
            None => Store::memory_with(&bounds),
        };
        let inner = Arc::new_cyclic(|me| Inner {
            store,
            registry: Registry::default(),
            indexes: Indexes::new(options.bootstrap_roles),
            authenticator: Authenticator::new(&options.pki, options.tokens),
            places: Places::new(options.max_in_flight),
            // Enough for one user to keep every core busy, and no more than that between other work.
            workplaces: Places::new(2 * std::thread::available_parallelism().map_or(1, usize::from)),
            body_within: options.body_within,
            first_bytes_within: options.first_bytes_within,
            ca_pem: options.pki.ca_pem().to_owned(),
            audit: options.audit,
            clock: options.clock,
            me: me.clone(),
        });
        inner.indexes.load(&inner);
        bootstrap::ensure(&inner, options.bootstrap_roles)
            .await
            .map_err(|e| StartError::Bootstrap(e.to_string()))?;
        let tasks = controllers::start(&inner, options.cluster_controllers);
        Ok(Self {
            inner,
            tasks: Arc::new(Tasks(tasks)),
        })
    }

    /// Stops the controllers, closes the store and waits for the last lines of the audit log; writes that were acknowledged are
    /// on disk already.
    pub async fn stop(self) {
        for task in &self.tasks.0 {
            task.abort();
        }
        self.inner.store.clone().close().await;
        if let Some(log) = &self.inner.audit
            && !log.flush().await
        {
            tracing::warn!("the last lines of the audit log are not written");
        }
    }

    /// What is served.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }
}

impl Inner {
    /// A handle of its own for a task that outlives its caller.
    pub(crate) fn shared(&self) -> Arc<Self> {
        self.me
            .upgrade()
            .expect("a server is only ever reached through a handle that keeps it")
    }

    /// The present.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The present as Kubernetes writes it: RFC 3339, whole seconds.
    pub(crate) fn now_text(&self) -> String {
        self.time_text(0)
    }

    /// The time `seconds` from now.
    pub(crate) fn time_text(&self, seconds: i64) -> String {
        let whole = self.now().as_second().saturating_add(seconds);
        Timestamp::from_second(whole)
            .unwrap_or(Timestamp::UNIX_EPOCH)
            .to_string()
    }

    pub(crate) fn new_uid(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    /// Five characters that make no words, for generated names.
    pub(crate) fn random_suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        // The version and variant bits of a UUID are not random: these bytes have none.
        bytes[..5]
            .iter()
            .map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()]))
            .collect()
    }
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The first objects could not be written.
    #[error("failed to write the objects that every cluster has: {0}")]
    Bootstrap(String),
}
