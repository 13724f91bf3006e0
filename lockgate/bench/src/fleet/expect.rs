//! What there must be after a phase, found by a plain reading of the policy and of nothing that the control plane wrote down.

use std::collections::BTreeSet;

use lockgate_api::names;
use machinery_apiserver::Local;
use machinery_auth::UserInfo;
use serde_json::Value;

use crate::error::BenchError;
use crate::fleet::load::{self, NAMESPACE, REPLICAS, STAMP};
use crate::fleet::world::{World, condition};

/// What is expected.
pub(crate) struct Expected<'a> {
    /// How many templates.
    pub(crate) templates: usize,
    /// Where they are.
    pub(crate) clusters: &'a [String],
    /// The stamp that they carry; 0 for none.
    pub(crate) stamp: u32,
    /// Whether every replica is ready, and the templates say so.
    pub(crate) ready: bool,
}

/// Reads everything back, object by object.
pub(crate) fn verify(world: &World, expected: &Expected<'_>) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    let members: Vec<(String, Local)> = world
        .members
        .iter()
        .map(|member| (member.name.clone(), member.server.local(UserInfo::apiserver())))
        .collect();
    for member in &world.members {
        let wanted = if expected.clusters.contains(&member.name) {
            expected.templates
        } else {
            0
        };
        let (present, _) = member.arrivals.counts();
        if member.arrivals.lost() || present != wanted {
            return wrong(&format!("{} has {present} objects, not {wanted}", member.name));
        }
    }
    for number in 0..expected.templates {
        let name = load::name(number);
        let Some(template) = hub.get("apps/v1", "deployments", NAMESPACE, &name) else {
            return wrong(&format!("the hub has no template {name}"));
        };
        if template["spec"]["template"]["spec"]["containers"][0]["image"] != "nginx:1.19.0" {
            return wrong(&format!("the template {name} is not the one that was sent"));
        }
        binding(&hub, &name, expected)?;
        for (cluster, member) in &members {
            let live = member.get("apps/v1", "deployments", NAMESPACE, &name);
            let work_name = names::work_name("Deployment", NAMESPACE, &name);
            let space = names::execution_namespace(cluster);
            let work = hub.get("work.karmada.io/v1alpha1", "works", &space, &work_name);
            if !expected.clusters.contains(cluster) {
                if live.is_some() || work.is_some() {
                    return wrong(&format!("{name} is left over for {cluster}"));
                }
                continue;
            }
            let Some(work) = work.filter(|work| condition(work, "Applied")) else {
                return wrong(&format!(
                    "the Work of {name} for {cluster} is not there and applied"
                ));
            };
            let Some(live) = live else {
                return wrong(&format!("{cluster} has no {name}"));
            };
            object(&template, &work, &live, cluster, expected)?;
        }
        if expected.ready {
            let ready = template["status"]["readyReplicas"].as_i64();
            // Every cluster has all of them, and the template counts those of the one that has least.
            if ready != Some(REPLICAS) {
                return wrong(&format!(
                    "{name} reports {ready:?} ready replicas, not {REPLICAS}"
                ));
            }
        }
    }
    Ok(())
}

fn binding(hub: &Local, name: &str, expected: &Expected<'_>) -> Result<(), BenchError> {
    let binding_name = names::binding_name("Deployment", name);
    let Some(binding) = hub.get(
        "work.karmada.io/v1alpha2",
        "resourcebindings",
        NAMESPACE,
        &binding_name,
    ) else {
        return wrong(&format!("{name} has no binding"));
    };
    let clusters = binding["spec"]["clusters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let found: BTreeSet<&str> = clusters
        .iter()
        .filter_map(|cluster| cluster["name"].as_str())
        .collect();
    let wanted: BTreeSet<&str> = expected.clusters.iter().map(String::as_str).collect();
    if found != wanted {
        return wrong(&format!("{name} is placed in {found:?}"));
    }
    if !condition(&binding, "Scheduled") || !condition(&binding, "FullyApplied") {
        return wrong(&format!(
            "the binding of {name} is not placed and applied: {}",
            binding["status"]
        ));
    }
    Ok(())
}

/// A member's object is the template with our marks, and nothing else.
fn object(
    template: &Value,
    work: &Value,
    live: &Value,
    cluster: &str,
    expected: &Expected<'_>,
) -> Result<(), BenchError> {
    let name = template["metadata"]["name"].as_str().unwrap_or_default();
    let differs = |what: &str| wrong(&format!("{name} in {cluster} differs in {what}"));
    if live["spec"] != template["spec"] {
        return differs("its spec");
    }
    let labels = &live["metadata"]["labels"];
    if labels["app"] != name || labels["karmada.io/managed"] != "true" {
        return differs("its labels");
    }
    let stamp = (expected.stamp > 0).then(|| expected.stamp.to_string());
    if labels[STAMP].as_str() != stamp.as_deref() {
        return differs("its stamp");
    }
    let annotations = &live["metadata"]["annotations"];
    let space = names::execution_namespace(cluster);
    if annotations["work.karmada.io/name"] != work["metadata"]["name"]
        || annotations["work.karmada.io/namespace"] != space.as_str()
        || annotations["resourcetemplate.karmada.io/uid"] != template["metadata"]["uid"]
    {
        return differs("where it comes from");
    }
    Ok(())
}

fn wrong(what: &str) -> Result<(), BenchError> {
    Err(BenchError::wrong(what))
}
