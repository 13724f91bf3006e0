//! A server with a member, and how to wait for what it does.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lockgate_sim::{Member, SimOptions};
use machinery_apiserver::{ApiServer, Local, Options};
use machinery_auth::{Pki, UserInfo};
use serde_json::{Value, json};

/// How long something may take, in the time of the test.
const PATIENCE: Duration = Duration::from_secs(7200);

pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) local: Local,
    _member: Member,
}

impl Cluster {
    /// A member with a delay of two seconds.
    pub(crate) async fn new() -> Self {
        Self::with(SimOptions {
            delay: Duration::from_secs(2),
            ..SimOptions::default()
        })
        .await
    }

    pub(crate) async fn with(options: SimOptions) -> Self {
        let pki = Arc::new(Pki::ephemeral().expect("keys can be made"));
        let start = tokio::time::Instant::now();
        let epoch = Timestamp::from_second(1_767_225_600).expect("a time of this century");
        let mut server_options = Options::new(pki);
        server_options.clock = Arc::new(move || epoch + start.elapsed());
        let server = ApiServer::start(server_options)
            .await
            .expect("a server starts in memory");
        let local = server.local(UserInfo::new("tester", ["system:masters"]));
        let member = Member::start(&server, options);
        Self {
            server,
            local,
            _member: member,
        }
    }

    /// Waits until something holds, looking again after every change.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Local) -> bool) {
        let mut changes = self.local.changes(65_536);
        let watching = async {
            while !holds(&self.local) {
                changes.next().await.expect("the server lives");
            }
        };
        if tokio::time::timeout(PATIENCE, watching).await.is_err() {
            panic!("it never came to this: {what}\n{}", self.describe());
        }
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Checks that nothing is written for a long time.
    pub(crate) async fn assert_settled(&self) {
        self.pass(10).await;
        let before = self.server.revision();
        self.pass(3600).await;
        assert_eq!(
            self.server.revision(),
            before,
            "a settled member writes nothing\n{}",
            self.describe()
        );
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for (api_version, plural) in [
            ("v1", "nodes"),
            ("apps/v1", "deployments"),
            ("apps/v1", "replicasets"),
            ("v1", "pods"),
        ] {
            for object in self.local.list(api_version, plural, "") {
                text += &format!("{plural} {} {}\n", object["metadata"]["name"], object["status"]);
            }
        }
        text
    }

    pub(crate) async fn create(&self, object: Value) -> Value {
        self.local.create(object).await.expect("the object is valid")
    }

    /// Changes an object of the default namespace, as often as somebody else is faster.
    pub(crate) async fn change(
        &self,
        api_version: &str,
        plural: &str,
        name: &str,
        edit: impl Fn(&mut Value),
    ) {
        for _ in 0..10 {
            let namespace = if plural == "nodes" { "" } else { "default" };
            let mut object = self
                .local
                .get(api_version, plural, namespace, name)
                .expect("the object is there");
            edit(&mut object);
            match self.local.update(object).await {
                Ok(_) => return,
                Err(error) if error.is_conflict() => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("{name} could not be changed");
    }

    pub(crate) async fn delete(&self, api_version: &str, plural: &str, name: &str) {
        let namespace = if plural == "nodes" { "" } else { "default" };
        self.local
            .delete(api_version, plural, namespace, name, None)
            .await
            .expect("the object is there");
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        self.local.list("v1", "pods", "default")
    }
}

pub(crate) fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

/// A workload of the apps group.
pub(crate) fn workload(kind: &str, name: &str, replicas: i64, image: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name, image)},
    });
    if kind != "DaemonSet" {
        object["spec"]["replicas"] = json!(replicas);
    }
    object
}

pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

pub(crate) fn reason<'v>(object: &'v Value, kind: &str) -> &'v str {
    condition(object, kind)
        .and_then(|condition| condition["reason"].as_str())
        .unwrap_or("")
}
