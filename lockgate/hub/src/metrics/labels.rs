//! The labels of metrics, spelled as those who read them expect.

use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByResult {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByCluster {
    pub(super) member_cluster: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByQueue {
    pub(super) name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByStep {
    pub(super) schedule_step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByEvent {
    pub(super) event: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Attempt {
    pub(super) result: &'static str,
    pub(super) schedule_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Creation {
    pub(super) result: &'static str,
    pub(super) apiversion: String,
    pub(super) kind: String,
    pub(super) member_cluster: String,
    pub(super) recreate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(non_snake_case, reason = "labels are spelled as those who read them expect")]
pub(super) struct Update {
    pub(super) result: &'static str,
    pub(super) apiversion: String,
    pub(super) kind: String,
    pub(super) member_cluster: String,
    pub(super) operationResult: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Deletion {
    pub(super) result: &'static str,
    pub(super) apiversion: String,
    pub(super) kind: String,
    pub(super) member_cluster: String,
}
