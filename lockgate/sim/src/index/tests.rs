use serde_json::json;

use super::*;
use crate::object::key;
use crate::testing::{node, pod, ready, replica_set};

fn index() -> Index {
    Index::new(&SimOptions::default())
}

fn noted(index: &mut Index, object: &Value) -> Vec<String> {
    let key = key(object).expect("a kind that is simulated");
    names(index.note(&key, Some(object)))
}

fn gone(index: &mut Index, object: &Value) -> Vec<String> {
    let key = key(object).expect("a kind that is simulated");
    names(index.note(&key, None))
}

fn names(keys: Vec<Key>) -> Vec<String> {
    let mut names: Vec<String> = keys
        .iter()
        .map(|key| format!("{:?} {}", key.kind, key.name))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn service(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": app}},
    })
}

#[test]
fn a_pod_concerns_its_controller_and_its_services() {
    let mut index = index();
    let set = replica_set("web-1", 1);
    noted(&mut index, &service("web", "web"));
    noted(&mut index, &service("other", "other"));
    let pod = pod("web-1-a", &set);
    let concerned = ["Pod web-1-a", "ReplicaSet web-1", "Service web"];
    assert_eq!(noted(&mut index, &pod), concerned);
    assert_eq!(index.children("uid-web-1", Kind::Pod).len(), 1);
    assert_eq!(index.labeled("default", &[("app", "web")]).len(), 1);
    assert_eq!(index.labeled("elsewhere", &[("app", "web")]).len(), 0);
    assert_eq!(gone(&mut index, &pod), concerned);
    assert!(index.children("uid-web-1", Kind::Pod).is_empty());
    assert!(index.entries.len() == 2 && index.labeled.is_empty() && index.on_node.is_empty());
}

#[test]
fn nodes_know_what_they_gave() {
    let mut index = index();
    let set = replica_set("web-1", 1);
    let mut running = pod("a", &set);
    running["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "500m"}});
    // A Pod may be seen before its node.
    noted(&mut index, &running);
    noted(&mut index, &node("node-1", "2"));
    let used = |index: &Index| {
        let node = index.node("node-1").expect("the node is known");
        (node.used.get("cpu").copied().unwrap_or(0), node.pods())
    };
    assert_eq!(used(&index), (500, 1));
    noted(&mut index, &running);
    assert_eq!(used(&index), (500, 1), "the same Pod counts once");
    running["status"]["phase"] = json!("Succeeded");
    noted(&mut index, &running);
    assert_eq!(used(&index), (0, 0), "a finished Pod needs nothing");
}

#[test]
fn room_that_becomes_free_is_offered() {
    let mut index = index();
    let set = replica_set("web-1", 1);
    noted(&mut index, &node("node-1", "2"));
    let running = pod("running", &set);
    noted(&mut index, &running);
    let waiting = Key::new(Kind::Pod, "default", "waiting");
    index.set_waiting(&waiting, true);
    let is_offered = |names: Vec<String>| names.contains(&"Pod waiting".to_owned());
    assert!(
        !is_offered(noted(&mut index, &ready(running.clone(), 0))),
        "nothing became free"
    );
    assert!(is_offered(gone(&mut index, &running)));
    assert!(
        !is_offered(noted(&mut index, &node("node-1", "2"))),
        "the node did not change"
    );
    assert!(is_offered(noted(&mut index, &node("node-1", "4"))));
    index.note(&waiting, None);
    assert!(
        !is_offered(noted(&mut index, &node("node-2", "4"))),
        "it waits no more"
    );
}

#[test]
fn a_node_concerns_daemons_and_its_pods() {
    let mut index = index();
    let set = replica_set("web-1", 1);
    noted(&mut index, &node("node-1", "2"));
    noted(&mut index, &pod("a", &set));
    index.note_name(&Key::new(Kind::DaemonSet, "default", "agent"), false);
    assert_eq!(
        gone(&mut index, &node("node-1", "2")),
        ["DaemonSet agent", "Node node-1", "Pod a"]
    );
    assert!(index.node("node-1").is_none());
}

#[test]
fn a_volume_is_looked_at_when_its_claim_goes() {
    let mut index = index();
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pvc-1"},
        "spec": {"claimRef": {"namespace": "default", "name": "data", "uid": "u"}},
    });
    assert_eq!(noted(&mut index, &volume), ["Claim data", "Volume pvc-1"]);
    let dirty = index.note_name(&Key::new(Kind::Claim, "default", "data"), true);
    assert_eq!(names(dirty), ["Claim data", "Volume pvc-1"]);
}

#[test]
fn addresses_are_not_given_twice() {
    let mut index = index();
    let set = replica_set("web-1", 1);
    let mut first = ready(pod("a", &set), 0);
    first["status"]["podIP"] = json!(index.free_pod_address());
    noted(&mut index, &first);
    assert_ne!(index.free_pod_address(), text(&first["status"]["podIP"]));
}
