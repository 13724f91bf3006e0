//! Scenarios: readable files of steps and expectations, run on embedded servers in this process and on real ones.
//!
//! ```text
//!   file ─▶ Scenario ─▶ run ─▶ Outcome
//!                        │
//!          Backend (servers)   Plane (controllers)
//! ```
//!
//! What always holds:
//!
//! 1. Nothing is checked before the controllers have seen every change and have nothing left to do, and no server owes
//!    anything to itself. Every wait has a condition and a deadline that says what is not so.
//! 2. The runner is an administrator with kubectl: it knows nothing of the controllers but whether they are idle.
//! 3. A key that means nothing is refused. An expectation is never skipped silently.

mod backend;
mod file;
mod hub;
mod line;
mod matching;
mod path;
mod plane;
mod reference;
mod report;
mod run;
mod server;
mod settle;
mod tower;
mod world;
mod yaml;

pub use backend::{Backend, Embedded, Real, RealError};
pub use file::*;
pub use hub::{CountedPlane, HubPlane};
pub use line::{Fuse, Line};
pub use path::Path;
pub use plane::{Controllers, Joining, NoPlane, Plane, Setup, Watching};
pub use reference::Reference;
pub use report::Failure;
pub use run::{Outcome, Variant, run};
pub use world::World;
