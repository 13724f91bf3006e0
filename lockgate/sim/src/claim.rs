//! PersistentVolumeClaims: each gets a volume of its own, which goes with it.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::Action;
use crate::behaviour::of_object;
use crate::object::{is_deleting, key, name, namespace, set_annotation, status_of, text, uid, with_status};

/// The name of the volume that a claim gets.
pub fn volume_name(claim: &Value) -> String {
    match text(&claim["spec"]["volumeName"]) {
        "" => format!("pvc-{}", uid(claim)),
        name => name.to_owned(),
    }
}

/// What is to be done for a claim; `volume` is the one that has the name which [`volume_name`] gives.
pub fn decide(claim: &Value, volume: Option<&Value>) -> Vec<Action> {
    let held_back = of_object(claim).is_some_and(|behaviour| !behaviour.ends_well());
    // An empty class asks for a volume that somebody made by hand.
    let by_hand = claim["spec"]["storageClassName"] == "";
    let named = !text(&claim["spec"]["volumeName"]).is_empty();
    if is_deleting(claim) || (claim["status"]["phase"] != "Bound" && held_back) || (by_hand && !named) {
        return Vec::new();
    }
    let Some(volume) = volume else {
        return if named {
            Vec::new()
        } else {
            vec![Action::Create(make_volume(claim))]
        };
    };
    if !named {
        let mut changed = claim.clone();
        changed["spec"]["volumeName"] = json!(name(volume));
        set_annotation(&mut changed, "pv.kubernetes.io/bind-completed", Some("yes"));
        set_annotation(&mut changed, "pv.kubernetes.io/bound-by-controller", Some("yes"));
        return vec![Action::Update(changed)];
    }
    let mut status = status_of(claim);
    status["phase"] = json!("Bound");
    status["accessModes"] = volume["spec"]["accessModes"].clone();
    status["capacity"] = json!({"storage": volume["spec"]["capacity"]["storage"]});
    with_status(claim, status)
        .map(Action::UpdateStatus)
        .into_iter()
        .collect()
}

fn make_volume(claim: &Value) -> Value {
    let storage = &claim["spec"]["resources"]["requests"]["storage"];
    let mut spec = json!({
        "accessModes": claim["spec"]["accessModes"],
        "capacity": {"storage": storage},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace(claim),
            "name": name(claim),
            "uid": uid(claim),
        },
        "hostPath": {"path": format!("/simulated/{}", volume_name(claim)), "type": ""},
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": "Filesystem",
    });
    for field in ["storageClassName", "volumeMode"] {
        if let Some(value) = claim["spec"].get(field) {
            spec[field] = value.clone();
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(claim),
            "annotations": {"pv.kubernetes.io/provisioned-by": "sim.lockgate.io"},
        },
        "spec": spec,
    })
}

/// What is to be done for a volume; `claim` is the one that it refers to.
pub fn decide_volume(volume: &Value, claim: Option<&Value>, now: Timestamp) -> Vec<Action> {
    let reference = &volume["spec"]["claimRef"];
    if is_deleting(volume) {
        return Vec::new();
    }
    let claimed = claim.is_some_and(|claim| uid(claim) == text(&reference["uid"]));
    let phase = match (reference.is_null(), claimed) {
        (true, _) => "Available",
        (false, true) => "Bound",
        (false, false) if volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete" => {
            return key(volume)
                .map(|key| Action::Delete {
                    key,
                    uid: uid(volume).to_owned(),
                })
                .into_iter()
                .collect();
        }
        (false, false) if text(&reference["uid"]).is_empty() => "Available",
        (false, false) => "Released",
    };
    let mut status = status_of(volume);
    if status["phase"] != phase {
        status["phase"] = json!(phase);
        status["lastPhaseTransitionTime"] = json!(crate::object::stamp(now));
    }
    with_status(volume, status)
        .map(Action::UpdateStatus)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    fn claim() -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default", "uid": "u1"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Pending"},
        })
    }

    #[test]
    fn a_claim_gets_a_volume_then_its_name_then_is_bound() {
        let claim = claim();
        let actions = decide(&claim, None);
        let [Action::Create(volume)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(
            (name(volume), text(&volume["spec"]["capacity"]["storage"])),
            ("pvc-u1", "1Gi")
        );
        let actions = decide(&claim, Some(volume));
        let [Action::Update(named)] = &actions[..] else {
            panic!("{actions:?}")
        };
        let actions = decide(named, Some(volume));
        let [Action::UpdateStatus(bound)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(bound["status"]["phase"], "Bound");
        assert_eq!(decide(bound, Some(volume)), []);
    }

    #[test]
    fn some_claims_wait() {
        let mut held = claim();
        held["metadata"]["annotations"] = json!({crate::BEHAVIOUR: "never-ready"});
        let mut by_hand = claim();
        by_hand["spec"]["storageClassName"] = json!("");
        let mut missing = claim();
        missing["spec"]["volumeName"] = json!("nowhere");
        for claim in [held, by_hand, missing] {
            assert_eq!(decide(&claim, None), []);
        }
    }

    #[test]
    fn a_volume_goes_with_its_claim() {
        let claim = claim();
        let mut volume = make_volume(&claim);
        volume["metadata"]["uid"] = json!("v1");
        let actions = decide_volume(&volume, Some(&claim), at(0));
        let [Action::UpdateStatus(bound)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(bound["status"]["phase"], "Bound");
        assert_eq!(decide_volume(bound, Some(&claim), at(9)), []);
        assert!(matches!(
            &decide_volume(bound, None, at(9))[..],
            [Action::Delete { .. }]
        ));
        let mut retained = bound.clone();
        retained["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
        let actions = decide_volume(&retained, None, at(9));
        let [Action::UpdateStatus(released)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(released["status"]["phase"], "Released");
    }
}
