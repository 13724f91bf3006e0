//! Where the embedded server is known to answer differently from a real one, with the reason for each.
//!
//! This is the one list. Whatever leaves something out of a comparison names an entry of it: a step of a script (`ignore`,
//! `without`, `keep`), an answer of a recording (`lacks`, `differs`), and what the generator does not make.

use crate::report::Report;

/// A difference that is known, and why it stays.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// What scripts call it.
    pub name: &'static str,
    /// Why it stays.
    pub why: &'static str,
    /// Where it shows in comparisons that leave nothing out themselves.
    pub places: &'static [Place],
}

/// Where a difference shows. An empty text stands for any.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The script; empty for any.
    pub script: &'static str,
    /// Its step; 0 for any.
    pub step: usize,
    /// Part of the path of the difference.
    pub path: &'static str,
    /// Part of what the real server says there.
    pub real: &'static str,
}

const fn anywhere(path: &'static str, real: &'static str) -> Place {
    at("", 0, path, real)
}

const fn at(script: &'static str, step: usize, path: &'static str, real: &'static str) -> Place {
    Place {
        script,
        step,
        path,
        real,
    }
}

const fn allow(name: &'static str, why: &'static str, places: &'static [Place]) -> Allowed {
    Allowed { name, why, places }
}

/// What any two servers differ in, the real one from itself included: no difference of ours.
pub const ANY_TWO: &[(&str, &str)] = &[
    ("build", "each program says how it was built"),
    ("hash", "the hash of a document stands for all of it"),
    ("name", "a name that was drawn is part of a text"),
    ("order", "whichever of several was found first"),
    ("others", "other scripts make such objects at the same time"),
    ("time", "the servers' clocks, and what follows in its own time"),
    ("uid", "each object has its own"),
];

/// Left out by the generator, and so to be found in no script.
pub const NOT_GENERATED: &[&str] = &["empty-labels"];

/// The whole list.
pub const ALLOWED: &[Allowed] = &[
    allow(
        "protobuf",
        "protobuf is read but not written, and so not offered",
        &[at("accept", 0, ".message", "application/vnd.kubernetes.protobuf")],
    ),
    allow(
        "yaml",
        "the YAML parser has its own words, and takes keys for text also if they could be truth values",
        &[
            at("apply", 13, ".message", "error decoding YAML"),
            at("apply", 17, "", ""),
            at("apply", 18, "", ""),
            at("malformed", 31, ".message", "yaml"),
        ],
    ),
    allow(
        "numbers",
        "numbers beyond what a float or 64 bits hold are not kept as they were written",
        &[
            at("malformed", 19, ".message", ""),
            at("malformed", 20, ".message", ""),
        ],
    ),
    allow("parser", "says in its own words where it stopped reading", &[]),
    allow(
        "quoted",
        "the real server quotes a difference of two objects in the notation of Go",
        &[],
    ),
    allow(
        "nobodys",
        "what the server itself writes is nobody's",
        &[anywhere(".metadata.managedFields[1]", "f:acceptedNames")],
    ),
    allow(
        "whole-floats",
        "CEL takes 2.0 for an integer here, as the schema does",
        &[at("crd-schema", 34, "", "")],
    ),
    allow(
        "unpruned",
        "an object of another version is not pruned before it is refused",
        &[at("crd-schema", 42, "warnings", "unknown field")],
    ),
    allow(
        "former-versions",
        "versions that are no longer served are not known by name",
        &[at("deployment-refusals", 21, ".message", "")],
    ),
    allow(
        "controllers",
        "what only a controller would ever take back is not set where there is none, and taken back where there is one",
        &[
            at("other-kinds", 0, ".metadata", "kubernetes.io/pvc-protection"),
            at("other-kinds", 15, "", ""),
            at(
                "other-kinds",
                0,
                ".spec.taints[1]",
                "node.kubernetes.io/not-ready",
            ),
        ],
    ),
    allow(
        "ungrouped-target",
        "an autoscaler whose target names no API group is not refused for that",
        &[
            at("other-kinds", 12, ".details.causes[2]", "must specify API group"),
            at("other-kinds", 12, ".message", "must specify API group"),
        ],
    ),
    allow(
        "kind-first",
        "a patch that changes the kind is refused for that first",
        &[at("patch-merge", 14, "", "")],
    ),
    allow(
        "retain-keys",
        "directives of a patch are gone before its fields are checked",
        &[anywhere("warnings", "$retainKeys")],
    ),
    allow(
        "storage-key",
        "the real server names the key in its own store",
        &[anywhere(".message", "StorageError: invalid object")],
    ),
    allow(
        "empty-selector",
        "an empty map and a missing one are shown alike",
        &[anywhere("", "Invalid value: {}: `selector` does not match")],
    ),
    allow(
        "empty-labels",
        "an empty map of labels that a custom resource is applied with is not stored; the real server stores it, shows none, and \
         writes again for a patch that changes nothing",
        &[],
    ),
    allow(
        "budget",
        "an eviction that is refused for its options does not count against its budget",
        &[],
    ),
    allow(
        "token-error",
        "why a token is nobody's is said in the words of each",
        &[],
    ),
    allow(
        "words",
        "the descriptions of kinds and fields are our own words, and there are fewer",
        &[],
    ),
    allow("connect", "nobody connects to a container or a node", &[]),
    allow(
        "every-group",
        "a document of custom resources names the kinds of all groups of the process that answers",
        &[],
    ),
    allow("aggregation", "aggregated API servers are not served", &[]),
    allow(
        "documents",
        "there is no OpenAPI document of paths that are not about resources",
        &[],
    ),
];

/// Takes allowed differences out of a report; says which places of which entries were of use.
pub fn remove(report: &mut Report) -> Vec<Vec<bool>> {
    let mut used: Vec<Vec<bool>> = ALLOWED
        .iter()
        .map(|allowed| vec![false; allowed.places.len()])
        .collect();
    for failure in &mut report.failures {
        failure.differences.retain(|difference| {
            let real = difference
                .left
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let shows = |place: &Place| {
                (place.script.is_empty() || failure.script == place.script)
                    && (place.step == 0 || failure.step == place.step)
                    && difference.path.contains(place.path)
                    && real.contains(place.real)
            };
            for (allowed, used) in ALLOWED.iter().zip(&mut used) {
                if let Some(place) = allowed.places.iter().position(shows) {
                    used[place] = true;
                    return false;
                }
            }
            true
        });
    }
    report
        .failures
        .retain(|failure| !failure.differences.is_empty() || !failure.trouble.is_empty());
    used
}
