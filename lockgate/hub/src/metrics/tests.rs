//! What is exposed.

use super::*;

#[test]
fn exposed_names_are_the_known_ones() {
    let metrics = Metrics::new();
    let took = Duration::from_millis(3);
    metrics.match_policy(took);
    metrics.apply_policy(true, took);
    metrics.preempt_policy(false);
    metrics.sync_work(true, took);
    metrics.sync_workload(true, took);
    metrics.created(true, "apps/v1", "Deployment", "m1", false);
    metrics.updated(true, "apps/v1", "Deployment", "m1", true);
    metrics.deleted(false, "apps/v1", "Deployment", "m1");
    let figures = ClusterFigures {
        ready: true,
        nodes: 3,
        cpu_allocatable: 1.5,
        ..ClusterFigures::default()
    };
    metrics.cluster("m1", &figures);
    metrics.cluster_sync("m1", took);
    metrics.placed(true, "reconcile", took);
    metrics.placing_step("Place", took);
    metrics.to_be_placed("BindingAdd");
    let queue = metrics.queue("template");
    for _ in 0..8 {
        queue.added();
    }
    queue.taken(took);
    queue.done(took, true);
    metrics.evictions_waiting("shop", "m1", 2);
    metrics.evictions_waiting("", "m1", 1);
    metrics.evictions_waiting("", "m1", -1);
    metrics.evicted("shop", true, took);
    metrics.evicted("", false, took);
    metrics.event_dropped();
    let text = metrics.encode();
    for line in [
        r#"resource_match_policy_duration_seconds_count 1"#,
        r#"resource_apply_policy_duration_seconds_count{result="success"} 1"#,
        r#"policy_apply_attempts_total{result="success"} 1"#,
        r#"policy_preemption_total{result="error"} 1"#,
        r#"binding_sync_work_duration_seconds_count{result="success"} 1"#,
        r#"work_sync_workload_duration_seconds_count{result="success"} 1"#,
        r#"create_resource_to_cluster{result="success",apiversion="apps/v1",kind="Deployment",member_cluster="m1",recreate="false"} 1"#,
        r#"update_resource_to_cluster{result="success",apiversion="apps/v1",kind="Deployment",member_cluster="m1",operationResult="updated"} 1"#,
        r#"delete_resource_from_cluster{result="error",apiversion="apps/v1",kind="Deployment",member_cluster="m1"} 1"#,
        r#"cluster_ready_state{member_cluster="m1"} 1"#,
        r#"cluster_node_number{member_cluster="m1"} 3"#,
        r#"cluster_ready_node_number{member_cluster="m1"} 0"#,
        r#"cluster_cpu_allocatable_number{member_cluster="m1"} 1.5"#,
        r#"cluster_memory_allocated_bytes{member_cluster="m1"} 0.0"#,
        r#"cluster_sync_status_duration_seconds_count{member_cluster="m1"} 1"#,
        r#"karmada_scheduler_schedule_attempts_total{result="scheduled",schedule_type="reconcile"} 1"#,
        r#"karmada_scheduler_e2e_scheduling_duration_seconds_count{result="scheduled",schedule_type="reconcile"} 1"#,
        r#"karmada_scheduler_scheduling_algorithm_duration_seconds_count{schedule_step="Place"} 1"#,
        r#"karmada_scheduler_queue_incoming_bindings_total{event="BindingAdd"} 1"#,
        r#"workqueue_depth{name="template"} 7"#,
        r#"workqueue_adds_total{name="template"} 8"#,
        r#"workqueue_retries_total{name="template"} 1"#,
        r#"workqueue_queue_duration_seconds_count{name="template"} 1"#,
        r#"workqueue_work_duration_seconds_count{name="template"} 1"#,
        r#"eviction_queue_depth{name="binding-eviction"} 2"#,
        r#"eviction_queue_depth{name="cluster-binding-eviction"} 0"#,
        r#"eviction_kind_total{member_cluster="m1",resource_kind="ResourceBinding"} 2"#,
        r#"eviction_processing_latency_seconds_count{name="binding-eviction"} 1"#,
        r#"eviction_processing_total{name="binding-eviction",result="success"} 1"#,
        r#"eviction_processing_total{name="cluster-binding-eviction",result="error"} 1"#,
        r#"lockgate_events_dropped_total 1"#,
        concat!(
            r#"karmada_build_info{version=""#,
            env!("CARGO_PKG_VERSION"),
            r#""} 1"#
        ),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing:\n{text}");
    }
    assert!(
        !text.contains(r#"resource_kind="ClusterResourceBinding""#),
        "{text}"
    );
    metrics.forget_cluster("m1");
    assert!(!metrics.encode().contains(r#"state{member_cluster="m1"}"#));
}

#[test]
fn rollouts_are_counted_by_phase_and_clusters_by_state() {
    use lockgate_api::rollout_policy::{RolloutRun, RunCluster, RunGroup};
    let run = |phase: &str, states: &[&str]| {
        let cluster = |state: &&str| RunCluster {
            state: (*state).to_owned(),
            ..RunCluster::default()
        };
        RolloutRun {
            phase: phase.to_owned(),
            groups: vec![RunGroup::of(0, "", states.iter().map(cluster).collect())],
            ..RolloutRun::default()
        }
    };
    let metrics = Metrics::new();
    let begun = run("Progressing", &["Progressing", "ToApply", "ToApply"]);
    metrics.rollout(None, Some(&begun));
    metrics.rollout(None, Some(&begun));
    let failed = run("Failed", &["Failed", "Succeeded", "ToApply"]);
    metrics.rollout(Some(&begun), Some(&failed));
    metrics.released("released");
    metrics.released("failed");
    let text = metrics.encode();
    for line in [
        "lockgate_rollout_phase{phase=\"Progressing\"} 1",
        "lockgate_rollout_phase{phase=\"Failed\"} 1",
        "lockgate_rollout_clusters{state=\"ToApply\"} 3",
        "lockgate_rollout_clusters{state=\"Progressing\"} 1",
        "lockgate_rollout_clusters{state=\"Failed\"} 1",
        "lockgate_rollout_releases_total{result=\"released\"} 1",
        "lockgate_rollout_releases_total{result=\"failed\"} 1",
    ] {
        assert!(
            text.lines().any(|other| other == line),
            "{line} is not in\n{text}"
        );
    }
    // What is gone counts no more.
    metrics.rollout(Some(&failed), None);
    let text = metrics.encode();
    assert!(
        text.contains("lockgate_rollout_phase{phase=\"Failed\"} 0"),
        "{text}"
    );
    assert!(
        text.contains("lockgate_rollout_clusters{state=\"ToApply\"} 2"),
        "{text}"
    );
}
