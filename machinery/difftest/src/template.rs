//! Placeholders in scripts: `<name>` for what was captured or named, and a few that make long texts.

use std::collections::BTreeMap;

/// The texts a script may refer to.
pub(crate) type Names = BTreeMap<String, String>;

/// Long texts end here, so that a slip of the pen in a script cannot eat the memory.
const LONGEST: usize = 8 << 20;

/// Replaces every `<name>` in `text`. `<fill:N>`, `<open:N>` and `<close:N>` stand for N times `a`, `[` and `]`,
/// `<objects:N>` for N times `{"a":`, `<braces:N>` for N times `}`. What is between the brackets must be known; a `<` that
/// no name follows is itself.
pub(crate) fn expand(text: &str, names: &Names) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let inner = &rest[start + 1..];
        match inner
            .find('>')
            .map(|end| &inner[..end])
            .filter(|name| is_name(name))
        {
            Some(name) => {
                out.push_str(&lookup(name, names)?);
                rest = &inner[name.len() + 1..];
            }
            None => {
                out.push('<');
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == ':')
}

fn lookup(name: &str, names: &Names) -> Result<String, String> {
    let Some((maker, count)) = name.split_once(':') else {
        let text = names
            .get(name)
            .ok_or_else(|| format!("<{name}> is not known here"))?;
        // A name may stand for a text with names in it; those it was defined with are already replaced in captures.
        return if text.contains('<') {
            expand(text, &without(names, name))
        } else {
            Ok(text.clone())
        };
    };
    let count: usize = count.parse().map_err(|_| format!("<{name}>: not a count"))?;
    let unit = match maker {
        "fill" => "a",
        "open" => "[",
        "close" => "]",
        "objects" => "{\"a\":",
        "braces" => "}",
        _ => return Err(format!("<{name}> is not known here")),
    };
    if count.saturating_mul(unit.len()) > LONGEST {
        return Err(format!("<{name}> is too long"));
    }
    Ok(unit.repeat(count))
}

fn without(names: &Names, name: &str) -> Names {
    names
        .iter()
        .filter(|(key, _)| key.as_str() != name)
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        let names: Names = [("ns", "n1"), ("cms", "/api/<ns>/x"), ("loop", "<loop>")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
        for (text, expected) in [
            ("plain", Ok("plain")),
            ("<cms>/a", Ok("/api/n1/x/a")),
            ("self.a < 3 && b > 2", Ok("self.a < 3 && b > 2")),
            ("<fill:3><open:2><close:1>", Ok("aaa[[]")),
            ("<nope>", Err("<nope> is not known here")),
            ("<loop>", Err("<loop> is not known here")),
            ("<fill:x>", Err("<fill:x>: not a count")),
            ("<fill:99999999999>", Err("<fill:99999999999> is too long")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(expand(text, &names), expected, "{text}");
        }
    }
}
