//! What the recorded answers cannot show: rules as a whole, and allocation from the caller's pools.

use serde_json::json;

use super::*;

fn service(spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "s"}, "spec": spec});
    defaults::apply("", "v1", "Service", &mut object);
    object
}

#[test]
fn pools_are_asked_only_for_what_is_missing() {
    let table = [
        (json!({"ports": [{"port": 1}]}), 1, 0),
        (json!({"clusterIP": "10.0.0.5", "ports": [{"port": 1}]}), 0, 0),
        (json!({"clusterIP": "None"}), 0, 0),
        (json!({"type": "ExternalName", "externalName": "a"}), 0, 0),
        (
            json!({"type": "NodePort", "ports": [{"port": 1}, {"port": 2, "nodePort": 30005}]}),
            1,
            1,
        ),
        (
            json!({"type": "LoadBalancer", "ports": [{"port": 1}], "allocateLoadBalancerNodePorts": false}),
            1,
            0,
        ),
        (
            json!({"type": "LoadBalancer", "ports": [{"port": 1}], "externalTrafficPolicy": "Local"}),
            1,
            2,
        ),
    ];
    for (spec, addresses, ports) in table {
        let mut object = service(spec.clone());
        let (mut asked_address, mut asked_ports) = (0, 0);
        allocate_service(
            &mut object,
            || {
                asked_address += 1;
                Some("10.0.0.9".to_owned())
            },
            || {
                asked_ports += 1;
                Some(30000 + asked_ports)
            },
        );
        assert_eq!((asked_address, asked_ports), (addresses, ports), "{spec}");
        let again = object.clone();
        allocate_service(&mut object, || panic!("asked twice"), || panic!("asked twice"));
        assert_eq!(object, again, "{spec}");
    }
}

#[test]
fn a_service_that_became_a_name_keeps_a_policy_that_reads_do_not_show() {
    let gvk = Gvk::new("", "v1", "Service");
    let mut old = service(json!({"ports": [{"port": 1}]}));
    allocate_service(&mut old, || Some("10.0.0.9".to_owned()), || None);
    let mut new = old.clone();
    new["spec"]["type"] = json!("ExternalName");
    new["spec"]["externalName"] = json!("e.com");
    prepare_update(gvk, &mut new, &old);
    assert_eq!(new["spec"]["internalTrafficPolicy"], "Cluster");
    assert_eq!(new["spec"].get("clusterIP"), None);
    hide(gvk, &mut new);
    assert_eq!(new["spec"].get("internalTrafficPolicy"), None);
    hide(gvk, &mut old);
    assert_eq!(old["spec"]["internalTrafficPolicy"], "Cluster");
}

#[test]
fn an_empty_pool_leaves_the_field_out() {
    let mut object = service(json!({"type": "NodePort", "ports": [{"port": 1}]}));
    allocate_service(&mut object, || None, || None);
    assert!(object["spec"]["clusterIP"].is_null() && object["spec"]["ports"][0]["nodePort"].is_null());
}

#[test]
fn every_rule_names_a_served_kind() {
    let counting: Vec<String> = catalog()
        .entries()
        .iter()
        .filter(|entry| entry.has_generation())
        .map(|entry| entry.kind.clone())
        .collect();
    for kind in [
        "Pod",
        "Deployment",
        "EndpointSlice",
        "PriorityClass",
        "CSIDriver",
        "CustomResourceDefinition",
    ] {
        assert!(counting.iter().any(|counted| counted == kind), "{kind}");
    }
    for kind in [
        "ConfigMap",
        "Service",
        "HorizontalPodAutoscaler",
        "Node",
        "StorageClass",
        "Lease",
    ] {
        assert!(!counting.iter().any(|counted| counted == kind), "{kind}");
    }
}

#[test]
fn some_kinds_are_made_by_an_update_and_some_need_a_version() {
    let table = [
        ("", "ConfigMap", true, false),
        ("", "Service", true, true),
        ("", "Event", true, true),
        ("rbac.authorization.k8s.io", "Role", true, true),
        ("coordination.k8s.io", "Lease", false, true),
        ("policy", "PodDisruptionBudget", false, false),
        ("apiextensions.k8s.io", "CustomResourceDefinition", false, false),
        ("storage.k8s.io", "StorageClass", true, false),
        ("storage.k8s.io", "VolumeAttachment", false, false),
    ];
    for (group, kind, unconditional, creates) in table {
        let gvk = Gvk::new(group, "v1", kind);
        assert_eq!(allows_unconditional_update(gvk), unconditional, "{kind}");
        assert_eq!(allows_create_on_update(gvk), creates, "{kind}");
    }
}

#[test]
fn a_kind_that_is_not_known_keeps_its_status() {
    let gvk = Gvk::new("lab.example.com", "v1", "Thing");
    let mut object = json!({"metadata": {"name": "a"}, "status": {"a": 1}});
    prepare_create(gvk, &mut object);
    assert_eq!(object["status"], json!({"a": 1}));
}
