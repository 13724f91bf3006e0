//! The taints that follow from the `Ready` condition.

use lockgate_api::cluster::Taint;
use lockgate_api::{Condition, keys};

/// The taints that a cluster should carry, or `None` if it carries them already. Taints of others are never touched, nor
/// are those of our keys with another effect, which somebody else must have set.
pub fn taints(current: &[Taint], ready: &Condition) -> Option<Vec<Taint>> {
    let wanted = match ready.status.as_str() {
        "True" => None,
        "False" => Some(keys::TAINT_NOT_READY),
        _ => Some(keys::TAINT_UNREACHABLE),
    };
    let ours = |taint: &Taint| {
        taint.effect == "NoSchedule"
            && (taint.key == keys::TAINT_NOT_READY || taint.key == keys::TAINT_UNREACHABLE)
    };
    let mut next: Vec<Taint> = current
        .iter()
        .filter(|taint| !ours(taint) || wanted == Some(taint.key.as_str()))
        .cloned()
        .collect();
    if let Some(key) = wanted
        && !next.iter().any(|taint| ours(taint) && taint.key == key)
    {
        next.push(Taint {
            key: key.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    (next != current).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(text: &str) -> Taint {
        let (key, effect) = text.split_once(':').expect("key:effect");
        Taint {
            key: key.replace('~', "cluster.karmada.io"),
            effect: effect.to_owned(),
            ..Taint::default()
        }
    }

    #[test]
    fn taints_follow_the_condition_and_leave_others_alone() {
        // Current taints, the condition's status, the taints after it; `-` is no change. `~` stands for our prefix.
        let cases = [
            ("", "True", "-"),
            ("", "False", "~/not-ready:NoSchedule"),
            ("", "Unknown", "~/unreachable:NoSchedule"),
            ("~/not-ready:NoSchedule", "False", "-"),
            ("~/not-ready:NoSchedule", "True", ""),
            ("~/not-ready:NoSchedule", "Unknown", "~/unreachable:NoSchedule"),
            ("~/unreachable:NoSchedule", "False", "~/not-ready:NoSchedule"),
            (
                "~/unreachable:NoSchedule gpu:NoExecute ~/not-ready:NoSchedule",
                "True",
                "gpu:NoExecute",
            ),
            ("gpu:NoSchedule", "False", "gpu:NoSchedule ~/not-ready:NoSchedule"),
            ("~/unschedulable:NoSchedule", "True", "-"),
            ("~/not-ready:NoExecute", "True", "-"),
            (
                "~/not-ready:NoExecute",
                "False",
                "~/not-ready:NoExecute ~/not-ready:NoSchedule",
            ),
        ];
        let parse = |text: &str| text.split_whitespace().map(taint).collect::<Vec<Taint>>();
        for (current, status, expected) in cases {
            let ready = Condition {
                status: status.to_owned(),
                ..Condition::default()
            };
            let next = taints(&parse(current), &ready);
            let expected = (expected != "-").then(|| parse(expected));
            assert_eq!(next, expected, "{current:?} with Ready {status}");
        }
    }
}
