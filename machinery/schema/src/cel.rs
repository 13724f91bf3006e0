//! CEL: the rules of custom resources (`x-kubernetes-validations`), and a front for admission policies.
//!
//! This module is the only one that sees the CEL engine. Expressions are parsed once and rewritten a little
//! (`rewrite`): constructs that the engine lacks are expressed by those it has, and every loop counts against a
//! budget, so that no expression runs for long. The engine never gets to see an expression on which it would give
//! up, and should it still do so, the evaluation fails and nothing else.

mod authorizer;
mod check;
mod cost;
mod lex;
mod literals;
mod macros;
mod overloads;
mod parse;
mod pattern;
mod program;
mod rewrite;
mod rules;
mod runtime;
mod sizes;
mod types;
mod values;

use std::sync::{Arc, OnceLock};

use serde_json::Value;

pub use authorizer::{Authority, Authorizer, Question, Verdict};
pub use check::Scope;
pub(crate) use check::{check_message_expression, check_rule};
pub use program::{CelProgram, Native};
pub use rules::check_rules;
pub(crate) use rules::{check_rules_at, field_path};
pub(crate) use sizes::max_cardinality;
pub use types::{CelType, Struct, View};
pub use values::RESERVED;

/// Why a rule that fails makes a field wrong, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The value is malformed.
    Invalid,
    /// The value may not be there.
    Forbidden,
    /// A value is missing.
    Required,
    /// The value appears twice.
    Duplicate,
}

impl Reason {
    /// The names that a rule may give, sorted as the server lists them.
    pub(crate) const NAMES: [&'static str; 4] = [
        "FieldValueDuplicate",
        "FieldValueForbidden",
        "FieldValueInvalid",
        "FieldValueRequired",
    ];

    fn named(name: &str) -> Option<Self> {
        match name {
            "FieldValueForbidden" => Some(Self::Forbidden),
            "FieldValueRequired" => Some(Self::Required),
            "FieldValueDuplicate" => Some(Self::Duplicate),
            "FieldValueInvalid" => Some(Self::Invalid),
            _ => None,
        }
    }
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The expression that must hold.
    pub rule: Box<str>,
    /// What to say when it does not.
    pub message: Option<Box<str>>,
    /// An expression for what to say.
    pub message_expression: Option<Box<str>>,
    /// The reason that clients see.
    pub reason: Option<Reason>,
    /// The field, below the one with the rule, that is to blame (`.a.b`).
    pub field_path: Option<Box<str>>,
    /// Whether `oldSelf` is an optional value, so that the rule also holds on creation.
    pub optional_old_self: Option<bool>,
    /// Shared by copies of the schema; filled on first use.
    compiled: Arc<OnceLock<Result<Compiled, String>>>,
}

/// A rule ready to run.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) rule: CelProgram,
    pub(crate) message: Option<CelProgram>,
    pub(crate) uses_old_self: bool,
}

impl Rule {
    pub(crate) fn from_json(value: &Value) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            return Err("must be an object".to_owned());
        };
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(Box::from(text.as_str()))),
            Some(_) => Err(format!("{name} must be a string")),
        };
        Ok(Self {
            rule: text("rule")?.unwrap_or_default(),
            message: text("message")?,
            message_expression: text("messageExpression")?,
            reason: text("reason")?.and_then(|name| Reason::named(&name)),
            field_path: text("fieldPath")?,
            optional_old_self: fields.get("optionalOldSelf").and_then(Value::as_bool),
            compiled: Arc::default(),
        })
    }

    /// The compiled rule, or why there is none.
    pub(crate) fn compiled(&self) -> Result<&Compiled, &str> {
        let result = self.compiled.get_or_init(|| {
            let rule = CelProgram::compile(&self.rule)?;
            let message = self
                .message_expression
                .as_deref()
                .map(CelProgram::compile)
                .transpose()?;
            let uses_old_self = rule.references("oldSelf");
            Ok(Compiled {
                rule,
                message,
                uses_old_self,
            })
        });
        result.as_ref().map_err(String::as_str)
    }
}

#[cfg(test)]
mod tests;
