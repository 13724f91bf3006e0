//! The parts of a template, as a script tells them: each with a name, replicas of its own, and what one of them needs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{InterpretError, REPLICAS, Script, requirements};

/// How many parts a template may have.
const MOST: usize = 64;
/// The longest name of a part.
const LONGEST: usize = 32;

/// The parts that a script answers with, as bindings carry them.
pub(super) fn read(script: &Script, answer: &[Value]) -> Result<Vec<Value>, InterpretError> {
    let list = match answer.first() {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(map)) if map.is_empty() => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        _ => return Err(script.nonsense(answer, "a list of components")),
    };
    let wrong = |what: String| script.wrong(&format!("GetComponents {what}"));
    if list.len() > MOST {
        return Err(wrong(format!(
            "returns {} components: at most {MOST} can be placed",
            list.len()
        )));
    }
    let mut names = BTreeSet::new();
    let mut components = Vec::with_capacity(list.len());
    for (at, component) in list.iter().enumerate() {
        let name = component["name"].as_str().unwrap_or_default();
        if name.is_empty() || name.len() > LONGEST {
            return Err(wrong(format!(
                "must give every component a name of at most {LONGEST} characters: component {} has none",
                at + 1
            )));
        }
        if !names.insert(name) {
            return Err(wrong(format!("returns two components {name:?}")));
        }
        let replicas = match &component["replicas"] {
            Value::Null => Some(0),
            number => number.as_i64().filter(|n| (0..=REPLICAS).contains(n)),
        };
        let Some(replicas) = replicas else {
            return Err(wrong(format!(
                "says that {name:?} has {} replicas, which is no number of replicas",
                component["replicas"]
            )));
        };
        let mut read = json!({"name": name, "replicas": replicas});
        if let Some(needs) = requirements::read(script, component.get("replicaRequirements"))? {
            read["replicaRequirements"] = needs;
        }
        components.push(read);
    }
    Ok(components)
}
