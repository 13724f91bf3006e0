//! Rollouts of templates that change, in fleets that fail, in virtual time. Everything is drawn from a seed, every decision is
//! made from what is stored alone, as after a restart, and some passes are cut off in the middle. What must hold is in
//! [`laws`], which keeps its own account of every cluster.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may end where it likes and say why"
)]

#[path = "simulation/draw.rs"]
mod draw;
#[path = "simulation/laws.rs"]
mod laws;
#[path = "simulation/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;
use lockgate_engine::gate::run::Phase;
use world::{END, World};

const RUNS: u64 = 1000;
/// At one moment nothing takes more passes than this.
const MOST_PASSES: usize = 20;

/// A moment, in seconds since the beginning.
pub(crate) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// Plays one fleet to its end.
fn play(seed: u64) -> Phase {
    let mut world = World::new(seed);
    let mut last = Phase::Progressing;
    loop {
        let mut recheck = None;
        for turn in 0.. {
            let passed = world.pass();
            (last, recheck) = (passed.phase, passed.recheck_at);
            if !passed.again {
                break;
            }
            assert!(turn < MOST_PASSES, "it does not come to rest at {}", world.now);
        }
        // A second look at what is settled changes nothing.
        if world.draw.one_in(8) {
            let second = world.pass();
            assert!(
                !second.changed,
                "a second look changes something at {}",
                world.now
            );
        }
        if !world.pass_time(recheck) {
            break;
        }
        assert!(world.now < END, "it has no end, and is {last:?}");
    }
    let over = [
        Phase::Succeeded,
        Phase::Failed,
        Phase::RolledBack,
        Phase::RollbackFailed,
        Phase::Aborted,
    ];
    assert!(over.contains(&last), "it is over, and still {last:?}");
    if last.is_settled() {
        world.check_everywhere();
    }
    last
}

#[test]
fn nothing_goes_wrong_in_a_thousand_fleets() {
    let ends: Mutex<BTreeMap<&str, usize>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    std::thread::scope(|scope| {
        for first in 0..threads {
            let ends = &ends;
            scope.spawn(move || {
                for seed in (first..RUNS).step_by(threads as usize) {
                    let told = Told(seed);
                    let phase = play(seed);
                    std::mem::forget(told);
                    *ends.lock().unwrap().entry(phase.name()).or_default() += 1;
                }
            });
        }
    });
    // All ends are met, so that nothing holds for want of cases.
    let ends = ends.into_inner().unwrap();
    for phase in ["Succeeded", "Failed", "RolledBack", "RollbackFailed"] {
        assert!(ends.get(phase).copied().unwrap_or(0) > 10, "{ends:?}");
    }
}

/// Tells which fleet it was, when it ends in a panic.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("in fleet {}", self.0);
    }
}
