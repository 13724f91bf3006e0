//! What `suspend` and `resume` make of a resource's RolloutPolicy. Pure: the policy as it is comes in, what to write comes out.

use std::collections::BTreeSet;

use lockgate_api::policy::{SuspendClusters, Suspension};
use lockgate_api::{ObjectMeta, ResourceSelector, RolloutPolicy, RolloutSpec, names};
use lockgate_engine::{TemplateId, gate};

/// What happens to the policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// It is written: created, or replaced.
    Write(Box<RolloutPolicy>),
    /// It is deleted.
    Delete,
    /// It is as it should be.
    Nothing,
}

/// The policy's name follows from the resource's, as its binding's does.
pub(crate) fn policy_name(id: &TemplateId) -> String {
    names::binding_name(&id.kind, &id.name)
}

/// The policy of a resource, which holds nothing back yet.
fn new(id: &TemplateId) -> RolloutPolicy {
    RolloutPolicy {
        metadata: ObjectMeta {
            name: policy_name(id),
            namespace: id.namespace.clone(),
            ..ObjectMeta::default()
        },
        spec: RolloutSpec {
            resource_selectors: vec![ResourceSelector {
                api_version: id.api_version.clone(),
                kind: id.kind.clone(),
                name: id.name.clone(),
                ..ResourceSelector::default()
            }],
            ..RolloutSpec::default()
        },
        status: None,
    }
}

/// Only a policy about this resource and nothing else may be changed for it.
fn check(policy: &RolloutPolicy, id: &TemplateId) -> Result<(), String> {
    let about = |selector: &ResourceSelector| {
        selector.api_version == id.api_version
            && selector.kind == id.kind
            && selector.name == id.name
            && (selector.namespace.is_empty() || selector.namespace == id.namespace)
    };
    if matches!(policy.spec.resource_selectors.as_slice(), [only] if about(only)) {
        return Ok(());
    }
    let kind = policy.kind().to_lowercase();
    let namespace = match policy.metadata.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    Err(format!(
        "{} is not about {id} alone, and is left as it is: see `kubectl get {kind} {}{namespace} -o yaml`",
        policy.title(),
        policy.metadata.name
    ))
}

/// Holds a resource back, everywhere or from more clusters.
pub(crate) fn suspend(
    present: Option<&RolloutPolicy>,
    id: &TemplateId,
    clusters: &[String],
    reason: &str,
) -> Result<Edit, String> {
    let mut policy = match present {
        Some(present) => {
            check(present, id)?;
            present.clone()
        }
        None => new(id),
    };
    let before = policy.spec.suspension.clone().unwrap_or_default();
    let mut wanted = if clusters.is_empty() || gate::is_everywhere(&before) {
        everywhere()
    } else {
        let names = gate::named(&before).chain(clusters.iter().map(String::as_str));
        on(names.collect())
    };
    reason.trim().clone_into(&mut wanted.reason);
    if present.is_some() && same(&before, &wanted) {
        return Ok(Edit::Nothing);
    }
    policy.spec.suspension = Some(wanted);
    Ok(Edit::Write(Box::new(policy)))
}

/// Lets a resource go, everywhere or in some clusters. What was held back everywhere stays so in the others of `all`.
pub(crate) fn resume(
    present: Option<&RolloutPolicy>,
    id: &TemplateId,
    clusters: &[String],
    all: &[String],
) -> Result<Edit, String> {
    let Some(present) = present else {
        return Ok(Edit::Nothing);
    };
    check(present, id)?;
    let Some(before) = &present.spec.suspension else {
        return Ok(let_go(present));
    };
    if clusters.is_empty() {
        return Ok(let_go(present));
    }
    let held: BTreeSet<&str> = if gate::is_everywhere(before) {
        if all.is_empty() {
            // Without the names of the others, all of them would be let go.
            return Err(format!(
                "{id} is suspended in all clusters, and which those are may not be read with your rights: say first \
                 where it stays suspended, with `kubectl edit {} {}`",
                present.kind().to_lowercase(),
                present.metadata.name
            ));
        }
        all.iter().map(String::as_str).collect()
    } else {
        gate::named(before).collect()
    };
    let left: BTreeSet<&str> = held
        .into_iter()
        .filter(|name| !clusters.iter().any(|cluster| cluster == name))
        .collect();
    if left.is_empty() {
        return Ok(let_go(present));
    }
    let mut wanted = on(left);
    wanted.reason.clone_from(&before.reason);
    if same(before, &wanted) {
        return Ok(Edit::Nothing);
    }
    let mut policy = present.clone();
    policy.spec.suspension = Some(wanted);
    Ok(Edit::Write(Box::new(policy)))
}

/// The policy holds nothing back any more. One that says in which order changes go stays for that.
fn let_go(present: &RolloutPolicy) -> Edit {
    match (&present.spec.strategy, &present.spec.suspension) {
        (None, _) => Edit::Delete,
        (Some(_), None) => Edit::Nothing,
        (Some(_), Some(_)) => {
            let mut policy = present.clone();
            policy.spec.suspension = None;
            Edit::Write(Box::new(policy))
        }
    }
}

fn everywhere() -> Suspension {
    Suspension {
        dispatching: Some(true),
        ..Suspension::default()
    }
}

fn on(names: BTreeSet<&str>) -> Suspension {
    Suspension {
        dispatching_on_clusters: Some(SuspendClusters {
            cluster_names: names.into_iter().map(str::to_owned).collect(),
        }),
        ..Suspension::default()
    }
}

/// Whether two suspensions hold back the same for the same reason, in whichever spelling.
fn same(a: &Suspension, b: &Suspension) -> bool {
    let names = |suspension| {
        gate::named(suspension)
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    gate::is_everywhere(a) == gate::is_everywhere(b) && names(a) == names(b) && a.reason == b.reason
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn id() -> TemplateId {
        TemplateId {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        }
    }

    fn held(suspension: Value) -> RolloutPolicy {
        let mut policy = new(&id());
        policy.metadata.resource_version = "7".to_owned();
        policy.spec.suspension = serde_json::from_value(suspension).unwrap();
        policy
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn on(names: &[&str]) -> Value {
        json!({"dispatchingOnClusters": {"clusterNames": names}, "reason": "why"})
    }

    /// What a policy holds back afterwards, as JSON; or that it is deleted, or left alone.
    fn outcome(edit: Result<Edit, String>) -> Value {
        match edit.unwrap() {
            Edit::Write(policy) => serde_json::to_value(policy.spec.suspension).unwrap(),
            Edit::Delete => json!("deleted"),
            Edit::Nothing => json!("nothing"),
        }
    }

    #[test]
    fn suspending_creates_widens_and_settles() {
        let all = json!({"dispatching": true, "reason": "why"});
        // What it says before, the clusters that are asked for, what it says then.
        for (before, clusters, after) in [
            (None, &[][..], all.clone()),
            (None, &["m2", "m1", "m2"], on(&["m1", "m2"])),
            (Some(json!(null)), &["m1"], on(&["m1"])),
            (Some(json!({})), &[], all.clone()),
            (Some(on(&["m1"])), &["m2"], on(&["m1", "m2"])),
            (Some(on(&["m1"])), &["m1"], json!("nothing")),
            (Some(on(&["m1"])), &[], all.clone()),
            (Some(all.clone()), &["m1"], json!("nothing")),
            (Some(all.clone()), &[], json!("nothing")),
            // The other spelling says the same.
            (
                Some(json!({"suspendDispatching": true, "reason": "why"})),
                &[],
                json!("nothing"),
            ),
            (
                Some(json!({"suspendDispatchingOnClusters": {"clusterNames": ["m1"]}})),
                &["m2"],
                on(&["m1", "m2"]),
            ),
            // Another reason is news.
            (Some(json!({"dispatching": true, "reason": "old"})), &[], all),
        ] {
            let before = before.map(held);
            let edit = suspend(before.as_ref(), &id(), &names(clusters), " why ");
            assert_eq!(outcome(edit), after, "{before:?} {clusters:?}");
        }
    }

    #[test]
    fn resuming_narrows_and_ends() {
        let all = names(&["m1", "m2", "m3"]);
        for (before, clusters, after) in [
            (None, &[][..], json!("nothing")),
            (None, &["m1"], json!("nothing")),
            (Some(json!(null)), &["m1"], json!("deleted")),
            (Some(on(&["m1", "m2"])), &[], json!("deleted")),
            (Some(on(&["m1", "m2"])), &["m1"], on(&["m2"])),
            (Some(on(&["m1", "m2"])), &["m1", "m2"], json!("deleted")),
            (Some(on(&["m1", "m2"])), &["m3"], json!("nothing")),
            (
                Some(json!({"dispatching": true, "reason": "why"})),
                &["m2"],
                on(&["m1", "m3"]),
            ),
            (Some(json!({"suspendDispatching": true})), &[], json!("deleted")),
        ] {
            let before = before.map(held);
            let edit = resume(before.as_ref(), &id(), &names(clusters), &all);
            assert_eq!(outcome(edit), after, "{before:?} {clusters:?}");
        }
        // Who resumes does not give up the order in which changes go.
        let mut ordered = held(json!({"dispatching": true}));
        ordered.spec.strategy = Some(Default::default());
        for clusters in [&[][..], &["m1", "m2", "m3"]] {
            let Edit::Write(left) = resume(Some(&ordered), &id(), &names(clusters), &all).unwrap() else {
                unreachable!("{clusters:?}");
            };
            assert_eq!(left.spec.suspension, None);
            assert!(left.spec.strategy.is_some());
        }
        // Nothing is let go because nobody could look.
        let everywhere = held(json!({"dispatching": true}));
        assert!(resume(Some(&everywhere), &id(), &names(&["m1"]), &[]).is_err());
    }

    #[test]
    fn the_policy_of_somebody_else_is_left_alone() {
        let mut other = held(json!({"dispatching": true}));
        other.spec.resource_selectors[0].name = String::new();
        for edit in [
            suspend(Some(&other), &id(), &[], "why"),
            resume(Some(&other), &id(), &[], &[]),
        ] {
            let error = edit.unwrap_err();
            assert!(
                error.starts_with("RolloutPolicy shop/web-deployment is not about Deployment shop/web alone"),
                "{error}"
            );
        }
        other.spec.resource_selectors = new(&id()).spec.resource_selectors;
        other.spec.resource_selectors.push(ResourceSelector::default());
        assert!(suspend(Some(&other), &id(), &[], "why").is_err());
    }
}
