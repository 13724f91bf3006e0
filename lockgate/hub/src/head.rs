//! Works without their manifests. Most passes look at a Work's marks and status only, and a manifest is by far its largest
//! part: it is skipped without being read.

use lockgate_api::work::{WorkSpec, WorkStatus, Workload};
use lockgate_api::{ObjectMeta, Work};
use lockgate_engine::TemplateId;
use serde::Deserialize;

use crate::cache::Cached;
use crate::state;

/// A Work whose manifests are left out, and what they are copies of.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The Work, with no manifests.
    pub(crate) work: Work,
    /// What the first manifest is a copy of.
    pub(crate) id: Option<TemplateId>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: ObjectMeta,
    spec: WireSpec,
    status: WorkStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpec {
    workload: WireWorkload,
    suspend_dispatching: Option<bool>,
    preserve_resources_on_deletion: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireWorkload {
    manifests: Vec<WireManifest>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireManifest {
    api_version: String,
    kind: String,
    metadata: WireNames,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNames {
    namespace: String,
    name: String,
}

/// Reads a Work without its manifests.
pub(crate) fn head(cached: &Cached) -> Option<Head> {
    let wire: Wire = state::parse(cached)?;
    let id = wire
        .spec
        .workload
        .manifests
        .into_iter()
        .next()
        .map(|manifest| TemplateId {
            api_version: manifest.api_version,
            kind: manifest.kind,
            namespace: manifest.metadata.namespace,
            name: manifest.metadata.name,
        });
    Some(Head {
        work: Work {
            metadata: wire.metadata,
            spec: WorkSpec {
                workload: Workload::default(),
                suspend_dispatching: wire.spec.suspend_dispatching,
                preserve_resources_on_deletion: wire.spec.preserve_resources_on_deletion,
            },
            status: wire.status,
        },
        id,
    })
}
