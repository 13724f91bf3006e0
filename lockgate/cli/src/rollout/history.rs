//! `lockgate rollout history`: the revisions that one can go back to.

use std::process::ExitCode;

use clap::Args;
use lockgate_api::{ObjectMeta, keys};
use lockgate_engine::gate::record::RolloutRecord;
use lockgate_engine::gate::revision::Revision;
use lockgate_hub::{Link, Resource, policy_history_id};
use serde::Deserialize;
use serde_json::Value;

use super::command::{Found, ObjectArguments, argument, unreadable};
use super::holder::is_policy;
use crate::exit::Failure;
use crate::print::{self, Cell, Paint, Table, Tone};

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 1 failure, 2 usage.")]
pub(crate) struct HistoryArguments {
    #[command(flatten)]
    of: ObjectArguments,
    /// Tables without their first line
    #[arg(long)]
    no_headers: bool,
}

/// A revision that is kept.
pub(crate) struct Kept {
    /// Its number.
    pub(crate) number: i64,
    /// What every cluster gets in it, in one word.
    pub(crate) digest: String,
    /// Whether somebody gave it up, or too many clusters failed with it.
    pub(crate) given_up: bool,
    since: String,
    /// What it holds, unless that is secret.
    revision: Option<Revision>,
}

#[derive(Deserialize)]
struct Listed {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Value,
}

/// Prints the revisions of a resource.
pub(crate) fn run(arguments: &HistoryArguments) -> Result<ExitCode, Failure> {
    super::tree::block_on(async {
        let found = Found::read(&arguments.of).await?;
        let revisions = revisions(&found).await?;
        let record = RolloutRecord::of(found.holder.metadata()).unwrap_or_default();
        print::out(&show(
            &found,
            &revisions,
            &record,
            !arguments.no_headers,
            Paint::stdout(),
        ));
        Ok(ExitCode::SUCCESS)
    })
}

/// The revisions of a resource, the newest first.
pub(crate) async fn revisions(found: &Found) -> Result<Vec<Kept>, Failure> {
    let secret = found.id.kind == "Secret" && found.id.api_version == "v1";
    let resource = if secret {
        Resource::secrets()
    } else {
        Resource::controller_revisions()
    };
    let label = if found.id.namespace.is_empty() {
        keys::CRB_ID
    } else {
        keys::RB_ID
    };
    let history = policy_history_id(&found.id.namespace, &found.id.name);
    let id = if is_policy(&found.id) {
        &history
    } else {
        found.holder.metadata().label(label).unwrap_or_default()
    };
    let path = format!(
        "{}?labelSelector={label}%3D{id}",
        resource.collection(keys::SYSTEM_NAMESPACE)
    );
    let link = Link::new(found.hub.client.clone());
    let body = link
        .get(&path)
        .await
        .map_err(|error| unreadable(&found.hub, "revisions", &error))?;
    let listed: Listed = serde_json::from_slice(&body)
        .map_err(|error| Failure::Other(format!("the list of revisions cannot be read: {error}")))?;
    let mut kept: Vec<Kept> = listed
        .items
        .into_iter()
        .filter_map(|item| {
            Some(Kept {
                number: item.metadata.annotation(keys::REVISION)?.parse().ok()?,
                digest: item.metadata.annotation(keys::REVISION_DIGEST)?.to_owned(),
                given_up: item.metadata.annotation(keys::REVISION_GIVEN_UP).is_some(),
                since: item.metadata.creation_timestamp.clone().unwrap_or_default(),
                revision: (!secret)
                    .then(|| serde_json::from_value(item.data).ok())
                    .flatten(),
            })
        })
        .collect();
    kept.sort_by_key(|kept| std::cmp::Reverse(kept.number));
    Ok(kept)
}

fn show(found: &Found, revisions: &[Kept], record: &RolloutRecord, headers: bool, paint: Paint) -> String {
    if revisions.is_empty() {
        return format!("{} has no revisions: it follows no strategy\n", found.id);
    }
    let mut table = Table::new(&["REVISION", "STATE", "CLUSTERS", "IMAGES", "FIRST SEEN"]);
    for kept in revisions {
        let state = if kept.digest == record.digest {
            if record.is_settled() {
                ("current, good", Tone::Good)
            } else {
                ("current", Tone::Warn)
            }
        } else if record
            .good
            .as_ref()
            .is_some_and(|good| good.digest == kept.digest)
        {
            ("last good", Tone::Good)
        } else if kept.given_up || record.back.as_ref().is_some_and(|back| back.from == kept.number) {
            ("given up", Tone::Bad)
        } else {
            ("", Tone::Plain)
        };
        let clusters = kept
            .revision
            .as_ref()
            .map_or_else(|| "?".to_owned(), |revision| revision.clusters.len().to_string());
        let images = kept.revision.as_ref().map(images).unwrap_or_default();
        table.row(vec![
            kept.number.to_string().into(),
            Cell::new(state.0, state.1),
            clusters.into(),
            images.into(),
            kept.since.clone().into(),
        ]);
    }
    format!(
        "{}\nNext: lockgate rollout undo {} --to-revision N --reason TEXT\n",
        table.render(paint, headers),
        argument(&found.id)
    )
}

/// The images of a workload, which is what most revisions differ in.
fn images(revision: &Revision) -> String {
    let containers = revision.template.pointer("/spec/template/spec/containers");
    let names: Vec<&str> = containers
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|container| container["image"].as_str())
        .collect();
    names.join(", ")
}
