//! What a request asks for: its path, verb and query, taken apart once.

use http::Method;
use machinery_value::labels::fields::FieldSelector;

/// The path and method of a request, as authorization and the handlers see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// Whether this is about API objects (`/api/v1/pods`) and not about a bare path (`/healthz`).
    pub(crate) is_resource: bool,
    /// The verb: get, list, watch, create, update, patch, delete, deletecollection; the lower-case method for bare paths.
    pub(crate) verb: &'static str,
    /// The API group; empty for core.
    pub(crate) group: String,
    /// The API version.
    pub(crate) version: String,
    /// The namespace; empty for cluster-scoped requests. A namespace object is in the namespace of its own name.
    pub(crate) namespace: String,
    /// The plural resource name.
    pub(crate) resource: String,
    /// The subresource, such as `status`.
    pub(crate) subresource: String,
    /// The object's name; empty for collections.
    pub(crate) name: String,
    /// The name to which a selector narrows a collection; empty for the whole of it.
    selected: String,
    /// The path as it was sent.
    pub(crate) path: String,
}

impl RequestInfo {
    /// Takes `method` and `path` apart. Paths outside `/api/VERSION/…` and `/apis/GROUP/VERSION/…` are not about resources.
    pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Self {
        let mut info = Self {
            path: path.to_owned(),
            verb: method_verb(method),
            ..Self::default()
        };
        let mut parts: std::collections::VecDeque<String> =
            path.trim_matches('/').split('/').map(percent_decode).collect();
        match parts.front().map(String::as_str) {
            Some("api") if parts.len() >= 3 => {
                parts.pop_front();
            }
            Some("apis") if parts.len() >= 4 => {
                parts.pop_front();
                info.group = parts.pop_front().unwrap_or_default();
            }
            _ => return info,
        }
        info.is_resource = true;
        info.version = parts.pop_front().unwrap_or_default();
        // The first form of watches, which old clients still use.
        let watch_path = parts.front().is_some_and(|p| p == "watch") && parts.len() > 1;
        if watch_path {
            parts.pop_front();
        }
        if parts.front().is_some_and(|p| p == "namespaces") && parts.len() > 1 {
            info.namespace = parts[1].clone();
            // `namespaces/x/status` is about the namespace itself.
            if parts.len() > 2 && !matches!(parts[2].as_str(), "status" | "finalize") {
                parts.drain(..2);
            }
        }
        info.resource = parts.pop_front().unwrap_or_default();
        info.name = parts.pop_front().unwrap_or_default();
        info.subresource = parts.into_iter().collect::<Vec<_>>().join("/");
        info.verb = match *method {
            Method::POST => "create",
            Method::GET if watch_path => "watch",
            Method::GET | Method::HEAD if info.name.is_empty() && query.watch() => "watch",
            Method::GET | Method::HEAD if info.name.is_empty() => "list",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if info.name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            _ => "",
        };
        if matches!(info.verb, "list" | "watch") && info.name.is_empty() && !watch_path {
            info.selected = selected_name(query);
        }
        info
    }

    /// The name that authorization goes by: whoever lists a single object asks for that object.
    pub(crate) fn target_name(&self) -> &str {
        if self.name.is_empty() {
            &self.selected
        } else {
            &self.name
        }
    }
}

fn method_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}

/// The one name that the field selector lets through, if it could stand in a path.
fn selected_name(query: &Query) -> String {
    let selector = query.get("fieldSelector");
    if selector.is_empty() {
        return String::new();
    }
    let selector = FieldSelector::parse(selector).ok();
    let name = selector
        .as_ref()
        .and_then(|selector| selector.exact("metadata.name"))
        .unwrap_or("");
    if matches!(name, "." | "..") || name.contains(['/', '%']) {
        String::new()
    } else {
        name.to_owned()
    }
}

fn percent_decode(part: &str) -> String {
    if part.contains('%') {
        percent_encoding::percent_decode_str(part)
            .decode_utf8_lossy()
            .into_owned()
    } else {
        part.to_owned()
    }
}

/// The query of a request. The first of several values counts, as in Go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Takes a raw query string apart.
    pub(crate) fn parse(raw: Option<&str>) -> Self {
        let Some(raw) = raw else { return Self::default() };
        Self(
            form_urlencoded::parse(raw.as_bytes())
                .map(|(k, v)| (k.into_owned(), v.into_owned()))
                .collect(),
        )
    }

    /// The first value of `key`; empty when it is missing.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map_or("", |(_, v)| v.as_str())
    }

    /// All values of `key`.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    /// Whether `key` is there at all.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    /// A boolean parameter as Go's conversion reads it: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.has(key) && !matches!(self.get(key), "false" | "0")
    }

    /// Whether this is a watch.
    pub(crate) fn watch(&self) -> bool {
        self.flag("watch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, uri: &str, expected: &str) {
        let (path, query) = uri.split_once('?').map_or((uri, None), |(p, q)| (p, Some(q)));
        let i = RequestInfo::parse(&method, path, &Query::parse(query));
        let got = format!(
            "{} {} {} {} {} {} {}",
            i.verb, i.group, i.version, i.namespace, i.resource, i.name, i.subresource
        );
        assert_eq!(got, expected, "{method} {uri}");
    }

    #[test]
    fn paths_are_taken_apart() {
        check(Method::GET, "/api/v1/pods", "list  v1  pods  ");
        check(
            Method::GET,
            "/api/v1/namespaces/a/pods?watch=true",
            "watch  v1 a pods  ",
        );
        check(
            Method::GET,
            "/api/v1/namespaces/a/pods?watch=false",
            "list  v1 a pods  ",
        );
        check(Method::GET, "/api/v1/namespaces/a", "get  v1 a namespaces a ");
        check(
            Method::PUT,
            "/api/v1/namespaces/a/finalize",
            "update  v1 a namespaces a finalize",
        );
        check(
            Method::GET,
            "/api/v1/namespaces/a/status",
            "get  v1 a namespaces a status",
        );
        check(
            Method::DELETE,
            "/apis/apps/v1/namespaces/a/deployments",
            "deletecollection apps v1 a deployments  ",
        );
        check(
            Method::PATCH,
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            "patch apps v1 a deployments d scale",
        );
        check(
            Method::GET,
            "/api/v1/watch/namespaces/a/pods/p",
            "watch  v1 a pods p ",
        );
        check(
            Method::GET,
            "/api/v1/namespaces/a/pods/p?watch=1",
            "get  v1 a pods p ",
        );
        check(Method::GET, "/healthz", "get      ");
        check(Method::GET, "/apis/apps/v1", "get      ");
        check(
            Method::GET,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Abasic-user",
            "get rbac.authorization.k8s.io v1  clusterroles system:basic-user ",
        );
    }

    #[test]
    fn a_selector_may_name_the_object() {
        let name = |method: Method, path: &str, query: &str| {
            RequestInfo::parse(&method, path, &Query::parse(Some(query)))
                .target_name()
                .to_owned()
        };
        let pods = "/api/v1/pods";
        assert_eq!(name(Method::GET, pods, "fieldSelector=metadata.name%3Da"), "a");
        assert_eq!(
            name(
                Method::GET,
                pods,
                "watch=1&fieldSelector=status.phase%3Db,metadata.name%3Da"
            ),
            "a"
        );
        for query in [
            "fieldSelector=metadata.name!%3Da",
            "fieldSelector=metadata.name%3Da%2Fb",
            "fieldSelector=%3D%3D",
            "",
        ] {
            assert_eq!(name(Method::GET, pods, query), "", "{query}");
        }
        assert_eq!(name(Method::DELETE, pods, "fieldSelector=metadata.name%3Da"), "");
        assert_eq!(
            name(
                Method::GET,
                "/api/v1/namespaces/n/pods/p",
                "fieldSelector=metadata.name%3Da"
            ),
            "p"
        );
    }
}
