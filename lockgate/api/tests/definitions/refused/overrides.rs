//! Override policies that are refused. Each is one step away from one that is accepted.

use serde_json::{Value, json};

use super::Case;

pub(crate) fn overrides() -> Vec<Case> {
    let rule =
        |overrider: &str, change: Value| json!({"overrideRules": [{"overriders": {overrider: [change]}}]});
    let field =
        |format: &str, patch: Value| rule("fieldOverrider", json!({"fieldPath": "/data/a", format: [patch]}));
    let cases: Vec<(Value, &'static str)> = vec![
        (json!({"overrideRules": [{}]}), "spec.overrideRules[0].overriders"),
        (
            json!({"overrideRules": [{"overriders": {}}], "targetCluster": {}}),
            "spec.targetCluster",
        ),
        (
            json!({"overrideRules": [{"overriders": {}}], "overriders": {"labelsOverrider": [{"operator": "remove"}]}}),
            "spec.overriders",
        ),
        (
            json!({"overrideRules": [{"overriders": {}}], "overriders": {"fieldOverrider": [{"fieldPath": ""}]}}),
            "spec.overriders",
        ),
        (
            json!({"overrideRules": [{"overriders": {}, "targetCluster": {"fieldSelector": {"matchExpressions": [
                {"key": "name", "operator": "In", "values": ["a"]}]}}}]}),
            "spec.overrideRules[0].targetCluster.fieldSelector.matchExpressions[0].key",
        ),
        (
            json!({"targetCluster": {"fieldSelector": {"matchExpressions": [
                {"key": "zone", "operator": "Gt", "values": ["a"]}]}}}),
            "spec.targetCluster.fieldSelector.matchExpressions[0].operator",
        ),
        (
            json!({"overrideRules": [{"overriders": {}, "targetCluster": {"labelSelector": {"matchLabels": {"a b": "c"}}}}]}),
            "spec.overrideRules[0].targetCluster.labelSelector.matchLabels",
        ),
        (
            json!({"targetCluster": {"labelSelector": {"matchLabels": {"a": "w b"}}}}),
            "spec.targetCluster.labelSelector.matchLabels",
        ),
        (
            rule("plaintext", json!({"operator": "remove"})),
            "spec.overrideRules[0].overriders.plaintext[0].path",
        ),
        (
            rule("plaintext", json!({"operator": "remove", "path": "spec"})),
            "spec.overrideRules[0].overriders.plaintext[0].path",
        ),
        (
            rule("plaintext", json!({"operator": "move", "path": "/spec"})),
            "spec.overrideRules[0].overriders.plaintext[0].operator",
        ),
        (
            rule("imageOverrider", json!({"operator": "remove"})),
            "spec.overrideRules[0].overriders.imageOverrider[0].component",
        ),
        (
            rule(
                "imageOverrider",
                json!({"operator": "remove", "component": "Digest"}),
            ),
            "spec.overrideRules[0].overriders.imageOverrider[0].component",
        ),
        (
            rule(
                "imageOverrider",
                json!({"operator": "remove", "component": "Tag", "predicate": {"path": "spec/image"}}),
            ),
            "spec.overrideRules[0].overriders.imageOverrider[0].predicate.path",
        ),
        (
            rule(
                "imageOverrider",
                json!({"operator": "remove", "component": "Tag", "predicate": {"path": "/spec/~2"}}),
            ),
            "spec.overrideRules[0].overriders.imageOverrider[0].predicate.path",
        ),
        (
            rule(
                "commandOverrider",
                json!({"containerName": "a", "operator": "replace"}),
            ),
            "spec.overrideRules[0].overriders.commandOverrider[0].operator",
        ),
        (
            rule("argsOverrider", json!({"operator": "add"})),
            "spec.overrideRules[0].overriders.argsOverrider[0].containerName",
        ),
        (
            rule("labelsOverrider", json!({"value": {"a": "b"}})),
            "spec.overrideRules[0].overriders.labelsOverrider[0].operator",
        ),
        (
            rule(
                "labelsOverrider",
                json!({"operator": "add", "value": {"a": "b c"}}),
            ),
            "spec.overrideRules[0].overriders.labelsOverrider[0].value.a",
        ),
        (
            rule(
                "labelsOverrider",
                json!({"operator": "add", "value": {"a b": "c"}}),
            ),
            "labelsOverrider: the keys of value",
        ),
        (
            rule(
                "labelsOverrider",
                json!({"operator": "add", "value": {"Ex.com/a": "c"}}),
            ),
            "labelsOverrider: the keys of value",
        ),
        (
            rule(
                "annotationsOverrider",
                json!({"operator": "add", "value": {"a b": "c d"}}),
            ),
            "annotationsOverrider: the keys of value",
        ),
        (
            json!({"overriders": {"annotationsOverrider": [{"operator": "add", "value": {"/a": "c d"}}]}}),
            "annotationsOverrider: the keys of value",
        ),
        (
            rule("fieldOverrider", json!({"fieldPath": "data"})),
            "spec.overrideRules[0].overriders.fieldOverrider[0].fieldPath",
        ),
        (
            rule(
                "fieldOverrider",
                json!({"fieldPath": "/data/a", "json": [{"subPath": "/a", "operator": "remove"}],
                "yaml": [{"subPath": "/a", "operator": "remove"}]}),
            ),
            "spec.overrideRules[0].overriders.fieldOverrider[0].yaml",
        ),
        (
            field("json", json!({"subPath": "a", "operator": "remove"})),
            "spec.overrideRules[0].overriders.fieldOverrider[0].json[0].subPath",
        ),
        (
            field("yaml", json!({"subPath": "/a", "operator": "copy"})),
            "spec.overrideRules[0].overriders.fieldOverrider[0].yaml[0].operator",
        ),
        (
            field("json", json!({"subPath": "/a", "operator": "add"})),
            "fieldOverrider: value is required",
        ),
        (
            field("yaml", json!({"subPath": "/a", "operator": "replace"})),
            "fieldOverrider: value is required",
        ),
        (
            field("yaml", json!({"subPath": "/a", "operator": "remove", "value": 1})),
            "fieldOverrider: value is forbidden",
        ),
    ];
    let mut all: Vec<Case> = cases
        .into_iter()
        .map(|(spec, field)| ("Override", spec, field))
        .collect();
    let elsewhere = json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "namespace": "other"}]});
    for kind in ["OverridePolicy", "PropagationPolicy"] {
        all.push((kind, elsewhere.clone(), "spec.resourceSelectors[].namespace"));
    }
    all
}
