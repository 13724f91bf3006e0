//! ObjectMeta inside custom resources: which fields it knows, and whether they have the right types.

use machinery_value::field::FieldError;
use machinery_value::names;
use serde_json::{Map, Value};

use crate::go;
use crate::path::Path;

/// The JSON type of a field of ObjectMeta, as deep as pruning looks.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Boolean,
    Time,
    Strings,
    StringMap,
    /// Objects with these fields.
    List(&'static str, &'static [(&'static str, Kind)]),
    Anything,
}

const OWNER_REFERENCE: &[(&str, Kind)] = &[
    ("apiVersion", Kind::Text),
    ("blockOwnerDeletion", Kind::Boolean),
    ("controller", Kind::Boolean),
    ("kind", Kind::Text),
    ("name", Kind::Text),
    ("uid", Kind::Text),
];

const MANAGED_FIELDS: &[(&str, Kind)] = &[
    ("apiVersion", Kind::Text),
    ("fieldsType", Kind::Text),
    ("fieldsV1", Kind::Anything),
    ("manager", Kind::Text),
    ("operation", Kind::Text),
    ("subresource", Kind::Text),
    ("time", Kind::Time),
];

const OBJECT_META: &[(&str, Kind)] = &[
    ("annotations", Kind::StringMap),
    ("creationTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", Kind::Integer),
    ("deletionTimestamp", Kind::Time),
    ("finalizers", Kind::Strings),
    ("generateName", Kind::Text),
    ("generation", Kind::Integer),
    ("labels", Kind::StringMap),
    ("managedFields", Kind::List("ManagedFieldsEntry", MANAGED_FIELDS)),
    ("name", Kind::Text),
    ("namespace", Kind::Text),
    ("ownerReferences", Kind::List("OwnerReference", OWNER_REFERENCE)),
    ("resourceVersion", Kind::Text),
    ("selfLink", Kind::Text),
    ("uid", Kind::Text),
];

/// Removes what ObjectMeta does not know and records the paths.
pub(crate) fn prune(metadata: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    if let Value::Object(fields) = metadata {
        prune_fields(fields, OBJECT_META, path, unknown);
    }
}

fn prune_fields(
    fields: &mut Map<String, Value>,
    known: &'static [(&'static str, Kind)],
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) {
    fields.retain(|name, value| {
        let below = path.field(name);
        let Some((_, kind)) = known.iter().find(|(known, _)| known == name) else {
            unknown.push(below.to_field().to_string());
            return false;
        };
        if let (Kind::List(_, known), Value::Array(items)) = (kind, value) {
            for (index, item) in items.iter_mut().enumerate() {
                if let Value::Object(fields) = item {
                    prune_fields(fields, known, &below.index(index), unknown);
                }
            }
        }
        true
    });
}

/// Whether metadata decodes as ObjectMeta; the error is the text of the server's decoder.
pub fn check_types(metadata: &Value) -> Result<(), String> {
    match metadata {
        Value::Object(fields) => check_fields(fields, "ObjectMeta", "", OBJECT_META),
        Value::Null => Ok(()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            go_kind(other)
        )),
    }
}

fn check_fields(
    fields: &Map<String, Value>,
    owner: &str,
    prefix: &str,
    known: &'static [(&'static str, Kind)],
) -> Result<(), String> {
    for (name, value) in fields {
        let Some((_, kind)) = known.iter().find(|(known, _)| known == name) else {
            continue;
        };
        let wrong = |value: &Value, wanted: &str| {
            let what = go_kind(value);
            Err(format!(
                "json: cannot unmarshal {what} into Go struct field {owner}.{prefix}{name} of type {wanted}"
            ))
        };
        match (kind, value) {
            (_, Value::Null) | (Kind::Anything, _) => {}
            (Kind::Text, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Time, Value::String(_)) => {}
            (Kind::Integer, Value::Number(number)) if number.as_i64().is_some() => {}
            (Kind::Strings, Value::Array(items)) => {
                if let Some(item) = items.iter().find(|item| !item.is_string() && !item.is_null()) {
                    return wrong(item, "string");
                }
            }
            (Kind::StringMap, Value::Object(entries)) => {
                if let Some(entry) = entries
                    .values()
                    .find(|entry| !entry.is_string() && !entry.is_null())
                {
                    return wrong(entry, "string");
                }
            }
            (Kind::List(_, known), Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::Object(fields) => {
                            check_fields(fields, owner, &format!("{prefix}{name}."), known)?
                        }
                        Value::Null => {}
                        other => return wrong(other, type_name(*kind)),
                    }
                }
            }
            (Kind::List(..) | Kind::Strings, other) => {
                return wrong(other, &format!("[]{}", type_name(*kind)));
            }
            (kind, other) => return wrong(other, type_name(*kind)),
        }
    }
    Ok(())
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Strings => "string",
        Kind::Integer => "int64",
        Kind::Boolean => "bool",
        Kind::Time => "v1.Time",
        Kind::StringMap => "map[string]string",
        Kind::List("OwnerReference", _) => "v1.OwnerReference",
        Kind::List(..) => "v1.ManagedFieldsEntry",
        Kind::Anything => "v1.FieldsV1",
    }
}

fn go_kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// Checks the names in the metadata of an embedded resource.
pub(crate) fn check_names(metadata: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Value::Object(fields) = metadata else { return };
    type Check = fn(&str) -> Vec<String>;
    let scalars: [(&str, Check); 3] = [
        ("generateName", |name| names::path_segment_prefix(name)),
        ("name", |name| names::path_segment(name)),
        ("namespace", |name| names::dns1123_label(name)),
    ];
    for (name, check) in scalars {
        if let Some(value @ Value::String(text)) = fields.get(name).filter(|value| *value != "") {
            let at = path.field(name).to_field();
            errors.extend(check(text).iter().map(|problem| go::invalid(&at, value, problem)));
        }
    }
    if let Some(Value::Object(labels)) = fields.get("labels") {
        let at = path.field("labels").to_field();
        for (key, value) in labels {
            for problem in names::qualified_name(key) {
                errors.push(go::invalid(&at, &Value::String(key.clone()), &problem));
            }
            for problem in value.as_str().map(names::label_value).unwrap_or_default() {
                errors.push(go::invalid(&at, value, &problem));
            }
        }
    }
    if let Some(Value::Object(annotations)) = fields.get("annotations") {
        let at = path.field("annotations").to_field();
        for key in annotations.keys() {
            for problem in names::qualified_name(&key.to_lowercase()) {
                errors.push(go::invalid(&at, &Value::String(key.clone()), &problem));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_keeps_only_what_it_knows() {
        let mut metadata = json!({"name": "a", "foo": 1, "ownerReferences": [{"name": "x", "bar": 2}]});
        let mut unknown = Vec::new();
        prune(&mut metadata, &Path::ROOT.field("metadata"), &mut unknown);
        assert_eq!(metadata, json!({"name": "a", "ownerReferences": [{"name": "x"}]}));
        assert_eq!(unknown, ["metadata.foo", "metadata.ownerReferences[0].bar"]);
    }

    #[test]
    fn wrong_types_read_as_decoding_errors() {
        for (metadata, text) in [
            (
                json!({"labels": {"a": 1}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"name": 1}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ),
            (
                json!({"finalizers": "a"}),
                "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
            ),
        ] {
            assert_eq!(check_types(&metadata), Err(text.to_owned()));
        }
        assert_eq!(
            check_types(&json!({"labels": null, "name": "a", "generation": 2, "x": 1})),
            Ok(())
        );
    }
}
