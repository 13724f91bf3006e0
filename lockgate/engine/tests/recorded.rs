//! What a released control plane made of some templates is what we make of them: its Works, and its members' objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::work::LastApplied;
use lockgate_api::{Binding, Cluster, OverridePolicy, Work, keys, names};
use lockgate_engine::dispatch::{
    Dispatch, DispatchInput, Withdraw, differing_path, dispatch, version_of, withdraw,
};
use lockgate_engine::object;
use lockgate_engine::render::{RenderInput, Rendered, render, render_namespace, workload};
use machinery_value::decode::from_yaml;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn items<T: DeserializeOwned>(yaml: &str) -> Vec<T> {
    let list = from_yaml(yaml.as_bytes()).expect("the fixture is YAML").value;
    serde_json::from_value(list["items"].clone()).expect("the fixture is a list of such objects")
}

struct Recorded {
    templates: Vec<Value>,
    bindings: Vec<Binding>,
    overrides: Vec<Arc<OverridePolicy>>,
    works: Vec<Work>,
    members: Vec<Value>,
}

fn recorded() -> Recorded {
    Recorded {
        templates: items(include_str!("data/recorded/templates.yaml")),
        bindings: items(include_str!("data/recorded/bindings.yaml")),
        overrides: items(include_str!("data/recorded/overrides.yaml"))
            .into_iter()
            .map(Arc::new)
            .collect(),
        works: items(include_str!("data/recorded/works.yaml")),
        members: items(include_str!("data/recorded/members.yaml")),
    }
}

fn id(binding: &Binding) -> &str {
    let metadata = &binding.metadata;
    metadata
        .label(keys::RB_ID)
        .or_else(|| metadata.label(keys::CRB_ID))
        .expect("every recorded binding has an id")
}

impl Recorded {
    /// Renders anew what a Work holds.
    fn render(&self, work: &Work) -> Rendered {
        let manifest = &work.spec.workload.manifests[0];
        let identity = |object: &Value| {
            let meta = |field| object::meta_text(object, field).to_owned();
            (
                object::text(object, "kind").to_owned(),
                meta("namespace"),
                meta("name"),
            )
        };
        let same = |template: &&Value| identity(template) == identity(manifest);
        let template = self
            .templates
            .iter()
            .find(same)
            .expect("its template is recorded");
        let mut cluster = Cluster::default();
        cluster.metadata.name = names::cluster_of(&work.metadata.namespace)
            .expect("Works are in execution namespaces")
            .to_owned();
        let work_id = work.metadata.label(keys::WORK_ID).expect("every Work has an id");
        let of_work = |binding: &&Binding| work.metadata.labels.values().any(|value| value == id(binding));
        let Some(binding) = self.bindings.iter().find(of_work) else {
            return render_namespace(template, work_id, &cluster, &self.overrides).expect("it renders");
        };
        let target = binding
            .spec
            .clusters
            .iter()
            .find(|target| target.name == cluster.metadata.name);
        let input = RenderInput {
            template,
            binding,
            binding_id: id(binding),
            work_id,
            cluster: &cluster,
            replicas: workload(template).and(target).map(|target| target.replicas),
            keeps: false,
            completions: None,
            reviser: None,
            overrides: &self.overrides,
            conflict_resolution: &binding.spec.conflict_resolution,
        };
        render(&input).expect("it renders")
    }

    fn work_of(&self, live: &Value) -> &Work {
        let [namespace, name] =
            [keys::WORK_NAMESPACE, keys::WORK_NAME].map(|key| object::annotation(live, key));
        let same = |work: &&Work| {
            Some(work.metadata.namespace.as_str()) == namespace && Some(work.metadata.name.as_str()) == name
        };
        self.works.iter().find(same).expect("its Work is recorded")
    }
}

#[test]
fn works_are_rendered_as_they_were_recorded() {
    let recorded = recorded();
    assert_eq!(recorded.works.len(), 12);
    let mut bound = 0;
    for work in &recorded.works {
        let rendered = recorded.render(work);
        let place = format!("{}/{}", work.metadata.namespace, work.metadata.name);
        assert_eq!(rendered.work_name, work.metadata.name, "{place}");
        assert_eq!(rendered.labels, work.metadata.labels, "{place}");
        assert_eq!(rendered.annotations, work.metadata.annotations, "{place}");
        assert_eq!(rendered.manifest, work.spec.workload.manifests[0], "{place}");
        assert_eq!(rendered.warnings, [""; 0], "{place}");
        bound += usize::from(!rendered.annotations.is_empty());
    }
    assert_eq!(bound, 9, "three of the Works are of the namespace");
}

#[test]
fn works_of_one_template_differ_in_digest_only_where_inputs_do() {
    let recorded = recorded();
    let mut digests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for work in &recorded.works {
        let digest = recorded.render(work).digest;
        assert!(digest.starts_with("1-") && digest.len() == 22, "{digest}");
        digests
            .entry(work.metadata.name.clone())
            .or_default()
            .push(digest);
    }
    for (name, digests) in digests {
        // Its replicas are divided, and one cluster has another image.
        let differ = name.starts_with("web-56");
        assert_eq!(
            digests.iter().any(|digest| *digest != digests[0]),
            differ,
            "{name}"
        );
    }
}

#[test]
fn members_agree_with_their_works() {
    let recorded = recorded();
    assert_eq!(recorded.members.len(), 5);
    for live in &recorded.members {
        let manifest = &recorded.work_of(live).spec.workload.manifests[0];
        let decided = |live: &Value, last_applied: Option<&LastApplied>| {
            dispatch(&DispatchInput {
                manifest,
                live: Some(live),
                last_applied,
                work_generation: 1,
                interpreter: None,
            })
        };
        assert_eq!(decided(live, None), Dispatch::Nothing);

        let last = LastApplied {
            work_generation: 1,
            uid: object::meta_text(live, "uid").to_owned(),
            version: version_of(live),
            replicas: None,
        };
        let mut drifted = live.clone();
        let (pointer, value) = match object::text(live, "kind") {
            "ConfigMap" => ("/data/color", json!("red")),
            _ => ("/spec/replicas", json!(17)),
        };
        *drifted.pointer_mut(pointer).expect("it is there") = value;
        drifted["metadata"]["generation"] = json!(2);
        let Dispatch::Update(corrected, Some(drift)) = decided(&drifted, Some(&last)) else {
            panic!("a drift was not corrected");
        };
        assert_eq!(drift.path, pointer[1..].replace('/', "."));
        assert_eq!(differing_path(&corrected, live), None);
        assert_eq!(
            corrected["metadata"]["resourceVersion"],
            live["metadata"]["resourceVersion"]
        );
    }
}

#[test]
fn what_is_preserved_keeps_nothing_of_ours() {
    let recorded = recorded();
    for live in &recorded.members {
        let manifest = &recorded.work_of(live).spec.workload.manifests[0];
        let Withdraw::Delete { uid, .. } = withdraw(manifest, Some(live), false) else {
            panic!("it is ours");
        };
        assert_eq!(uid, object::meta_text(live, "uid"));
        let Withdraw::Strip(stripped) = withdraw(manifest, Some(live), true) else {
            panic!("it is ours");
        };
        assert!(!stripped.to_string().contains("karmada.io/"), "{stripped}");
        assert_eq!(stripped["spec"], live["spec"]);
        assert_eq!(
            object::annotation(&stripped, "kubectl.kubernetes.io/last-applied-configuration"),
            object::annotation(live, "kubectl.kubernetes.io/last-applied-configuration"),
        );
    }
}
