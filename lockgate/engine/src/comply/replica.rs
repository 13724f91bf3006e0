//! A policy on its cluster: the ConfigurationPolicies that are made from its templates, and what it says of them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lockgate_api::ocm::POLICY_GROUP;
use lockgate_api::ocm::configuration::{ConfigurationSpec, ConfigurationStatus};
use lockgate_api::ocm::policy::{
    CLUSTER_NAME, CLUSTER_NAMESPACE, COMPLIANT, ENFORCE, HistoryEntry, INFORM, INFORM_ONLY, NON_COMPLIANT,
    PARENT_POLICY, PENDING, Policy, PolicyStatus, PolicyTemplate, TemplateDetails, TemplateMeta,
};
use lockgate_api::ocm::policy_binding::Dependency;
use serde_json::{Map, Value, json};

use super::rules::{moustache, unresolved};
use super::status::seconds;
use super::words::{bounded, template_error};
use crate::object;
use crate::observe::overall_compliance;

/// How much history is kept.
const MAX_HISTORY: usize = 10;
/// The group and version of what can be a template.
pub const API_VERSION: &str = "policy.open-cluster-management.io/v1";
/// What can be a template.
pub const KIND: &str = "ConfigurationPolicy";

/// On a ConfigurationPolicy that only informs until its turn comes: it enforced before, so that what it made goes when its
/// template does.
pub const ENFORCED_BEFORE: &str = "policy.open-cluster-management.io/enforced-before-its-turn";

/// One template of a policy, on its way to the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The name; empty if the template has none.
    pub name: String,
    /// The ConfigurationPolicy, without an owner; or what is wrong with the template.
    pub object: Result<Value, String>,
    /// What must be so first.
    pub dependencies: Vec<Dependency>,
    /// Whether it counts as compliant while it waits.
    pub ignore_pending: bool,
}

/// The ConfigurationPolicies of a policy in a cluster.
pub fn plan(policy: &Policy, cluster: &str) -> Vec<Planned> {
    let mut names = BTreeSet::new();
    let templates = policy.spec.policy_templates.iter();
    templates
        .map(|template| {
            let name = object::meta_text(&template.object_definition, "name");
            let fresh = names.insert(name);
            Planned {
                name: name.to_owned(),
                object: planned(policy, template, cluster, name, fresh),
                dependencies: dependencies(policy, template, cluster),
                ignore_pending: template.ignore_pending,
            }
        })
        .collect()
}

fn planned(
    policy: &Policy,
    template: &PolicyTemplate,
    cluster: &str,
    name: &str,
    fresh: bool,
) -> Result<Value, String> {
    let definition = &template.object_definition;
    if let Some(path) = unresolved_outside(policy, template) {
        return Err(unresolved(&path));
    }
    let (api_version, kind) = (
        object::text(definition, "apiVersion"),
        object::text(definition, "kind"),
    );
    if name.is_empty() {
        return Err(format!("a template of kind {kind:?} has no metadata.name"));
    }
    if !fresh {
        return Err(format!(
            "two templates have the name {name}: names must be unique in one policy"
        ));
    }
    if api_version != API_VERSION || kind != KIND {
        return Err(format!(
            "Mapping not found, check the required CRD is deployed: kind {kind} of {api_version} cannot be a template \
             here, only {KIND} of {API_VERSION}"
        ));
    }
    let mut spec = definition.get("spec").cloned().unwrap_or_else(|| json!({}));
    let own = object::text(&spec, "remediationAction");
    let action = if own.eq_ignore_ascii_case(INFORM_ONLY) {
        INFORM
    } else if policy.spec.remediation_action.is_empty() {
        own
    } else {
        &policy.spec.remediation_action
    }
    .to_owned();
    if let (Some(spec), false) = (spec.as_object_mut(), action.is_empty()) {
        spec.insert("remediationAction".to_owned(), action.into());
    }
    let mut labels = object::labels(definition).cloned().unwrap_or_default();
    for (key, value) in [
        (PARENT_POLICY, policy.metadata.name.as_str()),
        (CLUSTER_NAME, cluster),
        (CLUSTER_NAMESPACE, cluster),
        ("cluster-name", cluster),
        ("cluster-namespace", cluster),
    ] {
        labels.insert(key.to_owned(), value.into());
    }
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("namespace".to_owned(), cluster.into());
    metadata.insert("labels".to_owned(), labels.into());
    if let Some(annotations) = object::annotations(definition) {
        metadata.insert("annotations".to_owned(), annotations.clone().into());
    }
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}))
}

/// The path of the first text, outside the spec of the ConfigurationPolicy, that wants to be worked out first. The spec says so
/// itself, where it is evaluated.
fn unresolved_outside(policy: &Policy, template: &PolicyTemplate) -> Option<String> {
    let fields = template.object_definition.as_object().into_iter().flatten();
    let mut outside = fields.filter(|(key, _)| *key != "spec");
    let in_dependencies = |dependencies: &[Dependency], path: &str| {
        // Everything of ours can be encoded.
        moustache(&serde_json::to_value(dependencies).unwrap_or_default(), path)
    };
    outside
        .find_map(|(key, value)| moustache(value, &format!("objectDefinition.{key}")))
        .or_else(|| in_dependencies(&template.extra_dependencies, "extraDependencies"))
        .or_else(|| in_dependencies(&policy.spec.dependencies, "dependencies"))
}

/// Whether what a ConfigurationPolicy last stood for was enforced, by its action and by what [`ENFORCED_BEFORE`] says. One that
/// waits for its turn to enforce something new has not done so yet.
pub fn has_enforced(action: &str, before: Option<&str>) -> bool {
    action.eq_ignore_ascii_case(ENFORCE) || before == Some("true")
}

/// A ConfigurationPolicy as it is to be, next to the one that is there; `waits` says that its policy only informs until its turn
/// comes.
pub fn in_place_of(mut wanted: Value, present: &Value, waits: bool) -> Value {
    let before = object::annotation(present, ENFORCED_BEFORE);
    if waits && has_enforced(object::text(&present["spec"], "remediationAction"), before) {
        wanted["metadata"]["annotations"][ENFORCED_BEFORE] = "true".into();
    }
    wanted
}

/// What a template waits for, each once.
fn dependencies(policy: &Policy, template: &PolicyTemplate, cluster: &str) -> Vec<Dependency> {
    let mut all: Vec<Dependency> = Vec::new();
    for dependency in policy
        .spec
        .dependencies
        .iter()
        .chain(&template.extra_dependencies)
    {
        let mut dependency = dependency.clone();
        if dependency.kind.ends_with("Policy") {
            cluster.clone_into(&mut dependency.namespace);
        }
        if !all.contains(&dependency) {
            all.push(dependency);
        }
    }
    all
}

/// Whether somebody here says how a dependency is, or may say so once it is there.
fn is_judged(dependency: &Dependency) -> bool {
    let group = dependency.api_version.split_once('/').map(|(group, _)| group);
    group == Some(POLICY_GROUP) && ["Policy", "PolicySet", KIND].contains(&dependency.kind.as_str())
}

/// What is said of a template that waits; `None` if it does not. `compliance` is what an object says of itself, if it is there.
pub fn pending(
    planned: &Planned,
    compliance: impl Fn(&Dependency) -> Option<String>,
) -> Option<Result<String, String>> {
    for (at, one) in planned.dependencies.iter().enumerate() {
        let clash = planned.dependencies[at + 1..].iter().any(|other| {
            (&other.api_version, &other.kind, &other.namespace, &other.name)
                == (&one.api_version, &one.kind, &one.namespace, &one.name)
        });
        if clash {
            return Some(Err(format!(
                "{} {} is wanted in two states at once: check the dependencies",
                one.kind, one.name
            )));
        }
    }
    if let Some(other) = planned.dependencies.iter().find(|one| !is_judged(one)) {
        return Some(Err(format!(
            "{} {} of {} can be no dependency here, for nobody evaluates it: only Policy, PolicySet and {KIND} of \
             {POLICY_GROUP} can",
            other.kind, other.name, other.api_version
        )));
    }
    let mut unmet: Vec<String> = planned
        .dependencies
        .iter()
        .filter(|one| compliance(one).as_deref() != Some(one.compliance.as_str()))
        .map(|one| format!("{} {}", one.kind, one.name))
        .collect();
    unmet.sort_unstable();
    let verb = match unmet.len() {
        0 => return None,
        1 => "1 is still pending".to_owned(),
        count => format!("{count} are still pending"),
    };
    Some(Ok(bounded(format!(
        "Dependencies were not satisfied: {verb} ({})",
        unmet.join(", ")
    ))))
}

/// What is to be told of one template.
#[derive(Clone, Debug, PartialEq)]
pub enum Told<'a> {
    /// Its ConfigurationPolicy says it.
    Evaluated(&'a ConfigurationStatus),
    /// It waits for others.
    Pending {
        /// For what.
        message: String,
        /// Whether it counts as compliant all the same.
        ignored: bool,
    },
    /// It cannot be followed.
    Wrong(String),
    /// Nothing is known yet.
    Unknown,
}

/// The details and the compliance of a policy. History is kept, and a word that was the last one is not repeated.
pub fn report(
    name: &str,
    previous: &PolicyStatus,
    told: &[(&str, Told<'_>)],
    now: Timestamp,
) -> (Vec<TemplateDetails>, &'static str) {
    let details: Vec<TemplateDetails> = told
        .iter()
        .enumerate()
        .map(|(at, (template, said))| {
            // Of several templates with one name, which is an error of all but one, each has its own history.
            let before = told[..at].iter().filter(|(other, _)| other == template).count();
            let mut same = previous
                .details
                .iter()
                .filter(|details| details.template_meta.name == *template);
            detail(name, same.nth(before), template, said, now)
        })
        .collect();
    let overall = overall_compliance(details.iter().map(|details| details.compliant.as_str()));
    (details, overall)
}

fn detail(
    policy: &str,
    before: Option<&TemplateDetails>,
    template: &str,
    told: &Told<'_>,
    now: Timestamp,
) -> TemplateDetails {
    let mut history = before.map(|before| before.history.clone()).unwrap_or_default();
    let entry = |time: Timestamp, message: String| HistoryEntry {
        last_timestamp: Some(seconds(time)),
        message,
        event_name: format!("{policy}.{:x}", time.as_nanosecond()),
    };
    let compliant = match told {
        Told::Evaluated(status) => {
            // The oldest first, so that the newest comes to the front last.
            for said in status.history.iter().rev() {
                let Ok(time) = said.last_timestamp.parse::<Timestamp>() else {
                    continue;
                };
                let entry = entry(time, said.message.clone());
                if !history.contains(&entry) && is_newer(&entry, &history) {
                    history.insert(0, entry);
                }
            }
            // What was wrong or waited for in between is over, and its ConfigurationPolicy did not notice it.
            if let Some(newest) = status.history.first() {
                add(&mut history, entry(now, newest.message.clone()));
            }
            status.compliant.as_str()
        }
        Told::Pending { message, ignored } => {
            let message = if *ignored {
                format!("Compliant; {message} but ignorePending is true")
            } else {
                format!("Pending; {message}")
            };
            add(&mut history, entry(now, message));
            if *ignored { COMPLIANT } else { PENDING }
        }
        Told::Wrong(message) => {
            add(&mut history, entry(now, template_error(message)));
            NON_COMPLIANT
        }
        Told::Unknown => "",
    };
    history.truncate(MAX_HISTORY);
    TemplateDetails {
        template_meta: TemplateMeta {
            name: template.to_owned(),
            rest: Map::default(),
        },
        compliant: compliant.to_owned(),
        history,
    }
}

/// Adds what was not said last.
fn add(history: &mut Vec<HistoryEntry>, entry: HistoryEntry) {
    if history
        .first()
        .is_none_or(|newest| newest.message != entry.message)
    {
        history.insert(0, entry);
    }
}

/// Whether an entry is newer than what is there: what was dropped because it was old stays dropped.
fn is_newer(entry: &HistoryEntry, history: &[HistoryEntry]) -> bool {
    let number = |entry: &HistoryEntry| {
        let (_, hex) = entry.event_name.rsplit_once('.')?;
        u128::from_str_radix(hex, 16).ok()
    };
    match history.first() {
        None => true,
        Some(newest) => number(entry) >= number(newest),
    }
}

/// Whether two ConfigurationPolicies say the same: servers fill in what is meant anyway.
pub fn says_the_same(live: &Value, wanted: &Value) -> bool {
    let read = |spec: &Value| -> Option<ConfigurationSpec> {
        let mut spec: ConfigurationSpec = serde_json::from_value(spec.clone()).ok()?;
        let unset = |text: &mut String, default: &str| {
            if text == default {
                text.clear();
            }
        };
        unset(&mut spec.remediation_action, "inform");
        unset(&mut spec.prune_object_behavior, "None");
        if let Some(interval) = &mut spec.evaluation_interval {
            unset(&mut interval.compliant, "watch");
            unset(&mut interval.noncompliant, "watch");
        }
        spec.evaluation_interval = spec
            .evaluation_interval
            .filter(|interval| *interval != Default::default());
        if let Some(selector) = &mut spec.namespace_selector {
            unset(&mut selector.terminating_inclusion, "Default");
        }
        for template in &mut spec.object_templates {
            unset(&mut template.recreate_option, "None");
        }
        Some(spec)
    };
    let metadata = |key: &str| {
        let (live, wanted) = (live["metadata"].get(key), wanted["metadata"].get(key));
        let empty = |value: Option<&Value>| value.and_then(Value::as_object).is_none_or(Map::is_empty);
        live == wanted || (empty(live) && empty(wanted))
    };
    metadata("labels")
        && metadata("annotations")
        && metadata("ownerReferences")
        && (live["spec"] == wanted["spec"]
            || read(&live["spec"]).is_some_and(|live| Some(live) == read(&wanted["spec"])))
}
