//! The types of the variables that the expressions of a policy see.

use machinery_schema::cel::{CelType, Scope};

/// What the type of `variables` is called.
pub(super) const VARIABLES: &str = "kubernetes.variables";

/// The variables of all policies. The objects are whatever is asked about; a policy without parameters has no `params`.
pub(super) fn scope<'a>(object: CelType<'a>, params: Option<CelType<'a>>) -> Scope<'a> {
    let mut scope = Scope::default();
    scope.declare("object", object.clone());
    scope.declare("oldObject", object);
    scope.declare("request", request());
    scope.declare("namespaceObject", namespace());
    if let Some(params) = params {
        scope.declare("params", params);
    }
    scope
}

fn texts<'a>() -> CelType<'a> {
    CelType::list(CelType::Text)
}

fn request<'a>() -> CelType<'a> {
    let kind = CelType::object(
        "kubernetes.GroupVersionKind",
        [
            ("group", CelType::Text),
            ("version", CelType::Text),
            ("kind", CelType::Text),
        ],
    );
    let resource = CelType::object(
        "kubernetes.GroupVersionResource",
        [
            ("group", CelType::Text),
            ("version", CelType::Text),
            ("resource", CelType::Text),
        ],
    );
    let user = CelType::object(
        "kubernetes.UserInfo",
        [
            ("username", CelType::Text),
            ("uid", CelType::Text),
            ("groups", texts()),
            ("extra", CelType::map(texts())),
        ],
    );
    CelType::object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", CelType::Text),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", CelType::Text),
            ("name", CelType::Text),
            ("namespace", CelType::Text),
            ("operation", CelType::Text),
            ("userInfo", user),
            ("dryRun", CelType::Bool),
            ("options", CelType::Dyn),
        ],
    )
}

fn namespace<'a>() -> CelType<'a> {
    let metadata = CelType::object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", CelType::Text),
            ("generateName", CelType::Text),
            ("namespace", CelType::Text),
            ("labels", CelType::map(CelType::Text)),
            ("annotations", CelType::map(CelType::Text)),
            ("UID", CelType::Text),
            ("creationTimestamp", CelType::Timestamp),
            ("deletionGracePeriodSeconds", CelType::Int),
            ("deletionTimestamp", CelType::Timestamp),
            ("generation", CelType::Int),
            ("resourceVersion", CelType::Text),
            ("finalizers", texts()),
        ],
    );
    let condition = CelType::object(
        "kubernetes.NamespaceCondition",
        [
            ("status", CelType::Text),
            ("type", CelType::Text),
            ("lastTransitionTime", CelType::Timestamp),
            ("message", CelType::Text),
            ("reason", CelType::Text),
        ],
    );
    let spec = CelType::object("kubernetes.NamespaceSpec", [("finalizers", texts())]);
    let status = CelType::object(
        "kubernetes.NamespaceStatus",
        [("conditions", CelType::list(condition)), ("phase", CelType::Text)],
    );
    CelType::object(
        "kubernetes.Namespace",
        [("metadata", metadata), ("spec", spec), ("status", status)],
    )
}

/// Why an expression of this type is not of one of those that are wanted; any will do if there are none.
pub(super) fn wrong_type(found: &CelType<'_>, wanted: &[&str]) -> Option<String> {
    let name = found.output_name();
    if matches!(found, CelType::Unknown) || wanted.is_empty() || wanted.contains(&name.as_str()) {
        return None;
    }
    Some(match wanted {
        [one] => format!("must evaluate to {one} but got {name}"),
        several => format!("must evaluate to one of [{}] but got {name}", several.join(" ")),
    })
}
