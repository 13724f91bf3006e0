//! OverridePolicy and ClusterOverridePolicy.

use serde_json::Value;

use super::crd::Crd;
use super::policies::{GROUP, VERSION};
use super::schema::{Schema, list, object, pointer, rule, string, string_map, strings, word};
use super::shared::{cluster_affinity, labels, operation, operator, resource_selectors};

/// Rules in one policy.
const MAX_RULES: usize = 1000;
/// Changes of documents inside strings in one rule.
const MAX_FIELDS: usize = 256;

/// The two override policies.
pub(super) fn crds() -> [Value; 2] {
    [true, false].map(|namespaced| {
        Crd {
            group: GROUP,
            version: VERSION,
            kind: if namespaced {
                "OverridePolicy"
            } else {
                "ClusterOverridePolicy"
            },
            plural: if namespaced {
                "overridepolicies"
            } else {
                "clusteroverridepolicies"
            },
            short: Some(if namespaced { "op" } else { "cop" }),
            namespaced,
            status: None,
            spec: spec(),
            description: if namespaced {
                "What differs from cluster to cluster, for objects of its namespace."
            } else {
                "What differs from cluster to cluster, for objects of the whole hub."
            },
            columns: Vec::new(),
        }
        .build()
    })
}

fn spec() -> Schema {
    let override_rule = object(
        "What differs in some clusters.",
        [
            ("targetCluster", cluster_affinity("Which clusters; absent: all.")),
            ("overriders", overriders("What differs there.")),
        ],
    )
    .required(&["overriders"]);
    let nothing = [
        "plaintext",
        "imageOverrider",
        "commandOverrider",
        "argsOverrider",
        "labelsOverrider",
        "annotationsOverrider",
        "fieldOverrider",
    ]
    .map(|field| format!("(!has(self.overriders.{field}) || size(self.overriders.{field}) == 0)"))
    .join(" && ");
    object(
        "What differs, for which objects, where.",
        [
            (
                "resourceSelectors",
                resource_selectors("Which objects; any of the selectors. Empty: all."),
            ),
            (
                "overrideRules",
                list("The rules, in order.", override_rule).max_items(MAX_RULES),
            ),
            (
                "targetCluster",
                cluster_affinity("The older form of a single rule: which clusters."),
            ),
            (
                "overriders",
                overriders("The older form of a single rule: what differs."),
            ),
        ],
    )
    .rule(
        rule(
            "!(has(self.overrideRules) && has(self.targetCluster))",
            "targetCluster and overrideRules exclude each other",
        )
        .at(".targetCluster")
        .forbidden(),
    )
    .rule(
        rule(
            format!("!has(self.overrideRules) || !has(self.overriders) || ({nothing})"),
            "overriders and overrideRules exclude each other",
        )
        .at(".overriders")
        .forbidden(),
    )
}

fn overriders(description: &str) -> Schema {
    object(
        description,
        [
            (
                "plaintext",
                list(
                    "Operations of a JSON patch.",
                    operation("One operation.", "path", pointer("Where, as a JSON pointer.")),
                ),
            ),
            ("imageOverrider", list("Changes of images.", image())),
            (
                "commandOverrider",
                list("Changes of the commands of containers.", command()),
            ),
            (
                "argsOverrider",
                list("Changes of the arguments of containers.", command()),
            ),
            (
                "labelsOverrider",
                list(
                    "Changes of labels.",
                    labelled("One change.", labels("The labels; for remove the keys count.")),
                ),
            ),
            (
                "annotationsOverrider",
                list(
                    "Changes of annotations.",
                    labelled(
                        "One change.",
                        string_map("The annotations; for remove the keys count."),
                    ),
                ),
            ),
            (
                "fieldOverrider",
                list("Changes inside documents that are kept in strings.", field()).max_items(MAX_FIELDS),
            ),
        ],
    )
}

fn image() -> Schema {
    let predicate = object(
        "Where the image is; absent: the images of all containers.",
        [("path", pointer("A JSON pointer to the image."))],
    )
    .required(&["path"]);
    object(
        "A change of a part of an image.",
        [
            ("predicate", predicate),
            (
                "component",
                word(
                    "Which part: [registry/]repository[:tag|@digest].",
                    &["Registry", "Repository", "Tag"],
                ),
            ),
            ("operator", operator()),
            ("value", string("The value; for add and replace.")),
        ],
    )
    .required(&["component", "operator"])
}

fn command() -> Schema {
    object(
        "A change of one container.",
        [
            ("containerName", string("Which container.")),
            ("operator", word("What is done.", &["add", "remove"])),
            ("value", strings("The strings that are added or removed.")),
        ],
    )
    .required(&["containerName", "operator"])
}

fn labelled(description: &str, value: Schema) -> Schema {
    object(description, [("operator", operator()), ("value", value)]).required(&["operator"])
}

fn field() -> Schema {
    let patch = || {
        operation(
            "One operation.",
            "subPath",
            pointer("Where in the document, as a JSON pointer."),
        )
    };
    object(
        "A change inside one document.",
        [
            ("fieldPath", pointer("A JSON pointer to the string.")),
            ("json", list("Operations on a document in JSON.", patch())),
            ("yaml", list("Operations on a document in YAML.", patch())),
        ],
    )
    .required(&["fieldPath"])
    .rule(
        rule(
            "!(has(self.json) && size(self.json) > 0 && has(self.yaml) && size(self.yaml) > 0)",
            "yaml and json exclude each other",
        )
        .at(".yaml")
        .forbidden(),
    )
}
