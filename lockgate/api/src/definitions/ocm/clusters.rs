//! ManagedCluster, ManagedClusterSet and ManagedClusterSetBinding.

use serde_json::{Value, json};

use super::super::crd::{Crd, column, condition_path};
use super::super::schema::{
    NAME_LENGTH, QUALIFIED_NAME, Schema, boolean, int32, list, object, rule, string, time, word,
};
use super::super::shared::{any_label_selector, quantities};
use super::{EFFECTS, MAX_TAINTS, TAINT_KEY_LENGTH, TAINT_VALUE_LENGTH, condition_map, kind, named};

/// The longest name of a namespace.
const NAMESPACE_LENGTH: usize = 63;

/// The definitions.
pub(super) fn crds() -> [Value; 3] {
    [cluster(), set(), binding()]
}

fn age() -> Value {
    column("Age", "date", ".metadata.creationTimestamp")
}

fn cluster() -> Value {
    let crd = Crd {
        status: Some(cluster_status()),
        spec: cluster_spec().default(json!({})),
        description: "A cluster as placements see it. It follows from the Cluster of its name.",
        columns: vec![
            column("Hub Accepted", "boolean", ".spec.hubAcceptsClient"),
            column(
                "Managed Cluster URLs",
                "string",
                ".spec.managedClusterClientConfigs[*].url",
            ),
            column("Joined", "string", &condition_path("ManagedClusterJoined")),
            column(
                "Available",
                "string",
                &condition_path("ManagedClusterConditionAvailable"),
            ),
            age(),
        ],
        ..kind("v1", "ManagedCluster", "managedclusters")
    };
    let crd = crd.build_with(|schema| {
        schema.rule(rule(
            format!("size(self.metadata.name) <= {NAMESPACE_LENGTH} && !self.metadata.name.contains('.')"),
            "metadata.name must be a name that a namespace can have",
        ))
    });
    named(crd, &["mcl", "mcls"])
}

fn cluster_spec() -> Schema {
    let config = object(
        "An API server of the cluster.",
        [
            (
                "url",
                string("Its URL; https.")
                    .max_length(2048)
                    .pattern(r"^https://[^/?#@\s]+(/[^?#\s]*)?$"),
            ),
            ("caBundle", string("Its authorities.").set("format", "byte")),
        ],
    )
    .required(&["url"]);
    let taint = object(
        "Keeps placements off the cluster.",
        [
            (
                "key",
                string("Its key.")
                    .pattern(QUALIFIED_NAME)
                    .max_length(TAINT_KEY_LENGTH),
            ),
            ("value", string("Its value.").max_length(TAINT_VALUE_LENGTH)),
            (
                "effect",
                word("What it does to placements that do not tolerate it.", &EFFECTS),
            ),
            (
                "timeAdded",
                time("Since when it is there; filled in.").set("nullable", true),
            ),
        ],
    )
    .required(&["effect", "key"]);
    object(
        "How it is reached, and what keeps placements off it.",
        [
            ("managedClusterClientConfigs", list("Its API servers.", config)),
            (
                "hubAcceptsClient",
                boolean("Whether the hub accepts the cluster.").default(false),
            ),
            (
                "leaseDurationSeconds",
                int32("How often the cluster has to say that it is there.").default(60),
            ),
            (
                "taints",
                list("What keeps placements off it.", taint).max_items(MAX_TAINTS),
            ),
        ],
    )
}

fn cluster_status() -> Schema {
    let claim = object(
        "Something that the cluster says about itself.",
        [
            (
                "name",
                string("What it speaks of.").min_length(1).max_length(NAME_LENGTH),
            ),
            ("value", string("What it says.").min_length(1).max_length(1024)),
        ],
    );
    let namespace = object(
        "A namespace that a set manages there.",
        [
            ("clusterSet", string("The set.")),
            ("name", string("The namespace.").max_length(NAMESPACE_LENGTH)),
            ("conditions", condition_map("How it is.")),
        ],
    )
    .required(&["clusterSet", "name"]);
    object(
        "How it is.",
        [
            (
                "conditions",
                condition_map(
                    "ManagedClusterJoined, HubAcceptedManagedCluster, ManagedClusterConditionAvailable and others.",
                ),
            ),
            ("capacity", quantities("What its nodes have.")),
            ("allocatable", quantities("What pods may have in all.")),
            (
                "version",
                object("Its version.", [("kubernetes", string("That of Kubernetes."))]),
            ),
            ("clusterClaims", list("What it says about itself.", claim)),
            (
                "managedNamespaces",
                list("Namespaces that sets manage there.", namespace)
                    .set("x-kubernetes-list-type", "map")
                    .set("x-kubernetes-list-map-keys", ["clusterSet", "name"]),
            ),
        ],
    )
}

fn set() -> Value {
    let selector = object(
        "How the clusters are found.",
        [
            (
                "selectorType",
                word(
                    "By the label that names the set, or by any labels.",
                    &["ExclusiveClusterSetLabel", "LabelSelector"],
                )
                .default("ExclusiveClusterSetLabel"),
            ),
            (
                "labelSelector",
                any_label_selector(
                    "For LabelSelector: an empty one means all clusters, and none means none.",
                ),
            ),
        ],
    );
    let exclusive = json!({"selectorType": "ExclusiveClusterSetLabel"});
    let namespace = object(
        "A namespace.",
        [(
            "name",
            string("Its name.").min_length(1).max_length(NAMESPACE_LENGTH),
        )],
    )
    .required(&["name"]);
    let crd = Crd {
        status: Some(object(
            "What became of it.",
            [("conditions", condition_map("ClusterSetEmpty."))],
        )),
        spec: object(
            "Who belongs to it.",
            [
                ("clusterSelector", selector.default(&exclusive)),
                (
                    "managedNamespaces",
                    list(
                        "Namespaces on its clusters; nothing follows from them here.",
                        namespace,
                    )
                    .set("x-kubernetes-list-type", "map")
                    .set("x-kubernetes-list-map-keys", ["name"]),
                ),
            ],
        )
        .default(json!({"clusterSelector": exclusive})),
        description: "A set of clusters.",
        columns: vec![
            column("Empty", "string", &condition_path("ClusterSetEmpty")),
            age(),
        ],
        ..kind("v1beta2", "ManagedClusterSet", "managedclustersets")
    };
    named(crd.build(), &["mclset", "mclsets"])
}

fn binding() -> Value {
    let crd = Crd {
        namespaced: true,
        status: Some(object(
            "What became of it.",
            [("conditions", condition_map("Bound."))],
        )),
        spec: object(
            "Which set.",
            [(
                "clusterSet",
                string("The name of the set, which is the name of this object too.")
                    .min_length(1)
                    .max_length(NAME_LENGTH),
            )],
        )
        .required(&["clusterSet"]),
        description: "The clusters of a set may be used in this namespace.",
        columns: Vec::new(),
        ..kind("v1beta2", "ManagedClusterSetBinding", "managedclustersetbindings")
    };
    let crd = crd.build_with(|schema| {
        schema.rule(rule(
            "self.spec.clusterSet == self.metadata.name",
            "spec.clusterSet must be the name of the binding",
        ))
    });
    named(crd, &["mclsetbinding", "mclsetbindings"])
}
