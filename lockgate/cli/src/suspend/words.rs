//! What `suspend` and `resume` say.

use std::sync::Arc;

use lockgate_api::{Binding, RolloutPolicy, names};
use lockgate_engine::TemplateId;
use lockgate_engine::gate::{self, Holds, ReleaseInput, RolloutIndex};
use lockgate_hub::Resource;
use serde_json::Value;

use super::Request;
use super::edit::{Edit, policy_name};
use crate::connect::Connection;
use crate::exit::Failure;
use crate::print;
use crate::status::judge::targets;

/// What happened, in a sentence or two.
pub(super) fn told(
    request: &Request<'_>,
    id: &TemplateId,
    present: Option<&RolloutPolicy>,
    edit: &Edit,
) -> String {
    let policy = policy_title(id);
    let extent = |policy: &RolloutPolicy| {
        let suspension = policy.spec.suspension.as_ref();
        suspension.map(gate::extent).unwrap_or_default()
    };
    match (request.suspend, edit) {
        (true, Edit::Write(written)) => format!(
            "{id} is suspended in {} by {policy}.\nMembers keep what they have; the Works show what would be sent.\n",
            extent(written)
        ),
        (true, _) => format!(
            "{id} was suspended in {} already, for that reason: nothing to do.\n",
            present.map(extent).unwrap_or_default()
        ),
        (false, Edit::Delete) => format!("{id} is resumed: {policy} is deleted.\n"),
        (false, Edit::Write(written)) if written.spec.suspension.is_none() => {
            format!("{id} is resumed: {policy} holds nothing back any more, and keeps its strategy.\n")
        }
        (false, Edit::Write(written)) => {
            let mut text = format!(
                "{id} is resumed in {}, and stays suspended in {} by {policy}.\n",
                request.clusters.join(", "),
                extent(written)
            );
            let widest = present.and_then(|present| present.spec.suspension.as_ref());
            if widest.is_some_and(gate::is_everywhere) {
                text.push_str("It was suspended in all clusters; a cluster that joins from now on is not among these.\n");
            }
            text
        }
        (false, Edit::Nothing) if present.is_none() => {
            format!("there is no {policy}, so that it holds nothing back: nothing to do.\n")
        }
        (false, Edit::Nothing) => format!(
            "{policy} holds {id} back in {} only: nothing to do.\n",
            present.map(extent).unwrap_or_default()
        ),
    }
}

/// `RolloutPolicy shop/web-deployment`.
pub(super) fn policy_title(id: &TemplateId) -> String {
    let name = policy_name(id);
    match id.namespace.as_str() {
        "" => format!("ClusterRolloutPolicy {name}"),
        namespace => format!("RolloutPolicy {namespace}/{name}"),
    }
}

/// Who else holds a resource back, where it goes.
pub(super) async fn still_held(
    hub: &Connection,
    id: &TemplateId,
    object: &Value,
    edit: &Edit,
) -> Result<String, Failure> {
    let bindings = if id.namespace.is_empty() {
        Resource::cluster_resource_bindings()
    } else {
        Resource::resource_bindings()
    };
    let path = bindings.object(&id.namespace, &names::binding_name(&id.kind, &id.name));
    let Some(binding) = hub.get::<Binding>(&path).await? else {
        return Ok(String::new());
    };
    let mut index = RolloutIndex::default();
    let own = (id.namespace.as_str(), policy_name(id));
    for resource in [Resource::rollout_policies(), Resource::cluster_rollout_policies()] {
        let namespace = if resource.namespaced { &id.namespace } else { "" };
        if resource.namespaced && namespace.is_empty() {
            continue;
        }
        let each = |policy: RolloutPolicy| {
            if (policy.metadata.namespace.as_str(), &policy.metadata.name) != (own.0, &own.1) {
                index.insert(Arc::new(policy));
            }
        };
        hub.list(&resource.collection(namespace), "", each).await?;
    }
    if let Edit::Write(policy) = edit {
        index.insert(Arc::new(policy.as_ref().clone()));
    }
    let rollouts = index.about(object);
    let holds = Holds::of(&ReleaseInput {
        spec: &binding.spec,
        rollouts: &rollouts,
        referrers: &[],
    });
    let mut table = print::Table::new(&["STILL HELD BACK", "BY"]);
    let mut any = false;
    for cluster in targets(&binding).into_keys() {
        let held = holds.on(&cluster);
        if !held.is_empty() {
            any = true;
            let by: Vec<String> = held.iter().map(ToString::to_string).collect();
            table.row(vec![cluster.into(), by.join("; ").into()]);
        }
    }
    if !any {
        return Ok(String::new());
    }
    Ok(format!("\n{}", table.render(print::Paint::stdout(), true)))
}

pub(super) fn next(request: &Request<'_>, id: &TemplateId) -> String {
    let scope = match id.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let object = format!("{}/{}{scope}", id.kind.to_lowercase(), id.name);
    if request.suspend {
        format!("\nNext: lockgate status {object}\nThen: lockgate resume {object}\n")
    } else {
        format!("\nNext: lockgate status {object}\n")
    }
}
