//! What each decision looks at, gathered from the server and the index.

use jiff::Timestamp;
use serde_json::Value;

use super::Runner;
use crate::action::{Action, Key, Kind};
use crate::object::{controller, fields, namespace, replicas, text, uid};
use crate::{
    claim, daemonset, deployment, disruption, fast, job, node, pod, replicaset, scheduler, service,
    statefulset,
};

impl Runner<'_> {
    /// What is to be done about one object.
    pub(super) fn decide(&mut self, key: &Key, now: Timestamp) -> Vec<Action> {
        if matches!(key.kind, Kind::Endpoints | Kind::EndpointSlice) {
            return Vec::new();
        }
        let Some(object) = self.api.get(key) else {
            return self.decide_gone(key);
        };
        match key.kind {
            Kind::Node => node::decide(&object, now),
            Kind::Pod => self.decide_pod(key, &object, now),
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet | Kind::ReplicaSet | Kind::Job => {
                if self.options.pods {
                    self.decide_workload(key, &object, now)
                } else {
                    self.decide_fast(key, &object, now)
                }
            }
            Kind::Service => self.decide_service(key, &object),
            Kind::Ingress => service::decide_ingress(&object, &self.index.free_balancer_address()),
            Kind::Claim => {
                let volume = self
                    .api
                    .get(&Key::new(Kind::Volume, "", &claim::volume_name(&object)));
                claim::decide(&object, volume.as_ref())
            }
            Kind::Volume => {
                let reference = &object["spec"]["claimRef"];
                let claim = Key::new(
                    Kind::Claim,
                    text(&reference["namespace"]),
                    text(&reference["name"]),
                );
                let claim = if claim.name.is_empty() {
                    None
                } else {
                    self.api.get(&claim)
                };
                claim::decide_volume(&object, claim.as_ref(), now)
            }
            // Without Pods there is nothing to count.
            Kind::Budget if self.options.pods => self.decide_budget(key, &object, now),
            Kind::Endpoints | Kind::EndpointSlice | Kind::Budget => Vec::new(),
        }
    }

    fn decide_budget(&self, key: &Key, budget: &Value, now: Timestamp) -> Vec<Action> {
        let labels: Vec<(&str, &str)> = fields(&budget["spec"]["selector"]["matchLabels"])
            .map(|(k, v)| (k.as_str(), text(v)))
            .collect();
        let keys = if labels.is_empty() {
            self.index.pods(&key.namespace)
        } else {
            self.index.labeled(&key.namespace, &labels)
        };
        let pods = self.objects(&keys).into_iter();
        let covered: Vec<disruption::Covered> = pods
            .filter(|pod| disruption::covers(budget, pod))
            .map(|pod| disruption::Covered {
                scale: self.scale_of(&pod),
                pod,
            })
            .collect();
        disruption::decide(budget, &covered, now)
    }

    /// How many there should be of the Pods that a Pod belongs to.
    fn scale_of(&self, pod: &Value) -> disruption::Scale {
        let owner_of = |object: &Value| {
            let owner = controller(object)?;
            let plural = match (text(&owner["apiVersion"]), text(&owner["kind"])) {
                ("v1", "ReplicationController") => "replicationcontrollers",
                ("apps/v1", "ReplicaSet") => "replicasets",
                ("apps/v1", "StatefulSet") => "statefulsets",
                ("apps/v1", "Deployment") => "deployments",
                _ => return None,
            };
            let found = self.api.local.get(
                text(&owner["apiVersion"]),
                plural,
                namespace(object),
                text(&owner["name"]),
            )?;
            (uid(&found) == text(&owner["uid"])).then_some(found)
        };
        let Some(owner) = controller(pod) else {
            return disruption::Scale::Unmanaged;
        };
        let Some(set) = owner_of(pod) else {
            let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
            let why =
                format!("{kind} {name:?} is not there or has no scale, so that its Pods cannot be counted");
            return disruption::Scale::Unknown(why);
        };
        // A replica set of a deployment has what the deployment leaves it.
        let whole = owner_of(&set).unwrap_or(set);
        disruption::Scale::Of {
            controller: uid(&whole).to_owned(),
            replicas: replicas(&whole),
        }
    }

    fn decide_gone(&mut self, key: &Key) -> Vec<Action> {
        if key.kind != Kind::Service {
            return Vec::new();
        }
        let endpoints = self.api.get(&Key {
            kind: Kind::Endpoints,
            ..key.clone()
        });
        endpoints.as_ref().map(service::clean_up).unwrap_or_default()
    }

    fn objects(&self, keys: &[Key]) -> Vec<Value> {
        keys.iter().filter_map(|key| self.api.get(key)).collect()
    }

    fn decide_pod(&mut self, key: &Key, object: &Value, now: Timestamp) -> Vec<Action> {
        let node = text(&object["spec"]["nodeName"]);
        if node.is_empty() {
            let actions = scheduler::decide(object, self.index.nodes(), now);
            let bound = actions.iter().any(|action| matches!(action, Action::Bind { .. }));
            self.index.set_waiting(key, !bound);
            return actions;
        }
        let since = self.agenda.since(key, pod::stage(object), now);
        let (state, host_ip) = match self.index.node(node) {
            None => (pod::NodeState::Gone, ""),
            Some(node) if node.ready => (pod::NodeState::Ready, node.address.as_str()),
            Some(node) => (pod::NodeState::NotReady, node.address.as_str()),
        };
        let pod_ip = match text(&object["status"]["podIP"]) {
            "" => self.index.free_pod_address(),
            ip => ip.to_owned(),
        };
        let seen = pod::Snapshot {
            pod: object,
            node: state,
            host_ip,
            pod_ip: &pod_ip,
            since,
        };
        pod::decide(&seen, self.options, now)
    }

    fn decide_workload(&mut self, key: &Key, object: &Value, now: Timestamp) -> Vec<Action> {
        if key.kind == Kind::Deployment {
            let owned = self.index.children(uid(object), Kind::ReplicaSet);
            let name = Key::new(Kind::ReplicaSet, &key.namespace, &deployment::set_name(object));
            let namesake = if owned.contains(&name) {
                None
            } else {
                self.api.get(&name)
            };
            let sets = self.objects(&owned);
            let seen = deployment::Snapshot {
                deployment: object,
                sets: &sets,
                namesake: namesake.as_ref(),
            };
            return deployment::decide(&seen, now);
        }
        let pods = self.objects(&self.index.children(uid(object), Kind::Pod));
        match key.kind {
            Kind::ReplicaSet => replicaset::decide(object, &pods, now),
            Kind::DaemonSet => daemonset::decide(object, self.index.nodes(), &pods, now),
            Kind::Job => job::decide(object, &pods, self.options, now),
            Kind::StatefulSet => {
                let mut existing = statefulset::wanted_keys(object);
                existing.retain(|key| self.api.get(key).is_some());
                let seen = statefulset::Snapshot {
                    set: object,
                    pods: &pods,
                    existing: &existing,
                };
                statefulset::decide(&seen, now)
            }
            _ => Vec::new(),
        }
    }

    fn decide_fast(&mut self, key: &Key, object: &Value, now: Timestamp) -> Vec<Action> {
        let since = self.agenda.since(key, fast::stage(object), now);
        let nodes = match key.kind {
            Kind::DaemonSet => daemonset::wanted_nodes(object, self.index.nodes()),
            _ => 0,
        };
        let seen = fast::Snapshot {
            workload: object,
            nodes,
            since,
            delay: self.options.delay,
        };
        fast::decide(&seen, now)
    }

    fn decide_service(&mut self, key: &Key, object: &Value) -> Vec<Action> {
        let selector: Vec<(&str, &str)> = fields(&object["spec"]["selector"])
            .map(|(k, v)| (k.as_str(), text(v)))
            .collect();
        let mut pods = self.objects(&self.index.labeled(&key.namespace, &selector));
        pods.retain(|pod| selector.iter().all(|(k, v)| pod["metadata"]["labels"][*k] == *v));
        let endpoints = self.api.get(&Key {
            kind: Kind::Endpoints,
            ..key.clone()
        });
        let slice = self.api.get(&service::slice_key(&key.namespace, &key.name));
        let seen = service::Snapshot {
            service: object,
            pods: &pods,
            endpoints: endpoints.as_ref(),
            slice: slice.as_ref(),
            address: &self.index.free_balancer_address(),
        };
        service::decide(&seen)
    }
}
