//! A server of either kind, and requests to it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lockgate_api::definitions;
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};
use machinery_difftest::{RealError, RealServer};
use serde_json::{Map, Value, json};

/// Nothing that is waited for takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(50);

/// Where the objects of these tests are.
pub(crate) const NAMESPACE: &str = "shop";

/// Kinds of the server itself, with their plural and whether they are in namespaces.
const BUILT_IN: [(&str, &str, bool); 14] = [
    ("Namespace", "namespaces", false),
    ("ConfigMap", "configmaps", true),
    ("Service", "services", true),
    ("ServiceAccount", "serviceaccounts", true),
    ("Deployment", "deployments", true),
    ("CustomResourceDefinition", "customresourcedefinitions", false),
    ("ClusterRole", "clusterroles", false),
    ("ClusterRoleBinding", "clusterrolebindings", false),
    ("Role", "roles", true),
    ("RoleBinding", "rolebindings", true),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
    (
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
    ),
    ("SubjectAccessReview", "subjectaccessreviews", false),
    ("SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
];

/// A server with an administrator's client.
pub(crate) struct Server {
    pub(crate) client: Client,
    // Its work ends when it is dropped.
    _embedded: Option<ApiServer>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The body, if the request was granted.
    #[track_caller]
    pub(crate) fn granted(self) -> Value {
        assert!((200..300).contains(&self.code), "{} {}", self.code, self.body);
        assert_eq!(
            self.warnings,
            Vec::<String>::new(),
            "{}",
            self.body["metadata"]["name"]
        );
        self.body
    }

    /// The message of a refusal.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Server {
    /// The embedded server, in this process.
    pub(crate) async fn embedded() -> Self {
        let server = ApiServer::start(Options::new(Arc::new(Pki::ephemeral().unwrap())))
            .await
            .unwrap();
        let user = UserInfo::new("tester", ["system:masters"]).authenticated();
        Self {
            client: Client::new(server.as_user(user), "default"),
            _embedded: Some(server),
        }
    }

    /// A real server, which ends when the second value is dropped.
    pub(crate) async fn real() -> Option<(Self, RealServer)> {
        let running = match tokio::task::spawn_blocking(RealServer::start).await.unwrap() {
            Ok(running) => running,
            Err(RealError::Unavailable) => return None,
            Err(error) => panic!("{error}"),
        };
        let kubeconfig = Kubeconfig::read_from(running.directory().join("kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        let server = Self {
            client: Client::try_from(config).unwrap(),
            _embedded: None,
        };
        Some((server, running))
    }

    /// Sends one request, as `user` if one is given.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Vec::new, |body| serde_json::to_vec(body).unwrap());
        let request = request.body(Body::from(body)).unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.client.send(request))
            .await
            .unwrap()
            .unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            warnings: parts
                .headers
                .get_all("warning")
                .iter()
                .map(|warning| warning.to_str().unwrap().to_owned())
                .collect(),
            body: serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&bytes)})),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None).await
    }

    /// Creates an object. Unknown fields are refused: what is pruned would not be seen.
    pub(crate) async fn create(&self, object: &Value) -> Answer {
        self.post(object, "?fieldValidation=Strict").await
    }

    /// Asks whether an object would be created.
    pub(crate) async fn try_create(&self, object: &Value) -> Answer {
        self.post(object, "?fieldValidation=Strict&dryRun=All").await
    }

    async fn post(&self, object: &Value, query: &str) -> Answer {
        let path = format!("{}{query}", collection(object));
        self.send(
            "POST",
            &path,
            &[("content-type", "application/json")],
            Some(object),
        )
        .await
    }

    /// Replaces an object, or with `/status` its status.
    pub(crate) async fn replace(&self, object: &Value, part: &str) -> Answer {
        let path = format!("{}{part}?fieldValidation=Strict", path(object));
        self.send(
            "PUT",
            &path,
            &[("content-type", "application/json")],
            Some(object),
        )
        .await
    }

    /// Merges into an object, as `user` if one is given.
    pub(crate) async fn merge(&self, object: &Value, patch: &Value, user: Option<&str>) -> Answer {
        let mut headers = vec![("content-type", "application/merge-patch+json")];
        headers.extend(user.map(|user| ("impersonate-user", user)));
        self.send("PATCH", &path(object), &headers, Some(patch)).await
    }

    /// Applies an object, as `kubectl apply --server-side` does.
    pub(crate) async fn apply(&self, object: &Value) -> Answer {
        let path = format!("{}?fieldManager=tester&fieldValidation=Strict", path(object));
        let headers = [("content-type", "application/apply-patch+yaml")];
        self.send("PATCH", &path, &headers, Some(object)).await
    }

    pub(crate) async fn delete(&self, object: &Value) -> Answer {
        self.send("DELETE", &path(object), &[], None).await
    }

    /// Looks until something is as it should be.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let wait = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(found) => found,
            Err(_) => panic!("still waiting: {what}"),
        }
    }
}

/// Plural and scope of an object's kind.
fn resource(kind: &str) -> (String, bool) {
    if let Some((_, plural, namespaced)) = BUILT_IN.iter().find(|(known, ..)| *known == kind) {
        return ((*plural).to_owned(), *namespaced);
    }
    static CRDS: LazyLock<Vec<Value>> = LazyLock::new(definitions::crds);
    let crd = CRDS
        .iter()
        .find(|crd| crd["spec"]["names"]["kind"] == kind)
        .unwrap_or_else(|| panic!("no such kind: {kind}"));
    (
        crd["spec"]["names"]["plural"].as_str().unwrap().to_owned(),
        crd["spec"]["scope"] == "Namespaced",
    )
}

/// Where objects like this one are created.
pub(crate) fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (plural, namespaced) = resource(&text(&object["kind"]));
    let version = text(&object["apiVersion"]);
    let root = if version.contains('/') { "/apis" } else { "/api" };
    match text(&object["metadata"]["namespace"]) {
        namespace if namespaced => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        _ => format!("{root}/{version}/{plural}"),
    }
}

/// Where an object is.
pub(crate) fn path(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    format!("{}/{name}", collection(object))
}

/// An object of one of our kinds with the least that it needs, changed by `spec`.
pub(crate) fn sample(kind: &str, spec: &Value) -> Value {
    let (version, least) = match kind {
        "PropagationPolicy" | "ClusterPropagationPolicy" | "RolloutPolicy" | "ClusterRolloutPolicy" => (
            "policy.karmada.io/v1alpha1",
            json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]}),
        ),
        "OverridePolicy" | "ClusterOverridePolicy" => ("policy.karmada.io/v1alpha1", json!({})),
        "ResourceBinding" | "ClusterResourceBinding" => (
            "work.karmada.io/v1alpha2",
            json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}}),
        ),
        "Work" => ("work.karmada.io/v1alpha1", json!({})),
        "Cluster" => ("cluster.karmada.io/v1alpha1", json!({"syncMode": "Push"})),
        "WorkloadRebalancer" => (
            "apps.karmada.io/v1alpha1",
            json!({"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"}]}),
        ),
        "ClusterTaintPolicy" => (
            "policy.karmada.io/v1alpha1",
            json!({"taints": [{"key": "a", "effect": "NoSchedule"}]}),
        ),
        "ResourceInterpreterCustomization" => (
            "config.karmada.io/v1alpha1",
            json!({"target": {"apiVersion": "v1", "kind": "X"}, "customizations": {}}),
        ),
        "ManagedCluster" => ("cluster.open-cluster-management.io/v1", json!({})),
        "ManagedClusterSet" => ("cluster.open-cluster-management.io/v1beta2", json!({})),
        "ManagedClusterSetBinding" => (
            "cluster.open-cluster-management.io/v1beta2",
            json!({"clusterSet": "sample"}),
        ),
        "Placement" => ("cluster.open-cluster-management.io/v1beta1", json!({})),
        _ => panic!("no such kind: {kind}"),
    };
    let mut whole: Map<String, Value> = least.as_object().unwrap().clone();
    for (field, value) in spec.as_object().unwrap() {
        whole.insert(field.clone(), value.clone());
    }
    let mut object = json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "sample"},
        "spec": whole,
    });
    if resource(kind).1 {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    object
}
