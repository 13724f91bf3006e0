//! An applied value laid over a live one.
//!
//! Nothing is removed by a merge. Where both have a field, the applied value holds; elements of lists keep the live
//! order where the applied list says nothing else, and the applied order among those that both have.

use std::collections::VecDeque;

use machinery_value::{Map, Value};

use crate::extract::element_of;
use crate::path::PathElement;
use crate::shape::{Elements, Form, Shape};

/// Merges `applied` into `live`; both have passed [`crate::check`].
pub fn merge(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    // The form of what is applied decides.
    match shape.form(Some(applied)) {
        Form::Scalar => applied.clone(),
        Form::Object => {
            let (old, new) = (live.as_object(), applied.as_object());
            let empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
            if shape.atomic_object() || empty(old) && empty(new) {
                return applied.clone();
            }
            objects(shape, old, new)
        }
        Form::List => {
            let (old, new) = (live.as_array(), applied.as_array());
            let empty = |list: Option<&Vec<Value>>| list.is_none_or(Vec::is_empty);
            if matches!(shape.elements(), Elements::Atomic) || empty(old) && empty(new) {
                return applied.clone();
            }
            Value::Array(lists(
                shape,
                old.map_or(&[], Vec::as_slice),
                new.map_or(&[], Vec::as_slice),
            ))
        }
    }
}

fn objects(shape: Shape<'_>, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) -> Value {
    let mut merged = Map::new();
    for (name, live) in old.into_iter().flatten() {
        let value = match new.and_then(|new| new.get(name)) {
            Some(applied) => merge(shape.field(name), live, applied),
            None => live.clone(),
        };
        merged.insert(name.clone(), value);
    }
    for (name, applied) in new.into_iter().flatten() {
        if !merged.contains_key(name) {
            merged.insert(name.clone(), applied.clone());
        }
    }
    Value::Object(merged)
}

/// The elements of a list with their names, and where each name is first.
struct Named<'v> {
    items: Vec<(PathElement, &'v Value)>,
    /// Indices of `items`, sorted by name.
    sorted: Vec<usize>,
}

impl<'v> Named<'v> {
    fn new(shape: Shape<'_>, items: &'v [Value]) -> Self {
        let items: Vec<(PathElement, &Value)> = items
            .iter()
            .filter_map(|item| Some((element_of(shape, item).ok()?, item)))
            .collect();
        let mut sorted: Vec<usize> = (0..items.len()).collect();
        sorted.sort_by(|a, b| items[*a].0.cmp(&items[*b].0));
        Self { items, sorted }
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn name(&self, index: usize) -> &PathElement {
        &self.items[index].0
    }

    fn find(&self, name: &PathElement) -> &[usize] {
        let start = self.sorted.partition_point(|index| self.name(*index) < name);
        let count = self.sorted[start..]
            .iter()
            .take_while(|index| self.name(**index) == name)
            .count();
        &self.sorted[start..start + count]
    }

    fn has(&self, name: &PathElement) -> bool {
        !self.find(name).is_empty()
    }

    /// The one element of that name. Where there are several, none is merged with.
    fn only(&self, name: &PathElement) -> Option<&'v Value> {
        match self.find(name) {
            [index] => Some(self.items[*index].1),
            _ => None,
        }
    }
}

fn lists(shape: Shape<'_>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let (live, applied) = (Named::new(shape, live), Named::new(shape, applied));
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let take = |index: usize| {
        let (name, value) = &applied.items[index];
        match live.only(name) {
            Some(old) => merge(shape.item(), old, value),
            None => (*value).clone(),
        }
    };
    // Those that both have, in the applied order; they come into the result in this order.
    let mut shared: VecDeque<usize> = (0..applied.len())
        .filter(|index| live.has(applied.name(*index)))
        .collect();
    let mut merged = vec![false; applied.len()];
    let (mut l, mut r) = (0, 0);
    while l < live.len() || r < applied.len() {
        if l < live.len() {
            let name = live.name(l);
            match applied.find(name).first() {
                None => {
                    out.push(live.items[l].1.clone());
                    l += 1;
                    continue;
                }
                Some(&same) if same == r && r < applied.len() => {
                    out.push(take(r));
                    merged[r] = true;
                    shared.pop_front();
                    l += 1;
                    r += 1;
                    continue;
                }
                // It is wanted at another place, and comes there.
                Some(_)
                    if r < applied.len()
                        && shared.front().is_some_and(|next| applied.name(*next) != name) =>
                {
                    l += 1;
                    continue;
                }
                Some(&same) if merged[same] => l += 1,
                Some(_) => {}
            }
        }
        if r < applied.len() {
            out.push(take(r));
            merged[r] = true;
            if shared.front() == Some(&r) {
                shared.pop_front();
            }
            r += 1;
        }
    }
    out
}
