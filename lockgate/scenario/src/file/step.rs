//! Steps.

use std::path::Path as FilePath;
use std::time::Duration;

use serde_json::{Value, json};

use super::fields::{self, Fields};
use super::{Action, Cascade, Fault, Mistake, Place, Step, expect, read_gates};
use crate::path::Path;
use crate::reference::{Reference, options};
use crate::yaml::{Content, Node};

const VERBS: &[&str] = &[
    "apply", "create", "replace", "edit", "label", "annotate", "delete", "restore", "stop", "start",
    "restart", "advance", "member", "mark", "remember", "expect",
];

/// The most characters that `--fill` makes.
const MAX_FILL: usize = 4 << 20;
/// Longer times are not moved in one step.
const MAX_ADVANCE: Duration = Duration::from_secs(24 * 3600);

pub(super) fn read(node: &Node, members: &[String], directory: &FilePath) -> Result<Step, Mistake> {
    let mut fields = Fields::of(node, "a step")?;
    let on = match fields.take("on") {
        Some(node) => place(&node, members)?,
        None => Place::Hub,
    };
    let refused = fields.optional_text("refused")?;
    let set = fields.take("set");
    let gates = fields.take("gates");
    let (verb, body) = fields.one_of(VERBS)?;
    fields.end()?;
    if let Some(set) = &set
        && verb != "edit"
    {
        return Err(Mistake::new(
            set.line,
            format!("`set` belongs to edit, not to {verb}"),
        ));
    }
    if let Some(gates) = &gates
        && !matches!(verb, "start" | "restart")
    {
        let what = format!("`gates` belongs to start and restart, not to {verb}");
        return Err(Mistake::new(gates.line, what));
    }
    if refused.is_some()
        && !matches!(
            verb,
            "apply" | "create" | "replace" | "edit" | "label" | "annotate" | "delete"
        )
    {
        return Err(Mistake::new(node.line, format!("no server can refuse {verb}")));
    }
    let (mut action, detail) = action(verb, &body, set.as_ref(), members, directory)?;
    if let (Action::Start(wanted) | Action::Restart(wanted), Some(node)) = (&mut action, gates) {
        *wanted = Some(read_gates(&node)?);
    }
    let title = match &on {
        Place::Hub => format!("{verb} {detail}"),
        Place::Member(name) => format!("{verb} {detail} on {name}"),
    };
    Ok(Step {
        line: node.line,
        title: title.trim().to_owned(),
        on,
        refused,
        action,
    })
}

/// The action, and what it is about in a few words.
fn action(
    verb: &str,
    body: &Node,
    set: Option<&Node>,
    members: &[String],
    directory: &FilePath,
) -> Result<(Action, String), Mistake> {
    let wrong = |what: String| Mistake::new(body.line, what);
    Ok(match verb {
        "apply" => {
            let objects = match &body.content {
                Content::Scalar(Value::String(file)) => {
                    objects_of(&directory.join(file)).map_err(|what| wrong(format!("{file}: {what}")))?
                }
                _ => objects(body)?,
            };
            let names: Vec<String> = objects.iter().map(brief).collect();
            (Action::Apply(objects), names.join(", "))
        }
        "create" => {
            let object = match &body.content {
                Content::Map(_) => object(body)?,
                _ => made(&fields::text(body)?).map_err(wrong)?,
            };
            let name = brief(&object);
            (Action::Create(object), name)
        }
        "replace" => {
            let object = object(body)?;
            let name = brief(&object);
            (Action::Replace(object), name)
        }
        "edit" => {
            let reference = reference(body)?;
            let set = set.ok_or_else(|| wrong("an edit says with `set` what to set".to_owned()))?;
            let name = reference.to_string();
            (Action::Edit(reference, paths(set)?), name)
        }
        "label" | "annotate" => {
            let line = fields::text(body)?;
            let keys = if verb == "label" { "labels" } else { "annotations" };
            (marked(&line, keys).map_err(wrong)?, line)
        }
        "delete" => {
            let line = fields::text(body)?;
            (deleted(&line).map_err(wrong)?, line)
        }
        "restore" => {
            let lines = fields::text_list(body)?;
            let references = lines.iter().map(|line| Reference::object(line));
            let references = references.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
            (Action::Restore(references), lines.join(", "))
        }
        "stop" | "start" | "restart" => {
            let what = fields::text(body)?;
            if what != "controllers" {
                return Err(wrong(format!("{verb}: controllers, not {what:?}")));
            }
            let action = match verb {
                "stop" => Action::Stop,
                "start" => Action::Start(None),
                _ => Action::Restart(None),
            };
            (action, what)
        }
        "advance" => {
            let text = fields::text(body)?;
            let time = duration(&text).ok_or_else(|| {
                wrong(format!(
                    "{text:?} is not a time such as 30s, 5m or 1h (a day at most)"
                ))
            })?;
            (Action::Advance(time), text)
        }
        "member" => member(body, members)?,
        "mark" => {
            let name = fields::text(body)?;
            (Action::Mark(name.clone()), name)
        }
        "remember" => (Action::Remember(remembered(body)?), String::new()),
        _ => (Action::Expect(expect::read(body, members)?), String::new()),
    })
}

/// One object, or a list of them.
pub(super) fn objects(node: &Node) -> Result<Vec<Value>, Mistake> {
    match &node.content {
        Content::List(items) => items.iter().map(object).collect(),
        _ => Ok(vec![object(node)?]),
    }
}

/// The objects of a file, which may hold several documents.
fn objects_of(file: &FilePath) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    text.split("\n---\n")
        .map(|document| object(&Node::parse(document)?).map_err(|mistake| mistake.what))
        .collect()
}

fn object(node: &Node) -> Result<Value, Mistake> {
    let value = node.value();
    for key in ["apiVersion", "kind"] {
        if !value[key].is_string() {
            return Err(Mistake::new(node.line, format!("an object has `{key}`")));
        }
    }
    if !value["metadata"]["name"].is_string() {
        return Err(Mistake::new(node.line, "an object has `metadata.name`"));
    }
    Ok(value)
}

/// An object as kubectl names it.
pub(crate) fn brief(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let (kind, name) = (
        text(&object["kind"]).to_lowercase(),
        text(&object["metadata"]["name"]),
    );
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind}/{name} -n {namespace}"),
        None => format!("{kind}/{name}"),
    }
}

pub(super) fn reference(node: &Node) -> Result<Reference, Mistake> {
    Reference::object(&fields::text(node)?).map_err(|what| Mistake::new(node.line, what))
}

/// A map from paths to values.
pub(super) fn paths(node: &Node) -> Result<Vec<(Path, Value)>, Mistake> {
    fields::entries(node)?
        .iter()
        .map(|(key, node)| {
            let path = Path::parse(key).map_err(|what| Mistake::new(node.line, what))?;
            Ok((path, node.value()))
        })
        .collect()
}

pub(super) fn place(node: &Node, members: &[String]) -> Result<Place, Mistake> {
    named_place(&fields::text(node)?, members).map_err(|what| Mistake::new(node.line, what))
}

pub(super) fn named_place(name: &str, members: &[String]) -> Result<Place, String> {
    match name {
        "hub" => Ok(Place::Hub),
        name if members.iter().any(|member| member == name) => Ok(Place::Member(name.to_owned())),
        name => Err(format!(
            "there is no member {name:?}; there are {}",
            members.join(", ")
        )),
    }
}

/// What `kubectl create` makes of a line.
fn made(line: &str) -> Result<Value, String> {
    let (words, options) = options(line)?;
    let [kind, name] = words.as_slice() else {
        return Err(format!("{line:?} is not of the form KIND NAME, with options"));
    };
    let mut namespace = None;
    let (mut image, mut replicas) = (None, 1_u32);
    let mut data = serde_json::Map::new();
    for (option, value) in options {
        match (option.as_str(), kind.as_str()) {
            ("-n" | "--namespace", _) => namespace = Some(value),
            ("--image", "deployment") => image = Some(value),
            ("--replicas", "deployment") => {
                replicas = value.parse().map_err(|_| format!("{value:?} is not a number"))?;
            }
            ("--from-literal", "configmap") => {
                let (key, text) = value.split_once('=').ok_or("a literal is KEY=VALUE")?;
                data.insert(key.to_owned(), text.into());
            }
            ("--fill", "configmap") => {
                let size = |text: &str| text.parse().ok().filter(|size| *size <= MAX_FILL);
                let (key, size) = value
                    .split_once('=')
                    .and_then(|(key, text)| Some((key, size(text)?)))
                    .ok_or_else(|| format!("--fill is KEY=SIZE, of {MAX_FILL} at most"))?;
                data.insert(key.to_owned(), "x".repeat(size).into());
            }
            _ => return Err(format!("create {kind} has no option {option}")),
        }
    }
    let mut object = match kind.as_str() {
        "namespace" | "ns" => json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        "deployment" => {
            let image = image.ok_or("create deployment needs --image")?;
            let container = image.rsplit('/').next().unwrap_or(&image);
            let container = container.split([':', '@']).next().unwrap_or(container);
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "labels": {"app": name}},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {"containers": [{"name": container, "image": image}]},
                    },
                },
            })
        }
        "configmap" | "cm" => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
        }
        _ => {
            return Err(format!(
                "create makes namespace, deployment and configmap from a line, not {kind}: write the object out"
            ));
        }
    };
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    Ok(object)
}

/// `deployment/web -n shop tier=gold old-`
fn marked(line: &str, keys: &str) -> Result<Action, String> {
    let mut words = line.split_whitespace();
    let (mut object, mut set) = (Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        if word == "-n" {
            object.push(word);
            object.extend(words.next());
        } else if let Some((key, value)) = word.split_once('=') {
            set.push((Path::keys(["metadata", keys, key]), Value::from(value)));
        } else if let Some(key) = word.strip_suffix('-') {
            set.push((Path::keys(["metadata", keys, key]), Value::Null));
        } else {
            object.push(word);
        }
    }
    if set.is_empty() {
        return Err(format!("{line:?} sets nothing: add KEY=VALUE or KEY-"));
    }
    Ok(Action::Edit(Reference::object(&object.join(" "))?, set))
}

fn deleted(line: &str) -> Result<Action, String> {
    let mut cascade = None;
    let words: Vec<&str> = line
        .split_whitespace()
        .filter(|word| match word.strip_prefix("--cascade=") {
            Some(mode) => {
                cascade = Some(mode.to_owned());
                false
            }
            None => true,
        })
        .collect();
    let cascade = match cascade.as_deref() {
        None | Some("background") => None,
        Some("orphan") => Some(Cascade::Orphan),
        Some("foreground") => Some(Cascade::Foreground),
        Some(other) => {
            return Err(format!(
                "--cascade is background, orphan or foreground, not {other:?}"
            ));
        }
    };
    Ok(Action::Delete(Reference::object(&words.join(" "))?, cascade))
}

fn remembered(node: &Node) -> Result<Vec<(String, Reference, Path)>, Mistake> {
    fields::entries(node)?
        .iter()
        .map(|(name, node)| {
            let line = fields::text(node)?;
            let wrong = |what: String| Mistake::new(node.line, what);
            let (reference, path) = line.rsplit_once(' ').ok_or_else(|| {
                wrong(format!(
                    "{line:?} is not of the form KIND/NAME [-n NAMESPACE] PATH"
                ))
            })?;
            Ok((
                name.clone(),
                Reference::object(reference).map_err(wrong)?,
                Path::parse(path).map_err(wrong)?,
            ))
        })
        .collect()
}

fn member(node: &Node, members: &[String]) -> Result<(Action, String), Mistake> {
    let [(name, fault)] = fields::entries(node)? else {
        return Err(Mistake::new(
            node.line,
            "member names one member and what is wrong with it",
        ));
    };
    if name != "hub" && !members.contains(name) {
        let what = format!("there is no member {name:?}; there are {}", members.join(", "));
        return Err(Mistake::new(node.line, what));
    }
    let (fault, word) = match &fault.content {
        Content::Map(_) => {
            let mut fields = Fields::of(fault, "what a member refuses")?;
            let hidden = fields.take("hides");
            let hides = hidden.is_some();
            let resources = match hidden {
                Some(hidden) => fields::text_list(&hidden)?,
                None => fields::text_list(&fields.required("refuses")?)?,
            };
            let message = fields.optional_text("message")?;
            let code = match fields.take("code") {
                None => 403,
                Some(node) => code(&node)?,
            };
            fields.end()?;
            let message = message.unwrap_or_else(|| "refused by the scenario".to_owned());
            if hides {
                let word = format!("hides {}", resources.join(", "));
                (
                    Fault::Hides {
                        resources,
                        code,
                        message,
                    },
                    word,
                )
            } else {
                let word = format!("refuses {}", resources.join(", "));
                (
                    Fault::Refuses {
                        resources,
                        code,
                        message,
                    },
                    word,
                )
            }
        }
        _ => match fields::text(fault)?.as_str() {
            "up" => (Fault::Up, "up".to_owned()),
            "down" => (Fault::Down, "down".to_owned()),
            other => {
                let what = format!("a member is up, down, {{refuses: …}} or {{hides: …}}, not {other:?}");
                return Err(Mistake::new(fault.line, what));
            }
        },
    };
    Ok((Action::Member(name.clone(), fault), format!("{name} {word}")))
}

/// The code of an answer that is no success.
fn code(node: &Node) -> Result<u16, Mistake> {
    let number = node
        .value()
        .as_u64()
        .and_then(|number| u16::try_from(number).ok());
    number
        .filter(|number| (400..600).contains(number))
        .ok_or_else(|| Mistake::new(node.line, "code is a number from 400 to 599"))
}

/// `90s`, `5m`, `1h`, `250ms`.
fn duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..split].parse().ok()?;
    let time = match &text[split..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        "h" => Duration::from_secs(number.checked_mul(3600)?),
        _ => return None,
    };
    (time <= MAX_ADVANCE).then_some(time)
}
