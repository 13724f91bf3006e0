//! The server, as far as a member needs it.

use bytes::Bytes;
use http_body_util::Full;
use machinery_apiserver::{ApiError, ApiServer, AsUser, Local};
use machinery_auth::UserInfo;
use serde_json::{Value, json};
use tower::Service;

use crate::action::{Action, Key};

/// Who a member's controllers and kubelets are.
const USER: &str = "system:lockgate-sim";

/// A server, as a member uses it.
pub(super) struct Api {
    pub(super) local: Local,
    /// Bindings have no other way in than the one over HTTP.
    service: AsUser,
}

/// Why an action was not done.
pub(super) enum Failure {
    /// What it is about is not there any more; its end will be seen.
    Gone,
    /// It may work when it is decided again.
    Again(String),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        if error.is_not_found() {
            Self::Gone
        } else {
            Self::Again(error.to_string())
        }
    }
}

impl Api {
    pub(super) fn new(server: &ApiServer) -> Self {
        let user = UserInfo::new(USER, ["system:masters", "system:authenticated"]);
        Self {
            local: server.local(user.clone()),
            service: server.as_user(user),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Value> {
        self.local.get(
            key.kind.api_version(),
            key.kind.plural(),
            &key.namespace,
            &key.name,
        )
    }

    /// Does one thing. Returns what was written.
    pub(super) async fn perform(&self, action: Action) -> Result<Option<Value>, Failure> {
        match action {
            Action::Create(object) => Ok(Some(self.local.create(object).await?)),
            Action::Update(object) => Ok(Some(self.local.update(object).await?)),
            Action::UpdateStatus(object) => Ok(Some(self.local.update_status(object).await?)),
            Action::Bind { pod, node } => self.bind(&pod, &node).await.map(|()| None),
            Action::Delete { key, uid } => {
                let (api_version, plural) = (key.kind.api_version(), key.kind.plural());
                let uid = (!uid.is_empty()).then_some(uid.as_str());
                self.local
                    .delete(api_version, plural, &key.namespace, &key.name, uid)
                    .await?;
                Ok(None)
            }
            Action::WakeAt(_) => Ok(None),
        }
    }

    async fn bind(&self, pod: &Key, node: &str) -> Result<(), Failure> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": &*pod.name, "namespace": &*pod.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let request = http::Request::post(format!(
            "/api/v1/namespaces/{}/pods/{}/binding",
            pod.namespace, pod.name
        ))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(binding.to_string())))
        .map_err(|error| Failure::Again(error.to_string()))?;
        let Ok(response) = self.service.clone().call(request).await;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            404 => Err(Failure::Gone),
            code => Err(Failure::Again(format!("binding a Pod was answered with {code}"))),
        }
    }
}
