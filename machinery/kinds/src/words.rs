//! What kinds and fields are, in words of our own (`data/words.txt`): prose that people read and nothing acts on.

use std::collections::HashMap;

use serde_json::Value;

static WORDS: &str = include_str!("../data/words.txt");

/// The sentences, by what they are about.
struct Words(HashMap<&'static str, &'static str>);

impl Words {
    fn read() -> Self {
        let lines = WORDS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once(": ")).collect())
    }

    /// A field of a schema.
    fn field(&self, schema: &str, field: &str) -> Option<&'static str> {
        let own = self.0.get(format!("{schema}.{field}").as_str());
        own.or_else(|| self.0.get(format!(".{field}").as_str())).copied()
    }
}

/// Adds the sentences to schemas, by their names.
pub(crate) fn describe(components: &mut Value) {
    let words = Words::read();
    for (name, schema) in components.as_object_mut().into_iter().flatten() {
        let short = name.rsplit('.').next().unwrap_or(name);
        let told = words.0.get(short).map(|told| (*told).to_owned());
        // The schema of a list says so with its items.
        let told = told.or_else(|| {
            let kind = short.strip_suffix("List")?;
            schema["properties"]["items"]
                .is_object()
                .then(|| format!("Objects of the kind {kind}, as a list answers them."))
        });
        if let Some(told) = told {
            schema["description"] = told.into();
        }
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (field, property) in properties.into_iter().flatten() {
            if let Some(told) = words.field(short, field) {
                property["description"] = told.into();
            }
        }
    }
}

/// What the fields are that every object has.
pub fn common(field: &str) -> Option<&'static str> {
    Words::read().field("", field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::catalog;
    use crate::schemas::{components, described};

    #[test]
    fn every_kind_has_its_sentence() {
        let words = Words::read();
        let silent: Vec<&str> = catalog()
            .entries()
            .iter()
            .map(|entry| &*entry.kind)
            .filter(|kind| !words.0.contains_key(*kind))
            .collect();
        assert_eq!(silent, Vec::<&str>::new());
    }

    #[test]
    fn every_sentence_is_about_something_and_is_one() {
        let schemas = components();
        let all = || schemas.as_object().into_iter().flatten();
        let has = |schema: &Value, field: &str| schema["properties"].get(field).is_some();
        let lines = WORDS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut known = 0;
        for line in lines {
            let (about, told) = line.split_once(": ").unwrap();
            let found = match about.split_once('.') {
                None => all().any(|(name, _)| name.rsplit('.').next() == Some(about)),
                Some(("", field)) => all().any(|(_, schema)| has(schema, field)),
                Some((kind, field)) => {
                    all().any(|(name, schema)| name.rsplit('.').next() == Some(kind) && has(schema, field))
                }
            };
            assert!(found, "{about} is nowhere");
            assert!(told.ends_with(['.', '…']), "{line}");
            known += 1;
        }
        assert_eq!(known, Words::read().0.len(), "something is said twice");
    }

    #[test]
    fn a_deployment_is_explained() {
        let schemas = described();
        let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"];
        assert_eq!(
            spec["description"],
            "The Pods that are wanted, how many, and how they are replaced."
        );
        assert_eq!(
            spec["properties"]["replicas"]["description"],
            "How many Pods are wanted."
        );
        let list = &schemas["io.k8s.api.apps.v1.DeploymentList"]["description"];
        assert_eq!(list, "Objects of the kind Deployment, as a list answers them.");
        // A property that is called so is no prose.
        assert!(
            components()["io.k8s.api.scheduling.v1.PriorityClass"]["properties"]["description"]["type"]
                == "string"
        );
    }
}
