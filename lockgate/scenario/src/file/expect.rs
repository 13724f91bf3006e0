//! Expectations.

use serde_json::{Map, Value};

use super::fields::{self, Fields};
use super::step::{named_place, paths, reference};
use super::{Bound, Check, Expectation, Mistake, Place, Places};
use crate::path::Path;
use crate::reference::Reference;
use crate::yaml::{Content, Node};

const CHECKS: &[&str] = &[
    "exists",
    "absent",
    "list",
    "event",
    "no-event",
    "unchanged",
    "writes",
];

pub(super) fn read(node: &Node, members: &[String]) -> Result<Vec<Expectation>, Mistake> {
    fields::list(node)?
        .iter()
        .map(|node| expectation(node, members))
        .collect()
}

fn expectation(node: &Node, members: &[String]) -> Result<Expectation, Mistake> {
    let mut fields = Fields::of(node, "an expectation")?;
    let places = places(&mut fields, members)?;
    let (word, body) = fields.one_of(CHECKS)?;
    if matches!(places, Places::OnlyOn(_)) && word != "exists" {
        return Err(Mistake::new(node.line, "`only-on` belongs to exists"));
    }
    let check = match word {
        "exists" => Check::Exists(reference(&body)?, wanted(&mut fields)?),
        "absent" => Check::Absent(reference(&body)?),
        "list" => listed(&body, &mut fields)?,
        "unchanged" => unchanged(&body, &mut fields)?,
        "writes" => writes(&body)?,
        told => Check::Event {
            told: told == "event",
            reason: fields::text(&body)?,
            about: fields.take("for").map(|node| reference(&node)).transpose()?,
            message: fields.optional_text("message")?,
            times: number(&mut fields, "times")?,
        },
    };
    fields.end()?;
    let body = match &body.content {
        Content::Scalar(_) => fields::text(&body)?,
        _ => serde_json::to_string(&body.value()).unwrap_or_default(),
    };
    Ok(Expectation {
        line: node.line,
        title: format!("{word}: {body}"),
        places,
        check,
    })
}

fn number(fields: &mut Fields, word: &'static str) -> Result<Option<u64>, Mistake> {
    let Some(node) = fields.take(word) else {
        return Ok(None);
    };
    let number = node.value().as_u64();
    number
        .ok_or_else(|| Mistake::new(node.line, format!("{word} is a number")))
        .map(Some)
}

fn places(fields: &mut Fields, members: &[String]) -> Result<Places, Mistake> {
    let read = |node: &Node| -> Result<Vec<Place>, Mistake> {
        let words = fields::text_list(node)?;
        if words == ["members"] {
            return Ok(members.iter().cloned().map(Place::Member).collect());
        }
        let places = words.iter().map(|word| named_place(word, members));
        places
            .collect::<Result<_, _>>()
            .map_err(|what| Mistake::new(node.line, what))
    };
    match (fields.take("on"), fields.take("only-on")) {
        (Some(_), Some(node)) => Err(Mistake::new(node.line, "either `on` or `only-on`, not both")),
        (Some(node), None) => Ok(Places::On(read(&node)?)),
        (None, Some(node)) => Ok(Places::OnlyOn(read(&node)?)),
        (None, None) => Ok(Places::On(vec![Place::Hub])),
    }
}

/// `with`, `labels`, `annotations` and `conditions`.
fn wanted(fields: &mut Fields) -> Result<Vec<(Path, Value)>, Mistake> {
    let mut wanted = match fields.take("with") {
        Some(node) => paths(&node)?,
        None => Vec::new(),
    };
    for keys in ["labels", "annotations"] {
        if let Some(node) = fields.take(keys) {
            for (key, node) in fields::entries(&node)? {
                wanted.push((Path::keys(["metadata", keys, key.as_str()]), node.value()));
            }
        }
    }
    if let Some(node) = fields.take("conditions") {
        for (kind, node) in fields::entries(&node)? {
            let path = Path::parse(&format!("status.conditions[type={kind}]"))
                .map_err(|what| Mistake::new(node.line, what))?;
            wanted.push((path, condition(node)?));
        }
    }
    Ok(wanted)
}

/// `True`, `"False NoClusterFit"`, `"False NoClusterFit: *0/3 clusters*"`; nothing if the condition is not there.
fn condition(node: &Node) -> Result<Value, Mistake> {
    if node.value().is_null() {
        return Ok(Value::Null);
    }
    let text = fields::text(node)?;
    let (head, message) = match text.split_once(": ") {
        Some((head, message)) => (head, Some(message)),
        None => (text.as_str(), None),
    };
    let mut words = head.split_whitespace();
    let status = match words.next().map(str::to_ascii_lowercase).as_deref() {
        Some("true") => "True",
        Some("false") => "False",
        Some("unknown") => "Unknown",
        _ => {
            let what = format!("{text:?} is not a condition such as \"True\" or \"False Reason: *message*\"");
            return Err(Mistake::new(node.line, what));
        }
    };
    let mut wanted = Map::from_iter([("status".to_owned(), status.into())]);
    if let Some(reason) = words.next() {
        wanted.insert("reason".to_owned(), reason.into());
    }
    if let Some(message) = message {
        wanted.insert("message".to_owned(), message.into());
    }
    Ok(Value::Object(wanted))
}

fn listed(body: &Node, fields: &mut Fields) -> Result<Check, Mistake> {
    let of = Reference::collection(&fields::text(body)?).map_err(|what| Mistake::new(body.line, what))?;
    let names = match fields.take("names") {
        Some(node) => {
            let mut names: Vec<String> = fields::list(&node)?
                .iter()
                .map(fields::text)
                .collect::<Result<_, _>>()?;
            names.sort();
            Some(names)
        }
        None => None,
    };
    let count = number(fields, "count")?;
    let each = match fields.take("each") {
        Some(node) => paths(&node)?,
        None => Vec::new(),
    };
    if names.is_none() && count.is_none() && each.is_empty() {
        return Err(Mistake::new(
            body.line,
            "a list is checked for `names`, `count` or `each`",
        ));
    }
    Ok(Check::List {
        of,
        names,
        count,
        each,
    })
}

fn unchanged(body: &Node, fields: &mut Fields) -> Result<Check, Mistake> {
    let words = fields::text_list(body)?;
    let of = if words == ["members"] {
        Vec::new()
    } else {
        words
            .iter()
            .map(|word| Reference::object(word))
            .collect::<Result<_, _>>()
            .map_err(|what| Mistake::new(body.line, format!("{what}, and not `members`")))?
    };
    Ok(Check::Unchanged {
        of,
        since: fields.optional_text("since")?,
    })
}

fn writes(body: &Node) -> Result<Check, Mistake> {
    let mut fields = Fields::of(body, "writes")?;
    let mut read = |key: &'static str| fields.take(key).map(|node| bound(&node)).transpose();
    let check = Check::Writes {
        hub: read("hub")?,
        members: read("members")?,
    };
    fields.end()?;
    Ok(check)
}

/// `3`, or `<=3`.
fn bound(node: &Node) -> Result<Bound, Mistake> {
    let text = fields::text(node)?;
    let wrong = || Mistake::new(node.line, format!("{text:?} is neither a number nor <=NUMBER"));
    match text.strip_prefix("<=") {
        Some(number) => number.trim().parse().map(Bound::AtMost).map_err(|_| wrong()),
        None => text.parse().map(Bound::Exactly).map_err(|_| wrong()),
    }
}
