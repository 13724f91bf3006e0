//! JSON as Go writes it by default: fit to stand in HTML.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

/// Escapes what HTML, or JavaScript in it, would read in its own way.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, found)) = rest
            .char_indices()
            .find(|(_, c)| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'))
        {
            writer.write_all(&rest.as_bytes()[..at])?;
            write!(writer, "\\u{:04x}", u32::from(found))?;
            rest = &rest[at + found.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// A value as one line of JSON. Its maps have text as keys.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Escaping);
    value
        .serialize(&mut serializer)
        .expect("a vector takes everything, and keys are text");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_html_would_read_is_escaped() {
        let text = "a<b>&é\u{2028}\"\u{1}";
        assert_eq!(
            String::from_utf8(to_json(&text)).unwrap(),
            r#""a\u003cb\u003e\u0026é\u2028\"\u0001""#
        );
    }
}
