//! The embedded server, as the suite compares it.

use std::sync::Arc;

use machinery_apiserver::{ApiServer, Listening, Options};
use machinery_auth::Pki;

use crate::client::{Credential, Target};

/// A running server in this process, in memory; it ends when this is dropped.
pub struct EmbeddedServer {
    /// How to reach it, as its administrator.
    pub target: Target,
    _listening: Listening,
    _server: ApiServer,
}

impl EmbeddedServer {
    /// Starts one without the controllers of a cluster, which a real API server has not either.
    pub async fn start() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Self::start_with(|_| ()).await
    }

    /// The same, with something set otherwise.
    pub async fn start_with(
        set: impl FnOnce(&mut Options),
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let pki = Arc::new(Pki::ephemeral()?);
        let mut options = Options::new(pki.clone());
        options.cluster_controllers = false;
        set(&mut options);
        let server = ApiServer::start(options).await?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let listening = server.listen(listener, pki.server_config())?;
        let (cert, key) = pki.client_cert("admin", &["system:masters"])?;
        let target = Target {
            name: "embedded".to_owned(),
            base_url: format!("https://{}", listening.address),
            ca_pem: Some(pki.ca_pem().as_bytes().to_vec()),
            credential: Credential::ClientCert {
                cert_pem: cert.into_bytes(),
                key_pem: key.into_bytes(),
            },
        };
        Ok(Self {
            target,
            _listening: listening,
            _server: server,
        })
    }
}
