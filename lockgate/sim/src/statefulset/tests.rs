use super::*;
use crate::testing::{at, pod, ready, stateful_set};

fn member(set: &Value, ordinal: i64) -> Value {
    let mut pod = pod(&format!("{}-{ordinal}", name(set)), set);
    pod["metadata"]["labels"][REVISION_LABEL] = json!(revision(set));
    pod
}

fn check(set: &Value, pods: &[Value], existing: &[Key]) -> Vec<String> {
    let seen = Snapshot { set, pods, existing };
    let show = |action: &Action| match action {
        Action::Create(object) => Some(format!("create {}", name(object))),
        Action::Delete { key, .. } => Some(format!("delete {}", key.name)),
        _ => None,
    };
    decide(&seen, at(0)).iter().filter_map(show).collect()
}

#[test]
fn pods_come_and_go_in_order() {
    let set = stateful_set("db", 3);
    let parallel = {
        let mut set = set.clone();
        set["spec"]["podManagementPolicy"] = json!("Parallel");
        set
    };
    let up = |ordinal| ready(member(&set, ordinal), 0);
    let down = |ordinal| member(&set, ordinal);
    let table: [(&Value, Vec<Value>, &[&str]); 8] = [
        (&set, vec![], &["create db-0"]),
        (&set, vec![down(0)], &[]),
        (&set, vec![up(0)], &["create db-1"]),
        (&set, vec![up(0), up(2)], &["create db-1"]),
        (&set, vec![up(0), up(1), up(2), up(3), up(4)], &["delete db-4"]),
        (&set, vec![down(0), up(1), up(2), up(3)], &[]),
        (&parallel, vec![down(0)], &["create db-1", "create db-2"]),
        (
            &parallel,
            vec![down(0), down(1), up(2), up(3), up(4)],
            &["delete db-4", "delete db-3"],
        ),
    ];
    for (set, pods, wanted) in table {
        assert_eq!(check(set, &pods, &[]), wanted);
    }
}

#[test]
fn a_finished_pod_is_replaced() {
    let set = stateful_set("db", 1);
    let mut failed = member(&set, 0);
    failed["status"]["phase"] = json!("Failed");
    assert_eq!(check(&set, &[failed], &[]), ["delete db-0"]);
}

#[test]
fn a_new_template_replaces_from_the_end() {
    let old = stateful_set("db", 3);
    let mut set = old.clone();
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    let mut part = set.clone();
    part["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(2);
    let mut by_hand = set.clone();
    by_hand["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    let up = |of: &Value, ordinal| ready(member(of, ordinal), 0);
    let table: [(&Value, Vec<Value>, &[&str]); 5] = [
        (
            &set,
            vec![up(&old, 0), up(&old, 1), up(&old, 2)],
            &["delete db-2"],
        ),
        (&set, vec![up(&old, 0), up(&old, 1), member(&set, 2)], &[]),
        (
            &set,
            vec![up(&old, 0), up(&old, 1), up(&set, 2)],
            &["delete db-1"],
        ),
        (&part, vec![up(&old, 0), up(&old, 1), up(&set, 2)], &[]),
        (&by_hand, vec![up(&old, 0), up(&old, 1), up(&old, 2)], &[]),
    ];
    for (set, pods, wanted) in table {
        assert_eq!(check(set, &pods, &[]), wanted);
    }
}

#[test]
fn each_pod_has_its_claims() {
    let mut set = stateful_set("db", 2);
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }]);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete"});
    let keys = wanted_keys(&set);
    assert_eq!(keys.len(), 4);
    let seen = Snapshot {
        set: &set,
        pods: &[],
        existing: &[],
    };
    let actions = decide(&seen, at(0));
    let [Action::Create(claim), Action::Create(pod), ..] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!((name(claim), name(pod)), ("data-db-0", "db-0"));
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], "uid-db");
    assert_eq!(
        pod["spec"]["volumes"],
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}])
    );
    assert_eq!(
        (text(&pod["spec"]["hostname"]), text(&pod["spec"]["subdomain"])),
        ("db-0", "db")
    );
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "0");
    // A claim that is there is kept; a Pod of somebody else is in the way.
    assert_eq!(check(&set, &[], &keys[..1]), ["create db-0"]);
    assert_eq!(check(&set, &[], &keys[..2]), Vec::<String>::new());
}

#[test]
fn the_status_tells_both_revisions() {
    let old = stateful_set("db", 2);
    let status_after = |set: &Value, pods: &[Value]| {
        let seen = Snapshot {
            set,
            pods,
            existing: &[],
        };
        decide(&seen, at(0)).into_iter().find_map(|action| match action {
            Action::UpdateStatus(set) => Some(set),
            _ => None,
        })
    };
    let pods = [ready(member(&old, 0), 0), ready(member(&old, 1), 0)];
    let settled = status_after(&old, &pods).expect("a first status");
    assert_eq!(
        settled["status"]["currentRevision"],
        settled["status"]["updateRevision"]
    );
    assert_eq!(
        status_after(&settled, &pods),
        None,
        "a settled set writes nothing"
    );

    let mut set = settled.clone();
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    let rolling = status_after(&set, &[pods[0].clone(), ready(member(&set, 1), 0)]).expect("a status");
    assert_eq!(
        rolling["status"]["currentRevision"],
        settled["status"]["currentRevision"]
    );
    assert_eq!(rolling["status"]["updateRevision"], revision(&set));
    assert_eq!(
        (
            int(&rolling["status"]["currentReplicas"]),
            int(&rolling["status"]["updatedReplicas"])
        ),
        (1, 1)
    );
    let done =
        status_after(&rolling, &[ready(member(&set, 0), 0), ready(member(&set, 1), 0)]).expect("a status");
    assert_eq!(done["status"]["currentRevision"], revision(&set));
}
