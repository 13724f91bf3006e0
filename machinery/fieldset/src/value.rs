//! Equality and order of values as ownership sees them: numbers by what they are worth, objects whatever their
//! order.

use std::cmp::Ordering;

use machinery_value::{Map, Number, Value};

/// Whether two values are the same; `1` and `1.0` are.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// A total order: numbers, strings, booleans, lists, objects, null.
pub(crate) fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => lists(a, b),
        (Value::Object(a), Value::Object(b)) => objects(a, b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or_default();
            float(a).total_cmp(&float(b))
        }
    }
}

fn lists(a: &[Value], b: &[Value]) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(a, b)| order(a, b))
        .find(|found| found.is_ne())
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let sorted = |map: &Map<String, Value>| {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    let (left, right) = (sorted(a), sorted(b));
    for (left, right) in left.iter().zip(&right) {
        let found = left.cmp(right).then_with(|| order(&a[left], &b[right]));
        if found.is_ne() {
            return found;
        }
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_of_values_have_an_order() {
        let ascending = [
            json!(-1),
            json!(0.5),
            json!(1),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!([2]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!({"b": 0}),
            json!(null),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(order(a, b), i.cmp(&j), "{a} and {b}");
                assert_eq!(same(a, b), i == j, "{a} and {b}");
            }
        }
    }

    #[test]
    fn numbers_are_compared_by_worth() {
        assert!(same(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!same(&json!(1), &json!("1")));
    }
}
