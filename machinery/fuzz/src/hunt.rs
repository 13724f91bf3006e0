//! The hunt for one target.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use crate::random::Random;
use crate::{Outcome, Target, mutate};

/// Kept inputs beyond this number replace older ones.
const MAX_KEPT: usize = 2_000;
/// How often an input that fails is tried with a part left out.
const MAX_SHRINKING: usize = 2_000;

thread_local! {
    /// What the last panic of this thread said, and where.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// An input that something is wrong with.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The input, as small as it could be made.
    pub input: Vec<u8>,
    /// What is wrong.
    pub what: String,
}

/// What a hunt came to.
#[derive(Clone, Debug, Default)]
pub struct Hunt {
    /// How many inputs were read.
    pub inputs: u64,
    /// How many ways they went.
    pub ways: usize,
    /// The input that took longest, and how long that was.
    pub slowest: (Duration, Vec<u8>),
    /// What was found; a hunt ends with it.
    pub finding: Option<Finding>,
}

/// Reads one input; a panic is an error like any other.
pub fn run_one(target: &Target, input: &[u8]) -> Outcome {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            SAID.with(|said| *said.borrow_mut() = info.to_string());
        }));
    });
    catch_unwind(AssertUnwindSafe(|| (target.run)(input)))
        .unwrap_or_else(|_| Err(SAID.with(|said| said.borrow().clone())))
}

/// Reads inputs made from `seed` until `enough` says so, which is asked with the number of inputs before each; `about_to`
/// sees every input before it is read.
pub fn hunt(
    target: &Target,
    seed: u64,
    mut enough: impl FnMut(u64) -> bool,
    mut about_to: impl FnMut(&[u8]),
) -> Hunt {
    let mut random = Random::new(seed, target.name);
    let mut kept = (target.seeds)();
    let seeds = kept.len();
    let mut ways = HashSet::new();
    let mut done = Hunt::default();
    while !enough(done.inputs) {
        let number = done.inputs as usize;
        let input = if number < seeds {
            kept[number].clone()
        } else {
            // Lately kept inputs lead somewhere new more often than old ones.
            let recent = kept.len().min(16);
            let place = if random.below(2) == 0 {
                kept.len() - 1 - random.below(recent)
            } else {
                random.below(kept.len())
            };
            mutate::mutate(&kept[place], &kept, &mut random)
        };
        about_to(&input);
        done.inputs += 1;
        let began = Instant::now();
        let outcome = run_one(target, &input);
        if began.elapsed() > done.slowest.0 {
            done.slowest = (began.elapsed(), input.clone());
        }
        match outcome {
            Err(what) => {
                done.finding = Some(shrink(target, input, what));
                break;
            }
            Ok(way) if ways.insert(way) && number >= seeds => {
                if kept.len() < MAX_KEPT {
                    kept.push(input);
                } else {
                    let place = seeds + random.below(kept.len() - seeds);
                    kept[place] = input;
                }
            }
            Ok(_) => {}
        }
    }
    done.ways = ways.len();
    done
}

/// Leaves out what the failure does not need.
fn shrink(target: &Target, mut input: Vec<u8>, mut what: String) -> Finding {
    let mut tries = 0;
    let began = Instant::now();
    let mut size = input.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < input.len() && tries < MAX_SHRINKING && began.elapsed() < Duration::from_secs(10) {
            tries += 1;
            let mut smaller = input.clone();
            smaller.drain(at..(at + size).min(input.len()));
            match run_one(target, &smaller) {
                Err(still) => (input, what) = (smaller, still),
                Ok(_) => at += size,
            }
        }
        size /= 2;
    }
    Finding { input, what }
}
