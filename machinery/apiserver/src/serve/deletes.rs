//! DELETE, of one object or of a collection.

use std::sync::Arc;

use http::Response;
use machinery_kinds::Gvk;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;

use crate::body::Body;
use crate::meta;
use crate::negotiate::{Accept, body_format};
use crate::ops::decode::Refused;
use crate::ops::delete::{DeleteOptions, Deleted, Propagation, delete};
use crate::ops::read::Listing;
use crate::ops::select::Selection;
use crate::ops::{WriteOptions, decode, read};
use crate::resource::Resource;
use crate::serve::writes::{check_dry_run, with_warnings, write_options};
use crate::serve::{Call, lists, respond};
use crate::status::{ApiError, Subject};

const OPTIONS: Subject<'static> = Subject {
    group: "meta.k8s.io",
    name: "DeleteOptions",
};

pub(super) fn invalid(error: FieldError) -> ApiError {
    ApiError::invalid(OPTIONS, "", &[error])
}

/// DeleteOptions from body and query; the body wins.
fn delete_options(call: &Call, body: &[u8]) -> Result<(DeleteOptions, WriteOptions), ApiError> {
    let mut options = DeleteOptions::default();
    let mut write = write_options(call, OPTIONS.name)?;
    let mut orphan = None;
    let mut propagation = call.query.get("propagationPolicy").to_owned();
    let grace = call.query.get("gracePeriodSeconds");
    if !grace.is_empty() {
        let unreadable =
            |_| ApiError::bad_request(format!("strconv.ParseInt: parsing \"{grace}\": invalid syntax"));
        options.grace_period = Some(grace.parse().map_err(unreadable)?);
    }
    if call.query.has("orphanDependents") {
        orphan = Some(call.query.flag("orphanDependents"));
    }
    if !body.is_empty() {
        let value = decode::parse(
            body_format(&call.headers)?,
            Gvk::new("", "v1", OPTIONS.name),
            body,
        )
        .and_then(|decoded| decode::options(OPTIONS.name, decoded.value))
        .map_err(Refused::of_options)?;
        let text = |v: &Value| v.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        options.uid = text(&value["preconditions"]["uid"]);
        options.resource_version = text(&value["preconditions"]["resourceVersion"]);
        options.grace_period = value["gracePeriodSeconds"].as_i64().or(options.grace_period);
        orphan = value["orphanDependents"].as_bool().or(orphan);
        if let Some(policy) = text(&value["propagationPolicy"]) {
            propagation = policy;
        }
        for key in [
            "preconditions",
            "ignoreStoreReadErrorWithClusterBreakingPotential",
        ] {
            if let Some(given) = value.get(key).filter(|given| !given.is_null()) {
                write.given.insert(key.to_owned(), given.clone());
            }
        }
        let dry_run: Vec<&str> = value["dryRun"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        check_dry_run(&dry_run).map_err(invalid)?;
        write.dry_run |= !dry_run.is_empty();
    }
    options.propagation = read_propagation(&propagation, orphan).map_err(invalid)?;
    let given = [
        ("gracePeriodSeconds", options.grace_period.map(Value::from)),
        ("orphanDependents", orphan.map(Value::from)),
        (
            "propagationPolicy",
            (!propagation.is_empty()).then(|| json!(propagation)),
        ),
    ];
    let given = given
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    write.given.extend(given);
    Ok((options, write))
}

pub(super) fn read_propagation(
    policy: &str,
    orphan: Option<bool>,
) -> Result<Option<Propagation>, FieldError> {
    let path = FieldPath::from("propagationPolicy");
    if orphan.is_some() && !policy.is_empty() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        return Err(FieldError::invalid(&path, &json!(policy), why));
    }
    match policy {
        "" => Ok(orphan.map(|orphan| {
            if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        })),
        "Background" => Ok(Some(Propagation::Background)),
        "Foreground" => Ok(Some(Propagation::Foreground)),
        "Orphan" => Ok(Some(Propagation::Orphan)),
        other => {
            let listed = ["Foreground", "Background", "Orphan", "nil"];
            Err(FieldError::not_supported(&path, &json!(other), &listed))
        }
    }
}

/// Deletes one object.
pub(crate) async fn one(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let (wanted, options) = delete_options(call, body)?;
    let info = &call.info;
    let deleted = delete(
        &call.server,
        resource,
        &info.namespace,
        &info.name,
        &wanted,
        &options,
    )
    .await;
    let answer = deleted.and_then(|deleted| match deleted {
        // What stays for now is shown as it is stored, what is gone as reads showed it.
        Deleted::Going(object) => respond::content(call, resource, 200, accept, object),
        Deleted::Gone(mut object) if resource.returns_deleted() => {
            resource.hide(&mut object);
            respond::content(call, resource, 200, accept, object)
        }
        Deleted::Gone(object) => {
            let mut details = json!({"name": info.name, "kind": resource.plural, "uid": meta::uid(&object)});
            if !resource.group.is_empty() {
                details["group"] = json!(resource.group);
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
            });
            Ok(respond::status(call, 200, accept, status))
        }
    });
    with_warnings(&options, answer)
}

/// Deletes what a list would show.
pub(crate) async fn collection(
    call: &Call,
    resource: &Arc<Resource>,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let (wanted, options) = delete_options(call, body)?;
    let selection = Selection::parse(resource, &call.query, "")?;
    let listing = read::list(call, resource, &selection).await?;
    let mut kept = Vec::new();
    for item in &listing.items {
        let (namespace, name) = resource.split_key(&item.key);
        match delete(&call.server, resource, namespace, name, &wanted, &options).await {
            Ok(_) => kept.push(item.clone()),
            Err(error) if error.is_not_found() => {}
            Err(error) => return with_warnings(&options, Err(error)),
        }
    }
    let listing = Listing {
        items: kept,
        ..listing
    };
    with_warnings(&options, lists::answer(call, resource, accept, listing).await)
}
