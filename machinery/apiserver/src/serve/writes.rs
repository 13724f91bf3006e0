//! POST and PUT.

use http::Response;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::gofmt::is_printable;
use serde_json::json;

use crate::body::Body;
use crate::meta;
use crate::negotiate::{Accept, body_format};
use crate::ops::decode::Refused;
use crate::ops::update::{Part, Target, check_name, update};
use crate::ops::upsert::update_or_create;
use crate::ops::{FieldValidation, Saved, WriteOptions, create, decode};
use crate::ownership::Owner;
use crate::resource::Resource;
use crate::serve::{Call, authorize_create, patch, respond};
use crate::status::{ApiError, Subject};

/// The longest name of a manager, in bytes.
const MAX_MANAGER: usize = 128;

/// The options of a write from its query; `kind` is what messages call them.
pub(crate) fn write_options(call: &Call, kind: &str) -> Result<WriteOptions, ApiError> {
    // A deletion has no fields to validate, and none that anybody would own.
    let deletes = kind == "DeleteOptions";
    let dry_run: Vec<&str> = call
        .query
        .all("dryRun")
        .filter(|value| !value.is_empty())
        .collect();
    let (mut errors, manager) = (Vec::new(), call.query.get("fieldManager"));
    if kind == "PatchOptions" {
        errors.extend(patch::check_options(call));
    }
    if !deletes {
        errors.extend(check_manager(manager));
    }
    errors.extend(check_dry_run(&dry_run).err());
    let validation = match call.query.get("fieldValidation") {
        _ if deletes => FieldValidation::Ignore,
        "Ignore" => FieldValidation::Ignore,
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        other => {
            let path = FieldPath::from("fieldValidation");
            let listed = ["", "Ignore", "Strict", "Warn"];
            errors.push(FieldError::not_supported(&path, &json!(other), &listed));
            FieldValidation::Strict
        }
    };
    if !errors.is_empty() {
        let subject = Subject {
            group: "meta.k8s.io",
            name: kind,
        };
        return Err(ApiError::invalid(subject, "", &errors));
    }
    let agent = call
        .headers
        .get(http::header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let owner = Owner::Manager(machinery_fieldset::manager_name(manager, agent));
    let mut options = WriteOptions::new(call.user.clone(), !dry_run.is_empty(), validation, owner);
    options.trail = call.trail.clone();
    for key in ["fieldManager", "fieldValidation"] {
        let text = call.query.get(key);
        if !text.is_empty() && !deletes {
            options.given.insert(key.to_owned(), json!(text));
        }
    }
    Ok(options)
}

/// The name of a manager is short, and can be shown.
fn check_manager(name: &str) -> Vec<FieldError> {
    let path = FieldPath::from("fieldManager");
    let mut errors = Vec::new();
    if name.len() > MAX_MANAGER {
        errors.push(FieldError::too_long(&path, MAX_MANAGER));
    }
    for (at, character) in name.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let why = format!(
            "invalid character U+{:04X} (at position {at})",
            u32::from(character)
        );
        errors.push(FieldError::invalid(&path, &json!(name), why));
    }
    errors
}

/// A dry run is of everything or none.
pub(crate) fn check_dry_run(values: &[&str]) -> Result<(), FieldError> {
    if values.iter().all(|value| *value == "All") {
        return Ok(());
    }
    Err(FieldError::not_supported(
        &FieldPath::from("dryRun"),
        &json!(values),
        &["All"],
    ))
}

/// A body as an object of `resource`; what there is to warn of goes to `options`.
pub(crate) fn read_body(
    call: &Call,
    resource: &Resource,
    options: &WriteOptions,
    body: &[u8],
) -> Result<Value, ApiError> {
    let read = || {
        let format = body_format(&call.headers).map_err(Refused::Answer)?;
        let decoded = decode::parse(format, resource.gvk(), body)?;
        let origin = decode::Origin::of_body(format, body);
        decode::object(resource, decoded, options.validation, origin)
    };
    let (mut content, warnings) = read().map_err(|refused| refused.of_body(&resource.kind, body))?;
    if let Some(trail) = &call.trail {
        trail.read(&content);
    }
    warnings.into_iter().for_each(|warning| options.warn(warning));
    let repeated = meta::drop_repeated_owners(&mut content);
    if !repeated.is_empty() {
        options.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
    Ok(content)
}

/// An answer together with what there was to warn of.
pub(crate) fn finish(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    options: &WriteOptions,
    result: Result<(u16, Saved), ApiError>,
) -> Result<Response<Body>, ApiError> {
    let answer = result.and_then(|(code, saved)| respond::saved(call, resource, code, accept, saved));
    with_warnings(options, answer)
}

/// An answer or a refusal together with what there was to warn of.
pub(crate) fn with_warnings(
    options: &WriteOptions,
    answer: Result<Response<Body>, ApiError>,
) -> Result<Response<Body>, ApiError> {
    match answer {
        Ok(mut response) => {
            respond::warn(&mut response, &options.take_warnings());
            Ok(response)
        }
        Err(mut error) => {
            error.warnings.extend(options.take_warnings());
            Err(error)
        }
    }
}

/// Creates an object.
pub(crate) async fn post(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "CreateOptions")?;
    let content = read_body(call, resource, &options, body)?;
    let result = create::create(&call.server, resource, &call.info.namespace, content, &options).await;
    finish(call, resource, accept, &options, result.map(|saved| (201, saved)))
}

/// Replaces an object, or its status.
pub(crate) async fn put(
    call: &Call,
    resource: &Resource,
    part: Part,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "UpdateOptions")?;
    let mut content = read_body(call, resource, &options, body)?;
    let info = &call.info;
    create::place_in_namespace(resource, &info.namespace, &mut content)?;
    check_name(&info.name, &content)?;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part,
    };
    let wanted = |present: &Value| {
        Precondition::Uid(meta::uid(&content)).check(&target, present)?;
        Ok(content.clone())
    };
    let result = if part == Part::Main && creates_on_update(resource) {
        let allowed = || authorize_create(call);
        update_or_create(&call.server, &target, &options, allowed, |present| {
            wanted(present.unwrap_or(&Value::Null))
        })
        .await
        .map(|(outcome, saved)| (outcome.code(), saved))
    } else {
        let saved = update(&call.server, &target, &options, wanted).await;
        saved.map(|saved| (200, saved))
    };
    finish(call, resource, accept, &options, result)
}

fn creates_on_update(resource: &Resource) -> bool {
    resource.custom().is_none() && machinery_kinds::strategy::allows_create_on_update(resource.gvk())
}

/// What a request says of the object that it is meant for; an empty text says nothing.
pub(super) enum Precondition<'a> {
    Uid(&'a str),
    Version(&'a str),
}

impl Precondition<'_> {
    /// Refuses a request that was meant for another object, or for an older one.
    pub(super) fn check(&self, target: &Target<'_>, present: &Value) -> Result<(), ApiError> {
        let (what, wanted, found) = match *self {
            Self::Uid(uid) => ("UID", uid, meta::uid(present)),
            Self::Version(version) => ("ResourceVersion", version, meta::resource_version(present)),
        };
        if wanted.is_empty() || wanted == found {
            return Ok(());
        }
        let Target {
            resource,
            namespace,
            name,
            ..
        } = *target;
        let group = if resource.custom().is_some() {
            format!("{}/", resource.group)
        } else {
            String::new()
        };
        let place = if resource.namespaced {
            format!("{namespace}/")
        } else {
            String::new()
        };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{place}{name}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
            if resource.kind == "Service" {
                "services/specs"
            } else {
                resource.plural.as_str()
            },
        );
        Err(ApiError::conflict(resource.subject(), name, why))
    }
}
