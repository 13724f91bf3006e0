//! A server in this process, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use machinery_apiserver::{ApiServer, Body, Caller, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// Nothing in these tests takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    pub(crate) api: ApiServer,
    user: Arc<UserInfo>,
}

pub(crate) fn pki() -> Arc<Pki> {
    Arc::new(Pki::ephemeral().unwrap())
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Options::new(pki())).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let api = ApiServer::start(options).await.unwrap();
        Self {
            api,
            user: Arc::new(UserInfo::new("tester", ["system:masters"]).authenticated()),
        }
    }

    /// The same server, asked by somebody else.
    pub(crate) fn by(&self, user: UserInfo) -> Self {
        Self {
            api: self.api.clone(),
            user: Arc::new(user),
        }
    }

    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Response<Body> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .extension(Caller(self.user.clone()))
            .body(Full::new(bytes::Bytes::from(body.into())))
            .unwrap();
        tokio::time::timeout(PATIENCE, self.api.handle(request))
            .await
            .unwrap()
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let response = self.raw(method, path, content_type, body).await;
        let code = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = tokio::time::timeout(PATIENCE, response.into_body().collect())
            .await
            .unwrap()
            .unwrap()
            .to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Answer { code, headers, value }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, JSON, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, JSON, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, JSON, body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, content_type: &str, body: Value) -> Answer {
        self.send("PATCH", path, content_type, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> Answer {
        self.send("DELETE", path, JSON, options.to_string()).await
    }

    /// Makes a ConfigMap in the default namespace.
    pub(crate) async fn config_map(&self, name: &str, data: Value) -> Value {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        self.post(CONFIG_MAPS, body).await.expect(201)
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watcher {
        let response = self.raw("GET", path, JSON, "").await;
        assert_eq!(response.status(), 200, "{path}");
        Watcher {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }

    /// Waits until an object is gone; woken by its watch, not by the clock.
    pub(crate) async fn gone(&self, collection: &str, name: &str) {
        let list = self
            .get(&format!("{collection}?fieldSelector=metadata.name={name}"))
            .await
            .expect(200);
        if list["items"].as_array().unwrap().is_empty() {
            return;
        }
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let path =
            format!("{collection}?fieldSelector=metadata.name={name}&watch=1&resourceVersion={version}");
        let mut watch = self.watch(&path).await;
        while watch.next().await.unwrap()["type"] != "DELETED" {}
    }

    /// Waits until an object is as `wanted` says.
    pub(crate) async fn until(&self, collection: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut watch = self
            .watch(&format!(
                "{collection}?fieldSelector=metadata.name={name}&watch=1"
            ))
            .await;
        loop {
            let event = watch.next().await.unwrap();
            if wanted(&event["object"]) {
                return event["object"].clone();
            }
        }
    }
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) value: Value,
}

impl Answer {
    /// The body, if the code is as expected.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.value);
        self.value
    }

    /// Code, reason and message of a refusal.
    pub(crate) fn refusal(&self) -> (u16, &str, &str) {
        let text = |key: &str| self.value[key].as_str().unwrap_or("");
        (self.code, text("reason"), text("message"))
    }
}

pub(crate) struct Watcher {
    body: Body,
    buffer: Vec<u8>,
}

impl Watcher {
    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap()?;
            self.buffer
                .extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }

    /// Type and name of the next event.
    pub(crate) async fn brief(&mut self) -> String {
        let event = self.next().await.unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("");
        format!("{} {name}", event["type"].as_str().unwrap())
    }
}

/// `metadata.resourceVersion` as text.
pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}
