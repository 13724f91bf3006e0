//! What is known of types: the fields of the variables that have one, and what an expression is at its outermost.

use crate::admission::policy::source::{Shape, Source};

/// The fields of the variables that have a type.
pub(super) fn fields(path: &[&str]) -> Option<&'static [&'static str]> {
    Some(match path {
        ["request"] => &[
            "dryRun",
            "kind",
            "name",
            "namespace",
            "operation",
            "options",
            "requestKind",
            "requestResource",
            "requestSubResource",
            "resource",
            "subResource",
            "userInfo",
        ],
        ["request", "kind" | "requestKind"] => &["group", "version", "kind"],
        ["request", "resource" | "requestResource"] => &["group", "version", "resource"],
        ["request", "userInfo"] => &["username", "uid", "groups", "extra"],
        ["namespaceObject"] => &["metadata", "spec", "status"],
        ["namespaceObject", "metadata"] => &[
            "UID",
            "annotations",
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generateName",
            "generation",
            "labels",
            "name",
            "namespace",
            "resourceVersion",
        ],
        ["namespaceObject", "spec"] => &["finalizers"],
        ["namespaceObject", "status"] => &["conditions", "phase"],
        _ => return None,
    })
}

/// Why the value of an expression is not of one of these types, or of any, where that is plain to see.
pub(super) fn wrong_type(source: &Source<'_>, types: &[&str]) -> Option<String> {
    let found = obvious_type(source).filter(|found| !types.is_empty() && !types.contains(found))?;
    Some(match types {
        [one] => format!("must evaluate to {one} but got {found}"),
        several => format!("must evaluate to one of [{}] but got {found}", several.join(" ")),
    })
}

/// The type of an expression, where its outermost part shows it.
fn obvious_type(source: &Source<'_>) -> Option<&'static str> {
    let mut depth = 0_usize;
    let mut outer: Vec<usize> = Vec::new();
    for at in 0..source.tokens.len() {
        let sign = source.tokens[at].shape == Shape::Sign;
        if sign && matches!(source.at(at), ")" | "]" | "}") {
            depth = depth.saturating_sub(1);
            continue;
        }
        if depth == 0 {
            outer.push(at);
        }
        if sign && matches!(source.at(at), "(" | "[" | "{") {
            depth += 1;
        }
    }
    let is = |at: &usize, signs: &[&str]| signs.contains(&source.at(*at));
    if outer.iter().any(|at| is(at, &["?"])) {
        return None;
    }
    let comparisons = ["||", "&&", "==", "!=", "<", "<=", ">", ">=", "in"];
    let is_field = |at: &usize| *at > 0 && source.at(at - 1) == ".";
    if outer.iter().any(|at| is(at, &comparisons) && !is_field(at)) || source.at(0) == "!" {
        return Some("bool");
    }
    if outer.iter().any(|at| is(at, &["+", "-", "*", "/", "%"])) {
        return None;
    }
    let dynamic = matches!(source.at(0), "object" | "oldObject" | "params");
    if dynamic && !outer.iter().any(|at| is(at, &["("])) {
        return Some("dyn");
    }
    let last = source.tokens.len().saturating_sub(1);
    let sized =
        |at: usize| source.at(at) == "size" && outer.last() == Some(&(at + 1)) && source.at(last) == ")";
    if sized(0) || outer.len().checked_sub(2).is_some_and(|at| sized(outer[at])) {
        return Some("int");
    }
    let [only] = source.tokens.as_slice() else {
        return None;
    };
    match (only.shape, source.at(0)) {
        (Shape::Int, number) if number.ends_with(['u', 'U']) => Some("uint"),
        (Shape::Int, _) => Some("int"),
        (Shape::Double, _) => Some("double"),
        (Shape::Text, _) => Some("string"),
        (Shape::Bytes, _) => Some("bytes"),
        (Shape::Name, "true" | "false") => Some("bool"),
        (Shape::Name, "null") => Some("null_type"),
        _ => None,
    }
}
