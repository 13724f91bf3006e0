//! Cluster: a member, how to reach it, and how it is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::meta::{Condition, ObjectMeta};

/// The highest amount that a model may name, which stands for no limit.
pub(crate) const NO_LIMIT: &str = "9223372036854775807";
/// Where the grades of nodes begin and end, if nobody says otherwise: CPUs and memory.
const GRADES: [(&str, &str); 10] = [
    ("0", "0"),
    ("1", "4Gi"),
    ("2", "16Gi"),
    ("4", "32Gi"),
    ("8", "64Gi"),
    ("16", "128Gi"),
    ("32", "256Gi"),
    ("64", "512Gi"),
    ("128", "1Ti"),
    (NO_LIMIT, NO_LIMIT),
];

/// `spec.resourceModels` of a Cluster of which nobody has said otherwise.
pub fn usual_models() -> Vec<Value> {
    let grades = GRADES.windows(2).enumerate();
    grades
        .map(|(grade, limits)| {
            json!({
                "grade": grade,
                "ranges": [
                    {"name": "cpu", "min": limits[0].0, "max": limits[1].0},
                    {"name": "memory", "min": limits[0].1, "max": limits[1].1},
                ],
            })
        })
        .collect()
}

/// A member cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// How to reach it, and what it is like.
    pub spec: ClusterSpec,
    /// How it is.
    #[serde(skip_serializing_if = "ClusterStatus::is_empty")]
    pub status: ClusterStatus,
}

/// How to reach a member, and what it is like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// The uid of its `kube-system` namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// `Push` or `Pull`.
    pub sync_mode: String,
    /// Its URL.
    #[serde(skip_serializing_if = "String::is_empty", rename = "apiEndpoint")]
    pub api_endpoint: String,
    /// The Secret with `token` and `caBundle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// The Secret with a token that may impersonate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonator_secret_ref: Option<SecretReference>,
    /// Whether its certificate is not checked.
    #[serde(
        skip_serializing_if = "crate::policy::is_false",
        rename = "insecureSkipTLSVerification"
    )]
    pub insecure_skip_tls_verification: bool,
    /// A proxy on the way to it.
    #[serde(skip_serializing_if = "String::is_empty", rename = "proxyURL")]
    pub proxy_url: String,
    /// Headers for the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_header: Option<Value>,
    /// Who runs it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The older form of `zones`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Its zones.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub zones: Vec<String>,
    /// What keeps things off it.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub taints: Vec<Taint>,
    /// Everything else (`resourceModels`).
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What keeps things off a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Since when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// How a member is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
    /// The kinds that it serves.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub api_enablements: Vec<ApiEnablement>,
    /// `Ready` and `CompleteAPIEnablements`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
    /// Everything else (`nodeSummary`, `resourceSummary`, `remedyActions`).
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ClusterStatus {
    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The kinds of one group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiEnablement {
    /// Group and version.
    pub group_version: String,
    /// Its kinds.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub resources: Vec<ApiResource>,
}

/// A kind that a member serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiResource {
    /// Its plural name.
    pub name: String,
    /// Its kind.
    pub kind: String,
}
