//! Validation: the rules of the kind, built-in or declared.

use machinery_kinds::validation;
use machinery_schema::{StructuralOptions, check_crd_schema};
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};

use crate::ops::update::Part;
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;
use crate::{admission, meta, scale};

/// Refuses a new object that breaks the rules of its kind.
pub(crate) fn create(server: &Inner, resource: &Resource, content: &mut Value) -> Result<(), ApiError> {
    let errors = match &resource.source {
        Source::BuiltIn { .. } => {
            let mut errors = Vec::from_iter(admission::devices::check_admin(server, resource, content));
            errors.extend(validation::validate_create(resource.gvk(), content));
            if admission::certificates::concerns(resource) {
                admission::certificates::check_request(content, &mut errors);
            }
            errors.extend(definition(resource, content, None));
            errors
        }
        Source::Custom(custom) => {
            let mut errors = validation::object_meta_create(resource.gvk(), resource.namespaced, content);
            set_type(resource, content);
            custom.schema.check_values(content, None, &mut errors);
            errors.extend(scale::check(resource, content, false));
            custom.schema.check_rest(content, None, &mut errors);
            meta::strip_type(content);
            errors
        }
    };
    refuse(resource, content, errors)
}

/// Refuses a change that breaks the rules of the kind, or the rules of change.
pub(crate) fn update(
    server: &Inner,
    resource: &Resource,
    part: Part,
    new: &mut Value,
    old: &mut Value,
) -> Result<(), ApiError> {
    let errors = match &resource.source {
        Source::BuiltIn { .. } => match part {
            Part::Main | Part::Scale => {
                let mut errors = validation::validate_update(resource.gvk(), new, old);
                errors.extend(definition(resource, new, Some(old)));
                errors
            }
            Part::EphemeralContainers => validation::validate_ephemeral_containers(new, old),
            Part::Resize => validation::validate_resize(new, old),
            Part::Approval => validation::validate_approval(resource.gvk(), new, old),
            Part::Finalizers => validation::validate_finalize(new, old),
            Part::Status | Part::Whole => {
                let mut errors =
                    Vec::from_iter(admission::devices::check_admin_status(server, resource, new, old));
                errors.extend(validation::validate_status_update(resource.gvk(), new, old));
                errors
            }
        },
        Source::Custom(custom) => {
            let mut errors = validation::object_meta_update(resource.namespaced, new, old);
            set_type(resource, new);
            set_type(resource, old);
            if part == Part::Status {
                custom.schema.check_status_values(new, Some(old), &mut errors);
                errors.extend(scale::check(resource, new, true));
                custom.schema.check_status_rest(new, Some(old), &mut errors);
            } else {
                custom.schema.check_values(new, Some(old), &mut errors);
                errors.extend(scale::check(resource, new, false));
                custom.schema.check_rest(new, Some(old), &mut errors);
            }
            meta::strip_type(new);
            meta::strip_type(old);
            errors
        }
    };
    refuse(resource, new, errors)
}

/// A definition's schemas must be structural and their rules must compile; so must a policy's.
fn definition(resource: &Resource, content: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let mut errors = check_versions(content);
            // What is there from before can still be labelled, and let go.
            if !old.is_some_and(converts_by_webhook) {
                errors.extend(check_conversion(content));
            }
            errors
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            admission::policy::check_policy(content)
        }
        _ => Vec::new(),
    }
}

fn converts_by_webhook(definition: &Value) -> bool {
    definition["spec"]["conversion"]["strategy"] == "Webhook"
}

/// Versions are converted by their schemas alone. A webhook that was stored and not called would lose what it is there for.
fn check_conversion(content: &Value) -> Option<FieldError> {
    converts_by_webhook(content).then(|| {
        let path = FieldPath::from("spec.conversion.strategy");
        FieldError::forbidden(
            &path,
            "this server calls no webhooks: use None, or convert objects before they are applied",
        )
    })
}

fn check_versions(content: &Value) -> Vec<FieldError> {
    let versions: Vec<&Value> = content["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let check = |version: &Value, path: &FieldPath, schema_path: &FieldPath| {
        let schema = &version["schema"]["openAPIV3Schema"];
        let options = StructuralOptions {
            status_subresource: version["subresources"]["status"].is_object(),
        };
        let mut errors = if schema.is_null() {
            Vec::new()
        } else {
            check_crd_schema(schema, schema_path, options)
        };
        errors.extend(check_selectable(version, schema, path));
        errors
    };
    // What all versions have in common is named once, at the place where it stood in the first form of this kind.
    let same = |field: &str| versions.windows(2).all(|pair| pair[0][field] == pair[1][field]);
    if let Some(first) = versions.first()
        && ["schema", "subresources", "selectableFields"]
            .iter()
            .all(|field| same(field))
    {
        return check(
            first,
            &FieldPath::new("spec"),
            &FieldPath::from("spec.validation.openAPIV3Schema"),
        );
    }
    let each = versions.iter().enumerate().flat_map(|(index, version)| {
        let path = FieldPath::from("spec.versions").index(index);
        check(version, &path, &path.child("schema").child("openAPIV3Schema"))
    });
    each.collect()
}

/// A field that objects are selected by must be one that the schema has.
fn check_selectable(version: &Value, schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, field) in version["selectableFields"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let json_path = field["jsonPath"].as_str().unwrap_or("");
        let parts = json_path.trim_start_matches('.').split('.');
        let found = parts
            .into_iter()
            .try_fold(schema, |schema, part| schema.get("properties")?.get(part));
        let at = path.child("selectableFields").index(index).child("jsonPath");
        let mut refuse = |why: &str| errors.push(FieldError::invalid(&at, &field["jsonPath"], why));
        match found.map(|schema| schema["type"].as_str().unwrap_or("")) {
            Some("string" | "integer" | "boolean") => {}
            Some(_) => refuse(
                "must point to a field of type string, boolean or integer. Enum string fields and \
                               strings with formats are allowed.",
            ),
            None => refuse("is an invalid path: does not refer to a valid field"),
        }
    }
    errors
}

/// Rules see the object with its type. It is put on and taken off again: a copy of the whole would cost more than the rules.
fn set_type(resource: &Resource, content: &mut Value) {
    meta::set_type(content, &resource.api_version(), &resource.kind);
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
