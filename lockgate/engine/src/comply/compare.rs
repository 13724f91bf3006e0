//! Whether a live field is what it should be. Servers write values in other forms than people do: quantities compare by what
//! they amount to, other values by how they are printed, and what servers leave out because it is nothing counts as there,
//! loosely: there the server is asked.

use std::borrow::Cow;

use machinery_value::quantity::Quantity;
use serde_json::{Map, Value};

use super::merge::merge;
use super::rules::Compliance;

/// How much is let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For an object that has a name.
    Strict,
    /// For a search, and inside of lists.
    Lenient,
}

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Whether it is what it should be.
    pub matches: bool,
    /// Whether it is so only if what is left out counts as nothing.
    pub loose: bool,
}

impl Match {
    const YES: Self = Self {
        matches: true,
        loose: false,
    };
    const NO: Self = Self {
        matches: false,
        loose: false,
    };
    const LOOSE: Self = Self {
        matches: true,
        loose: true,
    };

    fn of(matches: bool) -> Self {
        if matches { Self::YES } else { Self::NO }
    }

    /// Whether only the server can say.
    pub fn needs_dry_run(self) -> bool {
        !self.matches || self.loose
    }

    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self {
            matches: self.matches && other.matches,
            loose: self.loose || other.loose,
        }
    }
}

/// One field of an object, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What the field would be sent as.
    pub merged: Value,
    /// What was found.
    pub found: Match,
}

/// Compares a whole field of an object; an absent one is null. An error says that the two are of different make.
pub fn compare_field(
    template: &Value,
    live: &Value,
    compliance: Compliance,
    mode: Mode,
) -> Result<Field, String> {
    let clash = match template {
        Value::Object(_) => !(live.is_object() || live.is_null()),
        Value::Array(_) => !(live.is_array() || live.is_null()),
        _ => false,
    };
    if clash {
        return Err(format!(
            "the template has {}, and the object {}",
            make(template),
            make(live)
        ));
    }
    let merged = match (compliance, template) {
        (Compliance::MustOnlyHave, _) | (_, Value::Null) => template.clone(),
        _ => merge(template, live),
    };
    let found = match (&merged, live) {
        (Value::Object(merged), Value::Object(live)) => compare_maps(merged, live, mode),
        // The sides change places here, as they do in released versions.
        (Value::Array(merged), Value::Array(live)) => compare_lists(live, merged),
        (Value::Object(_), _) => Match::NO,
        (Value::Array(items), _) => Match::of(mode == Mode::Lenient && items.is_empty()),
        (scalar, live) => {
            let zero = mode == Mode::Lenient && is_nothing(scalar) && is_nothing(live);
            Match::of(zero || printed(scalar) == printed(live))
        }
    };
    Ok(Field { merged, found })
}

fn make(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Whether a value is what an absent one means.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Compares what a map should be with what it is.
pub(super) fn compare_maps(wanted: &Map<String, Value>, live: &Map<String, Value>, mode: Mode) -> Match {
    if wanted.len() < live.len() {
        return Match::NO;
    }
    let mut all = Match::YES;
    for (key, value) in wanted {
        all = all.and(compare_value(value, live.get(key).unwrap_or(&Value::Null), mode));
        if !all.matches {
            break;
        }
    }
    all
}

fn compare_value(wanted: &Value, live: &Value, mode: Mode) -> Match {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => compare_maps(wanted, live, mode),
        (Value::Object(wanted), Value::Null) if wanted.is_empty() && mode == Mode::Lenient => Match::LOOSE,
        (Value::Array(wanted), Value::Array(live)) => compare_lists(wanted, live),
        (Value::Array(wanted), Value::Null) if wanted.is_empty() => Match::LOOSE,
        (Value::Object(_) | Value::Array(_), _) => Match::NO,
        (Value::Null | Value::Bool(false), Value::Null) => Match::LOOSE,
        (Value::Number(number), Value::Null) if number.as_f64() == Some(0.0) => Match::LOOSE,
        (Value::String(text), live) => match (Quantity::parse(text), live) {
            (Ok(wanted), Value::String(live)) => {
                Match::of(text == live || Quantity::parse(live).is_ok_and(|live| live == wanted))
            }
            (Ok(_), _) => Match::NO,
            (Err(_), live) => Match::of(printed(live) == *text),
        },
        (scalar, live) => Match::of(printed(scalar) == printed(live)),
    }
}

/// Compares lists in whatever order their items come.
fn compare_lists(wanted: &[Value], live: &[Value]) -> Match {
    if wanted.len() != live.len() {
        return Match::NO;
    }
    let (wanted, live) = (sorted(wanted), sorted(live));
    let mut all = Match::YES;
    for (wanted, live) in wanted.into_iter().zip(live) {
        let found = match (wanted, live) {
            (Value::Object(wanted), Value::Object(live)) => compare_maps(wanted, live, Mode::Lenient),
            (Value::Array(wanted), Value::Array(live)) => compare_lists(wanted, live),
            (wanted, live) => Match::of(printed(wanted) == printed(live)),
        };
        all = all.and(found);
        if !all.matches {
            break;
        }
    }
    all
}

fn sorted(items: &[Value]) -> Vec<&Value> {
    let mut sorted: Vec<&Value> = items.iter().collect();
    sorted.sort_by_cached_key(|item| printed(item));
    sorted
}

/// A value as it is printed: 10 and "10" look the same.
pub(super) fn printed(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed("<nil>"),
        Value::Number(number) => Cow::Owned(match (number.as_i64(), number.as_f64()) {
            // A number without a fraction is printed without one.
            (None, Some(float)) if float.fract() == 0.0 => format!("{float}"),
            _ => number.to_string(),
        }),
        other => Cow::Owned(other.to_string()),
    }
}
