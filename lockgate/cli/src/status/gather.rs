//! Reads the hub's objects for a report. Only reads, and only what the report is about.

use jiff::Timestamp;
use lockgate_api::{Binding, Cluster, PropagationPolicy, RolloutPolicy, Work, keys, names};
use lockgate_engine::TemplateId;
use serde_json::Value;

use crate::connect::Connection;
use crate::exit::Failure;
use crate::status::kinds::{self, Kind};
use crate::status::objects::{Objects, WorkView};
use crate::status::report::Report;
use crate::status::{fleet, template};

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1";
const WORK: &str = "/apis/work.karmada.io/v1alpha1";
const BINDING: &str = "/apis/work.karmada.io/v1alpha2";
const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1";

/// What somebody wants to know.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// The whole hub, or one namespace of it.
    Fleet { namespace: Option<String> },
    /// One object.
    Object {
        kind: Kind,
        namespace: String,
        name: String,
    },
}

impl Question {
    /// Understands `KIND/NAME` or `KIND NAME`.
    pub(crate) async fn parse(
        words: &[String],
        namespace: Option<&str>,
        hub: &Connection,
    ) -> Result<Self, Failure> {
        let (kind, name) = match words {
            [] => {
                let namespace = namespace.map(str::to_owned);
                return Ok(Self::Fleet { namespace });
            }
            [word] => word
                .split_once('/')
                .ok_or_else(|| Failure::Usage(format!("say which one: KIND/NAME, as in {word}/web")))?,
            [kind, name, ..] => (kind.as_str(), name.as_str()),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(Failure::Usage(format!(
                "{kind}/{name} is not of the form KIND/NAME"
            )));
        }
        let served = kinds::served(hub).await?;
        let kind = kinds::resolve(&served, kind).map_err(Failure::Usage)?.clone();
        let namespace = match kind.namespaced {
            true => namespace.unwrap_or(&hub.namespace).to_owned(),
            false => String::new(),
        };
        let name = name.to_owned();
        Ok(Self::Object {
            kind,
            namespace,
            name,
        })
    }

    /// Reads what is needed, and reports.
    pub(crate) async fn answer(&self, hub: &Connection) -> Result<Report, Failure> {
        match self {
            Self::Fleet { namespace } => {
                let mut objects = read_all(hub).await?;
                read_works(hub, "", "", |work| {
                    objects.counts.entry(work.cluster.clone()).or_default().add(&work);
                    objects.note_held(work);
                })
                .await?;
                Ok(Report::Fleet(fleet::fleet(namespace.as_deref(), &objects)))
            }
            Self::Object {
                kind,
                namespace,
                name,
            } => object(hub, kind, namespace, name).await,
        }
    }
}

async fn object(hub: &Connection, kind: &Kind, namespace: &str, name: &str) -> Result<Report, Failure> {
    let mut objects = read_all(hub).await?;
    let own = |metadata: &lockgate_api::ObjectMeta| metadata.name == name && metadata.namespace == namespace;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("policy.karmada.io", "PropagationPolicy" | "ClusterPropagationPolicy") => {
            let policy = objects.policies.iter().find(|policy| own(&policy.metadata));
            let policy = policy.ok_or_else(|| missing(kind, namespace, name))?;
            Ok(Report::Policy(fleet::policy(policy, &objects)))
        }
        ("cluster.karmada.io", "Cluster") => {
            let works = &mut objects.works;
            read_works(hub, &names::execution_namespace(name), "", |work| {
                works.push(work)
            })
            .await?;
            objects.counts = fleet::count(objects.works.iter());
            let cluster = objects
                .cluster(name)
                .ok_or_else(|| missing(kind, namespace, name))?;
            Ok(Report::Cluster(fleet::cluster(cluster, &objects)))
        }
        _ => {
            let id = TemplateId {
                api_version: kind.api_version(),
                kind: kind.kind.clone(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            let selector = format!(
                "&fieldSelector=metadata.name%3D{}",
                names::work_name(&id.kind, &id.namespace, &id.name)
            );
            let works = &mut objects.works;
            read_works(hub, "", &selector, |work| works.push(work)).await?;
            let mut template: Option<Value> = hub.get(&kind.path(namespace, name)).await?;
            if let Some(template) = &mut template {
                // A custom object says so itself; a built-in one is what was asked for.
                template["apiVersion"] = id.api_version.clone().into();
                template["kind"] = id.kind.clone().into();
            }
            let report = template::template(&id, template.as_ref(), &objects);
            if template.is_none() && report.binding.is_none() && report.clusters.is_empty() {
                return Err(missing(kind, namespace, name));
            }
            Ok(Report::Template(report))
        }
    }
}

pub(crate) fn missing(kind: &Kind, namespace: &str, name: &str) -> Failure {
    let place = if kind.namespaced {
        format!(" in the namespace {namespace}; name another with -n")
    } else {
        String::new()
    };
    Failure::Other(format!("there is no {} {name:?}{place}", kind.kind))
}

/// Policies, bindings, clusters and the lease.
pub(crate) async fn read_all(hub: &Connection) -> Result<Objects, Failure> {
    let mut objects = Objects::default();
    let (mut policies, mut bindings, mut clusters) = (Vec::new(), Vec::new(), Vec::new());
    for plural in ["propagationpolicies", "clusterpropagationpolicies"] {
        let each = |policy: PropagationPolicy| policies.push(policy);
        served(hub, hub.list(&format!("{POLICY}/{plural}"), "", each).await?)?;
    }
    let mut rollouts = Vec::new();
    for plural in ["rolloutpolicies", "clusterrolloutpolicies"] {
        // A hub whose definitions are older has none.
        let each = |policy: RolloutPolicy| rollouts.push(policy);
        hub.list(&format!("{POLICY}/{plural}"), "", each).await?;
    }
    for plural in ["resourcebindings", "clusterresourcebindings"] {
        let each = |binding: Binding| bindings.push(binding);
        served(hub, hub.list(&format!("{BINDING}/{plural}"), "", each).await?)?;
    }
    let each = |cluster: Cluster| clusters.push(cluster);
    served(hub, hub.list(&format!("{CLUSTER}/clusters"), "", each).await?)?;
    objects.policies = policies;
    objects.bindings = bindings;
    objects.rollouts = rollouts;
    objects.clusters = clusters;
    let lease = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases/lockgate-controller",
        keys::SYSTEM_NAMESPACE
    );
    // A person who may not read leases still gets a report.
    let lease: Option<Value> = hub.get(&lease).await.unwrap_or_default();
    objects.lease = lease.map(|lease| (lease, Timestamp::now()));
    Ok(objects)
}

/// A hub without our kinds is told how to get them.
fn served(hub: &Connection, served: bool) -> Result<(), Failure> {
    if served {
        return Ok(());
    }
    Err(Failure::Other(crate::crds::missing(&hub.url)))
}

async fn read_works(
    hub: &Connection,
    namespace: &str,
    query: &str,
    mut each: impl FnMut(WorkView),
) -> Result<(), Failure> {
    let collection = match namespace {
        "" => format!("{WORK}/works"),
        namespace => format!("{WORK}/namespaces/{namespace}/works"),
    };
    let reduce = |work: Work| WorkView::of(work).into_iter().for_each(&mut each);
    served(hub, hub.list(&collection, query, reduce).await?)
}
