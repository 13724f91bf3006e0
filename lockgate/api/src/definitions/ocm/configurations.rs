//! ConfigurationPolicy.

use serde_json::{Value, json};

use super::super::crd::{Crd, column};
use super::super::schema::{
    Schema, boolean, int64, list, object, raw_object, rule, string, string_map, strings, word,
};
use super::super::shared::{any_label_selector, conditions};
use super::policies::ACTIONS;
use super::{kind, named};
use crate::ocm::POLICY_GROUP;
use crate::ocm::configuration::{POLICY_TYPE, TEMPLATE};

/// Every spelling of what must be so.
const MUST: [&str; 9] = [
    "MustHave",
    "Musthave",
    "musthave",
    "MustOnlyHave",
    "Mustonlyhave",
    "mustonlyhave",
    "MustNotHave",
    "Mustnothave",
    "mustnothave",
];
/// A duration, or one of two words; nothing: as if absent.
const INTERVAL: &str = r"^$|^(watch|never|([0-9]+(\.[0-9]+)?(h|m|s|ms|us|ns))+)$";

/// The definition.
pub(super) fn configuration_policy() -> Value {
    let crd = Crd {
        group: POLICY_GROUP,
        namespaced: true,
        status: Some(status()),
        spec: spec(),
        description: "Objects that a cluster must have, or must not have. It lives in a namespace of that cluster.",
        columns: vec![column("Compliance state", "string", ".status.compliant")],
        ..kind("v1", "ConfigurationPolicy", "configurationpolicies")
    };
    let mut crd = named(crd.build(), &[]);
    // Says that it may be a template of policies.
    crd["metadata"]["labels"] = json!({POLICY_TYPE: TEMPLATE});
    crd
}

fn spec() -> Schema {
    let interval = |description: &str| string(description).pattern(INTERVAL);
    object(
        "Which objects.",
        [
            (
                "remediationAction",
                word("Whether what is not so is only told, or is changed.", &ACTIONS).default("inform"),
            ),
            (
                "severity",
                word(
                    "How bad it is; nothing follows from it.",
                    &[
                        "low", "Low", "medium", "Medium", "high", "High", "critical", "Critical",
                    ],
                ),
            ),
            ("namespaceSelector", namespaces()),
            ("object-templates", list("The objects.", template())),
            (
                "object-templates-raw",
                string("The same as one text of YAML, which holds a list."),
            ),
            (
                "evaluationInterval",
                object(
                    "How often it is looked at: a duration, never, or watch, which is the default.",
                    [
                        ("compliant", interval("While it is compliant.")),
                        ("noncompliant", interval("While it is not.")),
                    ],
                ),
            ),
            (
                "pruneObjectBehavior",
                word(
                    "Whether objects go that it no longer names, or with itself: none, those that it made, or all.",
                    &["None", "DeleteIfCreated", "DeleteAll"],
                )
                .default("None"),
            ),
            (
                "customMessage",
                object(
                    "Other words for what is said.",
                    [
                        ("compliant", string("While it is compliant.")),
                        ("noncompliant", string("While it is not.")),
                    ],
                ),
            ),
        ],
    )
    .rule(rule(
        "has(self.object__dash__templates) != has(self.object__dash__templates__dash__raw)",
        "exactly one of object-templates and object-templates-raw must be given",
    ))
}

fn namespaces() -> Schema {
    let requirement = object(
        "One requirement.",
        [
            ("key", string("The label.")),
            (
                "operator",
                string("How the label is compared: In, NotIn, Exists or DoesNotExist."),
            ),
            ("values", strings("The values, for In and NotIn only.")),
        ],
    )
    .required(&["key", "operator"]);
    object(
        "Namespaces of the objects that name none: those that labels and include choose, without those of exclude.",
        [
            (
                "matchLabels",
                string_map("Labels with exactly these values; all of them."),
            ),
            (
                "matchExpressions",
                list("Requirements on labels; all of them.", requirement),
            ),
            ("include", strings("Names, as shell patterns.")),
            ("exclude", strings("Names, as shell patterns.")),
            (
                "terminatingInclusion",
                word(
                    "What happens with namespaces that are going.",
                    &["IfMatch", "Never", "Default"],
                )
                .default("Default"),
            ),
        ],
    )
}

fn template() -> Schema {
    object(
        "One object, or some.",
        [
            (
                "complianceType",
                word("What must be so of it.", &MUST),
            ),
            (
                "metadataComplianceType",
                word(
                    "The same for labels and annotations; absent: as complianceType.",
                    &MUST[..6],
                ),
            ),
            ("objectDefinition", raw_object("The object.")),
            (
                "objectSelector",
                any_label_selector("Objects by their labels, where the object has no name."),
            ),
            (
                "recreateOption",
                word(
                    "Whether an object is made again that cannot be changed: not at all, where it must be, or always.",
                    &["None", "IfRequired", "Always"],
                )
                .default("None"),
            ),
            (
                "recordDiff",
                word("Where differences are told.", &["Log", "InStatus", "None"]),
            ),
        ],
    )
    .required(&["complianceType", "objectDefinition"])
}

fn related(description: &str) -> Schema {
    let reference = object(
        "Which.",
        [
            ("apiVersion", string("Its group and version.")),
            ("kind", string("Its kind.")),
            (
                "metadata",
                object(
                    "What it is called.",
                    [
                        ("name", string("Its name.")),
                        ("namespace", string("Its namespace.")),
                    ],
                ),
            ),
        ],
    );
    let properties = object(
        "What else is known of it.",
        [
            ("createdByPolicy", boolean("Whether the policy made it.")),
            (
                "enforcedByPolicy",
                boolean("Whether the policy spoke of it while it enforced."),
            ),
            ("uid", string("Its uid.")),
            ("diff", string("What differs.")),
            (
                "matchesAfterDryRun",
                boolean("Whether the server says that nothing differs."),
            ),
        ],
    );
    let related = object(
        "An object.",
        [
            ("object", reference),
            ("compliant", string("Whether it is as it should be.")),
            ("reason", string("Why.")),
            ("properties", properties),
        ],
    );
    list(description, related)
}

fn status() -> Schema {
    let details = object(
        "How the objects of one template are.",
        [
            ("Compliant", string("Whether they are as they should be.")),
            ("Validity", raw_object("Not written here.")),
            ("conditions", conditions("What is so, and why.")),
        ],
    );
    let entry = object(
        "What was said.",
        [("lastTimestamp", string("When.")), ("message", string("What."))],
    );
    let further = object(
        "Objects of one kind.",
        [
            ("apiVersion", string("Group and version.")),
            ("kind", string("Kind.")),
            (
                "objects",
                list("Namespace, name and uid, and whose they are.", string("One.")),
            ),
        ],
    );
    object(
        "How the objects are.",
        [
            (
                "compliant",
                word(
                    "Whether they are as they should be.",
                    &["", "Compliant", "NonCompliant", "Terminating"],
                ),
            ),
            ("compliancyDetails", list("Each template.", details)),
            ("relatedObjects", related("The objects that were looked at.")),
            (
                "pendingPrune",
                related("Objects that no template names any more, which go when it next enforces."),
            ),
            (
                "furtherObjects",
                list("Objects that are not told because there are too many.", further),
            ),
            ("lastEvaluated", string("When it was last looked at.")),
            (
                "lastEvaluatedGeneration",
                int64("The generation that was looked at."),
            ),
            ("history", list("What was said, the newest first.", entry)),
        ],
    )
}
