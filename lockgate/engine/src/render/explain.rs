//! What rendering does, a step at a time, for people who ask.

use std::sync::Arc;

use lockgate_api::{Cluster, OverridePolicy};
use serde_json::Value;

use super::overrides::{self, SelectedRule, relevant_overrides};
use super::{RenderError, RenderInput, Rendered, bare, carry, render, render_namespace, revise};

/// How many changes of one step are told.
const CHANGES: usize = 100;

/// What rendering did.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// What giving out replicas changed, and what was taken along from another cluster.
    pub replicas: Vec<FieldChange>,
    /// What each override did, in order. The one that fails is the last.
    pub steps: Vec<Step>,
    /// What came of it.
    pub result: Result<Rendered, RenderError>,
}

/// What one rule of an override policy did.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The policy's kind and name.
    pub policy: String,
    /// The rule's place in the policy.
    pub rule: String,
    /// What it changed; nothing if the template does not hold what it changes.
    pub changes: Vec<FieldChange>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// A field that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// A JSON pointer.
    pub path: String,
    /// What was there.
    pub before: Option<Value>,
    /// What is there.
    pub after: Option<Value>,
}

/// Renders a template for one cluster, and says what each step did.
pub fn explain(input: &RenderInput<'_>) -> Explained {
    let result = render(input);
    let template = bare(input.template);
    let mut manifest = template.clone();
    let revised = revise(&mut manifest, input);
    carry(&mut manifest, input);
    let replicas = changes(&template, &manifest);
    let steps = match revised {
        Ok(()) => steps(&mut manifest, input.template, input.cluster, input.overrides),
        Err(_) => Vec::new(),
    };
    Explained {
        replicas,
        steps,
        result,
    }
}

/// Renders a namespace that every cluster gets, and says what each step did.
pub fn explain_namespace(
    namespace: &Value,
    work_id: &str,
    cluster: &Cluster,
    overrides: &[Arc<OverridePolicy>],
) -> Explained {
    Explained {
        replicas: Vec::new(),
        steps: steps(&mut bare(namespace), namespace, cluster, overrides),
        result: render_namespace(namespace, work_id, cluster, overrides),
    }
}

/// What the overrides do, up to the one that fails.
fn steps(
    manifest: &mut Value,
    template: &Value,
    cluster: &Cluster,
    overrides: &[Arc<OverridePolicy>],
) -> Vec<Step> {
    let mut steps = Vec::new();
    for rule in relevant_overrides(template, cluster, overrides) {
        let step = step(manifest, &rule, &cluster.metadata.name);
        let failed = step.failed.is_some();
        steps.push(step);
        if failed {
            break;
        }
    }
    steps
}

fn step(manifest: &mut Value, rule: &SelectedRule<'_>, cluster: &str) -> Step {
    let before = manifest.clone();
    let outcome = overrides::apply(manifest, &[*rule], cluster, &mut Vec::new());
    Step {
        policy: rule.policy_text(),
        rule: rule.rule_text(),
        changes: changes(&before, manifest),
        failed: outcome
            .err()
            .map(|error| format!("{}: {}", error.path, error.message)),
    }
}

/// What differs, in the order of the fields.
pub fn changes(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare(before, after, &mut String::new(), &mut found);
    found
}

fn compare(before: &Value, after: &Value, path: &mut String, found: &mut Vec<FieldChange>) {
    if before == after || found.len() >= CHANGES {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let length = path.len();
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(old, new, path, found),
                    (old, new) if found.len() < CHANGES => found.push(FieldChange {
                        path: path.clone(),
                        before: old.cloned(),
                        after: new.cloned(),
                    }),
                    _ => {}
                }
                path.truncate(length);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                let length = path.len();
                path.push_str(&format!("/{index}"));
                compare(old, new, path, found);
                path.truncate(length);
            }
        }
        (old, new) => found.push(FieldChange {
            path: path.clone(),
            before: Some(old.clone()),
            after: Some(new.clone()),
        }),
    }
}
