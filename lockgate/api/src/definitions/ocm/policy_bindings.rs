//! PlacementBinding, PolicySet and PlacementRule.

use serde_json::{Value, json};

use super::super::crd::{Crd, column};
use super::super::schema::{Schema, list, object, raw_object, rule, string, strings, word};
use super::policies::{STATES, placement};
use super::{kind, named, without_spec};
use crate::ocm::policy_binding::RESTRICTED;
use crate::ocm::{APPS_GROUP, GROUP, POLICY_GROUP};

/// Subjects of one binding, policies of one set, and clusters that a set leaves out.
const MAX_SUBJECTS: usize = 256;
/// The longest name of a policy or a cluster.
const NAME_LENGTH: usize = 253;

/// The definitions.
pub(super) fn crds() -> [Value; 3] {
    [binding(), set(), placement_rule()]
}

fn reference(description: &str) -> Schema {
    object(
        description,
        [
            ("apiGroup", string("Its group.").max_length(NAME_LENGTH)),
            ("kind", string("Its kind.").max_length(63)),
            ("name", string("Its name.").min_length(1).max_length(NAME_LENGTH)),
        ],
    )
    .required(&["apiGroup", "kind", "name"])
}

fn binding() -> Value {
    let crd = Crd {
        group: POLICY_GROUP,
        namespaced: true,
        status: Some(object("Empty.", [])),
        description: "Puts policies and sets of policies on the clusters that a placement chooses.",
        columns: vec![column("Age", "date", ".metadata.creationTimestamp")],
        ..kind("v1", "PlacementBinding", "placementbindings")
    };
    let placement = reference("The Placement or PlacementRule, in the namespace of the binding.").rule(rule(
        format!(
            "(self.apiGroup == '{GROUP}' && self.kind == 'Placement') || \
             (self.apiGroup == '{APPS_GROUP}' && self.kind == 'PlacementRule')"
        ),
        format!("must be a Placement of {GROUP} or a PlacementRule of {APPS_GROUP}"),
    ));
    let subject = reference("A Policy or PolicySet, in the namespace of the binding.").rule(rule(
        format!("self.apiGroup == '{POLICY_GROUP}' && self.kind in ['Policy', 'PolicySet']"),
        format!("must be a Policy or PolicySet of {POLICY_GROUP}"),
    ));
    let overrides = object(
        "What is another for the clusters of this binding. It counts for policies with the strategy All.",
        [(
            "remediationAction",
            word("The action there.", &["Enforce", "enforce"]),
        )],
    );
    let filter = word(
        "With restricted, the binding chooses no cluster, and its overrides count where another binding chooses it.",
        &[RESTRICTED],
    );
    let mut crd = without_spec(crd.build_with(|schema| {
        schema
            .with("placementRef", placement)
            .with(
                "subjects",
                list("What is put there.", subject)
                    .min_items(1)
                    .max_items(MAX_SUBJECTS),
            )
            .with("bindingOverrides", overrides)
            .with("subFilter", filter)
    }));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = json!(["placementRef", "subjects"]);
    named(crd, &["pb"])
}

fn set() -> Value {
    let exclusion = object(
        "Clusters that are left out of one policy.",
        [
            ("policyName", string("The policy.").max_length(NAME_LENGTH)),
            ("reason", string("Why, for people.")),
            ("clusterNames", strings("The clusters.").min_items(1)),
        ],
    )
    .required(&["clusterNames", "policyName"]);
    let name = string("Its name.").min_length(1).max_length(NAME_LENGTH);
    let spec = object(
        "Which policies.",
        [
            ("description", string("For people.")),
            (
                "policies",
                list("The names of policies of the same namespace.", name).max_items(MAX_SUBJECTS),
            ),
            (
                "exclusions",
                list("Clusters that are left out.", exclusion).max_items(MAX_SUBJECTS),
            ),
        ],
    )
    .required(&["policies"])
    .rule(
        rule(
            "!has(self.exclusions) || self.exclusions.all(e, e.policyName in self.policies)",
            "policyName must be one of spec.policies",
        )
        .at(".exclusions"),
    )
    .rule(
        rule(
            "!has(self.exclusions) || self.exclusions.all(e, self.exclusions.exists_one(o, o.policyName == e.policyName))",
            "a policy may be named once",
        )
        .at(".exclusions")
        .duplicate(),
    );
    let status = object(
        "How they are.",
        [
            ("placement", list("The bindings that count.", placement())),
            ("compliant", word("The worst of them.", &STATES)),
            ("statusMessage", string("What does not count, for people.")),
            (
                "exclusions",
                list("Clusters that are left out.", raw_object("An exclusion.")),
            ),
        ],
    );
    let crd = Crd {
        group: POLICY_GROUP,
        namespaced: true,
        status: Some(status),
        spec,
        description: "Some policies of one namespace, that are put on clusters together.",
        columns: vec![
            column("Compliance state", "string", ".status.compliant"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        ..kind("v1beta1", "PolicySet", "policysets")
    };
    named(crd.build(), &["plcset"])
}

fn placement_rule() -> Value {
    let decision = object(
        "A cluster that was chosen.",
        [
            ("clusterName", string("Its name.")),
            ("clusterNamespace", string("Its namespace.")),
        ],
    );
    let status = object(
        "What somebody decided.",
        [("decisions", list("The clusters.", decision))],
    );
    let crd = Crd {
        group: APPS_GROUP,
        namespaced: true,
        status: Some(status),
        spec: raw_object("Nobody looks at it here.").default(json!({})),
        description: "The older way to choose clusters. Nobody decides here: what its status says counts.",
        columns: vec![column("Age", "date", ".metadata.creationTimestamp")],
        ..kind("v1", "PlacementRule", "placementrules")
    };
    named(crd.build(), &[])
}
