//! The kinds that Lockgate serves: their wire types, their names and keys, and the definitions that install them.
//!
//! Types here say what is on the wire and decide nothing. Every field of the served schemas is present, so that an object
//! that is read, changed and written back loses nothing that the server would have kept.

pub mod binding;
pub mod cluster;
pub mod definitions;
pub mod interpreter;
pub mod keys;
pub mod meta;
pub mod names;
pub mod ocm;
pub mod overrides;
pub mod placement;
pub mod policy;
pub mod rollout;
pub mod rollout_policy;
pub mod work;

pub use binding::{Binding, BindingSpec, BindingStatus};
pub use cluster::Cluster;
pub use interpreter::InterpreterCustomization;
pub use meta::{Condition, ObjectMeta, OwnerReference};
pub use overrides::OverridePolicy;
pub use placement::{ClusterAffinity, Placement};
pub use policy::{PropagationPolicy, PropagationSpec, ResourceSelector};
pub use rollout::RolloutStrategy;
pub use rollout_policy::{RolloutPolicy, RolloutSpec};
pub use work::Work;
