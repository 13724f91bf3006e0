//! Objects that the hub serves in several versions, of which policies name more than one.
//!
//! One version of an object is its template, so that two policies do not take it from each other for ever: the one by which
//! its owner selects it; if nobody owns it, the one that is bound already; else the most mature one that a policy selects.

use lockgate_api::{Binding, PropagationPolicy};
use serde_json::Value;

use super::Claim;
use crate::object;
use crate::selector::{PolicyIndex, policy_match};

/// An object in one of its versions.
#[derive(Clone, Copy)]
pub struct VersionInput<'a> {
    /// The object, in the version that is asked about.
    pub template: &'a Value,
    /// Its binding, whichever version that names.
    pub binding: Option<&'a Binding>,
    /// The apiVersions of the same group in which it is known too.
    pub others: &'a [String],
    /// All policies.
    pub policies: &'a PolicyIndex,
}

/// The apiVersion that is the template in the place of the one that is asked about; none if that one is.
pub fn template_version<'a>(input: &VersionInput<'a>) -> Option<&'a str> {
    let own = object::text(input.template, "apiVersion");
    let claim = Claim::on_template(input.template).or_else(|| {
        input
            .binding
            .and_then(|binding| Claim::on_binding(&binding.metadata))
    });
    let owner = claim.and_then(|claim| {
        let policy = input.policies.get(&claim.namespace, &claim.name)?;
        (policy.permanent_id() == claim.id).then_some(policy)
    });
    let owned = owner.map(|owner| selected(input, |object| is_selected(owner, object)));
    let candidates = owned
        .filter(|owned| !owned.is_empty())
        .unwrap_or_else(|| selected(input, |object| input.policies.best(object).is_some()));
    let bound = input
        .binding
        .map(|binding| binding.spec.resource.api_version.as_str());
    let winner = candidates
        .iter()
        .find(|version| Some(**version) == bound)
        .or_else(|| candidates.iter().max_by_key(|version| maturity(version)))?;
    (*winner != own).then_some(*winner)
}

fn is_selected(policy: &PropagationPolicy, object: &Value) -> bool {
    policy_match(policy, object).is_some()
}

/// The versions in which the object is one that is selected.
fn selected<'a>(input: &VersionInput<'a>, is: impl Fn(&Value) -> bool) -> Vec<&'a str> {
    let mut object = input.template.clone();
    let own = object::text(input.template, "apiVersion");
    let all = std::iter::once(own).chain(input.others.iter().map(String::as_str));
    all.filter(|version| {
        object["apiVersion"] = (*version).into();
        is(&object)
    })
    .collect()
}

/// How mature a version is, as servers order them: v2, v1, v1beta2, v1beta1, v1alpha1, and then all others.
fn maturity(api_version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    let named = |stage, major, minor| (stage, major, minor, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return named(0, 0, 0);
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let stage = ["alpha", "beta"]
        .iter()
        .zip([1, 2])
        .find_map(|(word, stage)| Some((stage, rest.strip_prefix(word)?)));
    match (major.parse(), stage) {
        (Ok(major), None) if rest.is_empty() => named(3, major, 0),
        (Ok(major), Some((stage, minor))) => match minor.parse() {
            Ok(minor) => named(stage, major, minor),
            Err(_) => named(0, 0, 0),
        },
        _ => named(0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_api::keys;
    use serde_json::json;

    use super::*;

    fn policy(name: &str, versions: &[&str]) -> Arc<PropagationPolicy> {
        let selectors: Vec<Value> = versions
            .iter()
            .map(|version| json!({"apiVersion": format!("example.org/{version}"), "kind": "Widget"}))
            .collect();
        let policy = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": {"resourceSelectors": selectors},
        });
        Arc::new(serde_json::from_value(policy).unwrap())
    }

    /// Which version is the template, asked in v1alpha1 and in v1; an answer for each.
    fn check(policies: &[(&str, &[&str])], claimed: Option<&str>, bound: Option<&str>, expected: &str) {
        let mut index = PolicyIndex::default();
        for (name, versions) in policies {
            index.insert(policy(name, versions));
        }
        let binding: Option<Binding> = bound.map(|version| {
            let resource = json!({"apiVersion": format!("example.org/{version}"), "kind": "Widget"});
            serde_json::from_value(json!({"spec": {"resource": resource}})).unwrap()
        });
        for (own, other) in [("v1alpha1", "v1"), ("v1", "v1alpha1")] {
            let mut template = json!({
                "apiVersion": format!("example.org/{own}"), "kind": "Widget",
                "metadata": {"name": "w", "namespace": "shop"},
            });
            if let Some(name) = claimed {
                template["metadata"]["labels"] = json!({ keys::PP_ID: name });
                template["metadata"]["annotations"] =
                    json!({ keys::PP_NAME: name, keys::PP_NAMESPACE: "shop" });
            }
            let others = [format!("example.org/{other}")];
            let answer = template_version(&VersionInput {
                template: &template,
                binding: binding.as_ref(),
                others: &others,
                policies: &index,
            });
            let is = answer.unwrap_or(object::text(&template, "apiVersion"));
            let found = if policies.is_empty() {
                "both"
            } else {
                is.rsplit('/').next().unwrap()
            };
            assert_eq!(
                found, expected,
                "{policies:?} {claimed:?} {bound:?} asked in {own}"
            );
        }
    }

    #[test]
    fn one_version_of_an_object_is_its_template() {
        let (old, new): (&[&str], &[&str]) = (&["v1alpha1"], &["v1"]);
        let both = [("a", old), ("b", new)];
        check(&[], None, None, "both");
        check(&[("a", old)], None, None, "v1alpha1");
        check(&[("b", new)], None, None, "v1");
        check(&both, None, None, "v1");
        check(&both, None, Some("v1alpha1"), "v1alpha1");
        check(&both, Some("a"), Some("v1alpha1"), "v1alpha1");
        check(&both, Some("a"), None, "v1alpha1");
        check(&both, Some("b"), Some("v1alpha1"), "v1");
        // Its owner names both.
        check(
            &[("a", &["v1", "v1alpha1"])],
            Some("a"),
            Some("v1alpha1"),
            "v1alpha1",
        );
        check(&[("a", &["v1", "v1alpha1"])], Some("a"), None, "v1");
        // Its owner has moved on to the other version, or is gone.
        check(&[("a", new)], Some("a"), Some("v1alpha1"), "v1");
        check(&[("b", new)], Some("a"), Some("v1alpha1"), "v1");
    }

    #[test]
    fn versions_are_ordered_as_servers_do() {
        let mut versions = [
            "v1alpha1", "foo", "v2", "v1beta2", "v10", "v1beta10", "v1", "v2alpha1",
        ];
        versions.sort_by_key(|version| std::cmp::Reverse(maturity(version)));
        assert_eq!(
            versions[..6],
            ["v10", "v2", "v1", "v1beta10", "v1beta2", "v2alpha1"]
        );
        assert_eq!(versions[6..], ["v1alpha1", "foo"]);
    }
}
