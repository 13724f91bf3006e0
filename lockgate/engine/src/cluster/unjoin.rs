//! How a cluster leaves. Removal is the slowest step: nothing in the member is deleted unless the annotation says so, and the
//! hub's side goes only when no Work is left.

use jiff::{SignedDuration, Timestamp};
use lockgate_api::{Cluster, Condition, keys};

use super::READY;

/// How long a member that does not answer is waited for when its objects are to be kept anyway.
const ABANDON_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// What becomes of a leaving member's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workloads {
    /// They stay, without our labels and annotations.
    Keep,
    /// They are deleted there.
    Delete,
}

impl Workloads {
    /// What a Cluster says. Anything but `delete` means that they stay, also if nothing is said: that can be undone.
    pub fn of(cluster: &Cluster) -> Self {
        match cluster.metadata.annotation(keys::UNJOIN_WORKLOADS) {
            Some("delete") => Self::Delete,
            _ => Self::Keep,
        }
    }
}

/// A cluster on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// What becomes of its objects.
    pub workloads: Workloads,
    /// The member did not answer for long enough and its objects stay anyway: its Works may go without a word to it. Our
    /// labels stay on the objects there.
    pub abandon: bool,
}

/// Whether and how a cluster leaves; `None` while nobody has deleted it.
pub fn leaving(cluster: &Cluster, now: Timestamp) -> Option<Leaving> {
    let asked = cluster.metadata.deletion_timestamp.as_deref()?;
    let workloads = Workloads::of(cluster);
    let ready = Condition::find(&cluster.status.conditions, READY);
    let silent = !ready.is_some_and(Condition::is_true);
    // A time that cannot be read is taken for now: waiting longer is the safe mistake.
    let parse = |text: &str| text.parse::<Timestamp>().unwrap_or(now);
    let since = parse(asked).max(ready.map_or(Timestamp::MIN, |ready| parse(&ready.last_transition_time)));
    Some(Leaving {
        workloads,
        abandon: workloads == Workloads::Keep && silent && now.duration_since(since) >= ABANDON_AFTER,
    })
}

/// What is still there of a leaving cluster, on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The Works in its execution namespace; `None` while that is not known for certain.
    pub works: Option<usize>,
    /// Whether the execution namespace is there and nobody has deleted it yet.
    pub namespace: bool,
    /// Whether Secrets of ours are there.
    pub secrets: bool,
}

/// The next thing that must happen before the Cluster may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait until this many Works are gone; `None` if their number is not known.
    AwaitWorks(Option<usize>),
    /// Delete the execution namespace.
    RemoveNamespace,
    /// Delete the Secrets.
    RemoveSecrets,
    /// Let the Cluster go.
    DropFinalizer,
}

/// The next step. Each follows from what is there, so that a restart goes on where it was.
pub fn next_step(remains: Remains) -> Step {
    match remains {
        Remains { works: Some(0), .. } if remains.namespace => Step::RemoveNamespace,
        Remains { works: Some(0), .. } if remains.secrets => Step::RemoveSecrets,
        Remains { works: Some(0), .. } => Step::DropFinalizer,
        Remains { works, .. } => Step::AwaitWorks(works),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).expect("within range")
    }

    fn cluster(annotation: Option<&str>, deleted_at: Option<i64>, ready: Option<(&str, i64)>) -> Cluster {
        let mut cluster = Cluster::default();
        if let Some(value) = annotation {
            cluster
                .metadata
                .annotations
                .insert(keys::UNJOIN_WORKLOADS.into(), value.into());
        }
        cluster.metadata.deletion_timestamp = deleted_at.map(|seconds| at(seconds).to_string());
        if let Some((status, since)) = ready {
            cluster.status.conditions.push(Condition {
                kind: READY.into(),
                status: status.into(),
                last_transition_time: at(since).to_string(),
                ..Condition::default()
            });
        }
        cluster
    }

    #[test]
    fn a_leaving_member_keeps_its_objects_unless_told_otherwise() {
        use Workloads::{Delete, Keep};
        // The annotation, when it was deleted, Ready, the time, what follows.
        let cases = [
            (None, None, None, 0, None),
            (Some("delete"), None, None, 0, None),
            (None, Some(0), Some(("True", -99)), 500, Some((Keep, false))),
            (
                Some("keep"),
                Some(0),
                Some(("False", -99)),
                29,
                Some((Keep, false)),
            ),
            (
                Some("keep"),
                Some(0),
                Some(("False", -99)),
                30,
                Some((Keep, true)),
            ),
            (
                Some("keep"),
                Some(0),
                Some(("False", 100)),
                120,
                Some((Keep, false)),
            ),
            (
                Some("keep"),
                Some(0),
                Some(("Unknown", 100)),
                130,
                Some((Keep, true)),
            ),
            (Some("nonsense"), Some(0), None, 30, Some((Keep, true))),
            (
                Some("delete"),
                Some(0),
                Some(("False", -99)),
                9000,
                Some((Delete, false)),
            ),
            (
                Some("delete"),
                Some(0),
                Some(("True", -99)),
                1,
                Some((Delete, false)),
            ),
        ];
        for (annotation, deleted, ready, now, expected) in cases {
            let found = leaving(&cluster(annotation, deleted, ready), at(now));
            let expected = expected.map(|(workloads, abandon)| Leaving { workloads, abandon });
            assert_eq!(found, expected, "{annotation:?} {deleted:?} {ready:?} at {now}");
        }
    }

    #[test]
    fn steps_come_in_order_and_never_before_the_works_are_known_to_be_gone() {
        let cases = [
            (None, true, true, Step::AwaitWorks(None)),
            (None, false, false, Step::AwaitWorks(None)),
            (Some(3), true, true, Step::AwaitWorks(Some(3))),
            (Some(1), false, false, Step::AwaitWorks(Some(1))),
            (Some(0), true, true, Step::RemoveNamespace),
            (Some(0), false, true, Step::RemoveSecrets),
            (Some(0), false, false, Step::DropFinalizer),
        ];
        for (works, namespace, secrets, expected) in cases {
            let remains = Remains {
                works,
                namespace,
                secrets,
            };
            assert_eq!(next_step(remains), expected);
        }
    }
}
