use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("within range")
}

fn unreachable() -> Probe {
    Probe::Unreachable(String::new())
}

/// Feeds probes at their times to a cluster; gives the status after each, with the second of its last transition.
fn run(first: Option<Condition>, ever_ready: bool, probes: &[(i64, Probe)]) -> Vec<(String, String)> {
    let (mut current, mut streak, mut ever_ready) = (first, None, ever_ready);
    probes
        .iter()
        .map(|(time, probe)| {
            let (condition, next) = health(
                probe,
                streak,
                current.as_ref(),
                ever_ready,
                at(*time),
                Thresholds::default(),
            );
            ever_ready |= condition.is_true();
            (streak, current) = (Some(next), Some(condition.clone()));
            (condition.status, condition.reason)
        })
        .collect()
}

fn statuses(first: Option<Condition>, ever_ready: bool, probes: &[(i64, Probe)]) -> Vec<String> {
    run(first, ever_ready, probes)
        .into_iter()
        .map(|(status, _)| status)
        .collect()
}

fn ready() -> Condition {
    observed(&Probe::Healthy, None, at(-1000))
}

fn not_ready() -> Condition {
    observed(&unreachable(), None, at(-1000))
}

#[test]
fn flips_wait_for_the_threshold() {
    use Probe::Healthy;
    struct Case {
        name: &'static str,
        first: Option<Condition>,
        ever_ready: bool,
        probes: Vec<(i64, Probe)>,
        expected: Vec<&'static str>,
    }
    let cases = [
        Case {
            name: "a new cluster is ready at once",
            first: None,
            ever_ready: false,
            probes: vec![(0, Healthy)],
            expected: vec!["True"],
        },
        Case {
            name: "a new cluster that does not answer is not ready at once, and ready with its first good answer",
            first: None,
            ever_ready: false,
            probes: vec![(0, unreachable()), (10, unreachable()), (20, Healthy)],
            expected: vec!["False", "False", "True"],
        },
        Case {
            name: "a short outage changes nothing",
            first: Some(ready()),
            ever_ready: true,
            probes: vec![
                (0, unreachable()),
                (10, unreachable()),
                (20, Healthy),
                (30, unreachable()),
            ],
            expected: vec!["True", "True", "True", "True"],
        },
        Case {
            name: "a long outage does, exactly at the threshold",
            first: Some(ready()),
            ever_ready: true,
            probes: vec![(0, unreachable()), (29, unreachable()), (30, unreachable())],
            expected: vec!["True", "True", "False"],
        },
        Case {
            name: "a known cluster must be well for a while",
            first: Some(not_ready()),
            ever_ready: true,
            probes: vec![
                (0, Healthy),
                (10, Healthy),
                (20, unreachable()),
                (30, Healthy),
                (60, Healthy),
            ],
            expected: vec!["False", "False", "False", "False", "True"],
        },
        Case {
            name: "a restart in an outage starts the wait again and flips nothing",
            first: Some(ready()),
            ever_ready: true,
            probes: vec![(0, unreachable())],
            expected: vec!["True"],
        },
    ];
    for case in cases {
        assert_eq!(
            statuses(case.first, case.ever_ready, &case.probes),
            case.expected,
            "{}",
            case.name
        );
    }
}

#[test]
fn the_reason_of_a_cluster_that_stays_not_ready_is_always_the_newest() {
    let seen = run(
        Some(not_ready()),
        true,
        &[
            (0, Probe::Unhealthy(String::new())),
            (1, unreachable()),
            (2, Probe::NoConnection("no Secret".into())),
        ],
    );
    let reasons: Vec<&str> = seen.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["ClusterNotReady", "ClusterNotReachable", "StatusCollectionFailed"]
    );
}

#[test]
fn texts_are_those_that_clients_know() {
    let message = |probe: &Probe| observed(probe, None, at(0)).message;
    let cases = [
        (Probe::Healthy, "cluster is healthy and ready to accept workloads"),
        (
            Probe::Unhealthy(String::new()),
            "cluster is reachable but health endpoint responded without ok",
        ),
        (unreachable(), "cluster is not reachable"),
        (
            Probe::Unreachable(" timed out\n".into()),
            "cluster is not reachable: timed out",
        ),
    ];
    for (probe, expected) in cases {
        assert_eq!(message(&probe), expected);
    }
    let long = message(&Probe::Unhealthy("é".repeat(10_000)));
    assert!(long.chars().count() < 400, "a member's words are bounded");
}

#[test]
fn a_transition_keeps_its_time_until_the_next() {
    let first = observed(&Probe::Healthy, None, at(0));
    let (second, _) = health(
        &Probe::Healthy,
        None,
        Some(&first),
        true,
        at(500),
        Thresholds::default(),
    );
    assert_eq!(second, first, "nothing changed, so that nothing is written");
    let pull = pull_not_served(Some(&first), at(600));
    assert_eq!(
        (pull.status.as_str(), pull.reason.as_str()),
        ("False", "PullModeNotServed")
    );
    assert_ne!(pull.last_transition_time, first.last_transition_time);
}
