//! What a rule may cost, told from its text and the bounds of its schema, before it is ever run.
//!
//! The server refuses a definition whose rules could be too expensive for the largest objects that fit into a request. The
//! reckoning here is the server's: a unit for each variable and field, a tenth of a unit for each character that is looked at,
//! and everything in a loop as often as its list may be long.

use std::collections::HashMap;

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::check::Checked;
use super::sizes::{self, Place, Range};
use super::types::CelType;

/// What looking at one character costs.
const CHARACTER: f64 = 0.1;
/// What one character of a pattern costs.
const PATTERN: f64 = 0.25;
const LIST: u64 = 10;
const MAP: u64 = 30;

/// What a checked expression costs at most; `root` is what its variables are.
pub(super) fn estimate<'a>(expression: &IdedExpr, checked: &Checked<'a>, root: Place<'a>) -> u64 {
    let mut coster = Coster {
        checked,
        root,
        sizes: HashMap::new(),
        entries: HashMap::new(),
        places: HashMap::new(),
        locals: Vec::new(),
    };
    coster.cost(expression).max
}

struct Coster<'c, 'a> {
    checked: &'c Checked<'a>,
    root: Place<'a>,
    sizes: HashMap<usize, Range>,
    /// The sizes of what is in a list or map that the expression makes.
    entries: HashMap<usize, Range>,
    places: HashMap<usize, Place<'a>>,
    locals: Vec<(String, Local<'a>)>,
}

/// A variable of a loop.
#[derive(Clone, Copy)]
struct Local<'a> {
    place: Option<Place<'a>>,
    size: Option<Range>,
    entry: Option<Range>,
}

fn key(expression: &IdedExpr) -> usize {
    std::ptr::from_ref(expression).addr()
}

impl<'a> Coster<'_, 'a> {
    fn cost(&mut self, expression: &IdedExpr) -> Range {
        match &expression.expr {
            Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Range::fixed(0),
            Expr::Ident(_) => {
                if let Some(place) = self.place(expression) {
                    self.places.insert(key(expression), place);
                }
                Range::fixed(1)
            }
            Expr::Select(select) => {
                let operand = self.cost(&select.operand);
                if select.test {
                    return operand;
                }
                if let Some(place) = self.place(&select.operand).and_then(|at| at.field(&select.field)) {
                    self.places.insert(key(expression), place);
                }
                let reads = matches!(
                    self.checked.ty(&select.operand),
                    Some(CelType::Map(..) | CelType::Object(..) | CelType::Metadata | CelType::Struct(_))
                );
                operand + Range::fixed(u64::from(reads))
            }
            Expr::List(list) => {
                let mut sum = Range::fixed(LIST);
                let mut entry: Option<Range> = None;
                for element in &list.elements {
                    sum = sum + self.cost(element);
                    let size = self.size_or_unknown(element);
                    entry = Some(entry.map_or(size, |entry| entry.union(size)));
                }
                self.entries
                    .insert(key(expression), entry.unwrap_or(Range::fixed(0)));
                sum
            }
            Expr::Map(map) => {
                let mut sum = Range::fixed(MAP);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        sum = sum + self.cost(&entry.key) + self.cost(&entry.value);
                    }
                }
                sum
            }
            Expr::Call(call) => self.call(expression, call),
            Expr::Comprehension(comprehension) => self.comprehension(expression, comprehension),
        }
    }

    fn place(&self, expression: &IdedExpr) -> Option<Place<'a>> {
        if let Expr::Ident(name) = &expression.expr {
            return match self.local(name) {
                Some(local) => local.place,
                None => Some(self.root),
            };
        }
        self.places.get(&key(expression)).copied()
    }

    fn local(&self, name: &str) -> Option<Local<'a>> {
        let found = self.locals.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, local)| *local)
    }

    fn size(&self, expression: &IdedExpr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&key(expression)) {
            return Some(*size);
        }
        let count = |count: usize| Some(Range::fixed(count as u64));
        match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => return count(text.inner().chars().count()),
            Expr::Literal(LiteralValue::Bytes(bytes)) => return count(bytes.inner().len()),
            Expr::Literal(_) => return count(1),
            Expr::List(list) => return count(list.elements.len()),
            Expr::Map(map) => return count(map.entries.len()),
            _ => {}
        }
        if let Some(place) = self.place(expression) {
            return Some(Range {
                min: 0,
                max: place.max_elements(),
            });
        }
        if self.checked.ty(expression).is_some_and(sizes::is_scalar) {
            return Some(Range::fixed(1));
        }
        match &expression.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&self, expression: &IdedExpr) -> Range {
        self.size(expression).unwrap_or(Range::UNKNOWN)
    }

    /// The size of an element of a list or map that the expression made.
    fn entry(&self, expression: &IdedExpr) -> Option<Range> {
        if let Some(entry) = self.entries.get(&key(expression)) {
            return Some(*entry);
        }
        match &expression.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Range {
        let costs: Vec<Range> = call.args.iter().map(|argument| self.cost(argument)).collect();
        let own = match &call.target {
            // A namespace is no value.
            Some(target) if self.checked.ty(target).is_some() => self.cost(target),
            _ => Range::fixed(0),
        };
        let (cost, size) = self.function(call, &costs);
        let mut size = size;
        if let (op::INDEX, [operand, _]) = (call.func_name.as_str(), call.args.as_slice()) {
            size = self.entry(operand);
            // What is in a list that the expression made counts as large as the root, as the server has it.
            let place = self.place(operand).map_or(Some(self.root), Place::element);
            if let Some(place) = place {
                self.places.insert(key(expression), place);
            }
        }
        // What is in either of two lists is in what becomes of them.
        let lists = match (call.func_name.as_str(), call.args.as_slice()) {
            (op::CONDITIONAL, [_, yes, no]) => self.entry(yes).zip(self.entry(no)),
            (op::ADD, [left, right]) => self.entry(left).zip(self.entry(right)),
            _ => None,
        };
        if let Some((one, other)) = lists {
            self.entries.insert(key(expression), one.union(other));
        }
        if let Some(size) = size.or_else(|| self.size(expression)) {
            self.sizes.insert(key(expression), size);
        }
        own + cost
    }

    /// What a call costs with its arguments, and how large the result is.
    fn function(&mut self, call: &CallExpr, costs: &[Range]) -> (Range, Option<Range>) {
        let args = costs.iter().fold(Range::fixed(0), |sum, cost| sum + *cost);
        let sizes: Vec<Range> = call
            .args
            .iter()
            .map(|argument| self.size_or_unknown(argument))
            .collect();
        let target = call.target.as_deref().map(|target| self.size_or_unknown(target));
        let kind = |index: usize| {
            call.args
                .get(index)
                .and_then(|argument| self.checked.ty(argument))
        };
        let read = |size: Range| size.times(CHARACTER);
        match (call.func_name.as_str(), target, sizes.as_slice()) {
            (op::LOGICAL_AND | op::LOGICAL_OR, None, [_, _]) => {
                let sum = costs[0] + costs[1];
                (
                    Range {
                        min: costs[0].min,
                        max: sum.max,
                    },
                    None,
                )
            }
            (op::CONDITIONAL, None, [_, yes, no]) => {
                (costs[0] + costs[1].union(costs[2]), Some(yes.union(*no)))
            }
            (
                op::EQUALS | op::NOT_EQUALS | op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS,
                None,
                [left, right],
            ) => {
                let ordered = !matches!(call.func_name.as_str(), op::EQUALS | op::NOT_EQUALS);
                if ordered && !matches!(kind(0), Some(CelType::Text | CelType::Bytes | CelType::Dyn)) {
                    return (args + Range::fixed(1), None);
                }
                let max = left.max.min(right.max);
                let compared = Range {
                    min: u64::from(max > 0),
                    max,
                };
                (args + read(compared), None)
            }
            (op::ADD, None, [left, right]) => match kind(0) {
                Some(CelType::List(_)) => (args + Range::fixed(1), Some(*left + *right)),
                Some(CelType::Text | CelType::Bytes | CelType::Dyn | CelType::Unknown) => {
                    (args + read(*left + *right), Some(*left + *right))
                }
                _ => (args + Range::fixed(1), None),
            },
            (op::IN, None, [_, list]) if matches!(kind(1), Some(CelType::List(_) | CelType::Dyn)) => {
                (args + *list, None)
            }
            ("startsWith" | "endsWith", Some(_), [prefix]) => (args + read(*prefix), None),
            // Of the sets: every element of one with every element of the other.
            ("contains" | "intersects", Some(_), [one, other]) => {
                (args + *one * *other + Range::fixed(1), None)
            }
            ("equivalent", Some(_), [one, other]) => {
                (args + (*one * *other).times(2.0) + Range::fixed(1), None)
            }
            ("contains", Some(text), [part]) => (args + read(text) * read(*part), None),
            ("matches", Some(text), [pattern]) => {
                (args + read(text + Range::fixed(1)) * pattern.times(PATTERN), None)
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => (
                args + read(text + Range::fixed(1)) * pattern.times(PATTERN),
                Some(text.up_to()),
            ),
            ("bytes", None, [text]) if matches!(kind(0), Some(CelType::Text)) => (
                args + read(*text),
                Some(Range {
                    min: text.min,
                    max: text.max.saturating_mul(4),
                }),
            ),
            ("string", None, [bytes]) if matches!(kind(0), Some(CelType::Bytes)) => (
                args + read(*bytes),
                Some(Range {
                    min: bytes.min / 4,
                    max: bytes.max,
                }),
            ),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                (args + read(text), Some(text))
            }
            ("url" | "quote", _, [text]) => (args + read(*text), None),
            ("replace", Some(text), [from, to, ..]) => (
                args + text.times(2.0 * CHARACTER),
                Some(sizes::replaced(text, *from, *to)),
            ),
            ("split", Some(text), _) => (args + text.times(2.0 * CHARACTER), Some(text.up_to())),
            ("format", Some(text), _) => (args + read(text), None),
            ("join", Some(list), rest) => {
                let element = call
                    .target
                    .as_deref()
                    .map_or(Range::UNKNOWN, |target| self.element(target));
                let between = Range {
                    min: list.min.saturating_sub(1),
                    max: list.max.saturating_sub(1),
                };
                let separators = rest
                    .first()
                    .map_or(Range::fixed(0), |separator| *separator * between);
                let size = list * element + separators;
                (args + read(size), Some(size))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(size), _) => {
                let list = call
                    .target
                    .as_deref()
                    .and_then(|target| Some((target, self.checked.ty(target)?)));
                match list {
                    Some((target, CelType::List(item))) => {
                        let mut one = Range::fixed(1);
                        if matches!(**item, CelType::Text | CelType::Bytes) {
                            one = one + read(self.element(target));
                        }
                        (args + size * one, None)
                    }
                    _ => (args + read(size), None),
                }
            }
            _ => (args + Range::fixed(1), None),
        }
    }

    /// The size of the elements of a list.
    fn element(&self, list: &IdedExpr) -> Range {
        let place = self.place(list).and_then(Place::element);
        place.map_or(Range::UNKNOWN, |place| Range {
            min: 0,
            max: place.max_elements(),
        })
    }

    fn comprehension(&mut self, expression: &IdedExpr, comprehension: &ComprehensionExpr) -> Range {
        let range = self.cost(&comprehension.iter_range);
        let start = self.cost(&comprehension.accu_init);
        let result_so_far = Local {
            place: None,
            size: self.size(&comprehension.accu_init),
            entry: self.entry(&comprehension.accu_init),
        };
        let is_list = !matches!(self.checked.ty(&comprehension.iter_range), Some(CelType::Map(..)));
        let place = self.place(&comprehension.iter_range);
        let item = Local {
            place: match place {
                Some(place) if is_list => place.element(),
                Some(place) => place.key(),
                None => Some(self.root),
            },
            size: self.entry(&comprehension.iter_range),
            entry: None,
        };
        let depth = self.locals.len();
        self.locals.push((comprehension.accu_var.clone(), result_so_far));
        self.locals.push((comprehension.iter_var.clone(), item));
        let condition = self.cost(&comprehension.loop_cond);
        let step = self.cost(&comprehension.loop_step);
        self.locals.truncate(depth + 1);
        let result = self.cost(&comprehension.result);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&comprehension.iter_range);
        match &comprehension.accu_init.expr {
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(key(expression), count);
                if let Some(entry) = self.entry(&comprehension.loop_step) {
                    self.entries.insert(key(expression), entry);
                }
            }
            _ => {
                if let Some(size) = self.size(&comprehension.accu_init) {
                    self.sizes.insert(key(expression), size);
                }
            }
        }
        range + start + result + count * (step + condition)
    }
}
