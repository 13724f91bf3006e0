//! Policy.

use serde_json::Value;

use super::super::crd::{Crd, column};
use super::super::schema::{Schema, boolean, list, object, raw_object, rule, string, time, word};
use super::super::strategy::{rollout_strategy, run};
use super::{condition_map, kind, named};
use crate::ocm::POLICY_GROUP;

/// Templates of one policy.
const MAX_TEMPLATES: usize = 256;
/// Dependencies of one policy or template.
const MAX_DEPENDENCIES: usize = 64;
/// Every spelling of an action.
pub(super) const ACTIONS: [&str; 4] = ["Inform", "inform", "Enforce", "enforce"];
/// What can be known of a policy, and that nothing is.
pub(super) const STATES: [&str; 4] = ["", "Compliant", "Pending", "NonCompliant"];

/// The definition.
pub(super) fn policy() -> Value {
    let crd = Crd {
        group: POLICY_GROUP,
        namespaced: true,
        status: Some(status()),
        spec: spec(),
        description: "What is to be so on clusters. Bindings say on which.",
        columns: vec![
            column("Remediation action", "string", ".spec.remediationAction"),
            column("Compliance state", "string", ".status.compliant"),
            column("Rollout status", "string", ".status.rolloutStatus"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        ..kind("v1", "Policy", "policies")
    };
    named(crd.build(), &["plc"])
}

fn spec() -> Schema {
    let template = object(
        "A template.",
        [
            (
                "objectDefinition",
                raw_object("The object that is made on the cluster, such as a ConfigurationPolicy."),
            ),
            (
                "extraDependencies",
                dependencies("What must be so before it counts, beside what the policy says."),
            ),
            (
                "ignorePending",
                boolean("Whether it counts as compliant while it waits for something else."),
            ),
        ],
    )
    .required(&["objectDefinition"]);
    object(
        "What is to be so.",
        [
            ("disabled", boolean("With true it is on no cluster.")),
            (
                "copyPolicyMetadata",
                boolean("Whether all labels and annotations are copied to replicas, which is the default, or only those of the framework."),
            ),
            (
                "remediationAction",
                word(
                    "Whether what is not so is only told, or is changed. It counts for every template; absent: each has its own.",
                    &ACTIONS,
                ),
            ),
            (
                "policy-templates",
                list("What is made on clusters.", template).max_items(MAX_TEMPLATES),
            ),
            (
                "dependencies",
                dependencies("What must be so before any template counts."),
            ),
            (
                "hubTemplateOptions",
                object(
                    "Accepted; nothing follows from it.",
                    [("serviceAccountName", string("A service account."))],
                ),
            ),
            (
                "rolloutStrategy",
                rollout_strategy("How clusters take turns in enforcing it. Absent: all at once."),
            ),
        ],
    )
    .required(&["disabled", "policy-templates"])
}

fn dependencies(description: &str) -> Schema {
    let dependency = object(
        "An object that must have this state of compliance.",
        [
            ("apiVersion", string("Its group and version.")),
            ("kind", string("Its kind.").max_length(63)),
            ("name", string("Its name.").min_length(1)),
            (
                "namespace",
                string("Its namespace; empty for kinds that live in the namespace of the cluster.")
                    .max_length(63),
            ),
            ("compliance", word("The state.", &STATES[1..])),
        ],
    )
    .required(&["apiVersion", "compliance", "kind", "name"])
    .rule(
        rule(
            "!(self.kind in ['ConfigurationPolicy', 'CertificatePolicy']) || \
             !has(self.__namespace__) || self.__namespace__ == ''",
            "namespace must be empty for this kind: such objects live in the namespace of the cluster",
        )
        .forbidden(),
    );
    list(description, dependency).max_items(MAX_DEPENDENCIES)
}

/// A binding that counts, as policies and sets tell it.
pub(super) fn placement() -> Schema {
    let exclusion = object(
        "A cluster that is left out.",
        [("clusterName", string("Its name."))],
    );
    object(
        "A binding that counts.",
        [
            ("placementBinding", string("The binding.")),
            ("placement", string("Its placement.")),
            ("placementRule", string("Its placement rule.")),
            ("policySet", string("The set through which it counts.")),
            ("decisions", list("Not written here.", raw_object("A decision."))),
            ("exclusions", list("Clusters that the set leaves out.", exclusion)),
        ],
    )
}

fn rollout_status(description: &str) -> Schema {
    word(
        description,
        &[
            "",
            "ToApply",
            "Progressing",
            "Succeeded",
            "Failed",
            "TimeOut",
            "Skip",
        ],
    )
}

fn status() -> Schema {
    let cluster = object(
        "How one cluster is.",
        [
            ("clustername", string("Its name.")),
            ("clusternamespace", string("Its namespace.")),
            ("compliant", word("What is known of the policy there.", &STATES)),
            (
                "rolloutStatus",
                rollout_status("How far the last change is there."),
            ),
            ("rolloutStatusTransitionTime", time("Since when.")),
            (
                "remainingBindings",
                list("Not written here.", raw_object("A binding.")),
            ),
        ],
    );
    let entry = object(
        "What was said.",
        [
            ("lastTimestamp", time("When.")),
            ("message", string("What.")),
            ("eventName", string("The event that said it.")),
        ],
    );
    let details = object(
        "How one template is.",
        [
            ("templateMeta", raw_object("Its name.")),
            ("compliant", word("What is known of it.", &STATES)),
            ("history", list("What was said of it, the newest first.", entry)),
        ],
    );
    object(
        "What is so.",
        [
            ("placement", list("The bindings that count.", placement())),
            ("status", list("Every cluster, by name.", cluster)),
            ("compliant", word("The worst that is known.", &STATES)),
            ("rolloutStatus", rollout_status("How far the last change is.")),
            (
                "rolloutStatusTransitionTime",
                time("Since when, by the clock of the hub."),
            ),
            (
                "rolloutFailedSince",
                time("On replicas: since when it is not compliant after its release."),
            ),
            ("details", list("Every template, on replicas.", details)),
            (
                "evaluatedRevision",
                string("On replicas: the revision of which the details speak."),
            ),
            ("rollout", run()),
            (
                "conditions",
                condition_map("What is wrong with it, and what is ignored."),
            ),
            (
                "observedGeneration",
                super::super::schema::int64("The generation of which this speaks."),
            ),
        ],
    )
}
