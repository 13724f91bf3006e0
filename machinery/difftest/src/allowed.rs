//! Where the embedded server is known to answer differently from a real one, with the reason for each.

use crate::report::Report;

/// A difference that is known, where it shows, and why it stays. An empty text stands for any.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// The script; empty for any.
    pub script: &'static str,
    /// Its step; 0 for any.
    pub step: usize,
    /// Part of the path of the difference.
    pub path: &'static str,
    /// Part of what the real server says there.
    pub real: &'static str,
    /// Why it stays.
    pub why: &'static str,
}

const fn allow(script: &'static str, path: &'static str, real: &'static str, why: &'static str) -> Allowed {
    Allowed {
        script,
        step: 0,
        path,
        real,
        why,
    }
}

const fn allow_step(script: &'static str, step: usize, why: &'static str) -> Allowed {
    Allowed {
        script,
        step,
        path: "",
        real: "",
        why,
    }
}

const NO_PROTOBUF: &str = "protobuf is read but not written, and so not offered";
const YAML_KEYS: &str = "keys of YAML are text, also those that could be a truth value";
const NO_PVC_PROTECTION: &str = "a finalizer is not set where no controller would ever take it off";
const NO_TAINT: &str = "nodes are not tainted where no controller would ever lift it";

/// The whole list.
pub const ALLOWED: &[Allowed] = &[
    allow(
        "accept",
        ".message",
        "application/vnd.kubernetes.protobuf",
        NO_PROTOBUF,
    ),
    allow_step("apply", 13, "the YAML parser has its own words"),
    allow_step("apply", 17, YAML_KEYS),
    allow_step("apply", 18, YAML_KEYS),
    allow(
        "",
        ".metadata.managedFields[1]",
        "f:acceptedNames",
        "what the server itself writes is nobody's",
    ),
    allow_step(
        "crd-schema",
        34,
        "CEL takes 2.0 for an integer here, as the schema does",
    ),
    allow_step(
        "crd-schema",
        42,
        "an object of another version is not pruned before it is refused",
    ),
    allow_step(
        "deployment-refusals",
        21,
        "versions that are no longer served are not known by name",
    ),
    allow_step(
        "malformed",
        19,
        "a number that no float holds is refused by the parser already",
    ),
    allow_step(
        "malformed",
        20,
        "a number beyond 64 bits is shown as the float that it was read as",
    ),
    allow_step("malformed", 31, "the YAML parser has its own words"),
    allow_step(
        "other-kinds",
        12,
        "one of several causes of a refusal is not found",
    ),
    allow(
        "other-kinds",
        ".metadata",
        "kubernetes.io/pvc-protection",
        NO_PVC_PROTECTION,
    ),
    allow_step("other-kinds", 15, NO_PVC_PROTECTION),
    allow(
        "other-kinds",
        ".spec.taints[1]",
        "node.kubernetes.io/not-ready",
        NO_TAINT,
    ),
    allow_step(
        "patch-merge",
        14,
        "a patch that changes the kind is refused for that first",
    ),
    allow(
        "workloads",
        ".metadata.annotations",
        "",
        "tables carry a DaemonSet's own annotation, too",
    ),
    allow(
        "",
        ".message",
        "StorageError: invalid object",
        "the real server names the key in its own store",
    ),
    allow(
        "",
        "",
        "Invalid value: {}: `selector` does not match",
        "an empty map and a missing one are shown alike",
    ),
    allow(
        "",
        "warnings",
        "is ignored",
        "Services are not searched for what is merely odd",
    ),
    allow(
        "",
        "warnings",
        "duplicate port definition",
        "Pod templates are not searched for what is merely odd",
    ),
    allow(
        "",
        "warnings",
        "$retainKeys",
        "directives of a patch are gone before its fields are checked",
    ),
];

/// Takes allowed differences out of a report; says which entries of the list were of use.
pub fn remove(report: &mut Report) -> Vec<bool> {
    let mut used = vec![false; ALLOWED.len()];
    for failure in &mut report.failures {
        failure.differences.retain(|difference| {
            let real = difference
                .left
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let found = ALLOWED.iter().position(|allowed| {
                (allowed.script.is_empty() || failure.script == allowed.script)
                    && (allowed.step == 0 || failure.step == allowed.step)
                    && difference.path.contains(allowed.path)
                    && real.contains(allowed.real)
            });
            if let Some(place) = found {
                used[place] = true;
            }
            found.is_none()
        });
    }
    report
        .failures
        .retain(|failure| !failure.differences.is_empty() || !failure.trouble.is_empty());
    used
}
