//! ResourceInterpreterCustomization.

use serde_json::Value;

use super::crd::{Crd, column, condition_path};
use super::schema::{Schema, int64, object, string};
use super::shared::conditions;

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
