//! Renewing the token by which a member knows us.

use std::time::Duration;

use serde_json::json;

use super::task::{Connection, Task};
use super::token;
use crate::clock::later;
use crate::link::LinkError;
use crate::resource::Resource;

/// After a renewal that failed.
const RENEW_AGAIN_AFTER: Duration = Duration::from_secs(60);

impl Task {
    /// Replaces a token that runs out soon. The Secret is written first and the connection follows from it, so that a
    /// restart in between loses nothing.
    pub(super) async fn renew_token(&mut self) {
        let now = self.now();
        let Some(Connection {
            link: Ok(link),
            token: Some((claims, secret)),
            ..
        }) = &self.connection
        else {
            return;
        };
        if !claims.renewal_due(now) || now < self.renewal_due {
            return;
        }
        self.renewal_due = later(now, RENEW_AGAIN_AFTER);
        let (link, claims, mut secret) = (link.clone(), claims.clone(), secret.clone());
        let renewed = async {
            let token = token::request(&link, &claims.namespace, &claims.account).await?;
            secret["data"]["token"] = json!(encode(&token));
            let text = |field: &str| secret["metadata"][field].as_str().unwrap_or_default();
            let path = Resource::secrets().object(text("namespace"), text("name"));
            let answer = self
                .shared
                .options
                .hub
                .replace(&path, secret.to_string().into_bytes())
                .await?;
            self.caches.secrets.cache.learn(&answer)
        };
        match renewed.await {
            Ok(()) => self.success(
                "RenewTokenSucceed",
                "The token for the member was renewed.".to_owned(),
            ),
            // The Secret changed meanwhile; the next pass looks at the new one.
            Err(LinkError::Conflict) => {}
            Err(error) => self.warn(
                "RenewTokenFailed",
                format!(
                    "Failed to renew the token for the member, which runs out at {}: {error}",
                    crate::clock::seconds(claims.expires())
                ),
            ),
        }
    }
}

fn encode(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
