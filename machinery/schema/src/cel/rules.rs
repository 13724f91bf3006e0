//! Evaluates the rules of a schema over an object.
//!
//! Rules run at every node that is there and not null. A rule that reads `oldSelf` runs only where there is an old
//! value to compare with, or if it takes an optional one. A failed rule that does not read `oldSelf` is tolerated
//! when nothing changed below it.

use kube_cel::cel::Value as CelValue;
use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::{Compiled, Reason, Rule, runtime, values};
use crate::go;
use crate::path::Path;
use crate::schema::{Additional, JsonType, SchemaRef, Subtree};
use crate::validate::{KeyIndex, deep_equal};

/// What all rules of one object may spend together.
const OBJECT_BUDGET: i64 = 10_000_000;
/// The longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// Runs the rules of a custom resource. `old` is the object before an update.
pub fn check_rules(schema: SchemaRef<'_>, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let mut run = Run {
        errors,
        budget: OBJECT_BUDGET,
    };
    let change = Change {
        current: old.map(|old| (schema, object, old)),
        parent: None,
    };
    // The budget has run out; the errors say so.
    let _ = run.visit(schema, object, old, change, &Path::ROOT, true);
}

/// Runs the rules over a default value, which is held against itself.
pub(crate) fn check_rules_at(
    schema: SchemaRef<'_>,
    value: &Value,
    old: Option<&Value>,
    root: bool,
    errors: &mut Vec<FieldError>,
) {
    let mut run = Run {
        errors,
        budget: OBJECT_BUDGET,
    };
    let change = Change {
        current: None,
        parent: None,
    };
    let _ = run.visit(schema, value, old, change, &Path::ROOT, root);
}

type Pair<'a> = (SchemaRef<'a>, &'a Value, &'a Value);

/// How a value can be seen to be unchanged: itself, or else the nearest value around it that has an old one.
#[derive(Clone, Copy)]
struct Change<'a> {
    current: Option<Pair<'a>>,
    parent: Option<Pair<'a>>,
}

impl<'a> Change<'a> {
    fn unchanged(self) -> bool {
        self.current
            .or(self.parent)
            .is_some_and(|(schema, new, old)| deep_equal(Some(schema), new, old))
    }

    fn below(self, schema: SchemaRef<'a>, value: &'a Value, old: Option<&'a Value>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self {
                current: old.map(|old| (schema, value, old)),
                parent: Some(current),
            },
        }
    }
}

/// The budget is spent; no further rules run.
struct Exhausted;

struct Run<'e> {
    errors: &'e mut Vec<FieldError>,
    budget: i64,
}

impl Run<'_> {
    fn visit<'a>(
        &mut self,
        schema: SchemaRef<'a>,
        value: &'a Value,
        old: Option<&'a Value>,
        change: Change<'a>,
        path: &Path<'_>,
        root: bool,
    ) -> Result<(), Exhausted> {
        if value.is_null() || !schema.subtree().has(Subtree::RULES) {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        if !schema.rules().is_empty() {
            self.run_rules(schema, value, old, change, path, root)?;
        }
        match value {
            Value::Object(fields) => {
                let additional = match schema.additional_properties() {
                    Additional::Schema(additional) => Some(additional),
                    _ => None,
                };
                for (name, value) in fields {
                    let (below, at) = match (schema.property(name), additional) {
                        (Some(property), _) => (property, path.field(name)),
                        (None, Some(additional)) => (additional, path.key(name)),
                        (None, None) => continue,
                    };
                    let old = old.and_then(|old| old.get(name));
                    let change = if change.parent.is_none() && matches!(name.as_str(), "apiVersion" | "kind")
                    {
                        Change {
                            current: None,
                            parent: None,
                        }
                    } else {
                        change.below(below, value, old)
                    };
                    self.visit(below, value, old, change, &at, below.embedded_resource())?;
                }
            }
            Value::Array(items) => {
                let Some(below) = schema.items().filter(|items| items.subtree().has(Subtree::RULES)) else {
                    return Ok(());
                };
                let old = KeyIndex::new(schema, old.and_then(Value::as_array).map_or(&[], Vec::as_slice));
                for (index, item) in items.iter().enumerate() {
                    let old = old.get(schema, item);
                    let change = change.below(below, item, old);
                    self.visit(
                        below,
                        item,
                        old,
                        change,
                        &path.index(index),
                        below.embedded_resource(),
                    )?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn run_rules<'a>(
        &mut self,
        schema: SchemaRef<'a>,
        value: &'a Value,
        old: Option<&'a Value>,
        change: Change<'a>,
        path: &Path<'_>,
        root: bool,
    ) -> Result<(), Exhausted> {
        let node = NodeValues {
            size: values::size(value) + old.map_or(0, values::size),
            new: values::typed(schema, value, root),
            old: old.map(|old| values::typed(schema, old, root)),
        };
        for rule in schema.rules().iter().filter(|rule| !rule.rule.trim().is_empty()) {
            let compiled = match rule.compiled() {
                Ok(compiled) => compiled,
                Err(problem) => {
                    self.broken(schema, path, &format!("rule compile error: {problem}"));
                    continue;
                }
            };
            let optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !optional {
                continue;
            }
            let evaluation = compiled.rule.run(node.size, node.variables(optional));
            self.budget -= evaluation.spent;
            let detail = match evaluation.result {
                Ok(CelValue::Bool(true)) => continue,
                Ok(CelValue::Bool(false)) => self.message(rule, compiled, &node, optional),
                Ok(_) => {
                    self.broken(schema, path, "cel expression must evaluate to a bool");
                    continue;
                }
                Err(error) => {
                    self.failed(schema, rule, path, &runtime::describe(&error))?;
                    continue;
                }
            };
            if compiled.uses_old_self || !change.unchanged() {
                self.report(schema, value, rule, path, &detail);
            }
            if self.budget < 0 {
                let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
                self.broken(schema, path, detail);
                return Err(Exhausted);
            }
        }
        Ok(())
    }

    fn report(&mut self, schema: SchemaRef<'_>, value: &Value, rule: &Rule, path: &Path<'_>, detail: &str) {
        let mut field = path.to_field();
        if let Some(below) = rule
            .field_path
            .as_deref()
            .and_then(|below| field_path(schema, below))
        {
            field = field.child(&below);
        }
        let compound = matches!(schema.json_type(), Some(JsonType::Object | JsonType::Array));
        let shown = (!compound).then(|| go::show(value));
        let (kind, shown, detail) = match rule.reason {
            Some(Reason::Forbidden) => (FieldErrorKind::Forbidden, None, detail),
            Some(Reason::Required) => (FieldErrorKind::Required, None, detail),
            Some(Reason::Duplicate) => (FieldErrorKind::Duplicate, shown, ""),
            Some(Reason::Invalid) | None => (FieldErrorKind::Invalid, shown, detail),
        };
        self.errors
            .push(go::error(kind, &field, shown.as_deref(), detail));
    }

    /// An evaluation that came to no result.
    fn failed(
        &mut self,
        schema: SchemaRef<'_>,
        rule: &Rule,
        path: &Path<'_>,
        problem: &str,
    ) -> Result<(), Exhausted> {
        let name = named(rule);
        if problem.starts_with(runtime::COST_EXCEEDED) {
            let detail = format!(
                "'{problem}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
            );
            self.broken(schema, path, &detail);
            return Err(Exhausted);
        }
        let detail = if problem.starts_with("no such overload") {
            format!(
                "'{problem}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
            )
        } else {
            format!("{problem} evaluating rule: {name}")
        };
        self.broken(schema, path, &detail);
        Ok(())
    }

    /// Errors of rules themselves name the type in place of the value.
    fn broken(&mut self, schema: SchemaRef<'_>, path: &Path<'_>, detail: &str) {
        let shown = go::quote(schema.json_type().map_or("", JsonType::name));
        self.errors.push(go::error(
            FieldErrorKind::Invalid,
            &path.to_field(),
            Some(&shown),
            detail,
        ));
    }

    fn message(&mut self, rule: &Rule, compiled: &Compiled, node: &NodeValues, optional: bool) -> String {
        if let Some(program) = &compiled.message {
            let evaluation = program.run(node.size, node.variables(optional));
            self.budget -= evaluation.spent;
            if let Ok(CelValue::String(text)) = evaluation.result {
                let text = text.trim();
                if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                    return text.to_owned();
                }
            }
        }
        match &rule.message {
            Some(message) => message.trim().to_owned(),
            None => format!("failed rule: {}", rule.rule.trim()),
        }
    }
}

/// The values that the rules of one node see.
struct NodeValues {
    size: usize,
    new: CelValue,
    old: Option<CelValue>,
}

impl NodeValues {
    fn variables(&self, optional: bool) -> Vec<(&'static str, CelValue)> {
        let old = if optional {
            Some(values::optional(self.old.clone()))
        } else {
            self.old.clone()
        };
        [("self", self.new.clone())]
            .into_iter()
            .chain(old.map(|old| ("oldSelf", old)))
            .collect()
    }
}

fn named(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(&rule.rule).trim()
}

/// Normalizes the path of a rule (`.a['b'].c`) as the server prints it, if the schema knows it.
pub(crate) fn field_path(schema: SchemaRef<'_>, path: &str) -> Option<String> {
    let mut at = FieldPath::root();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, tail) = if let Some(tail) = rest.strip_prefix("['") {
            let end = tail
                .char_indices()
                .find(|(i, c)| *c == '\'' && !tail[..*i].ends_with('\\'))
                .map(|(i, _)| i)?;
            (unescape(&tail[..end])?, tail[end + 1..].strip_prefix(']')?)
        } else {
            let tail = rest.strip_prefix('.')?;
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            (tail[..end].to_owned(), &tail[end..])
        };
        if schema.properties().next().is_some() {
            schema = schema.property(&name)?;
            at = at.child(&name);
        } else {
            let Additional::Schema(additional) = schema.additional_properties() else {
                return None;
            };
            schema = additional;
            at = at.key(&name);
        }
        rest = tail;
    }
    (!at.as_str().is_empty()).then(|| at.as_str().to_owned())
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match chars.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            quoted @ ('\'' | '\\') => quoted,
            _ => return None,
        });
    }
    Some(plain)
}
