//! A hub or a member as it is seen from outside.

use std::collections::BTreeMap;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::error::BenchError;
use crate::fleet::load::{CLUSTERS, DEPLOYMENTS, NAMESPACE, POLICIES, POLICY, STAMP};
use crate::hub::Way;

/// Of each object only who it is: a whole list of many would cost the server more than what is measured.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Requests that no template causes.
const BESIDE: [&str; 5] = [
    "leases",
    "events",
    "tokenreviews",
    "subjectaccessreviews",
    "serviceaccounts",
];

pub(super) struct Server {
    pub(super) name: String,
    pub(super) client: kube::Client,
}

impl Server {
    pub(super) async fn read(name: &str, way: &Way) -> Result<Self, BenchError> {
        let usage = |why: String| BenchError::Usage(format!("{}: {why}", way.file.display()));
        let kubeconfig = Kubeconfig::read_from(&way.file).map_err(|e| usage(e.to_string()))?;
        let options = KubeConfigOptions {
            context: way.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|e| usage(e.to_string()))?;
        let client = kube::Client::try_from(config).map_err(|e| usage(e.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            client,
        })
    }

    /// How many templates or their copies are here, whatever their number: a list of one says how many more there are.
    pub(super) async fn count(&self) -> Result<usize, BenchError> {
        let list = self
            .list(&format!("{DEPLOYMENTS}?limit=1"), "application/json")
            .await?;
        let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(items(&list).len() + more as usize)
    }

    /// How many carry a stamp.
    pub(super) async fn stamped(&self, stamp: u32) -> Result<usize, BenchError> {
        let list = self
            .list(
                &format!("{DEPLOYMENTS}?labelSelector={STAMP}%3D{stamp}"),
                METADATA,
            )
            .await?;
        Ok(items(&list).len())
    }

    /// Whether there is an object of this name.
    pub(super) async fn has(&self, name: &str) -> Result<bool, BenchError> {
        self.answers(&format!("{DEPLOYMENTS}/{name}")).await
    }

    /// Whether the namespace of the load is there.
    pub(super) async fn has_namespace(&self) -> Result<bool, BenchError> {
        self.answers(&format!("/api/v1/namespaces/{NAMESPACE}")).await
    }

    /// Whether a member has joined this hub by that name.
    pub(super) async fn knows_cluster(&self, name: &str) -> Result<bool, BenchError> {
        self.answers(&format!("{CLUSTERS}/{name}")).await
    }

    /// Whether the policy of the load is there.
    pub(super) async fn has_policy(&self) -> Result<bool, BenchError> {
        self.answers(&format!("{POLICIES}/{POLICY}")).await
    }

    async fn answers(&self, path: &str) -> Result<bool, BenchError> {
        match self.request::<Value>(path, "application/json").await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(self.failed(path, &error)),
        }
    }

    /// Everything that is here.
    pub(super) async fn all(&self) -> Result<Vec<Value>, BenchError> {
        let mut list = self.list(DEPLOYMENTS, "application/json").await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// The writes that the server has counted so far, whoever made them, by verb and resource. None where it does not count.
    pub(super) async fn writes(&self) -> Result<BTreeMap<String, u64>, BenchError> {
        let path = "/metrics";
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|error| self.failed(path, &error))?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(parse_writes(&text)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(BTreeMap::new()),
            Err(error) => Err(self.failed(path, &error)),
        }
    }

    async fn list(&self, path: &str, accept: &str) -> Result<Value, BenchError> {
        let list = self.request(path, accept).await;
        list.map_err(|error| self.failed(path, &error))
    }

    async fn request<T: serde::de::DeserializeOwned>(&self, path: &str, accept: &str) -> kube::Result<T> {
        let request = http::Request::get(path)
            .header(http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    fn failed(&self, path: &str, why: &dyn std::fmt::Display) -> BenchError {
        BenchError::Request {
            request: format!("{}: GET {path}", self.name),
            reason: why.to_string(),
        }
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

/// Reads the counters of a kube-apiserver.
fn parse_writes(metrics: &str) -> BTreeMap<String, u64> {
    let mut writes = BTreeMap::new();
    for line in metrics.lines() {
        let Some((labels, value)) = line
            .strip_prefix("apiserver_request_total{")
            .and_then(|rest| rest.rsplit_once("} "))
        else {
            continue;
        };
        let of = |name: &str| {
            labels
                .split(',')
                .find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
                .unwrap_or_default()
        };
        let (verb, resource, part) = (of("verb"), of("resource"), of("subresource"));
        let is_write = matches!(verb, "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE");
        if !is_write || BESIDE.contains(&resource) {
            continue;
        }
        let slash = if part.is_empty() { "" } else { "/" };
        let count = value.trim().parse::<f64>().unwrap_or(0.0) as u64;
        *writes
            .entry(format!("{verb} {resource}{slash}{part}"))
            .or_default() += count;
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_summed_over_codes_and_reads_are_left_out() {
        let metrics = "\
# HELP apiserver_request_total Counter of requests.
apiserver_request_total{code=\"200\",group=\"work.karmada.io\",resource=\"works\",subresource=\"status\",verb=\"PUT\"} 30
apiserver_request_total{code=\"409\",group=\"work.karmada.io\",resource=\"works\",subresource=\"status\",verb=\"PUT\"} 2
apiserver_request_total{code=\"201\",group=\"apps\",resource=\"deployments\",subresource=\"\",verb=\"POST\"} 1e+01
apiserver_request_total{code=\"200\",group=\"apps\",resource=\"deployments\",subresource=\"\",verb=\"GET\"} 99
apiserver_request_total{code=\"200\",group=\"coordination.k8s.io\",resource=\"leases\",subresource=\"\",verb=\"PUT\"} 7
apiserver_request_duration_seconds_count{resource=\"works\",verb=\"PUT\"} 5
";
        let expected = BTreeMap::from([
            ("POST deployments".to_owned(), 10),
            ("PUT works/status".to_owned(), 32),
        ]);
        assert_eq!(parse_writes(metrics), expected);
    }
}
