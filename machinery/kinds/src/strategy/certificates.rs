//! Requests for certificates: who asks is what the server knows, and what was decided stays.

use serde_json::{Map, Value, json};

use super::{copy, keep_metadata};
use crate::access::{Object, is_empty, items, make, text};

/// Writes down who asks, whatever the request says about it.
pub fn identify(
    request: &mut Value,
    name: &str,
    uid: &str,
    groups: &[String],
    extra: impl IntoIterator<Item = (String, Vec<String>)>,
) {
    let Some(fields) = request.as_object_mut() else {
        return;
    };
    make(fields, "spec", |spec| {
        for key in ["username", "uid", "groups", "extra"] {
            spec.remove(key);
        }
        let mut put = |key: &str, value: Value| {
            if !is_empty(&value) {
                spec.insert(key.to_owned(), value);
            }
        };
        put("username", name.into());
        put("uid", uid.into());
        put("groups", json!(groups));
        let extra: Map<String, Value> = extra
            .into_iter()
            .map(|(key, values)| (key, json!(values)))
            .collect();
        put("extra", extra.into());
    });
}

/// A change through `approval`: of the status, the conditions alone.
pub fn prepare_approval(new: &mut Value, old: &Value) {
    let conditions = new["status"]["conditions"].clone();
    let Some(fields) = new.as_object_mut() else { return };
    copy(fields, old, "spec");
    copy(fields, old, "status");
    make(fields, "status", |status| {
        if is_empty(&conditions) {
            status.remove("conditions");
        } else {
            status.insert("conditions".to_owned(), conditions);
        }
    });
    keep_metadata(new, old);
}

/// A change of the status keeps the decisions as they were, if it has as many as there were.
pub(super) fn keep_decisions(fields: &mut Object, old: &Value) {
    make(fields, "status", |status| {
        let Some(Value::Array(now)) = status.get_mut("conditions") else {
            return;
        };
        for r#type in ["Approved", "Denied"] {
            let before: Vec<&Value> = items(&old["status"]["conditions"])
                .iter()
                .filter(|condition| text(&condition["type"]) == r#type)
                .collect();
            let is_such = |condition: &Value| text(&condition["type"]) == r#type;
            if now.iter().filter(|condition| is_such(condition)).count() == before.len() {
                let same = now.iter_mut().filter(|condition| is_such(condition));
                for (condition, before) in same.zip(before) {
                    *condition = before.clone();
                }
            }
        }
    });
}

/// Gives the conditions the times that they lack: `now`, or that since which a condition has been what it is.
pub fn time_conditions(new: &mut Value, old: &Value, now: &str) {
    let Some(Value::Array(conditions)) = new.pointer_mut("/status/conditions") else {
        return;
    };
    for condition in conditions {
        let since = items(&old["status"]["conditions"]).iter().find(|before| {
            ["type", "status"]
                .iter()
                .all(|key| before[*key] == condition[*key])
                && !is_empty(&before["lastTransitionTime"])
        });
        let since = since.map_or_else(|| now.into(), |before| before["lastTransitionTime"].clone());
        let Some(fields) = condition.as_object_mut() else {
            continue;
        };
        for (key, value) in [("lastUpdateTime", now.into()), ("lastTransitionTime", since)] {
            if fields.get(key).is_none_or(is_empty) {
                fields.insert(key.to_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_what_the_server_knows() {
        let mut request =
            json!({"spec": {"username": "admin", "uid": "1", "extra": {"a": ["b"]}, "usages": ["any"]}});
        identify(
            &mut request,
            "alice",
            "",
            &["team".to_owned()],
            [("k".to_owned(), vec!["v".to_owned()])],
        );
        let spec = json!({"username": "alice", "groups": ["team"], "extra": {"k": ["v"]}, "usages": ["any"]});
        assert_eq!(request["spec"], spec);
    }

    #[test]
    fn conditions_keep_their_times() {
        let old = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "before"}]}});
        let mut new = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "True"}]}});
        time_conditions(&mut new, &old, "now");
        let times: Vec<&str> = items(&new["status"]["conditions"])
            .iter()
            .map(|condition| text(&condition["lastTransitionTime"]))
            .collect();
        assert_eq!(times, ["before", "now"]);
    }
}
