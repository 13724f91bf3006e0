//! Why a template goes where it goes: for every cluster whether it is chosen, what it failed, and what would help. Decided
//! from the binding, as the controllers decide.

use std::sync::Arc;

use lockgate_api::{Binding, Cluster, Condition};
use lockgate_engine::TemplateId;
use lockgate_engine::place::{RejectionReason, Verdict};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::preview;
use crate::print::{Cell, Paint, Table, Tone};
use crate::status::judge;
use crate::status::objects::Objects;

/// A cluster, and why it is chosen or not.
#[derive(Debug)]
pub(super) struct Explained {
    pub(super) cluster: String,
    /// The replicas that it has, if it is chosen.
    pub(super) chosen: Option<i64>,
    pub(super) why: String,
    pub(super) help: &'static str,
}

/// Why a template goes where it goes.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) template: String,
    /// What keeps it from being placed.
    pub(super) failed: Option<String>,
    pub(super) clusters: Vec<Explained>,
    /// What is left out, because whoever asks may not list it.
    pub(super) left_out: Option<String>,
}

impl Answer {
    /// What the objects of the hub say of a template.
    pub(super) fn of(id: &TemplateId, objects: &Objects) -> Result<Self, Failure> {
        let is_of = |binding: &&Binding| crate::status::is_of(binding, id);
        let Some(binding) = objects.bindings.iter().find(is_of) else {
            if let Some(command) = crate::status::rollout_of_policy(id) {
                return Err(Failure::Other(format!(
                    "{id} goes to the clusters of its PlacementBindings; `{command}` says where it is"
                )));
            }
            let scope = match id.namespace.as_str() {
                "" => String::new(),
                namespace => format!(" -n {namespace}"),
            };
            return Err(Failure::Other(format!(
                "{id} has no binding, so that it is placed nowhere; `lockgate status {}/{}{scope}` says why",
                id.kind.to_lowercase(),
                id.name
            )));
        };
        if objects.hides("clusters") {
            return Ok(Self::without_clusters(id, binding, objects));
        }
        let mut clusters: Vec<Arc<Cluster>> = objects.clusters.iter().cloned().map(Arc::new).collect();
        clusters.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let placed = preview::placed(binding, &objects.bindings, &clusters);
        let failed = match &placed.verdict {
            _ if judge::reserved(binding).is_some() => judge::reserved(binding).map(str::to_owned),
            Verdict::NoClusterFit { message, .. } | Verdict::Unschedulable { message } => {
                Some(message.clone())
            }
            Verdict::Unchanged | Verdict::Clusters(_) => None,
        };
        let explain = |cluster: &Arc<Cluster>| {
            let name = &cluster.metadata.name;
            let target = binding.spec.clusters.iter().find(|target| target.name == *name);
            let rejection = placed.rejected.iter().find(|one| one.cluster == *name);
            let (why, help) = match (target, rejection) {
                (None, Some(rejection)) => (rejection.message.clone(), rejection.help),
                (Some(_), Some(rejection)) => (
                    format!("it is there, and would not be chosen now: {}", rejection.message),
                    rejection.help,
                ),
                (None, None) if failed.is_none() && binding.spec.placement.is_some() => (
                    "it would be chosen if the template were placed now".to_owned(),
                    "",
                ),
                _ => (String::new(), ""),
            };
            Explained {
                cluster: name.clone(),
                chosen: target.map(|target| target.replicas),
                why,
                help,
            }
        };
        let absent = placed
            .rejected
            .iter()
            .filter(|one| one.reason == RejectionReason::Absent);
        let absent = absent.map(|one| Explained {
            cluster: one.cluster.clone(),
            chosen: None,
            why: one.message.clone(),
            help: one.help,
        });
        let clusters = clusters.iter().map(explain).chain(absent).collect();
        Ok(Self {
            template: id.to_string(),
            failed,
            clusters,
            left_out: objects.left_out(),
        })
    }

    /// What the binding alone says: where the template goes, and what kept it from being placed.
    fn without_clusters(id: &TemplateId, binding: &Binding, objects: &Objects) -> Self {
        let scheduled = Condition::find(&binding.status.conditions, "Scheduled");
        let unplaced = scheduled.filter(|condition| condition.status == "False");
        let failed = judge::reserved(binding).or(unplaced.map(|condition| condition.message.as_str()));
        let chosen = binding.spec.clusters.iter().map(|target| Explained {
            cluster: target.name.clone(),
            chosen: Some(target.replicas),
            why: String::new(),
            help: "",
        });
        let mut clusters: Vec<Explained> = chosen.collect();
        clusters.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        Self {
            template: id.to_string(),
            failed: failed.map(str::to_owned),
            clusters,
            left_out: objects.left_out(),
        }
    }

    /// The answer for people.
    pub(super) fn table(&self, headers: bool, paint: Paint) -> String {
        let mut text = String::new();
        if headers {
            let chosen = self.clusters.iter().filter(|one| one.chosen.is_some()).count();
            let head = paint.tone(&self.template, Tone::Strong);
            text.push_str(&format!("{head}   {chosen} selected\n"));
            if let Some(failed) = &self.failed {
                text.push_str(&format!("{}\n", paint.tone(failed, Tone::Bad)));
            }
            if let Some(left_out) = &self.left_out {
                text.push_str(&format!("{left_out}\n"));
            }
            text.push('\n');
        }
        let mut table = Table::new(&["CLUSTER", "SELECTED", "REPLICAS", "WHY", "WHAT WOULD HELP"]);
        for one in &self.clusters {
            let selected = match one.chosen {
                Some(_) => Cell::new("✔ yes", Tone::Good),
                None => Cell::new("– no", Tone::Faint),
            };
            let replicas = one.chosen.filter(|replicas| *replicas > 0);
            table.row(vec![
                one.cluster.as_str().into(),
                selected,
                replicas
                    .map(|replicas| replicas.to_string())
                    .unwrap_or_default()
                    .into(),
                one.why.as_str().into(),
                one.help.into(),
            ]);
        }
        text.push_str(&table.render(paint, headers));
        text
    }

    /// The answer for programs.
    pub(super) fn value(&self) -> Value {
        let clusters = self.clusters.iter().map(|one| {
            json!({
                "cluster": one.cluster,
                "selected": one.chosen.is_some(),
                "replicas": one.chosen.filter(|replicas| *replicas > 0),
                "why": one.why,
                "help": one.help,
            })
        });
        let mut value = json!({
            "template": self.template,
            "failed": self.failed,
            "clusters": clusters.collect::<Value>(),
        });
        if let Some(left_out) = &self.left_out {
            value["notes"] = json!([left_out]);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects() -> Objects {
        let cluster = |name: &str, tier: &str, taints: Value| -> Cluster {
            serde_json::from_value(json!({
                "metadata": {"name": name, "labels": {"tier": tier}},
                "spec": {"syncMode": "Push", "taints": taints},
                "status": {"apiEnablements": [{"groupVersion": "v1", "resources": [
                    {"name": "configmaps", "kind": "ConfigMap"}]}]},
            }))
            .unwrap()
        };
        let binding = json!({
            "metadata": {"name": "web-configmap", "namespace": "shop"},
            "spec": {
                "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "web"},
                "placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}},
                "clusters": [{"name": "a"}, {"name": "b"}],
            },
        });
        Objects {
            bindings: vec![serde_json::from_value(binding).unwrap()],
            clusters: vec![
                cluster("d", "gold", json!([])),
                cluster("c", "gold", json!([{"key": "gpu", "effect": "NoSchedule"}])),
                cluster("b", "iron", json!([])),
                cluster("a", "gold", json!([])),
            ],
            ..Objects::default()
        }
    }

    fn id(name: &str) -> TemplateId {
        TemplateId {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn every_cluster_is_explained() {
        let answer = Answer::of(&id("web"), &objects())
            .map_err(|e| e.to_string())
            .unwrap();
        let text = answer.table(true, Paint::OFF);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ConfigMap shop/web   2 selected");
        assert!(lines[3].starts_with("a         ✔ yes"), "{text}");
        assert!(
            lines[4].contains("it is there, and would not be chosen now: the placement's"),
            "{text}"
        );
        assert!(
            lines[4].ends_with("change the cluster's labels, or the selector"),
            "{text}"
        );
        assert!(lines[5].contains("– no"), "{text}");
        assert!(lines[5].contains("it has the taint gpu:NoSchedule"), "{text}");
        assert!(
            lines[6].contains("it would be chosen if the template were placed now"),
            "{text}"
        );
        let value = answer.value();
        assert_eq!(value["clusters"][2]["selected"], false);
        assert!(
            value["clusters"][2]["help"].as_str().unwrap().contains("taint"),
            "{value}"
        );
    }

    #[test]
    fn who_may_not_list_clusters_is_told_what_the_binding_says() {
        let mut objects = objects();
        objects.clusters.clear();
        objects.unseen.push("clusters");
        let answer = |objects: &Objects| {
            Answer::of(&id("web"), objects)
                .map_err(|e| e.to_string())
                .unwrap()
        };
        let text = answer(&objects).table(true, Paint::OFF);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ConfigMap shop/web   2 selected");
        assert_eq!(lines[1], "left out, because you may not list it: clusters");
        assert!(lines[4].starts_with("a         ✔ yes"), "{text}");
        assert!(lines[5].starts_with("b         ✔ yes"), "{text}");
        let value = answer(&objects).value();
        assert_eq!(value["failed"], Value::Null);
        assert_eq!(value["clusters"][1]["selected"], true);
        let condition =
            json!({"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "none fits"});
        let conditions = &mut objects.bindings[0].status.conditions;
        conditions.push(serde_json::from_value(condition).unwrap());
        assert_eq!(answer(&objects).value()["failed"], "none fits");
    }

    #[test]
    fn clusters_that_are_named_and_not_there_are_told() {
        let mut objects = objects();
        let named = json!({"clusterAffinity": {"clusterNames": ["a", "b", "bee"]}});
        objects.bindings[0].spec.placement = serde_json::from_value(named).unwrap();
        let answer = Answer::of(&id("web"), &objects)
            .map_err(|e| e.to_string())
            .unwrap();
        let value = answer.value();
        assert_eq!(value["failed"], Value::Null);
        let last = value["clusters"].as_array().unwrap().last().unwrap();
        assert_eq!(last["cluster"], "bee", "{value}");
        assert_eq!(last["selected"], false);
        assert!(
            last["why"].as_str().unwrap().contains("no cluster of that name"),
            "{last}"
        );
    }

    #[test]
    fn a_policy_is_told_who_knows_where_it_is() {
        let policy = TemplateId {
            api_version: "policy.open-cluster-management.io/v1".to_owned(),
            kind: "Policy".to_owned(),
            ..id("limits")
        };
        let error = Answer::of(&policy, &objects())
            .map_err(|e| e.to_string())
            .unwrap_err();
        assert!(
            error.contains("`lockgate rollout status policy/limits -n shop` says where it is"),
            "{error}"
        );
    }

    #[test]
    fn what_has_no_binding_is_said() {
        let error = Answer::of(&id("other"), &objects())
            .map_err(|e| e.to_string())
            .unwrap_err();
        assert!(
            error.contains("`lockgate status configmap/other -n shop` says why"),
            "{error}"
        );
    }
}
