//! Reads the hub's objects for a report. Only reads, and only what the report is about.

use jiff::Timestamp;
use lockgate_api::{Binding, Cluster, OverridePolicy, PropagationPolicy, RolloutPolicy, Work, keys, names};
use lockgate_engine::TemplateId;
use serde::de::DeserializeOwned;
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
                let mut objects = read_for(hub, namespace.as_deref().unwrap_or_default()).await?;
                let read = read_works(hub, "", "", |work| {
                    objects.counts.entry(work.cluster.clone()).or_default().add(&work);
                    objects.note(work);
                })
                .await;
                allowed(read, &mut objects)?;
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
    let mut objects = read_for(hub, namespace).await?;
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
            let read = read_works(hub, "", &selector, |work| works.push(work)).await;
            allowed(read, &mut objects)?;
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
    read(hub, None).await
}

/// The same, as far as whoever asks may read it: people have rights to a namespace, and to little else. Without a namespace
/// that of the context.
pub(crate) async fn read_for(hub: &Connection, namespace: &str) -> Result<Objects, Failure> {
    let namespace = if namespace.is_empty() {
        &hub.namespace
    } else {
        namespace
    };
    read(hub, Some(namespace)).await
}

async fn read(hub: &Connection, namespace: Option<&str>) -> Result<Objects, Failure> {
    let mut reading = Reading {
        hub,
        namespace,
        only_in: None,
        unseen: Vec::new(),
    };
    let mut objects = Objects::default();
    let policies = &mut objects.policies;
    for plural in ["propagationpolicies", "clusterpropagationpolicies"] {
        let each = |policy: PropagationPolicy| policies.push(policy);
        served(hub, reading.list(POLICY, plural, each).await?)?;
    }
    let waits = |policy: &PropagationPolicy| !policy.spec.dependent_overrides.is_empty();
    if policies.iter().any(waits) {
        let overrides = &mut objects.overrides;
        for plural in ["overridepolicies", "clusteroverridepolicies"] {
            let each = |policy: OverridePolicy| {
                overrides.insert((policy.metadata.namespace, policy.metadata.name));
            };
            reading.list(POLICY, plural, each).await?;
        }
    }
    let rollouts = &mut objects.rollouts;
    for plural in ["rolloutpolicies", "clusterrolloutpolicies"] {
        // A hub whose definitions are older has none.
        let each = |policy: RolloutPolicy| rollouts.push(policy);
        reading.list(POLICY, plural, each).await?;
    }
    let bindings = &mut objects.bindings;
    for plural in ["resourcebindings", "clusterresourcebindings"] {
        let each = |binding: Binding| bindings.push(binding);
        served(hub, reading.list(BINDING, plural, each).await?)?;
    }
    let clusters = &mut objects.clusters;
    let each = |cluster: Cluster| clusters.push(cluster);
    served(hub, reading.list(CLUSTER, "clusters", each).await?)?;
    (objects.only_in, objects.unseen) = (reading.only_in, reading.unseen);
    let lease = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases/lockgate-controller",
        keys::SYSTEM_NAMESPACE
    );
    // A person who may not read leases still gets a report.
    let lease: Option<Value> = hub.get(&lease).await.unwrap_or_default();
    objects.lease = lease.map(|lease| (lease, Timestamp::now()));
    Ok(objects)
}

/// The kinds without which nothing can be said of a namespace. Of what else may not be read, it is said that it is left out.
const NEEDED: [&str; 2] = ["propagationpolicies", "resourcebindings"];

/// Lists as much as somebody may see.
struct Reading<'a> {
    hub: &'a Connection,
    /// What is read if not all may be; without one, all must be.
    namespace: Option<&'a str>,
    only_in: Option<String>,
    unseen: Vec<&'static str>,
}

impl Reading<'_> {
    /// Lists a kind everywhere, else in the namespace, else not at all. Whether it is served.
    async fn list<T: DeserializeOwned>(
        &mut self,
        base: &str,
        plural: &'static str,
        mut each: impl FnMut(T),
    ) -> Result<bool, Failure> {
        let everywhere = format!("{base}/{plural}");
        let (refused, namespace) = match (self.hub.list(&everywhere, "", &mut each).await, self.namespace) {
            (Err(refused @ Failure::Forbidden(_)), Some(namespace)) => (refused, namespace),
            (other, _) => return other,
        };
        if !plural.starts_with("cluster") {
            let inside = format!("{base}/namespaces/{namespace}/{plural}");
            match self.hub.list(&inside, "", each).await {
                Err(Failure::Forbidden(_)) if NEEDED.contains(&plural) => return Err(refused),
                Err(Failure::Forbidden(_)) => {}
                other => {
                    self.only_in = Some(namespace.to_owned());
                    return other;
                }
            }
        }
        self.unseen.push(plural);
        Ok(true)
    }
}

/// Works are for nobody but administrators: without them a report is made from the bindings.
fn allowed(read: Result<(), Failure>, objects: &mut Objects) -> Result<(), Failure> {
    match read {
        Err(Failure::Forbidden(_)) => objects.unseen.push("works"),
        other => other?,
    }
    Ok(())
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

#[cfg(test)]
mod tests;
