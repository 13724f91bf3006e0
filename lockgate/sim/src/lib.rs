//! Member clusters that behave: workloads become ready, or fail.
//!
//! An embedded API server keeps objects and nothing more. This crate plays the rest of a cluster for it: the
//! scheduler, the kubelets and the controllers of workloads, services and storage.
//!
//! **Pure decisions, thin I/O.** Each controller is a module with a function from what it sees and the time to
//! [`Action`]s: [`deployment`], [`replicaset`], [`statefulset`], [`daemonset`], [`job`], [`scheduler`], [`pod`],
//! [`service`], [`claim`], [`node`], [`disruption`], and [`fast`] for workloads without Pods. [`Member`] feeds them from the changes
//! of a server, carries the actions out and wakes when a decision asked for it.
//!
//! What always holds:
//!
//! 1. A decision depends on what is stored and on the server's time alone. The exceptions are the delays of starting
//!    and stopping, which are measured from when the member first saw the object, because a status has whole seconds.
//! 2. Nothing is written that does not differ. A settled member writes nothing and wakes for nothing.
//! 3. Each object is queued once and has one time to wake, however often it changes.

mod action;
mod agenda;
pub mod behaviour;
pub mod claim;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod fast;
mod hash;
mod index;
pub mod job;
mod member;
pub mod node;
mod object;
mod options;
pub mod pod;
pub mod replicaset;
pub mod scheduler;
pub mod service;
pub mod statefulset;
#[cfg(test)]
mod testing;

pub use action::{Action, Key, Kind};
pub use behaviour::{BEHAVIOUR, Behaviour};
pub use member::Member;
pub use options::{NodeOptions, SimOptions};
