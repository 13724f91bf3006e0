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
