//! What differs between two values, field by field.

use machinery_value::{Map, Value};

use crate::extract::{Group, group};
use crate::path::PathElement;
use crate::set::FieldSet;
use crate::shape::{Elements, Form, Shape};
use crate::value::same;

/// The difference of two values. No field is in more than one of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the first has.
    pub removed: FieldSet,
    /// Fields that both have with different values.
    pub modified: FieldSet,
    /// Fields that only the second has.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    pub(crate) fn map(self, change: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self {
            removed: change(self.removed),
            modified: change(self.modified),
            added: change(self.added),
        }
    }

    fn push(&mut self, element: PathElement, own: Own, below: Self) {
        let sets = [
            (&mut self.removed, own == Own::Removed, below.removed),
            (&mut self.modified, own == Own::Modified, below.modified),
            (&mut self.added, own == Own::Added, below.added),
        ];
        for (set, member, below) in sets {
            if member || !below.is_empty() {
                set.push(element.clone(), member, below);
            }
        }
    }
}

/// What happened to a field itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Nothing,
    Removed,
    Modified,
    Added,
}

/// Compares two values of the same shape that [`crate::check`] has passed.
pub fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Comparison {
    compare_at(shape, Some(old), Some(new)).1
}

fn compare_at(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> (Own, Comparison) {
    let mut below = Comparison::default();
    let own = match (old, new) {
        (None, None) => Own::Nothing,
        (None, Some(value)) => {
            descend(shape, shape.form(Some(value)), old, new, &mut below);
            Own::Added
        }
        (Some(value), None) => {
            descend(shape, shape.form(Some(value)), old, new, &mut below);
            Own::Removed
        }
        (Some(before), Some(after)) => {
            let (form, other) = (shape.form(old), shape.form(new));
            let mut leaf = descend(shape, form, old, new, &mut below);
            if form != other {
                leaf |= descend(shape, other, old, new, &mut below);
            }
            if leaf && !same(before, after) {
                Own::Modified
            } else {
                Own::Nothing
            }
        }
    };
    (own, below)
}

/// Compares the parts of a value that is handled as `form`. Returns whether it has none: it is a leaf.
fn descend(
    shape: Shape<'_>,
    form: Form,
    old: Option<&Value>,
    new: Option<&Value>,
    below: &mut Comparison,
) -> bool {
    match form {
        Form::Scalar => true,
        Form::Object => {
            let old = old.and_then(Value::as_object).filter(|map| !map.is_empty());
            let new = new.and_then(Value::as_object).filter(|map| !map.is_empty());
            if shape.atomic_object() || old.is_none() && new.is_none() {
                return true;
            }
            objects(shape, old, new, below);
            false
        }
        Form::List => {
            let items = |value: Option<&'_ Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
            if matches!(shape.elements(), Elements::Atomic) || items(old) + items(new) == 0 {
                return true;
            }
            lists(shape, old, new, below);
            false
        }
    }
}

fn objects(
    shape: Shape<'_>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    out: &mut Comparison,
) {
    let mut field = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        let (own, below) = compare_at(shape.field(name), old, new);
        if own != Own::Nothing || !below.is_same() {
            out.push(PathElement::field(name), own, below);
        }
    };
    for (name, value) in new.into_iter().flatten() {
        field(name, old.and_then(|old| old.get(name)), Some(value));
    }
    for (name, value) in old.into_iter().flatten() {
        if new.is_none_or(|new| !new.contains_key(name)) {
            field(name, Some(value), None);
        }
    }
}

fn lists(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>, out: &mut Comparison) {
    let mut old = groups(shape, old).into_iter().peekable();
    let mut new = groups(shape, new).into_iter().peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some(a), Some(b)) => a.element.cmp(&b.element),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return,
        };
        let before = old.next_if(|_| order.is_le());
        let after = new.next_if(|_| order.is_ge());
        elements(shape, before, after, out);
    }
}

fn groups<'v>(shape: Shape<'_>, list: Option<&'v Value>) -> Vec<Group<'v>> {
    let items = list.and_then(Value::as_array);
    items.map_or_else(Vec::new, |items| group(shape, items))
}

/// Compares the elements of one name. Where there are several, they are one value.
fn elements(shape: Shape<'_>, old: Option<Group<'_>>, new: Option<Group<'_>>, out: &mut Comparison) {
    let Some(element) = old.as_ref().or(new.as_ref()).map(|group| group.element.clone()) else {
        return;
    };
    let old = old.map_or_else(Vec::new, |group| group.items);
    let new = new.map_or_else(Vec::new, |group| group.items);
    let item = shape.item();
    let (own, below) = match (old.as_slice(), new.as_slice()) {
        ([] | [_], [] | [_]) => compare_at(item, old.first().copied(), new.first().copied()),
        ([_, _, ..], [_, _, ..]) => {
            let equal = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| same(a, b));
            let own = if equal { Own::Nothing } else { Own::Modified };
            (own, Comparison::default())
        }
        ([_, _, ..], _) => {
            // One that was there several times and now is once is both removed and added.
            if let Some(only) = new.first() {
                let (own, below) = compare_at(item, None, Some(only));
                out.push(element.clone(), own, below);
            }
            (Own::Removed, Comparison::default())
        }
        (_, [_, _, ..]) => {
            if let Some(only) = old.first() {
                let (own, below) = compare_at(item, Some(only), None);
                out.push(element.clone(), own, below);
            }
            (Own::Added, Comparison::default())
        }
    };
    out.push(element, own, below);
}
