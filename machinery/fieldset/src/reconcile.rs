//! Sets of fields after the schema has changed: what was owned field by field and has one owner now.

use crate::path::PathElement;
use crate::set::FieldSet;
use crate::shape::{Elements, Form, Shape};

/// The set as it is under the present shape, `None` if that changes nothing.
pub(crate) fn reconcile(shape: Shape<'_>, set: &FieldSet) -> Option<FieldSet> {
    let mut changed = false;
    let out = below(shape, set, &mut changed);
    changed.then_some(out)
}

fn below(shape: Shape<'_>, set: &FieldSet, changed: &mut bool) -> FieldSet {
    let form = shape.form(None);
    // About what is deduced, a schema says nothing that could have changed.
    if form == Form::Scalar || form == Form::Object && shape.unknown_object() {
        return set.clone();
    }
    let mut out = FieldSet::with_capacity(set.nodes().len());
    for node in set.nodes() {
        let part = match &node.element {
            PathElement::Field(name) if form == Form::Object => {
                shape.declared(name).or_else(|| shape.undeclared())
            }
            _ if form == Form::Object => shape.undeclared(),
            _ => Some(shape.item()),
        };
        let (member, inner) = match part {
            Some(part) if !node.below.is_empty() && atomic(part) => {
                *changed = true;
                (true, FieldSet::new())
            }
            Some(part) => (node.member, below(part, &node.below, changed)),
            None => (node.member, node.below.clone()),
        };
        out.push(node.element.clone(), member, inner);
    }
    out
}

fn atomic(shape: Shape<'_>) -> bool {
    match shape.form(None) {
        Form::Scalar => false,
        Form::Object => shape.atomic_object() && !shape.unknown_object(),
        Form::List => matches!(shape.elements(), Elements::Atomic),
    }
}

#[cfg(test)]
mod tests {
    use machinery_schema::SchemaSet;
    use serde_json::{Value, json};

    use super::*;
    use crate::codec;

    /// The set of `fields` of the one property `a`, after its schema has become `schema`.
    fn reconciled(schema: Value, fields: Value) -> Option<Value> {
        let schemas = SchemaSet::from_crd(&json!({"type": "object", "properties": {"a": schema}})).unwrap();
        let set = codec::decode(&json!({"f:a": fields, "f:gone": {"f:x": {}}})).unwrap();
        let shape = Shape::custom(schemas.root("").unwrap());
        reconcile(shape, &set).map(|set| codec::encode(&set)["f:a"].clone())
    }

    #[test]
    fn what_has_become_atomic_has_one_owner() {
        let parts = json!({".": {}, "f:x": {}, "f:y": {"f:z": {}}});
        let items = json!({"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}});
        let properties = json!({"x": {"type": "string"}});
        let atomic = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": properties});
        let granular = json!({"type": "object", "properties": properties});
        let list = json!({"type": "array", "items": granular});
        let keyed = json!({"type": "array", "items": granular, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]});
        let deep = json!({"type": "object", "properties": {"y": atomic}});
        let cases = [
            (&atomic, &parts, Some(json!({}))),
            (&atomic, &json!({}), None),
            (&granular, &parts, None),
            (&list, &items, Some(json!({}))),
            (&keyed, &items, None),
            (&deep, &parts, Some(json!({".": {}, "f:x": {}, "f:y": {}}))),
            (&json!({"type": "object"}), &parts, None),
            (&json!({"type": "string"}), &parts, None),
        ];
        for (schema, fields, expected) in cases {
            assert_eq!(
                reconciled(schema.clone(), fields.clone()),
                expected,
                "{fields} under {schema}"
            );
        }
    }
}
