//! kube's finalizer helper: its patches, step by step and in a controller.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Error, Event, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::Config;
use kube::{Resource, ResourceExt};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use crate::definitions::{Garden, define, garden};
use crate::harness::{Cluster, config_map};

both!(
    a_finalizer_comes_and_goes,
    stale_views_change_nothing,
    a_failed_cleanup_keeps_the_object,
    a_controller_cleans_up,
);

const OURS: &str = "lab.io/ours";

/// One round of the helper on the object as it is seen; says what it was told to do.
async fn round(api: &Api<ConfigMap>, seen: &ConfigMap) -> Result<&'static str, Error<Infallible>> {
    let mut told = "nothing";
    let work = |event| {
        told = match event {
            Event::Apply(_) => "apply",
            Event::Cleanup(_) => "clean up",
        };
        std::future::ready(Ok(Action::await_change()))
    };
    finalizer(api, OURS, Arc::new(seen.clone()), work).await?;
    Ok(told)
}

/// The code of a refused patch.
fn refused(result: Result<&'static str, Error<Infallible>>) -> u16 {
    match result.unwrap_err() {
        Error::AddFinalizer(kube::Error::Api(status)) | Error::RemoveFinalizer(kube::Error::Api(status)) => {
            assert!(status.is_invalid(), "{status:?}");
            status.code
        }
        other => panic!("{other:?}"),
    }
}

async fn a_finalizer_comes_and_goes(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for others in [json!(null), json!([]), json!(["lab.io/theirs"])] {
        let mut wanted = config_map("a", "1");
        wanted.metadata.finalizers = serde_json::from_value(others.clone()).unwrap();
        let made = api.create(&PostParams::default(), &wanted).await.unwrap();
        let before = made.finalizers().to_vec();
        assert_eq!(round(&api, &made).await.unwrap(), "nothing");
        let held = api.get("a").await.unwrap();
        assert_eq!(
            held.finalizers(),
            [before.as_slice(), &[OURS.to_owned()]].concat()
        );
        assert_eq!(round(&api, &held).await.unwrap(), "apply");
        assert_eq!(api.get("a").await.unwrap(), held);

        let going = api
            .delete("a", &DeleteParams::default())
            .await
            .unwrap()
            .left()
            .unwrap();
        assert!(going.meta().deletion_timestamp.is_some());
        assert_eq!(round(&api, &going).await.unwrap(), "clean up");
        let rest = api.get_opt("a").await.unwrap();
        if before.is_empty() {
            assert!(rest.is_none());
        } else {
            let rest = rest.unwrap();
            assert_eq!(rest.finalizers(), before);
            assert_eq!(round(&api, &rest).await.unwrap(), "nothing");
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            api.patch("a", &PatchParams::default(), &free).await.unwrap();
            assert!(api.get_opt("a").await.unwrap().is_none());
        }
    }
}

async fn stale_views_change_nothing(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let made = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let set = |list: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": list}}));
    let params = PatchParams::default();
    // Somebody else added one since we looked: the test for none fails.
    let other = api.patch("a", &params, &set(&["lab.io/other"])).await.unwrap();
    assert_eq!(refused(round(&api, &made).await), 422);
    // And one more: the test for exactly these fails.
    api.patch("a", &params, &set(&["lab.io/other", "lab.io/more"]))
        .await
        .unwrap();
    assert_eq!(refused(round(&api, &other).await), 422);
    api.patch("a", &params, &set(&["lab.io/other", OURS]))
        .await
        .unwrap();
    let going = api
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    // Ours moved: the test of its place fails, and nobody else's is removed.
    api.patch("a", &params, &set(&[OURS])).await.unwrap();
    assert_eq!(refused(round(&api, &going).await), 422);
    let left = api.get("a").await.unwrap();
    assert_eq!(left.finalizers(), [OURS]);
    assert_eq!(round(&api, &left).await.unwrap(), "clean up");
    assert!(api.get_opt("a").await.unwrap().is_none());
}

async fn a_failed_cleanup_keeps_the_object(cluster: Cluster) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let mut wanted = config_map("a", "1");
    wanted.finalizers_mut().push(OURS.into());
    api.create(&PostParams::default(), &wanted).await.unwrap();
    let going = api
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    let fails = |_| std::future::ready(Err::<Action, _>(std::fmt::Error));
    let result = finalizer(&api, OURS, Arc::new(going.clone()), fails).await;
    assert!(matches!(result, Err(Error::CleanupFailed(_))));
    assert_eq!(api.get("a").await.unwrap(), going);
    // A second delete changes nothing, and no finalizer is added to what is going.
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let add = Patch::Merge(json!({"metadata": {"finalizers": [OURS, "lab.io/late"]}}));
    let late = api.patch("a", &PatchParams::default(), &add).await;
    assert!(crate::harness::refusal(late).is_invalid());
}

type Trouble = Error<kube::Error>;

async fn tend(garden: Arc<Garden>, client: Arc<kube::Client>) -> Result<Action, Trouble> {
    let api: Api<Garden> = Api::default_namespaced((*client).clone());
    let plants: Api<ConfigMap> = Api::default_namespaced((*client).clone());
    finalizer(&api, OURS, garden, async |event| {
        match event {
            Event::Apply(garden) => {
                let name = garden.name_any();
                let entry = plants.entry(&name).await?;
                let mut entry = entry.or_insert(|| config_map(&name, "planted"));
                match entry.commit(&PostParams::default()).await {
                    Ok(()) => {}
                    Err(kube::api::entry::CommitError::Save(error)) => return Err(error),
                    Err(other) => panic!("{other}"),
                }
            }
            Event::Cleanup(garden) => {
                plants
                    .delete(&garden.name_any(), &DeleteParams::default())
                    .await?;
            }
        }
        Ok(Action::await_change())
    })
    .await
}

async fn a_controller_cleans_up(cluster: Cluster) {
    define(&cluster.client).await;
    let client = cluster.client.clone();
    let gardens: Api<Garden> = Api::default_namespaced(client.clone());
    let plants: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let again = |_: Arc<Garden>, _: &Trouble, _| Action::requeue(Duration::from_millis(1));
    let stream = Controller::new(gardens.clone(), Config::default()).run(tend, again, Arc::new(client));
    let _task = AbortOnDropHandle::new(tokio::spawn(stream.for_each(|_| std::future::ready(()))));
    for _ in 0..3 {
        let made = gardens
            .create(&PostParams::default(), &garden("g", &[]))
            .await
            .unwrap();
        await_condition(plants.clone(), "g", conditions::is_created())
            .await
            .unwrap();
        assert_eq!(gardens.get("g").await.unwrap().finalizers(), [OURS]);
        gardens.delete("g", &DeleteParams::default()).await.unwrap();
        let uid = made.uid().unwrap();
        await_condition(gardens.clone(), "g", conditions::is_deleted(&uid))
            .await
            .unwrap();
        assert!(plants.get_opt("g").await.unwrap().is_none());
    }
}
