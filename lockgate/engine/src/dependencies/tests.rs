use std::collections::BTreeSet;

use lockgate_api::Binding;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn named(found: &[Dependency]) -> Vec<String> {
    found
        .iter()
        .map(|needed| format!("{} {}", needed.kind, needed.name))
        .collect()
}

fn pod() -> Value {
    json!({
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "a", "configMap": {"name": "files"}},
            {"name": "b", "secret": {"secretName": "keys"}},
            {"name": "c", "projected": {"sources": [
                {"configMap": {"name": "kube-root-ca.crt"}}, {"configMap": {"name": "more"}}, {"secret": {"name": "more"}},
            ]}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "e", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "csi"}}},
            {"name": "f", "emptyDir": {}},
        ],
        "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "first"}}]}],
        "containers": [{
            "name": "c",
            "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "a"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "b"}}},
                {"name": "C", "value": "plain"},
            ],
            "envFrom": [{"configMapRef": {"name": "env"}}],
        }],
    })
}

#[test]
fn kinds_with_pods_need_what_their_pods_need() {
    let all = [
        "ConfigMap env",
        "ConfigMap files",
        "ConfigMap more",
        "PersistentVolumeClaim disk",
        "Secret csi",
        "Secret first",
        "Secret keys",
        "Secret more",
        "Secret pull",
        "ServiceAccount runner",
    ];
    let template = json!({"spec": pod()});
    for (api, kind, spec) in [
        ("v1", "Pod", pod()),
        ("apps/v1", "Deployment", json!({"template": template})),
        ("apps/v1", "ReplicaSet", json!({"template": template})),
        ("apps/v1", "StatefulSet", json!({"template": template})),
        ("apps/v1", "DaemonSet", json!({"template": template})),
        ("batch/v1", "Job", json!({"template": template})),
        (
            "batch/v1",
            "CronJob",
            json!({"jobTemplate": {"spec": {"template": template}}}),
        ),
    ] {
        let object = json!({"apiVersion": api, "kind": kind, "metadata": {"namespace": "shop", "name": "x"}, "spec": spec});
        let found = dependencies(&object);
        assert_eq!(named(&found), all, "{kind}");
        assert!(found.iter().all(|needed| needed.namespace == "shop"));
        assert_eq!(decode(&encode(&found)), Some(found));
    }
}

#[test]
fn other_kinds_need_what_they_name() {
    let object = |api: &str, kind: &str, spec: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"namespace": "shop", "name": "x"}, "spec": spec});
    let tls = json!({"tls": [{"secretName": "cert"}, {"hosts": ["a"]}, {"secretName": "cert"}]});
    assert_eq!(
        named(&dependencies(&object("networking.k8s.io/v1", "Ingress", tls))),
        ["Secret cert"]
    );
    let import = dependencies(&object(
        "multicluster.x-k8s.io/v1alpha1",
        "ServiceImport",
        json!({}),
    ));
    assert_eq!(named(&import), ["EndpointSlice ", "Service derived-x"]);
    let slice = |service: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
               "metadata": {"namespace": "shop", "name": "y", "labels": {"kubernetes.io/service-name": service}}})
    };
    assert!(import[0].means(&slice("derived-x")));
    assert!(!import[0].means(&slice("other")));
    for (api, kind) in [
        ("v1", "Service"),
        ("v1", "ConfigMap"),
        ("example.io/v1", "Deployment"),
    ] {
        let spec = json!({"template": {"spec": pod()}});
        assert_eq!(dependencies(&object(api, kind, spec)), [], "{kind}");
    }
    let claims = json!({
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        "template": {"spec": {"serviceAccountName": "default", "volumes": [
            {"persistentVolumeClaim": {"claimName": "data"}}, {"persistentVolumeClaim": {"claimName": "mine"}},
        ]}},
    });
    assert_eq!(
        named(&dependencies(&object("apps/v1", "StatefulSet", claims))),
        ["PersistentVolumeClaim mine"]
    );
}

#[test]
fn nonsense_needs_nothing() {
    for spec in [
        json!(null),
        json!("x"),
        json!({"template": 3}),
        json!({"template": {"spec": {"volumes": {"a": 1}, "containers": [1, null], "imagePullSecrets": [{"name": 3}]}}}),
    ] {
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec});
        assert_eq!(dependencies(&object), []);
    }
    let own = Dependency::named("v1", "ConfigMap", "shop", "x");
    let id = TemplateId::of(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "x"}}),
    );
    assert_eq!(settled(vec![own, Dependency::default()], &id), []);
    let bad = Dependency {
        label_selector: Some(json!({"matchExpressions": [{"key": "a", "operator": "What"}]})),
        ..Dependency::named("v1", "ConfigMap", "shop", "")
    };
    assert!(!bad.means(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "x"}})
    ));
}

fn clusters(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn need(name: &str, at: &[&str]) -> Need {
    Need {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        id: format!("{name}-id"),
        clusters: clusters(at),
        ..Need::default()
    }
}

/// The binding of what is needed, after a decision.
struct Settings {
    binding: Option<Binding>,
}

impl Settings {
    fn new() -> Self {
        Self { binding: None }
    }

    fn after(&mut self, needs: &[Need], unknown: &[&str], copies: &[&str]) -> Vec<String> {
        let unknown = unknown
            .iter()
            .map(|name| ("shop".to_owned(), (*name).to_owned()))
            .collect();
        let required = require(&RequireInput {
            before: self.binding.as_ref(),
            own: ("shop", "settings-configmap"),
            needs,
            unknown: &unknown,
            copies: &clusters(copies),
        });
        let binding = self.binding.get_or_insert_default();
        binding.spec.resource.kind = "ConfigMap".to_owned();
        required.put(binding);
        let mut told: Vec<String> = binding
            .spec
            .required_by
            .iter()
            .map(|snapshot| {
                let at: Vec<&str> = snapshot
                    .clusters
                    .iter()
                    .map(|target| target.name.as_str())
                    .collect();
                format!("{}: {}", snapshot.name, at.join(" "))
            })
            .collect();
        told.extend(required.disagreement.map(|disagreement| disagreement.message));
        told
    }
}

#[test]
fn who_needs_it_says_where() {
    let mut settings = Settings::new();
    let told = settings.after(&[need("b", &["m2"]), need("a", &["m1", "m2"])], &[], &[]);
    assert_eq!(told, ["a: m1 m2", "b: m2"]);
    let binding = settings.binding.clone().unwrap();
    assert!(is_attached(&binding));
    assert_eq!(binding.metadata.labels.len(), 2);
    // One moves, and its old copy is still there.
    let moving = Need {
        lingers: clusters(&["m1"]),
        ..need("a", &["m3"])
    };
    assert_eq!(
        settings.after(&[moving, need("b", &["m2"])], &[], &[]),
        ["a: m1 m3", "b: m2"]
    );
    assert_eq!(
        settings.after(&[need("a", &["m3"]), need("b", &["m2"])], &[], &[]),
        ["a: m3", "b: m2"]
    );
    // One no longer refers to it, but its copies are not that new everywhere.
    let forgetful = Need {
        lingers: clusters(&["m2", "m9"]),
        ..need("b", &[])
    };
    assert_eq!(
        settings.after(&[need("a", &["m3"]), forgetful], &[], &[]),
        ["a: m3", "b: m2"]
    );
    // Nobody can tell of one whether it is gone.
    assert_eq!(
        settings.after(&[need("b", &["m2"])], &["a"], &[]),
        ["a: m3", "b: m2"]
    );
    assert_eq!(settings.after(&[], &[], &["m2", "m3"]), Vec::<String>::new());
    assert_eq!(settings.binding.unwrap().metadata.labels.len(), 0);
}

#[test]
fn a_binding_that_is_made_again_forgets_nothing() {
    let mut settings = Settings::new();
    let told = settings.after(&[need("a", &["m1"])], &[], &["m1", "m2", "m3"]);
    assert_eq!(told, ["a: m1", "settings-configmap: m2 m3"]);
    assert_eq!(
        settings.after(
            &[need("a", &["m1"]), need("b", &["m2"])],
            &[],
            &["m1", "m2", "m3"]
        ),
        ["a: m1", "b: m2", "settings-configmap: m3"]
    );
    // What others need is theirs from now on.
    assert_eq!(
        settings.after(&[need("a", &["m1"])], &[], &["m1", "m2", "m3"]),
        ["a: m1", "settings-configmap: m3"]
    );
}

#[test]
fn those_who_disagree_are_named() {
    let mut settings = Settings::new();
    let taking = Need {
        overwrite: true,
        preserve: true,
        ..need("b", &["m1"])
    };
    let told = settings.after(&[need("a", &["m1"]), taking.clone()], &[], &[]);
    assert_eq!(
        told[2],
        "the policies of those that need it do not agree; conflictResolution: Overwrite, because shop/b says so; \
         preserveResourcesOnDeletion: true, because shop/b says so"
    );
    let spec = &settings.binding.as_ref().unwrap().spec;
    assert_eq!(spec.conflict_resolution, "Overwrite");
    assert_eq!(spec.preserve_resources_on_deletion, Some(true));
    assert_eq!(settings.after(&[taking], &[], &[]).len(), 1);
    settings.after(&[need("a", &["m1"])], &[], &[]);
    let spec = &settings.binding.as_ref().unwrap().spec;
    assert_eq!(spec.conflict_resolution, "Abort");
    assert_eq!(spec.preserve_resources_on_deletion, None);
}

fn any_clusters() -> impl Strategy<Value = BTreeSet<String>> {
    proptest::collection::btree_set("m[1-5]", 0..4)
}

fn any_needs() -> impl Strategy<Value = Vec<Need>> {
    let one = (any_clusters(), any_clusters(), any::<bool>(), any::<bool>());
    proptest::collection::vec(one, 0..4).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(index, (clusters, lingers, overwrite, preserve))| Need {
                clusters,
                lingers,
                overwrite,
                preserve,
                ..need(&format!("n{index}"), &[])
            })
            .collect()
    })
}

proptest! {
    /// It is everywhere where somebody needs it, and nowhere but there and where it was; a second look changes nothing.
    #[test]
    fn it_goes_where_it_is_needed(first in any_needs(), second in any_needs(), copies in any_clusters()) {
        let mut settings = Settings::new();
        let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
        settings.after(&first, &[], &copies);
        let before = crate::gate::wanted(&settings.binding.clone().unwrap().spec).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        settings.after(&second, &[], &copies);
        let binding = settings.binding.clone().unwrap();
        let wanted: BTreeSet<String> = crate::gate::wanted(&binding.spec).into_iter().map(str::to_owned).collect();
        for need in &second {
            prop_assert!(need.clusters.is_subset(&wanted));
        }
        for cluster in &wanted {
            prop_assert!(before.contains(cluster) || second.iter().any(|need| need.clusters.contains(cluster)));
        }
        settings.after(&second, &[], &copies);
        prop_assert_eq!(settings.binding.unwrap(), binding);
    }
}
