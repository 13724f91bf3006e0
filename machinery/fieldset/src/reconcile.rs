//! Sets of fields after the schema has changed: what was owned field by field and has one owner now.

use crate::path::PathElement;
use crate::set::FieldSet;
use crate::shape::{Elements, Form, Shape};

/// The set as it is under the present shape, `None` if that changes nothing, which is nearly always.
pub(crate) fn reconcile(shape: Shape<'_>, set: &FieldSet) -> Option<FieldSet> {
    is_stale(shape, set).then(|| renewed(shape, set))
}

fn is_stale(shape: Shape<'_>, set: &FieldSet) -> bool {
    set.nodes().iter().any(|node| {
        !node.below.is_empty()
            && part(shape, &node.element).is_some_and(|part| atomic(part) || is_stale(part, &node.below))
    })
}

fn renewed(shape: Shape<'_>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::with_capacity(set.nodes().len());
    for node in set.nodes() {
        let (member, below) = match part(shape, &node.element) {
            Some(part) if !node.below.is_empty() && atomic(part) => (true, FieldSet::new()),
            Some(part) => (node.member, renewed(part, &node.below)),
            None => (node.member, node.below.clone()),
        };
        out.push(node.element.clone(), member, below);
    }
    out
}

/// The shape of a part, if the schema says something about it. About what is deduced, it says nothing that could have
/// changed.
fn part<'s>(shape: Shape<'s>, element: &PathElement) -> Option<Shape<'s>> {
    match (shape.form(None), element) {
        (Form::Scalar, _) => None,
        (Form::Object, _) if shape.unknown_object() => None,
        (Form::Object, PathElement::Field(name)) => shape.declared(name).or_else(|| shape.undeclared()),
        (Form::Object, _) => shape.undeclared(),
        (Form::List, _) => Some(shape.item()),
    }
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
