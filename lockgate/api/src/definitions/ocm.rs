//! The kinds of Open Cluster Management that are served here: clusters, sets, placements and policies.
//!
//! Their shape is that of the released definitions, so that what people have applies unchanged. What their webhooks refuse
//! is refused by rules.

mod clusters;
mod configurations;
mod placements;
mod policies;
mod policy_bindings;

use serde_json::{Value, json};

use super::crd::Crd;
use super::schema::{Schema, list, object, string};
use super::shared::conditions;
pub(super) use crate::ocm::{APPS_GROUP, GROUP, POLICY_GROUP};

/// The name of a decision group.
pub(super) const GROUP_NAME: &str = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$";
/// Expressions in one selector.
const MAX_REQUIREMENTS: usize = 64;
/// The longest value of a taint.
const TAINT_VALUE_LENGTH: usize = 1024;
/// The longest key of a taint.
const TAINT_KEY_LENGTH: usize = 316;
/// Taints of one cluster, and tolerations of one placement.
const MAX_TAINTS: usize = 256;
/// What taints do.
const EFFECTS: [&str; 3] = ["NoSelect", "PreferNoSelect", "NoSelectIfNew"];

/// The definitions.
pub(super) fn crds() -> Vec<Value> {
    let mut all = Vec::from(clusters::crds());
    all.extend(placements::crds());
    all.extend(policy_bindings::crds());
    all.extend(policy_crds());
    all
}

/// The definitions of policies and of their templates, which members have too.
pub(super) fn policy_crds() -> [Value; 2] {
    [policies::policy(), configurations::configuration_policy()]
}

/// A definition with these short names. OCM puts its kinds into no category.
fn named(mut crd: Value, short: &[&str]) -> Value {
    if let Some(names) = crd["spec"]["names"].as_object_mut() {
        names.remove("categories");
        if !short.is_empty() {
            names.insert("shortNames".to_owned(), json!(short));
        }
    }
    crd
}

/// A definition of a kind that has a status alone.
fn without_spec(mut crd: Value) -> Value {
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("required");
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove("spec");
    }
    crd
}

/// A kind of the group.
fn kind(version: &'static str, kind: &'static str, plural: &'static str) -> Crd {
    Crd {
        group: GROUP,
        version,
        kind,
        plural,
        short: None,
        namespaced: false,
        status: None,
        spec: object("", []),
        description: "",
        columns: Vec::new(),
    }
}

/// Conditions, each of its type once.
fn condition_map(description: &str) -> Schema {
    conditions(description)
        .set("x-kubernetes-list-type", "map")
        .set("x-kubernetes-list-map-keys", ["type"])
}

/// Claims that must match.
fn claim_selector(description: &str) -> Schema {
    let requirement = object(
        "One requirement.",
        [
            ("key", string("The name of the claim.")),
            (
                "operator",
                string("How the claim is compared: In, NotIn, Exists or DoesNotExist."),
            ),
            (
                "values",
                super::schema::strings("The values, for the operators In and NotIn only."),
            ),
        ],
    )
    .required(&["key", "operator"]);
    object(
        description,
        [(
            "matchExpressions",
            list("Requirements; all of them.", requirement).max_items(MAX_REQUIREMENTS),
        )],
    )
}

/// Labels and claims that must match.
pub(super) fn selectors(description: &str, labels: Schema) -> Schema {
    object(
        description,
        [
            ("labelSelector", labels),
            (
                "claimSelector",
                claim_selector("Clusters by what they say about themselves."),
            ),
        ],
    )
}
