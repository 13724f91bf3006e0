//! What is drawn from a seed.

use serde_json::{Value, json};

use lockgate_api::RolloutPolicy;
use lockgate_engine::gate::Followed;

/// A small generator: the same numbers for the same seed, everywhere.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Clone, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N as u64) as usize].clone()
    }
}

/// Some strategy.
pub(crate) fn strategy(draw: &mut Draw) -> Followed {
    let per_group = draw.one_in(3);
    let mandatory = draw.one_in(3);
    let config = json!({
        "maxFailures": draw.pick([json!(0), json!(2), json!("5%"), json!("20%")]),
        "minSuccessTime": draw.pick(["0s", "20s", "40s", "60s"]),
        "progressDeadline": draw.pick(["60s", "100s", "200s"]),
        "mandatoryDecisionGroups": if mandatory { json!([{"groupName": "canary"}]) } else { json!([]) },
    });
    let (kind, field) = if per_group {
        ("ProgressivePerGroup", "progressivePerGroup")
    } else {
        ("Progressive", "progressive")
    };
    let mut strategy = json!({"type": kind, field: config});
    if !per_group {
        let few = draw.one_in(40);
        strategy[field]["maxConcurrency"] = if few {
            json!(1 + draw.below(3))
        } else {
            draw.pick([json!(12), json!("10%"), json!("25%"), json!("50%"), json!("100%")])
        };
    }
    strategy["clustersPerDecisionGroup"] = draw.pick(["10%", "34%", "100%"]).into();
    strategy["decisionGroups"] = json!([{
        "groupName": "canary",
        "groupClusterSelector": {"labelSelector": {"matchLabels": {"canary": "yes"}}},
    }]);
    let mut spec = json!({"strategy": strategy, "onFailure": draw.pick(["Pause", "Rollback"])});
    if draw.one_in(10) {
        spec["moves"] = Value::from("BreakBeforeMake");
    }
    let policy: RolloutPolicy = serde_json::from_value(json!({ "spec": spec })).unwrap();
    Followed::read(&policy).unwrap()
}
