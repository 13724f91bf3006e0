//! What cannot be followed, and how that is told.

use super::*;

#[test]
fn what_wants_to_be_worked_out_is_refused_wherever_it_stands() {
    let template = |object: &Value| json!({"object-templates": [{"complianceType": "musthave", "objectDefinition": object}]});
    let mut deep = wanted("box", &json!({"a": ["x", "{{ fromSecret }}"]}));
    deep["metadata"]["namespace"] = json!("shop");
    for (spec, path) in [
        (template(&deep), "object-templates[0].objectDefinition.data.a[1]"),
        (
            template(&wanted("box", &json!({"{{k}}": 1}))),
            "object-templates[0].objectDefinition.data.{{k}}",
        ),
        (
            json!({"object-templates-raw": "{{ range }}"}),
            "object-templates-raw",
        ),
        (
            json!({"object-templates": [], "namespaceSelector": {"include": ["{{hub x hub}}"]}}),
            "namespaceSelector.include[0]",
        ),
    ] {
        let fault = rules(&spec).unwrap_err();
        assert!(fault.is_of_template(), "{fault:?}");
        assert!(fault.message.starts_with(path), "{fault:?}");
    }
}

#[test]
fn raw_templates_are_plain_yaml() {
    let raw = "- complianceType: mustnothave\n  objectDefinition:\n    apiVersion: v1\n    kind: Pod\n    metadata: {name: x}\n";
    let read = rules(&json!({"object-templates-raw": raw})).unwrap();
    assert_eq!(first(&read).compliance, Compliance::MustNotHave);
    assert_eq!(first(&read).name(), "x");
    for wrong in ["a: b", ": : :", "- 1"] {
        let fault = rules(&json!({"object-templates-raw": wrong})).unwrap_err();
        assert!(fault.is_of_template(), "{wrong}: {fault:?}");
    }
}

#[test]
fn what_cannot_be_followed_says_what_and_where() {
    let unnamed = one("musthave", &wanted("box", &json!({})));
    let fault = Subject::of(first(&unnamed), Ok(&[]), served("configmaps", true)).unwrap_err();
    assert_eq!(
        fault.message,
        "namespaced object box of kind ConfigMap has no namespace specified from the policy namespaceSelector nor \
         the object metadata"
    );
    let fault = Subject::of(first(&unnamed), Ok(&[]), None).unwrap_err();
    assert!(
        fault.message.contains("kind ConfigMap in API version v1"),
        "{fault:?}"
    );
    let fault = rules(&json!({"remediationAction": "maybe"})).unwrap_err();
    assert!(fault.message.contains("neither inform nor enforce"), "{fault:?}");
    let named = |name: &Value, namespace: &Value| {
        let metadata = json!({"name": name, "namespace": namespace});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    let place = "object-templates[1].objectDefinition";
    for (template, words) in [
        (
            json!({"complianceType": "sometimes", "objectDefinition": wanted("box", &json!({}))}),
            "object-templates[1]: complianceType \"sometimes\" is none of".to_owned(),
        ),
        (
            json!({"objectDefinition": {"kind": "Pod"}}),
            format!("{place} has no apiVersion"),
        ),
        (
            json!({"metadataComplianceType": "mustnothave", "objectDefinition": wanted("box", &json!({}))}),
            "metadataComplianceType".to_owned(),
        ),
        // Without a name, any object would do.
        (
            json!({"objectDefinition": named(&json!(2024), &Value::Null)}),
            format!("{place}.metadata.name must be a text"),
        ),
        (
            json!({"objectDefinition": named(&json!("box"), &json!(true))}),
            format!("{place}.metadata.namespace must be a text"),
        ),
        (
            json!({"objectDefinition": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "box"}}),
            format!("{place}.metadata must be a map"),
        ),
        (
            json!({"objectDefinition": wanted("", &json!({})), "objectSelector":
                {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
            "objectSelector".to_owned(),
        ),
    ] {
        let mut template = template;
        if template.get("complianceType").is_none() {
            template["complianceType"] = json!("musthave");
        }
        let good = json!({"complianceType": "musthave", "objectDefinition": wanted("box", &json!({}))});
        let rules = rules(&json!({"object-templates": [good, template, good]})).unwrap();
        let fault = rules.templates[1].as_ref().unwrap_err();
        assert!(fault.message.contains(&words), "{fault:?}");
        // The others are followed.
        assert!(rules.templates[0].is_ok() && rules.templates[2].is_ok());
    }
}

#[test]
fn a_selector_that_cannot_be_read_stops_what_it_selects() {
    let spec = json!({"namespaceSelector": {"include": ["["]}, "object-templates":
        [{"complianceType": "musthave", "objectDefinition": wanted("box", &json!({}))}]});
    let rules = rules(&spec).unwrap();
    assert!(rules.selects_namespaces().is_none());
    let of = |template: &Template, namespaced| {
        Subject::of(template, rules.selected(&[]), served("configmaps", namespaced))
    };
    let fault = of(first(&rules), true).unwrap_err();
    assert!(fault.message.contains("is no pattern of names"), "{fault:?}");
    assert!(of(first(&rules), false).is_ok());
    let mut at_home = first(&rules).clone();
    at_home.object["metadata"]["namespace"] = json!("shop");
    assert!(of(&at_home, true).is_ok());
}
