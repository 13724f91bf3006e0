//! The kinds of a server, by the words that kubectl takes for them.

use std::sync::Arc;

use http::Method;
use lockgate_hub::Resource;
use serde_json::Value;

use super::{Problem, Server};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The kinds of a server, in its order.
#[derive(Debug, Default)]
pub(super) struct Kinds(Vec<Served>);

#[derive(Debug)]
struct Served {
    resource: Resource,
    singular: String,
    short: Vec<String>,
}

impl Server {
    /// Asks the server what it serves, and remembers it.
    pub(super) async fn discover(&self) -> Result<Arc<Kinds>, Problem> {
        let mut kinds = Vec::new();
        for path in ["/api", "/apis"] {
            let answer = self
                .send_accepting(Method::GET, path, "", String::new(), AGGREGATED)
                .await?;
            read(&answer, &mut kinds);
        }
        let kinds = Arc::new(Kinds(kinds));
        *self.kinds.lock() = kinds.clone();
        Ok(kinds)
    }
}

fn read(answer: &Value, kinds: &mut Vec<Served>) {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in list(&answer["items"]) {
        for version in list(&group["versions"]) {
            for resource in list(&version["resources"]) {
                let texts = |value: &Value| -> Vec<String> { list(value).iter().map(text).collect() };
                let mut served = Resource::new(
                    &text(&group["metadata"]["name"]),
                    &text(&version["version"]),
                    &text(&resource["resource"]),
                    &text(&resource["responseKind"]["kind"]),
                    resource["scope"] == "Namespaced",
                );
                served.verbs = texts(&resource["verbs"]);
                kinds.push(Served {
                    resource: served,
                    singular: text(&resource["singularResource"]),
                    short: texts(&resource["shortNames"]),
                });
            }
        }
    }
}

impl Kinds {
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Resource> {
        let found =
            |served: &&Served| served.resource.kind == kind && served.resource.api_version() == api_version;
        self.0.iter().find(found).map(|served| served.resource.clone())
    }

    /// By plural, singular, short name or kind, each with or without `.group`.
    pub(super) fn of_word(&self, word: &str) -> Option<Resource> {
        let (name, group) = match word.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (word, None),
        };
        let found = |served: &&Served| {
            group.is_none_or(|group| served.resource.group == group)
                && (served.resource.plural == name
                    || served.singular == name
                    || served.resource.kind.to_lowercase() == name
                    || served.short.iter().any(|short| short == name))
        };
        self.0.iter().find(found).map(|served| served.resource.clone())
    }

    /// What can be listed and deleted: each kind of each group once.
    pub(super) fn listable(&self) -> Vec<Resource> {
        let mut seen = Vec::new();
        let mut resources = Vec::new();
        for served in &self.0 {
            let resource = &served.resource;
            let name = (resource.group.clone(), resource.plural.clone());
            if resource.can("list") && resource.can("delete") && !seen.contains(&name) {
                seen.push(name);
                resources.push(resource.clone());
            }
        }
        resources
    }
}
