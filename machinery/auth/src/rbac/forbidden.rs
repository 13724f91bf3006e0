//! The words that tell a client no.

use machinery_value::{Map, Value};

use super::Attributes;
use crate::quote::quote;

/// The message of the `Forbidden` status for a denied request; `reason` comes from the decision and may be empty.
pub fn forbidden_message(wanted: &Attributes<'_>, reason: &str) -> String {
    let mut message = match (wanted.path.is_some(), wanted.name) {
        (true, _) => "forbidden: ".to_owned(),
        _ if wanted.resource.is_empty() => "forbidden: ".to_owned(),
        (_, "") => format!("{} is forbidden: ", qualified(wanted)),
        (_, name) => format!("{} {} is forbidden: ", qualified(wanted), quote(name)),
    };
    message.push_str(&cannot(wanted));
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(reason);
    }
    message
}

/// The `details` of that status: name, group and (as `kind`) the resource, where there are any.
pub fn forbidden_details(wanted: &Attributes<'_>) -> Value {
    let mut out = Map::new();
    if wanted.path.is_none() {
        for (key, value) in [
            ("name", wanted.name),
            ("group", wanted.group),
            ("kind", wanted.resource),
        ] {
            if !value.is_empty() {
                out.insert(key.into(), value.into());
            }
        }
    }
    Value::Object(out)
}

fn qualified(wanted: &Attributes<'_>) -> String {
    if wanted.group.is_empty() {
        wanted.resource.to_owned()
    } else {
        format!("{}.{}", wanted.resource, wanted.group)
    }
}

fn cannot(wanted: &Attributes<'_>) -> String {
    let (user, verb) = (quote(&wanted.user.name), wanted.verb);
    if let Some(path) = wanted.path {
        return format!("User {user} cannot {verb} path {}", quote(path));
    }
    let resource = if wanted.subresource.is_empty() {
        quote(wanted.resource)
    } else {
        quote(&format!("{}/{}", wanted.resource, wanted.subresource))
    };
    let scope = if wanted.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {}", quote(wanted.namespace))
    };
    format!(
        "User {user} cannot {verb} resource {resource} in API group {} {scope}",
        quote(wanted.group)
    )
}
