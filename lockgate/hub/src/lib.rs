//! The reconcilers: caches, indexes and writers that walk objects through the engine's stations. The only crate that joins
//! engine and I/O. It reaches the hub and the members through a `kube::Client` and nothing else, so that it does not know
//! which server it talks to.

pub mod clock;
mod queue;

pub use clock::Clock;
