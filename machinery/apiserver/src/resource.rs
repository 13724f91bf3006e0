//! Resources: what is served under one plural of one version, built-in or custom.

use std::sync::Arc;

use bytes::Bytes;
use machinery_schema::SchemaRef;
use machinery_value::Value;

use crate::convert::Conversion;
use crate::custom::CustomVersion;
use crate::object::Object;
use crate::status::Subject;
use crate::{meta, object::Stored};

/// A resource of one group and version.
#[derive(Debug)]
pub struct Resource {
    /// The API group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name, as in paths.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// The kind of one object.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// The verbs served.
    pub verbs: Vec<String>,
    /// Subresources such as `status`.
    pub subresources: Vec<Subresource>,
    /// Where it comes from.
    pub source: Source,
    /// Whether its definition is being deleted.
    pub(crate) is_going: bool,
    /// The key prefix of its objects; versions of one resource share it.
    pub(crate) prefix: String,
    /// `{"kind":…,"apiVersion":…,`: what goes in front of a stored body.
    head: Bytes,
}

/// A subresource of a resource.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// `status`, `scale`, …
    pub name: String,
    /// The group of the kind that it serves.
    pub group: String,
    /// The version of the kind that it serves.
    pub version: String,
    /// The kind that it serves.
    pub kind: String,
    /// The verbs served.
    pub verbs: Vec<String>,
}

/// Where a resource comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Compiled in.
    BuiltIn {
        /// How its shape differs from the stored one, for a second version of a stored kind.
        conversion: Option<&'static Conversion>,
    },
    /// From a CustomResourceDefinition.
    Custom(Arc<CustomVersion>),
}

/// The names of a resource, from which the rest is built.
pub(crate) struct Names {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
}

impl Resource {
    pub(crate) fn new(names: Names, namespaced: bool, source: Source) -> Self {
        let Names {
            group,
            version,
            plural,
            singular,
            kind,
            list_kind,
        } = names;
        let api_version = if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        };
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},",
            Value::from(kind.clone()),
            Value::from(api_version)
        );
        let storage_group = match &source {
            Source::BuiltIn {
                conversion: Some(conversion),
            } => conversion.storage_group,
            _ => &group,
        };
        let prefix = key_prefix(storage_group, &plural);
        Self {
            prefix,
            head: head.into(),
            group,
            version,
            plural,
            singular,
            kind,
            list_kind,
            namespaced,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: Vec::new(),
            subresources: Vec::new(),
            source,
            is_going: false,
        }
    }

    /// `apps/v1`, or `v1` for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn gvk(&self) -> machinery_kinds::Gvk<'_> {
        machinery_kinds::Gvk::new(&self.group, &self.version, &self.kind)
    }

    /// The group and version in which objects are stored.
    pub(crate) fn storage_version(&self) -> (&str, &str) {
        match &self.source {
            Source::BuiltIn {
                conversion: Some(conversion),
            } => (conversion.storage_group, conversion.storage_version),
            // Kinds that the real server still stores in an older version.
            Source::BuiltIn { conversion: None }
                if matches!(
                    self.kind.as_str(),
                    "CustomResourceDefinition" | "VolumeAttributesClass"
                ) =>
            {
                (&self.group, "v1beta1")
            }
            Source::BuiltIn { conversion: None } => (&self.group, &self.version),
            Source::Custom(custom) => (&self.group, &custom.storage_version),
        }
    }

    /// The resource as error messages name it: `deployments.apps`.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            group: &self.group,
            name: &self.plural,
        }
    }

    /// The kind as error messages name it: `Deployment.apps`; that of the stored object, where there are two shapes.
    pub fn kind_subject(&self) -> Subject<'_> {
        Subject {
            group: self.storage_version().0,
            name: &self.kind,
        }
    }

    /// The store's key of one object.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced {
            format!("{}{namespace}/{name}", self.prefix)
        } else {
            format!("{}{name}", self.prefix)
        }
    }

    /// The prefix of all keys in `namespace`, or of all when it is empty.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        if self.namespaced && !namespace.is_empty() {
            format!("{}{namespace}/", self.prefix)
        } else {
            self.prefix.clone()
        }
    }

    /// Namespace and name of a key of this resource.
    pub(crate) fn split_key<'k>(&self, key: &'k str) -> (&'k str, &'k str) {
        let rest = key.strip_prefix(self.prefix.as_str()).unwrap_or(key);
        if self.namespaced {
            rest.split_once('/').unwrap_or(("", rest))
        } else {
            ("", rest)
        }
    }

    /// The definition's part, for a custom resource.
    pub(crate) fn custom(&self) -> Option<&Arc<CustomVersion>> {
        match &self.source {
            Source::Custom(custom) => Some(custom),
            Source::BuiltIn { .. } => None,
        }
    }

    pub(crate) fn conversion(&self) -> Option<&'static Conversion> {
        match &self.source {
            Source::BuiltIn { conversion } => *conversion,
            Source::Custom(_) => None,
        }
    }

    /// Whether a deletion answers with the object itself, as the real server's registries declare.
    pub(crate) fn returns_deleted(&self) -> bool {
        let kind = self.kind.as_str();
        match (&self.source, self.group.as_str()) {
            (Source::Custom(_), _) => false,
            (_, "") => matches!(
                kind,
                "Pod"
                    | "Service"
                    | "ServiceAccount"
                    | "PersistentVolume"
                    | "PersistentVolumeClaim"
                    | "PodTemplate"
                    | "ResourceQuota"
            ),
            (_, "storage.k8s.io") => kind != "CSIStorageCapacity",
            (_, "resource.k8s.io") => true,
            _ => false,
        }
    }

    /// The subresource `name`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// The schema, where there is one: merge keys for strategic patches, list types.
    pub(crate) fn schema(&self) -> Option<SchemaRef<'_>> {
        match &self.source {
            Source::BuiltIn { .. } => machinery_kinds::schemas::schema(self.gvk()),
            Source::Custom(custom) => Some(custom.schema.root()),
        }
    }

    /// The edition of the schema that new writes of this resource carry.
    pub(crate) fn edition(&self) -> u32 {
        self.custom().map_or(1, |custom| custom.edition)
    }

    /// Whether the stored bytes are what this version serves, so that they need no parse.
    pub(crate) fn serves_as_stored(&self, object: &Object) -> bool {
        match &self.source {
            Source::BuiltIn { conversion } => conversion.is_none() && !self.may_hide(object),
            Source::Custom(custom) => object.edition() == custom.edition,
        }
    }

    /// Whether a read may have to leave out something that is stored; told without a parse.
    fn may_hide(&self, object: &Object) -> bool {
        machinery_kinds::strategy::hides(self.gvk()) && object.mentions("\"ExternalName\"")
    }

    /// Takes out of a content what reads leave out.
    pub(crate) fn hide(&self, content: &mut Value) {
        if self.custom().is_none() {
            machinery_kinds::strategy::hide(self.gvk(), content);
        }
    }

    /// The content of a stored object as reads show it, without apiVersion and kind.
    pub(crate) fn shown(&self, object: &Object) -> Value {
        let mut content = self.content(object);
        self.hide(&mut content);
        content
    }

    /// The whole content of a stored object in this version's shape, without apiVersion and kind.
    pub(crate) fn content(&self, object: &Object) -> Value {
        let mut content = object.content();
        match &self.source {
            Source::BuiltIn {
                conversion: Some(conversion),
            } => conversion.serve(&self.group, &self.version, &self.kind, &mut content),
            Source::BuiltIn { conversion: None } => {}
            Source::Custom(custom) => {
                if object.edition() != custom.edition {
                    custom.read(&mut content);
                }
            }
        }
        content
    }

    /// An object as reads show it, with apiVersion and kind.
    pub(crate) fn whole(&self, stored: &Stored) -> Value {
        let mut content = self.shown(&stored.value);
        meta::set_type(&mut content, &self.api_version(), &self.kind);
        content
    }

    /// The bytes of an object as reads show it, with apiVersion and kind, in pieces.
    pub(crate) fn encode(&self, stored: &Stored) -> [Bytes; 2] {
        if self.serves_as_stored(&stored.value) {
            self.splice(stored.value.body())
        } else {
            let content = machinery_value::encode::to_vec(&self.shown(&stored.value));
            self.splice(&content.into())
        }
    }

    /// The envelope in front of the bytes of a content.
    pub(crate) fn splice(&self, body: &Bytes) -> [Bytes; 2] {
        // A body is an object with at least its metadata, so that a comma after the envelope is right.
        [self.head.clone(), body.slice(1..)]
    }
}

/// The key prefix of a resource's objects.
pub(crate) fn key_prefix(group: &str, plural: &str) -> String {
    format!("/{}/{plural}/", if group.is_empty() { "core" } else { group })
}
