//! Strings as Go's `%q` shows them, because clients see those texts.

pub(crate) use machinery_value::gofmt::quote;

/// A list of strings: `["a" "b"]`.
pub(crate) fn quote_list<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_like_go() {
        for (text, expected) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\nb\tc", r#""a\nb\tc""#),
            ("\u{0}\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("\u{85}\u{a0}", r#""\u0085\u00a0""#),
            ("grüße", r#""grüße""#),
        ] {
            assert_eq!(quote(text), expected);
        }
        assert_eq!(quote_list(["a", "b"]), r#"["a" "b"]"#);
        assert_eq!(quote_list::<&str>([]), "[]");
    }
}
