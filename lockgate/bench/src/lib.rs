//! A load generator that measures the embedded API server and a real kube-apiserver side by side, what propagation through the
//! control plane costs (`fleet`; `hub` for one that runs already), and placing in a large fleet (`placing`).
//!
//! ```text
//!   arguments ─▶ servers (start, stop) ─▶ sections: members · start · operations · apply · watch · crowd · memory ─▶ report
//!                                              │
//!                                 client (TLS, HTTP/2) and load (closed loop, verified)
//! ```
//!
//! What always holds:
//!
//! 1. Both servers are asked by the same client for the same things, in turns, over TLS on loopback.
//! 2. A figure is only reported when what the server did was read back and found right: a run with one mismatch fails.
//! 3. The servers run with their defaults; what was written durably is said in the report.

mod apply;
mod arguments;
mod client;
mod cost;
mod error;
mod fleet;
mod hub;
mod kubeconfig;
mod latencies;
mod load;
mod machine;
mod members;
mod memory;
mod operations;
mod payload;
mod placing;
mod process;
mod progress;
mod report;
mod run;
mod servers;
mod start;
mod table;
mod verify;
mod watch;

pub use arguments::{ApiArguments, Format, RealChoice, Section};
pub use error::BenchError;
pub use fleet::{FleetArguments, PolicyArguments, run_fleet, run_policy};
pub use hub::{HubArguments, Named, Way, run_hub};
pub use placing::{Part, PlacingArguments, run_placing};
pub use progress::Progress;
pub use run::run;
