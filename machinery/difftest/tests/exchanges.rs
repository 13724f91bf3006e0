//! The hand-written scripts themselves: they can be read, and none of their steps is satisfied by just any answer.

use std::path::Path;

use machinery_difftest::load_scripts;

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
            assert!(
                step.ignore.values().all(|reason| !reason.is_empty()),
                "{}: {} ignores without a reason",
                script.name,
                step.request
            );
        }
    }
    assert!(steps >= 500, "{steps} exchanges in {} scripts", scripts.len());
}
