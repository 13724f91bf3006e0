//! Cluster.

use serde_json::Value;

use super::crd::{Crd, column, condition_path, wide_column};
use super::schema::{
    Schema, boolean, int32, label_key, label_value, list, map, name, object, quantity, rule, string, strings,
    time, word,
};
use super::shared::{conditions, quantities};
pub(super) use crate::cluster::NO_LIMIT;
use crate::cluster::usual_models;

/// Group of clusters.
pub(super) const GROUP: &str = "cluster.karmada.io";

/// Grades of nodes in one cluster. What the grades say is checked by an admission policy: amounts are numbers or texts, for
/// which the cost of a rule is overestimated beyond every limit.
const MAX_MODELS: usize = 64;
/// Resources that a grade speaks of.
const MAX_RANGES: usize = 16;
/// Taints of one cluster.
const MAX_TAINTS: usize = 64;
/// The longest URL.
const URL_LENGTH: usize = 2048;

/// The definition of Clusters.
pub(super) fn crd() -> Value {
    Crd {
        group: GROUP,
        version: "v1alpha1",
        kind: "Cluster",
        plural: "clusters",
        short: None,
        namespaced: false,
        status: Some(status()),
        spec: spec(),
        description: "A member cluster: how to reach it, what it is like, and how it is.",
        columns: vec![
            column("Version", "string", ".status.kubernetesVersion"),
            column("Mode", "string", ".spec.syncMode"),
            column("Ready", "string", &condition_path("Ready")),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide_column("Zones", "string", ".spec.zones"),
            wide_column("Region", "string", ".spec.region"),
            wide_column("Provider", "string", ".spec.provider"),
            wide_column("API-Endpoint", "string", ".spec.apiEndpoint"),
            wide_column("Proxy-URL", "string", ".spec.proxyURL"),
        ],
    }
    // The name becomes part of the execution namespace's, which leaves it 48 characters and no dots.
    .build_with(|schema| {
        schema.rule(rule(
            "size(self.metadata.name) <= 48 && !self.metadata.name.contains('.')",
            "metadata.name must be a DNS label of at most 48 characters",
        ))
    })
}

fn secret(description: &str) -> Schema {
    object(
        description,
        [
            ("namespace", name("Its namespace.").min_length(1)),
            ("name", name("Its name.").min_length(1)),
        ],
    )
    .required(&["name", "namespace"])
}

fn spec() -> Schema {
    object(
        "How to reach it, and what it is like.",
        [
            ("id", string("The uid of its namespace kube-system.")),
            (
                "syncMode",
                word(
                    "Whether the hub reaches the cluster, or the cluster the hub.",
                    &["Push", "Pull"],
                ),
            ),
            (
                "apiEndpoint",
                string("The URL of its API server, without user, query and fragment.")
                    .max_length(URL_LENGTH)
                    .pattern(r"^(https?://[^/?#@\s]+(/[^?#\s]*)?)?$"),
            ),
            ("secretRef", secret("The Secret with its token and caBundle.")),
            (
                "impersonatorSecretRef",
                secret("The Secret with a token that may impersonate users there."),
            ),
            (
                "insecureSkipTLSVerification",
                boolean("Whether its certificate is not checked."),
            ),
            (
                "proxyURL",
                string("The proxy on the way to it: http, https or socks5.")
                    .max_length(URL_LENGTH)
                    .pattern(r"^((https?|socks5)://\S+)?$"),
            ),
            (
                "proxyHeader",
                map("Headers for the proxy.", string("A header's value.")),
            ),
            ("provider", label_value("Who runs it.")),
            ("region", label_value("Where it is.")),
            (
                "zone",
                label_value("The older form of zones, which are written for it."),
            ),
            (
                "zones",
                list("Where it is, in more detail.", label_value("A zone.")),
            ),
            ("taints", taints()),
            ("resourceModels", models()),
        ],
    )
    .required(&["syncMode"])
    .rule(
        rule(
            // The controllers write zones where there is only zone, and leave both.
            concat!(
                "!has(self.zone) || self.zone == '' || !has(self.zones) || size(self.zones) == 0 || ",
                "self.zones == [self.zone]",
            ),
            "zone and zones exclude each other unless they say the same: leave zone out to change zones",
        )
        .at(".zone")
        .forbidden(),
    )
}

fn taints() -> Schema {
    let taint = object(
        "Keeps things off the cluster.",
        [
            ("key", label_key("Its key.").min_length(1)),
            ("value", label_value("Its value.")),
            (
                "effect",
                word(
                    "What it does to those that do not tolerate it.",
                    &["NoSchedule", "PreferNoSchedule", "NoExecute"],
                ),
            ),
            ("timeAdded", time("Since when it is there.")),
        ],
    )
    .required(&["effect", "key"]);
    list("What keeps things off the cluster.", taint)
        .max_items(MAX_TAINTS)
        .rule(
            rule(
                "self.all(a, self.exists_one(b, b.key == a.key && b.effect == a.effect))",
                "taints must differ in key or effect",
            )
            .duplicate(),
        )
}

fn models() -> Schema {
    let range = object(
        "The amounts of one resource.",
        [
            ("name", string("The resource.")),
            ("min", quantity("From this amount on.")),
            ("max", quantity("Up to this amount, which is the next grade's.")),
        ],
    )
    .required(&["max", "min", "name"]);
    let model = object(
        "A grade of nodes.",
        [
            ("grade", int32("The grade.").minimum(0)),
            (
                "ranges",
                list("What nodes of this grade have.", range).max_items(MAX_RANGES),
            ),
        ],
    )
    .required(&["grade", "ranges"]);
    list("Grades of nodes, from the smallest on.", model)
        .default(usual_models())
        .max_items(MAX_MODELS)
}

fn status() -> Schema {
    let resource = object(
        "A kind that it serves.",
        [
            ("name", string("Its plural name.")),
            ("kind", string("Its kind.")),
        ],
    )
    .required(&["kind", "name"]);
    let enablement = object(
        "The kinds of one group and version.",
        [
            ("groupVersion", string("Group and version.")),
            ("resources", list("The kinds.", resource)),
        ],
    )
    .required(&["groupVersion"]);
    let modeling = object(
        "How many nodes are of one grade.",
        [
            ("grade", int32("The grade.")),
            ("count", int32("How many nodes.")),
        ],
    )
    .required(&["count", "grade"]);
    object(
        "How it is.",
        [
            ("kubernetesVersion", string("Its version.")),
            ("apiEnablements", list("The kinds that it serves.", enablement)),
            ("conditions", conditions("Ready and CompleteAPIEnablements.")),
            (
                "nodeSummary",
                object(
                    "Its nodes.",
                    [
                        ("totalNum", int32("How many there are.")),
                        ("readyNum", int32("How many are ready.")),
                    ],
                ),
            ),
            (
                "resourceSummary",
                object(
                    "Its resources.",
                    [
                        ("allocatable", quantities("What pods may have in all.")),
                        ("allocating", quantities("What pods that wait ask for.")),
                        ("allocated", quantities("What pods have.")),
                        ("allocatableModelings", list("Its nodes by grade.", modeling)),
                    ],
                ),
            ),
            ("remedyActions", strings("What is done about its failures.")),
        ],
    )
}
