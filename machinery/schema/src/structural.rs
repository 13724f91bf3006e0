//! Checks the schema of a CRD when it is admitted.
//!
//! Three things are asked of a schema: that it is structural (`shape`: every value has a type outside of
//! `anyOf` and its like, metadata is left alone), that its defaults are values of it (`defaults`), and that it
//! says nothing the server does not support (`openapi`, `rules`). The errors are the server's.

mod budget;
mod defaults;
mod openapi;
mod rules;
mod shape;

use machinery_value::field::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::custom::CustomSchema;
use crate::go;
use crate::schema::{SchemaSet, Subtree};

/// What the check needs to know of the CRD around the schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct StructuralOptions {
    /// Whether the version has a status subresource, which restricts the root of the schema.
    pub status_subresource: bool,
}

/// The keywords that may stand at the root beside a status subresource, as the server lists them.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// Checks `openAPIV3Schema`, which is at `path` in the CRD (`spec.versions[0].schema.openAPIV3Schema`).
pub fn check_crd_schema(schema: &Value, path: &FieldPath, options: StructuralOptions) -> Vec<FieldError> {
    let Value::Object(fields) = schema else {
        return vec![go::invalid(path, schema, "must be an object")];
    };
    let mut errors = Vec::new();
    let node = Schema(fields);
    let built = CustomSchema::new(schema);
    if built
        .as_ref()
        .is_ok_and(|built| built.is_sound(options.status_subresource))
    {
        return errors;
    }
    if options.status_subresource {
        check_root_keywords(node, path, &mut errors);
    }
    if node.flag("nullable") {
        errors.push(FieldError::forbidden(
            &path.child("nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let built = match built {
        Ok(built) => built,
        Err(problem) => {
            errors.push(go::invalid(
                path,
                &Value::String(String::new()),
                &problem.to_string(),
            ));
            return errors;
        }
    };
    let root = built.root();
    let before = errors.len();
    // Keywords that no structural schema may hold are reported once, by the last step.
    let supported = openapi::is_supported(node);
    if supported {
        shape::check(node, path, &mut errors);
        if errors.len() == before
            && root.subtree().has(Subtree::DEFAULTS)
            && let Ok(verbatim) = SchemaSet::from_crd_verbatim(schema)
            && let Some(root) = verbatim.root("")
        {
            defaults::check(node, root, path, &mut errors);
        }
    }
    let sound = supported && errors.len() == before;
    openapi::check(node, sound.then_some(root), path, &mut errors);
    if errors.is_empty() {
        built.set_sound(options.status_subresource);
    }
    errors
}

fn check_root_keywords(root: Schema<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (name, value) in root.0 {
        let empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if empty {
            continue;
        }
        if name == "type" {
            if root.text("type") != "object" {
                let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
                errors.push(go::invalid(&path.child("type"), value, detail));
                return;
            }
            continue;
        }
        let field = go_field_name(name);
        if !AT_ROOT.contains(&field.as_str()) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                AT_ROOT.join(" ")
            );
            errors.push(go::invalid(path, &Value::Object(root.0.clone()), &detail));
            return;
        }
    }
}

/// `x-kubernetes-list-type` is the field `XListType`, `maxItems` is `MaxItems`.
fn go_field_name(keyword: &str) -> String {
    let (prefix, rest) = match keyword.strip_prefix("x-kubernetes-") {
        Some(rest) => ("X", rest),
        None => ("", keyword),
    };
    let words = rest.split('-').map(|word| {
        let mut chars = word.chars();
        chars.next().map_or(String::new(), |first| {
            first.to_ascii_uppercase().to_string() + chars.as_str()
        })
    });
    prefix.to_owned() + &words.collect::<String>()
}

/// One schema as it is written.
#[derive(Clone, Copy)]
pub(super) struct Schema<'v>(pub(super) &'v Map<String, Value>);

impl<'v> Schema<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// A keyword that is there and not null.
    fn get(self, keyword: &str) -> Option<&'v Value> {
        self.0.get(keyword).filter(|value| !value.is_null())
    }

    fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool).unwrap_or(false)
    }

    fn text(self, keyword: &str) -> &'v str {
        self.get(keyword).and_then(Value::as_str).unwrap_or("")
    }

    fn kind(self) -> &'v str {
        self.text("type")
    }

    fn child(self, keyword: &str) -> Option<Schema<'v>> {
        self.get(keyword).and_then(Schema::of)
    }

    fn list(self, keyword: &str) -> impl Iterator<Item = Schema<'v>> {
        self.get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Schema::of)
    }

    fn strings(self, keyword: &str) -> Vec<&'v str> {
        self.get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    fn properties(self) -> impl Iterator<Item = (&'v str, Schema<'v>)> {
        let map = self.get("properties").and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), Schema::of(value)?)))
    }

    fn property(self, name: &str) -> Option<Schema<'v>> {
        self.get("properties")
            .and_then(|properties| properties.get(name))
            .and_then(Schema::of)
    }

    fn is_embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    fn is_int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    fn preserves_unknown(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }
}

#[cfg(test)]
mod tests;
