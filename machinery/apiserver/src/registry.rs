//! Which resources are served: the built-in ones, shared by every server of the process, and the custom ones of this server.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use jiff::Timestamp;

use crate::convert;
use crate::discovery::Document;
use crate::resource::{Names, Resource, Source, Subresource};

/// Resources by their place in the API, in the order in which discovery lists them.
#[derive(Debug, Default)]
pub struct Catalog {
    by_path: HashMap<String, Arc<Resource>>,
    by_kind: HashMap<String, Arc<Resource>>,
    all: Vec<Arc<Resource>>,
    /// What discovery says while these are the custom resources, of `/api` and of `/apis`: every client asks for it.
    aggregated: [OnceLock<Document>; 2],
    /// The list of OpenAPI documents, likewise.
    openapi: OnceLock<Document>,
    /// Since when these are the custom resources, in seconds; later than those before them, even if that takes a second that
    /// has not come: who asks for what is newer must not miss a change of the same second.
    since: i64,
}

impl Catalog {
    /// Since when the documents about what is served are as they are.
    pub(crate) fn since(&self) -> Timestamp {
        Timestamp::from_second(self.since).unwrap_or_default()
    }

    /// The aggregated document of a root, made when somebody first asks.
    pub(crate) fn aggregated(&self, root: &str, make: impl FnOnce() -> Document) -> &Document {
        self.aggregated[usize::from(root == "apis")].get_or_init(make)
    }

    /// The list of OpenAPI documents, made when somebody first asks.
    pub(crate) fn openapi(&self, make: impl FnOnce() -> Document) -> &Document {
        self.openapi.get_or_init(make)
    }

    pub(crate) fn new(resources: Vec<Resource>) -> Self {
        Self::from_shared(resources.into_iter().map(Arc::new).collect())
    }

    pub(crate) fn from_shared(all: Vec<Arc<Resource>>) -> Self {
        let mut catalog = Self {
            all,
            ..Self::default()
        };
        for resource in &catalog.all {
            let api_version = resource.api_version();
            catalog
                .by_path
                .insert(format!("{api_version}/{}", resource.plural), resource.clone());
            catalog
                .by_kind
                .entry(format!("{api_version}/{}", resource.kind))
                .or_insert_with(|| resource.clone());
        }
        catalog
    }

    /// The resource at `group/version/plural`.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let path = if group.is_empty() {
            format!("{version}/{plural}")
        } else {
            format!("{group}/{version}/{plural}")
        };
        self.by_path.get(&path)
    }

    /// Every resource, in discovery's order.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.all
    }
}

/// The resources compiled in, built once for the whole process.
pub(crate) fn built_in() -> &'static Catalog {
    static BUILT_IN: OnceLock<Catalog> = OnceLock::new();
    BUILT_IN.get_or_init(|| {
        let resources = machinery_kinds::catalog::catalog().entries().iter().map(|entry| {
            let names = Names {
                group: entry.group.to_string(),
                version: entry.version.to_string(),
                plural: entry.plural.to_string(),
                singular: entry.singular.to_string(),
                kind: entry.kind.to_string(),
                list_kind: format!("{}List", entry.kind),
            };
            let conversion = convert::conversion(&names.group, &names.version, &names.kind);
            let mut resource = Resource::new(names, entry.namespaced, Source::BuiltIn { conversion });
            resource.short_names = entry.short_names.clone();
            resource.categories = entry.categories.clone();
            resource.verbs = entry.verbs.clone();
            resource.subresources = entry
                .subresources
                .iter()
                .map(|sub| Subresource {
                    name: sub.name.to_string(),
                    group: sub.group.to_string(),
                    version: sub.version.to_string(),
                    kind: sub.kind.to_string(),
                    verbs: sub.verbs.clone(),
                })
                .collect();
            resource
        });
        Catalog::new(resources.collect())
    })
}

/// What one server serves.
#[derive(Debug, Default)]
pub struct Registry {
    custom: ArcSwap<Catalog>,
}

impl Registry {
    /// The resource at `group/version/plural`.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        built_in()
            .find(group, version, plural)
            .cloned()
            .or_else(|| self.custom.load().find(group, version, plural).cloned())
    }

    /// The resource whose objects are of `kind` in `api_version`.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let path = format!("{api_version}/{kind}");
        built_in()
            .by_kind
            .get(&path)
            .cloned()
            .or_else(|| self.custom.load().by_kind.get(&path).cloned())
    }

    /// The custom resources.
    pub fn custom(&self) -> Arc<Catalog> {
        self.custom.load_full()
    }

    /// Replaces the custom resources.
    pub(crate) fn set_custom(&self, mut catalog: Catalog, now: Timestamp) {
        catalog.since = now.as_second().max(self.custom.load().since + 1);
        self.custom.store(Arc::new(catalog));
    }

    /// Every resource: built-in, then custom.
    pub fn all(&self) -> Vec<Arc<Resource>> {
        let mut all = built_in().all.clone();
        all.extend(self.custom.load().all.iter().cloned());
        all
    }

    /// One resource for each place where objects are stored, whatever versions serve them.
    pub(crate) fn stored(&self) -> Vec<Arc<Resource>> {
        let mut by_prefix: BTreeMap<String, Arc<Resource>> = BTreeMap::new();
        for resource in self.all() {
            if resource.verbs.iter().any(|v| v == "list") && resource.conversion().is_none() {
                by_prefix.entry(resource.prefix.clone()).or_insert(resource);
            }
        }
        by_prefix.into_values().collect()
    }
}
