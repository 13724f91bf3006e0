//! Discovery: which groups, versions and resources there are, in the old form and the aggregated one.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use machinery_value::Value;
use serde_json::{Map, json};

use crate::body::Body;
use crate::negotiate::{Accept, OFFERED, Shape};
use crate::registry::Registry;
use crate::resource::{Resource, Source};
use crate::serve::text;
use crate::status::ApiError;

/// The release of Kubernetes whose behaviour is served.
const VERSION: &str = "v1.35.0";

/// The answer to `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "35",
        "emulationMajor": "1", "emulationMinor": "35",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "34",
        "gitVersion": format!("{VERSION}+lockgate"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, arch()),
    })
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The answer to `/`.
pub(crate) fn root_paths(registry: &Registry) -> Value {
    let mut paths: Vec<String> = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis"]
        .map(str::to_owned)
        .to_vec();
    for (group, versions) in groups(registry) {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
            paths.extend(versions.keys().map(|version| format!("/apis/{group}/{version}")));
        }
    }
    paths.extend(
        [
            "/healthz",
            "/livez",
            "/openapi/v2",
            "/openapi/v3",
            "/openid/v1/jwks",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned),
    );
    json!({"paths": paths})
}

type Versions = BTreeMap<String, Vec<Arc<Resource>>>;

/// Groups in discovery's order, each with its versions.
fn groups(registry: &Registry) -> Vec<(String, Versions)> {
    let mut order: Vec<(String, Versions)> = Vec::new();
    for resource in registry.all() {
        let place = match order.iter().position(|(group, _)| *group == resource.group) {
            Some(place) => place,
            None => {
                order.push((resource.group.clone(), Versions::new()));
                order.len() - 1
            }
        };
        order[place]
            .1
            .entry(resource.version.clone())
            .or_default()
            .push(resource);
    }
    order
}

/// The versions of a group, the preferred one first: stable before beta before alpha, the newer before the older.
fn by_preference(versions: &Versions) -> Vec<&String> {
    let mut names: Vec<&String> = versions.keys().collect();
    names.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.cmp(b)));
    names
}

/// How stable and how new a version is, from its name; a name of another form comes last.
pub(crate) fn rank(version: &str) -> (u8, u32, u32) {
    let parse = || -> Option<(u8, u32, u32)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u32 = rest[..digits].parse().ok()?;
        let tail = &rest[digits..];
        if tail.is_empty() {
            return Some((3, major, 0));
        }
        if let Some(minor) = tail.strip_prefix("beta") {
            return Some((2, major, minor.parse().ok()?));
        }
        Some((1, major, tail.strip_prefix("alpha")?.parse().ok()?))
    };
    parse().unwrap_or((0, 0, 0))
}

/// Answers `/api…` and `/apis…`.
pub(crate) fn answer(
    registry: &Registry,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let accept = Accept::parse(headers).map_err(|_| ApiError::not_acceptable(OFFERED))?;
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let document = match parts.as_slice() {
        [root] if accept.shape == Shape::Discovery => return Ok(aggregated(registry, root, headers)),
        ["api"] => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        }),
        ["apis"] => {
            let groups: Vec<Value> = groups(registry)
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| group_document(group, versions))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", group] => match groups(registry).iter().find(|(name, _)| name == group) {
            Some((group, versions)) => {
                let mut document = group_document(group, versions);
                document["kind"] = json!("APIGroup");
                document["apiVersion"] = json!("v1");
                document
            }
            None => return Ok(text(404, "404 page not found\n")),
        },
        ["api", version] => resource_list(registry, "", version).ok_or_else(ApiError::no_resource)?,
        ["apis", group, version] => match resource_list(registry, group, version) {
            Some(document) => document,
            None if crate::registry::built_in()
                .resources()
                .iter()
                .any(|r| r.group == *group) =>
            {
                return Err(ApiError::no_resource());
            }
            None => return Ok(text(404, "404 page not found\n")),
        },
        _ => return Ok(text(404, "404 page not found\n")),
    };
    Ok(crate::serve::json_answer(200, accept, &document))
}

fn group_document(group: &str, versions: &Versions) -> Value {
    let listed: Vec<Value> = by_preference(versions)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = listed.first().cloned().unwrap_or(Value::Null);
    json!({"name": group, "versions": listed, "preferredVersion": preferred})
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let all = groups(registry);
    let (_, versions) = all.iter().find(|(name, _)| name == group)?;
    let resources = versions.get(version)?;
    let mut listed = Vec::new();
    for resource in resources {
        let mut entry = Map::new();
        entry.insert("name".into(), json!(resource.plural));
        entry.insert("singularName".into(), json!(resource.singular));
        entry.insert("namespaced".into(), json!(resource.namespaced));
        entry.insert("kind".into(), json!(resource.kind));
        entry.insert("verbs".into(), json!(resource.verbs));
        if !resource.short_names.is_empty() {
            entry.insert("shortNames".into(), json!(resource.short_names));
        }
        if !resource.categories.is_empty() {
            entry.insert("categories".into(), json!(resource.categories));
        }
        if resource.verbs.iter().any(|v| v == "create") && resource.verbs.iter().any(|v| v == "list") {
            entry.insert("storageVersionHash".into(), json!(storage_hash(resource)));
        }
        listed.push(Value::Object(entry));
        for sub in &resource.subresources {
            let mut entry = Map::new();
            entry.insert("name".into(), json!(format!("{}/{}", resource.plural, sub.name)));
            entry.insert("singularName".into(), json!(""));
            entry.insert("namespaced".into(), json!(resource.namespaced));
            if (sub.group.as_str(), sub.version.as_str())
                != (resource.group.as_str(), resource.version.as_str())
            {
                entry.insert("group".into(), json!(sub.group));
                entry.insert("version".into(), json!(sub.version));
            }
            entry.insert("kind".into(), json!(sub.kind));
            entry.insert("verbs".into(), json!(sub.verbs));
            listed.push(Value::Object(entry));
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let mut document = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": listed});
    if !group.is_empty() {
        document["apiVersion"] = json!("v1");
    }
    Some(document)
}

/// The same for all versions that share their storage.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    let (group, version) = resource.storage_version();
    let digest = ring::digest::digest(
        &ring::digest::SHA256,
        format!("{group}/{version}/{}", resource.kind).as_bytes(),
    );
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}

/// The aggregated document of `/api` or `/apis`.
fn aggregated(registry: &Registry, root: &str, headers: &HeaderMap) -> Response<Body> {
    let custom = registry.custom();
    custom
        .aggregated(root, || aggregated_document(registry, root))
        .answer(
            headers,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            "public",
        )
}

fn aggregated_document(registry: &Registry, root: &str) -> Document {
    let items: Vec<Value> = groups(registry)
        .iter()
        .filter(|(group, _)| group.is_empty() == (root == "api"))
        .map(|(group, versions)| {
            let listed: Vec<Value> = by_preference(versions)
                .into_iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        versions[version].iter().map(|r| aggregated_resource(r)).collect();
                    json!({"version": version, "freshness": "Current", "resources": resources})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": listed})
        })
        .collect();
    Document::new(&json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    }))
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Built-in resources leave the group of their own kind open, custom ones spell it out.
    let kind = |group: &str, version: &str, kind: &str| {
        let own = (group, version) == (resource.group.as_str(), resource.version.as_str());
        match resource.source {
            Source::BuiltIn { .. } if own => json!({"group": "", "version": "", "kind": kind}),
            _ => json!({"group": group, "version": version, "kind": kind}),
        }
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let subs: Vec<Value> = resource
            .subresources
            .iter()
            .map(|s| {
                json!({
                    "subresource": s.name,
                    "responseKind": kind(&s.group, &s.version, &s.kind),
                    "verbs": s.verbs,
                })
            })
            .collect();
        entry["subresources"] = Value::Array(subs);
    }
    entry
}

/// Dates of headers. A weekday that does not fit is nobody's business.
const DATES: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new().relaxed_weekday(true);

/// A document with an ETag, so that a client that has it already is spared the bytes.
#[derive(Debug)]
pub(crate) struct Document {
    bytes: Bytes,
    etag: String,
    /// Since when it says what it says, if that is told.
    since: Option<Timestamp>,
}

impl Document {
    pub(crate) fn new(document: &Value) -> Self {
        Self {
            bytes: Bytes::from(machinery_value::encode::to_vec(document)),
            etag: format!("\"{}\"", machinery_value::hash::canonical_hash(document)),
            since: None,
        }
    }

    /// The same, which says what it says since then.
    pub(crate) fn since(self, since: Timestamp) -> Self {
        Self {
            since: Some(since),
            ..self
        }
    }

    /// Whether the client has it already: by its ETag, or else by its time.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        match (headers.contains_key(header::IF_NONE_MATCH), self.since) {
            (true, _) => text(header::IF_NONE_MATCH) == Some(&self.etag),
            (false, Some(since)) => text(header::IF_MODIFIED_SINCE)
                .and_then(|time| DATES.parse_timestamp(time).ok())
                .is_some_and(|time| since <= time),
            (false, None) => false,
        }
    }

    /// The document, or that it has not changed since the client got it.
    pub(crate) fn answer(
        &self,
        headers: &HeaderMap,
        content_type: &'static str,
        cache_control: &'static str,
    ) -> Response<Body> {
        let mut response = if self.is_known(headers) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            Response::new(Body::full(self.bytes.clone()))
        };
        let out = response.headers_mut();
        out.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        out.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
        out.insert(header::VARY, HeaderValue::from_static("Accept"));
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            out.insert(header::ETAG, etag);
        }
        let since = self
            .since
            .and_then(|since| {
                rfc2822::DateTimePrinter::new()
                    .timestamp_to_rfc9110_string(&since)
                    .ok()
            })
            .and_then(|text| HeaderValue::from_str(&text).ok());
        if let Some(since) = since {
            out.insert(header::LAST_MODIFIED, since);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_known_by_its_etag_or_else_by_its_time() {
        let since = Timestamp::from_second(784_111_777).unwrap();
        let (timeless, document) = (Document::new(&json!({})), Document::new(&json!({})).since(since));
        let [before, then, after] = [36, 37, 38].map(|s| format!("Sun, 06 Nov 1994 08:49:{s} GMT"));
        let own = document.etag.clone();
        let table = [
            (None, None, false),
            (Some(own.as_str()), None, true),
            (Some("\"other\""), None, false),
            (None, Some(before.as_str()), false),
            (None, Some(then.as_str()), true),
            (None, Some(after.as_str()), true),
            (None, Some("yesterday"), false),
            // Who names an ETag is not told of times.
            (Some("\"other\""), Some(after.as_str()), false),
            (Some(own.as_str()), Some(before.as_str()), true),
        ];
        for (etag, time, known) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::IF_NONE_MATCH, etag), (header::IF_MODIFIED_SINCE, time)] {
                headers.extend(value.map(|value| (name, HeaderValue::from_str(value).unwrap())));
            }
            let answer = document.answer(&headers, "text/plain", "no-cache");
            assert_eq!(
                answer.status() == StatusCode::NOT_MODIFIED,
                known,
                "{etag:?} {time:?}"
            );
            assert_eq!(answer.headers()[header::LAST_MODIFIED], then.as_str());
            assert_eq!(timeless.is_known(&headers), etag == Some(own.as_str()));
        }
    }

    #[test]
    fn versions_are_preferred_by_stability_then_age() {
        let mut names = vec!["v1alpha1", "v2", "foo", "v1beta2", "v1", "v1beta10"];
        names.sort_by_key(|n| std::cmp::Reverse(rank(n)));
        assert_eq!(names, ["v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]);
    }
}
