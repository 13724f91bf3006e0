use serde_json::json;

use super::*;

fn cluster(name: &str) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.metadata.name = name.to_owned();
    cluster
}

fn policy(value: Value) -> Arc<OverridePolicy> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "old": "1"}},
        "spec": {
            "replicas": 2, "files": {"json": "{ \"replicas\": 1, \"z\": 1.5 }", "yaml": "b: 1\na: [x]\n"},
            "template": {"spec": {
                "initContainers": [{"name": "init", "image": "busybox:1"}],
                "containers": [
                    {"name": "web", "image": "nginx:1", "args": ["-a", "-b", "-a"]},
                    {"name": "side", "image": "reg.io/side:1"},
                ],
            }},
        },
    })
}

/// The object after one rule, or the error as text.
fn after(object: Value, overriders: Value) -> Result<Value, String> {
    let policy = policy(json!({
        "metadata": {"name": "o", "namespace": "shop"},
        "spec": {"overrideRules": [{"overriders": {}}, {"overriders": overriders}]},
    }));
    let mut object = object;
    let rules = rules_for_cluster(&[&policy], &cluster("member1"));
    let mut warnings = Vec::new();
    apply(&mut object, &rules, "member1", &mut warnings).map_err(|error| error.to_string())?;
    Ok(object)
}

/// What stands at a pointer after one rule.
fn at(pointer: &str, overriders: Value) -> Value {
    let object = after(web(), overriders).unwrap();
    object.pointer(pointer).cloned().unwrap_or(Value::Null)
}

#[test]
fn policies_apply_from_far_to_near() {
    let rule = |name: &str, namespace: &str, selectors: Value| {
        policy(json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"resourceSelectors": selectors, "overriders": {
                "annotationsOverrider": [{"operator": "add", "value": {"last": name}}],
            }},
        }))
    };
    let kind = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    let labels = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let named = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    let all = [
        rule("near-b", "shop", named.clone()),
        rule("near-a", "shop", named.clone()),
        rule("near-kind", "shop", kind.clone()),
        rule("elsewhere", "bank", named.clone()),
        rule("far-named", "", named.clone()),
        rule("far-labels", "", labels),
        rule("far-all", "", json!(null)),
        rule("far-kind", "", kind),
        rule("far-other", "", json!([{"apiVersion": "v1", "kind": "Service"}])),
    ];
    let names = |template: &Value| {
        let rules = relevant_overrides(template, &cluster("member1"), &all);
        rules
            .iter()
            .map(|rule| rule.policy.metadata.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&web()),
        [
            "far-all",
            "far-kind",
            "far-labels",
            "far-named",
            "near-kind",
            "near-a",
            "near-b"
        ]
    );
    let role = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    assert_eq!(names(&role), ["far-all"]);

    let mut object = web();
    let rules = relevant_overrides(&web(), &cluster("member1"), &all);
    apply(&mut object, &rules, "member1", &mut Vec::new()).unwrap();
    assert_eq!(object["metadata"]["annotations"]["last"], "near-b");
}

#[test]
fn rules_are_for_the_clusters_that_they_name() {
    let change = json!({"plaintext": [{"path": "/x", "operator": "add", "value": 1}]});
    let several = policy(json!({"metadata": {"name": "several"}, "spec": {
        "overrideRules": [
            {"targetCluster": {"clusterNames": ["a"]}, "overriders": change},
            {"overriders": change},
            {"targetCluster": {"exclude": ["a"]}, "overriders": change},
            {"overriders": {}},
        ],
        // The older form does not count beside rules.
        "overriders": change,
    }}));
    let older = policy(json!({"metadata": {"name": "older"}, "spec": {
        "targetCluster": {"clusterNames": ["a"]}, "overriders": change,
    }}));
    let rules = |name: &str| {
        let rules = rules_for_cluster(&[&several, &older], &cluster(name));
        rules
            .iter()
            .map(|rule| (rule.policy.metadata.name.clone(), rule.rule))
            .collect::<Vec<_>>()
    };
    let expected = |list: &[(&str, usize)]| {
        list.iter()
            .map(|(name, rule)| ((*name).to_owned(), *rule))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rules("a"),
        expected(&[("several", 0), ("several", 1), ("older", 0)])
    );
    assert_eq!(rules("b"), expected(&[("several", 1), ("several", 2)]));
}

#[test]
fn a_rule_applies_its_parts_in_order() {
    let object = after(
        web(),
        json!({
            "plaintext": [
                {"path": "/spec/template/spec/containers/0/image", "operator": "replace", "value": "last"},
                {"path": "/metadata/annotations/b", "operator": "remove"},
            ],
            "annotationsOverrider": [{"operator": "add", "value": {"a": "1", "b": "2"}}],
            "imageOverrider": [{"component": "Tag", "operator": "replace", "value": "9"}],
        }),
    )
    .unwrap();
    let containers = &object["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["image"], "last");
    assert_eq!(containers[1]["image"], "reg.io/side:9");
    assert_eq!(
        object["spec"]["template"]["spec"]["initContainers"][0]["image"],
        "busybox:1"
    );
    assert_eq!(object["metadata"]["annotations"], json!({"a": "1"}));
}

#[test]
fn plaintext_patches_the_object() {
    let patch = |path: &str, operator: &str, value: Value| json!({"plaintext": [{"path": path, "operator": operator, "value": value}]});
    assert_eq!(
        at("/spec/replicas", patch("/spec/replicas", "replace", json!(7))),
        7
    );
    assert_eq!(
        at("/spec/new", patch("/spec/new", "add", json!({"a": [1, 2.5]}))),
        json!({"a": [1, 2.5]})
    );
    assert_eq!(
        at("/spec/replicas", patch("/spec/replicas", "remove", Value::Null)),
        Value::Null
    );
    assert_eq!(
        at(
            "/spec/template/spec/containers/0/args",
            patch("/spec/template/spec/containers/0/args/-", "add", json!("-c"))
        ),
        json!(["-a", "-b", "-a", "-c"])
    );
    assert_eq!(
        at(
            "/spec/template/spec/containers/0/args",
            patch("/spec/template/spec/containers/0/args/1", "replace", json!("-x"))
        ),
        json!(["-a", "-x", "-a"])
    );
    for (path, operator) in [
        ("/spec/none", "replace"),
        ("/spec/none", "remove"),
        ("/none/deep", "add"),
    ] {
        let error = after(web(), patch(path, operator, json!(1))).unwrap_err();
        let place = format!("OverridePolicy shop/o, overrideRules[1], for cluster member1: {path}: ");
        assert!(error.starts_with(&place), "{error}");
    }
    // Of several operations the one that fails is named.
    for bad in 0..5 {
        let operations = (0..5).map(|index| match index {
            _ if index == bad => json!({"path": "/spec/none", "operator": "replace", "value": 1}),
            _ => json!({"path": format!("/spec/x{index}"), "operator": "add", "value": 1}),
        });
        let error = after(web(), json!({"plaintext": operations.collect::<Vec<_>>()})).unwrap_err();
        assert!(
            error.contains("member1: /spec/none: replace does not apply: "),
            "{error}"
        );
    }
    let error = after(web(), patch("/spec/x", "copy", json!(1))).unwrap_err();
    assert!(error.ends_with("there is no operator \"copy\" here"), "{error}");
}

#[test]
fn an_object_stays_the_same_object() {
    for (path, value) in [
        ("/metadata/name", json!("other")),
        ("/metadata/namespace", json!("other")),
        ("/kind", json!("StatefulSet")),
        ("/apiVersion", json!("extensions/v1beta1")),
        ("/apiVersion", json!("v1")),
        ("/metadata", json!({})),
        ("", json!({"kind": "Deployment"})),
    ] {
        let operator = if path.is_empty() { "add" } else { "replace" };
        let result = after(
            web(),
            json!({"plaintext": [{"path": path, "operator": operator, "value": value}]}),
        );
        assert!(result.is_err(), "{path}");
    }
    let newer = json!({"plaintext": [{"path": "/apiVersion", "operator": "replace", "value": "apps/v2"}]});
    assert_eq!(at("/apiVersion", newer), "apps/v2");
}

#[test]
fn images_of_kinds_with_pods_are_found() {
    let tag = json!({"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}]});
    for (kind, pointer) in [
        ("Pod", "/spec/containers/0/image"),
        ("Deployment", "/spec/template/spec/containers/0/image"),
        ("ReplicaSet", "/spec/template/spec/containers/0/image"),
        ("DaemonSet", "/spec/template/spec/containers/0/image"),
        ("StatefulSet", "/spec/template/spec/containers/0/image"),
        ("Job", "/spec/template/spec/containers/0/image"),
    ] {
        let containers = json!([{"image": "a:1"}]);
        let object = json!({"kind": kind, "spec": {"containers": containers, "template": {"spec": {"containers": containers}}}});
        let changed = after(object, tag.clone()).unwrap();
        assert_eq!(changed.pointer(pointer).unwrap(), "a:2", "{kind}");
    }
    let object = json!({"kind": "CronJob", "spec": {"containers": [{"image": "a:1"}]}});
    assert_eq!(after(object.clone(), tag.clone()), Ok(object));

    let at_path = |path: &str| {
        let rule = json!({"imageOverrider": [
            {"predicate": {"path": path}, "component": "Tag", "operator": "replace", "value": "2"},
        ]});
        after(json!({"kind": "X", "spec": {"images": ["a:1", 3]}}), rule)
    };
    assert_eq!(at_path("/spec/images/0").unwrap()["spec"]["images"][0], "a:2");
    assert!(
        at_path("/spec/images/1")
            .unwrap_err()
            .ends_with("/spec/images/1: this is not a string")
    );
    assert!(
        at_path("/spec/none")
            .unwrap_err()
            .ends_with("/spec/none: there is nothing")
    );
}

#[test]
fn commands_and_arguments_are_changed_by_container() {
    let change = |container: &str, operator: &str| {
        json!({
            "argsOverrider": [{"containerName": container, "operator": operator, "value": ["-a", "-z"]}],
            "commandOverrider": [{"containerName": container, "operator": operator, "value": ["sh"]}],
        })
    };
    let first = "/spec/template/spec/containers/0";
    assert_eq!(
        at(&format!("{first}/args"), change("web", "add")),
        json!(["-a", "-b", "-a", "-a", "-z"])
    );
    assert_eq!(
        at(&format!("{first}/args"), change("web", "remove")),
        json!(["-b"])
    );
    assert_eq!(
        at(&format!("{first}/command"), change("web", "add")),
        json!(["sh"])
    );
    assert_eq!(
        at(&format!("{first}/command"), change("web", "remove")),
        json!([])
    );
    assert_eq!(after(web(), change("nobody", "add")), Ok(web()));
    assert!(after(web(), change("web", "replace")).is_err());
    let config = json!({"kind": "ConfigMap", "metadata": {"name": "c"}});
    assert_eq!(after(config.clone(), change("web", "add")), Ok(config));
}

#[test]
fn labels_and_annotations_are_changed_where_they_are() {
    let labels = |operator: &str| json!({"labelsOverrider": [{"operator": operator, "value": {"app": "x", "new": "y"}}]});
    assert_eq!(
        at("/metadata/labels", labels("add")),
        json!({"app": "x", "new": "y", "old": "1"})
    );
    assert_eq!(
        at("/metadata/labels", labels("replace")),
        json!({"app": "x", "old": "1"})
    );
    assert_eq!(at("/metadata/labels", labels("remove")), json!({"old": "1"}));
    let notes = json!({"annotationsOverrider": [{"operator": "add", "value": {"a": "b"}}]});
    assert_eq!(at("/metadata/annotations", notes), json!({"a": "b"}));
    let error = after(
        web(),
        json!({"labelsOverrider": [{"operator": "swap", "value": {"a/b": "x"}}]}),
    )
    .unwrap_err();
    assert!(
        error.contains("/metadata/labels/a~1b: there is no operator \"swap\" here"),
        "{error}"
    );
}

#[test]
fn documents_in_strings_are_changed_inside() {
    let change = |path: &str, format: &str, patches: Value| json!({"fieldOverrider": [{"fieldPath": path, format: patches}]});
    let patches = json!([
        {"subPath": "/replicas", "operator": "replace", "value": 5},
        {"subPath": "/a", "operator": "add", "value": [true]},
    ]);
    assert_eq!(
        at("/spec/files/json", change("/spec/files/json", "json", patches)),
        r#"{"a":[true],"replicas":5,"z":1.5}"#
    );
    let patches = json!([{"subPath": "/b", "operator": "replace", "value": {"d": 1, "c": "2"}}]);
    assert_eq!(
        at(
            "/spec/files/yaml",
            change("/spec/files/yaml", "yaml", patches.clone())
        ),
        "a:\n- x\nb:\n  c: \"2\"\n  d: 1\n"
    );
    for (path, format, ending) in [
        ("/spec/none", "json", "/spec/none: there is nothing"),
        ("/spec/replicas", "json", "/spec/replicas: this is not a string"),
    ] {
        let error = after(web(), change(path, format, patches.clone())).unwrap_err();
        assert!(error.ends_with(ending), "{error}");
    }
    let error = after(web(), change("/spec/files/yaml", "json", patches.clone())).unwrap_err();
    assert!(error.contains("/spec/files/yaml: "), "{error}");
    let error = after(web(), change("/spec/files/json", "json", patches)).unwrap_err();
    assert!(error.contains("/spec/files/json at /b: "), "{error}");
    let both = json!({"fieldOverrider": [{
        "fieldPath": "/spec/files/json",
        "json": [{"subPath": "/a", "operator": "add", "value": 1}],
        "yaml": [{"subPath": "/a", "operator": "add", "value": 1}],
    }]});
    assert!(after(web(), both).is_err());
}

#[test]
fn what_was_applied_is_written_as_others_write_it() {
    let patch = json!([{"path": "/spec/x", "operator": "add", "value": "<a&b>"}]);
    let policies = [
        policy(json!({"metadata": {"name": "far"}, "spec": {"overriders": {"plaintext": patch}}})),
        policy(
            json!({"metadata": {"name": "near", "namespace": "shop"}, "spec": {"overriders": {"plaintext": patch}}}),
        ),
    ];
    let rules = relevant_overrides(&web(), &cluster("member1"), &policies);
    let expected = |name: &str| {
        format!(
            r#"[{{"policyName":"{name}","overriders":{{"plaintext":[{{"path":"/spec/x","operator":"add","value":"\u003ca\u0026b\u003e"}}]}}}}]"#
        )
    };
    assert_eq!(
        applied_annotations(&rules),
        [
            (keys::APPLIED_CLUSTER_OVERRIDES.to_owned(), expected("far")),
            (keys::APPLIED_OVERRIDES.to_owned(), expected("near")),
        ]
    );
    assert_eq!(applied_annotations(&[]), []);
}

/// A server refuses an object with longer annotations, and the override would do nothing.
#[test]
fn what_was_applied_is_named_shortly_where_it_is_long() {
    let long = |name: &str, namespace: &str, rules: usize| {
        let value = "x".repeat(300_000 / rules);
        let patch = json!([{"path": "/spec/x", "operator": "add", "value": value}]);
        let rules = vec![json!({"overriders": {"plaintext": patch}}); rules];
        policy(json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"overrideRules": rules}}))
    };
    let applied = |policies: &[Arc<OverridePolicy>]| {
        applied_annotations(&relevant_overrides(&web(), &cluster("member1"), policies))
    };
    let short = applied(&[long("far", "", 1), long("near", "shop", 2)]);
    let rule = |name: &str, rule: usize| {
        format!(r#"{{"policyName":"{name}","overriders":{{}},"rule":"overrideRules[{rule}]"}}"#)
    };
    assert_eq!(
        short,
        [
            (
                keys::APPLIED_CLUSTER_OVERRIDES.to_owned(),
                format!("[{}]", rule("far", 0))
            ),
            (
                keys::APPLIED_OVERRIDES.to_owned(),
                format!("[{},{}]", rule("near", 0), rule("near", 1))
            ),
        ]
    );
    // Not even all names need to fit.
    let many = applied(&[long("far", "", 10_000)]);
    let size = weight(&many);
    assert!((APPLIED_LIMIT - 200..=APPLIED_LIMIT).contains(&size), "{size}");
    assert!(serde_json::from_str::<Value>(&many[0].1).unwrap().is_array());
}

#[test]
fn an_override_leaves_a_version() {
    let change = |operator: &str, value: Value| {
        let patch = json!({"path": "/apiVersion", "operator": operator, "value": value});
        after(web(), json!({"plaintext": [patch]}))
    };
    for (operator, value) in [("remove", json!(null)), ("replace", json!("")), ("add", json!(5))] {
        let error = change(operator, value).unwrap_err();
        assert!(
            error.contains(": /apiVersion: an override must leave a text here"),
            "{error}"
        );
    }
    let other = change("replace", json!("apps/v1beta1")).unwrap();
    assert_eq!(other["apiVersion"], "apps/v1beta1");
}
