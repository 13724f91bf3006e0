//! Whether a Work that is being deleted takes the member's object with it.
//!
//! A member's object is deleted only if its template is gone or going by the server's own word, if the gate released the
//! removal, or if an unjoin was told to. A Work that somebody deleted by hand is made again and the member is not touched.

use lockgate_api::{Binding, Work, keys};
use lockgate_engine::TemplateId;
use lockgate_engine::gate::Removal;

use super::dispatching::SendError;
use crate::state::{self, State};
use crate::template::{self, Presence};

/// What happens to the member's object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It is deleted, or kept without our marks where the Work says so.
    Remove,
    /// It is kept without our marks: the cluster leaves.
    Keep,
    /// It is not touched: the Work will be made again.
    Untouched,
    /// Nobody can tell yet.
    NotYet(String),
}

/// What happens to the member's object when its Work goes.
pub(crate) async fn due(state: &State, cluster: &str, work: &Work) -> Result<Due, SendError> {
    match state.cluster(cluster) {
        None => return Ok(Due::Untouched),
        Some(cluster) if cluster.metadata.deleting() => {
            let delete = cluster.metadata.annotation(keys::UNJOIN_WORKLOADS) == Some("delete");
            return Ok(if delete { Due::Remove } else { Due::Keep });
        }
        Some(_) => {}
    }
    let Some(manifest) = work.spec.workload.manifests.first() else {
        return Ok(Due::Untouched);
    };
    let id = TemplateId::of(manifest);
    let (cache, _) = state.bindings(&id.namespace);
    let binding: Option<Binding> = state::binding(cache, &template::binding_key(&id))
        .filter(|binding| template::is_for(binding, &id) && !binding.metadata.deleting());
    if let Some(binding) = binding {
        if template::targets(&binding).contains(cluster) {
            return Ok(Due::Untouched);
        }
        return Ok(match template::removal(state, &id, &binding) {
            Removal::Remove => Due::Remove,
            Removal::Hold => Due::Untouched,
            Removal::WaitFor(clusters) => Due::NotYet(format!(
                "removal waits until {} has its copy",
                clusters.join(", ")
            )),
        });
    }
    match template::presence(state, &id).await.map_err(SendError::Hub)? {
        Presence::Gone => Ok(Due::Remove),
        Presence::There { .. } => Ok(Due::Untouched),
        Presence::Unknown => Ok(Due::NotYet(format!(
            "nobody can tell whether {id} is gone: its kind is not served"
        ))),
    }
}
