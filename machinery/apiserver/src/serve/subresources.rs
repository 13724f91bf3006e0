//! Subresources: status, approval, scale, finalize, token, eviction, binding.

use bytes::Bytes;
use http::{Method, Response};
use machinery_kinds::Gvk;
use machinery_value::Value;
use machinery_value::decode::Decoded;
use serde_json::json;

use crate::admission::{self, Operation};
use crate::body::Body;
use crate::negotiate::{Accept, body_format, media_type};
use crate::ops::create::other_namespace;
use crate::ops::decode::Refused;
use crate::ops::update::{Part, Target, check_name, update};
use crate::ops::{Saved, WriteOptions, decode, read};
use crate::ownership::{Owner, apply_scale, own_scale, scale_ownership};
use crate::resource::Resource;
use crate::serve::patch::Applied;
use crate::serve::resources::{accept, not_allowed};
use crate::serve::writes::{put, with_warnings, write_options};
use crate::serve::{Call, binding, eviction, patch, respond};
use crate::status::ApiError;
use crate::{meta, scale, tokens};

const SCALE: Gvk<'static> = Gvk {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
};

/// A body as an object of a type that the resource's own is not, about something in the namespace of the path; what there
/// is to warn of goes to `options`.
pub(super) fn read_typed(
    call: &Call,
    wanted: Gvk<'_>,
    options: &WriteOptions,
    body: &[u8],
) -> Result<Value, ApiError> {
    let format = body_format(&call.headers)?;
    let origin = decode::Origin::of_body(format, body);
    let (value, warnings) = decode::parse(format, wanted, body)
        .and_then(|decoded| decode::typed(wanted, decoded, options.validation, origin))
        .map_err(|refused| refused.of_body(wanted.kind, body))?;
    if let Some(trail) = &call.trail {
        trail.read(&value);
    }
    warnings.into_iter().for_each(|warning| options.warn(warning));
    let (own, namespace) = (meta::namespace(&value), &call.info.namespace);
    if !namespace.is_empty() && !own.is_empty() && own != namespace {
        return Err(other_namespace());
    }
    Ok(value)
}

/// Answers a request about a subresource.
pub(crate) async fn dispatch(
    call: &Call,
    resource: &Resource,
    method: &Method,
    body: Bytes,
) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    let Some(sub) = resource.subresource(&info.subresource) else {
        return Err(match resource.custom() {
            Some(_) => ApiError::not_found(resource.subject(), &info.name),
            None => ApiError::no_resource(),
        });
    };
    if !sub.verbs.iter().any(|v| v == info.verb) {
        return Err(not_allowed(resource, info.verb));
    }
    let accept = accept(call, resource)?;
    match (sub.name.as_str(), info.verb) {
        ("status", "get") => {
            let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
            respond::stored(call, resource, 200, accept, &stored)
        }
        ("status", "update") => put(call, resource, Part::Status, accept, &body).await,
        ("status", "patch") => patch::answer(call, resource, Part::Status, accept, body).await,
        ("ephemeralcontainers", "update") => {
            put(call, resource, Part::EphemeralContainers, accept, &body).await
        }
        ("ephemeralcontainers", "patch") => {
            patch::answer(call, resource, Part::EphemeralContainers, accept, body).await
        }
        ("resize", "update") => put(call, resource, Part::Resize, accept, &body).await,
        ("resize", "patch") => patch::answer(call, resource, Part::Resize, accept, body).await,
        ("approval", "update") => put(call, resource, Part::Approval, accept, &body).await,
        ("approval", "patch") => patch::answer(call, resource, Part::Approval, accept, body).await,
        ("scale", verb) => scale_answer(call, resource, verb, accept, &body).await,
        ("finalize", "update") => put(call, resource, Part::Finalizers, accept, &body).await,
        ("token", "create") => token(call, resource, accept, &body).await,
        ("eviction", "create") => eviction::answer(call, resource, accept, &body).await,
        ("binding", "create") => binding::answer(call, resource, accept, &body).await,
        _ if method == Method::GET && sub.kind == resource.kind => {
            let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
            respond::stored(call, resource, 200, accept, &stored)
        }
        (name, _) => Err(ApiError::bad_request(format!(
            "subresource \"{name}\" needs a node that runs containers; this server has none"
        ))),
    }
}

async fn scale_answer(
    call: &Call,
    resource: &Resource,
    verb: &str,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    if verb == "get" {
        let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
        let view = scale::view(resource, &resource.content(&stored.value));
        return Ok(respond::value(200, accept, &view));
    }
    let kind = if verb == "patch" {
        "PatchOptions"
    } else {
        "UpdateOptions"
    };
    let mut options = write_options(call, kind)?;
    let change = ScaleChange::read(call, resource, verb, &options, body)?;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part: Part::Scale,
    };
    let owner = std::mem::replace(&mut options.owner, Owner::AsGiven);
    let typed = |view, origin: decode::Origin<'_>| {
        let (view, warnings) = decode::typed(SCALE, Decoded::from(view), options.validation, origin)?;
        warnings.into_iter().for_each(|warning| options.warn(warning));
        Ok(view)
    };
    let saved = update(&call.server, &target, &options, |present| {
        let view = match &change {
            ScaleChange::Put(wanted) => wanted.clone(),
            ScaleChange::Patch(patch) => {
                let mut view = scale::view(resource, present);
                patch.apply(resource, &mut view)?;
                typed(view.clone(), patch.origin()).map_err(|refused| patch.refused(refused, &view))?
            }
            ScaleChange::Apply(applied) => {
                let Applied {
                    manager,
                    value,
                    force,
                    ..
                } = applied;
                let view = apply_scale(&call.server, resource, manager, present, value, *force)?;
                let applied =
                    typed(view.clone(), decode::Origin::Patch(&[])).map_err(|refused: Refused| {
                        let shown = machinery_value::encode::to_vec(&view);
                        refused.of_patch(&json!(String::from_utf8_lossy(&shown)))
                    })?;
                let mut content = scale::apply(resource, present, &applied)?;
                own_scale(&call.server, resource, present, &view, &mut content);
                return Ok(content);
            }
        };
        let mut content = scale::apply(resource, present, &view)?;
        scale_ownership(&call.server, resource, &owner, present, &view, &mut content);
        Ok(content)
    })
    .await;
    let answer = saved.map(|saved| {
        let content = match saved {
            Saved::Stored(stored) => resource.content(&stored.value),
            Saved::Dry(content) | Saved::Gone(content) => content,
        };
        respond::value(200, accept, &scale::view(resource, &content))
    });
    with_warnings(&options, answer)
}

/// What is to become of a `Scale`.
enum ScaleChange<'a> {
    Put(Value),
    Patch(patch::Patch),
    Apply(Applied<'a>),
}

impl<'a> ScaleChange<'a> {
    fn read(
        call: &'a Call,
        resource: &Resource,
        verb: &str,
        options: &WriteOptions,
        body: &[u8],
    ) -> Result<Self, ApiError> {
        if verb == "update" {
            let wanted = read_typed(call, SCALE, options, body)?;
            check_name(&call.info.name, &wanted)?;
            return Ok(Self::Put(wanted));
        }
        if Applied::is(call) {
            return Ok(Self::Apply(Applied::read(call, options, body)?));
        }
        let patch = patch::Patch::read(resource, &media_type(&call.headers), body)?;
        Ok(Self::Patch(patch))
    }
}

/// Asks the policies about the creation of something that is none of the resource's own objects.
pub(super) fn admit(
    call: &Call,
    resource: &Resource,
    mut object: Value,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let info = &call.info;
    meta::set_text(&mut object, "namespace", info.namespace.clone());
    let asked = admission::Asked {
        resource,
        subresource: &info.subresource,
        operation: Operation::Create,
        name: &info.name,
        path_name: &info.name,
    };
    admission::validate(&call.server, &asked, Some(&object), None, options)
}

async fn token(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let info = &call.info;
    let options = write_options(call, "CreateOptions")?;
    let kind = Gvk::new("authentication.k8s.io", "v1", "TokenRequest");
    let request = read_typed(call, kind, &options, body)?;
    let grant = || {
        tokens::check_name(&info.name, &request)?;
        let stored = read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
        let account = resource.content(&stored.value);
        let wanted = tokens::read_request(&account, &request)?;
        admit(call, resource, request.clone(), &options)?;
        tokens::answer_request(&call.server, &account, &wanted, call.trail.as_ref())
    };
    let answer = grant().map(|answer| respond::value(201, accept, &answer));
    with_warnings(&options, answer)
}

/// That something was done which leaves nothing to show.
pub(super) fn done(call: &Call, accept: Accept) -> Response<Body> {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    respond::status(call, 201, accept, status)
}
