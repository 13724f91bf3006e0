//! Fuzzing without tools: seeded mutations of good inputs, against everything of the server that reads bytes.
//!
//! A [`Target`] reads an input and says what came of it: the outcome is a number that is alike for inputs that go the same
//! way, so that inputs with a new outcome are kept and mutated further. A finding is a panic, a property that does not hold
//! (what was written can be read back, doing it twice changes nothing more), an end of the process, or no end at all.
//!
//! What always holds: a seed makes the same inputs on every machine. `found/` keeps one file for every finding, and the tests
//! run each of them. `machinery-fuzz` hunts on for as long as it is told to.

mod hunt;
mod mutate;
mod random;
mod targets;
mod watch;

pub use hunt::{Finding, Hunt, hunt, run_one};
pub use targets::targets;
pub use watch::{Watched, hunt_for, watch};

/// Separates the documents of an input that has several.
pub const SEPARATOR: &str = "\n---\n";

/// What came of an input; alike for inputs that went the same way.
pub type Outcome = Result<u64, String>;

/// Something that reads bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line, and that of its folder in `found/`.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// Good inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads one input. The error says which property does not hold.
    pub run: fn(&[u8]) -> Outcome,
}
