//! Update: the one way in which an existing object changes, for PUT, every kind of patch and the subresources.

use machinery_store::Expect;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use serde_json::json;

use crate::admission::{self, Operation};
use crate::object::Stored;
use crate::ops::{Saved, WriteOptions, put, remove};
use crate::ownership::{self, Owner};
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;
use crate::{meta, scale, validate};

/// How often a lost race is run again when the client named no resource version. Every loss is another write's gain,
/// so only more writers of one object than a server has places for requests can use it up.
pub(super) const RETRIES: usize = 1000;

/// Which part of an object a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where the status is a part of its own.
    Main,
    /// The status alone.
    Status,
    /// The replicas, as a `Scale` shows them.
    Scale,
    /// Everything of a namespace but its status: its own finalizers, above all, which are changed in no other way.
    Finalizers,
    /// The ephemeral containers of a Pod.
    EphemeralContainers,
    /// The amounts of a Pod's containers.
    Resize,
    /// The conditions of a request for a certificate.
    Approval,
    /// Everything: what the server itself writes, for itself or for a request that was judged before.
    Whole,
}

impl Part {
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main | Self::Whole => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalizers => "finalize",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Approval => "approval",
        }
    }
}

/// The object to change.
pub(crate) struct Target<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) part: Part,
}

/// Changes one object. `make` gets the present content and returns the wanted one, both without apiVersion and kind;
/// it is called again when another write came between and the wanted content names no resource version.
pub(crate) async fn update(
    server: &Inner,
    target: &Target<'_>,
    options: &WriteOptions,
    mut make: impl FnMut(&Value) -> Result<Value, ApiError>,
) -> Result<Saved, ApiError> {
    let Target {
        resource,
        namespace,
        name,
        part,
    } = *target;
    let key = resource.key(namespace, name);
    for _ in 0..RETRIES {
        let stored = server
            .store
            .get(&key)
            .ok_or_else(|| ApiError::not_found(resource.subject(), name))?;
        let mut old = resource.content(&stored.value);
        let mut new = make(&old)?;
        check_identity(target, &mut new, &stored)?;
        carry_over(&old, &mut new);
        let owner = if part == Part::Whole {
            &Owner::Server
        } else {
            &options.owner
        };
        ownership::track(server, resource, part.subresource(), owner, Some(&old), &mut new);
        prepare(resource, part, &mut new, &old);
        meta::drop_repeated_owners(&mut new);
        admission::mutate(server, resource, &mut new, Some(&old), options)?;
        validate::update(server, resource, part, &mut new, &mut old)?;
        if matches!(part, Part::Main | Part::Scale) {
            admission::warn(resource, &new, Some(&old), options);
        }
        // What the server writes for itself is no client's change of the object: on a cluster it goes by subresources, about
        // which a rule on the object says nothing. A policy that refused it would leave the object half done for ever.
        if part != Part::Whole {
            judge(server, target, &new, &old, options)?;
        }

        // A lost race is run again. If the wanted object names a version, it no longer fits then, and that is the answer.
        let expect = Expect::Revision(stored.revision);
        if meta::is_deleting(&new) && ready_to_go(resource, &new) {
            // What goes is shown as it was last: that it could go is not stored.
            if options.dry_run || remove(server, resource, &key, expect, old).await?.is_ok() {
                return Ok(Saved::Gone(new));
            }
            continue;
        }
        machinery_fieldset::keep_times(&old, &mut new);
        if new == old {
            return Ok(Saved::Stored(stored));
        }
        if options.dry_run {
            return Ok(Saved::Dry(new));
        }
        if let Ok(stored) = put(server, resource, &key, expect, new).await? {
            return Ok(Saved::Stored(stored));
        }
    }
    Err(ApiError::modified(resource.subject(), name))
}

/// Asks the policies, who see of a subresource what its clients see.
fn judge(
    server: &Inner,
    target: &Target<'_>,
    new: &Value,
    old: &Value,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let resource = target.resource;
    let asked = admission::Asked {
        resource,
        subresource: target.part.subresource(),
        operation: Operation::Update,
        name: target.name,
        path_name: target.name,
    };
    if target.part == Part::Scale {
        let [new, old] = [new, old].map(|content| scale::view(resource, content));
        return admission::validate(server, &asked, Some(&new), Some(&old), options);
    }
    admission::validate(server, &asked, Some(new), Some(old), options)
}

/// The wanted object must have the name that the request names.
pub(crate) fn check_name(name: &str, new: &Value) -> Result<(), ApiError> {
    let own = meta::name(new);
    if own.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if own != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// The wanted object must be this very object, and at the version that it names.
fn check_identity(target: &Target<'_>, new: &mut Value, stored: &Stored) -> Result<(), ApiError> {
    let Target {
        resource,
        namespace,
        name,
        ..
    } = *target;
    check_name(name, new)?;
    super::create::place_in_namespace(resource, namespace, new)?;
    let version = meta::resource_version(new);
    if version.is_empty() || version == "0" {
        if unconditional(resource) {
            return Ok(());
        }
        let path = FieldPath::from("metadata.resourceVersion");
        let error = FieldError::invalid(&path, &json!(0), "must be specified for an update");
        return Err(ApiError::invalid(resource.subject(), name, &[error]));
    }
    if parse_version(version)? == stored.revision {
        Ok(())
    } else {
        Err(ApiError::modified(resource.subject(), name))
    }
}

/// The version that an object names; 0 if it names none.
pub(super) fn parse_version(text: &str) -> Result<u64, ApiError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse()
        .map_err(|_| ApiError::unclassified(format!("strconv.ParseUint: parsing \"{text}\": invalid syntax")))
}

fn unconditional(resource: &Resource) -> bool {
    match &resource.source {
        Source::BuiltIn { .. } => machinery_kinds::strategy::allows_unconditional_update(resource.gvk()),
        Source::Custom(_) => false,
    }
}

/// What only the server writes stays as it was.
fn carry_over(old: &Value, new: &mut Value) {
    let meta = meta::meta_mut(new);
    if meta.get("uid").is_none_or(|uid| uid == "")
        && let Some(uid) = old["metadata"].get("uid")
    {
        // Another uid is a mistake, and validation names it.
        meta.insert("uid".into(), uid.clone());
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "selfLink",
    ] {
        match old["metadata"].get(field) {
            Some(value) => meta.insert(field.to_owned(), value.clone()),
            None => meta.remove(field),
        };
    }
}

fn prepare(resource: &Resource, part: Part, new: &mut Value, old: &Value) {
    match (&resource.source, part) {
        (_, Part::Whole) => {}
        (_, Part::Finalizers) => copy_field(old, new, "status"),
        (_, Part::EphemeralContainers) => machinery_kinds::strategy::prepare_ephemeral_containers(new, old),
        (_, Part::Resize) => machinery_kinds::strategy::prepare_resize(new, old),
        (_, Part::Approval) => machinery_kinds::strategy::prepare_approval(new, old),
        (Source::BuiltIn { .. }, Part::Main | Part::Scale) => {
            machinery_kinds::strategy::prepare_update(resource.gvk(), new, old);
        }
        (Source::BuiltIn { .. }, Part::Status) => {
            machinery_kinds::strategy::prepare_status_update(resource.gvk(), new, old);
        }
        (Source::Custom(custom), Part::Main | Part::Scale) => {
            if custom.has_status {
                copy_field(old, new, "status");
            }
            if spec_differs(new, old, custom.has_status) {
                meta::bump_generation(new);
            }
        }
        (Source::Custom(_), Part::Status) => {
            let given = std::mem::replace(new, without(old, "status"));
            let Value::Object(mut given) = given else { return };
            if let (Some(status), Value::Object(new)) = (given.remove("status"), &mut *new) {
                new.insert("status".to_owned(), status);
            }
            let meta = given.get_mut("metadata").and_then(Value::as_object_mut);
            if let Some(list) = meta.and_then(|meta| meta.remove("managedFields")) {
                meta::meta_mut(new).insert("managedFields".into(), list);
            }
        }
    }
}

/// A copy of an object without one of its fields.
fn without(object: &Value, field: &str) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let kept = fields.iter().filter(|(name, _)| *name != field);
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn copy_field(from: &Value, to: &mut Value, field: &str) {
    if let Value::Object(map) = to {
        match from.get(field) {
            Some(value) => map.insert(field.to_owned(), value.clone()),
            None => map.remove(field),
        };
    }
}

/// Whether anything but metadata (and the status, where that is apart) differs.
fn spec_differs(new: &Value, old: &Value, has_status: bool) -> bool {
    let (Value::Object(new), Value::Object(old)) = (new, old) else {
        return new != old;
    };
    let counts = |key: &str| key != "metadata" && !(has_status && key == "status");
    let one_way = |a: &machinery_value::Map<String, Value>, b: &machinery_value::Map<String, Value>| {
        a.iter()
            .any(|(key, value)| counts(key) && b.get(key) != Some(value))
    };
    one_way(new, old) || one_way(old, new)
}

/// Whether nothing holds a deleting object back any more.
pub(crate) fn ready_to_go(resource: &Resource, content: &Value) -> bool {
    let own = resource.group.is_empty()
        && resource.kind == "Namespace"
        && content["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
    let graceful = content["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0)
        > 0;
    meta::finalizers(content).is_empty() && !own && !graceful
}
