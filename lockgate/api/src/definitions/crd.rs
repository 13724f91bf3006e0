//! The frame of a CustomResourceDefinition.

use serde_json::{Value, json};

use super::schema::{Schema, object, string};

/// What a definition is made from.
pub(super) struct Crd {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short: Option<&'static str>,
    pub(super) namespaced: bool,
    /// Without one the kind has no status at all.
    pub(super) status: Option<Schema>,
    pub(super) spec: Schema,
    pub(super) description: &'static str,
    pub(super) columns: Vec<Value>,
}

/// A column of `kubectl get`.
pub(super) fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

/// A column of `kubectl get -o wide`.
pub(super) fn wide_column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path, "priority": 1})
}

/// The status of the condition of a type.
pub(super) fn condition_path(kind: &str) -> String {
    format!(r#".status.conditions[?(@.type=="{kind}")].status"#)
}

/// An annotation's value.
pub(super) fn annotation_path(key: &str) -> String {
    format!(".metadata.annotations.{}", key.replace('.', r"\."))
}

impl Crd {
    /// The schema of the whole object.
    fn schema(&self) -> Schema {
        let schema = object(
            self.description,
            [
                ("apiVersion", string("Group and version of this object.")),
                ("kind", string("Kind of this object.")),
                ("spec", self.spec.clone()),
            ],
        )
        .required(&["spec"])
        // The server has the schema of metadata.
        .with("metadata", object("", []).bare());
        match &self.status {
            Some(status) => schema.with("status", status.clone()),
            None => schema,
        }
    }

    /// The definition, with rules for the whole object.
    pub(super) fn build_with(self, rules: impl FnOnce(Schema) -> Schema) -> Value {
        let schema = rules(self.schema()).build();
        let singular = self.kind.to_lowercase();
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": singular,
            "categories": ["karmada-io"],
        });
        if let Some(short) = self.short {
            names["shortNames"] = json!([short]);
        }
        let mut version = json!({
            "name": self.version,
            "served": true,
            "storage": true,
            "schema": {"openAPIV3Schema": schema},
        });
        if !self.columns.is_empty() {
            version["additionalPrinterColumns"] = Value::Array(self.columns);
        }
        if self.status.is_some() {
            version["subresources"] = json!({"status": {}});
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", self.plural, self.group)},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [version],
            },
        })
    }

    /// The definition.
    pub(super) fn build(self) -> Value {
        self.build_with(|schema| schema)
    }
}
