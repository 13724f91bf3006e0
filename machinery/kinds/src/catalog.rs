//! Which resources are served, under which names, with which verbs.
//!
//! The facts come from the discovery document of a real kube-apiserver, which is part of this crate; what discovery
//! does not tell (generations, unconditional updates) comes from how each kind is stored.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::Gvk;

const DISCOVERY: &str = include_str!("../data/discovery.json");

/// All built-in resources, in the order of discovery.
#[derive(Debug)]
pub struct Catalog {
    entries: Vec<Entry>,
}

/// One resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The API group, "" for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name in paths, such as `pods`.
    pub plural: String,
    /// The name for one, such as `pod`.
    pub singular: String,
    /// The kind of its objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Other names, such as `po`.
    pub short_names: Vec<String>,
    /// The groups of resources it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// What is below its objects.
    pub subresources: Vec<Subresource>,
}

/// A subresource such as `status` or `scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name in paths.
    pub name: String,
    /// The group of the kind that it speaks.
    pub group: String,
    /// The version of the kind that it speaks.
    pub version: String,
    /// The kind that it speaks, such as `Scale`; often that of the object.
    pub kind: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// The built-in resources.
pub fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| Catalog {
        entries: parse(DISCOVERY).expect("the discovery document is part of this crate"),
    })
}

impl Catalog {
    /// All resources.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The resource at a path.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.group == group && entry.version == version && entry.plural == plural)
    }

    /// The resource of a kind.
    pub fn find(&self, gvk: Gvk<'_>) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.gvk() == gvk)
    }

    /// The groups with their versions, preferred version first, in the order of discovery.
    pub fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for entry in &self.entries {
            match groups.iter_mut().find(|(group, _)| *group == entry.group) {
                Some((_, versions)) if !versions.contains(&entry.version.as_str()) => {
                    versions.push(&entry.version)
                }
                Some(_) => {}
                None => groups.push((&entry.group, vec![&entry.version])),
            }
        }
        groups
    }
}

impl Entry {
    /// The kind.
    pub fn gvk(&self) -> Gvk<'_> {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Whether status is written through its own subresource.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether objects are kept, rather than answered and forgotten as reviews are.
    pub fn is_stored(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "get" || verb == "list")
    }

    /// Where objects are kept: the same for all versions and groups that show the same objects.
    pub fn storage(&self) -> (&str, &str) {
        match (self.group.as_str(), self.plural.as_str()) {
            ("events.k8s.io", "events") => ("", "events"),
            (group, plural) => (group, plural),
        }
    }

    /// Whether objects count the changes of their spec in `metadata.generation`.
    pub fn has_generation(&self) -> bool {
        crate::strategy::generation_rule(self.gvk()).counts()
    }
}

#[derive(Deserialize)]
struct Document {
    items: Vec<GroupItem>,
}

#[derive(Deserialize)]
struct GroupItem {
    #[serde(default)]
    metadata: GroupMeta,
    versions: Vec<VersionItem>,
}

#[derive(Deserialize, Default)]
struct GroupMeta {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct VersionItem {
    version: String,
    resources: Vec<ResourceItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceItem {
    resource: String,
    response_kind: KindItem,
    scope: String,
    singular_resource: String,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<SubresourceItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceItem {
    subresource: String,
    response_kind: KindItem,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct KindItem {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
}

impl KindItem {
    /// An empty group and version stand for those of the resource.
    fn resolve(self, group: &str, version: &str) -> (String, String, String) {
        if self.group.is_empty() && self.version.is_empty() {
            (group.to_owned(), version.to_owned(), self.kind)
        } else {
            (self.group, self.version, self.kind)
        }
    }
}

fn parse(text: &str) -> serde_json::Result<Vec<Entry>> {
    let document: Document = serde_json::from_str(text)?;
    let mut entries = Vec::new();
    for group in document.items {
        for version in group.versions {
            for resource in version.resources {
                entries.push(entry(&group.metadata.name, &version.version, resource));
            }
        }
    }
    Ok(entries)
}

fn entry(group: &str, version: &str, item: ResourceItem) -> Entry {
    let (_, _, kind) = item.response_kind.resolve(group, version);
    let subresources = item
        .subresources
        .into_iter()
        .map(|sub| {
            let (group, version, kind) = sub.response_kind.resolve(group, version);
            Subresource {
                name: sub.subresource,
                group,
                version,
                kind,
                verbs: sub.verbs,
            }
        })
        .collect();
    Entry {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: item.resource,
        singular: item.singular_resource,
        kind,
        namespaced: item.scope == "Namespaced",
        short_names: item.short_names,
        categories: item.categories,
        verbs: item.verbs,
        subresources,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_tells_what_discovery_says() {
        let pods = catalog().resource("", "v1", "pods").unwrap();
        assert_eq!(
            (pods.kind.as_str(), pods.singular.as_str(), pods.namespaced),
            ("Pod", "pod", true)
        );
        assert_eq!(pods.short_names, ["po"]);
        assert!(pods.has_status() && pods.is_stored() && pods.has_generation());
        let eviction = pods.subresource("eviction").unwrap();
        assert_eq!(
            (
                eviction.group.as_str(),
                eviction.version.as_str(),
                eviction.kind.as_str()
            ),
            ("policy", "v1", "Eviction")
        );
        let scale = catalog()
            .resource("apps", "v1", "deployments")
            .unwrap()
            .subresource("scale")
            .unwrap();
        assert_eq!(
            (scale.group.as_str(), scale.kind.as_str()),
            ("autoscaling", "Scale")
        );
        let status = pods.subresource("status").unwrap();
        assert_eq!(
            (
                status.group.as_str(),
                status.version.as_str(),
                status.kind.as_str()
            ),
            ("", "v1", "Pod")
        );
    }

    #[test]
    fn one_storage_may_have_several_faces() {
        let events = catalog().resource("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(events.storage(), ("", "events"));
        let versions: Vec<_> = catalog()
            .entries()
            .iter()
            .filter(|entry| entry.storage() == ("autoscaling", "horizontalpodautoscalers"))
            .map(|entry| entry.version.as_str())
            .collect();
        assert_eq!(versions, ["v2", "v1"]);
        assert_eq!(catalog().groups()[0], ("", vec!["v1"]));
    }

    #[test]
    fn reviews_are_not_stored() {
        for (group, plural) in [
            ("authorization.k8s.io", "subjectaccessreviews"),
            ("authentication.k8s.io", "tokenreviews"),
        ] {
            assert!(
                !catalog().resource(group, "v1", plural).unwrap().is_stored(),
                "{plural}"
            );
        }
    }
}
