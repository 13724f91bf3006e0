//! Validation: the rules of the kind, built-in or declared.

use machinery_value::Value;
use machinery_value::field::FieldError;

use crate::meta;
use crate::ops::update::Part;
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;

/// Refuses a new object that breaks the rules of its kind.
pub(crate) fn create(_server: &Inner, resource: &Resource, content: &Value) -> Result<(), ApiError> {
    let errors = match &resource.source {
        Source::BuiltIn { .. } => {
            let mut errors = machinery_kinds::validation::validate_create(
                &resource.group,
                &resource.version,
                &resource.kind,
                content,
            );
            errors.extend(definition(resource, content));
            errors
        }
        Source::Custom(custom) => {
            let mut errors = machinery_kinds::validation::custom_meta_create(resource.namespaced, content);
            errors.extend(machinery_schema::validate(custom.schema(), &whole(resource, content), None));
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
            let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
            if part == Part::Main {
                let mut errors = machinery_kinds::validation::validate_update(group, version, kind, new, old);
                errors.extend(definition(resource, new));
                errors
            } else {
                machinery_kinds::validation::validate_status_update(group, version, kind, new, old)
            }
        }
        Source::Custom(custom) => {
            let mut errors = machinery_kinds::validation::custom_meta_update(resource.namespaced, new, old);
            let old = whole(resource, old);
            errors.extend(machinery_schema::validate(custom.schema(), &whole(resource, new), Some(&old)));
            errors
        }
    };
    refuse(resource, new, errors)
}

/// A definition's schemas must be structural, their rules must compile.
fn definition(resource: &Resource, content: &Value) -> Vec<FieldError> {
    if resource.group == "apiextensions.k8s.io" && resource.kind == "CustomResourceDefinition" {
        machinery_schema::structural::check_definition(content)
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
    Err(ApiError::invalid(resource.kind_subject(), meta::name(content), &errors))
}
