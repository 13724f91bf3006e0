//! The reconcilers: caches, indexes and writers that walk objects through the engine's stations. The only crate that joins
//! engine and I/O. It reaches the hub and the members through a `kube::Client` and nothing else, so that it does not know
//! which server it talks to.

mod bound;
pub mod cache;
mod chores;
pub mod clock;
pub mod clusters;
pub mod connect;
pub mod discovery;
pub mod election;
pub mod events;
mod head;
mod hub;
pub mod install;
mod intake;
mod interpreters;
mod kinds;
mod lately;
pub mod link;
mod members;
pub mod metrics;
mod namespaces;
mod needs;
mod neighbours;
mod ocm;
mod policies;
mod precedence;
mod queue;
mod rebalance;
pub mod resource;
mod rollouts;
mod state;
mod template;
mod vanished;
pub mod watch;

pub use cache::{Cache, Cached, Change, Key};
pub use clock::Clock;
pub use clusters::{ClusterChange, Clusters, ClustersOptions};
pub use connect::{ConnectError, Connector, SecretConnector};
pub use discovery::{Discovery, discover};
pub use election::{Election, ElectionOptions, Guard};
pub use events::{EventTarget, Events};
pub use hub::{AtOnce, Hub, HubError, HubOptions};
pub use link::{DeleteOptions, Deleted, Link, LinkError};
pub use metrics::Metrics;
pub use ocm::policy_history::policy_history_id;
pub use resource::Resource;
pub use template::derived_id as work_id;
pub use watch::{Following, follow};
