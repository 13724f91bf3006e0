//! Which came first, a template or the selectors of a Lazy policy that match it. A template that was written later is
//! activated at once; an older one waits for its next change.

use std::cmp::Ordering;

use jiff::Timestamp;
use lockgate_api::PropagationPolicy;
use lockgate_api::policy::{PropagationSpec, PropagationStatus};
use serde_json::Value;

use super::content::short_hash;
use crate::object;

/// The field manager of our own writes, which do not count as the user's.
const OWN_MANAGER: &str = "lockgate";

/// Whether the user wrote the template after the policy's selectors became what they are; `None` if nobody can tell.
/// `written` is when a user last wrote the template, if that is known better than from the template itself.
///
/// Servers tell times in whole seconds. Within one second the resource versions decide: the policy's is that of the
/// write that brought the selectors, for its status has a version of its own.
pub(super) fn written_after(
    template: &Value,
    written: Option<Timestamp>,
    policy: &PropagationPolicy,
) -> Option<bool> {
    let metadata = &policy.metadata;
    let told = policy
        .status
        .as_ref()
        .filter(|status| is_told(status, &policy.spec));
    let version = told
        .and_then(|status| status.selectors_version.as_deref())
        .unwrap_or(&metadata.resource_version);
    let versions = || {
        let template: u64 = object::meta_text(template, "resourceVersion").parse().ok()?;
        let policy: u64 = version.parse().ok()?;
        Some(template > policy)
    };
    let since = match told.and_then(|status| status.selectors_since.as_deref()) {
        Some(since) => since,
        None if metadata.generation <= 1 => metadata.creation_timestamp.as_deref()?,
        // The selectors may be younger than the policy. What was written after its last change is newer for certain.
        None => return versions(),
    };
    let written = written.or_else(|| last_written(template))?;
    match second(&written).cmp(&second(&since.parse().ok()?)) {
        Ordering::Less => Some(false),
        Ordering::Greater => Some(true),
        Ordering::Equal => versions(),
    }
}

/// Says in a policy's status since when its selectors are what they are. What was said of the same selectors stays.
/// `written` is when a user last wrote the policy: no earlier than they changed the selectors.
pub fn tell_selectors(
    policy: &PropagationPolicy,
    written: Option<Timestamp>,
    status: &mut PropagationStatus,
) {
    if is_told(status, &policy.spec) {
        return;
    }
    let metadata = &policy.metadata;
    status.selectors_since = match metadata.generation {
        ..=1 => metadata.creation_timestamp.clone(),
        _ => written.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    };
    status.selectors_version = Some(metadata.resource_version.clone());
    status.selectors_hash = Some(selectors_hash(&policy.spec));
}

/// Whether what a status says of selectors is about these.
fn is_told(status: &PropagationStatus, spec: &PropagationSpec) -> bool {
    status
        .selectors_hash
        .as_ref()
        .is_some_and(|hash| *hash == selectors_hash(spec))
}

fn selectors_hash(spec: &PropagationSpec) -> String {
    // Selectors are strings, and always encode.
    short_hash(&serde_json::to_value(&spec.resource_selectors).unwrap_or_default())
}

fn second(time: &Timestamp) -> i64 {
    time.as_second()
}

/// When somebody other than us last wrote an object, subresources apart; its creation if that is not told.
pub fn last_written(object: &Value) -> Option<Timestamp> {
    let managed = object["metadata"]["managedFields"].as_array();
    let newest = managed
        .into_iter()
        .flatten()
        .filter(|entry| is_users(object::text(entry, "manager"), object::text(entry, "subresource")))
        .filter_map(|entry| object::text(entry, "time").parse().ok())
        .max();
    newest.or_else(|| object::meta_text(object, "creationTimestamp").parse().ok())
}

/// Whether what a field manager wrote, in the object itself or in a subresource, is the user's.
pub fn is_users(manager: &str, subresource: &str) -> bool {
    manager != OWN_MANAGER && subresource.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(created: &str, version: &str, generation: i64, since: Option<&str>) -> PropagationPolicy {
        let mut policy = json!({ "metadata": {
            "name": "p", "namespace": "shop", "creationTimestamp": created, "resourceVersion": version,
            "generation": generation,
        } });
        if let Some(since) = since {
            let hash = selectors_hash(&PropagationSpec::default());
            policy["status"] =
                json!({ "selectorsSince": since, "selectorsVersion": "7", "selectorsHash": hash });
        }
        serde_json::from_value(policy).unwrap()
    }

    #[test]
    fn the_later_write_wins() {
        const T10: &str = "2026-01-01T00:00:10Z";
        const T20: &str = "2026-01-01T00:00:20Z";
        let since = |time| Some(time);
        // Template created and its version; policy created, its version, generation, selectors since; expected.
        let table = [
            ("older template", T10, "5", policy(T20, "9", 1, None), Some(false)),
            ("newer template", T20, "9", policy(T10, "5", 1, None), Some(true)),
            (
                "versions say otherwise",
                T20,
                "3",
                policy(T10, "5", 1, None),
                Some(true),
            ),
            (
                "same second, template later",
                T10,
                "9",
                policy(T10, "5", 1, None),
                Some(true),
            ),
            (
                "same second, policy later",
                T10,
                "5",
                policy(T10, "9", 1, None),
                Some(false),
            ),
            (
                "same second, no version",
                T10,
                "",
                policy(T10, "9", 1, None),
                None,
            ),
            // Edited policies: what the template was written after, it was written after as a whole.
            (
                "policy edited since",
                T20,
                "7",
                policy(T10, "9", 2, None),
                Some(false),
            ),
            (
                "template after the edit",
                T20,
                "9",
                policy(T10, "7", 2, None),
                Some(true),
            ),
            (
                "template first, edit last",
                T10,
                "5",
                policy(T20, "9", 2, None),
                Some(false),
            ),
            // The policy's own word counts for more than its creation.
            (
                "selectors widened later",
                T10,
                "5",
                policy(
                    "2026-01-01T00:00:01Z",
                    "9",
                    2,
                    since("2026-01-01T00:00:20.123456Z"),
                ),
                Some(false),
            ),
            (
                "placement edited later",
                T20,
                "5",
                policy(
                    "2026-01-01T00:00:01Z",
                    "9",
                    2,
                    since("2026-01-01T00:00:10.999999Z"),
                ),
                Some(true),
            ),
            // The status has moved the policy's version since: the selectors came with version 7.
            (
                "same second as the selectors, and later",
                T10,
                "8",
                policy(T10, "9", 2, since("2026-01-01T00:00:10.5Z")),
                Some(true),
            ),
            (
                "same second as the selectors, and earlier",
                T10,
                "6",
                policy(T10, "9", 2, since("2026-01-01T00:00:10.5Z")),
                Some(false),
            ),
            (
                "what was told of other selectors",
                T20,
                "8",
                {
                    let mut policy = policy(T10, "9", 2, since(T10));
                    policy.spec.resource_selectors.push(Default::default());
                    policy
                },
                Some(false),
            ),
            ("unreadable", "yesterday", "5", policy(T10, "9", 1, None), None),
            (
                "unreadable policy",
                T10,
                "5",
                policy("yesterday", "9", 1, None),
                None,
            ),
        ];
        for (name, created, version, policy, expected) in table {
            let template =
                json!({ "metadata": { "creationTimestamp": created, "resourceVersion": version } });
            assert_eq!(written_after(&template, None, &policy), expected, "{name}");
        }
    }

    #[test]
    fn writes_of_users_count_and_ours_do_not() {
        let policy = policy("2026-01-01T00:00:10Z", "5", 1, None);
        let entry = |manager: &str, second: u8, subresource: &str| json!({ "manager": manager, "time": format!("2026-01-01T00:00:{second:02}Z"), "subresource": subresource });
        let table = [
            (vec![], false),
            (vec![entry("kubectl", 20, "")], true),
            (vec![entry("kubectl", 9, "")], false),
            (vec![entry("kubectl", 20, "status")], false),
            (vec![entry("lockgate", 20, "")], false),
            (vec![entry("kubectl", 9, ""), entry("helm", 20, "")], true),
        ];
        for (managed, expected) in table {
            let template = json!({ "metadata": {
                "creationTimestamp": "2026-01-01T00:00:01Z", "resourceVersion": "9", "managedFields": managed,
            } });
            assert_eq!(
                written_after(&template, None, &policy),
                Some(expected),
                "{managed:?}"
            );
            // The cache keeps the time alone.
            let written = last_written(&template);
            let kept = json!({ "metadata": { "creationTimestamp": "2026-01-01T00:00:01Z", "resourceVersion": "9" } });
            assert_eq!(
                written_after(&kept, written, &policy),
                Some(expected),
                "{managed:?}"
            );
        }
    }

    #[test]
    fn selectors_are_told_once_and_again_when_they_change() {
        let mut policy = policy("2026-01-01T00:00:10Z", "5", 1, None);
        let mut status = PropagationStatus::default();
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        // A label was changed since: the selectors are as old as the policy.
        tell_selectors(&policy, at("2026-01-01T00:00:20Z"), &mut status);
        assert_eq!(status.selectors_since.as_deref(), Some("2026-01-01T00:00:10Z"));
        assert_eq!(status.selectors_version.as_deref(), Some("5"));
        let told = status.clone();
        policy.metadata.generation = 2;
        policy.metadata.resource_version = "8".into();
        tell_selectors(&policy, at("2026-01-01T00:00:30Z"), &mut status);
        assert_eq!(status, told, "something else was edited");
        policy.spec.resource_selectors.push(Default::default());
        tell_selectors(&policy, at("2026-01-01T00:00:30.7Z"), &mut status);
        assert_eq!(status.selectors_since.as_deref(), Some("2026-01-01T00:00:30Z"));
        assert_eq!(status.selectors_version.as_deref(), Some("8"));
        // A server that does not say who wrote when: the version alone counts.
        policy.spec.resource_selectors.push(Default::default());
        tell_selectors(&policy, None, &mut status);
        assert_eq!(status.selectors_since, None);
        assert_eq!(status.selectors_version.as_deref(), Some("8"));
    }
}
