//! The marks that a manifest and its Work carry: whose they are, and which keys on the manifest are ours to remove.

use std::collections::BTreeMap;

use lockgate_api::{Cluster, keys, names};
use serde_json::{Map, Value};

use super::{RenderError, RenderInput};
use crate::object;

/// Keys with this prefix are notes that the hub keeps on templates.
const OWN_NOTES: &str = "lockgate.karmada.io/";

/// Labels or annotations.
type Keys = BTreeMap<String, String>;

/// Whose a manifest is.
pub(super) struct Stamp<'a> {
    work_id: &'a str,
    cluster: &'a str,
    bound: Option<Bound<'a>>,
}

/// The binding behind a manifest.
struct Bound<'a> {
    id: &'a str,
    namespace: &'a str,
    name: &'a str,
    conflict_resolution: &'static str,
}

impl<'a> Stamp<'a> {
    /// For the manifest of a binding.
    pub(super) fn bound(input: &RenderInput<'a>) -> Self {
        Self {
            work_id: input.work_id,
            cluster: &input.cluster.metadata.name,
            bound: Some(Bound {
                id: input.binding_id,
                namespace: &input.binding.metadata.namespace,
                name: &input.binding.metadata.name,
                conflict_resolution: policy_resolution(input.conflict_resolution),
            }),
        }
    }

    /// For a namespace that goes everywhere.
    pub(super) fn unbound(work_id: &'a str, cluster: &'a Cluster) -> Self {
        Self {
            work_id,
            cluster: &cluster.metadata.name,
            bound: None,
        }
    }

    /// Marks the manifest, and gives the labels and annotations of its Work.
    pub(super) fn put(
        &self,
        manifest: &mut Value,
        template: &Value,
        work_name: &str,
    ) -> Result<(Keys, Keys), RenderError> {
        let (labels, annotations) = self.of_work(manifest);
        let not_a_map = |path| RenderError::not_a_map(template, path);
        let metadata = child(manifest, "metadata").ok_or_else(|| not_a_map("/metadata"))?;

        let own = map(metadata, "labels").ok_or_else(|| not_a_map("/metadata/labels"))?;
        own.retain(|key, _| !key.starts_with(OWN_NOTES));
        extend(own, &labels);
        set(own, keys::MANAGED, "true");
        let managed_labels = joined(own.keys().map(String::as_str));

        let own = map(metadata, "annotations").ok_or_else(|| not_a_map("/metadata/annotations"))?;
        own.retain(|key, _| !key.starts_with(OWN_NOTES));
        extend(own, &annotations);
        set(
            own,
            keys::WORK_NAMESPACE,
            &names::execution_namespace(self.cluster),
        );
        set(own, keys::WORK_NAME, work_name);
        set(own, keys::TEMPLATE_UID, object::meta_text(template, "uid"));
        match object::generation(template) {
            // A copy of a member's object may carry what another template's generation was.
            ..=0 => drop(own.remove(keys::TEMPLATE_GENERATION)),
            generation => set(own, keys::TEMPLATE_GENERATION, &generation.to_string()),
        }
        set(own, keys::MANAGED_LABELS, &managed_labels);
        // The list of annotations names itself.
        set(own, keys::MANAGED_ANNOTATIONS, "");
        let managed_annotations = joined(own.keys().map(String::as_str));
        set(own, keys::MANAGED_ANNOTATIONS, &managed_annotations);
        Ok((labels, annotations))
    }

    /// What the Work carries, and the manifest too.
    fn of_work(&self, manifest: &Value) -> (Keys, Keys) {
        let mut labels = Keys::from([(keys::WORK_ID.to_owned(), self.work_id.to_owned())]);
        let mut annotations = Keys::new();
        if let Some(bound) = &self.bound {
            let mut annotate = |key: &str, value: &str| annotations.insert(key.to_owned(), value.to_owned());
            if bound.namespace.is_empty() {
                labels.insert(keys::CRB_ID.to_owned(), bound.id.to_owned());
                annotate(keys::CRB_NAME, bound.name);
            } else {
                labels.insert(keys::RB_ID.to_owned(), bound.id.to_owned());
                annotate(keys::RB_NAMESPACE, bound.namespace);
                annotate(keys::RB_NAME, bound.name);
            }
            let resolution = template_resolution(manifest).unwrap_or(bound.conflict_resolution);
            annotate(keys::CONFLICT_RESOLUTION, resolution);
        }
        (labels, annotations)
    }
}

/// What the template says of objects that a member already has; none if it says nothing that counts.
pub(super) fn template_resolution(template: &Value) -> Option<&'static str> {
    match object::annotation(template, keys::CONFLICT_RESOLUTION)? {
        "overwrite" => Some("overwrite"),
        "abort" => Some("abort"),
        _ => None,
    }
}

/// What is done about them: what the template says, else its policy.
pub(crate) fn resolution(template: &Value, conflict_resolution: &str) -> &'static str {
    template_resolution(template).unwrap_or_else(|| policy_resolution(conflict_resolution))
}

/// What the policy says of them.
pub(super) fn policy_resolution(conflict_resolution: &str) -> &'static str {
    if conflict_resolution.eq_ignore_ascii_case("overwrite") {
        "overwrite"
    } else {
        "abort"
    }
}

/// The map at `key`, made if there is nothing; none if something else is there.
fn child<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    map(value.as_object_mut()?, key)
}

fn map<'a>(fields: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let field = fields.entry(key).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    field.as_object_mut()
}

fn set(fields: &mut Map<String, Value>, key: &str, value: &str) {
    fields.insert(key.to_owned(), Value::String(value.to_owned()));
}

fn extend(fields: &mut Map<String, Value>, more: &Keys) {
    for (key, value) in more {
        set(fields, key, value);
    }
}

fn joined<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_unstable();
    keys.join(",")
}
