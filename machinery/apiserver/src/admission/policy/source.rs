//! The text of a CEL expression, taken apart just far enough to see which names it uses and where.
//!
//! The parser proper lives elsewhere and keeps no positions; what is needed here is only where names, calls and
//! literals stand, for the variables of a policy. Any text can be scanned, a
//! broken one as well.

use std::ops::Range;

/// What a piece of an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A name or a keyword.
    Name,
    Int,
    Double,
    Text,
    Bytes,
    /// An operator or a bracket.
    Sign,
}

/// One piece of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) shape: Shape,
    pub(super) span: Range<usize>,
}

/// An expression and its pieces.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
}

impl<'a> Source<'a> {
    pub(super) fn scan(text: &'a str) -> Self {
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let (shape, length) = if first.is_whitespace() {
                (None, first.len_utf8())
            } else if rest.starts_with("//") {
                (None, rest.find('\n').unwrap_or(rest.len()))
            } else if let Some((shape, length)) = literal(rest) {
                (Some(shape), length)
            } else if first.is_ascii_alphabetic() || first == '_' {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                (Some(Shape::Name), end.unwrap_or(rest.len()))
            } else if first.is_ascii_digit() {
                number(rest)
            } else {
                let double = ["||", "&&", "==", "!=", "<=", ">="];
                let length = if double.iter().any(|sign| rest.starts_with(sign)) {
                    2
                } else {
                    first.len_utf8()
                };
                (Some(Shape::Sign), length)
            };
            if let Some(shape) = shape {
                tokens.push(Token {
                    shape,
                    span: at..at + length,
                });
            }
            at += length;
        }
        Self { text, tokens }
    }

    /// The text of a piece; empty past the end.
    pub(super) fn at(&self, index: usize) -> &'a str {
        self.tokens
            .get(index)
            .map_or("", |token| &self.text[token.span.clone()])
    }

    fn is_name(&self, index: usize) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|token| token.shape == Shape::Name)
    }

    /// Whether the piece names a variable: it is no field, and not called.
    pub(super) fn is_variable(&self, index: usize) -> bool {
        self.is_name(index) && !self.follows_dot(index) && self.at(index + 1) != "("
    }

    /// Whether the piece comes after `.` or `.?`.
    fn follows_dot(&self, index: usize) -> bool {
        let before = |steps: usize| index.checked_sub(steps).map_or("", |at| self.at(at));
        before(1) == "." || (before(1) == "?" && before(2) == ".")
    }

    /// The fields selected one after the other from the variable at `index`: where the dot stands, and the name.
    pub(super) fn fields(&self, index: usize) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        let mut at = index + 1;
        std::iter::from_fn(move || {
            if self.at(at) != "." {
                return None;
            }
            let name = if self.at(at + 1) == "?" { at + 2 } else { at + 1 };
            if !self.is_name(name) || self.at(name + 1) == "(" {
                return None;
            }
            let dot = self.tokens[at].span.start;
            at = name + 1;
            Some((dot, self.at(name)))
        })
    }
}

/// A string or bytes at the start of `rest`, and its length.
fn literal(rest: &str) -> Option<(Shape, usize)> {
    let prefix = rest
        .find(|c| !matches!(c, 'r' | 'R' | 'b' | 'B'))
        .filter(|length| *length <= 2)?;
    let (letters, body) = rest.split_at(prefix);
    let quote = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| body.starts_with(quote))?;
    let raw = letters.contains(['r', 'R']);
    let shape = if letters.contains(['b', 'B']) {
        Shape::Bytes
    } else {
        Shape::Text
    };
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(quote.len()) {
        if escaped {
            escaped = false;
        } else if c == '\\' && !raw {
            escaped = true;
        } else if body[at..].starts_with(quote) {
            return Some((shape, prefix + at + quote.len()));
        }
    }
    Some((shape, rest.len()))
}

fn number(rest: &str) -> (Option<Shape>, usize) {
    let mut previous = '0';
    let mut double = false;
    for (at, c) in rest.char_indices() {
        let fraction = c == '.' && rest[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        let sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E') && !rest.starts_with("0x");
        if !(c.is_ascii_alphanumeric() || fraction || sign) {
            return (Some(if double { Shape::Double } else { Shape::Int }), at);
        }
        double |= fraction || (matches!(c, 'e' | 'E') && !rest.starts_with("0x"));
        previous = c;
    }
    (Some(if double { Shape::Double } else { Shape::Int }), rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_taken_apart() {
        let cases = [
            ("object.spec.x", "object . spec . x"),
            ("a.?b[?'c.d']", "a . ? b [ ? 'c.d' ]"),
            ("x>=1.5e-3&&!y", "x >= 1.5e-3 && ! y"),
            (r#"r'\' + "a\"b" + b'''x'y'''"#, r#"r'\' + "a\"b" + b'''x'y'''"#),
            ("a // variables.x\n + b", "a + b"),
            ("rule.bare == 0x1F", "rule . bare == 0x1F"),
            ("'open", "'open"),
            ("'ü' + ß", "'ü' + ß"),
            ("", ""),
        ];
        for (text, expected) in cases {
            let source = Source::scan(text);
            let pieces: Vec<&str> = (0..source.tokens.len()).map(|i| source.at(i)).collect();
            assert_eq!(pieces.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn variables_and_their_fields_are_found() {
        let source =
            Source::scan("request.userInfo.?name == x.request && request() && request.f.g('request.a')");
        let found: Vec<(usize, Vec<&str>)> = (0..source.tokens.len())
            .filter(|i| source.is_variable(*i) && source.at(*i) == "request")
            .map(|i| {
                (
                    source.tokens[i].span.start,
                    source.fields(i).map(|(_, name)| name).collect(),
                )
            })
            .collect();
        assert_eq!(found, [(0, vec!["userInfo", "name"]), (52, vec!["f"])]);
    }
}
