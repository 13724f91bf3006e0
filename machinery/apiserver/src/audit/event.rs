//! What is known of a request and its answer, as one line of the log.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use machinery_auth::UserInfo;
use machinery_value::Value;
use serde::Serialize;

use super::json::to_json;
use crate::request::RequestInfo;

/// The longest name of a client that is written whole.
const MAX_AGENT: usize = 1024;
const CUT: &str = "...TRUNCATED";

/// When a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Stage {
    /// The first bytes of the answer are there, and more may come.
    ResponseStarted,
    /// All is said.
    ResponseComplete,
}

/// What is known of a request.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) id: String,
    pub(super) uri: String,
    pub(super) verb: &'static str,
    pub(super) received: Timestamp,
    /// What the client calls itself.
    pub(super) agent: String,
    /// Where the request comes from, the last one being the one that we see.
    pub(super) addresses: Vec<IpAddr>,
    /// Who sent it; nobody as long as that is not known.
    pub(super) user: Option<Arc<UserInfo>>,
    /// Whom it counts as, if that is somebody else.
    pub(super) acts_as: Option<Arc<UserInfo>>,
    pub(super) object: Option<ObjectRef>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Whether its answer may take as long as it likes.
    pub(super) is_long: bool,
    /// The status code; none before there is an answer.
    pub(super) code: Option<u16>,
    /// The `Status` object, if the answer is one.
    pub(super) status: Option<Value>,
}

/// What a request is about.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectRef {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) subresource: String,
}

impl ObjectRef {
    /// What the path names; none for a path that is not about resources.
    pub(super) fn of(info: &RequestInfo) -> Option<Self> {
        if !info.is_resource {
            return None;
        }
        // Here a slash that was escaped parts a name from what is below it.
        let name = info.target_name();
        let (name, below) = name.split_once('/').unwrap_or((name, &info.subresource));
        Some(Self {
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            name: name.to_owned(),
            api_group: info.group.clone(),
            api_version: info.version.clone(),
            subresource: below.split('/').next().unwrap_or("").to_owned(),
            ..Self::default()
        })
    }

    /// Adds what only the body says.
    pub(super) fn complete(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        for (field, key) in [
            (&mut self.namespace, "namespace"),
            (&mut self.name, "name"),
            (&mut self.uid, "uid"),
            (&mut self.resource_version, "resourceVersion"),
        ] {
            if field.is_empty()
                && let Some(text) = metadata[key].as_str()
            {
                text.clone_into(field);
            }
        }
    }
}

/// Whether an answer goes on until somebody ends it.
pub(super) fn is_long(info: &RequestInfo) -> bool {
    let streams = ["attach", "exec", "log", "portforward", "proxy"];
    info.is_resource
        && (info.verb == "watch" || streams.contains(&info.subresource.split('/').next().unwrap_or("")))
}

/// Whether a path only asks how or which the server is. Such questions come by the second and tell nothing.
pub(super) fn is_small_talk(path: &str) -> bool {
    path == "/version"
        || ["/healthz", "/livez", "/readyz"]
            .iter()
            .any(|start| path.starts_with(start))
}

/// The client's name, as far as it is written.
pub(super) fn agent(headers: &HeaderMap) -> String {
    let text = headers
        .get(http::header::USER_AGENT)
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .unwrap_or_default();
    if text.len() <= MAX_AGENT {
        return text.into_owned();
    }
    let mut end = MAX_AGENT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

/// The addresses that proxies tell of, and the one that we see.
pub(super) fn addresses(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    };
    let mut found: Vec<IpAddr> = text("x-forwarded-for")
        .split(',')
        .filter_map(|part| address(part.trim()))
        .collect();
    found.extend(address(text("x-real-ip")).filter(|real| !found.contains(real)));
    let remote = remote.map(|remote| remote.to_canonical());
    found.extend(remote.filter(|remote| found.last() != Some(remote)));
    found
}

/// An address, also one whose numbers begin with zeros.
fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let mut parts = text.split('.').map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| digits)
    });
    let mut next = || parts.next().flatten();
    let bytes = [next()?, next()?, next()?, next()?];
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(bytes)))
}

/// A request whose client went away before it had its answer. A write that was under way is not called back.
pub(super) fn unanswered() -> Value {
    serde_json::json!({
        "status": "Failure",
        "message": "the client went away before its answer was there; what it asked for may have been done",
        "reason": "Timeout",
        "code": 504,
    })
}

/// One line, with its end.
pub(super) fn line(facts: &Facts, stage: Stage, now: Timestamp) -> Vec<u8> {
    let gone = facts.code.is_none().then(unanswered);
    let status = gone.as_ref().or(facts.status.as_ref());
    let event = Event {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: "Metadata",
        audit_id: &facts.id,
        stage,
        request_uri: &facts.uri,
        verb: facts.verb,
        user: facts.user.as_deref().map(User::of).unwrap_or_default(),
        impersonated_user: facts.acts_as.as_deref().map(User::of),
        source_ips: &facts.addresses,
        user_agent: &facts.agent,
        object_ref: facts.object.as_ref(),
        response_status: Status::of(status, facts.code.unwrap_or(504)),
        request_received_timestamp: microseconds(facts.received),
        stage_timestamp: microseconds(now),
        annotations: &facts.annotations,
    };
    let mut line = to_json(&event);
    line.push(b'\n');
    line
}

fn microseconds(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// As it is written, in the order in which the real server does.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<User<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "is_empty")]
    source_ips: &'a [IpAddr],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<&'a ObjectRef>,
    response_status: Status<'a>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

fn is_empty<T>(list: &[T]) -> bool {
    list.is_empty()
}

#[derive(Default, Serialize)]
struct User<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

impl<'a> User<'a> {
    fn of(user: &'a UserInfo) -> Self {
        Self {
            username: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: Some(&user.extra).filter(|extra| !extra.is_empty()),
        }
    }
}

/// The bounded part of a `Status`; of any other answer, its code.
#[derive(Serialize)]
struct Status<'a> {
    metadata: Nothing,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    code: u16,
}

/// `{}`.
#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causes: Option<Vec<Cause<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<i64>,
}

#[derive(Serialize)]
struct Cause<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str().filter(|text| !text.is_empty())
}

impl<'a> Status<'a> {
    fn of(status: Option<&'a Value>, code: u16) -> Self {
        let said = status.unwrap_or(&Value::Null);
        Self {
            metadata: Nothing {},
            status: text(said, "status"),
            message: text(said, "message"),
            reason: text(said, "reason"),
            details: said.get("details").map(Details::of),
            code,
        }
    }
}

impl<'a> Details<'a> {
    fn of(details: &'a Value) -> Self {
        let cause = |cause: &'a Value| Cause {
            reason: text(cause, "reason"),
            message: text(cause, "message"),
            field: text(cause, "field"),
        };
        Self {
            name: text(details, "name"),
            group: text(details, "group"),
            kind: text(details, "kind"),
            uid: text(details, "uid"),
            causes: details["causes"]
                .as_array()
                .filter(|causes| !causes.is_empty())
                .map(|causes| causes.iter().map(cause).collect()),
            retry_after_seconds: details["retryAfterSeconds"].as_i64().filter(|n| *n != 0),
        }
    }
}

#[cfg(test)]
mod tests;
