//! What a template needs beside itself, and whom a template is needed by.
//!
//! A binding that says `propagateDeps` names what its template refers to ([`dependencies`], kept in its annotation); what is
//! named follows it to its clusters ([`require`]). What always holds:
//! - A dependency goes where its referrers are placed by their own policies, never where they merely follow others. So
//!   cycles end where they begin.
//! - It stays in a cluster as long as a referrer's copy there may still be one that needs it.
//! - Missing evidence removes nothing: a referrer of which nobody can tell whether it is gone still counts.

mod cycle;
mod pod;
mod require;
#[cfg(test)]
mod tests;

use machinery_value::labels::LabelSelector;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::{self, TemplateId};

pub use cycle::{cycle, tell_cycle};
pub use pod::pod_dependencies;
pub(crate) use require::is_unplaced;
pub use require::{Disagreement, Need, RequireInput, Required, is_attached, require};

/// How many dependencies one template may have.
const MOST: usize = 1000;
/// How long they may be as a binding's annotation. A server takes 256 KiB of annotations, and a binding has others: the record of
/// its rollout alone may take 100.
const MOST_BYTES: usize = 128 * 1024;

/// Made by every cluster for itself.
const CLUSTERS_OWN: &str = "kube-root-ca.crt";

/// Something that a template needs: one object by its name, or all that a selector matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependency {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name; empty if a selector says which.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which ones, by their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Value>,
}

impl Dependency {
    /// One object of a namespace.
    pub fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            label_selector: None,
        }
    }

    /// The one object that is meant, if it is named.
    pub fn id(&self) -> Option<TemplateId> {
        (!self.name.is_empty()).then(|| TemplateId {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }

    /// Whether this object is meant. A selector that cannot be read means nothing.
    pub fn means(&self, object: &Value) -> bool {
        let id = TemplateId::of(object);
        if self.api_version != id.api_version || self.kind != id.kind || self.namespace != id.namespace {
            return false;
        }
        if !self.name.is_empty() {
            return self.name == id.name;
        }
        self.label_selector
            .as_ref()
            .and_then(|selector| LabelSelector::from_object(Some(selector)).ok())
            .is_some_and(|selector| selector.matches_labels(object::labels(object)))
    }

    fn key(&self) -> (&str, &str, &str, &str, String) {
        let selector = self.label_selector.as_ref().map(Value::to_string);
        (
            &self.api_version,
            &self.kind,
            &self.namespace,
            &self.name,
            selector.unwrap_or_default(),
        )
    }
}

/// What a template of a built-in kind needs: in order, each once.
pub fn dependencies(template: &Value) -> Vec<Dependency> {
    let id = TemplateId::of(template);
    let mut found = Vec::new();
    match (id.group(), id.kind.as_str()) {
        ("", "Pod") => pod_dependencies(&template["spec"], &id.namespace, &mut found),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") | ("batch", "Job") => {
            pod_dependencies(&template["spec"]["template"]["spec"], &id.namespace, &mut found);
        }
        ("batch", "CronJob") => {
            let pod = &template["spec"]["jobTemplate"]["spec"]["template"]["spec"];
            pod_dependencies(pod, &id.namespace, &mut found);
        }
        ("networking.k8s.io", "Ingress") => {
            let names = list(&template["spec"]["tls"]).map(|tls| object::text(tls, "secretName"));
            found.extend(names.map(|name| Dependency::named("v1", "Secret", &id.namespace, name)));
        }
        ("multicluster.x-k8s.io", "ServiceImport") => {
            let derived = format!("derived-{}", id.name);
            found.push(Dependency::named("v1", "Service", &id.namespace, &derived));
            found.push(Dependency {
                label_selector: Some(json!({"matchLabels": {"kubernetes.io/service-name": derived}})),
                ..Dependency::named("discovery.k8s.io/v1", "EndpointSlice", &id.namespace, "")
            });
        }
        _ => {}
    }
    if id.group() == "apps" && id.kind == "StatefulSet" {
        // Their claims are made in the cluster.
        let made: Vec<&str> = list(&template["spec"]["volumeClaimTemplates"])
            .map(|claim| object::meta_text(claim, "name"))
            .collect();
        found
            .retain(|needed| needed.kind != "PersistentVolumeClaim" || !made.contains(&needed.name.as_str()));
    }
    settled(found, &id)
}

/// In order, each once, and without what means nothing: no name and no selector, the template itself, what every cluster
/// makes for itself.
pub fn settled(mut found: Vec<Dependency>, referrer: &TemplateId) -> Vec<Dependency> {
    found.retain(|needed| {
        let own = needed.kind == "ConfigMap" && needed.api_version == "v1" && needed.name == CLUSTERS_OWN;
        let said = !needed.kind.is_empty() && (!needed.name.is_empty() || needed.label_selector.is_some());
        said && !own && needed.id().as_ref() != Some(referrer)
    });
    found.sort_by(|a, b| a.key().cmp(&b.key()));
    found.dedup();
    found
}

/// As the binding's annotation says it.
pub fn encode(dependencies: &[Dependency]) -> String {
    // Strings, lists and maps with string keys are always written.
    serde_json::to_string(dependencies).unwrap_or_default()
}

/// Why these are more than a binding can name, in words; none if they are not.
pub fn too_many(dependencies: &[Dependency]) -> Option<String> {
    let (count, bytes) = (dependencies.len(), encode(dependencies).len());
    if count > MOST {
        Some(format!("{count} objects, of which at most {MOST} can follow it"))
    } else if bytes > MOST_BYTES {
        Some(format!(
            "{count} objects whose names take {bytes} bytes, of which a binding can carry at most {MOST_BYTES}"
        ))
    } else {
        None
    }
}

/// From what a binding's annotation says; none if it is no such list.
pub fn decode(annotation: &str) -> Option<Vec<Dependency>> {
    serde_json::from_str(annotation).ok()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
