//! A controller that owns what it makes: children come back, errors are tried again, deletion cascades.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::Config;
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use crate::definitions::{Garden, GardenStatus, define, garden};
use crate::harness::Cluster;

both!(
    a_controller_plants_and_replants,
    a_controller_tries_again,
    what_is_owned_goes_with_its_owner,
);

/// What the reconciler shares.
struct Gardener {
    client: Client,
    /// How many more times planting fails.
    clumsy: AtomicUsize,
    failures: AtomicUsize,
}

#[derive(Debug)]
enum Trouble {
    Clumsy,
    Api(kube::Error),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clumsy => f.write_str("the plant fell over"),
            Self::Api(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

async fn tend(garden: Arc<Garden>, gardener: Arc<Gardener>) -> Result<Action, Trouble> {
    let less = |n: usize| n.checked_sub(1);
    let order = Ordering::SeqCst;
    if gardener.clumsy.fetch_update(order, order, less).is_ok() {
        return Err(Trouble::Clumsy);
    }
    let namespace = garden.namespace().unwrap();
    let plants: Api<ConfigMap> = Api::namespaced(gardener.client.clone(), &namespace);
    for plant in &garden.spec.plants {
        let mut child = ConfigMap::default();
        child.metadata.name = Some(format!("{}-{plant}", garden.name_any()));
        child.metadata.owner_references = garden.controller_owner_ref(&()).map(|owner| vec![owner]);
        match plants.create(&PostParams::default(), &child).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => {
                other?;
            }
        }
    }
    let planted = i32::try_from(garden.spec.plants.len()).unwrap();
    if garden.status != Some(GardenStatus { planted }) {
        let gardens: Api<Garden> = Api::namespaced(gardener.client.clone(), &namespace);
        let patch = Patch::Merge(json!({"status": {"planted": planted}}));
        gardens
            .patch_status(&garden.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

fn again(_: Arc<Garden>, _: &Trouble, gardener: Arc<Gardener>) -> Action {
    gardener.failures.fetch_add(1, Ordering::SeqCst);
    Action::requeue(Duration::from_millis(1))
}

/// A running controller; it ends with its handle.
struct Running {
    gardener: Arc<Gardener>,
    _task: AbortOnDropHandle<()>,
}

fn run(cluster: &Cluster, config: Config, clumsy: usize) -> Running {
    let client = cluster.client.clone();
    let gardener = Arc::new(Gardener {
        client: client.clone(),
        clumsy: AtomicUsize::new(clumsy),
        failures: AtomicUsize::new(0),
    });
    let stream = Controller::new(Api::<Garden>::all(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::all(client), config)
        .run(tend, again, gardener.clone());
    let task = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    Running {
        gardener,
        _task: AbortOnDropHandle::new(task),
    }
}

async fn a_controller_plants_and_replants(cluster: Cluster) {
    define(&cluster.client).await;
    let gardens: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let plants: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for (name, config) in [
        ("g", Config::default()),
        ("h", Config::default().streaming_lists()),
        ("i", Config::default().any_semantic()),
    ] {
        let _running = run(&cluster, config, 0);
        let made = gardens
            .create(&PostParams::default(), &garden(name, &["rose", "ivy"]))
            .await
            .unwrap();
        let done = |g: Option<&Garden>| g.and_then(|g| g.status.as_ref()).is_some_and(|s| s.planted == 2);
        let seen = await_condition(gardens.clone(), name, done)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(seen.meta().generation, Some(1), "a status is no new generation");
        let rose = plants.get(&format!("{name}-rose")).await.unwrap();
        let owner = &rose.owner_references()[0];
        assert_eq!(
            (owner.kind.as_str(), &owner.uid),
            ("Garden", &made.uid().unwrap())
        );

        // A child that is deleted is made again.
        let uid = rose.uid().unwrap();
        plants
            .delete(&rose.name_any(), &DeleteParams::default())
            .await
            .unwrap();
        let anew = |p: Option<&ConfigMap>| p.is_some_and(|p| p.uid().as_deref() != Some(&uid));
        await_condition(plants.clone(), &rose.name_any(), anew)
            .await
            .unwrap();

        // A changed owner is tended.
        let patch = Patch::Merge(json!({"spec": {"plants": ["rose", "ivy", "moss"]}}));
        gardens
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
        let moss = format!("{name}-moss");
        await_condition(plants.clone(), &moss, conditions::is_created())
            .await
            .unwrap();
    }
}

async fn a_controller_tries_again(cluster: Cluster) {
    define(&cluster.client).await;
    let gardens: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let running = run(&cluster, Config::default(), 3);
    gardens
        .create(&PostParams::default(), &garden("g", &["rose"]))
        .await
        .unwrap();
    let done = |g: Option<&Garden>| g.is_some_and(|g| g.status.is_some());
    await_condition(gardens, "g", done).await.unwrap();
    assert_eq!(running.gardener.failures.load(Ordering::SeqCst), 3);
}

async fn what_is_owned_goes_with_its_owner(cluster: Cluster) {
    define(&cluster.client).await;
    let gardens: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let plants: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let _running = run(&cluster, Config::default(), 0);
    for (name, params, stays) in [
        ("g", DeleteParams::background(), false),
        ("h", DeleteParams::foreground(), false),
        ("i", DeleteParams::orphan(), true),
    ] {
        let made = gardens
            .create(&PostParams::default(), &garden(name, &["rose"]))
            .await
            .unwrap();
        let done = |g: Option<&Garden>| g.is_some_and(|g| g.status.is_some());
        await_condition(gardens.clone(), name, done).await.unwrap();
        let child = plants.get(&format!("{name}-rose")).await.unwrap();
        gardens.delete(name, &params).await.unwrap();
        let uid = made.uid().unwrap();
        await_condition(gardens.clone(), name, conditions::is_deleted(&uid))
            .await
            .unwrap();
        if stays {
            let left = plants.get(&child.name_any()).await.unwrap();
            assert_eq!(left.uid(), child.uid());
            assert!(left.owner_references().is_empty());
        } else {
            let uid = child.uid().unwrap();
            await_condition(plants.clone(), &child.name_any(), conditions::is_deleted(&uid))
                .await
                .unwrap();
        }
    }
    let left = plants.list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left
        .iter()
        .map(ResourceExt::name_any)
        .filter(|n| n.ends_with("-rose"))
        .collect();
    assert_eq!(left, ["i-rose"]);
}
