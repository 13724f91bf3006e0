//! The differential suite: the same requests go to two API servers, and their answers are compared field by field.
//!
//! A [`Script`] is a list of steps, each one request; it runs in a namespace of its own on both [`Target`]s, step by step in
//! lockstep. What must differ between any two servers (uids, times, …) is replaced by placeholders first: [`normalise`] holds
//! the whole list, with the reason for each. Everything else that differs is in the [`Report`].
//!
//! Scripts are written by hand in `exchanges/*.yaml`, and further ones are made from a seed by [`generate`]. Comparing knows
//! neither server: run against the same kind of server twice, it must find nothing, which is how the placeholders are proven.
//! Scripts in `recordings/` hold what a real server answered once, and [`replay`] asks one server alone.
//! [`hunt`] makes scripts for as long as it is told to, shrinks those that differ, and keeps them in `regressions/`.

pub mod allowed;
mod client;
pub mod compare;
mod embedded;
pub mod generate;
pub mod hunt;
pub mod normalise;
mod real;
mod recording;
mod report;
mod runner;
mod script;
mod shrink;
mod template;

pub use client::{Answer, Credential, Target, TargetError, TransportError};
pub use embedded::EmbeddedServer;
pub use real::{RealError, RealServer};
pub use recording::{Recorded, replay};
pub use report::{Failure, Report};
pub use runner::{Options, run};
pub use script::{Body, Keep, PatchType, Script, ScriptError, Step, load_scripts};
