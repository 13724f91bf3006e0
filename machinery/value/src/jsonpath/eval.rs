//! What a path selects.

use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, MAX_LOOKS, MAX_RESULTS, Operand, Slice, Step};

/// The values that `steps` lead to in the document `root`.
pub(super) fn find<'v>(steps: &[Step], root: &'v Value) -> Vec<&'v Value> {
    Walk {
        root,
        looks: Cell::new(MAX_LOOKS),
    }
    .from(steps, root)
}

struct Walk<'v> {
    root: &'v Value,
    /// How many values may still be looked at.
    looks: Cell<usize>,
}

impl<'v> Walk<'v> {
    fn from<'a>(&self, steps: &[Step], start: &'a Value) -> Vec<&'a Value>
    where
        'v: 'a,
    {
        let mut values = vec![start];
        for step in steps {
            let mut next = Vec::new();
            for value in values {
                if next.len() >= MAX_RESULTS || !self.look(1) {
                    break;
                }
                self.take(step, value, &mut next);
            }
            next.truncate(MAX_RESULTS);
            values = next;
        }
        values
    }

    /// Whether so many more values may be looked at.
    fn look(&self, values: usize) -> bool {
        let left = self.looks.get().checked_sub(values);
        self.looks.set(left.unwrap_or(0));
        left.is_some()
    }

    fn take<'a>(&self, step: &Step, value: &'a Value, found: &mut Vec<&'a Value>)
    where
        'v: 'a,
    {
        match (step, value) {
            (Step::Fields(names), Value::Object(map)) => {
                found.extend(names.iter().filter_map(|name| map.get(name)))
            }
            (Step::All, Value::Object(map)) => found.extend(map.values()),
            (Step::All, Value::Array(items)) => found.extend(items),
            (Step::Recursive, value) => self.descend(value, found),
            (Step::Slices(slices), Value::Array(items)) => {
                slices.iter().for_each(|slice| cut(slice, items, found))
            }
            (Step::Filter(filter), Value::Array(items)) => {
                found.extend(
                    items
                        .iter()
                        .filter(|item| self.look(1) && self.passes(filter, item)),
                );
            }
            _ => {}
        }
    }

    /// The value and all that is inside, outer before inner.
    fn descend<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        if found.len() >= MAX_RESULTS || !self.look(1) {
            return;
        }
        found.push(value);
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.descend(item, found)),
            Value::Object(map) => map.values().for_each(|item| self.descend(item, found)),
            _ => {}
        }
    }

    fn passes(&self, filter: &Filter, item: &Value) -> bool {
        let left = self.resolve(&filter.left, item);
        let Some((comparison, right)) = &filter.compare else {
            return !left.is_empty();
        };
        let right = self.resolve(right, item);
        match (left.as_slice(), right.as_slice()) {
            ([left], [right]) => compare(*comparison, left, right),
            // What is missing, or is several, compares with nothing.
            _ => false,
        }
    }

    fn resolve<'a>(&self, operand: &'a Operand, item: &'a Value) -> Vec<&'a Value>
    where
        'v: 'a,
    {
        match operand {
            Operand::Literal(value) => vec![value],
            Operand::Current(steps) => self.from(steps, item),
            Operand::Root(steps) => self.from(steps, self.root),
        }
    }
}

fn cut<'v>(slice: &Slice, items: &'v [Value], found: &mut Vec<&'v Value>) {
    let len = items.len() as i64;
    let place = |index: i64| {
        if index < 0 {
            index.saturating_add(len)
        } else {
            index
        }
    };
    let start = place(slice.start.unwrap_or(0));
    if slice.single {
        found.extend(usize::try_from(start).ok().and_then(|start| items.get(start)));
        return;
    }
    let end = slice.end.map_or(len, place).clamp(0, len) as usize;
    let start = start.clamp(0, len) as usize;
    if start < end {
        let step = usize::try_from(slice.step).unwrap_or(usize::MAX).max(1);
        found.extend(items[start..end].iter().step_by(step));
    }
}

/// Compares numbers with numbers, texts with texts and truths with truths; values of different kinds never pass.
fn compare(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => {
            return match comparison {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                _ => false,
            };
        }
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left
                .as_f64()
                .zip(right.as_f64())
                .and_then(|(left, right)| left.partial_cmp(&right)),
        },
        _ => None,
    };
    let Some(ordering) = ordering else { return false };
    match comparison {
        Comparison::Equal => ordering == Ordering::Equal,
        Comparison::NotEqual => ordering != Ordering::Equal,
        Comparison::Less => ordering == Ordering::Less,
        Comparison::LessOrEqual => ordering != Ordering::Greater,
        Comparison::Greater => ordering == Ordering::Greater,
        Comparison::GreaterOrEqual => ordering != Ordering::Less,
    }
}
