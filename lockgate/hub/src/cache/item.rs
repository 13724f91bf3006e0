//! One object of a list, a watch or an answer, from its bytes. The body is scanned, never built: only a few fields of the
//! metadata are read, and `managedFields` is cut out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lockgate_engine::claim::is_users;
use machinery_value::labels::LabelSelector;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::link::LinkError;

/// As much of an object as the cache must know.
pub(crate) struct Item<'a> {
    pub(crate) namespace: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) uid: Cow<'a, str>,
    pub(crate) resource_version: Cow<'a, str>,
    pub(crate) generation: i64,
    pub(crate) lifetime: Lifetime,
    labels: Option<&'a RawValue>,
    text: &'a str,
    /// What must be put in front: objects inside a list need not say what they are.
    lacks_api_version: bool,
    lacks_kind: bool,
    managed_fields: Option<&'a str>,
}

/// Whether an object is on its way out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Lifetime {
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<serde::de::IgnoredAny>>,
}

impl Lifetime {
    /// Deletion was asked for.
    pub(crate) fn terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Nothing holds it any more: the server removes such an object in the write that makes it so.
    pub(crate) fn over(&self) -> bool {
        self.terminating()
            && self.finalizers.as_ref().is_none_or(Vec::is_empty)
            && self.deletion_grace_period_seconds.unwrap_or(0) == 0
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Top<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default)]
    finalizers: Option<Vec<serde::de::IgnoredAny>>,
    #[serde(borrow, default)]
    labels: Option<&'a RawValue>,
    #[serde(borrow, default)]
    managed_fields: Option<&'a RawValue>,
}

/// Who wrote an object, and when; which fields is not of interest.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
}

impl<'a> Item<'a> {
    /// Reads an object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, LinkError> {
        let text = text.trim();
        let bad = |e: serde_json::Error| LinkError::BadAnswer(format!("not an object: {e}"));
        let top: Top<'_> = serde_json::from_str(text).map_err(bad)?;
        let meta: Meta<'_> = serde_json::from_str(top.metadata.get()).map_err(bad)?;
        Ok(Self {
            namespace: meta.namespace,
            name: meta.name,
            uid: meta.uid,
            resource_version: meta.resource_version,
            generation: meta.generation,
            lifetime: Lifetime {
                deletion_timestamp: meta.deletion_timestamp,
                deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
                finalizers: meta.finalizers,
            },
            labels: meta.labels,
            text,
            lacks_api_version: top.api_version.is_none(),
            lacks_kind: top.kind.is_none(),
            managed_fields: meta.managed_fields.map(RawValue::get),
        })
    }

    /// When a user last wrote it, in whole seconds as servers tell it; `None` if nobody says.
    pub(crate) fn written(&self) -> Option<i64> {
        let entries: Vec<Entry<'_>> = serde_json::from_str(self.managed_fields?).ok()?;
        let users = entries
            .iter()
            .filter(|entry| is_users(&entry.manager, &entry.subresource));
        // Servers write them all in the same way, so that the newest is the last in the order of texts.
        let newest = users.filter_map(|entry| entry.time.as_deref()).max()?;
        newest
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|time| time.as_second())
    }

    /// Whether its labels match.
    pub(crate) fn matches(&self, selector: &LabelSelector) -> bool {
        let labels: Option<BTreeMap<Cow<'_, str>, Cow<'_, str>>> = self
            .labels
            .and_then(|labels| serde_json::from_str(labels.get()).ok());
        selector.matches(|key| Some(&**labels.as_ref()?.get(key)?))
    }

    /// The whole object: it says what it is, and who manages which field is left out.
    pub(crate) fn body(&self, api_version: &str, kind: &str) -> Vec<u8> {
        let cut = self.managed_fields.and_then(|raw| member(self.text, raw));
        let (head, tail) = match cut {
            Some((start, end)) => (&self.text[..start], &self.text[end..]),
            None => (self.text, ""),
        };
        let mut typed = String::new();
        if self.lacks_api_version {
            typed.push_str(&format!(r#""apiVersion":"{api_version}","#));
        }
        if self.lacks_kind {
            typed.push_str(&format!(r#""kind":"{kind}","#));
        }
        let mut body = Vec::with_capacity(head.len() + tail.len() + typed.len());
        // An object was read, so that the text starts with a brace, and has members to follow the comma.
        body.push(b'{');
        body.extend_from_slice(typed.as_bytes());
        body.extend_from_slice(head.get(1..).unwrap_or_default().as_bytes());
        body.extend_from_slice(tail.as_bytes());
        body
    }
}

/// The range of the member `"managedFields":value` with one comma, given its value inside the text. None when the key is
/// written in a way that no server writes it: then the fields stay, which costs memory and nothing else.
fn member(text: &str, value: &str) -> Option<(usize, usize)> {
    let at = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let before = text
        .get(..at)?
        .trim_end()
        .strip_suffix(':')?
        .trim_end()
        .strip_suffix(r#""managedFields""#)?;
    let end = at + value.len();
    let after = text.get(end..)?;
    let trimmed = after.trim_start();
    if let Some(rest) = trimmed.strip_prefix(',') {
        return Some((before.len(), text.len() - rest.len()));
    }
    let before = before.trim_end();
    let before = before.strip_suffix(',').unwrap_or(before);
    Some((before.len(), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let item = Item::parse(text).unwrap();
        assert_eq!(item.body("v1", "Pod"), expected.as_bytes(), "{text}");
    }

    #[test]
    fn the_newest_write_of_a_user_is_known() {
        let entry = |manager: &str, second: u8, rest: &str| {
            format!(
                r#"{{"manager":"{manager}","time":"1970-01-01T00:00:{second:02}Z","fieldsV1":{{"f:a":{{}}}}{rest}}}"#
            )
        };
        let (kubectl, helm) = (entry("kubectl", 5, ""), entry("helm", 9, ""));
        let (ours, status) = (
            entry("lockgate", 20, ""),
            entry("kubectl", 30, r#","subresource":"status""#),
        );
        for (managed, expected) in [
            (vec![], None),
            (vec![&ours, &status], None),
            (vec![&kubectl, &ours, &status], Some(5)),
            (vec![&helm, &kubectl], Some(9)),
        ] {
            let managed: Vec<&str> = managed.into_iter().map(String::as_str).collect();
            let text = format!(
                r#"{{"metadata":{{"name":"a","managedFields":[{}]}}}}"#,
                managed.join(",")
            );
            assert_eq!(Item::parse(&text).unwrap().written(), expected, "{text}");
        }
        assert_eq!(
            Item::parse(r#"{"metadata":{"name":"a"}}"#).unwrap().written(),
            None
        );
    }

    #[test]
    fn a_body_is_whole_and_without_managed_fields() {
        check(
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#,
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#,
        );
        check(
            r#"{"metadata":{"name":"a"}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#,
        );
        for (fields, left) in [
            (r#"{"name":"a","managedFields":[{"m":"}],"}]}"#, r#"{"name":"a"}"#),
            (r#"{"managedFields":[],"name":"a"}"#, r#"{"name":"a"}"#),
            (r#"{"managedFields":[]}"#, "{}"),
            (r#"{"name":"a" , "managedFields" : [1] }"#, r#"{"name":"a"  }"#),
            (
                r#"{"annotations":{"managedFields":"x"},"managedFields":[1],"name":"a"}"#,
                r#"{"annotations":{"managedFields":"x"},"name":"a"}"#,
            ),
        ] {
            let object = |meta: &str| {
                format!(
                    r#"{{"apiVersion":"v1","kind":"Pod","metadata":{meta},"spec":{{"managedFields":[2]}}}}"#
                )
            };
            check(&object(fields), &object(left));
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["", "{}", "[]", r#"{"metadata":1}"#, r#"{"metadata":{"name":1}}"#] {
            assert!(
                matches!(Item::parse(text), Err(LinkError::BadAnswer(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn an_object_is_over_when_nothing_holds_it() {
        for (meta, terminating, over) in [
            (r#"{}"#, false, false),
            (r#"{"finalizers":["a"]}"#, false, false),
            (r#"{"deletionTimestamp":"t"}"#, true, true),
            (
                r#"{"deletionTimestamp":"t","deletionGracePeriodSeconds":0,"finalizers":[]}"#,
                true,
                true,
            ),
            (
                r#"{"deletionTimestamp":"t","deletionGracePeriodSeconds":30}"#,
                true,
                false,
            ),
            (r#"{"deletionTimestamp":"t","finalizers":["a"]}"#, true, false),
        ] {
            let text = format!(r#"{{"metadata":{meta}}}"#);
            let lifetime = Item::parse(&text).unwrap().lifetime;
            assert_eq!(
                (lifetime.terminating(), lifetime.over()),
                (terminating, over),
                "{meta}"
            );
        }
    }
}
