//! What is said of templates and policies, in the words that clients know.

use std::collections::BTreeMap;

use lockgate_api::ocm::configuration::{CustomMessage, RelatedRef};

use super::judge::{Judged, Standing};
use super::rules::Fault;

/// The longest message of a policy.
const MAX_MESSAGE: usize = 4096;
/// The end of one that was longer.
const CUT: &str = "...[truncated]";
/// What follows the names of objects that enforcing would delete first.
const ANEW: &str = "would be deleted and made anew";

/// What is said of one template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether all is as it should be.
    pub compliant: bool,
    /// Why, in a few words.
    pub reason: String,
    /// Why.
    pub message: String,
}

impl Said {
    /// What is said of something that cannot be followed.
    pub fn of_fault(fault: &Fault) -> Self {
        Self {
            compliant: false,
            reason: fault.reason.clone(),
            message: fault.message.clone(),
        }
    }

    /// `violation` or `notification`.
    pub fn kind(&self) -> &'static str {
        if self.compliant {
            "notification"
        } else {
            "violation"
        }
    }
}

impl Standing {
    /// The reason that conditions give.
    fn reason(&self) -> &str {
        match self {
            Self::AsSpecified => "K8s `must have` object already exists",
            Self::Differs | Self::NotFound => "K8s does not have a `must have` object",
            Self::Found => "K8s has a `must not have` object",
            Self::Missing => "K8s `must not have` object already missing",
            Self::Created => "K8s creation success",
            Self::Updated => "K8s update success",
            Self::Deleted => "K8s deletion success",
            Self::Nothing => "No objects selected",
            Self::Wrong(fault) => &fault.reason,
        }
    }

    /// The reason that is told of the object itself.
    pub fn told(&self) -> &str {
        match self {
            Self::AsSpecified => "Resource found as expected",
            Self::Differs => "Resource found but does not match",
            Self::NotFound => "Resource not found but should exist",
            Self::Found => "Resource found but should not exist",
            Self::Missing => "Resource not found as expected",
            other => other.reason(),
        }
    }

    /// What follows the names.
    fn words(&self) -> &str {
        match self {
            Self::AsSpecified => "found as specified",
            Self::Differs => "found but not as specified",
            Self::NotFound => "not found",
            Self::Found => "found",
            Self::Missing => "missing as expected",
            Self::Created => "was created successfully",
            Self::Updated => "was updated successfully",
            Self::Deleted => "was deleted successfully",
            Self::Nothing | Self::Wrong(_) => "",
        }
    }
}

/// What is said of a template whose objects are these. Where something is bad, only that is told.
pub fn say(plural: &str, kind: &str, judged: &[Judged]) -> Said {
    let compliant = judged.iter().all(|one| one.standing.is_compliant());
    let told = judged
        .iter()
        .filter(|one| one.standing.is_compliant() == compliant);
    // By reason and words, then by namespace.
    let mut groups: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let mut texts: Vec<(&str, String)> = Vec::new();
    for one in told {
        match &one.standing {
            Standing::Wrong(fault) => texts.push((&fault.reason, fault.message.clone())),
            Standing::Nothing => texts.push((
                one.standing.reason(),
                format!("No objects of kind {kind} were matched from the policy objectSelector"),
            )),
            standing => {
                let words = [Some(standing.words()), one.anew.then_some(ANEW)];
                for words in words.into_iter().flatten() {
                    groups
                        .entry((standing.reason(), words))
                        .or_default()
                        .entry(&one.namespace)
                        .or_default()
                        .extend(one.names.iter().map(String::as_str));
                }
            }
        }
    }
    for ((reason, words), namespaces) in groups {
        for (names, namespaces) in alike(namespaces) {
            texts.push((reason, sentence(plural, &names, words, &namespaces)));
        }
    }
    // The sort is stable, so that namespaces keep their order.
    texts.sort_by(|a, b| a.0.cmp(b.0));
    let mut reasons: Vec<&str> = texts.iter().map(|(reason, _)| *reason).collect();
    reasons.dedup();
    let mut messages: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    messages.dedup();
    Said {
        compliant,
        reason: reasons.join("; "),
        message: messages.join("; "),
    }
}

/// Namespaces with the same names, together.
fn alike<'a>(namespaces: BTreeMap<&'a str, Vec<&'a str>>) -> Vec<(Vec<&'a str>, Vec<&'a str>)> {
    let mut all: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (namespace, mut names) in namespaces {
        names.sort_unstable();
        names.dedup();
        match all.iter_mut().find(|(known, _)| *known == names) {
            Some((_, namespaces)) => namespaces.push(namespace),
            None => all.push((names, vec![namespace])),
        }
    }
    all
}

fn sentence(plural: &str, names: &[&str], words: &str, namespaces: &[&str]) -> String {
    let names = if names.is_empty() {
        String::new()
    } else {
        format!(" [{}]", names.join(", "))
    };
    let namespaces = match namespaces {
        [] | [""] => String::new(),
        [one] => format!(" in namespace {one}"),
        more => format!(" in namespaces: {}", more.join(", ")),
    };
    format!("{plural}{names} {words}{namespaces}")
}

/// What is said of a whole policy.
pub fn policy_message<'a>(said: impl Iterator<Item = &'a Said> + Clone) -> String {
    let compliant = said.clone().all(|said| said.compliant);
    let state = if compliant { "Compliant" } else { "NonCompliant" };
    let parts: Vec<String> = said
        .map(|said| format!("{} - {}", said.kind(), said.message))
        .collect();
    bounded(format!("{state}; {}", parts.join("; ")))
}

/// The message of a policy in the words of its author, if there are some for this state. Words that want to be worked out first
/// are not used, which is said.
pub(super) fn in_own_words(message: String, compliant: bool, custom: Option<&CustomMessage>) -> String {
    let (state, field, words) = match custom {
        None => return message,
        Some(custom) if compliant => ("Compliant", "compliant", &custom.compliant),
        Some(custom) => ("NonCompliant", "noncompliant", &custom.noncompliant),
    };
    if words.is_empty() {
        return message;
    }
    bounded(if words.contains("{{") {
        format!(
            "{message}; customMessage.{field} holds {{{{ and is not used: Go templates are not resolved here"
        )
    } else {
        format!("{state}; {words}")
    })
}

/// What follows the message of a policy that is not looked at again in this state; `never` says whether that is so while it is
/// compliant, and while it is not.
pub(super) fn last_word(compliant: bool, never: (bool, bool)) -> &'static str {
    match (compliant, never) {
        (true, (true, _)) => {
            ". This policy will not be evaluated again due to spec.evaluationInterval.compliant being set to \"never\"."
        }
        (false, (_, true)) => {
            ". This policy will not be evaluated again due to spec.evaluationInterval.noncompliant being set to \"never\"."
        }
        _ => "",
    }
}

/// `ConfigMap box in namespace shop`.
pub fn name(object: &RelatedRef) -> String {
    let meta = &object.metadata;
    match meta.namespace.as_str() {
        "" => format!("{} {}", object.kind, meta.name),
        namespace => format!("{} {} in namespace {namespace}", object.kind, meta.name),
    }
}

/// What is said of a template that cannot be followed at all.
pub fn template_error(message: &str) -> String {
    bounded(format!("NonCompliant; template-error; {message}"))
}

/// A message that is not too long.
pub(super) fn bounded(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = message.floor_char_boundary(MAX_MESSAGE - CUT.len());
        message.truncate(end);
        message.push_str(CUT);
    }
    message
}
