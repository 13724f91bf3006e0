//! What a replica says of its templates, and what their ConfigurationPolicies remember of being enforced.

use lockgate_api::ocm::Policy;
use lockgate_api::ocm::configuration::EvaluationEntry;
use lockgate_api::ocm::policy::{PolicyStatus, TemplateDetails};
use lockgate_engine::comply::replica::{
    self, API_VERSION, ENFORCED_BEFORE, Told, has_enforced, in_place_of, report,
};

use super::*;

fn evaluated(compliant: &str, message: &str, at: &str) -> ConfigurationStatus {
    ConfigurationStatus {
        compliant: compliant.to_owned(),
        history: vec![EvaluationEntry {
            last_timestamp: at.to_owned(),
            message: message.to_owned(),
        }],
        ..ConfigurationStatus::default()
    }
}

/// The details after this was told, so many seconds later.
fn next(before: &[TemplateDetails], told: &[(&str, Told<'_>)], later: i64) -> Vec<TemplateDetails> {
    let previous = PolicyStatus {
        details: before.to_vec(),
        ..PolicyStatus::default()
    };
    let now = now() + jiff::SignedDuration::from_secs(later);
    report("ops.box", &previous, told, now).0
}

fn messages(details: &TemplateDetails) -> Vec<&str> {
    details
        .history
        .iter()
        .map(|entry| entry.message.as_str())
        .collect()
}

#[test]
fn templates_of_one_name_are_told_once() {
    let fine = evaluated("Compliant", "Compliant; fine", "2026-05-28T16:18:34.733058Z");
    let twice = || Told::Wrong("two templates have the name box".to_owned());
    let cases = [
        vec![
            ("box", Told::Evaluated(&fine)),
            ("box", twice()),
            ("box", Told::Wrong("three".to_owned())),
        ],
        vec![
            ("", Told::Wrong("a Pod".to_owned())),
            ("", Told::Wrong("a Job".to_owned())),
        ],
    ];
    for told in cases {
        let first = next(&[], &told, 0);
        assert!(
            first.iter().all(|details| details.history.len() == 1),
            "{first:?}"
        );
        assert_eq!(next(&first, &told, 60), first);
    }
}

#[test]
fn what_was_wrong_in_between_is_over() {
    let fine = evaluated("Compliant", "Compliant; fine", "2026-05-28T16:18:34.733058Z");
    let told = [("box", Told::Evaluated(&fine))];
    let first = next(&[], &told, 0);
    let refused = next(&first, &[("box", Told::Wrong("no".to_owned()))], 10);
    let back = next(&refused, &told, 20);
    assert_eq!(
        messages(&back[0]),
        [
            "Compliant; fine",
            "NonCompliant; template-error; no",
            "Compliant; fine"
        ]
    );
    assert_eq!(back[0].compliant, "Compliant");
    // That is said once.
    assert_eq!(next(&back, &told, 30), back);
    // What is found later comes after it.
    let bad = evaluated("NonCompliant", "NonCompliant; bad", "2026-05-28T16:19:34.733058Z");
    let bad = next(&back, &[("box", Told::Evaluated(&bad))], 60);
    assert_eq!(messages(&bad[0])[0], "NonCompliant; bad");
    assert_eq!(bad[0].history.len(), 4);
}

#[test]
fn what_was_enforced_before_its_turn_is_not_forgotten() {
    let policy = |action: &str, waits: bool, present: Option<&Value>| {
        let wanted = json!({"metadata": {"name": "box"}, "spec": {"remediationAction": action}});
        match present {
            None => wanted,
            Some(present) => in_place_of(wanted, present, waits),
        }
    };
    let enforced = |policy: &Value| {
        has_enforced(
            policy["spec"]["remediationAction"].as_str().unwrap(),
            policy["metadata"]["annotations"][ENFORCED_BEFORE].as_str(),
        )
    };
    let first = policy("Enforce", false, None);
    assert!(enforced(&first));
    // Through any number of versions that only wait.
    let waits = policy("inform", true, Some(&first));
    let still = policy("inform", true, Some(&waits));
    assert!(enforced(&waits) && enforced(&still));
    // Released as one that informs for good, it is over.
    let informs = policy("inform", false, Some(&still));
    assert!(!enforced(&informs));
    assert!(!enforced(&policy("inform", true, Some(&informs))));
    // Released as one that enforces, there is nothing to note.
    let enforces = policy("enforce", false, Some(&still));
    assert_eq!(enforces["metadata"].get("annotations"), None);
}

#[test]
fn go_templates_are_refused_wherever_they_stand() {
    let plan = |change: &dyn Fn(&mut Value)| {
        let mut policy = json!({
            "metadata": {"name": "ops.box"},
            "spec": {"dependencies": [], "policy-templates": [{
                "objectDefinition": {"apiVersion": API_VERSION, "kind": "ConfigurationPolicy", "metadata":
                    {"name": "box"}, "spec": {"severity": "low"}},
                "extraDependencies": []}]},
        });
        change(&mut policy);
        let policy: Policy = serde_json::from_value(policy).unwrap();
        replica::plan(&policy, "member1").remove(0).object
    };
    let depends = json!({"apiVersion": API_VERSION, "kind": "Policy", "name": "{{hub x hub}}", "compliance": "Compliant"});
    assert!(plan(&|_| {}).is_ok());
    let template = "/spec/policy-templates/0";
    for (place, value, path) in [
        (
            format!("{template}/objectDefinition/metadata"),
            json!({"name": "box", "annotations": {"x": "{{ .A }}"}}),
            "objectDefinition.metadata.annotations.x",
        ),
        (
            format!("{template}/objectDefinition/metadata"),
            json!({"name": "box", "labels": {"{{ .A }}": "x"}}),
            "objectDefinition.metadata.labels.{{ .A }}",
        ),
        (
            format!("{template}/extraDependencies"),
            json!([depends]),
            "extraDependencies[0].name",
        ),
        (
            "/spec/dependencies".to_owned(),
            json!([depends]),
            "dependencies[0].name",
        ),
    ] {
        let refused = plan(&|policy| *policy.pointer_mut(&place).unwrap() = value.clone());
        let message = refused.unwrap_err();
        assert!(message.starts_with(&format!("{path} holds {{{{")), "{message}");
    }
}
