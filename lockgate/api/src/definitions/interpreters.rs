//! ResourceInterpreterCustomization; and ResourceInterpreterWebhookConfiguration, which is refused with a reason: nothing here
//! calls out, and what is stored is never ignored.

use serde_json::{Value, json};

use super::crd::{Crd, column, condition_path};
use super::schema::{Schema, int64, object, string};
use super::shared::conditions;

/// Why there are no interpreter webhooks, and what there is instead.
pub const WEBHOOKS_REFUSED: &str = "interpreter webhooks are not called: say how the kind is read in Lua, in a \
     ResourceInterpreterCustomization";

/// The longest script.
const SCRIPT_LENGTH: usize = 256 * 1024;

/// The customization of a kind.
pub(super) fn crd() -> Value {
    Crd {
        group: "config.karmada.io",
        version: "v1alpha1",
        kind: "ResourceInterpreterCustomization",
        plural: "resourceinterpretercustomizations",
        short: Some("ric"),
        namespaced: false,
        status: Some(status()),
        spec: spec(),
        description: "How the objects of a kind are read.",
        columns: vec![
            column("TARGET-API-VERSION", "string", ".spec.target.apiVersion"),
            column("TARGET-KIND", "string", ".spec.target.kind"),
            column("ACCEPTED", "string", &condition_path("Accepted")),
            column("AGE", "date", ".metadata.creationTimestamp"),
        ],
    }
    .build()
}

/// The kind of interpreter webhooks, of which there can be none.
pub(super) fn webhook_crd() -> Value {
    let mut crd = Crd {
        group: "config.karmada.io",
        version: "v1alpha1",
        kind: "ResourceInterpreterWebhookConfiguration",
        plural: "resourceinterpreterwebhookconfigurations",
        short: None,
        namespaced: false,
        status: None,
        spec: object("", []),
        description: "Webhooks that read objects. They are not called, and therefore refused.",
        columns: vec![column("AGE", "date", ".metadata.creationTimestamp")],
    }
    .build();
    // The kind has no spec: what there is of it is beside its metadata.
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "description": "Webhooks that read objects. They are not called, and therefore refused.",
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of this object."},
            "kind": {"type": "string", "description": "Kind of this object."},
            "metadata": {"type": "object"},
            "webhooks": {
                "type": "array",
                "description": "Who would be called for which kinds.",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        },
        "x-kubernetes-validations": [
            {"rule": "false", "message": WEBHOOKS_REFUSED, "reason": "FieldValueForbidden"},
        ],
    });
    crd
}

fn spec() -> Schema {
    let target = object(
        "The kind.",
        [
            (
                "apiVersion",
                string("Its apiVersion.").min_length(1).max_length(253),
            ),
            ("kind", string("Its kind.").min_length(1).max_length(63)),
        ],
    )
    .required(&["apiVersion", "kind"]);
    object(
        "Which kind is read how. Of several customizations of a kind, the first by name that has a script counts.",
        [("target", target), ("customizations", customizations())],
    )
    .required(&["target", "customizations"])
}

fn customizations() -> Schema {
    object(
        "The scripts, in Lua 5.1. What has none is read as usual.",
        [
            (
                "retention",
                script("Retain(desiredObj, observedObj): the object to be written to a member."),
            ),
            (
                "replicaResource",
                script("GetReplicas(obj): how many replicas it asks for, and what one of them needs."),
            ),
            (
                "componentResource",
                script("GetComponents(obj): its parts that have replicas of their own."),
            ),
            (
                "replicaRevision",
                script("ReviseReplica(obj, desiredReplica): the object with that many replicas."),
            ),
            (
                "statusReflection",
                script("ReflectStatus(observedObj): the part of a member's status that is kept."),
            ),
            (
                "statusAggregation",
                script("AggregateStatus(desiredObj, statusItems): the template with the status of all."),
            ),
            (
                "healthInterpretation",
                script("InterpretHealth(observedObj): whether a member's object is well."),
            ),
            (
                "dependencyInterpretation",
                script("GetDependencies(desiredObj): what it needs beside itself."),
            ),
        ],
    )
}

fn script(description: &str) -> Schema {
    let text = string("The script.").min_length(1).max_length(SCRIPT_LENGTH);
    object(description, [("luaScript", text)]).required(&["luaScript"])
}

fn status() -> Schema {
    object(
        "What became of it. Nothing follows from it.",
        [
            ("observedGeneration", int64("The generation that this speaks of.")),
            (
                "conditions",
                conditions("Accepted: whether every script can be read and defines its function."),
            ),
        ],
    )
}
