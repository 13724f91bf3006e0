//! A hub in small: one template, some policies, a binding, and a server that counts versions and generations as a real one
//! does. A pass writes what the decision says, and may be cut off after any write.

use std::sync::Arc;

use lockgate_api::{Binding, PropagationPolicy, keys};
use serde_json::{Value, json};

use crate::claim::{Act, Change, Claim, ClaimInput, ContentHashes, Decision, Record, claim};
use crate::gates::Gates;
use crate::object;
use crate::selector::PolicyIndex;

/// The kinds differ in what moves their generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Spec and annotations.
    Deployment,
    /// Nothing: it has none.
    ConfigMap,
    /// Everything but metadata and status.
    Widget,
}

impl Kind {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Deployment => ("apps/v1", "Deployment"),
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Widget => ("example.org/v1", "Widget"),
        }
    }
}

/// Where policies live, unless a test says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Namespaced,
    Cluster,
}

/// A policy, as a test writes it down. It names the template, unless told otherwise.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    name: String,
    scope: Option<Scope>,
    spec: Value,
    selector: Value,
}

/// A policy that sends the template to a cluster.
pub(super) fn rule(name: &str, cluster: &str) -> Rule {
    Rule {
        name: name.to_owned(),
        scope: None,
        spec: json!({ "placement": { "clusterAffinity": { "clusterNames": [cluster] } } }),
        selector: json!({ "namespace": "shop", "name": "web" }),
    }
}

impl Rule {
    pub(super) fn pp(mut self) -> Self {
        self.scope = Some(Scope::Namespaced);
        self
    }
    pub(super) fn cpp(mut self) -> Self {
        self.scope = Some(Scope::Cluster);
        self
    }
    pub(super) fn lazy(self) -> Self {
        self.with("activationPreference", json!("Lazy"))
    }
    pub(super) fn priority(self, priority: i32) -> Self {
        self.with("priority", json!(priority))
    }
    pub(super) fn always(self) -> Self {
        self.with("preemption", json!("Always"))
    }
    pub(super) fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }
    /// It matches another template.
    pub(super) fn elsewhere(mut self) -> Self {
        self.selector = json!({ "namespace": "shop", "name": "other" });
        self
    }
    /// It matches all templates with this value of the label `app`.
    pub(super) fn app(mut self, app: &str) -> Self {
        self.selector = json!({ "labelSelector": { "matchLabels": { "app": app } } });
        self
    }
    /// It names the template, and no namespace.
    pub(super) fn named_anywhere(mut self) -> Self {
        self.selector = json!({ "name": "web" });
        self
    }
    /// It matches all templates of the kind.
    pub(super) fn all(mut self) -> Self {
        self.selector = json!({});
        self
    }
}

/// The model.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    pub(super) gates: Gates,
    /// Whether every pass is cut off after its first write, and begun again.
    pub(super) cut: bool,
    /// Whether everything happens within one second.
    pub(super) hasty: bool,
    pub(super) template: Option<Value>,
    pub(super) policies: PolicyIndex,
    pub(super) binding: Option<Binding>,
    version: u64,
    uids: u64,
    clock: u64,
}

impl World {
    pub(super) fn new(kind: Kind, scope: Scope, gates: Gates) -> Self {
        Self {
            kind,
            scope,
            gates,
            cut: false,
            hasty: false,
            template: None,
            policies: PolicyIndex::default(),
            binding: None,
            version: 100,
            uids: 0,
            clock: 0,
        }
    }

    /// Runs a story for every kind, scope and way to be interrupted.
    pub(super) fn each(gates: Gates, story: impl Fn(World)) {
        for kind in [Kind::Deployment, Kind::ConfigMap, Kind::Widget] {
            for scope in [Scope::Namespaced, Scope::Cluster] {
                for (cut, hasty) in [(false, false), (true, false), (false, true), (true, true)] {
                    let mut world = Self::new(kind, scope, gates);
                    world.cut = cut;
                    world.hasty = hasty;
                    story(world);
                }
            }
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("uid-{}", self.uids)
    }

    fn now(&mut self) -> String {
        if !self.hasty {
            self.clock += 1;
        }
        format!(
            "2026-01-01T{:02}:{:02}:{:02}Z",
            self.clock / 3600,
            self.clock / 60 % 60,
            self.clock % 60
        )
    }

    /// The user creates the template.
    pub(super) fn create(&mut self) -> &mut Self {
        self.create_from(json!({ "labels": { "app": "a" } }))
    }

    /// The user creates the template with some metadata.
    pub(super) fn create_from(&mut self, metadata: Value) -> &mut Self {
        let (api_version, kind) = self.kind.names();
        let mut template = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        template["metadata"]["namespace"] = json!("shop");
        template["metadata"]["name"] = json!("web");
        template["metadata"]["uid"] = json!(self.next_uid());
        template["metadata"]["resourceVersion"] = json!(self.next_version());
        template["metadata"]["creationTimestamp"] = json!(self.now());
        if self.kind == Kind::ConfigMap {
            template["data"] = json!({ "replicas": "2" });
        } else {
            template["spec"] = json!({ "replicas": 2 });
            template["metadata"]["generation"] = json!(1);
        }
        // What carried over from another template is its own affair: a new one has a new binding.
        self.template = Some(template);
        self.binding = None;
        self
    }

    /// Somebody writes the template.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Value)) -> &mut Self {
        let mut template = self.template.clone().unwrap();
        change(&mut template);
        self.put(template);
        self
    }

    /// The user changes what the template says.
    pub(super) fn scale(&mut self, replicas: u8) -> &mut Self {
        let field = if self.kind == Kind::ConfigMap {
            "data"
        } else {
            "spec"
        };
        self.edit(|template| template[field]["replicas"] = json!(replicas))
    }

    /// The user touches a label, as one does to activate.
    pub(super) fn touch(&mut self, value: &str) -> &mut Self {
        self.edit(|template| template["metadata"]["labels"]["refresh-time"] = json!(value))
    }

    /// The user replaces the template with a manifest that knows nothing of claims.
    pub(super) fn strip(&mut self) -> &mut Self {
        self.edit(|template| {
            for field in ["labels", "annotations"] {
                if let Some(map) = template["metadata"][field].as_object_mut() {
                    map.retain(|key, _| !key.contains(".karmada.io"));
                }
            }
        })
    }

    /// The server writes the template, as real ones do.
    fn put(&mut self, mut new: Value) {
        let old = self.template.clone().unwrap();
        if new == old {
            return;
        }
        let differs = |field: &str| new.get(field) != old.get(field);
        let moves = match self.kind {
            Kind::ConfigMap => false,
            Kind::Widget => differs("spec"),
            Kind::Deployment => {
                differs("spec") || new["metadata"]["annotations"] != old["metadata"]["annotations"]
            }
        };
        if moves {
            new["metadata"]["generation"] = json!(object::generation(&old) + 1);
        }
        new["metadata"]["resourceVersion"] = json!(self.next_version());
        self.template = Some(new);
    }

    /// A newer server, or definition, adds a default: the content moves, and no write does.
    pub(super) fn add_default(&mut self, field: &str) -> &mut Self {
        let part = if self.kind == Kind::ConfigMap {
            "data"
        } else {
            "spec"
        };
        let template = self.template.as_mut().unwrap();
        template[part][field] = json!("default");
        self
    }

    /// Somebody creates a policy or changes it.
    pub(super) fn apply(&mut self, rule: Rule) -> &mut Self {
        let (api_version, kind) = self.kind.names();
        let namespace = match rule.scope.unwrap_or(self.scope) {
            Scope::Namespaced => "shop",
            Scope::Cluster => "",
        };
        let mut spec = rule.spec;
        let mut selector = rule.selector;
        selector["apiVersion"] = json!(api_version);
        selector["kind"] = json!(kind);
        spec["resourceSelectors"] = json!([selector]);
        let spec = serde_json::from_value(spec).unwrap();
        let mut policy = match self.policies.get(namespace, &rule.name) {
            Some(old) => PropagationPolicy::clone(old),
            None => {
                let mut policy = PropagationPolicy::default();
                policy.metadata.namespace = namespace.to_owned();
                policy.metadata.name.clone_from(&rule.name);
                policy.metadata.uid = self.next_uid();
                policy.metadata.creation_timestamp = Some(self.now());
                policy
            }
        };
        if policy.metadata.generation == 0 || policy.spec != spec {
            policy.metadata.generation += 1;
            policy.metadata.resource_version = self.next_version();
        }
        policy.spec = spec;
        self.policies.insert(Arc::new(policy));
        self
    }

    fn named(&self, name: &str) -> Option<(String, String)> {
        let mut policies = self.policies.iter();
        let policy = policies.find(|policy| policy.metadata.name == name)?;
        Some((policy.metadata.namespace.clone(), name.to_owned()))
    }

    /// Somebody deletes a policy.
    pub(super) fn delete(&mut self, name: &str) -> &mut Self {
        if let Some((namespace, name)) = self.named(name) {
            self.policies.remove(&namespace, &name);
        }
        self
    }

    /// Somebody deletes a policy, and a finalizer keeps it.
    pub(super) fn delete_slowly(&mut self, name: &str) -> &mut Self {
        if let Some((namespace, name)) = self.named(name) {
            let mut policy = PropagationPolicy::clone(self.policies.get(&namespace, &name).unwrap());
            policy.metadata.deletion_timestamp = Some(self.now());
            policy.metadata.generation += 1;
            policy.metadata.resource_version = self.next_version();
            self.policies.insert(Arc::new(policy));
        }
        self
    }

    /// Somebody asks for activation.
    pub(super) fn ask(&mut self, request: &str) -> &mut Self {
        self.edit(|template| template["metadata"]["annotations"][keys::ACTIVATE] = json!(request))
    }

    /// What the station says.
    pub(super) fn decide(&self) -> Option<Decision> {
        Some(claim(&ClaimInput {
            template: self.template.as_ref()?,
            policies: &self.policies,
            binding: self.binding.as_ref(),
            gates: self.gates,
            written: None,
        }))
    }

    /// One pass, cut off after so many writes. Answers how many there were.
    pub(super) fn pass(&mut self, limit: usize) -> usize {
        let mut writes = 0;
        let Some(decision) = self.decide() else {
            return 0;
        };
        let template = self.template.clone().unwrap();
        if let Some(recorded) = decision.record_first(&template, self.binding.as_ref()) {
            assert_ne!(
                self.binding.as_ref(),
                Some(&recorded),
                "a write without a difference"
            );
            self.binding = Some(recorded);
            writes += 1;
            if writes == limit {
                return writes;
            }
        }
        if let Some(marked) = decision.mark(&template, self.binding.as_ref()) {
            assert_ne!(marked, template, "a write without a difference");
            self.put(marked);
            writes += 1;
        }
        let activates = matches!(decision.act, Act::Activate(_));
        if writes == limit || (self.binding.is_none() && !activates) {
            return writes;
        }
        let before = self.binding.clone();
        let mut binding = before.clone().unwrap_or_default();
        decision.bind(self.template.as_ref().unwrap(), &mut binding);
        if before.as_ref() != Some(&binding) {
            self.binding = Some(binding);
            writes += 1;
        }
        writes
    }

    /// Passes until nothing is left to write, then restarts: deciding again must write nothing.
    pub(super) fn settle(&mut self) -> &mut Self {
        if self.cut {
            for round in 0.. {
                assert!(round < 5, "it does not settle: {}", self.shown());
                if self.pass(1) == 0 {
                    break;
                }
            }
        } else {
            self.pass(usize::MAX);
        }
        let again = self.pass(usize::MAX);
        assert_eq!(again, 0, "a restart wrote {again} objects: {}", self.shown());
        if let Some(decision) = self.decide() {
            assert!(
                !matches!(decision.act, Act::Activate(_)),
                "a restart activates: {decision:?}"
            );
        }
        self
    }

    /// Settles, and compares with what is expected: see [`World::shown`].
    #[track_caller]
    pub(super) fn then(&mut self, expected: &str) -> &mut Self {
        self.settle();
        assert_eq!(
            self.shown(),
            expected,
            "{:?} {:?} cut={} hasty={}",
            self.kind,
            self.scope,
            self.cut,
            self.hasty
        );
        self
    }

    /// `holder/activated-by cluster`, with `changed` if what the user wrote since is not activated; `-` for nobody. A
    /// template without a binding shows its holder alone.
    pub(super) fn shown(&self) -> String {
        let Some(template) = &self.template else {
            return "gone".to_owned();
        };
        let name = |claim: Option<Claim>| claim.map_or("-".to_owned(), |claim| claim.name);
        let holder = name(Claim::on_template(template));
        let Some(binding) = &self.binding else {
            return holder;
        };
        let by = name(Claim::on_binding(&binding.metadata));
        let clusters = self.clusters().join(",");
        let changed = if self.change() == Change::ByUser {
            " changed"
        } else {
            ""
        };
        format!("{holder}/{by} {clusters}{changed}")
    }

    /// Where the activated placement sends the template.
    pub(super) fn clusters(&self) -> Vec<String> {
        let placement = self
            .binding
            .as_ref()
            .and_then(|binding| binding.spec.placement.clone());
        let affinity = placement.and_then(|placement| placement.cluster_affinity);
        affinity.map_or_else(Vec::new, |affinity| affinity.cluster_names)
    }

    /// What happened to the template since it was recorded.
    pub(super) fn change(&self) -> Change {
        let template = self.template.as_ref().unwrap();
        Record::find(template, self.binding.as_ref()).map_or(Change::Unknown, |record| {
            record.compare(template, &ContentHashes::of(template))
        })
    }

    /// The replicas that were activated.
    pub(super) fn replicas(&self) -> i64 {
        self.binding.as_ref().unwrap().spec.replicas
    }
}
