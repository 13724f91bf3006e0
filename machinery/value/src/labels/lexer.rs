//! The words and signs of a label selector.

/// A token; what it was written as is kept beside it, because errors show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Bad,
    End,
    Close,
    Open,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    In,
    NotIn,
    Word,
}

/// All tokens of `text`, the last of which is [`Token::End`].
pub(super) fn scan(text: &str) -> Vec<(Token, &str)> {
    // As in the real server, a NUL byte ends the text.
    let text = text.split('\0').next().unwrap_or_default();
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while let Some(first) = rest.chars().next() {
        let (token, len) = if is_sign(first) { sign(rest) } else { word(rest) };
        tokens.push((token, &rest[..len]));
        rest = rest[len..].trim_start_matches(is_blank);
    }
    tokens.push((Token::End, ""));
    tokens
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_sign(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

/// The longest sign that `text` starts with.
fn sign(text: &str) -> (Token, usize) {
    let known = [
        ("==", Token::DoubleEquals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (">", Token::Greater),
        ("<", Token::Less),
    ];
    let found = known.into_iter().find(|(sign, _)| text.starts_with(sign));
    found.map_or((Token::Bad, 1), |(sign, token)| (token, sign.len()))
}

fn word(text: &str) -> (Token, usize) {
    let len = text.find(|c| is_blank(c) || is_sign(c)).unwrap_or(text.len());
    let token = match &text[..len] {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Word,
    };
    (token, len)
}
