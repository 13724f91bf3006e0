//! As much of a kubeconfig as it takes to reach a server: its address, its authority, and a certificate or token.

use std::path::Path;

use base64::Engine as _;
use serde::Deserialize;

use crate::error::BenchError;

/// A server to talk to, and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) authority_pem: Vec<u8>,
    pub(crate) credential: Credential,
}

/// How we prove who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    Certificate { chain_pem: Vec<u8>, key_pem: Vec<u8> },
    Token(String),
}

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "current-context")]
    current: String,
    contexts: Vec<Named<ContextOf>>,
    clusters: Vec<Named<ClusterOf>>,
    users: Vec<Named<UserOf>>,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    body: T,
}

#[derive(Deserialize)]
struct ContextOf {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
struct ClusterOf {
    server: String,
    #[serde(rename = "certificate-authority-data")]
    authority: String,
}

#[derive(Deserialize)]
struct UserOf {
    #[serde(rename = "client-certificate-data")]
    certificate: Option<String>,
    #[serde(rename = "client-key-data")]
    key: Option<String>,
    token: Option<String>,
}

impl Target {
    /// The current context of a file.
    pub(crate) fn read(path: &Path) -> Result<Self, BenchError> {
        let text = std::fs::read_to_string(path).map_err(BenchError::file(path))?;
        Self::parse(&text).map_err(|why| BenchError::Usage(format!("{}: {why}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Config = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
        let context = find(&config.contexts, &config.current)?;
        let (cluster, user) = (
            find(&config.clusters, &context.cluster)?,
            find(&config.users, &context.user)?,
        );
        let address: http::Uri = cluster.server.parse().map_err(|_| "the server is no URL")?;
        if address.scheme_str() != Some("https") {
            return Err("the server is not reached by https".into());
        }
        let credential = match (&user.certificate, &user.key, &user.token) {
            (Some(chain), Some(key), _) => Credential::Certificate {
                chain_pem: decode(chain)?,
                key_pem: decode(key)?,
            },
            (_, _, Some(token)) => Credential::Token(token.clone()),
            _ => return Err("the user has neither certificate nor token".into()),
        };
        Ok(Self {
            host: address.host().ok_or("the server has no host")?.to_owned(),
            port: address.port_u16().unwrap_or(443),
            authority_pem: decode(&cluster.authority)?,
            credential,
        })
    }
}

fn find<'a, T>(list: &'a [Named<T>], name: &str) -> Result<&'a T, String> {
    list.iter()
        .find(|entry| entry.name == name)
        .map(|entry| &entry.body)
        .ok_or_else(|| format!("{name:?} is missing"))
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    base64::engine::general_purpose::STANDARD
        .decode(text.trim())
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
apiVersion: v1
kind: Config
current-context: b
clusters:
- {name: a, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: QQ==}}
- {name: c, cluster: {server: 'https://127.0.0.1:7443', certificate-authority-data: Q0E=}}
users:
- name: u
  user: {USER}
contexts:
- {name: b, context: {cluster: c, user: u}}
";

    fn with(user: &str) -> Result<Target, String> {
        Target::parse(&CONFIG.replace("{USER}", user))
    }

    #[test]
    fn the_current_context_is_taken() {
        let target = with("{client-certificate-data: QUE=, client-key-data: QkI=, token: t}").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("127.0.0.1", 7443));
        assert_eq!(target.authority_pem, b"CA");
        let expected = Credential::Certificate {
            chain_pem: b"AA".to_vec(),
            key_pem: b"BB".to_vec(),
        };
        assert_eq!(target.credential, expected);
    }

    #[test]
    fn tokens_do_and_nothing_does_not() {
        assert_eq!(
            with("{token: abc}").unwrap().credential,
            Credential::Token("abc".into())
        );
        assert!(with("{}").unwrap_err().contains("neither"));
        assert!(with("{client-certificate-data: '*', client-key-data: QkI=}").is_err());
        assert!(
            Target::parse(&CONFIG.replace("current-context: b", "current-context: x"))
                .unwrap_err()
                .contains("\"x\"")
        );
    }
}
