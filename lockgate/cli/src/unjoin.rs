//! `lockgate unjoin`: lets a cluster leave, and says what becomes of its objects. There is no default for that.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lockgate_api::{Binding, Cluster, Condition, keys, names};
use lockgate_engine::TemplateId;
use lockgate_hub::clusters::rights;
use lockgate_hub::{DeleteOptions, Link, LinkError, Resource};
use serde_json::{Value, json};

use crate::connect::HubArguments;
use crate::exit::Failure;
use crate::join::{LOOK_EVERY, Progress};
use crate::{crds, print};

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 1 failure, also if the cluster has not left in time; 2 usage.")]
pub(crate) struct UnjoinArguments {
    /// The cluster's name on the hub
    #[arg(value_name = "NAME")]
    name: String,
    /// What becomes of the objects that were sent there
    #[arg(long, value_enum)]
    workloads: Workloads,
    /// How long to wait until the cluster has left, in seconds; 0 does not wait
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    #[command(flatten)]
    hub: HubArguments,
}

/// What becomes of a leaving member's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workloads {
    /// They stay in the member and run on
    Keep,
    /// They are deleted from the member
    Delete,
}

impl Workloads {
    fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Delete => "delete",
        }
    }
}

/// Asks the cluster to leave, and waits until it has.
pub(crate) fn run(arguments: &UnjoinArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(async {
            let hub = arguments.hub.connect().await?;
            let link = Link::new(hub.client.clone());
            let patience = Duration::from_secs(arguments.timeout);
            let text = unjoin(&link, &hub.url, &arguments.name, arguments.workloads, patience).await?;
            print::out(&text);
            Ok(ExitCode::SUCCESS)
        })
}

/// What to tell when the cluster has left, or was asked to.
async fn unjoin(
    link: &Link,
    url: &str,
    name: &str,
    workloads: Workloads,
    patience: Duration,
) -> Result<String, Failure> {
    let failed =
        |doing: &str, error: LinkError| Failure::Other(format!("failed to {doing} at {url}: {error}"));
    let path = Resource::clusters().object("", name);
    let cluster = match read(link, &path).await {
        Ok(Some(cluster)) => cluster,
        Ok(None) => return Err(not_there(link, name).await),
        Err(LinkError::NotServed) => return Err(Failure::Other(crds::missing(url))),
        Err(error) => return Err(failed(&format!("read Cluster {name}"), error)),
    };
    let patch = json!({"metadata": {
        "uid": cluster.metadata.uid, "annotations": {keys::UNJOIN_WORKLOADS: workloads.word()},
    }});
    link.merge_patch(&path, patch.to_string().into_bytes())
        .await
        .map_err(|error| failed(&format!("annotate Cluster {name}"), error))?;
    let options = DeleteOptions {
        uid: Some(cluster.metadata.uid.clone()),
        ..DeleteOptions::default()
    };
    match link.delete(&path, &options).await {
        Ok(()) | Err(LinkError::NotFound) => {}
        Err(error) => return Err(failed(&format!("delete Cluster {name}"), error)),
    }
    if patience.is_zero() {
        return Ok(format!(
            "{name} was asked to leave.\n\nNext:\n\n  kubectl get cluster {name}\n"
        ));
    }
    wait_gone(link, name, &cluster.metadata.uid, workloads, patience).await?;
    Ok(remains(name, workloads))
}

async fn wait_gone(
    link: &Link,
    name: &str,
    uid: &str,
    workloads: Workloads,
    patience: Duration,
) -> Result<(), Failure> {
    let progress = Progress::new();
    let path = Resource::clusters().object("", name);
    let begun = tokio::time::Instant::now();
    loop {
        let cluster = read(link, &path)
            .await
            .map_err(|error| Failure::Other(format!("failed to read Cluster {name}: {error}")))?;
        let Some(cluster) = cluster.filter(|cluster| cluster.metadata.uid == uid) else {
            progress.clear();
            return Ok(());
        };
        let left = works_left(link, name).await;
        let ready = Condition::find(&cluster.status.conditions, lockgate_engine::cluster::READY);
        let what = state(left, ready);
        if begun.elapsed() >= patience {
            progress.clear();
            let what = match why_left(link, name).await.as_slice() {
                [] => what,
                left => format!("{what}: {}", tell(left)),
            };
            let hint = match (workloads, ready) {
                (Workloads::Delete, Some(ready)) if !ready.is_true() => {
                    format!("; to leave its objects there: lockgate unjoin {name} --workloads keep")
                }
                _ => "; it leaves as soon as that is done, if `lockgate controller` runs".to_owned(),
            };
            return Err(Failure::Other(format!(
                "{name} has not left after {} s: {what}{hint}",
                patience.as_secs()
            )));
        }
        progress.show(&format!("{name} leaves: {what}"));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn state(left: Option<u64>, ready: Option<&Condition>) -> String {
    let works = match left {
        Some(1) => "1 Work is left".to_owned(),
        Some(left) => format!("{left} Works are left"),
        None => "its Works cannot be counted".to_owned(),
    };
    match ready {
        Some(ready) if !ready.is_true() => format!("{works}, and {}", ready.message),
        _ => works,
    }
}

/// How many Works there are, if the hub tells.
async fn works_left(link: &Link, name: &str) -> Option<u64> {
    let collection = Resource::works().collection(&names::execution_namespace(name));
    let body = link.get(&format!("{collection}?limit=1")).await.ok()?;
    let page: Value = serde_json::from_slice(&body).ok()?;
    let shown = page["items"].as_array().map_or(0, Vec::len) as u64;
    Some(shown + page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0))
}

/// What a Work that is left is about, and why it is, if its binding says so.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    what: String,
    why: Option<String>,
}

/// What is left of a cluster's Works, some of it. What cannot be read is not told: it is more than was asked for.
async fn why_left(link: &Link, name: &str) -> Vec<Left> {
    const READ: usize = 20;
    let collection = Resource::works().collection(&names::execution_namespace(name));
    let page = link.get(&format!("{collection}?limit={READ}")).await.ok();
    let page: Value = page
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    let mut left = Vec::new();
    for work in page["items"].as_array().into_iter().flatten() {
        let manifest = &work["spec"]["workload"]["manifests"][0];
        if manifest.is_null() {
            let name = work["metadata"]["name"].as_str().unwrap_or_default();
            left.push(Left {
                what: format!("Work {name}"),
                why: None,
            });
            continue;
        }
        let id = TemplateId::of(manifest);
        let resource = match id.namespace.as_str() {
            "" => Resource::cluster_resource_bindings(),
            _ => Resource::resource_bindings(),
        };
        let path = resource.object(&id.namespace, &names::binding_name(&id.kind, &id.name));
        let binding = link.get(&path).await.ok();
        let binding: Option<Binding> = binding.and_then(|body| serde_json::from_slice(&body).ok());
        left.push(Left {
            what: id.to_string(),
            why: binding.as_ref().and_then(stays),
        });
    }
    left
}

/// Why copies of a binding stay where they should go from.
fn stays(binding: &Binding) -> Option<String> {
    let removed = Condition::find(&binding.status.conditions, "Removed")?;
    (!removed.is_true()).then(|| removed.message.clone())
}

/// Some of what is left, what has a reason first.
fn tell(left: &[Left]) -> String {
    const TOLD: usize = 3;
    let with = left.iter().filter(|one| one.why.is_some());
    let without = left.iter().filter(|one| one.why.is_none());
    let told: Vec<String> = with
        .chain(without)
        .take(TOLD)
        .map(|one| match &one.why {
            Some(why) => format!("{} ({why})", one.what),
            None => one.what.clone(),
        })
        .collect();
    let more = if left.len() > TOLD { ", …" } else { "" };
    format!("{}{more}", told.join(", "))
}

/// What is left when a cluster has left, and how to remove it.
fn remains(name: &str, workloads: Workloads) -> String {
    let objects = match workloads {
        Workloads::Keep => {
            "The objects that were sent there stay and run on. If the member did not answer, they still carry the labels \
             of the control plane, which do nothing by themselves."
        }
        Workloads::Delete => "The objects that were sent there are deleted.",
    };
    let (namespace, account, role) = (
        rights::MEMBER_NAMESPACE,
        rights::account_name(name),
        rights::role_name(name),
    );
    let secret = rights::token_secret_name(name);
    format!(
        "{name} has left.\n\n{objects}\n\nThe account of the control plane remains in the member. To remove it, there:\n\n  \
         kubectl delete --ignore-not-found clusterrolebinding {role}\n  \
         kubectl delete --ignore-not-found clusterrole {role}\n  \
         kubectl delete --ignore-not-found -n {namespace} secret {secret}\n  \
         kubectl delete --ignore-not-found -n {namespace} serviceaccount {account}\n"
    )
}

async fn read(link: &Link, path: &str) -> Result<Option<Cluster>, LinkError> {
    match link.get(path).await {
        Ok(body) => serde_json::from_slice(&body)
            .map(Some)
            .map_err(|error| LinkError::BadAnswer(error.to_string())),
        Err(LinkError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A cluster that is not there is answered with those that are.
async fn not_there(link: &Link, name: &str) -> Failure {
    const SHOWN: usize = 10;
    let list = link
        .get(&format!(
            "{}?limit={}",
            Resource::clusters().collection(""),
            SHOWN + 1
        ))
        .await;
    let list: Value = list
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    let mut all: Vec<&str> = list["items"]
        .as_array()
        .map(|items| {
            items
                .iter()
                .filter_map(|item| item["metadata"]["name"].as_str())
                .collect()
        })
        .unwrap_or_default();
    let more = if all.len() > SHOWN { ", …" } else { "" };
    all.truncate(SHOWN);
    let those = if all.is_empty() {
        "no cluster has joined".to_owned()
    } else {
        format!("there are {}{more}", all.join(", "))
    };
    Failure::Other(format!("there is no cluster {name:?}; {those}"))
}

#[cfg(test)]
mod tests;
