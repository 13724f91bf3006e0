//! Custom resources from derived types: rules, defaults, columns, subresources, versions.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::crd::merge_crds;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, CustomResource, CustomResourceExt, KubeSchema, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::harness::{Cluster, parse, refusal};

both!(
    a_definition_is_used_at_once,
    defaults_are_filled_in_and_the_rest_is_pruned,
    rules_hold,
    status_and_scale,
    columns_are_printed,
    fields_select,
    a_changed_definition_counts_at_once,
    versions_are_merged,
    a_definition_takes_its_objects_with_it,
);

/// A garden, whose plants are ConfigMaps.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "lab.io",
    version = "v1",
    kind = "Garden",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    status = "GardenStatus",
    shortname = "gd",
    category = "all",
    selectable = ".spec.soil",
    printcolumn(name = "Soil", type_ = "string", json_path = ".spec.soil"),
    printcolumn(name = "Wanted", type_ = "integer", json_path = ".spec.beds"),
    scale(spec_replicas_path = ".spec.beds", status_replicas_path = ".status.planted"),
    validation = Rule::new("self.metadata.name != 'desert'").message("nothing grows there")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("size(self.plants) <= self.beds").message("more plants than beds").field_path(".plants"))]
pub(crate) struct GardenSpec {
    #[serde(default)]
    pub(crate) plants: Vec<String>,
    #[serde(default = "three")]
    #[schemars(range(min = 0, max = 50))]
    pub(crate) beds: i32,
    #[serde(default = "loam")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("soil stays where it is"))]
    pub(crate) soil: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notes: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<Fence>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Fence {
    Wood { height_cm: u32 },
    Hedge { species: String },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GardenStatus {
    pub(crate) planted: i32,
}

fn three() -> i32 {
    3
}

fn loam() -> String {
    "loam".into()
}

/// A garden with these plants.
pub(crate) fn garden(name: &str, plants: &[&str]) -> Garden {
    let spec = GardenSpec {
        plants: plants.iter().map(|p| (*p).to_owned()).collect(),
        beds: 3,
        soil: loam(),
        ..GardenSpec::default()
    };
    Garden::new(name, spec)
}

/// Defines gardens, and waits for nothing.
pub(crate) async fn define(client: &Client) -> CustomResourceDefinition {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &Garden::crd())
        .await
        .unwrap()
}

fn post() -> PostParams {
    PostParams::default()
}

/// A patch of anything.
fn merge(value: Value) -> Patch<Value> {
    Patch::Merge(value)
}

async fn a_definition_is_used_at_once(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
    let made = api.create(&post(), &garden("g", &["rose"])).await.unwrap();
    assert_eq!(made.meta().generation, Some(1));
    assert_eq!(made.spec, garden("g", &["rose"]).spec);
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let established = await_condition(definitions, Garden::crd_name(), conditions::is_crd_established());
    let status = established.await.unwrap().unwrap().status.unwrap();
    assert_eq!(status.stored_versions.unwrap(), ["v1"]);
    assert_eq!(status.accepted_names.unwrap().singular.as_deref(), Some("garden"));
}

async fn defaults_are_filled_in_and_the_rest_is_pruned(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<kube::api::DynamicObject> =
        Api::default_namespaced_with(cluster.client.clone(), &Garden::api_resource());
    let bare = json!({"apiVersion": "lab.io/v1", "kind": "Garden", "metadata": {"name": "g"},
        "spec": {"gnome": true, "fence": {"wood": {"heightCm": 90, "colour": "red"}}}});
    let made = api.create(&post(), &parse(bare)).await.unwrap();
    assert_eq!(
        made.data["spec"],
        json!({"plants": [], "beds": 3, "soil": "loam", "fence": {"wood": {"heightCm": 90}}})
    );
    let typed: Garden = made.try_parse().unwrap();
    assert_eq!(typed.spec.fence, Some(Fence::Wood { height_cm: 90 }));
}

async fn rules_hold(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let full = garden("g", &["a", "b", "c", "d"]);
    let mut wide = garden("g", &[]);
    wide.spec.beds = 51;
    for (wrong, field, says) in [
        (&full, "spec.plants", "more plants than beds"),
        (&wide, "spec.beds", "should be less than or equal to 50"),
        (&garden("desert", &[]), "<nil>", "nothing grows there"),
    ] {
        let status = refusal(api.create(&post(), wrong).await);
        assert!(status.is_invalid(), "{status:?}");
        assert_eq!(status.code, 422);
        let details = status.details.unwrap();
        assert_eq!(
            (details.group.as_str(), details.kind.as_str()),
            ("lab.io", "Garden")
        );
        let cause = &details.causes[0];
        assert!(cause.message.contains(says), "{cause:?}");
        assert_eq!(cause.field, field, "{cause:?}");
    }
    api.create(&post(), &garden("g", &["a"])).await.unwrap();
    let patch = |value| merge(json!({"spec": value}));
    let moved = api
        .patch("g", &PatchParams::default(), &patch(json!({"soil": "clay"})))
        .await;
    let status = refusal(moved);
    assert!(status.message.contains("soil stays where it is"), "{status:?}");
    let planted = api
        .patch(
            "g",
            &PatchParams::default(),
            &patch(json!({"plants": ["b", "c"]})),
        )
        .await
        .unwrap();
    assert_eq!(planted.spec.plants, ["b", "c"]);
    let strategic = Patch::Strategic(json!({"spec": {"beds": 4}}));
    let status = refusal(api.patch("g", &PatchParams::default(), &strategic).await);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (415, "UnsupportedMediaType")
    );
}

async fn status_and_scale(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let mut wanted = garden("g", &["a"]);
    wanted.status = Some(GardenStatus { planted: 9 });
    let made = api.create(&post(), &wanted).await.unwrap();
    assert_eq!(made.status, None, "a status is not created");
    let mut wanted = made.clone();
    wanted.status = Some(GardenStatus { planted: 1 });
    wanted.spec.beds = 40;
    let reported = api.replace_status("g", &post(), &wanted).await.unwrap();
    assert_eq!(reported.status, wanted.status);
    assert_eq!(reported.spec, made.spec);
    assert_eq!(reported.meta().generation, Some(1));
    let patch = merge(json!({"status": {"planted": 2}}));
    let patched = api
        .patch_status("g", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.status, Some(GardenStatus { planted: 2 }));
    let wrong = merge(json!({"status": {"planted": "two"}}));
    assert!(refusal(api.patch_status("g", &PatchParams::default(), &wrong).await).is_invalid());

    let scale = api.get_scale("g").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    assert_eq!(scale.status.unwrap().replicas, 2);
    let patch = merge(json!({"spec": {"replicas": 7}}));
    api.patch_scale("g", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let scaled = api.get("g").await.unwrap();
    assert_eq!((scaled.spec.beds, scaled.meta().generation), (7, Some(2)));
    let patch = merge(json!({"spec": {"replicas": 70}}));
    assert!(refusal(api.patch_scale("g", &PatchParams::default(), &patch).await).is_invalid());
}

async fn columns_are_printed(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    api.create(&post(), &garden("g", &["a"])).await.unwrap();
    let request = http::Request::get(api.resource_url())
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = cluster.client.request(request).await.unwrap();
    assert_eq!(table["kind"], "Table");
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].clone())
        .collect();
    assert_eq!(columns, ["Name", "Soil", "Wanted"]);
    assert_eq!(table["rows"][0]["cells"], json!(["g", "loam", 3]));
}

async fn fields_select(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    for (name, soil) in [("g", "loam"), ("h", "clay")] {
        let mut wanted = garden(name, &[]);
        wanted.spec.soil = soil.into();
        api.create(&post(), &wanted).await.unwrap();
    }
    let clay = ListParams::default().fields("spec.soil=clay");
    let names: Vec<_> = api
        .list(&clay)
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["h"]);
    let status = refusal(api.list(&ListParams::default().fields("spec.beds=3")).await);
    assert_eq!(status.code, 400);
}

async fn a_changed_definition_counts_at_once(cluster: Cluster) {
    define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    // Until then its status changes, and an entry may be overtaken.
    let established = conditions::is_crd_established();
    await_condition(definitions.clone(), Garden::crd_name(), established)
        .await
        .unwrap();
    let mut entry = definitions
        .entry(Garden::crd_name())
        .await
        .unwrap()
        .or_insert(|| panic!("it is there"));
    let spec = &mut entry.get_mut().spec.versions[0];
    let schema = spec.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    let garden_spec = schema.properties.as_mut().unwrap().get_mut("spec").unwrap();
    let beds = garden_spec.properties.as_mut().unwrap().get_mut("beds").unwrap();
    beds.maximum = Some(4.0);
    entry.commit(&post()).await.unwrap();
    let mut wide = garden("g", &[]);
    wide.spec.beds = 5;
    assert!(refusal(api.create(&post(), &wide).await).is_invalid());
}

mod next {
    //! The next version of a garden.
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "lab.io", version = "v2", kind = "Garden", namespaced)]
    pub(super) struct GardenSpec {
        pub(super) plants: Vec<String>,
    }
}

async fn versions_are_merged(cluster: Cluster) {
    let merged = merge_crds(vec![Garden::crd(), next::Garden::crd()], "v1").unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    definitions.create(&post(), &merged).await.unwrap();
    let old: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let new: Api<next::Garden> = Api::default_namespaced(cluster.client.clone());
    let made = old.create(&post(), &garden("g", &["rose"])).await.unwrap();
    let seen = new.get("g").await.unwrap();
    assert_eq!(seen.spec.plants, ["rose"]);
    assert_eq!(seen.uid(), made.uid());
    let patch = merge(json!({"spec": {"plants": ["ivy"]}}));
    new.patch("g", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(old.get("g").await.unwrap().spec.plants, ["ivy"]);
}

async fn a_definition_takes_its_objects_with_it(cluster: Cluster) {
    let defined = define(&cluster.client).await;
    let api: Api<Garden> = Api::default_namespaced(cluster.client.clone());
    let made = api.create(&post(), &garden("g", &[])).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let name = Garden::crd_name();
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    let uid = defined.uid().unwrap();
    await_condition(definitions, name, conditions::is_deleted(&uid))
        .await
        .unwrap();
    let gone = refusal(api.get("g").await);
    assert_eq!(gone.code, 404);
    // Defined again, it starts empty.
    define(&cluster.client).await;
    assert!(api.get_opt("g").await.unwrap().is_none());
    let anew = api.create(&post(), &garden("g", &[])).await.unwrap();
    assert_ne!(anew.uid(), made.uid());
}
