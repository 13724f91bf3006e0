//! Patterns in the server's dialect, rewritten for ours.
//!
//! Both are RE2-like. They differ in details: the server's `\d`, `\s`, `\w` and `\b` know ASCII only, a bracket
//! inside a class and a brace that starts no repetition are literal, `\<` is a plain character, and `\Q…\E` quotes.

/// The same pattern for our engine.
pub(crate) fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let chars: Vec<char> = source.chars().collect();
    let mut at = 0;
    let mut in_class = false;
    while at < chars.len() {
        let c = chars[at];
        match c {
            '\\' => {
                let Some(next) = chars.get(at + 1).copied() else {
                    out.push(c);
                    break;
                };
                at += 2;
                match next {
                    'd' => out.push_str("[0-9]"),
                    'D' => out.push_str("[^0-9]"),
                    's' => out.push_str(r"[\t\n\f\r ]"),
                    'S' => out.push_str(r"[^\t\n\f\r ]"),
                    'w' => out.push_str("[0-9A-Za-z_]"),
                    'W' => out.push_str("[^0-9A-Za-z_]"),
                    'b' if !in_class => out.push_str(r"(?-u:\b)"),
                    // The complement is only available byte-wise, where it could split a character.
                    'B' if !in_class => out.push_str(r"\B"),
                    '<' | '>' => out.push(next),
                    'Q' if !in_class => {
                        while at < chars.len() && !(chars[at] == '\\' && chars.get(at + 1) == Some(&'E')) {
                            out.push_str(&regex::escape(&chars[at].to_string()));
                            at += 1;
                        }
                        at += 2;
                    }
                    next => {
                        out.push('\\');
                        out.push(next);
                    }
                }
                continue;
            }
            '[' if in_class => {
                if chars.get(at + 1) == Some(&':') && class_ends(&chars, at) {
                    out.push('[');
                } else {
                    out.push_str("\\[");
                }
            }
            '[' => {
                in_class = true;
                out.push('[');
                if chars.get(at + 1) == Some(&'^') {
                    out.push('^');
                    at += 1;
                }
                // A bracket that comes first is literal.
                if chars.get(at + 1) == Some(&']') {
                    out.push_str("\\]");
                    at += 1;
                }
            }
            ']' if in_class => {
                // The end of a named class such as [:alpha:] does not end the class around it.
                if at > 0
                    && chars[at - 1] == ':'
                    && out.rfind("[:").is_some_and(|open| !out[open..].contains(']'))
                {
                    out.push(']');
                } else {
                    in_class = false;
                    out.push(']');
                }
            }
            '&' | '~' | '-' if in_class && chars.get(at + 1) == Some(&c) => {
                // Doubled, these would be set operations.
                out.push('\\');
                out.push(c);
            }
            '{' if !in_class && !is_repetition(&chars[at..]) => out.push_str("\\{"),
            c => out.push(c),
        }
        at += 1;
    }
    out
}

/// Why a pattern is none, in the words of the server's engine where they are known.
pub(crate) fn describe(source: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.rsplit("error: ").next().unwrap_or(&text);
    let from = |token: char| source.rfind(token).map_or(source, |at| &source[at..]);
    let known = if reason.starts_with("unclosed character class") {
        format!("missing closing ]: `{}`", from('['))
    } else if reason.starts_with("unclosed group") {
        format!("missing closing ): `{source}`")
    } else if reason.starts_with("unopened group") {
        format!("unexpected ): `{source}`")
    } else if reason.starts_with("repetition operator missing expression") {
        let operator: String = source.chars().find(|c| "*+?{".contains(*c)).into_iter().collect();
        format!("missing argument to repetition operator: `{operator}`")
    } else if reason.starts_with("look-around") {
        let at = ["(?=", "(?!", "(?<"]
            .iter()
            .filter_map(|token| source.find(token))
            .min()
            .unwrap_or(0);
        match source[at..].starts_with("(?<") {
            true => format!("invalid named capture: `{}`", &source[at..]),
            false => format!(
                "invalid or unsupported Perl syntax: `{}`",
                source[at..].chars().take(3).collect::<String>()
            ),
        }
    } else {
        reason.trim().replace('\n', " ")
    };
    format!("error parsing regexp: {known}")
}

fn class_ends(chars: &[char], open: usize) -> bool {
    chars[open..].windows(2).any(|pair| pair == [':', ']'])
}

/// `{n}`, `{n,}` or `{n,m}`.
fn is_repetition(chars: &[char]) -> bool {
    let Some(end) = chars.iter().position(|c| *c == '}') else {
        return false;
    };
    let inside: String = chars[1..end].iter().collect();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match inside.split_once(',') {
        Some((low, high)) => number(low) && (high.is_empty() || number(high)),
        None => number(&inside),
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_on_the_server() {
        for (pattern, yes, no) in [
            (r"^\d+$", "123", "١٢٣"),
            (r"^\w+$", "a_1", "é"),
            (r"^[\w.-]+$", "a.b-c", "a b"),
            (r"^[a[b]+$", "a[b", "c"),
            (r"^[[:alpha:]]+$", "abc", "a1"),
            (r"^[]a]+$", "]a", "b"),
            (r"^a{,2}$", "a{,2}", "aa"),
            (r"^{x}$", "{x}", "x"),
            (r"^a{2,3}$", "aaa", "aaaa"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"^\<a\>$", "<a>", "a"),
            (r"^[^\s/]+$", "ab", "a b"),
            (r"^[a&&b]+$", "a&b", "c"),
            (r"^.$", "é", "ab"),
        ] {
            let translated = Regex::new(&translate(pattern)).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert!(translated.is_match(yes), "{pattern} should match {yes}");
            assert!(!translated.is_match(no), "{pattern} should not match {no}");
        }
    }
}
