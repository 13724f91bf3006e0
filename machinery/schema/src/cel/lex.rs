//! The words of an expression.

use std::fmt;

/// A piece of an expression, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    Name(&'a str),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// An operator or a bracket, `in`, `true`, `false` and `null`.
    Sign(&'static str),
    End,
}

/// What cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Unread {
    pub(super) fn new(at: usize, message: impl fmt::Display) -> Self {
        Self {
            at,
            message: message.to_string(),
        }
    }
}

/// The longer ones come first.
const SIGNS: [&str; 24] = [
    "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}",
];
const WORDS: [&str; 4] = ["in", "true", "false", "null"];

/// Takes an expression apart. The last piece is [`Kind::End`].
pub(super) fn lex(source: &str) -> Result<Vec<Token<'_>>, Unread> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if matches!(first, ' ' | '\t' | '\r' | '\n' | '\x0c') {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (kind, length) = piece(rest).map_err(|message| Unread::new(at, message))?;
        tokens.push(Token {
            kind,
            start: at,
            end: at + length,
        });
        at += length;
    }
    tokens.push(Token {
        kind: Kind::End,
        start: source.len(),
        end: source.len(),
    });
    Ok(tokens)
}

fn piece(rest: &str) -> Result<(Kind<'_>, usize), String> {
    if rest.starts_with('`') {
        return Err("unsupported syntax: '`'".to_owned());
    }
    if let Some(found) = literal(rest) {
        return found;
    }
    let digit = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    if digit(0) || (rest.starts_with('.') && digit(1)) {
        return number(rest);
    }
    let name = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    if name > 0 {
        let word = &rest[..name];
        let kind = WORDS
            .iter()
            .find(|known| **known == word)
            .map_or(Kind::Name(word), |known| Kind::Sign(known));
        return Ok((kind, name));
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((Kind::Sign(sign), sign.len())),
        None => Err(format!(
            "Syntax error: token recognition error at: '{}'",
            rest.chars().take(1).collect::<String>()
        )),
    }
}

fn number(rest: &str) -> Result<(Kind<'_>, usize), String> {
    let run =
        |from: usize, holds: fn(&u8) -> bool| rest.as_bytes()[from..].iter().take_while(|b| holds(b)).count();
    let hex = rest.starts_with("0x") && run(2, u8::is_ascii_hexdigit) > 0;
    if hex {
        let end = 2 + run(2, u8::is_ascii_hexdigit);
        return whole(&rest[2..end], 16, rest, end);
    }
    let mut end = run(0, u8::is_ascii_digit);
    let mut double = false;
    if rest[end..].starts_with('.') && run(end + 1, u8::is_ascii_digit) > 0 {
        double = true;
        end += 1 + run(end + 1, u8::is_ascii_digit);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let digits = run(end + 1 + sign, u8::is_ascii_digit);
        if digits > 0 {
            double = true;
            end += 1 + sign + digits;
        }
    }
    if !double {
        return whole(&rest[..end], 10, rest, end);
    }
    match rest[..end].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Kind::Double(value), end)),
        _ => Err("invalid double literal".to_owned()),
    }
}

fn whole<'a>(digits: &str, radix: u32, rest: &'a str, end: usize) -> Result<(Kind<'a>, usize), String> {
    if rest[end..].starts_with(['u', 'U']) {
        let value = u64::from_str_radix(digits, radix).map_err(|_| "invalid uint literal")?;
        return Ok((Kind::Uint(value), end + 1));
    }
    // The smallest integer is one more than the largest; the parser sees whether a sign is before it.
    match i64::from_str_radix(digits, radix) {
        Ok(value) => Ok((Kind::Int(value), end)),
        Err(_) if digits.parse::<u64>() == Ok(1 << 63) && radix == 10 => Ok((Kind::Int(i64::MIN), end)),
        Err(_) => Err("invalid int literal".to_owned()),
    }
}

/// A string or bytes, if `rest` starts with one.
fn literal(rest: &str) -> Option<Result<(Kind<'_>, usize), String>> {
    let prefix = rest.bytes().take(3).position(|b| matches!(b, b'"' | b'\''))?;
    let letters = &rest[..prefix];
    let (bytes, raw) = match letters.to_ascii_lowercase().as_str() {
        "" => (false, false),
        "r" => (false, true),
        "b" => (true, false),
        "br" => (true, true),
        _ => return None,
    };
    let body = &rest[prefix..];
    let quote = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| body.starts_with(quote))?;
    let inside = &body[quote.len()..];
    let mut escaped = false;
    let length = inside.char_indices().find_map(|(at, c)| {
        if escaped {
            escaped = false;
        } else if c == '\\' && !raw {
            escaped = true;
        } else if inside[at..].starts_with(quote) {
            return Some(Ok(at));
        } else if quote.len() == 1 && matches!(c, '\n' | '\r') {
            return Some(Err(()));
        }
        None
    });
    let Some(Ok(length)) = length else {
        let start: String = rest.lines().next().unwrap_or("").chars().take(80).collect();
        return Some(Err(format!(
            "Syntax error: token recognition error at: '{start}'"
        )));
    };
    let text = &inside[..length];
    let end = prefix + 2 * quote.len() + length;
    let value = if bytes {
        unescape_bytes(text, raw).map(Kind::Bytes)
    } else {
        unescape(text, raw).map(Kind::Text)
    };
    Some(value.map(|kind| (kind, end)))
}

/// One piece of a literal.
enum Unit {
    Char(char),
    /// A code that means a byte in bytes and a character in strings.
    Code(u8),
}

fn units(text: &str, raw: bool) -> Result<Vec<Unit>, String> {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' || raw {
            units.push(Unit::Char(c));
            continue;
        }
        let code = |chars: &mut std::str::Chars<'_>, count: usize, radix: u32, first: u32| {
            (0..count).try_fold(first, |sum, _| {
                let digit = chars.next().and_then(|c| c.to_digit(radix));
                digit.and_then(|digit| sum.checked_mul(radix)?.checked_add(digit))
            })
        };
        let unit = match chars.next() {
            Some('a') => Some(Unit::Char('\x07')),
            Some('b') => Some(Unit::Char('\x08')),
            Some('f') => Some(Unit::Char('\x0c')),
            Some('n') => Some(Unit::Char('\n')),
            Some('r') => Some(Unit::Char('\r')),
            Some('t') => Some(Unit::Char('\t')),
            Some('v') => Some(Unit::Char('\x0b')),
            Some(c @ ('\\' | '\'' | '"' | '`' | '?')) => Some(Unit::Char(c)),
            Some('x' | 'X') => code(&mut chars, 2, 16, 0)
                .and_then(|code| u8::try_from(code).ok())
                .map(Unit::Code),
            Some('u') => code(&mut chars, 4, 16, 0)
                .and_then(char::from_u32)
                .map(Unit::Char),
            Some('U') => code(&mut chars, 8, 16, 0)
                .and_then(char::from_u32)
                .map(Unit::Char),
            Some(c @ '0'..='3') => code(&mut chars, 2, 8, u32::from(c) - u32::from('0'))
                .and_then(|code| u8::try_from(code).ok())
                .map(Unit::Code),
            _ => None,
        };
        units.push(unit.ok_or("Syntax error: the string has an escape sequence that does not exist")?);
    }
    Ok(units)
}

fn unescape(text: &str, raw: bool) -> Result<String, String> {
    let units = units(text, raw)?;
    let chars = units.into_iter().map(|unit| match unit {
        Unit::Char(c) => c,
        Unit::Code(code) => char::from(code),
    });
    Ok(chars.collect())
}

fn unescape_bytes(text: &str, raw: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    for unit in units(text, raw)? {
        match unit {
            Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Code(code) => out.push(code),
        }
    }
    Ok(out)
}
