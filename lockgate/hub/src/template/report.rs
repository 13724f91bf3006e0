//! What became of a template: the binding's status and the template's own. Statuses of many Works are told together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_api::binding::AggregatedStatusItem;
use lockgate_api::rollout_policy::RolloutRun;
use lockgate_api::{Binding, Condition, Work, keys, names};
use lockgate_engine::TemplateId;
use lockgate_engine::claim::{Change, ContentHashes, Record};
use lockgate_engine::dependencies;
use lockgate_engine::gate::record::RolloutRecord;
use lockgate_engine::gate::run::Phase;
use lockgate_engine::gate::{self, Removal};
use lockgate_engine::observe::{self, Counts, MemberReport, Scheduled, WorkView};
use lockgate_engine::place::LastPlaced;
use serde_json::Value;

use super::aggregating::{self, AGGREGATED};
use super::disputes;
use super::needed::is_moved_by_others;
use super::reserved;
use super::works::{removal, short_of_replicas, targets, unwanted};
use super::writes::{encode_status, replace_status};
use super::{PassError, binding_id, binding_key, brief, is_for, owning, scope_keys, wake};
use crate::cache::{Cached, Key};
use crate::clock::seconds;
use crate::head::head;
use crate::members::Patience;
use crate::namespaces;
use crate::policies;
use crate::rollouts;
use crate::state::{self, State};

/// How long a status waits for Works that are on their way, so as not to be written twice: while their lanes move, as long as
/// many thousands need; a member that is slow holds up what is said of the others for a short time only.
const PATIENCE: Patience = Patience {
    while_moving: Duration::from_secs(180),
    otherwise: Duration::from_secs(3),
    look_again: (Duration::from_millis(500), Duration::from_secs(10)),
};
/// The condition of a binding whose template follows a strategy.
const ROLLED_OUT: &str = "RolledOut";
/// The condition of a binding of which some cluster's manifest could not be made.
const RENDERED: &str = "Rendered";

/// Writes the binding's status and the template's.
pub(crate) async fn report(state: &State, id: &TemplateId) -> Result<(), PassError> {
    let works = state.works_named(&owning::work_name(id));
    let keys: Vec<Key> = works.iter().map(|work| work.key.clone()).collect();
    let is_untold = |key: &Key| state.tellings.is_pending(key);
    // Before the first walk since the start nobody knows what waits, and what cannot be made.
    let is_new = !state.verdicts.lock().contains_key(id);
    let is_walked = state.templates.is_in_hand(id) || is_new && state.templates.is_pending(id);
    if let Some(soon) = state.members.wait_for(id, &keys, is_walked, is_untold, PATIENCE) {
        // The last of them brings us here again, most often.
        state.reports.add_soon(id.clone(), 1, soon);
        return Ok(());
    }
    let (cache, resource) = state.bindings(&id.namespace);
    let key = binding_key(id);
    let Some(binding) = state.binding(&key).filter(|binding| is_for(binding, id)) else {
        return Ok(());
    };
    if binding.metadata.deleting() {
        return Ok(());
    }
    let works = works_of(works, id, &binding);
    let mut status = binding_status(state, id, &binding, &works);
    let custom = aggregating::ask(state, id, &binding, &status.aggregated_status);
    // A script sees all of them, also those that a binding cannot carry.
    let unkept = observe::fit(&binding, &mut status).map(|message| ("StatusesTooLong", message));
    let now = seconds(state.clock.now());
    complain(observe::OBSERVED, unkept, &now, &mut status.conditions);
    policies::note_failing(state, id, observe::is_failing(&status));
    if waits_for_this(state, id, &binding, &works, &status) {
        wake(state, id.clone());
    }
    let unsettled = || RolloutRecord::of(&binding.metadata).is_some_and(|record| !record.is_settled());
    let is_told = !is_new || !unsettled();
    // The hub may refuse what a script makes, and the binding says so: then the template's status is first.
    let mut written = Ok(());
    let mut failed = None;
    if let Some(answer) = &custom {
        if is_told {
            let made = answer.clone().unwrap_or_default();
            written = report_template(state, id, &binding, &works, Some(made)).await;
            written = aggregating::blame(state, id, written);
        }
        failed = aggregating::complaint(answer, &written, &status.conditions);
    }
    complain(AGGREGATED, failed, &now, &mut status.conditions);
    if status != binding.status {
        // In an order of its own, whichever was known first.
        status
            .conditions
            .sort_by(|a, b| rank(&a.kind).cmp(&rank(&b.kind)).then(a.kind.cmp(&b.kind)));
        let body = encode_status(&resource, &binding.metadata, &status);
        replace_status(
            state,
            cache,
            &resource,
            &key,
            body,
            "failed to write the binding's status",
        )
        .await?;
    }
    if custom.is_none() && is_told {
        report_template(state, id, &binding, &works, None).await?;
    }
    if (!super::is_frozen(&binding) || is_moved_by_others(&binding))
        && !rollouts::is_under_way(state, id)
        && !leaving(state, id, &binding).is_empty()
        && removal(state, id, &binding) == Removal::Remove
    {
        // The copies that removals waited for are there.
        wake(state, id.clone());
    } else if is_keeping(state, id) && short_of_replicas(state, id, &binding).is_empty() {
        // So are those that fewer replicas waited for.
        wake(state, id.clone());
    }
    written
}

/// The Works that are to go when their time has come. A Namespace goes to every member by itself, and leaves none of them.
fn leaving(state: &State, id: &TemplateId, binding: &Binding) -> Vec<Key> {
    if super::is_namespace(id) && namespaces::is_sent_by_name(state, &id.name) {
        return Vec::new();
    }
    unwanted(state, id, binding)
}

/// Whether clusters keep more replicas than they are to have.
fn is_keeping(state: &State, id: &TemplateId) -> bool {
    let verdicts = state.verdicts.lock();
    verdicts
        .get(id)
        .is_some_and(|verdict| !verdict.keeping.is_empty())
}

/// Whether how the members are now decides where the binding goes: the copies that a failover waits for are well, an
/// application that may fail over is better or worse than it was, or what it is to take along may be known now.
fn waits_for_this(
    state: &State,
    id: &TemplateId,
    binding: &Binding,
    works: &[(String, Work)],
    status: &lockgate_api::BindingStatus,
) -> bool {
    let spec = &binding.spec;
    let (waits, lacks_state) = state.verdicts.lock().get(id).map_or((false, false), |verdict| {
        let staying = verdict.staying.as_ref();
        let lacks_state = staying.is_some_and(|(reason, _)| *reason == super::leaving::STATE_UNKNOWN);
        (verdict.waits_for_health, lacks_state)
    });
    let is_well = |name: &str| {
        let work = works.iter().find(|(cluster, _)| cluster == name);
        work.is_some_and(|(_, work)| super::leaving::is_well(work))
    };
    if waits && spec.clusters.iter().all(|target| is_well(&target.name)) {
        return true;
    }
    let failover = spec.failover.as_ref();
    state.gates.failover
        && (lacks_state || failover.is_some_and(|failover| failover["application"].is_object()))
        && status.aggregated_status != binding.status.aggregated_status
}

/// The binding's Works, with their clusters.
fn works_of(works: Vec<Arc<Cached>>, id: &TemplateId, binding: &Binding) -> Vec<(String, Work)> {
    let label = scope_keys(id).0;
    works
        .into_iter()
        .filter_map(|cached| {
            let cluster = names::cluster_of(&cached.key.namespace)?.to_owned();
            let work = head(&cached)?.work;
            (work.metadata.label(label) == Some(binding_id(binding, id))).then_some((cluster, work))
        })
        .collect()
}

fn binding_status(
    state: &State,
    id: &TemplateId,
    binding: &Binding,
    works: &[(String, Work)],
) -> lockgate_api::BindingStatus {
    let time = state.clock.now();
    let now = seconds(time);
    let known = state.verdicts.lock().get(id).cloned();
    let verdict = known.clone().unwrap_or_default();
    let mut status = binding.status.clone();
    let views: Vec<WorkView<'_>> = works
        .iter()
        .map(|(cluster, work)| WorkView { cluster, work })
        .collect();
    let (mut items, mut fully_applied) = observe::aggregate_works(&views, &targets(binding), time);
    if !verdict.unrendered.is_empty() {
        fully_applied = observe::fully_applied(false, time);
    }
    for (cluster, message) in &verdict.unrendered {
        let at = items.partition_point(|item| item.cluster_name < *cluster);
        if items.get(at).is_none_or(|item| item.cluster_name != *cluster) {
            items.insert(
                at,
                AggregatedStatusItem {
                    cluster_name: cluster.clone(),
                    health: "Unknown".to_owned(),
                    ..AggregatedStatusItem::default()
                },
            );
        }
        items[at].applied = false;
        items[at].applied_message.clone_from(message);
    }
    brief::fit(&mut items);
    status.aggregated_status = items;
    let claimed =
        binding.metadata.label(keys::PP_ID).is_some() || binding.metadata.label(keys::CPP_ID).is_some();
    if let (Some((ok, reason, message)), true) = (&verdict.scheduled, claimed) {
        let outcome = match *reason {
            _ if *ok => Scheduled::Success,
            "NoClusterFit" => Scheduled::NoClusterFit(message),
            _ => Scheduled::Unschedulable(message),
        };
        observe::scheduled(outcome, time).put(&mut status.conditions);
        status.scheduler_observed_affinity_name = LastPlaced::of(binding).affinity;
        if *ok && status.scheduler_observed_generation != binding.metadata.generation {
            status.scheduler_observed_generation = binding.metadata.generation;
            status.last_scheduled_time = Some(now.clone());
        }
    }
    // What goes nowhere any more is not applied there, whatever was said before.
    let is_said = |condition: &Condition| condition.kind == fully_applied.kind;
    if !works.is_empty() || !binding.spec.clusters.is_empty() || status.conditions.iter().any(is_said) {
        fully_applied.put(&mut status.conditions);
    }
    if known.is_some() {
        status.rollout = rollouts::view(state, id);
    }
    let conditions = &mut status.conditions;
    match &status.rollout {
        Some(run) => rolled_out(run, &now).put(conditions),
        None => conditions.retain(|condition| condition.kind != ROLLED_OUT),
    }
    if known.is_some() {
        // Before the first pass over a template, what was said of it stays.
        let unrendered = brief::of_clusters(&verdict.unrendered).map(|message| ("RenderFailed", message));
        complain(RENDERED, unrendered, &now, conditions);
        let unplaced = verdict.unplaced.map(|why| ("SchedulingSuspended", why));
        complain("Placed", unplaced, &now, conditions);
        let reserved_by = verdict.reserved.map(|why| ("NamespaceReserved", why));
        complain(reserved::PROPAGATED, reserved_by, &now, conditions);
        complain("FailedOver", verdict.staying, &now, conditions);
        let disagreement = verdict
            .disagreement
            .map(|message| ("DependencyPolicyConflict", message));
        let uninterpreted = verdict.uninterpreted.map(|message| ("ScriptFailed", message));
        complain("Interpreted", uninterpreted, &now, conditions);
        complain("ReferrersAgree", disagreement, &now, conditions);
        match verdict.orphaned {
            Some(orphaned) => orphaned.put(conditions),
            None => conditions.retain(|condition| condition.kind != "Activated"),
        }
        let unremoved =
            unremoved(state, id, binding).or_else(|| unlowered(state, id, binding, &verdict.keeping));
        complain("Removed", unremoved, &now, conditions);
    }
    let way = state.needs.cycle(id);
    let cycle = way.map(|way| ("DependencyCycle", dependencies::tell_cycle(id, &way)));
    complain("Acyclic", cycle, &now, conditions);
    // Rollout policies say so of themselves; this is what was activated. What is right goes without saying.
    let is_there = |cluster: &str| state.cluster(cluster).is_some();
    match gate::clusters_known(binding.spec.suspension.as_ref(), is_there, time) {
        Some(condition) if !condition.is_true() => condition.put(conditions),
        _ => conditions.retain(|condition| condition.kind != gate::CLUSTERS_KNOWN),
    }
    status
}

/// Says which clusters keep what they should lose, and what for.
fn unremoved(state: &State, id: &TemplateId, binding: &Binding) -> Option<(&'static str, String)> {
    let leaving = leaving(state, id, binding);
    if leaving.is_empty() || (super::is_frozen(binding) && !is_moved_by_others(binding)) {
        return None;
    }
    let Removal::WaitFor(missing) = removal(state, id, binding) else {
        return None;
    };
    let leaving: Vec<&str> = leaving
        .iter()
        .filter_map(|work| names::cluster_of(&work.namespace))
        .collect();
    let message = format!(
        "{} kept until {} has its copy",
        leaving.join(", "),
        missing.join(", ")
    );
    Some(("WaitingForCopies", message))
}

/// Says which clusters keep more replicas than they should, and what for.
fn unlowered(
    state: &State,
    id: &TemplateId,
    binding: &Binding,
    keeping: &[(String, i64)],
) -> Option<(&'static str, String)> {
    let (first, _) = keeping.first()?;
    let missing = short_of_replicas(state, id, binding);
    let message = format!(
        "{} until {} has its copy",
        match keeping {
            [(_, replicas)] => format!("{first} keeps {replicas} replicas"),
            more => format!("{first} and {} more keep their replicas", more.len() - 1),
        },
        missing.into_iter().collect::<Vec<_>>().join(", ")
    );
    Some(("WaitingForCopies", message))
}

/// Whether the last change is in every cluster, and if it is not, where it is: for people and programs that wait for it.
fn rolled_out(run: &RolloutRun, now: &str) -> Condition {
    let is = run.phase == Phase::Succeeded.name();
    Condition {
        kind: ROLLED_OUT.to_owned(),
        status: if is { "True" } else { "False" }.to_owned(),
        reason: run.phase.clone(),
        message: run.message.clone(),
        last_transition_time: now.to_owned(),
        ..Condition::default()
    }
}

/// The place of a condition among the others.
fn rank(kind: &str) -> usize {
    let known = ["Scheduled", "FullyApplied", ROLLED_OUT];
    known
        .iter()
        .position(|known| *known == kind)
        .unwrap_or(known.len())
}

/// A condition that is there only while it is false.
fn complain(
    kind: &str,
    complaint: Option<(&'static str, String)>,
    now: &str,
    conditions: &mut Vec<Condition>,
) {
    let Some((reason, message)) = complaint else {
        conditions.retain(|condition| condition.kind != kind);
        return;
    };
    Condition {
        kind: kind.to_owned(),
        status: "False".to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: now.to_owned(),
        ..Condition::default()
    }
    .put(conditions);
}

/// The clusters that a template's status is made of: those that it goes to. What it is leaving counts only while it goes
/// nowhere else, and a cluster that is gone only if all are.
pub(super) fn told_of<'b>(state: &State, binding: &'b Binding) -> BTreeSet<&'b str> {
    let mut told = gate::wanted(&binding.spec);
    if told.is_empty() {
        told = targets(binding);
    }
    if told.iter().any(|cluster| state.cluster(cluster).is_some()) {
        told.retain(|cluster| state.cluster(cluster).is_some());
    }
    told
}

/// The clusters that do not have what they should because it could not be made; nothing if nobody knows: some could not
/// be made before the start, and there was no walk since.
fn unrendered_on(state: &State, id: &TemplateId, binding: &Binding) -> Option<BTreeSet<String>> {
    if let Some(verdict) = state.verdicts.lock().get(id) {
        return Some(verdict.unrendered.keys().cloned().collect());
    }
    let conditions = &binding.status.conditions;
    let failed = conditions.iter().any(|condition| condition.kind == RENDERED);
    (!failed).then(BTreeSet::new)
}

/// Whether a template has a status.
fn is_said(template: &Value) -> bool {
    template["status"]
        .as_object()
        .is_some_and(|status| !status.is_empty())
}

/// Whether the last pass found where a template goes, be it nowhere.
fn is_placed(state: &State, id: &TemplateId) -> bool {
    let verdicts = state.verdicts.lock();
    let scheduled = verdicts.get(id).and_then(|verdict| verdict.scheduled.as_ref());
    scheduled.is_some_and(|(ok, ..)| *ok)
}

/// Writes the template's status from what its members report.
async fn report_template(
    state: &State,
    id: &TemplateId,
    binding: &Binding,
    works: &[(String, Work)],
    custom: Option<Option<Value>>,
) -> Result<(), PassError> {
    let Some(kind) = state.kinds.served(&id.api_version, &id.kind) else {
        return Ok(());
    };
    let key = Key::new(&id.namespace, &id.name);
    let Some(template) = kind
        .cache
        .get(&key)
        .and_then(|cached| state::parse::<Value>(&cached))
    else {
        return Ok(());
    };
    if binding.spec.resource.uid != lockgate_engine::object::meta_text(&template, "uid") {
        return Ok(());
    }
    let Some(unrendered) = unrendered_on(state, id, binding) else {
        return Ok(());
    };
    // What waits for a policy, or for its turn, and what cannot be made is not what members have.
    let activated = Record::find(&template, Some(binding))
        .is_some_and(|record| record.compare(&template, &ContentHashes::of(&template)) != Change::ByUser);
    let waiting = rollouts::without(state, id);
    let is_current = |cluster: &str, work: &Work| {
        activated
            && !waiting.iter().any(|name| name == cluster)
            && !unrendered.contains(cluster)
            && !work.metadata.deleting()
    };
    let works: BTreeMap<&str, &Work> = works
        .iter()
        .map(|(cluster, work)| (cluster.as_str(), work))
        .collect();
    let told_of = told_of(state, binding);
    let reports: Vec<MemberReport<'_>> = told_of
        .iter()
        .map(|cluster| match works.get(cluster) {
            Some(work) => MemberReport::of(cluster, work, is_current(cluster, work)),
            // It could not be made, its turn has not come, or it is on its way.
            None => MemberReport::silent(cluster),
        })
        .collect();
    let others = || works.iter().filter(|(cluster, _)| !told_of.contains(*cluster));
    // Where every cluster has the whole, sums would exceed what the template asks for, and clients take the surplus for
    // replicas that are about to end.
    let duplicated = binding
        .spec
        .placement
        .as_ref()
        .and_then(|placement| placement.replica_scheduling.as_ref())
        .is_none_or(|scheduling| scheduling.replica_scheduling_type == "Duplicated");
    let counts = if duplicated {
        Counts::Weakest
    } else {
        Counts::Summed
    };
    let status = match custom {
        Some(status) => status,
        // Nobody knows yet that it goes nowhere.
        None if reports.is_empty() && !is_said(&template) && !is_placed(state, id) => None,
        None if observe::is_still_elsewhere(&reports, others().map(|(_, work)| *work)) => None,
        None => observe::aggregate_template_as(&template, &reports, counts, state.clock.now()),
    };
    let Some(status) = status else {
        disputes::agrees(state, id);
        return Ok(());
    };
    if disputes::leaves_alone(state, id, &template) {
        return Ok(());
    }
    let mut told = template;
    told["status"] = status;
    let body = serde_json::to_vec(&told).unwrap_or_default();
    match replace_status(
        state,
        &kind.cache,
        &kind.resource,
        &key,
        body,
        "failed to write the template's status",
    )
    .await
    {
        Ok(_) => Ok(()),
        // A kind without a status of its own.
        Err(PassError::Link {
            error: crate::link::LinkError::NotServed,
            ..
        }) => Ok(()),
        Err(error) => Err(error),
    }
}
