//! How a member is reached: from what its Cluster and its Secret say to a client.
//!
//! What always holds: the way to a member is what its Cluster says and nothing else, so that no environment variable sends a
//! token elsewhere; and the client never tries again by itself, because its users know better when.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lockgate_api::Cluster;
use serde_json::{Value, json};

use crate::election::Guard;
use crate::link::chain;

/// The longest that opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest that sending a request may stall.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes clients of members. Simulations and tests have their own.
pub trait Connector: Send + Sync + 'static {
    /// A client of this member that sends nothing when the guard's term is over; `secret` is the object that `spec.secretRef`
    /// names, if it is there.
    fn connect<'a>(
        &'a self,
        cluster: &'a Cluster,
        secret: Option<&'a Value>,
        guard: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>>;
}

/// Why there is no client of a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// `spec.apiEndpoint` is empty.
    #[error("spec.apiEndpoint is empty")]
    NoEndpoint,
    /// `spec.secretRef` is missing.
    #[error("spec.secretRef is missing")]
    NoSecretRef,
    /// The Secret is not there.
    #[error("Secret {namespace}/{name} is not there")]
    NoSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The Secret lacks something, or it cannot be read.
    #[error("Secret {namespace}/{name}: {problem}")]
    BadSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// Something that is not supported is asked for.
    #[error("{0}")]
    Unsupported(&'static str),
    /// What the Cluster says makes no client.
    #[error("{0}")]
    Config(String),
}

/// Reaches members at their `apiEndpoint` with the `token` and the `caBundle` of their Secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct SecretConnector;

impl Connector for SecretConnector {
    fn connect<'a>(
        &'a self,
        cluster: &'a Cluster,
        secret: Option<&'a Value>,
        guard: &'a Guard,
    ) -> BoxFuture<'a, Result<kube::Client, ConnectError>> {
        Box::pin(async move {
            let config = config(cluster, secret).await?;
            guard
                .client(config)
                .map_err(|error| ConnectError::Config(chain(&error)))
        })
    }
}

/// How a member is reached, as a client's configuration.
pub async fn config(cluster: &Cluster, secret: Option<&Value>) -> Result<kube::Config, ConnectError> {
    let spec = &cluster.spec;
    if spec.api_endpoint.is_empty() {
        return Err(ConnectError::NoEndpoint);
    }
    if spec.proxy_header.as_ref().is_some_and(is_something) {
        return Err(ConnectError::Unsupported(
            "spec.proxyHeader is not supported: put the proxy's user and password into spec.proxyURL",
        ));
    }
    let place = spec.secret_ref.as_ref().ok_or(ConnectError::NoSecretRef)?;
    let secret = secret.ok_or_else(|| ConnectError::NoSecret {
        namespace: place.namespace.clone(),
        name: place.name.clone(),
    })?;
    let bad = |problem: String| ConnectError::BadSecret {
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        problem,
    };
    let token = secret_text(secret, "token")
        .map_err(bad)?
        .ok_or_else(|| bad("key token is missing".to_owned()))?;
    let mut server = json!({"server": spec.api_endpoint});
    if spec.insecure_skip_tls_verification {
        server["insecure-skip-tls-verify"] = json!(true);
    } else if let Some(bundle) = secret_text(secret, "caBundle").map_err(bad)? {
        if !bundle.contains("-----BEGIN CERTIFICATE-----") {
            return Err(bad("key caBundle holds no PEM certificate".to_owned()));
        }
        server["certificate-authority-data"] = json!(STANDARD.encode(bundle));
    }
    if !spec.proxy_url.is_empty() {
        server["proxy-url"] = json!(spec.proxy_url);
    }
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "member",
        "clusters": [{"name": "member", "cluster": server}],
        "users": [{"name": "member", "user": {"token": token}}],
        "contexts": [{"name": "member", "context": {"cluster": "member", "user": "member"}}],
    }))
    .map_err(|error| ConnectError::Config(error.to_string()))?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| ConnectError::Config(chain(&error)))?;
    if spec.proxy_url.is_empty() {
        config.proxy_url = None;
    }
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(WRITE_TIMEOUT);
    // Watches are silent for long: whoever sends a request bounds the wait for its answer.
    config.read_timeout = None;
    Ok(config)
}

/// The text of a Secret's key; `None` if it is absent or empty.
pub(crate) fn secret_text(secret: &Value, key: &str) -> Result<Option<String>, String> {
    let Some(encoded) = secret["data"][key].as_str().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| format!("key {key} is not base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("key {key} is not text"))?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_api::cluster::SecretReference;

    fn cluster(change: impl FnOnce(&mut lockgate_api::cluster::ClusterSpec)) -> Cluster {
        let mut cluster = Cluster::default();
        cluster.spec.api_endpoint = "https://member.example:6443".into();
        cluster.spec.secret_ref = Some(SecretReference {
            namespace: "karmada-cluster".into(),
            name: "m1".into(),
        });
        change(&mut cluster.spec);
        cluster
    }

    fn secret(entries: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> = entries
            .iter()
            .map(|(key, text)| ((*key).to_owned(), json!(STANDARD.encode(text))))
            .collect();
        json!({"data": data})
    }

    #[tokio::test]
    async fn what_is_wrong_is_said() {
        let good = secret(&[("token", "t")]);
        let cases = [
            (
                cluster(|spec| spec.api_endpoint.clear()),
                Some(good.clone()),
                "spec.apiEndpoint is empty",
            ),
            (
                cluster(|spec| spec.secret_ref = None),
                Some(good.clone()),
                "spec.secretRef is missing",
            ),
            (cluster(|_| {}), None, "Secret karmada-cluster/m1 is not there"),
            (
                cluster(|_| {}),
                Some(secret(&[("caBundle", "x")])),
                "Secret karmada-cluster/m1: key token is missing",
            ),
            (
                cluster(|_| {}),
                Some(json!({"data": {"token": "%"}})),
                "Secret karmada-cluster/m1: key token is not base64",
            ),
            (
                cluster(|_| {}),
                Some(secret(&[("token", "t"), ("caBundle", "junk")])),
                "Secret karmada-cluster/m1: key caBundle holds no PEM certificate",
            ),
            (
                cluster(|spec| spec.proxy_header = Some(json!({"X": ["y"]}))),
                Some(good.clone()),
                "spec.proxyHeader is not supported",
            ),
            (
                cluster(|spec| spec.api_endpoint = "::nonsense".into()),
                Some(good),
                "url",
            ),
        ];
        for (cluster, secret, expected) in cases {
            let error = config(&cluster, secret.as_ref()).await.expect_err(expected);
            assert!(
                error
                    .to_string()
                    .to_lowercase()
                    .contains(&expected.to_lowercase()),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_client_does_what_the_cluster_says() {
        let proxied = cluster(|spec| {
            spec.proxy_url = "socks5://proxy.example:1080".into();
            spec.insecure_skip_tls_verification = true;
        });
        let found = config(&proxied, Some(&secret(&[("token", "t\n"), ("caBundle", "junk")])))
            .await
            .expect("a configuration");
        assert_eq!(
            found.proxy_url.expect("a proxy").to_string(),
            "socks5://proxy.example:1080/"
        );
        assert!(found.accept_invalid_certs);
        assert!(
            !found.default_retry,
            "users of the client decide when to try again"
        );
        assert_eq!(found.read_timeout, None, "watches are silent for long");
        let plain = config(&cluster(|_| {}), Some(&secret(&[("token", "t")])))
            .await
            .expect("a configuration");
        assert_eq!(plain.proxy_url, None);
        assert!(!plain.accept_invalid_certs);
    }
}
