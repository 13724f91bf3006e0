//! One server as the runner sees it: an administrator with kubectl, and no more.

mod kinds;
mod request;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use http::Method;
use lockgate_api::keys;
use lockgate_hub::Resource;
use serde_json::{Value, json};

use crate::file::Cascade;
use crate::path::Path;
use crate::reference::Reference;
use kinds::Kinds;

/// The name under which the runner owns fields, as a user's kubectl would.
const MANAGER: &str = "kubectl";
/// How many lists are asked for at once.
const LISTS_AT_ONCE: usize = 16;
/// How often a change is tried again because somebody else was quicker.
const ATTEMPTS: usize = 20;

/// A server.
#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
    kinds: Arc<parking_lot::Mutex<Arc<Kinds>>>,
}

/// Why a request did not do what it was for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// The server refused it.
    #[error("{message} ({code})")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// There is no such kind there.
    #[error("the server does not serve {0}")]
    NotServed(String),
    /// The server did not answer, or not as servers do.
    #[error("{0}")]
    Broken(String),
}

impl Problem {
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Refused { code, .. } => *code,
            _ => 0,
        }
    }
}

/// A change that the runner made: controllers must have seen it before anything is checked.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// What kind of object.
    pub resource: Resource,
    /// The resource version of the change.
    pub version: u64,
    /// Whether the object was ours before or after: controllers follow nothing else on members.
    pub managed: bool,
}

/// What there is: by path, uid and resource version.
pub(crate) type Snapshot = BTreeMap<String, (String, String)>;

impl Server {
    /// A server behind a client that has every right.
    pub(crate) fn new(client: kube::Client) -> Self {
        Self {
            client,
            kinds: Arc::default(),
        }
    }

    /// The client.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Creates an object or changes it to this.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Written, Problem> {
        let (resource, path) = self.locate(object).await?;
        let path = format!("{path}?fieldManager={MANAGER}&force=true&fieldValidation=Strict");
        let body = object.to_string();
        let answer = self
            .send(Method::PATCH, &path, "application/apply-patch+yaml", body)
            .await?;
        Ok(written(resource, &answer))
    }

    /// Creates an object.
    pub(crate) async fn create(&self, object: &Value) -> Result<Written, Problem> {
        let (resource, _) = self.locate(object).await?;
        let path = format!(
            "{}?fieldManager={MANAGER}&fieldValidation=Strict",
            resource.collection(namespace_of(&resource, object))
        );
        let answer = self
            .send(Method::POST, &path, "application/json", object.to_string())
            .await?;
        Ok(written(resource, &answer))
    }

    /// Replaces an object whatever it is now.
    pub(crate) async fn replace(&self, object: &Value) -> Result<Written, Problem> {
        let (resource, path) = self.locate(object).await?;
        self.rewrite(resource, &path, "", |present| {
            let mut wanted = object.clone();
            wanted["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"].clone();
            Ok(wanted)
        })
        .await
    }

    /// Sets fields of an object. Those of a status are the status's, which servers keep apart.
    pub(crate) async fn edit(&self, of: &Reference, set: &[(Path, Value)]) -> Result<Written, Problem> {
        let (resource, path) = self.find(of).await?;
        let of_status = set.iter().all(|(path, _)| path.is_of_status());
        let part = if of_status { "/status" } else { "" };
        self.rewrite(resource, &path, part, |present| {
            let mut wanted = present.clone();
            for (path, value) in set {
                path.set(&mut wanted, value).map_err(Problem::Broken)?;
            }
            Ok(wanted)
        })
        .await
    }

    async fn rewrite(
        &self,
        resource: Resource,
        path: &str,
        part: &str,
        change: impl Fn(&Value) -> Result<Value, Problem>,
    ) -> Result<Written, Problem> {
        for attempt in 1.. {
            let present = self.send(Method::GET, path, "", String::new()).await?;
            let wanted = change(&present)?;
            let put = format!("{path}{part}?fieldManager={MANAGER}&fieldValidation=Strict");
            match self
                .send(Method::PUT, &put, "application/json", wanted.to_string())
                .await
            {
                // The controllers were quicker.
                Err(problem) if problem.code() == 409 && attempt < ATTEMPTS => {}
                answer => {
                    let mut written = written(resource, &answer?);
                    written.managed |= is_managed(&present);
                    return Ok(written);
                }
            }
        }
        Err(Problem::Broken("no attempt was made".to_owned()))
    }

    /// Deletes an object.
    pub(crate) async fn delete(&self, of: &Reference, cascade: Option<Cascade>) -> Result<Written, Problem> {
        let (resource, path) = self.find(of).await?;
        let present = self.send(Method::GET, &path, "", String::new()).await?;
        let policy = match cascade {
            None => "Background",
            Some(Cascade::Orphan) => "Orphan",
            Some(Cascade::Foreground) => "Foreground",
        };
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        let answer = self
            .send(Method::DELETE, &path, "application/json", options.to_string())
            .await?;
        self.ended(resource, &present, &answer).await
    }

    /// The change that a server made of an object that was to end, by what it answered.
    pub(crate) async fn ended(
        &self,
        resource: Resource,
        present: &Value,
        answer: &Value,
    ) -> Result<Written, Problem> {
        // An object that others must let go of first comes back with the version of this change.
        let has_some = |finalizers: &Value| finalizers.as_array().is_some_and(|all| !all.is_empty());
        if answer["metadata"]["deletionTimestamp"].is_string()
            && answer["metadata"]["uid"] == present["metadata"]["uid"]
            && (has_some(&answer["metadata"]["finalizers"]) || has_some(&answer["spec"]["finalizers"]))
        {
            return Ok(written(resource, answer));
        }
        let version = self.deletion(&resource, present).await?;
        Ok(Written {
            resource,
            version,
            managed: is_managed(present),
        })
    }

    /// What the garbage collector does for an object whose dependents stay, on a server that has none: they forget it,
    /// and it is let go.
    pub(crate) async fn orphan(&self, of: &Reference, uid: &str) -> Result<(), Problem> {
        for resource in self.known_listable() {
            if resource.group != "work.karmada.io" {
                continue;
            }
            for item in self.items(&resource.collection("")).await? {
                let Some(owners) = item["metadata"]["ownerReferences"].as_array() else {
                    continue;
                };
                let left: Vec<&Value> = owners.iter().filter(|owner| owner["uid"] != uid).collect();
                if left.len() == owners.len() {
                    continue;
                }
                let text = |key: &str| item["metadata"][key].as_str().unwrap_or("").to_owned();
                let path = resource.object(&text("namespace"), &text("name"));
                let patch = json!({"metadata": {"ownerReferences": left}});
                self.send(
                    Method::PATCH,
                    &path,
                    "application/merge-patch+json",
                    patch.to_string(),
                )
                .await?;
            }
        }
        self.drop_finalizer(of, "orphan").await
    }

    /// Takes one finalizer from an object that is being deleted.
    pub(crate) async fn drop_finalizer(&self, of: &Reference, finalizer: &str) -> Result<(), Problem> {
        let Some(object) = self.get(of).await? else {
            return Ok(());
        };
        let held = object["metadata"]["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let left: Vec<Value> = held.iter().filter(|held| *held != finalizer).cloned().collect();
        let going = object["metadata"]["deletionTimestamp"].is_string();
        if !going || left.len() == held.len() {
            return Ok(());
        }
        let (_, path) = self.find(of).await?;
        let patch = json!({"metadata": {"finalizers": left}}).to_string();
        match self
            .send(Method::PATCH, &path, "application/merge-patch+json", patch)
            .await
        {
            Ok(_) => Ok(()),
            Err(problem) if problem.code() == 404 => Ok(()),
            Err(problem) => Err(problem),
        }
    }

    /// The resource version at which an object went: its watch says.
    async fn deletion(&self, resource: &Resource, last: &Value) -> Result<u64, Problem> {
        let text = |key: &str| last["metadata"][key].as_str().unwrap_or("");
        let (name, version) = (text("name"), text("resourceVersion"));
        let path = format!(
            "{}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3D{}&timeoutSeconds=30",
            resource.collection(text("namespace")),
            name
        );
        let mut events = self.watch(&path).await?;
        while let Some(event) = events.next().await? {
            if event["type"] == "DELETED" || event["object"]["metadata"]["deletionTimestamp"].is_string() {
                return Ok(version_of(&event["object"]));
            }
        }
        let kind = &resource.kind;
        Err(Problem::Broken(format!(
            "{kind} {name} was deleted, but no watch says so"
        )))
    }

    /// One object; none when it, or its kind, is not there.
    pub(crate) async fn get(&self, of: &Reference) -> Result<Option<Value>, Problem> {
        let (_, path) = match self.find(of).await {
            Err(Problem::NotServed(_)) => return Ok(None),
            found => found?,
        };
        match self.send(Method::GET, &path, "", String::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(problem) if problem.code() == 404 => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// The last change of an object, whoever made it; none when it is not there.
    pub(crate) async fn written_last(&self, of: &Reference) -> Result<Option<Written>, Problem> {
        match self.get(of).await? {
            Some(object) => Ok(Some(written(self.resolve(&of.kind).await?, &object))),
            None => Ok(None),
        }
    }

    /// The objects of a kind, sorted by namespace and name; none when the kind is not served.
    pub(crate) async fn list(&self, of: &Reference) -> Result<Vec<Value>, Problem> {
        let resource = match self.resolve(&of.kind).await {
            Err(Problem::NotServed(_)) => return Ok(Vec::new()),
            found => found?,
        };
        let mut path = resource.collection(&of.namespace);
        if !of.selector.is_empty() {
            path = format!("{path}?labelSelector={}", request::escape(&of.selector));
        }
        let mut items = self.items(&path).await?;
        for item in &mut items {
            item["apiVersion"] = resource.api_version().into();
            item["kind"] = resource.kind.clone().into();
        }
        Ok(items)
    }

    pub(crate) async fn items(&self, path: &str) -> Result<Vec<Value>, Problem> {
        let mut answer = self.send(Method::GET, path, "", String::new()).await?;
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Everything that is there, but for what comes and goes by itself.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, Problem> {
        let resources = self.listable().await?;
        let lasting = resources.into_iter().filter(|resource| {
            !matches!(
                resource.plural.as_str(),
                "events" | "leases" | "componentstatuses"
            )
        });
        let mut lists = futures::stream::iter(lasting.map(|resource| async move {
            let items = match self.items(&resource.collection("")).await {
                // Its definition went a moment ago, and its objects with it.
                Err(problem) if problem.code() == 404 => Ok(Vec::new()),
                items => items,
            };
            items.map(|items| (resource, items))
        }))
        .buffer_unordered(LISTS_AT_ONCE);
        let mut snapshot = Snapshot::new();
        while let Some(listed) = lists.next().await {
            let (resource, items) = listed?;
            for item in items {
                let text = |key: &str| item["metadata"][key].as_str().unwrap_or("").to_owned();
                let path = resource.object(&text("namespace"), &text("name"));
                snapshot.insert(path, (text("uid"), text("resourceVersion")));
            }
        }
        Ok(snapshot)
    }

    /// The resources that can be listed and deleted, each once, as the server is now.
    pub(crate) async fn listable(&self) -> Result<Vec<Resource>, Problem> {
        Ok(self.discover().await?.listable())
    }

    /// The same, as the server was when it was last asked.
    pub(crate) fn known_listable(&self) -> Vec<Resource> {
        self.kinds.lock().listable()
    }

    /// The resource and the path of an object.
    pub(crate) async fn locate(&self, object: &Value) -> Result<(Resource, String), Problem> {
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let known = self.kinds.lock().clone();
        let resource = match known.of_kind(&api_version, &kind) {
            Some(resource) => resource,
            None => self
                .discover()
                .await?
                .of_kind(&api_version, &kind)
                .ok_or_else(|| Problem::NotServed(format!("{kind} of {api_version}")))?,
        };
        let path = resource.object(
            namespace_of(&resource, object),
            &text(&object["metadata"]["name"]),
        );
        Ok((resource, path))
    }

    async fn find(&self, of: &Reference) -> Result<(Resource, String), Problem> {
        let resource = self.resolve(&of.kind).await?;
        let path = resource.object(namespace_or_default(&resource, &of.namespace), &of.name);
        Ok((resource, path))
    }

    /// The resource that kubectl would take this word for.
    pub(crate) async fn resolve(&self, word: &str) -> Result<Resource, Problem> {
        let known = self.kinds.lock().clone();
        match known.of_word(word) {
            Some(resource) => Ok(resource),
            None => self
                .discover()
                .await?
                .of_word(word)
                .ok_or_else(|| Problem::NotServed(word.to_owned())),
        }
    }
}

/// Objects without a namespace are in `default`, as kubectl has it.
fn namespace_of<'a>(resource: &Resource, object: &'a Value) -> &'a str {
    namespace_or_default(resource, object["metadata"]["namespace"].as_str().unwrap_or(""))
}

fn namespace_or_default<'a>(resource: &Resource, namespace: &'a str) -> &'a str {
    if resource.namespaced && namespace.is_empty() {
        "default"
    } else {
        namespace
    }
}

fn written(resource: Resource, answer: &Value) -> Written {
    Written {
        version: version_of(answer),
        managed: is_managed(answer),
        resource,
    }
}

/// Whether the control plane manages an object of a member.
pub(crate) fn is_managed(object: &Value) -> bool {
    object["metadata"]["labels"][keys::MANAGED] == "true"
}

pub(crate) fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}
