//! Every scenario on servers in this process. `SCENARIO=part` runs those whose names contain it, and
//! `SCENARIO_VARIANT=restart` or `=cut` runs them with the controllers stopped and killed on the way.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

mod support;

use lockgate_scenario::{CountedPlane, Embedded, Scenario, Variant, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scenario_holds() {
    support::start_logging();
    let variant = match std::env::var("SCENARIO_VARIANT").as_deref() {
        Ok("restart") => Variant::RestartBetweenSteps,
        Ok("cut") => Variant::CutEveryWrite,
        _ => Variant::Plain,
    };
    support::assert_passed(&support::run_embedded(support::chosen(), variant).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fight_names_the_other_side() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    // A restart forgets how often something was corrected.
    let files = [
        "drift-fight.yaml",
        "drift-of-different-fields.yaml",
        "deleted-again-and-again.yaml",
        "status-fight.yaml",
    ];
    let files = files.map(|name| folder.join(name));
    support::assert_passed(&support::run_embedded(files, Variant::Plain).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_with_its_definition_is_not_taken_for_deleted() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    // A restart forgets what went with its definition; clusters of which nobody says how they leave are there to stay.
    let files = ["definitions-deleted.yaml", "definition-of-clusters-deleted.yaml"];
    let files = files.map(|name| folder.join(name));
    support::assert_passed(&support::run_embedded(files, Variant::Plain).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_must_wait_to_leave_says_so() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    // A restart forgets how many have left.
    let scenario = Scenario::load(&folder.join("failover-takes-turns.yaml")).unwrap();
    let plane = CountedPlane::default();
    let outcome = run(&scenario, &mut Embedded::new(), &plane, Variant::Plain).await;
    support::assert_passed(&[outcome]);
    let text = plane.metrics.encode();
    for line in [
        r#"eviction_queue_depth{name="binding-eviction"} 0"#,
        r#"eviction_processing_total{name="binding-eviction",result="success"} 11"#,
        r#"eviction_processing_latency_seconds_count{name="binding-eviction"} 11"#,
        // All but the one that had to wait left at once.
        r#"eviction_processing_latency_seconds_bucket{le="0.512",name="binding-eviction"} 10"#,
    ] {
        assert!(
            text.lines().any(|other| other == line),
            "{line} is not in\n{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lost_a_binding_is_asked_first() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    // A restart forgets who had a binding that was taken by force.
    let files = [folder.join("name-of-a-binding-taken-by-force.yaml")];
    support::assert_passed(&support::run_embedded(files, Variant::Plain).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_figure_is_kept() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/figures.yaml");
    let scenario = Scenario::load(&file).unwrap();
    let plane = CountedPlane::default();
    let outcome = run(&scenario, &mut Embedded::new(), &plane, Variant::Plain).await;
    support::assert_passed(&[outcome]);
    let text = plane.metrics.encode();
    for name in [
        r#"resource_match_policy_duration_seconds_count "#,
        r#"resource_apply_policy_duration_seconds_count{result="success"} "#,
        r#"resource_apply_policy_duration_seconds_count{result="error"} "#,
        r#"policy_apply_attempts_total{result="error"} "#,
        r#"binding_sync_work_duration_seconds_count{result="success"} "#,
        r#"work_sync_workload_duration_seconds_count{result="success"} "#,
        r#"work_sync_workload_duration_seconds_count{result="error"} "#,
        r#"cluster_sync_status_duration_seconds_count{member_cluster="member1"} "#,
        r#"karmada_scheduler_scheduling_algorithm_duration_seconds_count{schedule_step="Place"} "#,
        r#"karmada_scheduler_queue_incoming_bindings_total{event="BindingAdd"} "#,
        r#"karmada_scheduler_queue_incoming_bindings_total{event="BindingUpdate"} "#,
        r#"create_resource_to_cluster{result="success",apiversion="v1",kind="ConfigMap",member_cluster="member1",recreate="false"} "#,
        r#"create_resource_to_cluster{result="error",apiversion="v1",kind="ConfigMap",member_cluster="member2",recreate="false"} "#,
    ] {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line[name.len()..].parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{name}: {line:?}");
    }
    // What could not be made was not updated.
    let updated = r#"update_resource_to_cluster{result="error",apiversion="v1",kind="ConfigMap""#;
    assert!(!text.contains(updated), "{text}");
}
