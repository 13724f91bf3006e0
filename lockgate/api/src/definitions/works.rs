//! Work.

use serde_json::Value;

use super::bindings::GROUP;
use super::crd::{Crd, column, condition_path};
use super::schema::{Schema, boolean, int64, list, object, raw_object, string, word};
use super::shared::conditions;

/// The definition of Works.
pub(super) fn crd() -> Value {
    Crd {
        group: GROUP,
        version: "v1alpha1",
        kind: "Work",
        plural: "works",
        short: Some("wk"),
        namespaced: true,
        status: Some(status()),
        spec: spec(),
        description: "What one cluster was told. It lives in the cluster's execution namespace.",
        columns: vec![
            column("WORKLOAD-KIND", "string", ".spec.workload.manifests[*].kind"),
            column("APPLIED", "string", &condition_path("Applied")),
            column("AGE", "date", ".metadata.creationTimestamp"),
        ],
    }
    .build()
}

fn spec() -> Schema {
    // Not marked as an embedded resource: a server would take its metadata apart, by way of JSON, each time it reads a Work,
    // which is a twentieth of all that it does for us.
    let manifest = object(
        "An object as the cluster gets it.",
        [
            ("apiVersion", string("Its group and version.").set("minLength", 1)),
            ("kind", string("Its kind.").set("minLength", 1)),
            ("metadata", raw_object("Its name, labels and the like.")),
        ],
    )
    .set("x-kubernetes-preserve-unknown-fields", true)
    .required(&["apiVersion", "kind", "metadata"]);
    object(
        "What the cluster is told.",
        [
            (
                "workload",
                object(
                    "The manifests.",
                    [(
                        "manifests",
                        list("The manifests; the system writes exactly one.", manifest),
                    )],
                ),
            ),
            ("suspendDispatching", boolean("Whether nothing is sent.")),
            (
                "preserveResourcesOnDeletion",
                boolean("Whether the cluster keeps the object when the Work is deleted."),
            ),
        ],
    )
}

fn status() -> Schema {
    let identifier = object(
        "Which manifest.",
        [
            ("ordinal", int64("Its place in the list.")),
            ("group", string("Its group.")),
            ("version", string("Its version.")),
            ("kind", string("Its kind.")),
            ("resource", string("Its resource; not filled in.")),
            ("namespace", string("Its namespace.")),
            ("name", string("Its name.")),
        ],
    )
    .required(&["kind", "name", "ordinal", "resource", "version"]);
    let manifest = object(
        "What was seen of one manifest.",
        [
            ("identifier", identifier),
            ("status", raw_object("The status of the object.")),
            (
                "health",
                word("How the object is.", &["Healthy", "Unhealthy", "Unknown"]),
            ),
        ],
    )
    .required(&["identifier"]);
    let last_applied = object(
        "What was last sent, so that a restart need not send it again.",
        [
            ("workGeneration", int64("The generation of the Work.")),
            ("uid", string("The uid of the object in the cluster.")),
            (
                "version",
                string(
                    "The version of the object after it was sent: gen:N, or rv:N for kinds without a generation.",
                ),
            ),
            (
                "replicas",
                int64("The replicas of the object after it was sent, if its kind has any."),
            ),
        ],
    );
    object(
        "What the cluster answered.",
        [
            ("conditions", conditions("Applied and Dispatching.")),
            (
                "manifestStatuses",
                list("What was seen of each manifest.", manifest),
            ),
            ("lastApplied", last_applied),
        ],
    )
}
