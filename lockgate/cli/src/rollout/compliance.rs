//! How a policy is in a cluster: what its replica does there, and what was last said of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::{NON_COMPLIANT, PENDING, TemplateDetails};
use lockgate_engine::governance::replica::is_inform;
use lockgate_engine::governance::revision::{Mark, evaluated};

/// So many templates of one replica are told.
const TEMPLATES: usize = 3;

/// How a policy is in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Compliance {
    /// What its replica does, if that is worth a word.
    does: &'static str,
    /// How it is, in a word or two.
    is: &'static str,
    /// Why, for each template that is not as it should be.
    why: Vec<String>,
}

impl Compliance {
    /// How it is in lines, one for each template that is not as it should be.
    pub(super) fn lines(&self) -> Vec<String> {
        let does = match self.does {
            "" => String::new(),
            does => format!("{does}; "),
        };
        let Some((first, more)) = self.why.split_first() else {
            return vec![format!("{does}{}", self.is)];
        };
        let mut lines = vec![format!("{does}{}: {first}", self.is)];
        lines.extend(more.iter().take(TEMPLATES - 1).cloned());
        if more.len() >= TEMPLATES {
            lines.push(format!("… and {} more templates", more.len() + 1 - TEMPLATES));
        }
        lines
    }
}

/// How many of several clusters are how: `enforces nothing now: 2 would change, 3 compliant`.
pub(super) fn summary(all: impl Iterator<Item = Compliance>) -> String {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for one in all {
        *counts.entry(one.does).or_default().entry(one.is).or_default() += 1;
    }
    let told = counts.into_iter().map(|(does, counts)| {
        let counts: Vec<String> = counts.iter().map(|(is, count)| format!("{count} {is}")).collect();
        match does {
            "" => counts.join(", "),
            does => format!("{does}: {}", counts.join(", ")),
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

/// How a policy is in a cluster in this state.
pub(super) fn compliance(root: &Policy, replica: Option<&Policy>, state: &str) -> Compliance {
    let Some(replica) = replica else {
        return Compliance {
            is: "has no replica yet",
            ..Compliance::default()
        };
    };
    let mark = Mark::of(replica);
    let waits = mark.as_ref().is_some_and(|mark| mark.revision == 0);
    let enforces = !is_inform(&root.spec.remediation_action);
    let does = match (waits, enforces) {
        (true, true) => "enforces nothing now",
        (false, true) if state == "ToApply" && mark.is_some() => "keeps the previous version",
        _ => "",
    };
    let Some(status) = evaluated(replica) else {
        return Compliance {
            does,
            is: "not evaluated yet",
            why: mark
                .and_then(|mark| hindrance(replica, &mark))
                .into_iter()
                .collect(),
        };
    };
    let of = |state: &str| -> Vec<String> {
        let bad = status
            .details
            .iter()
            .filter(|template| template.compliant == state);
        bad.map(said).collect()
    };
    let (bad, pending) = (of(NON_COMPLIANT), of(PENDING));
    let (is, why) = match (bad.is_empty(), pending.is_empty()) {
        (true, true) if waits => ("compliant: nothing would change", Vec::new()),
        (true, true) => ("compliant", Vec::new()),
        (true, false) => ("pending", pending),
        (false, _) if waits => ("would change", bad),
        (false, _) => ("non-compliant", bad),
    };
    Compliance { does, is, why }
}

/// What was last said of a template, and of which.
fn said(template: &TemplateDetails) -> String {
    let said = template.history.first().map_or("", |entry| bare(&entry.message));
    format!("{} ({})", violations(said), template.template_meta.name)
}

/// Why what a replica holds is not evaluated: what was said of it since it is held, or of the cluster, which is not said twice.
fn hindrance(replica: &Policy, mark: &Mark) -> Option<String> {
    let status = replica.status.as_ref()?;
    let newest = status
        .details
        .iter()
        .filter(|template| template.compliant == NON_COMPLIANT)
        .find_map(|template| template.history.first())?;
    // Times of history have whole seconds.
    let at: Timestamp = newest.last_timestamp.as_ref()?.parse().ok()?;
    let said = violations(bare(&newest.message));
    let of_cluster = said.starts_with(&format!("cluster {} ", replica.metadata.namespace));
    (of_cluster || at.as_second() >= mark.at.as_second()).then_some(said)
}

/// A message without the words that its state says already.
fn bare(message: &str) -> &str {
    let said = message.split_once("; ").map_or(message, |(_, said)| said);
    said.strip_prefix("template-error; ").unwrap_or(said)
}

/// What a message says of objects that are not as they should be, without those that are; all of it if it does not say which.
fn violations(said: &str) -> String {
    let mut found: Vec<&str> = Vec::new();
    let mut is_violation = false;
    for part in said.split("; ") {
        // What begins with neither goes on with what was said before.
        let part = if let Some(violation) = part.strip_prefix("violation - ") {
            is_violation = true;
            violation
        } else {
            is_violation &= !part.starts_with("notification - ");
            part
        };
        if is_violation {
            found.push(part);
        }
    }
    if found.is_empty() {
        return said.to_owned();
    }
    found.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(value: serde_json::Value) -> Policy {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_a_cluster_does_and_what_it_says() {
        let replica = |revision: &str, evaluated: &str, state: &str| {
            policy(serde_json::json!({
                "metadata": {"annotations": {"policy.open-cluster-management.io/rollout-revision": revision}},
                "spec": {"policy-templates": [{"objectDefinition": {}}]},
                "status": {"evaluatedRevision": evaluated, "details": [{
                    "templateMeta": {"name": "one"}, "compliant": state, "history": [
                        {"message": format!("{state}; violation - pods [x] not found in namespace y")}]}]},
            }))
        };
        let root = policy(serde_json::json!({"spec": {"remediationAction": "enforce"}}));
        let said = |revision, evaluated, state| {
            compliance(&root, Some(&replica(revision, evaluated, state)), "Progressing")
                .lines()
                .join("\n")
        };
        assert_eq!(
            said("0.a.1", "0.a.1", "NonCompliant"),
            "enforces nothing now; would change: pods [x] not found in namespace y (one)"
        );
        assert_eq!(
            said("0.a.1", "0.a.1", "Compliant"),
            "enforces nothing now; compliant: nothing would change"
        );
        assert_eq!(
            violations(
                "notification - pods [a] found as specified; violation - pods [b] not found in namespace y; pods [c] \
                 found but not as specified; notification - boxes [d] missing as expected"
            ),
            "pods [b] not found in namespace y; pods [c] found but not as specified"
        );
        assert_eq!(violations("in somebody's; own words"), "in somebody's; own words");
        // What was said of something older is not told.
        assert_eq!(
            said("0.a.2", "0.a.1", "Compliant"),
            "enforces nothing now; not evaluated yet"
        );
        assert_eq!(said("1.a.1", "1.a.1", "Compliant"), "compliant");
        assert_eq!(
            said("1.a.1", "1.a.1", "NonCompliant"),
            "non-compliant: pods [x] not found in namespace y (one)"
        );
        assert_eq!(
            compliance(&root, Some(&replica("1.a.1", "1.a.1", "Compliant")), "ToApply")
                .lines()
                .join("\n"),
            "keeps the previous version; compliant"
        );
    }

    #[test]
    fn what_keeps_a_cluster_from_looking_is_told() {
        let root = policy(serde_json::json!({"spec": {"remediationAction": "enforce"}}));
        let refused = |at: &str, message: &str| {
            policy(serde_json::json!({
                "metadata": {"namespace": "member1", "annotations": {
                    "policy.open-cluster-management.io/rollout-revision": "2.a.1000000500000"}},
                "spec": {"policy-templates": [{"objectDefinition": {}}]},
                "status": {"evaluatedRevision": "", "details": [{
                    "templateMeta": {"name": "one"}, "compliant": "NonCompliant", "history": [{"lastTimestamp": at,
                        "message": format!("NonCompliant; template-error; {message}")}]}]},
            }))
        };
        let told = |replica: &Policy| compliance(&root, Some(replica), "Progressing").lines().join("\n");
        assert_eq!(
            told(&refused("1970-01-12T13:46:40Z", "no such kind")),
            "not evaluated yet: no such kind"
        );
        // What was said of something older is not told, unless it is about the cluster.
        assert_eq!(
            told(&refused("1970-01-12T13:46:39Z", "no such kind")),
            "not evaluated yet"
        );
        let refuses = "cluster member1 refuses the definitions of policies";
        assert_eq!(
            told(&refused("1970-01-12T13:46:39Z", refuses)),
            format!("not evaluated yet: {refuses}")
        );
    }

    #[test]
    fn every_template_that_is_not_so_is_told() {
        let root = policy(serde_json::json!({"spec": {"remediationAction": "enforce"}}));
        let template = |name: &str, state: &str| {
            serde_json::json!({"templateMeta": {"name": name}, "compliant": state, "history": [
                {"message": format!("{state}; violation - {name} is bad")}]})
        };
        let replica = |details: Vec<serde_json::Value>| {
            let templates: Vec<_> = details
                .iter()
                .map(|_| serde_json::json!({"objectDefinition": {}}))
                .collect();
            policy(serde_json::json!({
                "metadata": {"annotations": {"policy.open-cluster-management.io/rollout-revision": "0.a.1"}},
                "spec": {"policy-templates": templates},
                "status": {"evaluatedRevision": "0.a.1", "details": details},
            }))
        };
        let bad = |names: &[&str]| replica(names.iter().map(|name| template(name, "NonCompliant")).collect());
        let lines = |replica: &Policy| compliance(&root, Some(replica), "ToApply").lines();
        assert_eq!(
            lines(&bad(&["one", "two"])),
            [
                "enforces nothing now; would change: one is bad (one)",
                "two is bad (two)"
            ]
        );
        assert_eq!(lines(&bad(&["one", "two", "three"])).len(), 3);
        assert_eq!(
            lines(&bad(&["one", "two", "three", "four", "five"]))[3],
            "… and 2 more templates"
        );
        let mixed = replica(vec![template("one", "Compliant"), template("two", "Pending")]);
        assert_eq!(lines(&mixed), ["enforces nothing now; pending: two is bad (two)"]);
        // Many clusters, in one line.
        let fine = replica(vec![template("one", "Compliant")]);
        let all = [Some(&fine), Some(&bad(&["one"])), None, Some(&mixed), Some(&fine)];
        assert_eq!(
            summary(
                all.into_iter()
                    .map(|replica| compliance(&root, replica, "ToApply"))
            ),
            "1 has no replica yet; enforces nothing now: 2 compliant: nothing would change, 1 pending, 1 would change"
        );
    }
}
