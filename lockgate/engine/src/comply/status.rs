//! The status of a ConfigurationPolicy: what is said, of which objects, and what goes because nobody speaks of it any more.

use std::collections::HashSet;

use jiff::Timestamp;
use lockgate_api::Condition;
use lockgate_api::ocm::configuration::{
    CompliancyDetails, ConfigurationStatus, CustomMessage, EvaluationEntry, RelatedMeta, RelatedObject,
    RelatedProperties, RelatedRef,
};
use lockgate_api::ocm::policy::{COMPLIANT, NON_COMPLIANT};

use super::judge::{Judged, NO_NAME, Standing, Subject};
use super::known::{Known, further, sort};
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
    /// What the ConfigurationPolicy is called.
    pub name: &'a str,
    /// What came of each template.
    pub outcomes: &'a [Outcome],
    /// The generation that was looked at.
    pub generation: i64,
    /// Whether the policy enforces.
    pub enforce: bool,
    /// What goes when nobody speaks of it any more.
    pub prune: Prune,
    /// What stayed of what was to go; `None` as long as nobody tried.
    pub unpruned: Option<&'a [Unpruned]>,
    /// Whether it is not looked at again once it is compliant, and once it is not.
    pub never: (bool, bool),
    /// Other words for what is said.
    pub custom: Option<&'a CustomMessage>,
    /// Now.
    pub now: Timestamp,
}

/// An object that was to go and is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpruned {
    /// Which.
    pub object: RelatedObject,
    /// Whether it is on its way, and only takes its time.
    pub is_going: bool,
    /// Why it is still there.
    pub why: String,
}

/// What follows from an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Concluded {
    /// The status.
    pub status: ConfigurationStatus,
    /// Objects that nobody speaks of any more, and that go now. It is concluded again with what stayed of them.
    pub prune: Vec<RelatedObject>,
}

/// What the status is from now on.
pub fn conclude(previous: &ConfigurationStatus, evaluated: &Evaluated<'_>) -> Concluded {
    let again = previous.last_evaluated_generation == Some(evaluated.generation);
    let known = Known::of(previous);
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
                        carry(one, subject, &known);
                    }
                }
                said.push(say(&subject.served.plural, &subject.kind, &judged));
                for one in &judged {
                    related.extend(related_objects(one, subject, &known, evaluated.enforce));
                }
            }
        }
    }
    if evaluated.outcomes.is_empty() {
        said.push(Said {
            compliant: true,
            reason: "No object templates".to_owned(),
            message: format!(
                "{} contains no object templates to check, and thus has no violations",
                evaluated.name
            ),
        });
    }
    sort(&mut related);
    let mut left = known.left_behind(&related, evaluated.prune);
    let (mut prune, mut unpruned) = (Vec::new(), Default::default());
    if !faulty && evaluated.enforce {
        match evaluated.unpruned {
            None => prune.clone_from(&left),
            Some(stayed) => {
                left = stayed.iter().map(|stayed| stayed.object.clone()).collect();
                unpruned = stayed;
            }
        }
    }
    if faulty && related.is_empty() {
        // A policy that cannot be followed says nothing about its objects, and forgets none.
        related.clone_from(&previous.related_objects);
        let told: HashSet<&RelatedRef> = related.iter().map(|one| &one.object).collect();
        left.retain(|left| !told.contains(&left.object));
    }
    // It comes first, so that it is not cut off where there is much to say.
    let mut besides: Vec<Said> = still_there(unpruned).into_iter().collect();
    // What is not told because there is too much of it is not forgotten, if it may have to go some time.
    let mut untold = Vec::new();
    if evaluated.prune != Prune::Nothing {
        untold.extend(related.iter().skip(MAX_RELATED));
        untold.extend(left.iter().skip(MAX_RELATED));
    }
    let further_objects = further(&untold).unwrap_or_else(|()| {
        besides.push(too_many(related.len() + left.len()));
        Vec::new()
    });
    related.truncate(MAX_RELATED);
    left.truncate(MAX_RELATED);
    let compliant = said.iter().chain(&besides).all(|said| said.compliant);
    let mut message = match evaluated.outcomes {
        [Err(fault)] if fault.is_of_template() => words::template_error(&fault.message),
        _ => words::in_own_words(
            policy_message(besides.iter().chain(&said)),
            compliant,
            evaluated.custom,
        ),
    };
    // What is said of templates keeps its place.
    said.extend(besides);
    if unpruned.is_empty() {
        message.push_str(words::last_word(compliant, evaluated.never));
    }
    let mut status = ConfigurationStatus {
        compliant: if compliant { COMPLIANT } else { NON_COMPLIANT }.to_owned(),
        compliancy_details: details(&said, previous, evaluated.now),
        pending_prune: left,
        further_objects,
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

/// Since when all that is wrong may pass by itself, a while after the rest was made so: objects do not yet have the status that
/// is demanded, which is nobody's to enforce; their namespace or kind is not there yet; or their deletion is under way.
pub fn passing_since(outcomes: &[Outcome], status: &ConfigurationStatus) -> Option<Timestamp> {
    let mut since = None;
    for (outcome, details) in outcomes.iter().zip(&status.compliancy_details) {
        match outcome {
            Err(fault) if fault.may_pass => {}
            Err(_) => return None,
            Ok((_, judged)) => {
                let mut bad = judged
                    .iter()
                    .filter(|one| !one.standing.is_compliant())
                    .peekable();
                if bad.peek().is_none() {
                    continue;
                }
                if !bad.all(Judged::may_pass) {
                    return None;
                }
            }
        }
        let told = details.conditions.first();
        since = since.max(told.and_then(|told| told.last_transition_time.parse().ok()));
    }
    since
}

/// That an object was made as it is stays the news until something else happens to it.
fn carry(one: &mut Judged, subject: &Subject, known: &Known<'_>) {
    let [name] = one.names.as_slice() else { return };
    let Some(known) = known.find(subject, &one.namespace, name) else {
        return;
    };
    let same = known.uid == one.uid;
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

/// What is told of objects that were judged.
fn related_objects(one: &Judged, subject: &Subject, known: &Known<'_>, enforce: bool) -> Vec<RelatedObject> {
    if one.standing == Standing::Nothing {
        return Vec::new();
    }
    let none = [NO_NAME.to_owned()];
    let names = if one.names.is_empty() { &none } else { &*one.names };
    let told = |name: &String| {
        let object = reference(subject, &one.namespace, name);
        let properties = (!one.uid.is_empty()).then(|| {
            let known = known
                .find(subject, &one.namespace, name)
                .filter(|known| known.uid == one.uid);
            let ours = known.is_some_and(|known| known.made);
            let enforced = enforce || known.is_some_and(|known| known.enforced);
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

/// What is said of objects that are to go and are still there.
fn still_there(unpruned: &[Unpruned]) -> Option<Said> {
    let (first, more) = unpruned.split_first()?;
    let more = match more.len() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    Some(Said {
        compliant: false,
        reason: "K8s pruning is not done".to_owned(),
        message: format!(
            "{} is to be pruned and is still there: {}{more}",
            words::name(&first.object.object),
            first.why
        ),
    })
}

/// What is said where not all objects can be remembered.
fn too_many(count: usize) -> Said {
    Said {
        compliant: false,
        reason: "Too many objects".to_owned(),
        message: format!(
            "{count} objects are more than one policy can remember, so that some would never be pruned: write several \
             policies, or set pruneObjectBehavior to None"
        ),
    }
}

/// Everything that goes with a policy that itself goes.
pub fn all_that_goes(status: &ConfigurationStatus, prune: Prune) -> Vec<RelatedObject> {
    Known::of(status).left_behind(&[], prune)
}

/// Whether a server that was sent one status and kept another has dropped what pruning needs.
pub fn is_forgotten(sent: &ConfigurationStatus, kept: &ConfigurationStatus, prune: Prune) -> bool {
    sent != kept && all_that_goes(sent, prune).len() != all_that_goes(kept, prune).len()
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
