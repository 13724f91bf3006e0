//! Writing Clusters: always from the newest form that is known, again after a conflict, and never without a difference.

use lockgate_api::Cluster;
use serde_json::{Value, json};

use super::task::Task;
use crate::link::LinkError;
use crate::resource::Resource;

/// A conflict means that somebody else wrote; more often than this in a row is trouble to be waited out.
const MAX_CONFLICTS: usize = 5;

/// Which part of a Cluster is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Finalizers, zones and taints.
    Main,
    /// The status.
    Status,
}

impl Task {
    /// Changes the Cluster; whether something was written. `change` is called again after a conflict.
    pub(super) async fn write(
        &self,
        part: Part,
        mut change: impl FnMut(&mut Cluster),
    ) -> Result<bool, LinkError> {
        let resource = Resource::clusters();
        let path = match part {
            Part::Main => resource.object("", &self.name),
            Part::Status => resource.status("", &self.name),
        };
        let hub = &self.shared.options.hub;
        let cache = &self.caches.clusters.cache;
        for _ in 0..MAX_CONFLICTS {
            let Some(cached) = cache.find("", &self.name).filter(|cached| cached.uid == self.uid) else {
                return Ok(false);
            };
            let present: Cluster = cached.parse()?;
            let mut next = present.clone();
            change(&mut next);
            if next == present {
                return Ok(false);
            }
            let mut body: Value = cached.parse()?;
            match part {
                Part::Main => {
                    body["metadata"]["finalizers"] = json!(next.metadata.finalizers);
                    body["spec"]["taints"] = json!(next.spec.taints);
                    if next.spec.zones != present.spec.zones {
                        body["spec"]["zones"] = json!(next.spec.zones);
                    }
                }
                Part::Status => {
                    body["status"] = serde_json::to_value(&next.status)
                        .map_err(|e| LinkError::BadAnswer(e.to_string()))?;
                }
            }
            match hub.replace(&path, body.to_string().into_bytes()).await {
                Ok(answer) => {
                    cache.learn(&answer)?;
                    return Ok(true);
                }
                Err(LinkError::Conflict) => match hub.get(&resource.object("", &self.name)).await {
                    Ok(newest) => cache.learn(&newest)?,
                    Err(LinkError::NotFound) => return Ok(false),
                    Err(error) => return Err(error),
                },
                // It went meanwhile; the watch says so too.
                Err(LinkError::NotFound) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Err(LinkError::Conflict)
    }
}
