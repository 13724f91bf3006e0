//! Which content a replica holds, when it was released, and whether what its member says is about that.

use jiff::Timestamp;
use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::{COMPLIANT, PENDING, REVISION};

use crate::gate::run::{Seen, Told};

/// What [`REVISION`] says: three parts with dots between them. Only the hub reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The revision of the rollout that released it; 0: none did, and it only informs until one does.
    pub revision: i64,
    /// Which content and action.
    pub digest: String,
    /// When, in whole microseconds.
    pub at: Timestamp,
}

impl Mark {
    /// What a replica says; none if it says nothing that can be read.
    pub fn of(replica: &Policy) -> Option<Self> {
        let mut parts = replica.metadata.annotation(REVISION)?.splitn(3, '.');
        let (revision, digest, at) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            revision: revision.parse().ok()?,
            digest: digest.to_owned(),
            at: Timestamp::from_microsecond(at.parse().ok()?).ok()?,
        })
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}.{}.{}",
            self.revision,
            self.digest,
            self.at.as_microsecond()
        )
    }
}

/// What a cluster was told, as its replica says. Times of before its release are about something else.
pub fn told(replica: &Policy) -> Told {
    let Some(mark) = Mark::of(replica) else {
        return Told::default();
    };
    let status = replica.status.as_ref();
    let since = |text: Option<&String>| -> Option<Timestamp> {
        text.and_then(|text| text.parse().ok())
            .filter(|at| *at >= mark.at)
    };
    let stamped = |name: &str| {
        status
            .filter(|status| status.rollout_status == name)
            .and_then(|status| since(status.rollout_status_transition_time.as_ref()))
    };
    Told {
        revision: mark.revision,
        released_at: (mark.revision > 0).then_some(mark.at),
        healthy_since: stamped("Succeeded"),
        failed_since: status.and_then(|status| since(status.rollout_failed_since.as_ref())),
        digest: mark.digest,
    }
}

/// How a member is with what its replica holds. What it said of anything older does not count, and what only informs is well
/// once it was looked at.
pub fn seen(replica: &Policy, informs: bool) -> Seen {
    let Some(status) = evaluated(replica) else {
        return Seen::Unknown;
    };
    if informs {
        return Seen::Well;
    }
    let states = || status.details.iter().map(|template| template.compliant.as_str());
    if states().any(|state| !matches!(state, COMPLIANT | PENDING | "")) {
        Seen::Bad
    } else if states().all(|state| state == COMPLIANT) {
        Seen::Well
    } else {
        Seen::Unknown
    }
}

/// The status of a replica, if it speaks of what the replica holds.
pub fn evaluated(replica: &Policy) -> Option<&lockgate_api::ocm::policy::PolicyStatus> {
    let wanted = replica.metadata.annotation(REVISION)?;
    let status = replica.status.as_ref()?;
    let whole = status.details.len() >= replica.spec.policy_templates.len();
    (status.evaluated_revision == wanted && whole).then_some(status)
}
