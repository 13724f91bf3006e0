//! Events as kube's recorder writes them and as others read them.

use k8s_openapi::api::core::v1::{self as core, ConfigMap, Namespace};
use k8s_openapi::api::events::v1 as events;
use kube::api::{Api, ListParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Resource, ResourceExt};

use crate::definitions::{define, garden};
use crate::harness::{Cluster, config_map};

both!(
    repeated_events_become_a_series,
    events_are_found_by_what_they_are_about,
    events_about_cluster_wide_objects,
);

fn recorder(cluster: &Cluster) -> Recorder {
    let reporter = Reporter {
        controller: "gardener".into(),
        instance: Some("gardener-1".into()),
    };
    Recorder::new(cluster.client.clone(), reporter)
}

fn event(reason: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: reason.into(),
        note: Some(format!("it {reason}")),
        action: "Watering".into(),
        secondary: None,
    }
}

async fn repeated_events_become_a_series(cluster: Cluster) {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let about = maps
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let about = about.object_ref(&());
    let recorder = recorder(&cluster);
    let new: Api<events::Event> = Api::default_namespaced(cluster.client.clone());
    let old: Api<core::Event> = Api::default_namespaced(cluster.client.clone());
    for published in 1..=3 {
        recorder.publish(&event("rains"), &about).await.unwrap();
        let list = new
            .list(&ListParams::default().fields("regarding.name=a"))
            .await
            .unwrap();
        assert_eq!(list.items.len(), 1);
        let seen = &list.items[0];
        assert_eq!(
            seen.series.as_ref().map(|s| s.count),
            (published > 1).then_some(published)
        );
        assert_eq!(seen.note.as_deref(), Some("it rains"));
        assert_eq!(seen.regarding.as_ref().unwrap().uid, about.uid);

        // The same event, as kubectl describe asks for it.
        let fields = "involvedObject.kind=ConfigMap,involvedObject.namespace=default,involvedObject.name=a";
        let fields = format!("{fields},involvedObject.uid={}", about.uid.as_deref().unwrap());
        let list = old.list(&ListParams::default().fields(&fields)).await.unwrap();
        assert_eq!(list.items.len(), 1);
        let same = &list.items[0];
        assert_eq!(same.uid(), seen.uid());
        assert_eq!(same.resource_version(), seen.resource_version());
        assert_eq!(same.message.as_deref(), Some("it rains"));
        assert_eq!(same.reason.as_deref(), Some("rains"));
        assert_eq!(same.action.as_deref(), Some("Watering"));
        assert_eq!(same.type_.as_deref(), Some("Warning"));
        assert_eq!(same.reporting_component.as_deref(), Some("gardener"));
        assert_eq!(same.reporting_instance.as_deref(), Some("gardener-1"));
        assert_eq!(same.involved_object.name.as_deref(), Some("a"));
        assert_eq!(same.event_time, seen.event_time);
        let count = same.series.as_ref().map(|s| s.count.unwrap());
        assert_eq!(count, (published > 1).then_some(published));
    }
}

async fn events_are_found_by_what_they_are_about(cluster: Cluster) {
    define(&cluster.client).await;
    let gardens = Api::default_namespaced(cluster.client.clone());
    let recorder = recorder(&cluster);
    for name in ["g", "h"] {
        let about = gardens
            .create(&PostParams::default(), &garden(name, &[]))
            .await
            .unwrap();
        recorder
            .publish(&event("rains"), &about.object_ref(&()))
            .await
            .unwrap();
        recorder
            .publish(&event("snows"), &about.object_ref(&()))
            .await
            .unwrap();
    }
    let old: Api<core::Event> = Api::default_namespaced(cluster.client.clone());
    for (fields, expected) in [
        ("involvedObject.kind=Garden", 4),
        ("involvedObject.kind=Garden,involvedObject.name=g", 2),
        ("involvedObject.apiVersion=lab.io/v1,reason=snows", 2),
        ("involvedObject.name=g,reason=snows,type=Warning", 1),
        ("involvedObject.name=g,reason=snows,type=Normal", 0),
        ("involvedObject.kind=Pod", 0),
    ] {
        let list = old.list(&ListParams::default().fields(fields)).await.unwrap();
        assert_eq!(list.items.len(), expected, "{fields}");
    }
    let new: Api<events::Event> = Api::all(cluster.client.clone());
    let fields = "regarding.name=h,reason=rains,reportingController=gardener";
    assert_eq!(
        new.list(&ListParams::default().fields(fields))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}

async fn events_about_cluster_wide_objects(cluster: Cluster) {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let about = namespaces.get("kube-public").await.unwrap().object_ref(&());
    recorder(&cluster).publish(&event("rains"), &about).await.unwrap();
    let old: Api<core::Event> = Api::default_namespaced(cluster.client.clone());
    let fields = "involvedObject.kind=Namespace,involvedObject.name=kube-public";
    assert_eq!(
        old.list(&ListParams::default().fields(fields))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}
