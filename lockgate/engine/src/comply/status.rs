//! The status of a ConfigurationPolicy: what is said, of which objects, and what goes because nobody speaks of it any more.

use std::collections::HashSet;

use jiff::Timestamp;
use lockgate_api::Condition;
use lockgate_api::ocm::configuration::{
    CompliancyDetails, ConfigurationStatus, EvaluationEntry, RelatedMeta, RelatedObject, RelatedProperties,
    RelatedRef,
};
use lockgate_api::ocm::policy::{COMPLIANT, NON_COMPLIANT};

use super::judge::{Judged, NO_NAME, Standing, Subject};
use super::rules::{Fault, Prune};
use super::words::{self, Said, bounded, policy_message, say};

/// How much history is kept.
const MAX_HISTORY: usize = 10;
/// No more objects are told of one policy.
const MAX_RELATED: usize = 1000;

/// What came of one template: its objects, or why there are none.
pub type Outcome = Result<(Subject, Vec<Judged>), Fault>;

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Evaluated<'a> {
    /// What came of each template.
    pub outcomes: &'a [Outcome],
    /// The generation that was looked at.
    pub generation: i64,
    /// Whether the policy enforces.
    pub enforce: bool,
    /// What goes when nobody speaks of it any more.
    pub prune: Prune,
    /// Now.
    pub now: Timestamp,
}

/// What follows from an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Concluded {
    /// The status.
    pub status: ConfigurationStatus,
    /// Objects that nobody speaks of any more, and that go now. While one stays, the status names it in `pendingPrune`.
    pub prune: Vec<RelatedObject>,
}

/// What the status is from now on.
pub fn conclude(previous: &ConfigurationStatus, evaluated: &Evaluated<'_>) -> Concluded {
    let again = previous.last_evaluated_generation == Some(evaluated.generation);
    let mut said = Vec::with_capacity(evaluated.outcomes.len());
    let mut related = Vec::new();
    let mut faulty = false;
    for outcome in evaluated.outcomes {
        match outcome {
            Err(fault) => {
                faulty = true;
                said.push(Said::of_fault(fault));
            }
            Ok((subject, judged)) => {
                let mut judged = judged.clone();
                if again {
                    for one in &mut judged {
                        carry(one, subject, previous);
                    }
                }
                said.push(say(&subject.served.plural, &subject.kind, &judged));
                for one in &judged {
                    related.extend(related_objects(one, subject, previous, evaluated.enforce));
                }
            }
        }
    }
    if evaluated.outcomes.is_empty() {
        said.push(Said {
            compliant: true,
            reason: "No object templates".to_owned(),
            message: "The policy contains no object templates to check, so nothing was evaluated".to_owned(),
        });
    }
    sort(&mut related);
    let message = match evaluated.outcomes {
        [Err(fault)] if fault.is_of_template() => words::template_error(&fault.message),
        _ => policy_message(&said),
    };
    // What is not told because there is too much of it is spoken of all the same.
    let left = left_behind(previous, &related, evaluated.prune);
    related.truncate(MAX_RELATED);
    let (prune, pending_prune) = if faulty || !evaluated.enforce {
        (Vec::new(), left)
    } else {
        (left.clone(), left)
    };
    if faulty && related.is_empty() {
        // A policy that cannot be followed says nothing about its objects, and forgets none.
        related.clone_from(&previous.related_objects);
    }
    let compliant = said.iter().all(|said| said.compliant);
    let mut status = ConfigurationStatus {
        compliant: if compliant { COMPLIANT } else { NON_COMPLIANT }.to_owned(),
        compliancy_details: details(&said, previous, evaluated.now),
        pending_prune: pending_prune
            .into_iter()
            .filter(|gone| !related.iter().any(|kept| kept.object == gone.object))
            .take(MAX_RELATED)
            .collect(),
        related_objects: related,
        last_evaluated: previous.last_evaluated.clone(),
        last_evaluated_generation: Some(evaluated.generation),
        history: previous.history.clone(),
    };
    let newest = status.history.first();
    if !again
        || previous.compliant != status.compliant
        || newest.is_none_or(|newest| newest.message != message)
    {
        let entry = EvaluationEntry {
            last_timestamp: micros(evaluated.now),
            message,
        };
        status.history.insert(0, entry);
        status.history.truncate(MAX_HISTORY);
    }
    if status != *previous || status.last_evaluated.is_empty() {
        status.last_evaluated = seconds(evaluated.now);
    }
    Concluded { status, prune }
}

/// Since when all that is wrong is that objects do not yet have the status that is demanded. That is nobody's to enforce: it
/// comes, or it does not, a while after the rest was made so.
pub fn awaits_status(outcomes: &[Outcome], status: &ConfigurationStatus) -> Option<Timestamp> {
    let mut since = None;
    for (outcome, details) in outcomes.iter().zip(&status.compliancy_details) {
        let (_, judged) = outcome.as_ref().ok()?;
        let mut bad = judged
            .iter()
            .filter(|one| !one.standing.is_compliant())
            .peekable();
        if bad.peek().is_none() {
            continue;
        }
        if !bad.all(|one| one.awaits_status) {
            return None;
        }
        let told = details.conditions.first();
        since = since.max(told.and_then(|told| told.last_transition_time.parse().ok()));
    }
    since
}

/// That an object was made as it is stays the news until something else happens to it.
fn carry(one: &mut Judged, subject: &Subject, previous: &ConfigurationStatus) {
    let [name] = one.names.as_slice() else { return };
    let Some(known) = find(previous, &reference(subject, &one.namespace, name)) else {
        return;
    };
    let same = known
        .properties
        .as_ref()
        .is_some_and(|known| known.uid == one.uid);
    let as_it_came = match one.standing {
        Standing::AsSpecified if same => [Standing::Created, Standing::Updated]
            .into_iter()
            .find(|standing| standing.told() == known.reason),
        Standing::Missing => (known.reason == Standing::Deleted.told()).then_some(Standing::Deleted),
        _ => None,
    };
    if let Some(standing) = as_it_came {
        one.standing = standing;
    }
}

fn reference(subject: &Subject, namespace: &str, name: &str) -> RelatedRef {
    RelatedRef {
        api_version: subject.api_version.clone(),
        kind: subject.kind.clone(),
        metadata: RelatedMeta {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        },
    }
}

fn find<'a>(status: &'a ConfigurationStatus, object: &RelatedRef) -> Option<&'a RelatedObject> {
    let all = status.related_objects.iter().chain(&status.pending_prune);
    all.into_iter().find(|known| known.object == *object)
}

/// Whether an object is there that nothing has been said of yet.
pub fn is_new(previous: Option<&ConfigurationStatus>, subject: &Subject, one: &Judged) -> bool {
    let [name] = &*one.names else {
        return false;
    };
    let object = reference(subject, &one.namespace, name);
    let known = previous.and_then(|previous| find(previous, &object));
    let uid = known.and_then(|known| Some(&known.properties.as_ref()?.uid));
    !one.made && !one.uid.is_empty() && uid != Some(&one.uid)
}

/// What is told of objects that were judged.
fn related_objects(
    one: &Judged,
    subject: &Subject,
    previous: &ConfigurationStatus,
    enforce: bool,
) -> Vec<RelatedObject> {
    if one.standing == Standing::Nothing {
        return Vec::new();
    }
    let none = [NO_NAME.to_owned()];
    let names = if one.names.is_empty() { &none } else { &*one.names };
    let told = |name: &String| {
        let object = reference(subject, &one.namespace, name);
        let properties = (!one.uid.is_empty()).then(|| {
            let known = find(previous, &object)
                .and_then(|known| known.properties.as_ref())
                .filter(|known| known.uid == one.uid);
            let ours = known.is_some_and(|known| known.created_by_policy == Some(true));
            let enforced = enforce || known.is_some_and(|known| known.enforced_by_policy == Some(true));
            RelatedProperties {
                created_by_policy: Some(ours || one.made),
                enforced_by_policy: enforced.then_some(true),
                uid: one.uid.clone(),
                diff: one.difference.clone(),
                matches_after_dry_run: one.same_after_dry_run.then_some(true),
            }
        });
        RelatedObject {
            object,
            compliant: if one.standing.is_compliant() {
                COMPLIANT
            } else {
                NON_COMPLIANT
            }
            .to_owned(),
            reason: one.standing.told().to_owned(),
            properties,
        }
    };
    names.iter().map(told).collect()
}

fn sort(related: &mut Vec<RelatedObject>) {
    let key = |related: &RelatedObject| {
        let object = &related.object;
        let meta = &object.metadata;
        (object.kind.clone(), meta.namespace.clone(), meta.name.clone())
    };
    related.sort_by_cached_key(key);
    related.dedup_by(|a, b| a.object == b.object);
}

/// The objects of which nobody speaks any more and that are to go some time.
fn left_behind(
    previous: &ConfigurationStatus,
    related: &[RelatedObject],
    prune: Prune,
) -> Vec<RelatedObject> {
    let known = previous.related_objects.iter().chain(&previous.pending_prune);
    let spoken_of: HashSet<&RelatedRef> = related.iter().map(|one| &one.object).collect();
    let mut left: Vec<RelatedObject> = known
        .filter(|known| goes(known, prune) && !spoken_of.contains(&known.object))
        .cloned()
        .collect();
    sort(&mut left);
    left
}

/// Whether an object is one that goes with its policy. What was only informed about never is.
pub fn goes(known: &RelatedObject, prune: Prune) -> bool {
    let Some(properties) = known.properties.as_ref().filter(|known| !known.uid.is_empty()) else {
        return false;
    };
    match prune {
        Prune::Nothing => false,
        Prune::IfCreated => properties.created_by_policy == Some(true),
        Prune::All => {
            let is_ours =
                properties.created_by_policy == Some(true) || properties.enforced_by_policy == Some(true);
            is_ours && known.object.metadata.name != NO_NAME
        }
    }
}

/// Everything that goes with a policy that itself goes.
pub fn all_that_goes(status: &ConfigurationStatus, prune: Prune) -> Vec<RelatedObject> {
    left_behind(status, &[], prune)
}

fn details(said: &[Said], previous: &ConfigurationStatus, now: Timestamp) -> Vec<CompliancyDetails> {
    let detail = |(at, said): (usize, &Said)| {
        let before = previous
            .compliancy_details
            .get(at)
            .and_then(|details| details.conditions.first());
        let message = bounded(said.message.clone());
        let since = before
            .filter(|before| before.kind == said.kind() && before.message == message)
            .map(|before| before.last_transition_time.clone());
        CompliancyDetails {
            compliant: if said.compliant { COMPLIANT } else { NON_COMPLIANT }.to_owned(),
            conditions: vec![Condition {
                kind: said.kind().to_owned(),
                status: "True".to_owned(),
                reason: said.reason.clone(),
                message,
                last_transition_time: since.unwrap_or_else(|| seconds(now)),
                ..Condition::default()
            }],
            rest: Default::default(),
        }
    };
    said.iter().enumerate().map(detail).collect()
}

/// A time as statuses have it.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
