//! The hand-written scripts themselves: they can be read, and none of their steps is satisfied by just any answer.

use std::collections::BTreeSet;
use std::path::Path;

use machinery_difftest::allowed::{ALLOWED, ANY_TWO, NOT_GENERATED};
use machinery_difftest::load_scripts;

/// How many differences may stay.
const MOST: usize = 25;

#[test]
fn every_step_says_what_it_expects() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("exchanges");
    let scripts = load_scripts(&dir).unwrap();
    let mut steps = 0;
    for script in &scripts {
        assert!(
            !script.about.is_empty(),
            "{} does not say what it is about",
            script.name
        );
        assert!(!script.steps.is_empty(), "{} does nothing", script.name);
        for step in &script.steps {
            steps += 1;
            assert!(
                step.request.contains(" -> "),
                "{}: {} expects no status",
                script.name,
                step.request
            );
        }
    }
    assert!(steps >= 500, "{steps} exchanges in {} scripts", scripts.len());
}

/// Whatever leaves something out of a comparison counts, whichever way it does so, and there is one list of reasons.
#[test]
fn few_differences_stay_and_each_is_on_the_list() {
    let mut named: BTreeSet<String> = NOT_GENERATED.iter().map(|name| (*name).to_owned()).collect();
    for folder in ["exchanges", "regressions", "recordings"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for script in load_scripts(&dir).unwrap() {
            for step in &script.steps {
                for reason in step.reasons() {
                    let known = ALLOWED.iter().any(|allowed| allowed.name == reason)
                        || ANY_TWO.iter().any(|(name, _)| *name == reason);
                    assert!(
                        known,
                        "{}: {}: {reason:?} is on no list",
                        script.name, step.request
                    );
                    named.insert(reason.to_owned());
                }
            }
        }
    }
    for allowed in ALLOWED {
        let is_used = !allowed.places.is_empty() || named.contains(allowed.name);
        assert!(is_used, "{} is not used any more", allowed.name);
    }
    for (name, _) in ANY_TWO {
        assert!(named.contains(*name), "{name} is not used any more");
    }
    let names: BTreeSet<&str> = ALLOWED.iter().map(|allowed| allowed.name).collect();
    assert_eq!(names.len(), ALLOWED.len(), "a name is there twice");
    assert!(ALLOWED.len() <= MOST, "{} differences stay", ALLOWED.len());
}
