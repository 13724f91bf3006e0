mod properties;

use serde_json::json;

use super::*;

fn cluster(name: &str) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.metadata.name = name.to_owned();
    cluster
}

fn binding(namespace: &str, name: &str) -> Binding {
    let mut binding = Binding::default();
    binding.metadata.namespace = namespace.to_owned();
    binding.metadata.name = name.to_owned();
    binding
}

fn policy(value: Value) -> Arc<OverridePolicy> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1, "labels": {"app": "web"}},
        "spec": {"replicas": 6, "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}},
    })
}

/// Everything that rendering needs, to be changed bit by bit.
#[derive(Clone, Debug)]
struct Case {
    template: Value,
    binding: Binding,
    binding_id: String,
    work_id: String,
    cluster: Cluster,
    replicas: Option<i64>,
    completions: Option<i64>,
    reviser: Option<Script>,
    overrides: Vec<Arc<OverridePolicy>>,
    conflict_resolution: String,
}

impl Case {
    fn new(template: Value) -> Self {
        Self {
            template,
            binding: binding("shop", "web-deployment"),
            binding_id: "b".to_owned(),
            work_id: "w".to_owned(),
            cluster: cluster("member1"),
            replicas: Some(2),
            completions: None,
            reviser: None,
            overrides: Vec::new(),
            conflict_resolution: "Abort".to_owned(),
        }
    }

    fn input(&self) -> RenderInput<'_> {
        RenderInput {
            template: &self.template,
            binding: &self.binding,
            binding_id: &self.binding_id,
            work_id: &self.work_id,
            cluster: &self.cluster,
            replicas: self.replicas,
            keeps: false,
            completions: self.completions,
            reviser: self.reviser.as_ref(),
            overrides: &self.overrides,
            conflict_resolution: &self.conflict_resolution,
        }
    }

    fn render(&self) -> Rendered {
        render(&self.input()).unwrap()
    }

    fn digest(&self) -> String {
        let digest = inputs_digest(&self.input());
        assert_eq!(self.render().digest, digest);
        digest
    }
}

#[test]
fn a_manifest_says_whose_it_is() {
    let rendered = Case::new(web()).render();
    let expected = json!({
        "name": "web", "namespace": "shop",
        "labels": {
            "app": "web", "karmada.io/managed": "true",
            "resourcebinding.karmada.io/permanent-id": "b", "work.karmada.io/permanent-id": "w",
        },
        "annotations": {
            "resourcebinding.karmada.io/name": "web-deployment", "resourcebinding.karmada.io/namespace": "shop",
            "resourcetemplate.karmada.io/generation": "1", "resourcetemplate.karmada.io/uid": "u",
            "resourcetemplate.karmada.io/managed-labels":
                "app,karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id",
            "resourcetemplate.karmada.io/managed-annotations":
                "resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,\
                 resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,\
                 resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,\
                 work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
            "work.karmada.io/conflict-resolution": "abort",
            "work.karmada.io/name": "web-56d6c779bb", "work.karmada.io/namespace": "karmada-es-member1",
        },
    });
    assert_eq!(rendered.manifest["metadata"], expected);
    assert_eq!(rendered.manifest["spec"]["replicas"], 2);
}

#[test]
fn the_template_decides_about_conflicts_before_the_policy() {
    let table = [
        (None, "Abort", "abort"),
        (None, "Overwrite", "overwrite"),
        (None, "", "abort"),
        (Some("overwrite"), "Abort", "overwrite"),
        (Some("abort"), "Overwrite", "abort"),
        (Some("maybe"), "Overwrite", "overwrite"),
    ];
    for (template, policy, expected) in table {
        let mut case = Case::new(web());
        case.conflict_resolution = policy.to_owned();
        if let Some(value) = template {
            case.template["metadata"]["annotations"] = json!({"work.karmada.io/conflict-resolution": value});
        }
        let rendered = case.render();
        let key = "work.karmada.io/conflict-resolution";
        assert_eq!(rendered.annotations[key], expected, "{template:?} {policy}");
        assert_eq!(rendered.manifest["metadata"]["annotations"][key], expected);
    }
}

#[test]
fn what_the_hub_notes_on_templates_stays_there() {
    let mut case = Case::new(web());
    case.template["metadata"]["annotations"] = json!({
        "lockgate.karmada.io/activated": "{}", "lockgate.karmada.io/activate": "1", "mine": "x",
        "resourcetemplate.karmada.io/generation": "77",
    });
    case.template["metadata"]["generation"] = json!(0);
    let rendered = case.render();
    let annotations = object::annotations(&rendered.manifest).unwrap();
    assert_eq!(annotations["mine"], "x");
    assert!(!rendered.manifest.to_string().contains("lockgate.karmada.io"));
    assert!(!annotations.contains_key("resourcetemplate.karmada.io/generation"));
}

#[test]
fn the_digest_moves_with_inputs_and_with_nothing_else() {
    type Change = fn(&mut Case);
    let base = || {
        let mut case = Case::new(web());
        case.template["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"] = json!("p");
        case
    };
    let tag = |value: &str| {
        policy(json!({
            "metadata": {"name": "o"},
            "spec": {"overriders": {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": value}]}},
        }))
    };
    let moves: [(&str, Change); 12] = [
        ("spec", |case| case.template["spec"]["replicas"] = json!(7)),
        ("another field", |case| case.template["data"] = json!({})),
        ("label", |case| {
            case.template["metadata"]["labels"]["tier"] = json!("1")
        }),
        ("karmada.io is the user's", |case| {
            case.template["metadata"]["labels"]["karmada.io/x"] = json!("1");
        }),
        ("retain", |case| {
            case.template["metadata"]["labels"]["resourcetemplate.karmada.io/retain-replicas"] =
                json!("true");
        }),
        ("skip", |case| {
            case.template["metadata"]["labels"]["namespace.karmada.io/skip-auto-propagation"] = json!("true");
        }),
        ("conflicts", |case| {
            case.conflict_resolution = "Overwrite".to_owned()
        }),
        ("conflicts by template", |case| {
            case.template["metadata"]["annotations"] =
                json!({"work.karmada.io/conflict-resolution": "overwrite"});
        }),
        ("replicas", |case| case.replicas = Some(3)),
        ("no replicas", |case| case.replicas = None),
        ("completions", |case| case.completions = Some(3)),
        ("binding", |case| case.binding_id = "c".to_owned()),
    ];
    let before = base().digest();
    assert_eq!(before, base().digest());
    for (what, change) in moves {
        let mut case = base();
        change(&mut case);
        assert_ne!(case.digest(), before, "{what}");
    }
    let stays: [(&str, Change); 8] = [
        ("status", |case| case.template["status"] = json!({"replicas": 1})),
        ("server's metadata", |case| {
            for field in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
                case.template["metadata"][field] = json!("x");
            }
            case.template["metadata"]["generation"] = json!(9);
            case.template["metadata"]["managedFields"] = json!([{}]);
        }),
        ("what is not sent", |case| {
            case.template["metadata"]["finalizers"] = json!(["x"]);
            case.template["metadata"]["ownerReferences"] = json!([{}]);
        }),
        ("claim", |case| {
            case.template["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"] = json!("q");
            case.template["metadata"]["annotations"] = json!({"propagationpolicy.karmada.io/name": "q"});
        }),
        ("notes", |case| {
            case.template["metadata"]["annotations"] = json!({"lockgate.karmada.io/activated": "{}"});
        }),
        ("the same decision said twice", |case| {
            case.template["metadata"]["annotations"] =
                json!({"work.karmada.io/conflict-resolution": "abort"});
        }),
        ("work", |case| case.work_id = "x".to_owned()),
        ("cluster", |case| case.cluster = cluster("member2")),
    ];
    for (what, change) in stays {
        let mut case = base();
        change(&mut case);
        assert_eq!(case.digest(), before, "{what}");
    }
    let with = |overrides: Vec<Arc<OverridePolicy>>| {
        let mut case = base();
        case.overrides = overrides;
        case.digest()
    };
    assert_ne!(with(vec![tag("1")]), before);
    assert_ne!(with(vec![tag("1")]), with(vec![tag("2")]));
    let elsewhere = policy(json!({
        "metadata": {"name": "e"},
        "spec": {"overrideRules": [{
            "targetCluster": {"clusterNames": ["member9"]},
            "overriders": {"plaintext": [{"path": "/x", "operator": "remove"}]},
        }]},
    }));
    assert_eq!(with(vec![elsewhere]), before);
}

#[test]
fn the_format_of_the_digest_stays_as_it_is() {
    let case = Case::new(web());
    assert_eq!(case.digest(), "1-413efc5b60e1e2324996");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    assert_eq!(
        namespace_digest(&namespace, &cluster("member1"), &[]),
        "1-c934398605d9b67978bd"
    );
}

/// A default that is added to a definition is no input: the content counts as it was activated.
#[test]
fn the_digest_does_not_follow_defaults() {
    let before = Case::new(web());
    let activated = crate::claim::ContentHashes::of(&before.template).content;
    let mut after = Case::new(web());
    after.template["spec"]["added"] = json!("by default");
    assert_ne!(after.digest(), before.digest());
    let content = activated_hash(&after.template, Some(&activated));
    assert_eq!(inputs_digest_with(&content, &after.input()), before.digest());
    // Everything else is.
    after.template["metadata"]["labels"]["added"] = json!("by the user");
    let content = activated_hash(&after.template, Some(&activated));
    assert_ne!(inputs_digest_with(&content, &after.input()), before.digest());
}

#[test]
fn namespaces_go_everywhere_with_the_overrides_of_the_whole_control_plane() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "u"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    let label = |scope: Value| {
        policy(json!({
            "metadata": scope,
            "spec": {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"zone": "a"}}]}},
        }))
    };
    let overrides = [
        label(json!({"name": "zones"})),
        label(json!({"name": "inside", "namespace": "shop"})),
    ];
    let rendered = render_namespace(&namespace, "w", &cluster("member1"), &overrides).unwrap();
    assert_eq!(rendered.manifest["metadata"]["labels"]["zone"], "a");
    assert_eq!(rendered.applied.len(), 1);
    assert_eq!(
        rendered.annotations,
        BTreeMap::from([(
            "policy.karmada.io/applied-cluster-overrides".to_owned(),
            r#"[{"policyName":"zones","overriders":{"labelsOverrider":[{"operator":"add","value":{"zone":"a"}}]}}]"#
                .to_owned(),
        )])
    );
    assert_eq!(rendered.work_name, "shop-55c4c4674c");
    assert_eq!(rendered.manifest["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(
        rendered.digest,
        namespace_digest(&namespace, &cluster("member1"), &overrides)
    );
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_reason() {
    let mut case = Case::new(web());
    case.template["data"] = json!({"big": "x".repeat(WORK_LIMIT)});
    let error = render(&case.input()).unwrap_err();
    assert!(
        matches!(error, RenderError::TooLarge { size, limit } if size > limit && limit == WORK_LIMIT),
        "{error}"
    );

    for (pointer, path) in [
        ("/metadata/labels", "/metadata/labels"),
        ("/metadata", "/metadata"),
    ] {
        let mut case = Case::new(web());
        *case.template.pointer_mut(pointer).unwrap() = json!("broken");
        let RenderError::NotAMap { path: found, .. } = render(&case.input()).unwrap_err() else {
            panic!("another error");
        };
        assert_eq!(found, path);
    }
    assert!(render(&Case::new(json!([1])).input()).is_err());
}

#[test]
fn replicas_that_are_kept_go_before_overrides() {
    let mut case = Case::new(web());
    let plaintext = json!([{"path": "/spec/replicas", "operator": "replace", "value": 1}]);
    case.overrides = vec![policy(json!({
        "metadata": {"name": "fewer", "namespace": "shop"},
        "spec": {"overrideRules": [{"overriders": {"plaintext": plaintext}}]},
    }))];
    let input = case.input();
    let count = |manifest: &Value| workload(manifest).map(|workload| workload.replicas);
    assert_eq!(replicas_after_overrides(&input, count), Some(1));
    assert_eq!(case.render().manifest["spec"]["replicas"], 1);
    // The number is that which it is given, and still it is something else.
    let kept = input.keeping(2);
    assert_eq!(render(&kept).unwrap().manifest["spec"]["replicas"], 2);
    assert_ne!(inputs_digest(&kept), inputs_digest(&input));
    // Where no override says anything of replicas, they need not be rendered to be known.
    case.overrides.clear();
    let input = case.input();
    assert_eq!(replicas_after_overrides(&input, |_| None), Some(2));
    assert_eq!(inputs_digest(&input.keeping(2)), inputs_digest(&input));
}
