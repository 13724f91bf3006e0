//! The report about one template.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::{Binding, Cluster, Condition, RolloutPolicy, names};
use lockgate_engine::claim::{Claim, propagation_differs, skip_kind};
use lockgate_engine::place::{self, RejectionReason};
use lockgate_engine::{TemplateId, gate};
use serde_json::Value;

use crate::preview;
use crate::status::claim::{asked, claim_name, policy_name};
use crate::status::judge;
use crate::status::objects::{Known, Objects, WorkView, ready};
use crate::status::report::{ConditionLine, HeldLine, PlaceLine, PolicyRef, Rejected, State, TemplateReport};
use crate::status::why;

/// What is known about a template. `object` is none when it is gone and something of it is left.
pub(crate) fn template(id: &TemplateId, object: Option<&Value>, objects: &Objects) -> TemplateReport {
    let binding = objects.bindings.iter().find(|binding| is_of(binding, id));
    let deleting = object.is_some_and(lockgate_engine::object::deleting);
    let gone = object.is_none() || deleting;
    let clusters = match binding {
        Some(binding) if objects.hides("works") => summary(binding, gone, objects),
        binding => places(id, binding, gone, objects),
    };
    let worst = clusters.iter().map(|line| line.state).min();
    let claim = object
        // What the control plane writes carries marks of what it is about, and belongs to no policy.
        .filter(|_| !skip_kind(&id.api_version, &id.kind))
        .and_then(Claim::on_template)
        .or_else(|| binding.and_then(|binding| Claim::on_binding(&binding.metadata)));
    let mut notes = Vec::new();
    let why = match (object, binding) {
        (Some(template), None) => Some(why::without_binding(id, template, claim.as_ref(), objects)),
        (Some(template), Some(_)) if !gone => why::with_binding(id, template),
        _ => None,
    };
    let state = match binding {
        Some(binding) => {
            let (state, reason) = judge::whole(binding, worst);
            // That it could not be placed is said by the condition, which is shown.
            notes.extend(Some(reason).filter(|reason| !reason.is_empty() && state != State::NotPlaced));
            if gone {
                let how = if deleting { "is being deleted" } else { "is gone" };
                notes.push(format!("the template {how}, and what is left of it goes next"));
                State::Leaving
            } else {
                notes.extend(difference(claim.as_ref(), binding, objects));
                state
            }
        }
        None if deleting && worst.is_some() => State::Leaving,
        None => worst.unwrap_or(State::Healthy),
    };
    let state = match why.as_ref().and_then(|why| why.state) {
        // What goes is no worse for not being sent.
        Some(_) if state == State::Leaving => state,
        Some(own) => state.min(own),
        None => state,
    };
    let mut next = match rollouts(object, objects).next() {
        Some(policy) if state == State::Suspended => resume(id, policy),
        _ => next(id, state, binding, claim.as_ref(), &clusters, objects),
    };
    if let Some(why) = why {
        notes.extend(why.notes);
        next = why.next.unwrap_or(next);
    }
    notes.extend(objects.left_out());
    let rejected = match binding {
        Some(binding) if !objects.hides("clusters") => rejected(binding, objects, state == State::NotPlaced),
        _ => Vec::new(),
    };
    TemplateReport {
        template: id.to_string(),
        state,
        policy: claim.as_ref().map(|claim| policy_ref(claim, objects)),
        binding: binding.map(binding_name),
        held: rollouts(object, objects).map(held_line).collect(),
        conditions: binding.map(conditions).unwrap_or_default(),
        next,
        notes,
        clusters,
        rejected,
    }
}

/// The rollout policies that hold a template back somewhere.
fn rollouts<'a>(
    object: Option<&'a Value>,
    objects: &'a Objects,
) -> impl Iterator<Item = &'a RolloutPolicy> + 'a {
    let holds = |policy: &RolloutPolicy| {
        let suspension = policy.spec.suspension.as_ref();
        suspension.is_some_and(|suspension| !gate::extent(suspension).is_empty())
    };
    let policies = objects.rollouts.iter();
    policies.filter(move |policy| {
        holds(policy) && object.is_some_and(|template| gate::is_about(policy, template))
    })
}

fn held_line(policy: &RolloutPolicy) -> HeldLine {
    let suspension = policy.spec.suspension.as_ref();
    HeldLine {
        policy: policy.title(),
        clusters: suspension.map(gate::extent).unwrap_or_default(),
        reason: suspension
            .map(|suspension| suspension.reason.clone())
            .unwrap_or_default(),
    }
}

/// The command that ends what a rollout policy holds back.
fn resume(id: &TemplateId, policy: &RolloutPolicy) -> String {
    if policy.metadata.namespace == id.namespace && policy.metadata.name == crate::suspend::policy_name(id) {
        return format!("lockgate resume {}", asked(id));
    }
    let scope = match policy.metadata.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    format!(
        "kubectl delete {} {}{scope}",
        policy.kind().to_lowercase(),
        policy.metadata.name
    )
}

/// Whether a binding is that of a template. Versions of a group are the same objects.
pub(crate) fn is_of(binding: &Binding, id: &TemplateId) -> bool {
    let resource = &binding.spec.resource;
    let group = resource
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    group == id.group()
        && resource.kind == id.kind
        && resource.namespace == id.namespace
        && resource.name == id.name
}

fn policy_ref(claim: &Claim, objects: &Objects) -> PolicyRef {
    let policy = objects.policy(&claim.id);
    PolicyRef {
        name: policy.map_or_else(|| claim_name(claim), policy_name),
        generation: policy.map(|policy| policy.metadata.generation),
        lazy: policy.is_some_and(|policy| policy.spec.is_lazy()),
    }
}

/// `ResourceBinding shop/web-deployment` or `ClusterResourceBinding reader-clusterrole`.
fn binding_name(binding: &Binding) -> String {
    let metadata = &binding.metadata;
    if metadata.namespace.is_empty() {
        format!("ClusterResourceBinding {}", metadata.name)
    } else {
        format!("ResourceBinding {}/{}", metadata.namespace, metadata.name)
    }
}

fn conditions(binding: &Binding) -> Vec<ConditionLine> {
    binding.status.conditions.iter().map(ConditionLine::of).collect()
}

/// In what the activated state differs from what the claiming policy says now.
fn difference(claim: Option<&Claim>, binding: &Binding, objects: &Objects) -> Option<String> {
    let claim = claim?;
    let Some(policy) = objects.policy(&claim.id) else {
        let gone = objects.is_gone(claim);
        return gone.then(|| format!("{} is not there any more", claim_name(claim)));
    };
    if !propagation_differs(policy, binding) {
        return None;
    }
    let fields = judge::pending(policy, binding);
    let fields = if fields.is_empty() {
        "version".to_owned()
    } else {
        fields.join(", ")
    };
    let name = policy_name(policy);
    Some(if policy.spec.is_lazy() {
        format!("pending: {name} is Lazy, so its newer {fields} waits until the template changes")
    } else {
        format!("pending: {name} has a newer {fields} that is not acted on yet")
    })
}

/// One line for each cluster that the template should be in, is in, or is leaving; once it is gone, for those where
/// something of it is left.
fn places(id: &TemplateId, binding: Option<&Binding>, gone: bool, objects: &Objects) -> Vec<PlaceLine> {
    let work_name = names::work_name(&id.kind, &id.namespace, &id.name);
    let works: BTreeMap<&str, &WorkView> = objects
        .works
        .iter()
        .filter(|work| work.name == work_name && work.carries(id))
        .map(|work| (work.cluster.as_str(), work))
        .collect();
    let targets = binding.map(judge::targets).unwrap_or_default();
    let evicted = |cluster: &str| {
        binding.is_some_and(|b| {
            b.spec
                .graceful_eviction_tasks
                .iter()
                .any(|task| task.from_cluster == cluster)
        })
    };
    let mut lines: Vec<PlaceLine> = targets
        .iter()
        .filter(|(cluster, _)| !gone || works.contains_key(cluster.as_str()))
        .map(|(cluster, replicas)| {
            place_line(
                id,
                cluster,
                *replicas,
                works.get(cluster.as_str()).copied(),
                objects,
            )
        })
        .collect();
    for line in &mut lines {
        if let Some(why) = binding.and_then(|binding| unrendered(binding, &line.cluster)) {
            line.state = State::Failing;
            line.reason = why;
            // What the member has is what it was sent before.
            line.applied = Some(false);
        }
        let work = works.get(line.cluster.as_str());
        if let (State::Unknown, Some(work)) = (line.state, work.filter(|work| !work.unobserved.is_empty())) {
            line.reason.clone_from(&work.unobserved);
        }
    }
    for (cluster, work) in &works {
        if targets.contains_key(*cluster) {
            continue;
        }
        let mut line = place_line(id, cluster, None, Some(work), objects);
        // Without a binding the Work stands for itself, as those of namespaces do.
        if binding.is_some() {
            line.state = State::Leaving;
            line.reason = match (work.deleting, evicted(cluster)) {
                (true, _) => "it is being removed".into(),
                (false, true) => "it is evicted when the other copies are ready".into(),
                (false, false) => "it is not placed here any more".into(),
            };
        }
        lines.push(line);
    }
    lines.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    lines
}

/// The same by the binding's own summary.
fn summary(binding: &Binding, gone: bool, objects: &Objects) -> Vec<PlaceLine> {
    let wanted = judge::targets(binding);
    let items = &binding.status.aggregated_status;
    let lines = judge::binding(binding, objects).places.into_iter();
    let is_left = |cluster: &str| items.iter().any(|item| item.cluster_name == cluster);
    lines
        .filter(|(cluster, _)| !gone || is_left(cluster))
        .map(|(cluster, (state, reason))| {
            let item = items.iter().find(|item| item.cluster_name == cluster);
            let status = item.and_then(|item| item.status.as_ref());
            let replicas = wanted.get(&cluster).copied().flatten();
            PlaceLine {
                replicas,
                ready: replicas
                    .and(status)
                    .map(|status| ready(&binding.spec.resource.kind, status)),
                applied: item.map(|item| item.applied),
                health: item.map(|item| item.health.clone()).unwrap_or_default(),
                state,
                reason,
                work: String::new(),
                cluster,
            }
        })
        .collect()
}

/// Why there is no new manifest for a cluster: its Work is as it was, and only the binding says so.
fn unrendered(binding: &Binding, cluster: &str) -> Option<String> {
    let rendered =
        Condition::find(&binding.status.conditions, "Rendered").filter(|condition| !condition.is_true())?;
    let items = &binding.status.aggregated_status;
    let item = items
        .iter()
        .find(|item| item.cluster_name == cluster && !item.applied && !item.applied_message.is_empty())?;
    rendered
        .message
        .contains(&item.applied_message)
        .then(|| item.applied_message.clone())
}

fn place_line(
    id: &TemplateId,
    cluster: &str,
    replicas: Option<i64>,
    work: Option<&WorkView>,
    objects: &Objects,
) -> PlaceLine {
    let known = work.map(Known::from_work);
    let status = known.and_then(|known| known.status);
    let replicas = match id.kind.as_str() {
        // The members decide, and only they know.
        "DaemonSet" => status.and_then(|status| status["desiredNumberScheduled"].as_i64()),
        _ => work.and_then(|work| work.replicas).or(replicas),
    };
    let ready = replicas.and(status).map(|status| ready(&id.kind, status));
    let (state, reason) = judge::place(objects.trouble(cluster), known.as_ref(), replicas.zip(ready));
    PlaceLine {
        cluster: cluster.to_owned(),
        replicas,
        ready,
        applied: known
            .and_then(|known| known.applied)
            .map(|applied| applied && known.is_some_and(|k| k.current)),
        health: known.map(|known| known.health.to_owned()).unwrap_or_default(),
        state,
        reason,
        work: work
            .map(|work| format!("{}/{}", names::execution_namespace(cluster), work.name))
            .unwrap_or_default(),
    }
}

/// Why each cluster was not taken, as far as the objects tell. Of what is placed, only those that it names and that do not
/// exist: nobody else would tell of them.
fn rejected(binding: &Binding, objects: &Objects, all: bool) -> Vec<Rejected> {
    let mut clusters: Vec<Arc<Cluster>> = objects.clusters.iter().cloned().map(Arc::new).collect();
    clusters.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let placed = preview::placed(binding, &objects.bindings, &clusters);
    let line = |rejection: place::Rejection| Rejected {
        cluster: rejection.cluster,
        reason: rejection.message,
        help: rejection.help.to_owned(),
    };
    let told = |rejection: &place::Rejection| all || rejection.reason == RejectionReason::Absent;
    placed.rejected.into_iter().filter(told).map(line).collect()
}

/// The next useful command.
fn next(
    id: &TemplateId,
    state: State,
    binding: Option<&Binding>,
    claim: Option<&Claim>,
    places: &[PlaceLine],
    objects: &Objects,
) -> String {
    let scope = if id.namespace.is_empty() {
        String::new()
    } else {
        format!(" -n {}", id.namespace)
    };
    let object = asked(id);
    match state {
        State::Failing => {
            let line = places.iter().find(|line| line.state == State::Failing);
            let unmade = line.filter(|line| binding.is_some_and(|b| unrendered(b, &line.cluster).is_some()));
            if let Some(line) = unmade {
                return format!("lockgate render {object} --cluster {}", line.cluster);
            }
            match line.map(|line| (line.reason.contains("already exist"), line.work.split_once('/'))) {
                Some((true, _)) => {
                    // What is there may say abort.
                    format!(
                        "kubectl annotate --overwrite {object} work.karmada.io/conflict-resolution=overwrite"
                    )
                }
                Some((false, Some((namespace, name)))) => {
                    format!("kubectl describe work {name} -n {namespace}")
                }
                _ => format!("kubectl events --for {object}"),
            }
        }
        State::NotPlaced => "kubectl get clusters --show-labels".into(),
        State::Suspended => match claim.and_then(|claim| objects.policy(&claim.id)) {
            Some(policy) => format!(
                "kubectl patch {} {}{} --type merge -p '{{\"spec\":{{\"suspension\":null}}}}'",
                if policy.is_cluster_scoped() {
                    "clusterpropagationpolicy"
                } else {
                    "propagationpolicy"
                },
                policy.metadata.name,
                if policy.is_cluster_scoped() {
                    String::new()
                } else {
                    format!(" -n {}", policy.metadata.namespace)
                }
            ),
            None => format!("lockgate status {object} --watch"),
        },
        State::Frozen | State::NotPropagated => {
            format!("kubectl get clusterpropagationpolicies,propagationpolicies{scope}")
        }
        State::Healthy => match binding {
            Some(binding) if binding.metadata.namespace.is_empty() => {
                format!(
                    "kubectl get clusterresourcebinding {} -o yaml",
                    binding.metadata.name
                )
            }
            Some(binding) => format!(
                "kubectl get resourcebinding {}{scope} -o yaml",
                binding.metadata.name
            ),
            None => format!(
                "kubectl get works -A --field-selector metadata.name={}",
                names::work_name(&id.kind, &id.namespace, &id.name)
            ),
        },
        State::Unknown => places
            .iter()
            .find(|line| line.state == State::Unknown)
            .map_or_else(
                || format!("lockgate status {object} --watch"),
                |line| format!("lockgate status cluster/{}", line.cluster),
            ),
        State::Unhealthy | State::Waiting | State::NotReady | State::Leaving => {
            format!("lockgate status {object} --watch")
        }
    }
}
