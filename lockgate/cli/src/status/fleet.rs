//! The reports about the whole hub, one policy and one cluster.

use std::collections::BTreeMap;

use lockgate_api::{Binding, Cluster, Condition, PropagationPolicy};
use lockgate_engine::claim::propagation_differs;
use lockgate_engine::gate::is_everywhere;

use crate::status::claim::{asked, policy_name, template_of};
use crate::status::judge::{self, Whole};
use crate::status::objects::{Known, Objects, WorkView};
use crate::status::report::{
    ClusterLine, ClusterReport, ConditionLine, FleetReport, PolicyLine, PolicyReport, State, TemplateLine,
};

impl ConditionLine {
    pub(crate) fn of(condition: &Condition) -> Self {
        Self {
            condition: condition.kind.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }
}

/// The whole hub, or what of it is in one namespace: policies that reach it, and templates in it.
pub(crate) fn fleet(namespace: Option<&str>, objects: &Objects) -> FleetReport {
    let inside = |of: &str| namespace.is_none_or(|wanted| of.is_empty() || of == wanted);
    let templates: Vec<(TemplateLine, &Binding)> = objects
        .bindings
        .iter()
        .filter(|binding| inside(&binding.metadata.namespace))
        .map(|binding| (template_line(binding, judge::binding(binding, objects)), binding))
        .collect();
    let mut policies: Vec<PolicyLine> = objects
        .policies
        .iter()
        .filter(|policy| inside(&policy.metadata.namespace))
        .map(|policy| policy_line(policy, &templates, objects))
        .collect();
    policies.sort_by(|a, b| (a.state, &a.policy).cmp(&(b.state, &b.policy)));
    let mut clusters: Vec<ClusterLine> = objects
        .clusters
        .iter()
        .map(|c| cluster_line(c, objects))
        .collect();
    clusters.sort_by(|a, b| (a.well(), &a.cluster).cmp(&(b.well(), &b.cluster)));
    let count = templates.len();
    let mut not_well: Vec<TemplateLine> = templates
        .into_iter()
        .map(|(line, _)| line)
        .filter(|line| line.state != State::Healthy)
        .collect();
    not_well.sort_by(|a, b| (a.state, &a.template).cmp(&(b.state, &b.template)));
    let next = fleet_next(&not_well, &policies, &clusters, objects);
    FleetReport {
        templates: count,
        not_well,
        policies,
        clusters,
        notes: objects.silence().into_iter().chain(objects.left_out()).collect(),
        next,
    }
}

fn fleet_next(
    not_well: &[TemplateLine],
    policies: &[PolicyLine],
    clusters: &[ClusterLine],
    objects: &Objects,
) -> String {
    let sick = clusters.iter().find(|cluster| cluster.ready != "True");
    match (not_well.first(), sick) {
        (Some(line), None) => format!("lockgate status {}", line.ask),
        (Some(line), _) if line.state <= State::Unhealthy => format!("lockgate status {}", line.ask),
        (_, Some(cluster)) => format!("lockgate status cluster/{}", cluster.cluster),
        _ if clusters.is_empty() && !objects.hides("clusters") => {
            "lockgate join NAME --member-kubeconfig FILE".into()
        }
        _ if policies.is_empty() => "kubectl apply -f examples/first-steps.yaml".into(),
        _ if policies.iter().any(|policy| !policy.reason.is_empty()) => policies
            .iter()
            .find(|policy| !policy.reason.is_empty())
            .map_or_else(String::new, |policy| format!("lockgate status {}", policy.ask)),
        _ if policies.iter().any(|policy| policy.pending > 0) => "lockgate pending -A".into(),
        _ => "lockgate status --watch".into(),
    }
}

/// One policy, with all templates that were propagated by it.
pub(crate) fn policy(policy: &PropagationPolicy, objects: &Objects) -> PolicyReport {
    let templates: Vec<(TemplateLine, &Binding)> = objects
        .bindings
        .iter()
        .filter(|binding| is_claimed_by(binding, policy))
        .map(|binding| (template_line(binding, judge::binding(binding, objects)), binding))
        .collect();
    let line = policy_line(policy, &templates, objects);
    // What a condition says is shown with it.
    let mut notes: Vec<String> = objects.awaits(policy).into_iter().collect();
    if let Some(status) = &policy.status {
        if !status.pending_templates.is_empty() {
            notes.push(format!("pending: {}", status.pending_templates.join(", ")));
        }
        if status
            .observed_generation
            .is_some_and(|seen| seen < policy.metadata.generation)
        {
            notes.push("its newest version has not been looked at yet".into());
        }
    }
    notes.extend(objects.left_out());
    let mut templates: Vec<TemplateLine> = templates.into_iter().map(|(line, _)| line).collect();
    templates.sort_by(|a, b| (a.state, &a.template).cmp(&(b.state, &b.template)));
    let next = match templates.first() {
        Some(first) if first.state != State::Healthy => format!("lockgate status {}", first.ask),
        _ if line.pending > 0 => format!("lockgate pending --policy {}", line.ask),
        Some(_) => format!("lockgate status {} --watch", line.ask),
        None => format!("kubectl get {} -o yaml", line.ask),
    };
    PolicyReport {
        policy: line,
        conditions: policy
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().map(ConditionLine::of))
            .collect(),
        templates,
        notes,
        next,
    }
}

/// One cluster, with the Works that are not well there.
pub(crate) fn cluster(cluster: &Cluster, objects: &Objects) -> ClusterReport {
    let works = objects
        .works
        .iter()
        .filter(|work| work.cluster == cluster.metadata.name);
    let mut not_well: Vec<TemplateLine> = works
        .map(|work| work_line(work, cluster))
        .filter(|line| line.state != State::Healthy)
        .collect();
    not_well.sort_by(|a, b| (a.state, &a.template).cmp(&(b.state, &b.template)));
    let line = cluster_line(cluster, objects);
    let next = match not_well.first().filter(|first| first.state <= State::Unhealthy) {
        Some(first) => format!("lockgate status {}", first.ask),
        None if line.ready != "True" => format!("kubectl get cluster {} -o yaml", line.cluster),
        None => format!("lockgate status cluster/{} --watch", line.cluster),
    };
    ClusterReport {
        cluster: line,
        conditions: cluster.status.conditions.iter().map(ConditionLine::of).collect(),
        taints: cluster
            .spec
            .taints
            .iter()
            .map(|taint| {
                let value = if taint.value.is_empty() {
                    String::new()
                } else {
                    format!("={}", taint.value)
                };
                format!("{}{value}:{}", taint.key, taint.effect)
            })
            .collect(),
        not_well,
        next,
    }
}

fn is_claimed_by(binding: &Binding, policy: &PropagationPolicy) -> bool {
    use lockgate_api::keys::{CPP_ID, PP_ID};
    let id = policy.permanent_id();
    let key = if policy.is_cluster_scoped() { CPP_ID } else { PP_ID };
    !id.is_empty() && binding.metadata.label(key) == Some(id)
}

/// What of a policy itself has no effect, whatever its templates say, and how it is for that.
fn trouble(policy: &PropagationPolicy, objects: &Objects) -> Option<(State, String)> {
    let conditions = policy.status.as_ref().map(|status| status.conditions.as_slice());
    let kinds = Condition::find(conditions.unwrap_or_default(), "KindsServed");
    let unserved = kinds.filter(|condition| condition.status == "False");
    unserved
        .map(|condition| (State::NotPropagated, condition.message.clone()))
        .or_else(|| objects.awaits(policy).map(|what| (State::Waiting, what)))
}

fn policy_line(
    policy: &PropagationPolicy,
    templates: &[(TemplateLine, &Binding)],
    objects: &Objects,
) -> PolicyLine {
    let own: Vec<&(TemplateLine, &Binding)> = templates
        .iter()
        .filter(|(_, binding)| is_claimed_by(binding, policy))
        .collect();
    let status = policy.status.as_ref();
    let counted = |count: Option<i64>| count.and_then(|count| usize::try_from(count).ok());
    // The policy's own count includes templates that are claimed and have no binding yet.
    let claimed = counted(status.and_then(|status| status.claimed))
        .unwrap_or(own.len())
        .max(own.len());
    let differing = || {
        own.iter()
            .filter(|(_, binding)| propagation_differs(policy, binding))
            .count()
    };
    let pending = counted(status.and_then(|status| status.pending)).unwrap_or_else(differing);
    let worst = own.iter().map(|(line, _)| line.state).min();
    let state = match worst {
        Some(state) if pending > 0 => state.min(State::Waiting),
        Some(state) => state,
        None if claimed > 0 => State::Waiting,
        None => State::Healthy,
    };
    let (state, reason) = match trouble(policy, objects) {
        Some((own, reason)) => (state.min(own), reason),
        None => (state, String::new()),
    };
    let metadata = &policy.metadata;
    let suspended = policy.spec.suspension.as_ref();
    PolicyLine {
        policy: policy_name(policy),
        generation: metadata.generation,
        priority: policy.spec.priority.unwrap_or(0),
        lazy: policy.spec.is_lazy(),
        suspended: suspended.is_some_and(is_everywhere),
        claimed,
        applied: own
            .iter()
            .filter(|(line, _)| line.clusters > 0 && line.applied == line.clusters)
            .count(),
        pending,
        not_well: own
            .iter()
            .filter(|(line, _)| line.state != State::Healthy)
            .count(),
        state,
        reason,
        ask: if policy.is_cluster_scoped() {
            format!("clusterpropagationpolicy/{}", metadata.name)
        } else {
            format!("propagationpolicy/{} -n {}", metadata.name, metadata.namespace)
        },
    }
}

fn template_line(binding: &Binding, whole: Whole) -> TemplateLine {
    let id = template_of(binding);
    let at: Vec<String> = whole
        .places
        .iter()
        .filter(|(_, (state, _))| *state == whole.state && *state != State::Healthy)
        .map(|(cluster, _)| cluster.clone())
        .collect();
    // The first cluster speaks for those that are alike.
    let reason = at
        .first()
        .and_then(|cluster| whole.places.get(cluster))
        .map(|(_, reason)| reason.clone());
    TemplateLine {
        template: id.to_string(),
        ask: asked(&id),
        state: whole.state,
        clusters: whole.places.len(),
        applied: whole.applied,
        at,
        reason: reason.unwrap_or(whole.reason),
    }
}

fn work_line(work: &WorkView, cluster: &Cluster) -> TemplateLine {
    let known = Known::from_work(work);
    let ready = work
        .status
        .as_ref()
        .map(|status| crate::status::objects::ready(&work.object.kind, status));
    let (state, reason) = judge::place(
        judge::trouble(Some(cluster)),
        Some(&known),
        work.replicas.zip(ready),
    );
    TemplateLine {
        template: work.object.to_string(),
        ask: asked(&work.object),
        state,
        clusters: 1,
        applied: usize::from(known.applied == Some(true)),
        at: vec![work.cluster.clone()],
        reason,
    }
}

fn cluster_line(cluster: &Cluster, objects: &Objects) -> ClusterLine {
    let name = &cluster.metadata.name;
    let ready = Condition::find(&cluster.status.conditions, "Ready");
    let count = objects.counts.get(name).copied().unwrap_or_default();
    let reason = match ready {
        Some(ready) if ready.is_true() => String::new(),
        Some(ready) => format!("{}: {}", ready.reason, ready.message),
        None => "it has not been reached yet".into(),
    };
    ClusterLine {
        cluster: name.clone(),
        ready: ready.map_or_else(|| "Unknown".to_owned(), |ready| ready.status.clone()),
        version: cluster.status.kubernetes_version.clone(),
        mode: cluster.spec.sync_mode.clone(),
        region: cluster.spec.region.clone(),
        endpoint: cluster.spec.api_endpoint.clone(),
        works: count.works,
        failing: count.failing,
        reason: if cluster.metadata.deleting() {
            "it is leaving".into()
        } else {
            reason
        },
    }
}

/// Works by cluster, for tests and for gathering.
pub(crate) fn count<'a>(
    works: impl Iterator<Item = &'a WorkView>,
) -> BTreeMap<String, crate::status::objects::WorkCount> {
    let mut counts: BTreeMap<String, crate::status::objects::WorkCount> = BTreeMap::new();
    for work in works {
        counts.entry(work.cluster.clone()).or_default().add(work);
    }
    counts
}
