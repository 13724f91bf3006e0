//! `lockgate suspend` and `lockgate resume`: one resource is held back, and let go, by a RolloutPolicy of its own. The policy
//! that places it is not touched.

mod edit;
mod words;

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use lockgate_api::{Cluster, RolloutPolicy, names};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::skip_kind;
use lockgate_hub::{DeleteOptions, Link, LinkError, Resource};
use serde_json::{Value, json};

use self::edit::Edit;
pub(crate) use self::edit::policy_name;
use self::words::{next, policy_title, still_held, told};
use crate::connect::{Connection, HubArguments};
use crate::exit::Failure;
use crate::status::gather::Question;
use crate::{crds, print};

/// How often a write is tried again when somebody else was faster.
const TRIES: usize = 5;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate suspend deployment/web -n shop --reason \"checking the schema\"\n  \
        lockgate suspend deployment/web -n shop --cluster member2 --cluster member3 --reason \"member1 first\"\n\n\
        Members keep what they have, and nobody mends it there. The Works show what would be sent. Deleting the resource\n\
        is not held back. Asking for the same twice changes nothing.\n\n\
        Exit codes: 1 failure, 2 usage.")]
pub(crate) struct SuspendArguments {
    /// What to hold back, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The namespace [default: the context's]
    #[arg(short, long, value_name = "NS")]
    namespace: Option<String>,
    /// Hold it back from this cluster, beside those from which it is; may be repeated [default: all clusters]
    #[arg(long = "cluster", value_name = "C")]
    clusters: Vec<String>,
    /// Why; it is stored, and shown by `lockgate status` and on the Works
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate resume deployment/web -n shop\n  \
        lockgate resume deployment/web -n shop --cluster member2 --reason \"member1 is well\"\n\n\
        What other policies hold back stays so, and is named.\n\n\
        Exit codes: 1 failure, 2 usage.")]
pub(crate) struct ResumeArguments {
    /// What to let go, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The namespace [default: the context's]
    #[arg(short, long, value_name = "NS")]
    namespace: Option<String>,
    /// Let it go to this cluster; may be repeated [default: all clusters]
    #[arg(long = "cluster", value_name = "C")]
    clusters: Vec<String>,
    /// Why; an event on the resource tells it
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    #[command(flatten)]
    hub: HubArguments,
}

pub(crate) fn reason(text: &str) -> Result<String, String> {
    const LONGEST: usize = 1024;
    match text.trim() {
        "" => Err("say why in a few words".to_owned()),
        text if text.chars().count() > LONGEST => Err(format!("at most {LONGEST} characters")),
        text => Ok(text.to_owned()),
    }
}

/// What somebody asks for.
struct Request<'a> {
    object: &'a [String],
    namespace: Option<&'a str>,
    clusters: &'a [String],
    reason: Option<&'a str>,
    suspend: bool,
}

/// Holds a resource back.
pub(crate) fn suspend(arguments: &SuspendArguments) -> Result<ExitCode, Failure> {
    let request = Request {
        object: &arguments.object,
        namespace: arguments.namespace.as_deref(),
        clusters: &arguments.clusters,
        reason: Some(&arguments.reason),
        suspend: true,
    };
    run(&request, &arguments.hub)
}

/// Lets a resource go.
pub(crate) fn resume(arguments: &ResumeArguments) -> Result<ExitCode, Failure> {
    let request = Request {
        object: &arguments.object,
        namespace: arguments.namespace.as_deref(),
        clusters: &arguments.clusters,
        reason: arguments.reason.as_deref(),
        suspend: false,
    };
    run(&request, &arguments.hub)
}

fn run(request: &Request<'_>, hub: &HubArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(async {
            let hub = hub.connect().await?;
            let text = answer(request, &hub).await?;
            print::out(&text);
            Ok(ExitCode::SUCCESS)
        })
}

/// Does what is asked, and says what came of it.
async fn answer(request: &Request<'_>, hub: &Connection) -> Result<String, Failure> {
    let (id, object) = resource(request, hub).await?;
    let all = clusters(hub).await?;
    check_clusters(request.clusters, &all)?;
    let link = Link::new(hub.client.clone());
    let policies = if id.namespace.is_empty() {
        Resource::cluster_rollout_policies()
    } else {
        Resource::rollout_policies()
    };
    let failed = |error: LinkError| match error {
        LinkError::NotServed => Failure::Other(crds::missing(&hub.url)),
        error => Failure::Other(format!("{} did not take the {}: {error}", hub.url, policies.kind)),
    };
    let path = policies.object(&id.namespace, &policy_name(&id));
    for _ in 0..TRIES {
        let present: Option<RolloutPolicy> = hub.get(&path).await?;
        let edit = if request.suspend {
            edit::suspend(
                present.as_ref(),
                &id,
                request.clusters,
                request.reason.unwrap_or_default(),
            )
        } else {
            edit::resume(present.as_ref(), &id, request.clusters, &all)
        };
        let edit = edit.map_err(Failure::Other)?;
        match write(&link, &policies, &path, &id, present.as_ref(), &edit).await {
            Ok(()) => {}
            Err(LinkError::Conflict | LinkError::AlreadyExists | LinkError::NotFound) => continue,
            Err(error) => return Err(failed(error)),
        }
        if edit != Edit::Nothing {
            tell(&link, &id, &object, request).await;
        }
        let mut text = told(request, &id, present.as_ref(), &edit);
        if !request.suspend {
            text.push_str(&still_held(hub, &id, &object, &edit).await?);
        }
        text.push_str(&next(request, &id));
        return Ok(text);
    }
    Err(Failure::Other(format!(
        "{} keeps being changed by somebody else: try again",
        policy_title(&id)
    )))
}

/// The resource, which must be there.
async fn resource(request: &Request<'_>, hub: &Connection) -> Result<(TemplateId, Value), Failure> {
    let question = Question::parse(request.object, request.namespace, hub).await?;
    let Question::Object {
        kind,
        namespace,
        name,
    } = question
    else {
        return Err(Failure::Usage("say which resource: KIND/NAME".into()));
    };
    if skip_kind(&kind.api_version(), &kind.kind) {
        return Err(Failure::Usage(format!(
            "objects of the kind {} are never sent to members, so that there is nothing to hold back",
            kind.kind
        )));
    }
    let Some(mut object) = hub.get::<Value>(&kind.path(&namespace, &name)).await? else {
        return Err(crate::status::gather::missing(&kind, &namespace, &name));
    };
    let id = TemplateId {
        api_version: kind.api_version(),
        kind: kind.kind,
        namespace,
        name,
    };
    // A custom object says so itself; a built-in one is what was asked for.
    object["apiVersion"] = id.api_version.clone().into();
    object["kind"] = id.kind.clone().into();
    Ok((id, object))
}

/// The hub's clusters; none if they may not be read, which is a matter of rights.
async fn clusters(hub: &Connection) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let each = |cluster: Cluster| names.push(cluster.metadata.name);
    let collection = Resource::clusters().collection("");
    match hub.list(&collection, "", each).await {
        Ok(true) => {}
        Ok(false) => return Err(Failure::Other(crds::missing(&hub.url))),
        Err(Failure::Other(message)) if message.contains("forbidden") => return Ok(Vec::new()),
        Err(error) => return Err(error),
    }
    names.sort();
    Ok(names)
}

/// A slip in a name would hold nothing back, or let nothing go.
fn check_clusters(wanted: &[String], all: &[String]) -> Result<(), Failure> {
    let unknown = wanted.iter().find(|name| !all.contains(name));
    match unknown {
        Some(name) if !all.is_empty() => Err(Failure::Other(format!(
            "there is no cluster {name:?}; there are {}",
            all.join(", ")
        ))),
        _ => Ok(()),
    }
}

async fn write(
    link: &Link,
    policies: &Resource,
    path: &str,
    id: &TemplateId,
    present: Option<&RolloutPolicy>,
    edit: &Edit,
) -> Result<(), LinkError> {
    match (edit, present) {
        (Edit::Write(policy), present) => {
            let mut body = serde_json::to_value(policy).unwrap_or_default();
            body["apiVersion"] = policies.api_version().into();
            body["kind"] = policies.kind.clone().into();
            let body = body.to_string().into_bytes();
            match present {
                Some(_) => link.replace(path, body).await.map(drop),
                None => link
                    .create(&policies.collection(&id.namespace), body)
                    .await
                    .map(drop),
            }
        }
        (Edit::Delete, Some(present)) => {
            let options = DeleteOptions {
                uid: Some(present.metadata.uid.clone()),
                resource_version: Some(present.metadata.resource_version.clone()),
                ..DeleteOptions::default()
            };
            link.delete(path, &options).await
        }
        _ => Ok(()),
    }
}

/// Leaves an event on the resource, so that people see later who asked for what. Somebody who may not write events gets by
/// without.
async fn tell(link: &Link, id: &TemplateId, object: &Value, request: &Request<'_>) {
    let now = Timestamp::now();
    let namespace = if id.namespace.is_empty() {
        "default"
    } else {
        &id.namespace
    };
    let (word, place) = (
        if request.suspend { "Suspended" } else { "Resumed" },
        if request.clusters.is_empty() {
            "all clusters".to_owned()
        } else {
            request.clusters.join(", ")
        },
    );
    let why = request.reason.map(|reason| format!(": {reason}"));
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{}.{:x}", names::binding_name(&id.kind, &id.name), now.as_nanosecond()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": id.api_version, "kind": id.kind, "namespace": id.namespace, "name": id.name,
            "uid": object["metadata"]["uid"],
        },
        "reason": word,
        "message": format!("{word} in {place}{}", why.unwrap_or_default()),
        "type": "Normal",
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": "lockgate"},
    });
    let collection = Resource::events().collection(namespace);
    if let Err(error) = link.create(&collection, event.to_string().into_bytes()).await {
        tracing::debug!(%error, "no event is left");
    }
}
