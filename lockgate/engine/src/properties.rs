//! How the property tests are run.

use proptest::test_runner::{Config, RngSeed};

/// So many cases, always the same ones: a change is not refused for what it did not do. `PROPTEST_CASES=1000000` looks
/// for new ones.
pub(crate) fn cases(cases: u32) -> Config {
    let told = Config::default();
    let explores = std::env::var_os("PROPTEST_CASES").is_some();
    Config {
        cases: if explores { told.cases } else { cases },
        rng_seed: if explores {
            told.rng_seed
        } else {
            RngSeed::Fixed(7)
        },
        failure_persistence: None,
        ..told
    }
}
