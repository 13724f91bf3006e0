use machinery_apiserver::Local;
use serde_json::{Value, json};

use super::cluster::{Cluster, condition, is_true, reason, template, workload};

fn get(local: &Local, api_version: &str, plural: &str, name: &str) -> Value {
    local
        .get(api_version, plural, "default", name)
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_has_names_and_claims() {
    let cluster = Cluster::new().await;
    let mut db = workload("StatefulSet", "db", 3, "db:1");
    db["spec"]["serviceName"] = json!("db");
    db["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }]);
    cluster.create(db).await;
    let ready = |local: &Local, count: i64| {
        let db = get(local, "apps/v1", "statefulsets", "db");
        db["status"]["readyReplicas"] == count
            && db["status"]["replicas"] == count
            && db["status"]["updatedReplicas"] == count
            && db["status"]["currentRevision"] == db["status"]["updateRevision"]
            && db["status"]["observedGeneration"] == db["metadata"]["generation"]
    };
    cluster
        .until("all three are ready", |local| ready(local, 3))
        .await;
    let start = |ordinal: i64| {
        get(&cluster.local, "v1", "pods", &format!("db-{ordinal}"))["status"]["startTime"].clone()
    };
    assert!(
        start(0).as_str() < start(1).as_str() && start(1).as_str() < start(2).as_str(),
        "one after the other"
    );
    for ordinal in 0..3 {
        let claim = get(
            &cluster.local,
            "v1",
            "persistentvolumeclaims",
            &format!("data-db-{ordinal}"),
        );
        assert_eq!(
            (&claim["status"]["phase"], &claim["status"]["capacity"]["storage"]),
            (&json!("Bound"), &json!("1Gi"))
        );
        let volume = cluster.local.get(
            "v1",
            "persistentvolumes",
            "",
            claim["spec"]["volumeName"].as_str().expect("a volume"),
        );
        assert_eq!(volume.expect("the volume is there")["status"]["phase"], "Bound");
    }
    cluster.assert_settled().await;

    let edit = |db: &mut Value| db["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    cluster.change("apps/v1", "statefulsets", "db", edit).await;
    cluster
        .until("all are of the new template", |local| ready(local, 3))
        .await;
    cluster
        .change("apps/v1", "statefulsets", "db", |db| {
            db["spec"]["replicas"] = json!(1)
        })
        .await;
    cluster.until("one is left", |local| ready(local, 1)).await;
    assert_eq!(
        cluster
            .local
            .list("v1", "persistentvolumeclaims", "default")
            .len(),
        3,
        "claims stay"
    );

    cluster.delete("v1", "persistentvolumeclaims", "data-db-2").await;
    cluster
        .until("a volume goes with its claim", |local| {
            local.list("v1", "persistentvolumes", "").len() == 2
        })
        .await;
    cluster.assert_settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_follows_the_nodes() {
    let cluster = Cluster::new().await;
    cluster.create(workload("DaemonSet", "agent", 0, "agent:1")).await;
    let ready = |local: &Local, count: i64| {
        let agent = get(local, "apps/v1", "daemonsets", "agent");
        agent["status"]["numberReady"] == count && agent["status"]["desiredNumberScheduled"] == count
    };
    cluster
        .until("both nodes have one", |local| ready(local, 2))
        .await;
    cluster.delete("v1", "nodes", "node-2").await;
    cluster.until("one node is left", |local| ready(local, 1)).await;
    cluster
        .until("the Pod of the lost node is gone", |local| {
            local.list("v1", "pods", "default").len() == 1
        })
        .await;
    let edit =
        |agent: &mut Value| agent["spec"]["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
    cluster.change("apps/v1", "daemonsets", "agent", edit).await;
    cluster
        .until("the Pod is replaced", |local| {
            let agent = get(local, "apps/v1", "daemonsets", "agent");
            agent["status"]["observedGeneration"] == 2
                && agent["status"]["updatedNumberScheduled"] == 1
                && ready(local, 1)
        })
        .await;
    cluster.assert_settled().await;
}

fn job(name: &str, image: &str, policy: &str) -> Value {
    let mut template = template(name, image);
    template["spec"]["restartPolicy"] = json!(policy);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"completions": 3, "parallelism": 2, "backoffLimit": 2, "template": template},
    })
}

#[tokio::test(start_paused = true)]
async fn jobs_end() {
    let cluster = Cluster::new().await;
    for (name, image, policy, end, why) in [
        ("good", "work:1", "Never", "Complete", "CompletionsReached"),
        ("bad", "work:fail", "Never", "Failed", "BackoffLimitExceeded"),
        (
            "worse",
            "work:fail",
            "OnFailure",
            "Failed",
            "BackoffLimitExceeded",
        ),
    ] {
        cluster.create(job(name, image, policy)).await;
        let ended = |local: &Local| is_true(&get(local, "batch/v1", "jobs", name), end);
        cluster.until("the Job ends", ended).await;
        let job = get(&cluster.local, "batch/v1", "jobs", name);
        assert_eq!(reason(&job, end), why, "{name}");
        if end == "Complete" {
            assert_eq!(
                (
                    &job["status"]["succeeded"],
                    job["status"]["completionTime"].is_string()
                ),
                (&json!(3), true)
            );
        }
    }
    cluster.assert_settled().await;
}

#[tokio::test(start_paused = true)]
async fn services_lead_to_pods() {
    let cluster = Cluster::new().await;
    cluster
        .create(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }))
        .await;
    cluster.create(workload("Deployment", "web", 2, "web:1")).await;
    let addresses = |local: &Local| {
        let endpoints = get(local, "v1", "endpoints", "web");
        endpoints["subsets"][0]["addresses"]
            .as_array()
            .map_or(0, Vec::len)
    };
    cluster
        .until("both Pods are behind it", |local| addresses(local) == 2)
        .await;
    let service = get(&cluster.local, "v1", "services", "web");
    assert!(service["status"]["loadBalancer"]["ingress"][0]["ip"].is_string());
    let slices = cluster
        .local
        .list("discovery.k8s.io/v1", "endpointslices", "default");
    assert_eq!(
        slices[0]["metadata"]["labels"]["kubernetes.io/service-name"],
        "web"
    );
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(2));
    cluster.assert_settled().await;

    cluster
        .change("apps/v1", "deployments", "web", |web| {
            web["spec"]["replicas"] = json!(0)
        })
        .await;
    cluster
        .until("nothing is behind it", |local| addresses(local) == 0)
        .await;
    cluster.delete("v1", "services", "web").await;
    let is_clean = |local: &Local| {
        local.list("v1", "endpoints", "default").is_empty()
            && local
                .list("discovery.k8s.io/v1", "endpointslices", "default")
                .is_empty()
    };
    cluster.until("its addresses are gone", is_clean).await;
}

#[tokio::test(start_paused = true)]
async fn an_ingress_gets_an_address() {
    let cluster = Cluster::new().await;
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    cluster
        .create(json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"defaultBackend": backend},
        }))
        .await;
    cluster
        .until("it has an address", |local| {
            let ingress = get(local, "networking.k8s.io/v1", "ingresses", "web");
            ingress["status"]["loadBalancer"]["ingress"][0]["ip"].is_string()
        })
        .await;
    cluster.assert_settled().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_are_complete() {
    let cluster = Cluster::new().await;
    cluster
        .until("there are two", |local| local.list("v1", "nodes", "").len() == 2)
        .await;
    for node in cluster.local.list("v1", "nodes", "") {
        assert!(is_true(&node, "Ready") && condition(&node, "MemoryPressure").is_some());
        assert_eq!(node["status"]["allocatable"]["cpu"], "8");
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.35.0");
    }
    cluster.assert_settled().await;
}
