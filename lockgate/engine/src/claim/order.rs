//! Which came first, a template or the selectors of a Lazy policy that match it. A template that was written later is
//! activated at once; an older one waits for its next change.

use std::cmp::Ordering;

use jiff::Timestamp;
use lockgate_api::PropagationPolicy;
use serde_json::Value;

use crate::object;

/// The field manager of our own writes, which do not count as the user's.
const OWN_MANAGER: &str = "lockgate";

/// Whether the user wrote the template after the policy's selectors became what they are; `None` if nobody can tell.
///
/// Servers tell times in whole seconds. Within one second the resource versions decide.
pub(super) fn written_after(template: &Value, policy: &PropagationPolicy) -> Option<bool> {
    let metadata = &policy.metadata;
    let versions = || {
        let template: u64 = object::meta_text(template, "resourceVersion").parse().ok()?;
        let policy: u64 = metadata.resource_version.parse().ok()?;
        Some(template > policy)
    };
    let told = policy
        .status
        .as_ref()
        .and_then(|status| status.selectors_since.as_deref());
    let since = match told {
        Some(since) => since,
        None if metadata.generation <= 1 => metadata.creation_timestamp.as_deref()?,
        // The selectors may be younger than the policy. What was written after its last change is newer for certain.
        None => return versions(),
    };
    match second(&last_written(template)?).cmp(&second(&since.parse().ok()?)) {
        Ordering::Less => Some(false),
        Ordering::Greater => Some(true),
        Ordering::Equal => versions(),
    }
}

fn second(time: &Timestamp) -> i64 {
    time.as_second()
}

/// When somebody other than us last wrote the template, subresources apart; its creation if that is not told.
fn last_written(template: &Value) -> Option<Timestamp> {
    let managed = template["metadata"]["managedFields"].as_array();
    let newest = managed
        .into_iter()
        .flatten()
        .filter(|entry| object::text(entry, "manager") != OWN_MANAGER)
        .filter(|entry| object::text(entry, "subresource").is_empty())
        .filter_map(|entry| object::text(entry, "time").parse().ok())
        .max();
    newest.or_else(|| object::meta_text(template, "creationTimestamp").parse().ok())
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
            policy["status"] = json!({ "selectorsSince": since });
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
            (
                "same second as the selectors",
                T10,
                "10",
                policy(T10, "9", 2, since("2026-01-01T00:00:10.5Z")),
                Some(true),
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
            assert_eq!(written_after(&template, &policy), expected, "{name}");
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
            assert_eq!(written_after(&template, &policy), Some(expected), "{managed:?}");
        }
    }
}
