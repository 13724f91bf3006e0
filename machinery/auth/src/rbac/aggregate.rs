//! ClusterRoles that consist of others.

use machinery_value::Value;

use super::rule::PolicyRule;
use crate::user::text;

/// The rules that an aggregated ClusterRole should have, given all ClusterRoles; `None` if it is not aggregated,
/// or if a selector cannot be understood (its present rules then stay).
pub fn aggregate<'a>(role: &Value, all: impl IntoIterator<Item = &'a Value>) -> Option<Vec<Value>> {
    let rule = role.get("aggregationRule").filter(|rule| !rule.is_null())?;
    let none = Vec::new();
    let selectors = rule
        .get("clusterRoleSelectors")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    let own_name = name_of(role);
    let mut others: Vec<&Value> = all
        .into_iter()
        .filter(|other| name_of(other) != own_name)
        .collect();
    others.sort_by_key(|other| name_of(other));

    let mut rules = Vec::new();
    let mut known: Vec<PolicyRule> = Vec::new();
    for selector in selectors {
        for other in &others {
            let labels = other
                .get("metadata")
                .and_then(|m| m.get("labels"))
                .unwrap_or(&Value::Null);
            if !selects(selector, labels)? {
                continue;
            }
            for rule in other.get("rules").and_then(Value::as_array).into_iter().flatten() {
                let parsed = PolicyRule::from_json(rule);
                if !known.contains(&parsed) {
                    known.push(parsed);
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}

fn name_of(role: &Value) -> &str {
    text(role.get("metadata").unwrap_or(&Value::Null), "name")
}

/// Whether a label selector selects these labels; `None` if an operator is unknown. An empty selector selects all.
fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    let mut selected = true;
    for (key, wanted) in selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        selected &= labels.get(key).is_some_and(|label| label == wanted);
    }
    for requirement in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let label = labels.get(text(requirement, "key"));
        let values = requirement.get("values").and_then(Value::as_array);
        let listed = label.is_some_and(|label| values.is_some_and(|values| values.contains(label)));
        selected &= match text(requirement, "operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => return None,
        };
    }
    Some(selected)
}
