//! What a server serves.

use std::collections::BTreeMap;

use http::HeaderValue;
use serde::Deserialize;

use crate::link::{Link, LinkError};
use crate::resource::{Resource, push_escaped};

/// The aggregated form first; a server that does not know it answers with the old one.
const AGGREGATED: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
);

/// The resources of a server. Subresources are not among them.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    by_kind: BTreeMap<(String, String), Resource>,
    /// Keys of `by_kind`, in the server's order.
    preferred: Vec<(String, String)>,
    unknown: Vec<Unknown>,
}

/// A version of a group whose resources the server could not tell in full. A kind of it that is missing may still exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The group; never empty.
    pub group: String,
    /// The version.
    pub version: String,
    /// Why.
    pub reason: String,
}

impl Discovery {
    /// The resource of a kind.
    pub fn get(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.by_kind.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// All resources, ordered by API version and kind.
    pub fn all(&self) -> impl Iterator<Item = &Resource> {
        self.by_kind.values()
    }

    /// Each kind of each group once, in the version that the server prefers.
    pub fn preferred(&self) -> impl Iterator<Item = &Resource> {
        self.preferred.iter().filter_map(|key| self.by_kind.get(key))
    }

    /// What could not be told.
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// Whether a kind that is missing here may exist all the same.
    pub fn may_exist(&self, api_version: &str, kind: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.get(api_version, kind).is_some()
            || self
                .unknown
                .iter()
                .any(|u| u.group == group && u.version == version)
    }

    /// Adds the versions of one group, the preferred one first.
    fn add_group(&mut self, group: &str, versions: Vec<(String, Vec<Resource>)>) {
        let mut seen: Vec<String> = Vec::new();
        for (_, resources) in versions {
            for resource in resources {
                let key = (resource.api_version(), resource.kind.clone());
                let first = self.by_kind.insert(key.clone(), resource).is_none();
                if first && !seen.contains(&key.1) {
                    seen.push(key.1.clone());
                    self.preferred.push(key);
                }
            }
        }
        tracing::trace!(group, kinds = seen.len(), "discovered");
    }
}

/// Asks a server what it serves. Groups that fail alone are told in [`Discovery::unknown`].
pub async fn discover(link: &Link) -> Result<Discovery, LinkError> {
    let mut discovery = Discovery::default();
    for path in ["/api", "/apis"] {
        let answer = link.get_as(path, AGGREGATED).await?;
        let answer: Answer = serde_json::from_slice(&answer)
            .map_err(|e| LinkError::BadAnswer(format!("discovery at {path}: {e}")))?;
        for group in answer.items {
            aggregated(&mut discovery, group);
        }
        if !answer.versions.is_empty() {
            legacy(link, &mut discovery, "", answer.versions).await?;
        }
        for group in answer.groups {
            let mut versions: Vec<String> = group.versions.into_iter().map(|v| v.version).collect();
            if let Some(preferred) = group.preferred_version {
                versions.sort_by_key(|v| *v != preferred.version);
            }
            legacy(link, &mut discovery, &group.name, versions).await?;
        }
    }
    Ok(discovery)
}

fn aggregated(discovery: &mut Discovery, group: Group) {
    let name = group.metadata.name;
    let mut versions = Vec::new();
    for version in group.versions {
        if version.freshness == "Stale" {
            discovery.unknown.push(Unknown {
                group: name.clone(),
                version: version.version.clone(),
                reason: "the server behind it does not answer".into(),
            });
        }
        let resources = version.resources.into_iter().filter_map(|served| {
            let kind = served.response_kind?;
            Some(Resource {
                group: Some(kind.group)
                    .filter(|g| !g.is_empty())
                    .unwrap_or_else(|| name.clone()),
                version: Some(kind.version)
                    .filter(|v| !v.is_empty())
                    .unwrap_or_else(|| version.version.clone()),
                plural: served.resource,
                kind: kind.kind,
                namespaced: served.scope == "Namespaced",
                verbs: served.verbs,
            })
        });
        versions.push((version.version.clone(), resources.collect()));
    }
    discovery.add_group(&name, versions);
}

/// Asks for each version of a group.
async fn legacy(
    link: &Link,
    discovery: &mut Discovery,
    group: &str,
    versions: Vec<String>,
) -> Result<(), LinkError> {
    let mut told = Vec::new();
    for version in versions {
        let mut path = String::from(if group.is_empty() { "/api" } else { "/apis" });
        for segment in [group, version.as_str()].into_iter().filter(|s| !s.is_empty()) {
            path.push('/');
            push_escaped(&mut path, segment);
        }
        let list = match link.get(&path).await {
            Ok(answer) => serde_json::from_slice::<ResourceList>(&answer)
                .map_err(|e| LinkError::BadAnswer(format!("discovery at {path}: {e}"))),
            Err(error) => Err(error),
        };
        match list {
            Ok(list) => {
                let resources = list.resources.into_iter().filter(|r| !r.name.contains('/'));
                let resources = resources.map(|r| Resource {
                    group: r
                        .group
                        .filter(|g| !g.is_empty())
                        .unwrap_or_else(|| group.to_owned()),
                    version: r
                        .version
                        .filter(|v| !v.is_empty())
                        .unwrap_or_else(|| version.clone()),
                    plural: r.name,
                    kind: r.kind,
                    namespaced: r.namespaced,
                    verbs: r.verbs,
                });
                told.push((version.clone(), resources.collect()));
            }
            // Without the core group nothing can be said of the server at all.
            Err(error) if group.is_empty() => return Err(error),
            Err(error) => discovery.unknown.push(Unknown {
                group: group.to_owned(),
                version,
                reason: error.to_string(),
            }),
        }
    }
    discovery.add_group(group, told);
    Ok(())
}

/// Either form of the answer at `/api` and `/apis`.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Answer {
    items: Vec<Group>,
    versions: Vec<String>,
    groups: Vec<LegacyGroup>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    metadata: GroupMeta,
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupMeta {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
    freshness: String,
    resources: Vec<Served>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Served {
    resource: String,
    response_kind: Option<ResponseKind>,
    scope: String,
    verbs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LegacyGroup {
    name: String,
    versions: Vec<LegacyVersion>,
    preferred_version: Option<LegacyVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyVersion {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceList {
    resources: Vec<LegacyResource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyResource {
    name: String,
    kind: String,
    group: Option<String>,
    version: Option<String>,
    namespaced: bool,
    verbs: Vec<String>,
}
