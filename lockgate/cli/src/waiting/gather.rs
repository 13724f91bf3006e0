//! Reads the templates that are meant, and what waits for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::{Binding, Cluster, Condition, PropagationPolicy, keys, names};
use lockgate_engine::Gates;
use lockgate_engine::claim::Claim;
use lockgate_engine::pending::{self, Pending, PendingInput};
use lockgate_engine::selector::PolicyIndex;
use serde_json::Value;

use crate::connect::Connection;
use crate::exit::Failure;
use crate::status::gather::{missing, read_all};
use crate::status::kinds::{self, Kind};
use crate::waiting::Which;
use crate::waiting::select::Selection;

/// What was found.
pub(crate) struct Found {
    /// How many templates are meant.
    pub(crate) matched: usize,
    /// Those of them that wait, by namespace, kind and name.
    pub(crate) rows: Vec<Row>,
}

/// A template that waits.
pub(crate) struct Row {
    pub(crate) pending: Pending,
    /// Why, in one word.
    pub(crate) why: String,
    /// Since when.
    pub(crate) since: Option<Timestamp>,
    /// Where the template is, and its binding.
    pub(crate) path: String,
    pub(crate) binding_path: String,
}

/// Reads what is meant. `all` takes also what does not wait.
pub(crate) async fn gather(hub: &Connection, which: &Which, all: bool) -> Result<Found, Failure> {
    let objects = read_all(hub).await?;
    let served = kinds::served(hub).await?;
    let selection = Selection::parse(which, &hub.namespace, &served, &objects.policies)?;
    let mut reader = Reader::new(objects.policies, objects.bindings, objects.clusters, all);
    if let (Some(kind), Some(name)) = (&selection.kind, &selection.name) {
        let namespace = selection.namespace.as_deref().unwrap_or_default();
        let template: Option<Value> = hub.get(&kind.path(namespace, name)).await?;
        let template = template.ok_or_else(|| missing(kind, namespace, name))?;
        reader.take(&selection, kind, template);
        return Ok(reader.end());
    }
    for kind in reader
        .kinds(&served)
        .into_iter()
        .filter(|kind| selection.admits_kind(kind))
    {
        let collection = kind.collection(selection.namespace.as_deref());
        for id in [keys::PP_ID, keys::CPP_ID] {
            let query = format!("&labelSelector={}", id.replace('/', "%2F"));
            hub.list(&collection, &query, |template| {
                reader.take(&selection, &kind, template);
            })
            .await?;
        }
        if !selection.admits_orphans() {
            continue;
        }
        for (namespace, name) in reader.orphans(&kind, selection.namespace.as_deref()) {
            if let Some(template) = hub.get(&kind.path(&namespace, &name)).await? {
                reader.take(&selection, &kind, template);
            }
        }
    }
    Ok(reader.end())
}

struct Reader {
    policies: PolicyIndex,
    /// By namespace and name.
    bindings: HashMap<(String, String), Binding>,
    clusters: Vec<Arc<Cluster>>,
    all: bool,
    seen: BTreeSet<(String, String, String)>,
    rows: BTreeMap<(String, String, String), Row>,
}

impl Reader {
    fn new(
        policies: Vec<PropagationPolicy>,
        bindings: Vec<Binding>,
        mut clusters: Vec<Cluster>,
        all: bool,
    ) -> Self {
        clusters.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let mut index = PolicyIndex::default();
        for policy in policies {
            index.insert(Arc::new(policy));
        }
        let key = |binding: &Binding| (binding.metadata.namespace.clone(), binding.metadata.name.clone());
        Self {
            policies: index,
            bindings: bindings
                .into_iter()
                .map(|binding| (key(&binding), binding))
                .collect(),
            clusters: clusters.into_iter().map(Arc::new).collect(),
            all,
            seen: BTreeSet::new(),
            rows: BTreeMap::new(),
        }
    }

    /// The kinds that a policy or a binding names.
    fn kinds(&self, served: &[Kind]) -> Vec<Kind> {
        let mut wanted: BTreeSet<(String, String)> = self
            .policies
            .kinds()
            .map(|(api_version, kind, _)| (api_version.to_owned(), kind.to_owned()))
            .collect();
        wanted.extend(self.bindings.values().map(|binding| {
            let resource = &binding.spec.resource;
            (resource.api_version.clone(), resource.kind.clone())
        }));
        let is = |kind: &&Kind| wanted.contains(&(kind.api_version(), kind.kind.clone()));
        served.iter().filter(is).cloned().collect()
    }

    /// The templates of a kind that nobody owns and that were propagated.
    fn orphans(&self, kind: &Kind, namespace: Option<&str>) -> Vec<(String, String)> {
        let api_version = kind.api_version();
        let bindings = self.bindings.values().filter(|binding| {
            let resource = &binding.spec.resource;
            Claim::on_binding(&binding.metadata).is_none()
                && resource.kind == kind.kind
                && resource.api_version == api_version
                && namespace.is_none_or(|namespace| resource.namespace == namespace)
        });
        bindings
            .map(|binding| {
                let resource = &binding.spec.resource;
                (resource.namespace.clone(), resource.name.clone())
            })
            .collect()
    }

    fn take(&mut self, selection: &Selection, kind: &Kind, mut template: Value) {
        // A custom object says so itself; a built-in one is what was asked for.
        template["apiVersion"] = kind.api_version().into();
        template["kind"] = kind.kind.clone().into();
        if !selection.admits(&template) || lockgate_engine::object::deleting(&template) {
            return;
        }
        let text = |field: &str| lockgate_engine::object::meta_text(&template, field).to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let key = (
            namespace.clone(),
            format!("{}.{}", kind.kind, kind.group),
            name.clone(),
        );
        if !self.seen.insert(key.clone()) {
            return;
        }
        let binding_name = names::binding_name(&kind.kind, &name);
        let binding = self.bindings.get(&(namespace.clone(), binding_name.clone()));
        let input = PendingInput {
            template: &template,
            binding,
            policies: &self.policies,
            clusters: &self.clusters,
            gates: Gates::default(),
        };
        let pending = match self.all {
            true => Some(pending::as_if(&input)),
            false => pending::pending(&input),
        };
        let Some(pending) = pending else { return };
        let plural = if namespace.is_empty() {
            "clusterresourcebindings".to_owned()
        } else {
            format!("namespaces/{namespace}/resourcebindings")
        };
        let row = Row {
            why: why(pending.current.as_deref(), binding),
            since: pending::since(&template, pending.current.as_deref()),
            path: kind.path(&namespace, &name),
            binding_path: format!("/apis/work.karmada.io/v1alpha2/{plural}/{binding_name}"),
            pending,
        };
        self.rows.insert(key, row);
    }

    fn end(self) -> Found {
        Found {
            matched: self.seen.len(),
            rows: self.rows.into_values().collect(),
        }
    }
}

/// Why a template waits, as its policy says, or its binding if nobody owns it.
fn why(policy: Option<&PropagationPolicy>, binding: Option<&Binding>) -> String {
    let (conditions, otherwise) = match (policy, binding) {
        (Some(policy), _) if policy.spec.is_lazy() => return "Lazy".to_owned(),
        (Some(policy), _) => (
            policy.status.as_ref().map(|status| &status.conditions),
            "Activating",
        ),
        (None, binding) => (binding.map(|binding| &binding.status.conditions), "NoPolicy"),
    };
    conditions
        .and_then(|conditions| Condition::find(conditions, "Activated"))
        .filter(|condition| !condition.is_true())
        .map_or_else(|| otherwise.to_owned(), |condition| condition.reason.clone())
}
