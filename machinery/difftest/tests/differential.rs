//! The embedded server answers as a real one does: the differential suite, hand-written and generated.
//!
//! The generated part is the same each time, so that a run does not fail for what somebody else has changed;
//! `LOCKGATE_DIFF_SEED` makes another one (any number, or `clock`), and `LOCKGATE_DIFF_ONLY` picks scripts by a part of their name.
//! What differs is made small, printed, and written to `LOCKGATE_DIFF_KEEP`; scripts in `regressions/` are run each time.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use machinery_difftest::{
    EmbeddedServer, Options, RealError, RealServer, allowed, generate, hunt, load_scripts, run,
};

/// How many scripts are generated, each of some twenty exchanges.
const GENERATED: usize = 100;

/// How many differences are made small: each takes a minute or so.
const CONDENSED: usize = 3;

/// What is generated unless somebody asks for something else.
const SEED: u64 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_server_answers_as_the_real_one() {
    let real = match RealServer::start() {
        Ok(real) => real,
        Err(RealError::Unavailable) => {
            println!("NOTHING WAS COMPARED: {}", RealError::Unavailable);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let embedded = EmbeddedServer::start().await.unwrap();
    let seed = match std::env::var("LOCKGATE_DIFF_SEED").as_deref() {
        Ok("clock") => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(),
        Ok(seed) => seed.parse().expect("LOCKGATE_DIFF_SEED is a number"),
        Err(_) => SEED,
    };
    let only = std::env::var("LOCKGATE_DIFF_ONLY").unwrap_or_default();
    let mut scripts = load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("exchanges")).unwrap();
    scripts.extend(load_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions")).unwrap());
    let by_hand: usize = scripts.iter().map(|script| script.steps.len()).sum();
    scripts.extend(generate::scripts(seed, GENERATED).unwrap());
    let all: usize = scripts.iter().map(|script| script.steps.len()).sum();
    assert!(
        all >= 500 && all > 2 * by_hand,
        "{by_hand} of {all} exchanges are written by hand"
    );
    scripts.retain(|script| script.name.contains(&only));
    let options = Options {
        run: "embedded".to_owned(),
        transcript: false,
    };
    let mut report = run(
        &real.target("real").unwrap(),
        &embedded.target,
        &scripts,
        &options,
    )
    .await
    .unwrap();
    let used = allowed::remove(&mut report);
    let targets = (&real.target("real").unwrap(), &embedded.target);
    for gone in hunt::ask_again(targets, &scripts, &mut report, "again")
        .await
        .unwrap()
    {
        println!("NOT COUNTED, for it did not show again: {gone:?}");
    }
    println!(
        "{} exchanges in {} scripts compared, seed {seed}",
        report.exchanges, report.scripts
    );
    if !report.is_clean() {
        let folder = std::env::var("LOCKGATE_DIFF_KEEP").map_or_else(
            |_| Path::new(env!("CARGO_TARGET_TMPDIR")).join("regressions"),
            PathBuf::from,
        );
        let small = hunt::condense(targets, &scripts, &report, CONDENSED, &folder)
            .await
            .unwrap();
        let small: String = small
            .iter()
            .map(|(file, text)| format!("\nmade small, as {}:\n{text}", file.display()))
            .collect();
        panic!(
            "{report}\nto repeat: LOCKGATE_DIFF_SEED={seed}{small}\n\
             what is made small belongs into regressions/ with the change that makes it agree"
        );
    }
    if only.is_empty() {
        // Those of the hand-written scripts must show each time; the others are up to the seed.
        let mut unused = Vec::new();
        for (allowed, used) in allowed::ALLOWED.iter().zip(used) {
            let places = allowed.places.iter().zip(used);
            let silent = places.filter(|(place, used)| !used && !place.script.is_empty());
            unused.extend(silent.map(|(place, _)| (allowed.name, *place)));
        }
        assert!(
            unused.is_empty(),
            "allowed differences that did not show, to be taken off the list: {unused:?}"
        );
    }
}
