//! Taints of clusters, and placements that tolerate them.

use jiff::{SignedDuration, Timestamp};
use lockgate_api::ocm::cluster::Taint;
use lockgate_api::ocm::{TAINT_UNAVAILABLE, TAINT_UNREACHABLE};
use lockgate_api::placement::Toleration;

use super::{Candidate, Misconfigured};

/// The name under which misconfigured tolerations are told.
const PART: &str = "TaintToleration";

/// Whether a cluster's taints let a placement select it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// The first taint that is not tolerated, by its place.
    pub refused_by: Option<usize>,
    /// When that changes although nothing else does: a toleration runs out.
    pub until: Option<Timestamp>,
}

/// What tolerations must be like.
pub fn check(tolerations: &[Toleration]) -> Result<(), Misconfigured> {
    for toleration in tolerations {
        if !matches!(toleration.operator.as_str(), "" | "Equal" | "Exists") {
            let message = format!(
                "the operator {:?} is neither Equal nor Exists",
                toleration.operator
            );
            return Err(Misconfigured::new(PART, message));
        }
        if toleration.key.is_empty() && toleration.operator != "Exists" {
            let message = "If the key is empty, operator must be Exists.";
            return Err(Misconfigured::new(PART, message));
        }
        if toleration.operator == "Exists" && !toleration.value.is_empty() {
            let message = "If the operator is Exists, the value should be empty.";
            return Err(Misconfigured::new(PART, message));
        }
    }
    Ok(())
}

/// Whether a placement with these tolerations may select a cluster. A cluster that is `decided` already stays so when it
/// only stops answering: then a toleration that runs out says when it goes, and none says that it does not.
pub fn tolerated(
    tolerations: &[Toleration],
    cluster: &Candidate,
    decided: bool,
    now: Timestamp,
) -> Tolerance {
    let mut until: Option<Timestamp> = None;
    for (at, taint) in cluster.cluster.spec.taints.iter().enumerate() {
        let added = cluster.tainted.get(at).copied().flatten();
        match one(tolerations, taint, added, decided, now) {
            Ok(None) => {}
            Ok(Some(end)) => until = Some(until.map_or(end, |other| other.min(end))),
            Err(()) => {
                return Tolerance {
                    refused_by: Some(at),
                    until: None,
                };
            }
        }
    }
    Tolerance {
        refused_by: None,
        until,
    }
}

/// Whether a cluster does not answer, or says that it is not well.
pub fn is_silent(cluster: &Candidate) -> bool {
    cluster.cluster.spec.taints.iter().any(tells_of_silence)
}

fn tells_of_silence(taint: &Taint) -> bool {
    taint.key == TAINT_UNREACHABLE || taint.key == TAINT_UNAVAILABLE
}

/// Whether one taint is tolerated, and until when.
fn one(
    tolerations: &[Toleration],
    taint: &Taint,
    added: Option<Timestamp>,
    decided: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, ()> {
    let harmless = match taint.effect.as_str() {
        "PreferNoSelect" => true,
        "NoSelectIfNew" => decided,
        _ => false,
    };
    if harmless {
        return Ok(None);
    }
    let mut matching = tolerations
        .iter()
        .filter(|toleration| matches(toleration, taint))
        .peekable();
    if decided && tells_of_silence(taint) && matching.peek().is_none() {
        return Ok(None);
    }
    // The toleration that lasts longest counts.
    let mut last: Option<Timestamp> = None;
    for toleration in matching {
        match (toleration.toleration_seconds, added) {
            (None, _) => return Ok(None),
            (Some(seconds), Some(added)) => {
                let end = added
                    .checked_add(SignedDuration::from_secs(seconds))
                    .unwrap_or(if seconds < 0 {
                        Timestamp::MIN
                    } else {
                        Timestamp::MAX
                    });
                last = Some(last.map_or(end, |other| other.max(end)));
            }
            // Its time has not begun to be counted.
            (Some(_), None) => return Ok(None),
        }
    }
    match last {
        Some(end) if now < end => Ok(Some(end)),
        _ => Err(()),
    }
}

fn matches(toleration: &Toleration, taint: &Taint) -> bool {
    (toleration.effect.is_empty() || toleration.effect == taint.effect)
        && (toleration.key.is_empty() || toleration.key == taint.key)
        && (toleration.operator == "Exists" || toleration.value == taint.value)
}
