//! What a client asks of a server, by verb and resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::client::{Body, ClientBuilder};
use machinery_apiserver::ApiServer;
use machinery_auth::UserInfo;
use parking_lot::Mutex;
use tower::util::MapRequestLayer;

/// Requests so far. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    /// A client of a server in this process whose requests are counted.
    pub(crate) fn client(&self, server: &ApiServer, user: UserInfo) -> kube::Client {
        let counts = self.clone();
        let count = MapRequestLayer::new(move |request: http::Request<Body>| {
            counts.note(request.method().as_str(), request.uri().path());
            request
        });
        ClientBuilder::new(server.as_user(user), "default")
            .with_layer(&count)
            .build()
    }

    fn note(&self, method: &str, path: &str) {
        if method != "GET" {
            *self
                .0
                .lock()
                .entry(format!("{method} {}", resource(path)))
                .or_default() += 1;
        }
    }

    /// Starts to count anew, and gives what was counted: writes by verb and resource.
    pub(crate) fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.0.lock())
    }
}

/// The resource, and the subresource if there is one, of an API path.
fn resource(path: &str) -> String {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    // `api/VERSION` or `apis/GROUP/VERSION`.
    let skipped = if segments.next() == Some("api") { 1 } else { 2 };
    let rest: Vec<&str> = segments.skip(skipped).collect();
    let rest = match rest.as_slice() {
        ["namespaces", _, plural, inner @ ..] if *plural != "status" && *plural != "finalize" => {
            [&[*plural], inner].concat()
        }
        other => other.to_vec(),
    };
    match rest.as_slice() {
        [plural, _, subresource] => format!("{plural}/{subresource}"),
        [plural, ..] => (*plural).to_owned(),
        [] => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources() {
        for (path, expected) in [
            ("/api/v1/namespaces/default/events", "events"),
            ("/api/v1/namespaces/shop", "namespaces"),
            ("/api/v1/namespaces/shop/status", "namespaces/status"),
            ("/apis/apps/v1/namespaces/a/deployments/web", "deployments"),
            (
                "/apis/apps/v1/namespaces/a/deployments/web/status",
                "deployments/status",
            ),
            (
                "/apis/cluster.karmada.io/v1alpha1/clusters/m/status",
                "clusters/status",
            ),
            ("/apis/cluster.karmada.io/v1alpha1/clusters", "clusters"),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }

    #[test]
    fn only_writes_count() {
        let counts = Counts::default();
        counts.note("GET", "/api/v1/pods");
        counts.note("POST", "/api/v1/namespaces/a/pods");
        counts.note("POST", "/api/v1/namespaces/b/pods");
        assert_eq!(counts.take(), BTreeMap::from([("POST pods".to_owned(), 2)]));
        assert!(counts.take().is_empty());
    }
}
