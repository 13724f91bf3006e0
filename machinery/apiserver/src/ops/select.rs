//! Selection: which objects a list, watch or deletecollection is about.

use std::cell::OnceCell;

use machinery_value::Value;
use machinery_value::labels::LabelSelector;
use machinery_value::labels::fields::FieldSelector;

use crate::object::Stored;
use crate::request::Query;
use crate::resource::Resource;
use crate::status::ApiError;

/// Label and field selector of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
    /// The name that the field selector fixes, which turns a scan into a look-up.
    pub(crate) name: Option<String>,
}

impl Selection {
    /// Reads the selectors of `query`; `name` narrows to one object.
    pub(crate) fn parse(resource: &Resource, query: &Query, name: &str) -> Result<Self, ApiError> {
        let (labels, fields) = (query.get("labelSelector"), query.get("fieldSelector"));
        let mut selection = Self::default();
        if !labels.is_empty() {
            let parsed = LabelSelector::parse(labels).map_err(|e| ApiError::bad_request(e.to_string()))?;
            selection.labels = Some(parsed);
        }
        if !fields.is_empty() {
            let parsed = FieldSelector::parse(fields).map_err(|e| ApiError::bad_request(e.to_string()))?;
            for requirement in parsed.requirements() {
                check_field(resource, &requirement.field)?;
            }
            selection.name = parsed.exact("metadata.name").map(str::to_owned);
            selection.fields = Some(parsed);
        }
        if !name.is_empty() {
            selection.name = Some(name.to_owned());
        }
        Ok(selection)
    }

    /// Whether everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none() && self.name.is_none()
    }

    /// Whether `stored` is selected.
    pub(crate) fn matches(&self, resource: &Resource, stored: &Stored) -> bool {
        let (namespace, name) = resource.split_key(&stored.key);
        if self.name.as_deref().is_some_and(|wanted| wanted != name) {
            return false;
        }
        if let Some(labels) = &self.labels
            && !labels.matches(|key| stored.value.label(key))
        {
            return false;
        }
        let Some(fields) = &self.fields else { return true };
        // Parsed only for the selectors that look into the object.
        let content: OnceCell<Value> = OnceCell::new();
        fields.matches(|field| match field {
            "metadata.name" => Some(name.to_owned()),
            "metadata.namespace" => Some(namespace.to_owned()),
            _ => Some(field_value(
                resource,
                content.get_or_init(|| resource.content(&stored.value)),
                field,
            )),
        })
    }
}

/// The fields that a selector on this resource may name, besides name and namespace.
fn extra_fields(resource: &Resource) -> &'static [&'static str] {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.host",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("", "Secret") => &["type"],
        ("", "Namespace") => &["status.phase"],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "ReplicationController") => &["status.replicas"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        ("resource.k8s.io", "ResourceSlice") => &["spec.nodeName", "spec.driver"],
        _ => &[],
    }
}

fn check_field(resource: &Resource, field: &str) -> Result<(), ApiError> {
    // Kinds without fields of their own share a rule that does not ask whether they have namespaces.
    let is_plain = resource.custom().is_none() && extra_fields(resource).is_empty();
    let has_namespace = resource.namespaced || is_plain;
    let common = field == "metadata.name" || (has_namespace && field == "metadata.namespace");
    let known = common
        || match resource.custom() {
            Some(custom) => custom.selectable.iter().any(|(name, _)| name == field),
            None => extra_fields(resource).contains(&field),
        };
    if known {
        return Ok(());
    }
    let message = match resource.custom() {
        Some(_) => format!("field label not supported: {field}"),
        None if is_plain => format!(
            "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
        None if resource.kind == "ResourceSlice" => format!(
            "field label not supported for {}, Kind={}: {field}",
            resource.api_version(),
            resource.kind
        ),
        None if resource.kind == "Job" => format!("field label \"{field}\" not supported for Job"),
        None => format!("field label not supported: {field}"),
    };
    Err(ApiError::bad_request(message))
}

fn field_value(resource: &Resource, content: &Value, field: &str) -> String {
    if let Some(custom) = resource.custom() {
        let path = custom
            .selectable
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, path)| path);
        return path
            .and_then(|p| p.find(content).first().map(|v| text(v)))
            .unwrap_or_default();
    }
    let place = match field {
        // It may be named, and no Pod has a value for it.
        "status.podIPs" => return String::new(),
        // Events that came by `events.k8s.io` name their source there.
        "source" => {
            let component = text(&content["source"]["component"]);
            if component.is_empty() {
                return text(&content["reportingComponent"]);
            }
            return component;
        }
        "status.successful" => "status.succeeded",
        // What it was called long ago.
        "spec.host" => "spec.nodeName",
        same => same,
    };
    let value = place.split('.').try_fold(content, |value, part| value.get(part));
    match (field, value) {
        ("spec.unschedulable" | "spec.hostNetwork", None) => "false".to_owned(),
        ("status.replicas" | "status.successful", None) => "0".to_owned(),
        (_, value) => value.map(text).unwrap_or_default(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
