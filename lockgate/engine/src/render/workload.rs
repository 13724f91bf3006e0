//! Workloads: kinds that have replicas to give out.

use std::collections::BTreeMap;

use lockgate_api::BindingSpec;
use lockgate_api::binding::TargetCluster;
use serde_json::Value;

use super::requirements::requirements;
use crate::object::{self, TemplateId};
use crate::place::webster;

/// What placing must know of a template that has replicas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// How many replicas the template asks for.
    pub replicas: i64,
    /// What one replica needs: `replicaRequirements` of the binding. Absent if it asks for nothing.
    pub requirements: Option<Value>,
}

/// How a kind counts replicas, and where its pods are described.
struct Counting {
    /// The field of `spec`; none if there is always one replica.
    field: Option<&'static str>,
    /// A pointer to the pod's spec.
    pod_spec: &'static str,
}

fn counting(object: &Value) -> Option<Counting> {
    let (field, pod_spec) = match (object::text(object, "apiVersion"), object::text(object, "kind")) {
        ("apps/v1", "Deployment" | "StatefulSet") => (Some("replicas"), "/spec/template/spec"),
        ("batch/v1", "Job") => (Some("parallelism"), "/spec/template/spec"),
        ("v1", "Pod") => (None, "/spec"),
        _ => return None,
    };
    Some(Counting { field, pod_spec })
}

/// The template as a workload, if its kind has replicas.
pub fn workload(template: &Value) -> Option<Workload> {
    let counting = counting(template)?;
    // Servers default all of these fields to one.
    let asked = counting.field.and_then(|field| template["spec"][field].as_i64());
    Some(Workload {
        replicas: asked.unwrap_or(1),
        requirements: template.pointer(counting.pod_spec).and_then(requirements),
    })
}

/// How many completions of a Job each cluster gets, if they are divided: in the proportion of the replicas. A Job that is
/// held by a parallelism of 0 is split evenly: none at all would be a Job that is complete.
pub fn completions(spec: &BindingSpec, template: &Value) -> BTreeMap<String, i64> {
    let divided = spec
        .placement
        .as_ref()
        .and_then(|placement| placement.replica_scheduling.as_ref())
        .is_some_and(|scheduling| scheduling.replica_scheduling_type != "Duplicated");
    let id = TemplateId::of(template);
    match template["spec"]["completions"].as_i64() {
        Some(total) if divided && id.kind == "Job" && id.group() == "batch" => {
            let held = spec.clusters.iter().all(|target| target.replicas == 0);
            let weight = |target: &TargetCluster| if held { 1 } else { target.replicas };
            let weights: Vec<(String, i64)> = spec
                .clusters
                .iter()
                .map(|target| (target.name.clone(), weight(target)))
                .collect();
            webster(total, &weights, &spec.resource.uid).into_iter().collect()
        }
        _ => BTreeMap::new(),
    }
}

/// Sets the replicas that one cluster gets. Kinds that have no field for them stay as they are.
pub(super) fn revise_replicas(manifest: &mut Value, replicas: i64) {
    let field = counting(manifest).and_then(|counting| counting.field);
    if let (Some(field), Some(spec)) = (field, spec(manifest)) {
        spec.insert(field.to_owned(), replicas.into());
    }
}

/// Sets the completions of a Job that counts them.
pub(super) fn revise_completions(manifest: &mut Value, completions: i64) {
    if object::text(manifest, "kind") != "Job" {
        return;
    }
    if let Some(field) = spec(manifest).and_then(|spec| spec.get_mut("completions"))
        && !field.is_null()
    {
        *field = completions.into();
    }
}

fn spec(manifest: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    manifest.get_mut("spec")?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_count_their_replicas() {
        let of = |api: &str, kind: &str, spec: Value| {
            workload(&json!({"apiVersion": api, "kind": kind, "spec": spec}))
                .map(|workload| workload.replicas)
        };
        assert_eq!(of("apps/v1", "Deployment", json!({"replicas": 6})), Some(6));
        assert_eq!(of("apps/v1", "Deployment", json!({"replicas": 0})), Some(0));
        assert_eq!(of("apps/v1", "Deployment", json!({})), Some(1));
        assert_eq!(of("apps/v1", "StatefulSet", json!({"replicas": 3})), Some(3));
        assert_eq!(
            of("batch/v1", "Job", json!({"parallelism": 4, "completions": 9})),
            Some(4)
        );
        assert_eq!(of("v1", "Pod", json!({"replicas": 7})), Some(1));
        assert_eq!(of("apps/v1", "ReplicaSet", json!({"replicas": 3})), None);
        assert_eq!(of("apps/v1", "DaemonSet", json!({})), None);
        assert_eq!(of("example.io/v1", "Deployment", json!({"replicas": 3})), None);
        assert_eq!(of("v1", "ConfigMap", Value::Null), None);
    }

    #[test]
    fn completions_are_split_as_replicas_are() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"completions": 6}});
        let split = |how: &str, replicas: &[i64]| {
            let clusters: Vec<Value> = replicas
                .iter()
                .enumerate()
                .map(|(index, replicas)| json!({"name": format!("m{index}"), "replicas": replicas}))
                .collect();
            let spec = json!({"clusters": clusters, "placement": {"replicaScheduling": {"replicaSchedulingType": how}}});
            let spec: BindingSpec = serde_json::from_value(spec).unwrap();
            completions(&spec, &job).into_values().collect::<Vec<_>>()
        };
        assert_eq!(split("Divided", &[2, 1]), [4, 2]);
        assert_eq!(split("Divided", &[3, 0]), [6, 0]);
        assert_eq!(split("Divided", &[0, 0]), [3, 3], "held, and not complete");
        assert_eq!(split("Divided", &[]), [0; 0]);
        assert_eq!(split("Duplicated", &[2, 2]), [0; 0]);
    }

    #[test]
    fn a_cluster_gets_its_share() {
        let revised = |api: &str, kind: &str, spec: Value| {
            let mut object = json!({"apiVersion": api, "kind": kind, "spec": spec});
            revise_replicas(&mut object, 2);
            revise_completions(&mut object, 5);
            object["spec"].take()
        };
        assert_eq!(
            revised("apps/v1", "Deployment", json!({"replicas": 6, "completions": 1})),
            json!({"replicas": 2, "completions": 1})
        );
        assert_eq!(
            revised("batch/v1", "Job", json!({"parallelism": 6, "completions": 9})),
            json!({"parallelism": 2, "completions": 5})
        );
        assert_eq!(
            revised("batch/v1", "Job", json!({"parallelism": 6})),
            json!({"parallelism": 2})
        );
        assert_eq!(revised("v1", "Pod", json!({})), json!({}));
        assert_eq!(revised("apps/v1", "Deployment", json!("broken")), json!("broken"));
    }
}
