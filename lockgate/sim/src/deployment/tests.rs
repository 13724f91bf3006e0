//! Rollouts, played without a server: sets become what they are told to be, if their image is good.

use super::*;
use crate::object::{is_true, replicas};
use crate::testing::{at, deployment};

/// A Deployment and its sets.
struct Play {
    deployment: Value,
    sets: Vec<Value>,
    second: i64,
    writes: usize,
}

impl Play {
    fn new(deployment: Value) -> Self {
        Self {
            deployment,
            sets: Vec::new(),
            second: 0,
            writes: 0,
        }
    }

    /// Decides once and does what was decided. Returns whether anything was to be done.
    fn step(&mut self) -> bool {
        let seen = Snapshot {
            deployment: &self.deployment,
            sets: &self.sets,
            namesake: None,
        };
        let mut moved = false;
        for action in decide(&seen, at(self.second)) {
            match action {
                Action::Create(mut set) => {
                    let name = name(&set).to_owned();
                    set["metadata"]["uid"] = json!(format!("uid-{name}"));
                    set["metadata"]["creationTimestamp"] = json!(crate::object::stamp(at(self.second)));
                    set["status"] = json!({"replicas": 0});
                    self.sets.push(set);
                }
                Action::Update(set) => {
                    let found = self.sets.iter_mut().find(|old| uid(old) == uid(&set));
                    *found.expect("a set is updated that exists") = set;
                }
                Action::UpdateStatus(changed) => self.deployment = changed,
                Action::Delete { uid: gone, .. } => self.sets.retain(|set| uid(set) != gone),
                Action::WakeAt(_) => continue,
                Action::Bind { .. } => panic!("a Deployment binds no Pods"),
            }
            moved = true;
            self.writes += 1;
        }
        moved
    }

    /// The sets become what they are told to be; Pods of a bad image exist but are not available.
    fn settle_sets(&mut self) -> bool {
        let mut moved = false;
        for set in &mut self.sets {
            let image = text(&set["spec"]["template"]["spec"]["containers"][0]["image"]);
            let size = int(&set["spec"]["replicas"]);
            let ready = if image.ends_with(":fail") { 0 } else { size };
            let status = json!({"replicas": size, "readyReplicas": ready, "availableReplicas": ready});
            moved |= set["status"] != status;
            set["status"] = status;
        }
        moved
    }

    /// Plays until nothing moves; at every moment the bounds of the strategy hold.
    fn play(&mut self) {
        for _ in 0..200 {
            let decided = self.step();
            self.check_bounds();
            let settled = self.settle_sets();
            if !decided && !settled {
                return;
            }
        }
        panic!("the Deployment never settles: {:#}", self.deployment["status"]);
    }

    fn check_bounds(&self) {
        let (surge, _) = limits(&self.deployment);
        let total: i64 = self.sets.iter().map(|set| int(&set["spec"]["replicas"])).sum();
        let before = int(&self.deployment["status"]["replicas"]);
        assert!(
            total <= (replicas(&self.deployment) + surge).max(before),
            "{total} Pods are too many"
        );
    }

    fn set_image(&mut self, image: &str) {
        self.deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        let generation = int(&self.deployment["metadata"]["generation"]) + 1;
        self.deployment["metadata"]["generation"] = json!(generation);
    }

    /// The counts of the status: replicas, updated, ready, available, unavailable.
    fn counts(&self) -> [i64; 5] {
        [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ]
        .map(|field| int(&self.deployment["status"][field]))
    }

    fn reason(&self, kind: &str) -> &str {
        text(&condition(&self.deployment["status"], kind).expect("there is such a condition")["reason"])
    }

    /// Each set's image, size and revision, by revision.
    fn shown(&self) -> Vec<String> {
        let mut sets: Vec<&Value> = self.sets.iter().collect();
        sets.sort_by_key(|set| revision_of(set));
        let show = |set: &&Value| {
            let image = text(&set["spec"]["template"]["spec"]["containers"][0]["image"]);
            format!("{}: {image} x{}", revision_of(set), set["spec"]["replicas"])
        };
        sets.iter().map(show).collect()
    }
}

#[test]
fn a_new_deployment_becomes_available() {
    let mut play = Play::new(deployment("web", 3));
    play.play();
    assert_eq!(play.counts(), [3, 3, 3, 3, 0]);
    assert_eq!(
        (play.reason("Available"), play.reason("Progressing")),
        ("MinimumReplicasAvailable", "NewReplicaSetAvailable")
    );
    assert_eq!(play.deployment["status"]["observedGeneration"], 1);
    assert_eq!(annotation(&play.deployment, REVISION), Some("1"));
    let set = &play.sets[0];
    let hash = set["metadata"]["labels"][HASH_LABEL]
        .as_str()
        .expect("a set has a hash");
    assert_eq!(name(set), format!("web-{hash}"));
    assert_eq!(set["spec"]["selector"]["matchLabels"][HASH_LABEL], hash);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"][HASH_LABEL], hash);
    let message = &condition(&play.deployment["status"], "Progressing").expect("progress")["message"];
    assert_eq!(
        *message,
        format!("ReplicaSet \"web-{hash}\" has successfully progressed.")
    );

    let writes = play.writes;
    play.second = 10_000;
    play.play();
    assert_eq!(play.writes, writes, "a settled Deployment writes nothing");
}

#[test]
fn an_update_rolls_and_leaves_history() {
    for (surge, unavailable) in [
        (json!("25%"), json!("25%")),
        (json!(1), json!(0)),
        (json!(0), json!(1)),
        (json!("100%"), json!(0)),
    ] {
        let mut start = deployment("web", 4);
        start["spec"]["strategy"]["rollingUpdate"] =
            json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let mut play = Play::new(start);
        play.play();
        play.set_image("web:2");
        play.play();
        assert_eq!(
            play.shown(),
            ["1: web:1 x0", "2: web:2 x4"],
            "surge {surge}, unavailable {unavailable}"
        );
        assert_eq!(play.counts(), [4, 4, 4, 4, 0]);
        assert_eq!(annotation(&play.deployment, REVISION), Some("2"));
    }
}

#[test]
fn going_back_reuses_the_old_set_with_a_new_revision() {
    let mut play = Play::new(deployment("web", 2));
    play.play();
    play.set_image("web:2");
    play.play();
    play.set_image("web:1");
    play.play();
    assert_eq!(play.shown(), ["2: web:2 x0", "3: web:1 x2"]);
    let old = play
        .sets
        .iter()
        .find(|set| revision_of(set) == 3)
        .expect("the set of revision 3");
    assert_eq!(annotation(old, HISTORY), Some("1"));
    assert_eq!(annotation(&play.deployment, REVISION), Some("3"));
}

#[test]
fn a_bad_image_gets_stuck_and_times_out() {
    let mut play = Play::new(deployment("web", 4));
    play.play();
    play.second = 100;
    play.set_image("web:fail");
    play.play();
    // A quarter may be missing, a quarter may be too many.
    assert_eq!(play.shown(), ["1: web:1 x3", "2: web:fail x2"]);
    assert_eq!(play.counts(), [5, 2, 3, 3, 2]);
    assert_eq!(
        (play.reason("Available"), play.reason("Progressing")),
        ("MinimumReplicasAvailable", "ReplicaSetUpdated")
    );
    play.second = 100 + 601;
    play.play();
    assert_eq!(play.reason("Progressing"), "ProgressDeadlineExceeded");
    assert!(!is_true(&play.deployment["status"], "Progressing"));
    play.set_image("web:1");
    play.play();
    assert_eq!(
        (play.counts(), play.reason("Progressing")),
        ([4, 4, 4, 4, 0], "NewReplicaSetAvailable")
    );
}

#[test]
fn a_deadline_is_waited_for() {
    let mut play = Play::new(deployment("web", 1));
    play.set_image("web:fail");
    play.play();
    let seen = Snapshot {
        deployment: &play.deployment,
        sets: &play.sets,
        namesake: None,
    };
    assert_eq!(decide(&seen, at(0)), [Action::WakeAt(at(601))]);
}

#[test]
fn recreating_waits_for_the_old_pods() {
    let mut start = deployment("web", 3);
    start["spec"]["strategy"] = json!({"type": "Recreate"});
    let mut play = Play::new(start);
    play.play();
    play.set_image("web:2");
    play.step();
    assert_eq!(play.shown(), ["1: web:1 x0"], "the old Pods are told to go");
    play.step();
    assert_eq!(play.sets.len(), 1, "nothing new while the old Pods are there");
    play.settle_sets();
    play.play();
    assert_eq!(play.shown(), ["1: web:1 x0", "2: web:2 x3"]);
}

#[test]
fn scaling_keeps_the_condition_and_the_shares() {
    let mut play = Play::new(deployment("web", 2));
    play.play();
    for wanted in [5, 0, 1] {
        play.deployment["spec"]["replicas"] = json!(wanted);
        play.play();
        assert_eq!(play.counts(), [wanted, wanted, wanted, wanted, 0]);
        assert_eq!(play.reason("Progressing"), "NewReplicaSetAvailable");
    }
    // In the middle of a rollout that is stuck, both sets grow.
    play.deployment["spec"]["replicas"] = json!(4);
    play.play();
    play.set_image("web:fail");
    play.play();
    assert_eq!(play.shown(), ["1: web:1 x3", "2: web:fail x2"]);
    play.deployment["spec"]["replicas"] = json!(8);
    play.play();
    assert_eq!(play.shown(), ["1: web:1 x6", "2: web:fail x4"]);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut play = Play::new(deployment("web", 2));
    play.play();
    play.deployment["spec"]["paused"] = json!(true);
    play.set_image("web:2");
    play.deployment["spec"]["replicas"] = json!(3);
    play.play();
    assert_eq!(play.shown(), ["1: web:1 x3"]);
    play.deployment["spec"]["paused"] = json!(false);
    play.play();
    assert_eq!(play.shown(), ["1: web:1 x0", "2: web:2 x3"]);
    assert_eq!(play.reason("Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn history_is_limited() {
    let mut start = deployment("web", 1);
    start["spec"]["revisionHistoryLimit"] = json!(2);
    let mut play = Play::new(start);
    for image in 1..=6 {
        play.set_image(&format!("web:{image}"));
        play.play();
    }
    assert_eq!(play.shown(), ["4: web:4 x0", "5: web:5 x0", "6: web:6 x1"]);
}

#[test]
fn a_set_without_a_controller_is_taken_over_and_a_strangers_avoided() {
    let mut play = Play::new(deployment("web", 1));
    play.play();
    let mut found = play.sets.remove(0);
    let fresh = deployment("web", 1);
    found["metadata"]["ownerReferences"] = json!([]);
    let seen = Snapshot {
        deployment: &fresh,
        sets: &[],
        namesake: Some(&found),
    };
    let actions = decide(&seen, at(0));
    let [Action::Update(adopted)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["uid"], "uid-web");

    found["metadata"]["ownerReferences"] = json!([{"controller": true, "uid": "somebody"}]);
    let seen = Snapshot {
        deployment: &fresh,
        sets: &[],
        namesake: Some(&found),
    };
    let actions = decide(&seen, at(0));
    let [Action::UpdateStatus(changed)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(changed["status"]["collisionCount"], 1);
    assert_ne!(set_name(changed), set_name(&fresh));
}

#[test]
fn annotations_reach_the_sets() {
    let mut start = deployment("web", 1);
    start["metadata"]["annotations"] = json!({"kubernetes.io/change-cause": "first", BEHAVIOUR: "never-ready", "kubectl.kubernetes.io/last-applied-configuration": "{}"});
    let mut play = Play::new(start);
    play.play();
    let annotations = &play.sets[0]["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/change-cause"], "first");
    assert_eq!(annotations[INHERITED], "never-ready");
    assert_eq!(
        annotations["kubectl.kubernetes.io/last-applied-configuration"],
        json!(null)
    );
    set_annotation(&mut play.deployment, BEHAVIOUR, None);
    play.play();
    assert_eq!(play.sets[0]["metadata"]["annotations"][INHERITED], json!(null));
}
