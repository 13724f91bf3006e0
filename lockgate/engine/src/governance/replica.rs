//! The replica of a root policy for one cluster.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_api::ObjectMeta;
use lockgate_api::ocm::policy::{
    ARGO_COMPARE, ARGO_IGNORE, CLUSTER_NAME, CLUSTER_NAMESPACE, ENFORCE, INFORM, INFORM_ONLY, PolicySpec,
    PolicyTemplate, REVISION, ROOT_POLICY, TRIGGER_UPDATE, WHILE_WAITING,
};
use lockgate_api::ocm::policy_binding::Dependency;
use lockgate_api::ocm::{POLICY_GROUP, Policy, PolicySet};
use serde_json::json;

use super::revision::Mark;
use crate::gate::revision::short;
use crate::object;

/// The longest name of a replica: it is a label, too.
pub const NAME_LENGTH: usize = 63;
/// Labels and annotations that are copied whatever the root says.
const FRAMEWORK: &str = "policy.open-cluster-management.io/";
/// Annotations that concern the root alone, by how their keys begin.
const OF_ROOTS: [&str; 4] = [
    "kubectl.kubernetes.io/",
    "lockgate.karmada.io/",
    TRIGGER_UPDATE,
    WHILE_WAITING,
];

/// What the replicas of a root are called.
pub fn replica_name(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// Namespace and name of a replica's root. Namespaces have no dots.
pub fn root_of(replica: &str) -> Option<(&str, &str)> {
    replica.split_once('.')
}

/// Whether an action only reports.
pub fn is_inform(action: &str) -> bool {
    action.eq_ignore_ascii_case(INFORM)
}

/// Whether a spec enforces nothing: its action only reports, or each of its templates does, whatever the action says.
pub fn only_informs(spec: &PolicySpec) -> bool {
    let informs = |template: &PolicyTemplate| {
        let own = object::text(&template.object_definition["spec"], "remediationAction");
        own.eq_ignore_ascii_case(INFORM_ONLY) || (spec.remediation_action.is_empty() && is_inform(own))
    };
    let templates = &spec.policy_templates;
    is_inform(&spec.remediation_action) || (!templates.is_empty() && templates.iter().all(informs))
}

/// The sets on whose policies a root depends, by namespace and name.
pub fn sets_needed(root: &Policy) -> BTreeSet<(&str, &str)> {
    let templates = root.spec.policy_templates.iter();
    let all = root
        .spec
        .dependencies
        .iter()
        .chain(templates.flat_map(|template| &template.extra_dependencies));
    all.filter(|dependency| dependency.kind == "PolicySet" && is_ours(dependency))
        .map(|dependency| {
            (
                home(dependency, &root.metadata.namespace),
                dependency.name.as_str(),
            )
        })
        .collect()
}

/// The spec of a replica with an action: what the root says, with dependencies as members know them. `set` finds a set by
/// namespace and name.
pub fn spec<'s>(
    root: &Policy,
    action: &str,
    set: &dyn Fn(&str, &str) -> Option<&'s PolicySet>,
) -> PolicySpec {
    let mut spec = root.spec.clone();
    action.clone_into(&mut spec.remediation_action);
    spec.rollout_strategy = None;
    spec.copy_policy_metadata = None;
    let namespace = &root.metadata.namespace;
    spec.dependencies = canonical(&spec.dependencies, namespace, set);
    for template in &mut spec.policy_templates {
        template.extra_dependencies = canonical(&template.extra_dependencies, namespace, set);
    }
    spec
}

/// The action of a cluster whose binding enforces, which keeps the root's spelling where that enforces already.
pub fn enforced(action: &str) -> &str {
    if action.eq_ignore_ascii_case(ENFORCE) {
        action
    } else {
        ENFORCE
    }
}

/// Which content and action a spec has, in one word.
pub fn digest(spec: &PolicySpec) -> String {
    // Everything of ours can be encoded.
    short(&json!({
        "templates": serde_json::to_value(&spec.policy_templates).unwrap_or_default(),
        "dependencies": serde_json::to_value(&spec.dependencies).unwrap_or_default(),
        "options": serde_json::to_value(&spec.hub_template_options).unwrap_or_default(),
        "action": spec.remediation_action,
    }))
}

/// Labels and annotations of a replica, on what its metadata is now.
pub fn metadata(root: &Policy, cluster: &str, mark: &Mark, present: Option<&ObjectMeta>) -> ObjectMeta {
    let all = root.spec.copy_policy_metadata != Some(false);
    let copied = |from: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        from.iter()
            .filter(|(key, _)| all || key.starts_with(FRAMEWORK))
            .filter(|(key, _)| !OF_ROOTS.iter().any(|own| key.starts_with(own)))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let name = replica_name(&root.metadata.namespace, &root.metadata.name);
    let mut metadata = present.cloned().unwrap_or_default();
    metadata.labels = copied(&root.metadata.labels);
    for (key, value) in [
        (ROOT_POLICY, name.as_str()),
        (CLUSTER_NAME, cluster),
        (CLUSTER_NAMESPACE, cluster),
    ] {
        metadata.labels.insert(key.to_owned(), value.to_owned());
    }
    metadata.annotations = copied(&root.metadata.annotations);
    metadata
        .annotations
        .insert(ARGO_COMPARE.to_owned(), ARGO_IGNORE.to_owned());
    metadata.annotations.insert(REVISION.to_owned(), mark.to_string());
    metadata.name = name;
    cluster.clone_into(&mut metadata.namespace);
    metadata
}

/// Dependencies as members know them: policies by the names of their replicas, sets as their policies.
fn canonical<'s>(
    dependencies: &[Dependency],
    namespace: &str,
    set: &dyn Fn(&str, &str) -> Option<&'s PolicySet>,
) -> Vec<Dependency> {
    let mut found = Vec::with_capacity(dependencies.len());
    for dependency in dependencies {
        match dependency.kind.as_str() {
            "Policy" if is_ours(dependency) => found.push(policy(dependency, namespace)),
            "PolicySet" if is_ours(dependency) => {
                let home = home(dependency, namespace);
                match set(home, &dependency.name) {
                    Some(set) => found.extend(set.spec.policies.iter().map(|name| Dependency {
                        api_version: format!("{POLICY_GROUP}/v1"),
                        kind: "Policy".to_owned(),
                        // The policies of a set are of its namespace, whatever dots their names have.
                        name: replica_name(home, name),
                        namespace: String::new(),
                        ..dependency.clone()
                    })),
                    None => found.push(dependency.clone()),
                }
            }
            _ => found.push(dependency.clone()),
        }
    }
    found
}

/// Whether a dependency is on a kind of policies.
fn is_ours(dependency: &Dependency) -> bool {
    let group = dependency.api_version.split_once('/').map(|(group, _)| group);
    group == Some(POLICY_GROUP)
}

/// The namespace of what a root of another depends on.
fn home<'a>(dependency: &'a Dependency, namespace: &'a str) -> &'a str {
    match dependency.namespace.as_str() {
        "" => namespace,
        own => own,
    }
}

fn policy(dependency: &Dependency, namespace: &str) -> Dependency {
    let name = &dependency.name;
    let name = if dependency.namespace.is_empty() && name.contains('.') {
        name.clone()
    } else {
        replica_name(home(dependency, namespace), name)
    };
    Dependency {
        name,
        namespace: String::new(),
        ..dependency.clone()
    }
}
