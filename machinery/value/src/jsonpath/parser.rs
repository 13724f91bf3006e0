//! The grammar of a path.

use serde_json::Value;

use super::{Comparison, Filter, MAX_PATH, MAX_STEPS, Operand, Slice, Step};

/// How deeply filters may be nested.
const MAX_NESTING: usize = 4;

/// The steps of the path `text`.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, String> {
    if text.len() > MAX_PATH {
        return Err(format!("it may have {MAX_PATH} bytes, got {}", text.len()));
    }
    let inner = text.trim();
    let inner = inner
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
        .unwrap_or(inner)
        .trim();
    let inner = inner.strip_prefix(['$', '@']).unwrap_or(inner);
    let mut left = MAX_STEPS;
    steps(inner, MAX_NESTING, &mut left)
}

fn steps(text: &str, nesting: usize, left: &mut usize) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| format!("it may have {MAX_STEPS} steps"))?;
        if rest.starts_with("..") {
            // What follows is a field without a dot of its own, or a bracket.
            steps.push(Step::Recursive);
            rest = &rest[2..];
            if !rest.starts_with('[') {
                rest = field(rest, &mut steps)?;
            }
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = if after.starts_with('[') || after.is_empty() {
                after
            } else {
                field(after, &mut steps)?
            };
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = bracket_end(after).ok_or("unterminated array")?;
            steps.push(bracket(after[..end].trim(), nesting, left)?);
            rest = &after[end + 1..];
        } else if steps.is_empty() {
            // A path may start without a dot.
            rest = field(rest, &mut steps)?;
        } else {
            return Err(format!("unrecognized character {first:?}"));
        }
    }
    Ok(steps)
}

/// Reads a field name, in which a backslash takes away the meaning of what follows.
fn field<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, String> {
    let mut name = String::new();
    let mut escaped = false;
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        if escaped {
            name.push(c);
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if matches!(c, '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}') || c.is_whitespace() {
            end = at;
            break;
        } else {
            name.push(c);
        }
    }
    if end == 0 {
        return Err("a field name is missing".to_owned());
    }
    steps.push(if name == "*" {
        Step::All
    } else {
        Step::Fields(vec![name])
    });
    Ok(&text[end..])
}

/// Where the bracket ends, mindful of quotes and of brackets inside.
fn bracket_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(text: &str, nesting: usize, left: &mut usize) -> Result<Step, String> {
    if text == "*" {
        return Ok(Step::All);
    }
    if let Some(inner) = text.strip_prefix("?(") {
        let inner = inner.strip_suffix(')').ok_or("unterminated filter")?;
        let nesting = nesting
            .checked_sub(1)
            .ok_or_else(|| format!("filters may be nested {MAX_NESTING} deep"))?;
        return filter(inner, nesting, left).map(Step::Filter);
    }
    let parts = split_outside_quotes(text, |rest| rest.starts_with(',').then_some(1));
    if text.starts_with(['\'', '"']) {
        let names = parts
            .iter()
            .map(|part| unquote(part.trim()).ok_or(format!("invalid array index {text}")));
        return names.collect::<Result<_, _>>().map(Step::Fields);
    }
    let slices = parts
        .iter()
        .map(|part| slice(part.trim()).ok_or(format!("invalid array index {text}")));
    slices.collect::<Result<_, _>>().map(Step::Slices)
}

fn slice(text: &str) -> Option<Slice> {
    let number = |text: &str| {
        if text.is_empty() {
            Some(None)
        } else {
            text.parse().ok().map(Some)
        }
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [index] => Some(Slice {
            start: Some(index.parse().ok()?),
            end: None,
            step: 1,
            single: true,
        }),
        [start, end] => Some(Slice {
            start: number(start)?,
            end: number(end)?,
            step: 1,
            single: false,
        }),
        [start, end, step] => {
            let step = number(step)?.unwrap_or(1);
            (step > 0).then_some(Slice {
                start: number(start)?,
                end: number(end)?,
                step,
                single: false,
            })
        }
        _ => None,
    }
}

fn filter(text: &str, nesting: usize, left: &mut usize) -> Result<Filter, String> {
    let sign_len = |rest: &str| rest.bytes().take_while(|byte| b"!<>=".contains(byte)).count();
    let sides = split_outside_quotes(text, |rest| Some(sign_len(rest)).filter(|len| *len > 0));
    match sides.as_slice() {
        [only] => Ok(Filter {
            left: operand(only, nesting, left)?,
            compare: None,
        }),
        [one, other] => {
            let sign = &text[one.len()..text.len() - other.len()];
            let comparison = match sign {
                "==" => Comparison::Equal,
                "!=" => Comparison::NotEqual,
                "<" => Comparison::Less,
                "<=" => Comparison::LessOrEqual,
                ">" => Comparison::Greater,
                ">=" => Comparison::GreaterOrEqual,
                _ => return Err(format!("unrecognized filter operator {sign}")),
            };
            let (one, other) = (operand(one, nesting, left)?, operand(other, nesting, left)?);
            Ok(Filter {
                left: one,
                compare: Some((comparison, other)),
            })
        }
        _ => Err(format!("unrecognized filter {text:?}")),
    }
}

fn operand(text: &str, nesting: usize, left: &mut usize) -> Result<Operand, String> {
    let text = text.trim();
    if let Some(path) = text.strip_prefix('@') {
        return steps(path, nesting, left).map(Operand::Current);
    }
    if let Some(path) = text.strip_prefix('$') {
        return steps(path, nesting, left).map(Operand::Root);
    }
    if text.starts_with(['.', '[']) {
        return steps(text, nesting, left).map(Operand::Current);
    }
    if let Some(literal) = unquote(text) {
        return Ok(Operand::Literal(Value::String(literal)));
    }
    match text {
        "true" => Ok(Operand::Literal(Value::Bool(true))),
        "false" => Ok(Operand::Literal(Value::Bool(false))),
        _ => {
            let number = text.parse::<i64>().map(Value::from).ok();
            let number = number.or_else(|| {
                text.parse::<f64>()
                    .ok()
                    .filter(|n| n.is_finite())
                    .map(Value::from)
            });
            number
                .map(Operand::Literal)
                .ok_or_else(|| format!("unrecognized identifier {text:?}"))
        }
    }
}

/// The text in quotes of either kind, without the backslashes before quotes and backslashes.
fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text[1..].strip_suffix(quote)?;
    let mut unquoted = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                'n' => unquoted.push('\n'),
                't' => unquoted.push('\t'),
                c => unquoted.push(c),
            },
            c if c == quote => return None,
            c => unquoted.push(c),
        }
    }
    Some(unquoted)
}

/// Splits at separators, whose length `separator` gives for the text it starts, and not inside quotes.
fn split_outside_quotes(text: &str, separator: impl Fn(&str) -> Option<usize>) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut skip_to) = (0, 0);
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if at < skip_to => {}
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {
                if let Some(len) = separator(&text[at..]) {
                    parts.push(&text[start..at]);
                    start = at + len;
                    skip_to = start;
                }
            }
        }
    }
    parts.push(&text[start..]);
    parts
}
