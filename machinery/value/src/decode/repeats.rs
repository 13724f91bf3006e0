//! Keys that a YAML document repeats, as Go's reader reports them: by line, and each time.

use std::collections::BTreeSet;

use serde_saphyr::granit_parser::{Event, Parser};

use super::MAX_DUPLICATES;

/// A container that is being read.
enum Open {
    List,
    Map {
        seen: BTreeSet<String>,
        /// The key whose value comes next.
        key: Option<Key>,
    },
}

struct Key {
    name: String,
    is_repeated: bool,
    /// Where its value starts, once that is known.
    line: usize,
}

/// One message for each key that was there before, the first [`MAX_DUPLICATES`] of them. The document was read before,
/// so that it is known to be one; merge keys and aliases repeat nothing.
pub(super) fn messages(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        match event {
            Event::MappingStart(..) => {
                begin(&mut open, span.start.line());
                open.push(Open::Map {
                    seen: BTreeSet::new(),
                    key: None,
                });
            }
            Event::SequenceStart(..) => {
                begin(&mut open, span.start.line());
                open.push(Open::List);
            }
            Event::Scalar(text, ..) => {
                begin(&mut open, span.start.line());
                scalar(&mut open, &text, &mut found);
            }
            Event::Alias(..) => {
                begin(&mut open, span.start.line());
                end(&mut open, &mut found);
            }
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                end(&mut open, &mut found);
            }
            _ => {}
        }
        if found.len() >= MAX_DUPLICATES {
            break;
        }
    }
    found
}

/// A node begins: it may be the value that a key waits for.
fn begin(open: &mut [Open], line: usize) {
    if let Some(Open::Map { key: Some(key), .. }) = open.last_mut() {
        key.line = line;
    }
}

/// A scalar is a key, or a value that is complete.
fn scalar(open: &mut [Open], text: &str, found: &mut Vec<String>) {
    if let Some(Open::Map {
        seen,
        key: key @ None,
    }) = open.last_mut()
    {
        *key = Some(Key {
            name: text.to_owned(),
            is_repeated: !seen.insert(text.to_owned()),
            line: 0,
        });
    } else {
        end(open, found);
    }
}

/// A node ends; what is wrong with its key is told after what is wrong inside of it.
fn end(open: &mut [Open], found: &mut Vec<String>) {
    if let Some(Open::Map { key, .. }) = open.last_mut()
        && let Some(Key {
            name,
            is_repeated: true,
            line,
        }) = key.take()
    {
        found.push(format!("line {line}: key {name:?} already set in map"));
    }
}
