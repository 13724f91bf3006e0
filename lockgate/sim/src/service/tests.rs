use super::*;
use crate::testing::{pod, ready, replica_set};

fn service(kind: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
        "spec": {
            "type": kind,
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
        "status": {"loadBalancer": {}},
    })
}

fn backend(name: &str, ip: &str, is_ready: bool) -> Value {
    let set = replica_set("web", 1);
    let mut pod = if is_ready {
        ready(pod(name, &set), 0)
    } else {
        pod(name, &set)
    };
    pod["status"]["podIP"] = json!(ip);
    pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080}]);
    pod
}

fn look(service: &Value, pods: &[Value], endpoints: Option<&Value>, slice: Option<&Value>) -> Vec<Action> {
    decide(&Snapshot {
        service,
        pods,
        endpoints,
        slice,
        address: "172.18.0.1",
    })
}

#[test]
fn ready_and_unready_pods_stand_behind_a_service() {
    let service = service("ClusterIP");
    let mut going = backend("c", "10.0.0.3", true);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let pods = [
        backend("b", "10.0.0.2", false),
        backend("a", "10.0.0.1", true),
        backend("d", "", false),
        going,
    ];
    let actions = look(&service, &pods, None, None);
    let [Action::Create(endpoints), Action::Create(slice)] = &actions[..] else {
        panic!("{actions:?}")
    };
    let subset = &endpoints["subsets"][0];
    assert_eq!(subset["addresses"][0]["ip"], "10.0.0.1");
    assert_eq!(subset["notReadyAddresses"][0]["targetRef"]["name"], "b");
    assert_eq!(
        subset["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );
    assert_eq!(items(&slice["endpoints"]).len(), 2);
    assert_eq!(slice["endpoints"][1]["conditions"]["ready"], false);
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");

    assert_eq!(
        look(&service, &pods, Some(endpoints), Some(slice)),
        [],
        "nothing changed, nothing is written"
    );
    let actions = look(&service, &pods[..1], Some(endpoints), Some(slice));
    let [Action::Update(endpoints), Action::Update(slice)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(endpoints["subsets"][0]["addresses"], json!(null));
    assert_eq!(items(&slice["endpoints"]).len(), 1);
}

#[test]
fn no_selector_no_endpoints() {
    let mut without = service("ClusterIP");
    without["spec"]["selector"] = json!(null);
    for service in [without, service("ExternalName")] {
        assert_eq!(look(&service, &[], None, None), []);
    }
}

#[test]
fn a_load_balancer_gets_an_address_and_keeps_it() {
    let mut balancer = service("LoadBalancer");
    balancer["spec"]["selector"] = json!(null);
    let actions = look(&balancer, &[], None, None);
    let [Action::UpdateStatus(changed)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(
        changed["status"]["loadBalancer"]["ingress"],
        json!([{"ip": "172.18.0.1", "ipMode": "VIP"}])
    );
    assert_eq!(look(changed, &[], None, None), []);
    let mut internal = changed.clone();
    internal["spec"]["type"] = json!("ClusterIP");
    let actions = look(&internal, &[], None, None);
    let [Action::UpdateStatus(changed)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(changed["status"]["loadBalancer"], json!({}));

    balancer["metadata"]["annotations"] = json!({crate::BEHAVIOUR: "never-ready"});
    assert_eq!(look(&balancer, &[], None, None), [], "its address never comes");
}

#[test]
fn endpoints_go_with_their_service_unless_somebody_else_made_them() {
    let made = endpoints(&service("ClusterIP"), &[]);
    assert!(matches!(&clean_up(&made)[..], [Action::Delete { .. }]));
    let by_hand =
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web", "namespace": "default"}});
    assert_eq!(clean_up(&by_hand), []);
}

#[test]
fn an_ingress_gets_an_address() {
    let ingress = json!({"metadata": {"name": "web"}, "status": {"loadBalancer": {}}});
    let actions = decide_ingress(&ingress, "172.18.0.2");
    let [Action::UpdateStatus(changed)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(
        changed["status"]["loadBalancer"]["ingress"][0]["ip"],
        "172.18.0.2"
    );
    assert_eq!(decide_ingress(changed, "172.18.0.3"), []);
}
