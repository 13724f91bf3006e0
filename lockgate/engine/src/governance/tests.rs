//! Policies on a hub that is a few maps: replicas are written as planned, and members report what the test says.

mod kept;
mod replicas;
mod rollouts;
mod selections;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lockgate_api::ocm::policy::{PolicyTemplate, REVISION, TemplateDetails, TemplateMeta};
use lockgate_api::ocm::{Policy, PolicySet};
use serde_json::{Value, json};

use super::*;
use crate::gate::groups::{DecisionGroup, Groups};
use crate::gate::record::{Request, RolloutRecord, Verb};
use crate::gate::run::Reach;

/// A root, its clusters, and everything that is stored.
struct World {
    root: Policy,
    selection: Selection,
    replicas: BTreeMap<String, Policy>,
    record: RolloutRecord,
    now: Timestamp,
    lost: Vec<String>,
    requests: i64,
    /// What is sent in the place of the root, which whoever keeps revisions finds.
    sent: Option<Policy>,
}

/// A root with this strategy and action.
fn root(strategy: Value, action: &str) -> Policy {
    let mut root = Policy::default();
    root.metadata.namespace = "policies".to_owned();
    root.metadata.name = "pods".to_owned();
    root.metadata.generation = 1;
    root.spec.remediation_action = action.to_owned();
    root.spec.rollout_strategy = serde_json::from_value(strategy).unwrap();
    root.spec.policy_templates = vec![PolicyTemplate {
        object_definition: json!({"kind": "ConfigurationPolicy", "metadata": {"name": "one"}, "spec": {"version": 1}}),
        ..PolicyTemplate::default()
    }];
    root
}

fn groups(of: &[(&str, &[&str])]) -> Groups {
    Groups::new(
        of.iter()
            .enumerate()
            .map(|(index, (name, clusters))| DecisionGroup {
                index: index as u32,
                name: (*name).to_owned(),
                clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
            }),
    )
}

impl World {
    fn new(root: Policy, of: &[(&str, &[&str])]) -> Self {
        Self {
            root,
            selection: Selection {
                groups: groups(of),
                is_bound: true,
                ..Selection::default()
            },
            replicas: BTreeMap::new(),
            record: RolloutRecord::default(),
            now: Timestamp::from_second(1_000_000).unwrap(),
            lost: Vec::new(),
            requests: 0,
            sent: None,
        }
    }

    fn plan(&self, request: Option<Request>) -> RootPlan {
        let known = self.known();
        plan(&RootInput {
            root: &self.root,
            manner: &Manner::read(&self.root).unwrap(),
            selection: &self.selection,
            set: &|_, _| None::<&PolicySet>,
            known: &known,
            record: &self.record,
            request,
            chosen: None,
            sent: self.sent.as_ref(),
            now: self.now,
        })
    }

    fn known(&self) -> BTreeMap<String, Known> {
        let of = |cluster: &str| Known {
            replica: self.replicas.get(cluster).cloned().map(Arc::new),
            reach: if self.lost.iter().any(|lost| lost == cluster) {
                Reach::Lost
            } else {
                Reach::Since(None)
            },
        };
        let clusters = self.selection.groups.clusters();
        clusters
            .map(|(cluster, _)| (cluster.to_owned(), of(cluster)))
            .collect()
    }

    /// One pass; whether it wrote anything.
    fn pass(&mut self, request: Option<Request>) -> (RootPlan, bool) {
        let plan = self.plan(request);
        let mut wrote = plan.record != self.record;
        self.record = plan.record.clone();
        for write in &plan.writes {
            wrote = true;
            let cluster = write.metadata.namespace.clone();
            let status = self.replicas.remove(&cluster).and_then(|old| old.status);
            let replica = Policy {
                status,
                ..write.clone()
            };
            self.replicas.insert(cluster, replica);
        }
        if plan.again {
            return (plan, true);
        }
        let now = self.now;
        let known = self.known();
        let status = tell::status(&self.root, None, &self.selection, Some((&plan, &known)), &[], now);
        wrote |= self.root.status.replace(status.clone()) != Some(status);
        for standing in &plan.standings {
            if let Some(replica) = self.replicas.get_mut(&standing.cluster) {
                let mut status = replica.status.clone().unwrap_or_default();
                standing.put(&mut status);
                wrote |= replica.status.replace(status.clone()) != Some(status);
            }
        }
        (plan, wrote)
    }

    /// Passes as the hub does; our own writes wake nobody, so that another pass may have nothing to write.
    fn settle(&mut self) -> RootPlan {
        self.ask(None)
    }

    fn ask(&mut self, mut request: Option<Request>) -> RootPlan {
        for _ in 0..20 {
            let (plan, _) = self.pass(request.take());
            if !plan.again {
                let (_, wrote) = self.pass(None);
                assert!(!wrote, "another pass writes: {:?}", self.states());
                return plan;
            }
        }
        panic!("it does not settle");
    }

    fn command(&mut self, verb: Verb) -> RootPlan {
        self.requests += 1;
        self.ask(Some(Request {
            id: self.requests.to_string(),
            verb,
            to: None,
            reason: "because".to_owned(),
            by: "admin".to_owned(),
        }))
    }

    /// A member has evaluated what it has.
    fn report(&mut self, cluster: &str, state: &str) {
        let replica = self.replicas.get_mut(cluster).unwrap();
        let evaluated = replica.metadata.annotation(REVISION).unwrap().to_owned();
        let status = replica.status.get_or_insert_default();
        status.evaluated_revision = evaluated;
        state.clone_into(&mut status.compliant);
        let details = TemplateDetails {
            template_meta: TemplateMeta {
                name: "one".to_owned(),
                ..TemplateMeta::default()
            },
            compliant: state.to_owned(),
            history: Vec::new(),
        };
        status.details = vec![details; replica.spec.policy_templates.len()];
    }

    fn advance(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// The clusters with their state and action, as `a Progressing enforce`.
    fn states(&self) -> Vec<String> {
        let of = |(cluster, replica): (&String, &Policy)| {
            let status = replica.status.clone().unwrap_or_default();
            let action = &replica.spec.remediation_action;
            format!("{cluster} {} {action}", status.rollout_status)
                .trim_end()
                .to_owned()
        };
        self.replicas.iter().map(of).collect()
    }

    fn overall(&self) -> String {
        self.root.status.clone().unwrap_or_default().rollout_status
    }

    /// The version of the content of a replica.
    fn version(&self, cluster: &str) -> i64 {
        let template = &self.replicas[cluster].spec.policy_templates[0];
        template.object_definition["spec"]["version"].as_i64().unwrap()
    }

    fn edit(&mut self, version: i64) {
        self.root.spec.policy_templates[0].object_definition["spec"]["version"] = json!(version);
        self.root.metadata.generation += 1;
    }

    fn since(&self, cluster: &str) -> Timestamp {
        let status = self.replicas[cluster].status.clone().unwrap();
        status.rollout_status_transition_time.unwrap().parse().unwrap()
    }
}
