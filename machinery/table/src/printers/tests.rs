//! Kinds and turns that the recorded rows (see `tests/golden.rs`) do not have.

use super::*;
use serde_json::json;

fn check(group: &str, kind: &str, cases: &[(Value, Value)]) {
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    for (object, want) in cases {
        let got = cells(group, "v1", kind, object, now);
        assert_eq!(&Value::Array(got), want, "{kind} {object}");
    }
}

#[test]
fn every_kind_fills_its_columns_from_nothing_at_all() {
    let now = Timestamp::UNIX_EPOCH;
    for kind in KINDS.iter().copied().flatten() {
        for object in [
            json!({}),
            json!(null),
            json!({"metadata": 7, "spec": [], "status": "x"}),
        ] {
            // Addresses have an age without a heading.
            let surplus = usize::from(kind.kind == "IPAddress");
            let cells = kind.cells("v1", &object, now);
            assert_eq!(
                cells.len(),
                kind.columns.len() + surplus,
                "{} {}",
                kind.group,
                kind.kind
            );
        }
    }
}

#[test]
fn no_kind_is_listed_twice() {
    let mut names: Vec<_> = KINDS
        .iter()
        .copied()
        .flatten()
        .map(|kind| (kind.group, kind.kind))
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn kinds_without_a_table_show_when_they_were_created() {
    let created = |time: Value| json!({"metadata": {"name": "x", "creationTimestamp": time}});
    let cases = [
        (
            created(json!("2026-01-01T02:03:04Z")),
            json!(["x", "2026-01-01T02:03:04Z"]),
        ),
        (created(json!(null)), json!(["x", "0001-01-01T00:00:00Z"])),
    ];
    check("lab.io", "Gadget", &cases);
    check("apiextensions.k8s.io", "CustomResourceDefinition", &cases);
}

#[test]
fn component_statuses() {
    let status = |condition: Value| json!({"metadata": {"name": "etcd-0"}, "conditions": [condition]});
    check(
        "",
        "ComponentStatus",
        &[
            (
                status(json!({"type": "Healthy", "status": "True", "message": "ok"})),
                json!(["etcd-0", "Healthy", "ok", ""]),
            ),
            (
                status(json!({"type": "Healthy", "status": "False", "message": "m", "error": "e"})),
                json!(["etcd-0", "Unhealthy", "m", "e"]),
            ),
            (
                status(json!({"type": "Other", "status": "True"})),
                json!(["etcd-0", "Unknown", "", ""]),
            ),
        ],
    );
}

#[test]
fn signing_requests() {
    let request = |conditions: &[&str], certificate: &str| {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|t| json!({"type": t, "status": "True"}))
            .collect();
        json!({
            "metadata": {"name": "c"},
            "spec": {"signerName": "s", "username": "ann", "expirationSeconds": 3600},
            "status": {"conditions": conditions, "certificate": certificate},
        })
    };
    let row = |condition: &str| json!(["c", "<unknown>", "s", "ann", "60m", condition]);
    check(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        &[
            (request(&[], ""), row("Pending")),
            (request(&["Approved"], ""), row("Approved")),
            (request(&["Approved"], "abc"), row("Approved,Issued")),
            (request(&["Approved", "Denied"], ""), row("Denied")),
            (request(&["Approved", "Failed"], ""), row("Approved,Failed")),
            (
                json!({"metadata": {"name": "c"}}),
                json!(["c", "<unknown>", "<none>", "", "<none>", "Pending"]),
            ),
        ],
    );
}

#[test]
fn api_services() {
    let service = |condition: Value| {
        json!({
            "metadata": {"name": "v1.lab.io"},
            "spec": {"service": {"namespace": "ns", "name": "api"}},
            "status": {"conditions": [condition]},
        })
    };
    let row = |available: &str| json!(["v1.lab.io", "ns/api", available, "<unknown>"]);
    check(
        "apiregistration.k8s.io",
        "APIService",
        &[
            (
                service(json!({"type": "Available", "status": "True", "reason": "Passed"})),
                row("True"),
            ),
            (
                service(json!({"type": "Available", "status": "False", "reason": "Gone"})),
                row("False (Gone)"),
            ),
            (
                service(json!({"type": "Available", "status": "False"})),
                row("False"),
            ),
            (service(json!({"type": "Other"})), row("Unknown")),
            (
                json!({"metadata": {"name": "v1."}}),
                json!(["v1.", "Local", "Unknown", "<unknown>"]),
            ),
        ],
    );
}

#[test]
fn flow_schemas() {
    check(
        "flowcontrol.apiserver.k8s.io",
        "FlowSchema",
        &[
            (
                json!({
                    "metadata": {"name": "f"},
                    "spec": {
                        "priorityLevelConfiguration": {"name": "exempt"},
                        "matchingPrecedence": 2,
                        "distinguisherMethod": {"type": "ByUser"},
                    },
                    "status": {"conditions": [{"type": "Dangling", "status": "False"}]},
                }),
                json!(["f", "exempt", 2, "ByUser", "<unknown>", "False"]),
            ),
            (
                json!({"metadata": {"name": "f"}}),
                json!(["f", "", 0, "<none>", "<unknown>", "?"]),
            ),
        ],
    );
}

#[test]
fn resource_claims() {
    let claim = |metadata: Value, status: Value| json!({"metadata": metadata, "status": status});
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let reserved = json!({"allocation": {}, "reservedFor": [{}]});
    check(
        "resource.k8s.io",
        "ResourceClaim",
        &[
            (claim(json!({}), json!({})), json!(["", "pending", "<unknown>"])),
            (
                claim(json!({}), json!({"allocation": {}})),
                json!(["", "allocated", "<unknown>"]),
            ),
            (
                claim(json!({}), reserved.clone()),
                json!(["", "allocated,reserved", "<unknown>"]),
            ),
            (
                claim(deleted.clone(), json!({})),
                json!(["", "deleted", "<unknown>"]),
            ),
            (
                claim(deleted, reserved),
                json!(["", "deleted,allocated,reserved", "<unknown>"]),
            ),
        ],
    );
}

#[test]
fn the_rest() {
    let created = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
    check(
        "autoscaling",
        "Scale",
        &[(
            json!({"metadata": created, "spec": {"replicas": 3}, "status": {"replicas": 2}}),
            json!(["x", 3, 2, "24h"]),
        )],
    );
    check(
        "coordination.k8s.io",
        "LeaseCandidate",
        &[(
            json!({"metadata": created, "spec": {"leaseName": "l", "binaryVersion": "1.35.0", "emulationVersion": "1.34.0"}}),
            json!(["x", "l", "1.35.0", "1.34.0", "24h"]),
        )],
    );
    check(
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy",
        &[(
            json!({"metadata": created, "spec": {"mutations": [{}]}}),
            json!(["x", 1, "<unset>", "24h"]),
        )],
    );
    check(
        "resource.k8s.io",
        "ResourceSlice",
        &[(
            json!({"metadata": created, "spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}}),
            json!(["x", "n", "d", "p", "24h"]),
        )],
    );
    check(
        "internal.apiserver.k8s.io",
        "StorageVersion",
        &[(
            json!({"metadata": created, "status": {"storageVersions": [{"apiServerID": "a", "encodingVersion": "v1"}]}}),
            json!(["x", "<unset>", "a=v1", "24h"]),
        )],
    );
}

#[test]
fn node_conditions_and_unknown_service_types() {
    let conditions = json!([{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]);
    let now = Timestamp::UNIX_EPOCH;
    let node = json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}});
    assert_eq!(cells("", "v1", "Node", &node, now)[1], "NotReady");
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "Odd"}});
    assert_eq!(cells("", "v1", "Service", &service, now)[3], "<unknown>");
}
