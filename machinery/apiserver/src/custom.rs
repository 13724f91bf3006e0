//! Custom resources: one served version of a CustomResourceDefinition, ready for use.

use std::sync::atomic::{AtomicU32, Ordering};

use machinery_schema::CustomSchema;
use machinery_table::CustomColumns;
use machinery_value::Value;
use machinery_value::hash::ValueHash;
use machinery_value::jsonpath::JsonPath;
use tokio::sync::watch;

/// What a served version of a definition says about its objects.
#[derive(Debug)]
pub struct CustomVersion {
    /// A number that no other version or edition of any definition has: objects written under it need no second look.
    pub(crate) edition: u32,
    /// The definition's spec that it was made from: as long as that is the same, so is the version.
    made_from: ValueHash,
    /// Up to which revision the definition said this; none while it still does.
    retired: watch::Sender<Option<u64>>,
    pub(crate) schema: CustomSchema,
    /// The version that the definition stores.
    pub(crate) storage_version: String,
    pub(crate) columns: CustomColumns,
    /// Selectable fields: the name in a field selector, and where it is.
    pub(crate) selectable: Vec<(String, JsonPath)>,
    /// Whether there is a status subresource.
    pub(crate) has_status: bool,
    /// The scale subresource's paths.
    pub(crate) scale: Option<ScalePaths>,
    /// The warning for clients of a deprecated version.
    pub(crate) deprecation: Option<String>,
}

/// Where a custom resource keeps what its scale subresource shows.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    pub(crate) selector: Option<Vec<String>>,
}

static NEXT_EDITION: AtomicU32 = AtomicU32::new(2);

impl CustomVersion {
    /// Makes a version from its entry in `spec.versions`; a definition that was admitted has no error here.
    /// Clients of a deprecated version are told to use its `successor`.
    pub(crate) fn new(
        (group, kind): (&str, &str),
        made_from: ValueHash,
        storage_version: &str,
        version: &Value,
        successor: Option<&str>,
    ) -> Result<Self, String> {
        let name = version["name"].as_str().unwrap_or("");
        let schema = CustomSchema::new(&version["schema"]["openAPIV3Schema"]).map_err(|e| e.to_string())?;
        let mut selectable = Vec::new();
        for field in version["selectableFields"].as_array().into_iter().flatten() {
            let path = field["jsonPath"].as_str().unwrap_or("");
            let parsed = JsonPath::parse(path).map_err(|e| e.to_string())?;
            selectable.push((path.trim_start_matches('.').to_owned(), parsed));
        }
        let scale = &version["subresources"]["scale"];
        let path = |key: &str| -> Option<Vec<String>> {
            let text = scale[key].as_str()?.trim_start_matches('.');
            Some(text.split('.').map(str::to_owned).collect())
        };
        let scale = match (path("specReplicasPath"), path("statusReplicasPath")) {
            (Some(spec_replicas), Some(status_replicas)) => Some(ScalePaths {
                spec_replicas,
                status_replicas,
                selector: path("labelSelectorPath"),
            }),
            _ => None,
        };
        let deprecation = version["deprecated"].as_bool().unwrap_or(false).then(|| {
            let instead = successor
                .map(|newer| format!("; use {group}/{newer} {kind}"))
                .unwrap_or_default();
            version["deprecationWarning"].as_str().map_or_else(
                || format!("{group}/{name} {kind} is deprecated{instead}"),
                str::to_owned,
            )
        });
        Ok(Self {
            edition: NEXT_EDITION.fetch_add(1, Ordering::Relaxed),
            made_from,
            retired: watch::Sender::new(None),
            schema,
            storage_version: storage_version.to_owned(),
            columns: CustomColumns::of_version(version),
            selectable,
            has_status: version["subresources"]["status"].is_object(),
            scale,
            deprecation,
        })
    }

    /// Whether it was made from this spec.
    pub(crate) fn is_of(&self, spec: &ValueHash) -> bool {
        self.made_from == *spec
    }

    /// Its time is over: what comes after `revision` may have another shape.
    pub(crate) fn retire(&self, revision: u64) {
        self.retired.send_replace(Some(revision));
    }

    /// For those who go on reading objects in this version's shape: until when they may.
    pub(crate) fn retirement(&self) -> watch::Receiver<Option<u64>> {
        self.retired.subscribe()
    }

    /// Brings an object that another edition wrote into this version's shape: pruned and defaulted.
    pub(crate) fn read(&self, content: &mut Value) {
        self.schema.prune(content);
        self.schema.apply_defaults(content);
    }
}
