//! A short hunt with a fixed seed, and everything that was ever found.

use std::fs;
use std::path::Path;

use machinery_fuzz::{hunt, run_one, targets};

/// Few enough for a test run; the long hunts are those of the program.
const INPUTS: u64 = 400;

#[test]
fn a_short_hunt_finds_nothing() {
    let failures: Vec<String> = targets()
        .iter()
        .filter_map(|target| {
            let done = hunt(target, 1, |inputs| inputs >= INPUTS, |_| {});
            assert!(done.ways > 2, "{}: all inputs went the same way", target.name);
            let finding = done.finding?;
            Some(format!(
                "{}: {}\n  {:?}",
                target.name,
                finding.what,
                String::from_utf8_lossy(&finding.input)
            ))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn seeds_are_good_inputs() {
    for target in targets() {
        for seed in (target.seeds)() {
            let outcome = run_one(&target, &seed);
            assert!(outcome.is_ok(), "{}: {outcome:?}", target.name);
        }
    }
}

#[test]
fn what_was_found_stays_mended() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut failures = Vec::new();
    for folder in fs::read_dir(found).unwrap() {
        let folder = folder.unwrap();
        if !folder.file_type().unwrap().is_dir() {
            continue;
        }
        let name = folder.file_name().into_string().unwrap();
        let target = targets().into_iter().find(|target| target.name == name);
        let target = target.unwrap_or_else(|| panic!("found/{name} belongs to no target"));
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap().path();
            if let Err(what) = run_one(&target, &fs::read(&file).unwrap()) {
                failures.push(format!("{}: {what}", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
