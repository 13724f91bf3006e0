//! Nobody may grant what they do not hold.

use std::collections::BTreeSet;

use super::index::RbacIndex;
use super::rule::{PolicyRule, Texts, has, has_or_star, url_covers};
use crate::quote::{quote, quote_list};
use crate::user::{GROUP_MASTERS, UserInfo};

/// Rules that fall apart into more atoms than this are compared whole. A request of a few kilobytes could
/// otherwise ask for billions of comparisons.
const MAX_ATOMS: usize = 20_000;

/// Whether `owner` covers everything in `wanted`; otherwise the parts that are not covered, each with one group,
/// one resource, one verb and at most one name.
pub fn covers(owner: &[&PolicyRule], wanted: &[PolicyRule]) -> Result<(), Vec<PolicyRule>> {
    let mut uncovered = Vec::new();
    let mut budget = MAX_ATOMS;
    for rule in wanted {
        if owner.iter().any(|own| rule_covers(own, rule)) {
            continue;
        }
        let atoms = count_atoms(rule);
        if atoms > budget {
            uncovered.push(rule.clone());
            continue;
        }
        budget -= atoms;
        let missing = break_down(rule)
            .into_iter()
            .filter(|atom| !owner.iter().any(|own| rule_covers(own, atom)));
        uncovered.extend(missing);
    }
    if uncovered.is_empty() {
        Ok(())
    } else {
        Err(uncovered)
    }
}

/// The message that names what `user` tried to grant without holding it.
pub fn escalation_message(user: &UserInfo, uncovered: &[PolicyRule], resolution_errors: &[String]) -> String {
    let described: BTreeSet<String> = compact(uncovered).iter().map(PolicyRule::describe).collect();
    let mut message = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        quote_list(&user.groups),
        described.into_iter().collect::<Vec<_>>().join("\n"),
    );
    match resolution_errors {
        [] => {}
        [one] => message.push_str(&format!("; resolution errors: [{one}]")),
        several => message.push_str(&format!("; resolution errors: [[{}]]", several.join(", "))),
    }
    message
}

/// Whether `user` may grant `wanted` in `namespace` (empty: everywhere) by holding it; otherwise the message.
///
/// Whoever may `escalate` the role, or `bind` it, needs no such check: ask [`RbacIndex::authorize`] first.
pub fn check_escalation(
    index: &RbacIndex,
    user: &UserInfo,
    namespace: &str,
    wanted: &[PolicyRule],
) -> Result<(), String> {
    if user.in_group(GROUP_MASTERS) {
        return Ok(());
    }
    let held = index.rules_for(user, namespace);
    covers(&held.rules, wanted).map_err(|missing| escalation_message(user, &missing, &held.errors))
}

fn count_atoms(rule: &PolicyRule) -> usize {
    let resources = rule
        .api_groups
        .len()
        .saturating_mul(rule.resources.len())
        .saturating_mul(rule.resource_names.len().max(1))
        .saturating_mul(rule.verbs.len());
    resources.saturating_add(rule.non_resource_urls.len().saturating_mul(rule.verbs.len()))
}

fn one(text: &str) -> Texts {
    Box::new([text.into()])
}

fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut atoms = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let atom = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    atoms.push(atom);
                } else {
                    for name in &rule.resource_names {
                        atoms.push(PolicyRule {
                            resource_names: one(name),
                            ..atom.clone()
                        });
                    }
                }
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            atoms.push(PolicyRule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..PolicyRule::default()
            });
        }
    }
    atoms
}

fn rule_covers(owner: &PolicyRule, wanted: &PolicyRule) -> bool {
    let all = |own: &Texts, want: &Texts| want.iter().all(|w| has_or_star(own, w));
    all(&owner.verbs, &wanted.verbs)
        && all(&owner.api_groups, &wanted.api_groups)
        && wanted
            .resources
            .iter()
            .all(|r| resource_covers(&owner.resources, r))
        && wanted
            .non_resource_urls
            .iter()
            .all(|url| owner.non_resource_urls.iter().any(|own| url_covers(own, url)))
        && (owner.resource_names.is_empty()
            || (!wanted.resource_names.is_empty()
                && wanted
                    .resource_names
                    .iter()
                    .all(|name| has(&owner.resource_names, name))))
}

fn resource_covers(owner: &Texts, wanted: &str) -> bool {
    if has_or_star(owner, wanted) {
        return true;
    }
    let Some((_, subresource)) = wanted.split_once('/') else {
        return false;
    };
    owner
        .iter()
        .any(|own| own.strip_prefix("*/") == Some(subresource))
}

/// Joins rules that name one group and one resource and differ only in their verbs.
fn compact(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut out: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        let simple = |r: &PolicyRule| {
            r.resource_names.is_empty()
                && r.non_resource_urls.is_empty()
                && r.api_groups.len() == 1
                && r.resources.len() == 1
        };
        let same = |r: &&mut PolicyRule| {
            simple(r) && r.api_groups == rule.api_groups && r.resources == rule.resources
        };
        match out.iter_mut().find(same) {
            Some(known) if simple(rule) => {
                known.verbs = known.verbs.iter().chain(&rule.verbs).cloned().collect();
            }
            _ => out.push(rule.clone()),
        }
    }
    out
}
