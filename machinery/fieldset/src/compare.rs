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
        let mut left = Some(element);
        let sets = [
            (&mut self.removed, own == Own::Removed, below.removed),
            (&mut self.modified, own == Own::Modified, below.modified),
            (&mut self.added, own == Own::Added, below.added),
        ];
        let mut needed = sets
            .iter()
            .filter(|(_, member, below)| *member || !below.is_empty())
            .count();
        for (set, member, below) in sets {
            if member || !below.is_empty() {
                needed -= 1;
                // Mostly only one set gets it, and then it need not be copied.
                let element = if needed == 0 { left.take() } else { left.clone() };
                if let Some(element) = element {
                    set.push(element, member, below);
                }
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
            below.added = everything(shape, value);
            Own::Added
        }
        (Some(value), None) => {
            below.removed = everything(shape, value);
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

/// All fields below a value that is in one of the objects only.
fn everything(shape: Shape<'_>, value: &Value) -> FieldSet {
    match (shape.form(Some(value)), value) {
        (Form::Object, Value::Object(map)) if !shape.atomic_object() => {
            let mut set = FieldSet::with_capacity(map.len());
            for (name, value) in map {
                set.push(
                    PathElement::field(name),
                    true,
                    everything(shape.field(name), value),
                );
            }
            set
        }
        (Form::List, Value::Array(items)) if !matches!(shape.elements(), Elements::Atomic) => {
            let mut set = FieldSet::with_capacity(items.len());
            for group in group(shape, items) {
                let single = group.others.is_empty();
                let below = if single {
                    everything(shape.item(), group.first)
                } else {
                    FieldSet::new()
                };
                set.push(group.element, true, below);
            }
            set
        }
        _ => FieldSet::new(),
    }
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
    // Most lists have not changed, and elements need no names to see that.
    if let (Some(old), Some(new)) = (old, new)
        && same(old, new)
    {
        return;
    }
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
    let item = shape.item();
    let several = |group: Option<&Group<'_>>| group.is_some_and(|group| !group.others.is_empty());
    let one_before = old.as_ref().map(|group| group.first);
    let one_after = new.as_ref().map(|group| group.first);
    let mut changes = Vec::with_capacity(1);
    match (several(old.as_ref()), several(new.as_ref())) {
        (false, false) => changes.push(compare_at(item, one_before, one_after)),
        (true, true) => {
            let items = |group: &Group<'_>| -> Vec<Value> {
                [group.first]
                    .iter()
                    .chain(&group.others)
                    .map(|item| (*item).clone())
                    .collect()
            };
            let before = old.as_ref().map(items).unwrap_or_default();
            let after = new.as_ref().map(items).unwrap_or_default();
            if !same(&Value::Array(before), &Value::Array(after)) {
                changes.push((Own::Modified, Comparison::default()));
            }
        }
        // One that was there several times and now is once is both removed and added.
        (true, false) => {
            if one_after.is_some() {
                changes.push(compare_at(item, None, one_after));
            }
            changes.push((Own::Removed, Comparison::default()));
        }
        (false, true) => {
            if one_before.is_some() {
                changes.push(compare_at(item, one_before, None));
            }
            changes.push((Own::Added, Comparison::default()));
        }
    }
    let Some(element) = old.or(new).map(|group| group.element) else {
        return;
    };
    if let Some((own, below)) = changes.pop() {
        for (own, below) in changes {
            out.push(element.clone(), own, below);
        }
        out.push(element, own, below);
    }
}
