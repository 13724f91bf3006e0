//! Validation: the rules of the kind, built-in or declared.

use machinery_kinds::validation;
use machinery_schema::{StructuralOptions, check_crd_schema};
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};

use crate::meta;
use crate::ops::update::Part;
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;

/// Refuses a new object that breaks the rules of its kind.
pub(crate) fn create(_server: &Inner, resource: &Resource, content: &Value) -> Result<(), ApiError> {
    let errors = match &resource.source {
        Source::BuiltIn { .. } => {
            let mut errors = validation::validate_create(resource.gvk(), content);
            errors.extend(definition(resource, content));
            errors
        }
        Source::Custom(custom) => {
            let mut errors = validation::object_meta_create(resource.gvk(), resource.namespaced, content);
            errors.extend(custom.schema.validate(&whole(resource, content), None));
            errors
        }
    };
    refuse(resource, content, errors)
}

/// Refuses a change that breaks the rules of the kind, or the rules of change.
pub(crate) fn update(
    _server: &Inner,
    resource: &Resource,
    part: Part,
    new: &Value,
    old: &Value,
) -> Result<(), ApiError> {
    let errors = match &resource.source {
        Source::BuiltIn { .. } => {
            if part == Part::Main {
                let mut errors = validation::validate_update(resource.gvk(), new, old);
                errors.extend(definition(resource, new));
                errors
            } else {
                validation::validate_status_update(resource.gvk(), new, old)
            }
        }
        Source::Custom(custom) => {
            let mut errors = validation::object_meta_update(resource.namespaced, new, old);
            let old = whole(resource, old);
            errors.extend(custom.schema.validate(&whole(resource, new), Some(&old)));
            errors
        }
    };
    refuse(resource, new, errors)
}

/// A definition's schemas must be structural, their rules must compile.
fn definition(resource: &Resource, content: &Value) -> Vec<FieldError> {
    if resource.group == "apiextensions.k8s.io" && resource.kind == "CustomResourceDefinition" {
        let mut errors = Vec::new();
        for (index, version) in content["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let schema = &version["schema"]["openAPIV3Schema"];
            if schema.is_null() {
                continue;
            }
            let path = FieldPath::from("spec.versions")
                .index(index)
                .child("schema")
                .child("openAPIV3Schema");
            let options = StructuralOptions {
                status_subresource: version["subresources"]["status"].is_object(),
            };
            errors.extend(check_crd_schema(schema, &path, options));
        }
        errors
    } else {
        Vec::new()
    }
}

/// Rules see the object with its type.
fn whole(resource: &Resource, content: &Value) -> Value {
    let mut object = content.clone();
    meta::set_type(&mut object, &resource.api_version(), &resource.kind);
    object
}

fn refuse(resource: &Resource, content: &Value, errors: Vec<FieldError>) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        resource.kind_subject(),
        meta::name(content),
        &errors,
    ))
}
