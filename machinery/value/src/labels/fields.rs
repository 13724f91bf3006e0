//! Field selectors: `metadata.name=x,spec.foo!=bar`, with backslashes before commas, equals signs and backslashes.

use std::fmt;

use super::{MAX_SELECTOR, SelectorError};

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field, such as `metadata.name`.
    pub field: String,
    /// Whether the field must have another value, rather than this one.
    pub negated: bool,
    /// The value.
    pub value: String,
}

/// A field selector: all its requirements must be fulfilled. Without any it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Parses what a query string says.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR {
            return Err(SelectorError::new(format!(
                "a selector may have {MAX_SELECTOR} bytes, got {}",
                text.len()
            )));
        }
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, negated, value)) = split_term(term) else {
                return Err(SelectorError::new(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            requirements.push(FieldRequirement {
                field: field.to_owned(),
                negated,
                value: unescape(value)?,
            });
        }
        Ok(Self { requirements })
    }

    /// Whether this matches everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, sorted.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that `field` must have, if there is one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let exact = self
            .requirements
            .iter()
            .find(|requirement| !requirement.negated && requirement.field == field);
        exact.map(|requirement| requirement.value.as_str())
    }

    /// Whether fields match; `field` gives the value of a field, and a missing one is the same as an empty one.
    pub fn matches<V: AsRef<str>>(&self, field: impl Fn(&str) -> Option<V>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = field(&requirement.field);
            let equal = value.as_ref().map_or("", AsRef::as_ref) == requirement.value;
            equal != requirement.negated
        })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if requirement.negated { "!=" } else { "=" };
            write!(
                f,
                "{comma}{}{operator}{}",
                requirement.field,
                escape(&requirement.value)
            )?;
        }
        Ok(())
    }
}

/// A value as it is written in a selector.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c: char| {
        let comma = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        comma
    })
    .collect()
}

/// The field, whether the value is unwanted, and the value as written. The field knows no escapes.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let sign = term.char_indices().find_map(|(at, _)| {
        let rest = &term[at..];
        let len = ["!=", "==", "="]
            .into_iter()
            .find(|sign| rest.starts_with(sign))?
            .len();
        Some((at, len))
    });
    let (at, len) = sign?;
    Some((&term[..at], term[at..].starts_with('!'), &term[at + len..]))
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let bad_escape = |escape: &str| {
        SelectorError::new(format!(
            "invalid field selector: invalid escape sequence: {escape}"
        ))
    };
    let mut unescaped = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => unescaped.push(c),
                Some(c) => return Err(bad_escape(&format!("\\{c}"))),
                None => return Err(bad_escape("\\")),
            },
            ',' | '=' => {
                // The server shows the number of the character.
                let text = format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                );
                return Err(SelectorError::new(text));
            }
            c => unescaped.push(c),
        }
    }
    Ok(unescaped)
}
