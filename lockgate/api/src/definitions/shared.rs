//! Parts that several kinds share.

use super::schema::{
    LABEL_VALUE_LENGTH, QUALIFIED_NAME, QUALIFIED_NAME_LENGTH, Schema, any, api_version, int64, kind,
    label_key, label_value, list, map, name, object, quantity, rule, string, string_map, strings, time, word,
};

/// Requirements in one selector.
const MAX_REQUIREMENTS: usize = 64;
/// Labels in one selector of objects.
const MAX_LABELS: usize = 64;
/// Labels in one selector of clusters. With the longest list of weights a rule about each costs less than half of what it may.
const MAX_CLUSTER_LABELS: usize = 32;

/// A label selector of clusters, as everywhere in Kubernetes. Keys and values that no label has are refused: they would match nothing,
/// and nobody would be told.
pub(super) fn label_selector(description: &str) -> Schema {
    bounded_selector(description, MAX_CLUSTER_LABELS, |labels| {
        labels.rule(rule(keys("self"), keys_message()))
    })
}

/// A label selector of so many labels, whose keys are judged as the caller says.
fn bounded_selector(description: &str, most: usize, judged: impl FnOnce(Schema) -> Schema) -> Schema {
    selector_of(
        description,
        judged(labels("Labels with exactly these values; all of them.").max_properties(most)),
        list(
            "The values, for the operators In and NotIn only.",
            label_value("A label's value."),
        ),
    )
}

/// That these labels have keys that labels may have.
fn keys(labels: &str) -> String {
    format!("{labels}.all(k, size(k) <= {QUALIFIED_NAME_LENGTH} && k.matches(r'{QUALIFIED_NAME}'))")
}

fn keys_message() -> String {
    format!(
        "keys must be label keys: a name of up to {LABEL_VALUE_LENGTH} characters, after an optional domain and a slash"
    )
}

/// A label selector with any texts as labels, for kinds whose definition is not ours: what they say of such a selector they
/// say in their status.
pub(super) fn any_label_selector(description: &str) -> Schema {
    selector_of(
        description,
        string_map("Labels with exactly these values; all of them."),
        strings("The values, for the operators In and NotIn only."),
    )
}

fn selector_of(description: &str, labels: Schema, values: Schema) -> Schema {
    let requirement = object(
        "One requirement.",
        [
            ("key", label_key("The label.")),
            (
                "operator",
                word(
                    "How the label is compared.",
                    &["In", "NotIn", "Exists", "DoesNotExist"],
                ),
            ),
            ("values", values),
        ],
    )
    .required(&["key", "operator"])
    .rule(
        rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "values must be given for the operators In and NotIn, and for no others",
        )
        .at(".values"),
    );
    object(
        description,
        [
            ("matchLabels", labels),
            (
                "matchExpressions",
                list("Requirements; all of them.", requirement).max_items(MAX_REQUIREMENTS),
            ),
        ],
    )
    .set("x-kubernetes-map-type", "atomic")
}

/// A set of clusters.
pub(super) fn cluster_affinity(description: &str) -> Schema {
    let requirement = object(
        "One requirement.",
        [
            (
                "key",
                word("The field of the cluster.", &["provider", "region", "zone"]),
            ),
            ("operator", word("How it is compared.", &["In", "NotIn"])),
            ("values", strings("The values.").min_items(1)),
        ],
    )
    .required(&["key", "operator", "values"]);
    let field_selector = object(
        "Clusters by provider, region or zone.",
        [(
            "matchExpressions",
            list("Requirements; all of them.", requirement).max_items(MAX_REQUIREMENTS),
        )],
    );
    object(
        description,
        [
            ("labelSelector", label_selector("Clusters by their labels.")),
            ("fieldSelector", field_selector),
            ("clusterNames", strings("Clusters by name; empty: any.")),
            (
                "exclude",
                strings("Clusters that are left out, whatever else matches."),
            ),
        ],
    )
}

/// Which templates a policy is about.
pub(super) fn resource_selectors(description: &str) -> Schema {
    let selector = object(
        "Some objects of one kind. A name makes the labels irrelevant.",
        [
            (
                "apiVersion",
                api_version("Group and version of the objects, as GROUP/VERSION or VERSION."),
            ),
            ("kind", kind("Kind of the objects.")),
            (
                "namespace",
                name(
                    "Namespace of the objects. Empty: that of the policy, or any for a policy without a namespace.",
                ),
            ),
            ("name", name("Name of the object; empty: any.")),
            (
                "labelSelector",
                bounded_selector(
                    "Objects by their labels; not looked at when a name is given.",
                    MAX_LABELS,
                    |labels| labels,
                ),
            ),
        ],
    )
    .required(&["apiVersion", "kind"])
    // What is not looked at may be anything.
    .rule(
        rule(
            format!(
                "has(self.name) && size(self.name) > 0 || !has(self.labelSelector) || \
                 !has(self.labelSelector.matchLabels) || {}",
                keys("self.labelSelector.matchLabels")
            ),
            keys_message(),
        )
        .at(".labelSelector.matchLabels"),
    );
    // The bound keeps the rules about selectors affordable.
    list(description, selector).max_items(1000)
}

/// Taints that are tolerated, as on pods. Which operators there are is up to the caller.
pub(super) fn tolerations(description: &str, operator: Schema) -> Schema {
    let toleration = object(
        "Taints that are tolerated.",
        [
            (
                "key",
                string("The key of the taint; empty with the operator Exists: every key."),
            ),
            ("operator", operator),
            ("value", string("The value of the taint, for the operator Equal.")),
            ("effect", string("The effect of the taint; empty: every effect.")),
            (
                "tolerationSeconds",
                int64("For how long a NoExecute taint is tolerated; absent: for ever."),
            ),
        ],
    );
    list(description, toleration)
}

/// The conditions of a status.
pub(super) fn conditions(description: &str) -> Schema {
    let condition = object(
        "One aspect of the state.",
        [
            ("type", string("What it is about.")),
            ("status", word("Whether it is so.", &["True", "False", "Unknown"])),
            (
                "observedGeneration",
                int64("The generation of the object that this speaks of.").minimum(0),
            ),
            ("lastTransitionTime", time("When the status last changed.")),
            ("reason", string("One word for programs.")),
            ("message", string("A sentence for people.")),
        ],
    )
    .required(&["lastTransitionTime", "message", "reason", "status", "type"]);
    list(description, condition)
}

/// Amounts by resource.
pub(super) fn quantities(description: &str) -> Schema {
    map(description, quantity("An amount."))
}

/// How a policy or binding treats objects that a member already has.
pub(super) fn conflict_resolution() -> Schema {
    word(
        "What happens to an object that a member already has: it is left alone, or taken over.",
        &["Abort", "Overwrite"],
    )
    .default("Abort")
}

/// A requirement on nodes, as in pods.
pub(super) fn node_requirements(description: &str) -> Schema {
    let requirement = object(
        "One requirement.",
        [
            ("key", string("The label or field.")),
            ("operator", string("How it is compared.")),
            ("values", strings("The values.")),
        ],
    )
    .required(&["key", "operator"]);
    list(description, requirement)
}

/// One operation of a patch: where, what, and any value.
pub(super) fn operation(description: &str, place: &str, pointer: Schema) -> Schema {
    object(
        description,
        [
            ("operator", operator()),
            ("value", any("The value; for add and replace only.")),
        ],
    )
    .with(place, pointer)
    .required(&["operator", place])
}

/// What is done with a value.
pub(super) fn operator() -> Schema {
    word("What is done.", &["add", "remove", "replace"])
}

/// A map of labels.
pub(super) fn labels(description: &str) -> Schema {
    map(description, label_value("A label's value."))
}
