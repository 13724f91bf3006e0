//! Namespaces by labels and by patterns of their names.

use lockgate_api::ocm::configuration::NamespaceSelector;
use machinery_value::labels::LabelSelector;
use serde_json::{Map, Value};

/// The longest pattern.
const MAX_PATTERN: usize = 256;

/// Which namespaces.
#[derive(Clone, Debug)]
pub struct Namespaces {
    labels: Option<LabelSelector>,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    terminating: bool,
}

impl Namespaces {
    /// Reads a selector; an error says what is wrong with it.
    pub fn read(selector: &NamespaceSelector) -> Result<Self, String> {
        let by_labels = selector.match_labels.is_some() || selector.match_expressions.is_some();
        let labels = if by_labels {
            let mut written = Map::new();
            if let Some(labels) = &selector.match_labels {
                written.insert("matchLabels".to_owned(), encode(labels)?);
            }
            if let Some(expressions) = &selector.match_expressions {
                written.insert("matchExpressions".to_owned(), encode(expressions)?);
            }
            let read = LabelSelector::from_object(Some(&Value::Object(written)));
            Some(read.map_err(|error| error.to_string())?)
        } else {
            None
        };
        Ok(Self {
            labels,
            include: patterns(&selector.include)?,
            exclude: patterns(&selector.exclude)?,
            terminating: selector.terminating_inclusion != "Never",
        })
    }

    /// Whether it selects a namespace.
    pub fn selects(&self, name: &str, labels: Option<&Map<String, Value>>, terminating: bool) -> bool {
        if self.labels.is_none() && self.include.is_empty() {
            return false;
        }
        let labelled = self
            .labels
            .as_ref()
            .is_none_or(|selector| selector.matches_labels(labels));
        let included = self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(name));
        let excluded = self.exclude.iter().any(|pattern| pattern.matches(name));
        labelled && included && !excluded && (self.terminating || !terminating)
    }
}

fn patterns(texts: &[String]) -> Result<Vec<Pattern>, String> {
    texts.iter().map(|text| Pattern::read(text)).collect()
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// A shell pattern: `*`, `?` and `[...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Any,
    One,
    Char(char),
    /// Whether it is turned around, and the ranges.
    Class(bool, Vec<(char, char)>),
}

impl Pattern {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no pattern of names");
        if text.len() > MAX_PATTERN {
            return Err(format!("a pattern is longer than {MAX_PATTERN} characters"));
        }
        let mut pieces = Vec::new();
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            pieces.push(match next {
                '*' => Piece::Any,
                '?' => Piece::One,
                '\\' => Piece::Char(rest.next().ok_or_else(wrong)?),
                '[' => class(&mut rest).ok_or_else(wrong)?,
                other => Piece::Char(other),
            });
        }
        // Several stars in a row say no more than one.
        pieces.dedup_by(|a, b| *a == Piece::Any && *b == Piece::Any);
        Ok(Self(pieces))
    }

    fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let pieces = &self.0;
        let (mut at, mut piece) = (0, 0);
        // Where the last star began, and how much it takes: only the last one needs to be tried again.
        let mut star: Option<(usize, usize)> = None;
        while at < name.len() {
            let fits = match pieces.get(piece) {
                Some(Piece::Any) => {
                    star = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(Piece::One) => true,
                Some(Piece::Char(wanted)) => *wanted == name[at],
                Some(Piece::Class(turned, ranges)) => {
                    ranges
                        .iter()
                        .any(|(low, high)| (*low..=*high).contains(&name[at]))
                        != *turned
                }
                None => false,
            };
            if fits {
                at += 1;
                piece += 1;
            } else if let Some((from, taken)) = star {
                star = Some((from, taken + 1));
                at = taken + 1;
                piece = from + 1;
            } else {
                return false;
            }
        }
        pieces[piece..].iter().all(|piece| *piece == Piece::Any)
    }
}

/// What is between brackets, after the first.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Piece> {
    let mut ranges = Vec::new();
    let mut next = rest.next()?;
    let turned = next == '^';
    if turned {
        next = rest.next()?;
    }
    loop {
        if next == ']' {
            return (!ranges.is_empty()).then_some(Piece::Class(turned, ranges));
        }
        let low = if next == '\\' { rest.next()? } else { next };
        next = rest.next()?;
        let mut high = low;
        if next == '-' {
            high = match rest.next()? {
                ']' => return None,
                '\\' => rest.next()?,
                other => other,
            };
            next = rest.next()?;
        }
        if low > high {
            return None;
        }
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(yaml: &Value) -> Result<Namespaces, String> {
        Namespaces::read(&serde_json::from_value(yaml.clone()).unwrap())
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, yes, no) in [
            ("*", "", "-"),
            ("kube-*", "kube-system", "default"),
            ("*-dev", "a-dev", "a-dev-b"),
            ("a?c", "abc", "ac"),
            ("*a*b*", "xaybz", "ba"),
            ("team-[a-c1]", "team-1", "team-d"),
            ("[^a]*", "bc", "ab"),
            (r"\*", "*", "a"),
        ] {
            let pattern = Pattern::read(pattern).unwrap();
            assert!(pattern.matches(yes), "{pattern:?} {yes}");
            assert!(no == "-" || !pattern.matches(no), "{pattern:?} {no}");
        }
        for wrong in ["[", "[]", "[a", "[a-]", "[z-a]", "\\"] {
            assert!(Pattern::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_and_names_must_both_fit_and_nothing_selects_nothing() {
        let labels = serde_json::json!({"team": "a"});
        let labels = labels.as_object();
        for (selector_text, name, expected) in [
            (serde_json::json!({}), "shop", false),
            (serde_json::json!({"exclude": ["kube-*"]}), "shop", false),
            (
                serde_json::json!({"include": ["*"], "exclude": ["kube-*"]}),
                "shop",
                true,
            ),
            (
                serde_json::json!({"include": ["*"], "exclude": ["kube-*"]}),
                "kube-system",
                false,
            ),
            (serde_json::json!({"matchLabels": {}}), "shop", true),
            (serde_json::json!({"matchLabels": {"team": "b"}}), "shop", false),
            (
                serde_json::json!({"matchLabels": {"team": "a"}, "include": ["x*"]}),
                "shop",
                false,
            ),
            (
                serde_json::json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}),
                "shop",
                true,
            ),
        ] {
            let namespaces = selector(&selector_text).unwrap();
            assert_eq!(
                namespaces.selects(name, labels, false),
                expected,
                "{selector_text} {name}"
            );
        }
        let wrong = serde_json::json!({"matchExpressions": [{"key": "team", "operator": "Is"}]});
        assert!(selector(&wrong).is_err());
    }

    #[test]
    fn namespaces_that_are_going_count_unless_told_otherwise() {
        for (word, counts) in [("", true), ("Default", true), ("IfMatch", true), ("Never", false)] {
            let namespaces =
                selector(&serde_json::json!({"include": ["*"], "terminatingInclusion": word})).unwrap();
            assert_eq!(namespaces.selects("shop", None, true), counts, "{word}");
            assert!(namespaces.selects("shop", None, false));
        }
    }
}
