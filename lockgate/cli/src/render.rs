//! `lockgate render`: what a cluster gets, or would get, and which override did what. It reads the hub and renders with the
//! engine that the controllers use; nothing is written, and no controller needs to run.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use lockgate_api::binding::TargetCluster;
use lockgate_api::ocm::CLUSTER_NAMESPACE;
use lockgate_api::{Binding, Cluster, InterpreterCustomization, OverridePolicy, Work, keys, names};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{Claim, SkipReason, Skips, in_cluster_namespace, skip_template};
use lockgate_engine::interpret::{Interpreter, Interpreters, Operation};
use lockgate_engine::place;
use lockgate_engine::render::{self, Explained, FieldChange, RenderInput, Rendered};
use machinery_value::encode::to_yaml;
use serde_json::{Value, json};

use crate::connect::{Connection, HubArguments};
use crate::exit::Failure;
use crate::print;
use crate::status::gather::missing;
use crate::status::is_of;
use crate::status::kinds::{self, Kind};
use crate::status::objects::is_same;

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1";
/// The longest value that is shown among the changes.
const VALUE: usize = 120;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate render deployment/web -n shop --cluster member2\n  \
        lockgate render deploy web --cluster member2 -o json | jq .overrides\n  \
        lockgate render cm/settings --cluster member2 | kubectl --context member2 diff -f -\n\n\
        Exit codes: 0 rendered, 1 failure, also if an override does not fit, 2 usage.")]
pub(crate) struct RenderArguments {
    /// What to render, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The namespace [default: the context's]
    #[arg(short, long, value_name = "NS")]
    namespace: Option<String>,
    /// For which cluster
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: String,
    /// The form of the answer: the manifest with notes, or an object for programs
    #[arg(short, long, value_name = "FORM", default_value = "yaml")]
    output: Output,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

/// Renders once.
pub(crate) fn run(arguments: &RenderArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(answer(arguments))
}

async fn answer(arguments: &RenderArguments) -> Result<ExitCode, Failure> {
    let hub = arguments.hub.connect().await?;
    let subject = Subject::read(&hub, arguments).await?;
    if let Some(why) = subject.never_sent() {
        let why = format!("{} is sent to no cluster: {why}", subject.id);
        if arguments.output == Output::Json {
            let mut value = subject.heading(false);
            value["error"] = why.as_str().into();
            print::out(&format!("{value:#}\n"));
        }
        return Err(Failure::Other(why));
    }
    let shown = subject.explain();
    match (&shown.explained.result, arguments.output) {
        (_, Output::Json) => print::out(&format!("{:#}\n", shown.value(&subject))),
        (Ok(rendered), Output::Yaml) => {
            let notes = shown.notes(&subject);
            print::out(&format!("{notes}{}", to_yaml(&rendered.manifest)));
        }
        (Err(_), Output::Yaml) => print::out(&shown.notes(&subject)),
    }
    match shown.explained.result {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::Other(error.to_string())),
    }
}

/// Everything that rendering looks at.
struct Subject {
    id: TemplateId,
    template: Value,
    binding: Option<Binding>,
    cluster: Cluster,
    overrides: Vec<Arc<OverridePolicy>>,
    interpreter: Option<Arc<Interpreter>>,
    work: Option<Work>,
    /// Whether a cluster has the name of its namespace.
    reserved: bool,
}

/// How a template comes to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its binding goes there.
    Placed,
    /// As namespaces do that something is sent into.
    ByItself,
    /// It does not.
    Nowhere,
}

/// What came of it.
struct Shown {
    explained: Explained,
    way: Way,
    /// Whether the cluster is one that the template goes to.
    placed: bool,
}

impl Subject {
    async fn read(hub: &Connection, arguments: &RenderArguments) -> Result<Self, Failure> {
        let (kind, name) = match arguments.object.as_slice() {
            [word] => word
                .split_once('/')
                .ok_or_else(|| Failure::Usage(format!("say which one: KIND/NAME, as in {word}/web")))?,
            [kind, name, ..] => (kind.as_str(), name.as_str()),
            [] => return Err(Failure::Usage("say what to render: KIND/NAME".to_owned())),
        };
        let served = kinds::served(hub).await?;
        let kind: Kind = kinds::resolve(&served, kind).map_err(Failure::Usage)?.clone();
        let namespace = match kind.namespaced {
            true => arguments.namespace.as_deref().unwrap_or(&hub.namespace),
            false => "",
        };
        let Some(mut template) = hub.get::<Value>(&kind.path(namespace, name)).await? else {
            return Err(missing(&kind, namespace, name));
        };
        let id = TemplateId {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        template["apiVersion"] = id.api_version.clone().into();
        template["kind"] = id.kind.clone().into();
        let cluster = &arguments.cluster;
        let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}");
        let Some(found) = hub.get::<Cluster>(&path).await? else {
            return Err(Failure::Other(format!(
                "there is no cluster {cluster:?}; lockgate status shows those that there are"
            )));
        };
        let bindings = "/apis/work.karmada.io/v1alpha2";
        let binding_name = names::binding_name(&id.kind, name);
        let path = match namespace {
            "" => format!("{bindings}/clusterresourcebindings/{binding_name}"),
            namespace => format!("{bindings}/namespaces/{namespace}/resourcebindings/{binding_name}"),
        };
        let binding = hub.get::<Binding>(&path).await?;
        let work = format!(
            "/apis/work.karmada.io/v1alpha1/namespaces/{}/works/{}",
            names::execution_namespace(cluster),
            names::work_name(&id.kind, namespace, name)
        );
        let inside = if is_namespace(&id) { name } else { namespace };
        let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{inside}");
        let reserved = !inside.is_empty() && hub.get::<Value>(&path).await?.is_some();
        let mut overrides = Vec::new();
        for plural in ["overridepolicies", "clusteroverridepolicies"] {
            let each = |policy: OverridePolicy| overrides.push(Arc::new(policy));
            if !hub.list(&format!("{POLICY}/{plural}"), "", each).await? {
                return Err(Failure::Other(crate::crds::missing(&hub.url)));
            }
        }
        let mut customizations = Vec::new();
        let path = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations";
        // A hub whose definitions are older has none.
        hub.list(path, "", |one: InterpreterCustomization| customizations.push(one))
            .await?;
        Ok(Self {
            interpreter: Interpreters::of(&customizations).of_object(&template),
            // Names of bindings and Works may be those of another object.
            binding: binding.filter(|binding| is_of(binding, &id)),
            work: hub.get::<Work>(&work).await?.filter(|work| carries(work, &id)),
            cluster: found,
            id,
            template,
            overrides,
            reserved,
        })
    }

    /// Whether its binding goes to the cluster.
    fn is_placed(&self) -> bool {
        let Some(binding) = &self.binding else {
            return false;
        };
        let is_it = |target: &TargetCluster| target.name == self.cluster.metadata.name;
        let required = binding.spec.required_by.iter().flat_map(|by| &by.clusters);
        let owned =
            || Claim::on_template(&self.template).is_some() || Claim::on_binding(&binding.metadata).is_some();
        // A namespace whose policy is gone goes as all do; anything else stays where it was.
        binding.spec.clusters.iter().any(is_it) && (!is_namespace(&self.id) || owned())
            || required.into_iter().any(is_it)
    }

    fn way(&self) -> Way {
        let sent = self.work.as_ref();
        let went_by_itself = sent.is_some_and(|work| work.metadata.label(keys::CRB_ID).is_none());
        if self.is_placed() {
            Way::Placed
        } else if is_namespace(&self.id) && (went_by_itself || self.kept().is_none()) {
            Way::ByItself
        } else {
            Way::Nowhere
        }
    }

    /// How everything that is said of it in JSON begins.
    fn heading(&self, placed: bool) -> Value {
        json!({
            "kind": "Rendered",
            "template": self.id.to_string(),
            "cluster": self.cluster.metadata.name,
            "placed": placed,
        })
    }

    /// Why it is never sent anywhere, whatever policies say. What has been sent all the same can be looked at.
    fn never_sent(&self) -> Option<String> {
        if self.work.is_some() || self.is_placed() {
            return None;
        }
        match skip_template(&self.template) {
            // Controllers may be told otherwise.
            None | Some(SkipReason::SystemNamespace) => {}
            Some(SkipReason::ReservedNamespace) if is_namespace(&self.id) => {
                return Some("it belongs to the control plane".to_owned());
            }
            Some(reason) => return Some(reason.message().to_owned()),
        }
        let namespace = if is_namespace(&self.id) {
            &self.id.name
        } else {
            &self.id.namespace
        };
        self.reserved.then(|| in_cluster_namespace(namespace))
    }

    /// Why it goes nowhere unless somebody says so.
    fn kept(&self) -> Option<String> {
        let label = |key| lockgate_engine::object::label(&self.template, key);
        let name = self.id.name.as_str();
        let system = "is propagated unless the controllers are told so";
        if !is_namespace(&self.id) {
            let reason = skip_template(&self.template);
            let is_system = reason == Some(SkipReason::SystemNamespace);
            return is_system.then(|| format!("nothing in the namespace {} {system}", self.id.namespace));
        }
        if name == "default" {
            Some("the namespace default is in every cluster already".to_owned())
        } else if Skips::default().skip_namespace(name) {
            Some(format!("no namespace named kube-* {system}"))
        } else if label(keys::SKIP_AUTO_PROPAGATION) == Some("true") {
            Some(format!(
                "the label {}=true keeps it here",
                keys::SKIP_AUTO_PROPAGATION
            ))
        } else {
            let of_cluster = label(CLUSTER_NAMESPACE).is_some();
            of_cluster.then(|| format!("the label {CLUSTER_NAMESPACE} says that it is a cluster's"))
        }
    }

    fn explain(&self) -> Shown {
        let cluster = &self.cluster.metadata.name;
        let nobody = Binding::default();
        let binding = self.binding.as_ref().unwrap_or(&nobody);
        let spec = &binding.spec;
        let target = spec.clusters.iter().find(|target| target.name == *cluster);
        let is_workload = place::is_workload(spec);
        let label = match self.id.namespace.is_empty() {
            true => keys::CRB_ID,
            false => keys::RB_ID,
        };
        let uid = lockgate_engine::object::meta_text(&self.template, "uid");
        let binding_id = binding.metadata.label(label).unwrap_or(uid);
        let work_id = self
            .work
            .as_ref()
            .and_then(|work| work.metadata.label(keys::WORK_ID))
            .map_or_else(|| lockgate_hub::work_id(binding_id, cluster), str::to_owned);
        let way = self.way();
        if way == Way::ByItself {
            let (template, overrides) = (&self.template, &self.overrides);
            return Shown {
                explained: render::explain_namespace(template, &work_id, &self.cluster, overrides),
                way,
                placed: self.work.is_some(),
            };
        }
        let explained = render::explain(&RenderInput {
            template: &self.template,
            binding,
            binding_id,
            work_id: &work_id,
            cluster: &self.cluster,
            replicas: target.filter(|_| is_workload).map(|target| target.replicas),
            keeps: false,
            completions: render::completions(spec, &self.template).get(cluster).copied(),
            reviser: self
                .interpreter
                .as_ref()
                .and_then(|interpreter| interpreter.script(Operation::Revise)),
            overrides: &self.overrides,
            conflict_resolution: &spec.conflict_resolution,
        });
        Shown {
            explained,
            way,
            placed: way == Way::Placed,
        }
    }

    /// How what the cluster's Work holds compares.
    fn standing(&self, rendered: &Rendered, way: Way) -> String {
        let standing = match (&self.work, way) {
            (_, Way::Nowhere) => {
                let nothing = "nothing places it there: this is what it would get";
                return match self.kept() {
                    Some(why) => format!("{why}, and {nothing}"),
                    None => nothing.to_owned(),
                };
            }
            (None, Way::Placed) => "it has no Work there yet",
            (None, Way::ByItself) => "it goes to every cluster by itself, and has no Work there yet",
            (Some(work), _) if work.spec.workload.manifests.first() == Some(&rendered.manifest) => {
                "its Work there holds this"
            }
            (Some(_), _) => "its Work there holds something else; lockgate status says what it waits for",
        };
        standing.to_owned()
    }
}

/// Whether a Work carries this object.
fn carries(work: &Work, id: &TemplateId) -> bool {
    let manifest = work.spec.workload.manifests.first();
    manifest.is_some_and(|manifest| is_same(&TemplateId::of(manifest), id))
}

fn is_namespace(id: &TemplateId) -> bool {
    id.kind == "Namespace" && id.api_version == "v1"
}

impl Shown {
    /// What people read above the manifest, as comments.
    fn notes(&self, subject: &Subject) -> String {
        let mut text = format!("# {} for cluster {}", subject.id, subject.cluster.metadata.name);
        if let Ok(rendered) = &self.explained.result {
            let _ = write!(text, ": {}", subject.standing(rendered, self.way));
        }
        text.push('\n');
        if !self.explained.replicas.is_empty() {
            text.push_str("# replicas are given out:\n");
            changes(&mut text, &self.explained.replicas);
        }
        for step in &self.explained.steps {
            let _ = writeln!(text, "# {}, {}:", step.policy, step.rule);
            changes(&mut text, &step.changes);
            match &step.failed {
                Some(failed) => {
                    let _ = writeln!(text, "#   fails: {failed}");
                }
                None if step.changes.is_empty() => text.push_str("#   changes nothing\n"),
                None => {}
            }
        }
        if self.explained.steps.is_empty() {
            text.push_str("# no override is about it\n");
        }
        if let Ok(rendered) = &self.explained.result {
            for warning in &rendered.warnings {
                let _ = writeln!(text, "# warning: {warning}");
            }
        }
        text
    }

    /// The same for programs.
    fn value(&self, subject: &Subject) -> Value {
        let told = |changes: &[FieldChange]| -> Vec<Value> {
            changes
                .iter()
                .map(|change| json!({"path": change.path, "before": change.before, "after": change.after}))
                .collect()
        };
        let steps: Vec<Value> = self
            .explained
            .steps
            .iter()
            .map(|step| {
                let mut value =
                    json!({"policy": step.policy, "rule": step.rule, "changes": told(&step.changes)});
                if let Some(failed) = &step.failed {
                    value["failed"] = failed.as_str().into();
                }
                value
            })
            .collect();
        let mut value = subject.heading(self.placed);
        value["replicas"] = told(&self.explained.replicas).into();
        value["overrides"] = steps.into();
        match &self.explained.result {
            Ok(rendered) => {
                value["warnings"] = json!(rendered.warnings);
                value["manifest"] = rendered.manifest.clone();
            }
            Err(error) => value["error"] = error.to_string().into(),
        }
        value
    }
}

fn changes(text: &mut String, changes: &[FieldChange]) {
    let shown = |value: &Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(value) => {
            let text = value.to_string();
            match text.char_indices().nth(VALUE) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    };
    for change in changes {
        let path = if change.path.is_empty() { "/" } else { &change.path };
        let _ = writeln!(
            text,
            "#   {path}: {} → {}",
            shown(&change.before),
            shown(&change.after)
        );
    }
}
