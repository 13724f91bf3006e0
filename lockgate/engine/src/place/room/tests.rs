//! How many replicas fit.

use lockgate_api::BindingSpec;
use serde_json::json;

use super::*;

fn room(summary: Value) -> Room {
    let mut cluster = Cluster::default();
    if !summary.is_null() {
        cluster.status.rest.insert("resourceSummary".into(), summary);
    }
    Room::of(&cluster)
}

fn needs(request: Value) -> Result<Needs, String> {
    Needs::of(&BindingSpec {
        replica_requirements: Some(json!({ "resourceRequest": request })),
        ..BindingSpec::default()
    })
}

#[test]
fn estimates() {
    // What the cluster says, what one replica needs, how many fit, what runs out.
    let table = [
        (json!(null), json!({}), 0, "pods"),
        (json!({}), json!({}), 0, "pods"),
        (json!({"allocatable": {"pods": "10"}}), json!({}), 10, "pods"),
        (
            json!({"allocatable": {"pods": "10"}, "allocated": {"pods": "4"}, "allocating": {"pods": 1}}),
            json!({}),
            5,
            "pods",
        ),
        (
            json!({"allocatable": {"pods": "110", "cpu": "4"}, "allocated": {"cpu": "1500m"}}),
            json!({"cpu": "500m"}),
            5,
            "cpu",
        ),
        (
            json!({"allocatable": {"pods": "110", "cpu": "4", "memory": "1Gi"}}),
            json!({"cpu": "500m", "memory": "512Mi"}),
            2,
            "memory",
        ),
        (
            json!({"allocatable": {"pods": "110", "cpu": "4"}}),
            json!({"example.com/gpu": 1}),
            0,
            "example.com/gpu",
        ),
        // More is used than there is; an amount that is none; less than none; more than anybody has.
        (
            json!({"allocatable": {"pods": "5"}, "allocated": {"pods": "9"}}),
            json!({}),
            0,
            "pods",
        ),
        (
            json!({"allocatable": {"pods": "5", "cpu": "much"}}),
            json!({"cpu": "1"}),
            0,
            "cpu",
        ),
        (
            json!({"allocatable": {"pods": "5", "cpu": "-4"}}),
            json!({"cpu": "1"}),
            0,
            "cpu",
        ),
        (
            json!({"allocatable": {"pods": "9e18"}}),
            json!({}),
            i64::from(i32::MAX),
            "pods",
        ),
        (
            json!({"allocatable": {"pods": "5"}, "allocated": {"pods": "-7"}}),
            json!({}),
            5,
            "pods",
        ),
    ];
    for (summary, request, expected, scarce) in table {
        let (room, needs) = (room(summary.clone()), needs(request.clone()).unwrap());
        assert_eq!(room.replicas(&needs), expected, "{summary} for {request}");
        assert_eq!(room.scarcest(&needs), scarce, "{summary} for {request}");
    }
}

#[test]
fn estimates_by_grades() {
    let range = |cpu: (i64, i64), memory: (&str, &str)| {
        json!([{"name": "cpu", "min": cpu.0, "max": cpu.1},
            {"name": "memory", "min": memory.0, "max": memory.1}])
    };
    let models = json!([
        {"grade": 0, "ranges": range((0, 2), ("0", "4Gi"))},
        {"grade": 1, "ranges": range((2, 4), ("4Gi", "16Gi"))},
        {"grade": 2, "ranges": range((4, i64::MAX), ("16Gi", "9223372036854775807"))},
    ]);
    let counts = json!([{"grade": 0, "count": 5}, {"grade": 1, "count": 3}, {"grade": 2, "count": 2}]);
    let room = |models: &Value| {
        let mut cluster = Cluster::default();
        cluster.spec.rest.insert("resourceModels".into(), models.clone());
        let summary = json!({"allocatable": {"pods": "100", "cpu": "40", "memory": "100Gi"},
            "allocatableModelings": counts});
        cluster.status.rest.insert("resourceSummary".into(), summary);
        Room::of(&cluster)
    };
    let usual = json!(lockgate_api::cluster::usual_models());
    // What one replica needs, how many fit by grades and by sums, and what runs out by grades.
    for (request, by_grades, by_sums, scarce) in [
        (json!({"cpu": "500m"}), 28, 80, LARGE_NODES),
        (json!({"cpu": "3"}), 2, 13, LARGE_NODES),
        (json!({"cpu": "5"}), 0, 8, LARGE_NODES),
        (json!({"cpu": "2", "memory": "10Gi"}), 2, 10, LARGE_NODES),
        // Nothing is asked for, or something that the grades do not name.
        (json!({}), 100, 100, "pods"),
        (json!({"example.com/gpu": 1, "cpu": 1}), 0, 0, "example.com/gpu"),
    ] {
        let needs = needs(request.clone()).unwrap();
        assert_eq!(room(&models).replicas(&needs), by_grades, "{request}");
        assert_eq!(room(&models).scarcest(&needs), scarce, "{request}");
        assert_eq!(room(&usual).replicas(&needs), by_sums, "{request}");
        assert_eq!(room(&json!("none")).replicas(&needs), by_sums, "{request}");
    }
}

#[test]
fn parts_count_together() {
    let parts = |parts: Value| {
        Needs::of_parts(&BindingSpec {
            components: serde_json::from_value(parts).unwrap(),
            ..BindingSpec::default()
        })
    };
    let needs = parts(json!([
        {"name": "master", "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "2"}}},
        {"name": "worker", "replicas": 3, "replicaRequirements": {"resourceRequest": {"cpu": "1", "memory": "1Gi"}}},
        {"name": "idle", "replicas": 0, "replicaRequirements": {"resourceRequest": {"example.com/gpu": 1}}},
    ]))
    .unwrap();
    for (allocatable, sets, scarce) in [
        (json!({"pods": "100", "cpu": "11", "memory": "30Gi"}), 2, "cpu"),
        (json!({"pods": "100", "cpu": "50", "memory": "8Gi"}), 2, "memory"),
        (json!({"pods": "7", "cpu": "50", "memory": "30Gi"}), 1, "pods"),
        (json!({"pods": "3", "cpu": "50", "memory": "30Gi"}), 0, "pods"),
    ] {
        let room = room(json!({ "allocatable": allocatable }));
        assert_eq!(room.replicas(&needs), sets, "{allocatable}");
        assert_eq!(room.scarcest(&needs), scarce, "{allocatable}");
    }
    let error = parts(json!([
        {"name": "a", "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "much"}}},
        {"name": "b", "replicas": 1},
    ]));
    assert_eq!(
        error.unwrap_err(),
        "resourceRequest.cpu of one replica is \"much\", which is no amount: correct the component \"a\" of the template"
    );
}

#[test]
fn a_need_that_is_no_amount_is_told() {
    for bad in [json!("much"), json!("-1"), json!([])] {
        let error = needs(json!({ "cpu": bad })).unwrap_err();
        assert!(
            error.starts_with("resourceRequest.cpu of one replica is "),
            "{error}"
        );
    }
    assert_eq!(
        needs(json!({"cpu": 0})).unwrap(),
        Needs::default(),
        "nothing is no need"
    );
}
