//! Real answers: scripts that were run against a real server, replayed here without one.
//!
//! `tests/golden/record` writes the answers; what is compared is who owns what, when, what an apply makes of an object,
//! and the text of every refusal.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "golden/replay.rs"]
mod replay;

use replay::Replay;

/// The scripts. Each has at least so many steps, lest one becomes empty unnoticed.
const SCRIPTS: [(&str, &str, usize); 9] = [
    ("configmap", include_str!("golden/configmap.json"), 50),
    ("deployment", include_str!("golden/deployment.json"), 40),
    ("service", include_str!("golden/service.json"), 10),
    ("pod", include_str!("golden/pod.json"), 9),
    ("updaters", include_str!("golden/updaters.json"), 20),
    ("kubectl", include_str!("golden/kubectl.json"), 10),
    ("gadget", include_str!("golden/gadget.json"), 50),
    ("kinds", include_str!("golden/kinds.json"), 20),
    ("cluster", include_str!("golden/cluster.json"), 8),
];

#[test]
fn answers_are_those_of_a_real_server() {
    let mut differences = Vec::new();
    for (name, text, least) in SCRIPTS {
        let script = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut replay = Replay::new(&script);
        let steps = replay.run();
        assert!(steps >= least, "{name} has {steps} steps");
        differences.extend(replay.differences.iter().map(|found| format!("{name}, {found}")));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
