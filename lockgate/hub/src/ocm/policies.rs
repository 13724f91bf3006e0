//! The pass over one root policy: its replicas, and what they come to. The only writer of replicas and of the statuses of roots.
//!
//! The record of a rollout is an annotation of the root, and is written before the replicas that follow from it; statuses come
//! last. A pass that is cut off after any write is taken up by the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use lockgate_api::ocm::policy::PolicyStatus;
use lockgate_api::ocm::policy_binding::Reference;
use lockgate_api::ocm::{ManagedCluster, PlacementBinding, Policy};
use lockgate_api::{Cluster, Condition, keys};
use lockgate_engine::gate::groups::Groups;
use lockgate_engine::gate::record::RolloutRecord;
use lockgate_engine::gate::run::Reach;
use lockgate_engine::governance::replica::replica_name;
use lockgate_engine::governance::rollout::{intent, wanted};
use lockgate_engine::governance::{
    Chosen, Known, Manner, Retained, RootInput, RootPlan, Selection, Sources, Standing, plan, retained,
    select, tell,
};
use serde_json::Value;

use super::fleet::Fleet;
use super::governance::{Governance, root_key};
use super::policy_history;
use super::writes::{self, Part};
use crate::cache::Key;
use crate::events::EventTarget;
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{PassError, delete, encode, encode_status, refresh, replace_status};

/// How many replicas of one root are written at a time.
const REPLICAS_AT_ONCE: usize = 32;

/// Brings the replicas and the status of one root in line.
pub(crate) async fn pass(state: &State, key: &Key) -> Result<(), PassError> {
    let Some(value) = root(state, key).await? else {
        state.ocm.governance.write().set_timer(key, None);
        withdraw(state, key, |_| true).await?;
        return policy_history::forget(state, key).await;
    };
    let Ok(mut root) = serde_json::from_value::<Policy>(value.clone()) else {
        // Its definition was another once. Nothing moves.
        return Ok(());
    };
    if root_key(&root).is_some() || state.ocm.fleet.read().cluster(&key.namespace).is_some() {
        // A replica, or something in the namespace of a cluster that is none: nobody's root.
        return Ok(());
    }
    let manner = Manner::read(&root);
    let takes_turns = manner.as_ref().is_ok_and(|manner| manner.ignores_overrides);
    let Some(selection) = selection(state, key, &root, takes_turns) else {
        // Who is chosen is being found out. Nothing moves, and whoever finds out wakes it.
        return Ok(());
    };
    let refused = manner.as_ref().err();
    let withdrawn =
        root.spec.disabled || !selection.is_bound || (selection.excludes_all && refused.is_none());
    let planned = match &manner {
        Ok(manner) if !withdrawn && selection.has_clusters() => {
            Some(roll_out(state, key, &value, &root, manner, &selection).await?)
        }
        _ => None,
    };
    let told = planned.as_ref().map(|(plan, known)| (plan, known));
    let kept = match &planned {
        _ if withdrawn => Vec::new(),
        Some((plan, known)) if selection.unplaced.is_some() => {
            retain(state, key, &root, Some(&plan.wanted), |cluster| {
                known.contains_key(cluster)
            })
            .await?
        }
        Some(_) => Vec::new(),
        None => {
            let wanted = obey(state, key, &value, &mut root).await?;
            let wanted = wanted.as_ref().map(<[String; 2]>::as_slice);
            retain(state, key, &root, wanted, |_| false).await?
        }
    };
    let status = tell::status(&root, refused, &selection, told, &kept, state.clock.now());
    announce(state, &value, &root, &status);
    write_status(state, key, &root, status).await?;
    // Removals come last: the root says first that it is no longer there.
    match planned {
        _ if withdrawn => withdraw(state, key, |_| true).await,
        // While a binding leads nowhere nobody knows who is no longer chosen.
        Some((_, known)) if selection.unplaced.is_none() => {
            withdraw(state, key, |cluster| !known.contains_key(cluster)).await
        }
        _ => Ok(()),
    }
}

/// Takes in what an operator asks for of a root of which nothing moves now. Gives what its clusters are to have in the end; none
/// where something else is sent in its place.
async fn obey(
    state: &State,
    key: &Key,
    value: &Value,
    root: &mut Policy,
) -> Result<Option<[String; 2]>, PassError> {
    let sets = state.ocm.governance.read().sets();
    let find = |namespace: &str, name: &str| sets.get(&Key::new(namespace, name)).map(|set| &**set);
    let intent = intent(root, &find);
    let before = RolloutRecord::of(&root.metadata).unwrap_or_default();
    let mut record = before.clone();
    // Of what never began there is nothing to ask for.
    if let Some(request) = before.unseen(value).filter(|_| before.revision > 0) {
        let chosen = policy_history::chosen(state, key, Some(&request), &before).await?;
        record.obey(request, &intent, chosen, state.clock.now());
        policy_history::give_up(state, key, &before, &record).await?;
        write_record(state, key, value, &record).await?;
        tell_of(state, value, &before, &record);
        record.put(&mut root.metadata);
    }
    Ok(record.back(&intent).is_none().then(|| wanted(root, &find)))
}

/// The clusters of a root that keep what they have, because nobody can say whether they are chosen, beside those that are; their
/// replicas are told how far they are.
async fn retain(
    state: &State,
    key: &Key,
    root: &Policy,
    wanted: Option<&[String]>,
    is_chosen: impl Fn(&str) -> bool,
) -> Result<Vec<Retained>, PassError> {
    let name = replica_name(&key.namespace, &key.name);
    let replicas = state.ocm.governance.read().replicas(key);
    let replicas = replicas.into_iter().filter_map(|(cluster, replica)| {
        let key = Key::new(&cluster, &name);
        let current = current(state, &key, Some(replica))?;
        (!current.metadata.deleting()).then_some((cluster, current))
    });
    let replicas: BTreeMap<String, Arc<Policy>> = replicas.collect();
    let before = root.status.as_ref().map_or(&[][..], |status| &status.status);
    let kept = {
        let fleet = state.ocm.fleet.read();
        let leaves_out = |cluster: &str| is_chosen(cluster) || fleet.cluster(cluster).is_none();
        retained(before, &replicas, wanted, leaves_out, state.clock.now())
    };
    let standings: Vec<Standing> = kept.iter().filter_map(|one| one.standing.clone()).collect();
    write_standings(state, key, &standings).await?;
    Ok(kept)
}

/// The root; none if it is gone or going. Before replicas go for that the server is asked.
async fn root(state: &State, key: &Key) -> Result<Option<Value>, PassError> {
    let cache = &state.ocm.caches.policies;
    if cache.get(key).is_none() && !state.ocm.governance.read().replicas(key).is_empty() {
        refresh(state, cache, &Resource::policies(), key).await?;
    }
    let cached = cache.get(key).filter(|cached| !cached.terminating);
    Ok(cached.and_then(|cached| state::parse(&cached)))
}

/// Removes the replicas of a root on some clusters.
async fn withdraw(state: &State, root: &Key, goes: impl Fn(&str) -> bool) -> Result<(), PassError> {
    let name = replica_name(&root.namespace, &root.name);
    let replicas = state.ocm.governance.read().replicas(root);
    for cluster in replicas.into_keys() {
        if goes(&cluster) {
            let key = Key::new(&cluster, &name);
            let cache = &state.ocm.caches.policies;
            let what = "failed to remove a replica of a policy";
            delete(state, cache, &Resource::policies(), &key, what).await?;
        }
    }
    Ok(())
}

/// The clusters of a root; none while they are being found out, unless it is disabled and has none anyway. One look at the
/// fleet says both.
fn selection(state: &State, key: &Key, root: &Policy, takes_turns: bool) -> Option<Selection> {
    let governance = state.ocm.governance.read();
    let fleet = state.ocm.fleet.read();
    if !root.spec.disabled && is_undecided(state, &governance, &fleet, key) {
        return None;
    }
    let bindings = governance.bindings_in(&key.namespace);
    let bindings: Vec<&PlacementBinding> = bindings.iter().map(|binding| &**binding).collect();
    let chosen = |reference: &Reference| -> Option<Chosen> {
        let placement = Key::new(&key.namespace, &reference.name);
        if reference.kind == "PlacementRule" {
            let status = governance.rule(&placement)?.status.as_ref();
            let decisions = status.into_iter().flat_map(|status| &status.decisions);
            return Some(Chosen {
                groups: Groups::single(decisions.map(|decision| decision.cluster_name.clone())),
                lacks: false,
            });
        }
        let reading = fleet.placement(&placement)?;
        let groups = Groups::decided(fleet.decisions(&placement).map(|decision| &**decision));
        let status = reading.placement.status.as_ref();
        let told = status.map_or(0, |status| status.number_of_selected_clusters);
        let lacks = usize::try_from(told).is_ok_and(|told| told > groups.cluster_count());
        Some(Chosen { groups, lacks })
    };
    Some(select(&Sources {
        root,
        bindings: &bindings,
        set: &|name| governance.set(&Key::new(&key.namespace, name)).map(|set| &**set),
        chosen: &chosen,
        is_known: &|cluster| fleet.cluster(cluster).is_some(),
        takes_turns,
    }))
}

/// Whether a placement of a root is still to be decided, or a cluster that has a replica is to get its ManagedCluster again.
fn is_undecided(state: &State, governance: &Governance, fleet: &Fleet, root: &Key) -> bool {
    let mut waits = false;
    for binding in governance.bindings_in(&root.namespace) {
        let reference = &binding.placement_ref;
        if reference.kind == "Placement" && governance.subjects(&root.namespace, &binding).contains(root) {
            waits |= fleet.awaits(&Key::new(&root.namespace, &reference.name), root);
        }
    }
    let lost = |cluster: &String| {
        let is_joined = |cluster: Arc<Cluster>| !cluster.metadata.deleting();
        fleet.cluster(cluster).is_none() && state.cluster(cluster).is_some_and(is_joined)
    };
    waits || governance.replicas(root).keys().any(lost)
}

/// Decides about the replicas of a root, and writes them.
async fn roll_out(
    state: &State,
    key: &Key,
    value: &Value,
    root: &Policy,
    manner: &Manner,
    selection: &Selection,
) -> Result<(RootPlan, BTreeMap<String, Known>), PassError> {
    let known = known(state, key, selection);
    let before = RolloutRecord::of(&root.metadata).unwrap_or_default();
    let mut record = before.clone();
    let sets = state.ocm.governance.read().sets();
    let find = |namespace: &str, name: &str| sets.get(&Key::new(namespace, name)).map(|set| &**set);
    let intent = intent(root, &find);
    let sent = policy_history::sent(state, key, &mut record, &intent).await?;
    if needs_others(state, root, key, sent.as_ref()) {
        return Err(PassError::Again);
    }
    let request = record.unseen(value);
    let chosen = policy_history::chosen(state, key, request.as_ref(), &record).await?;
    let plan = plan(&RootInput {
        root,
        manner,
        selection,
        set: &find,
        known: &known,
        record: &record,
        chosen,
        request,
        sent: sent.as_ref(),
        now: state.clock.now(),
    });
    if plan.record.revision != record.revision {
        let clusters = known.keys().map(String::as_str);
        // A way back may be on other clusters by now, so that it is a revision of its own that one goes back to later.
        let sent = sent.as_ref().and_then(|sent| serde_json::to_value(sent).ok());
        let content = sent.as_ref().unwrap_or(value);
        policy_history::keep(state, key, content, clusters, &plan.record).await?;
    }
    policy_history::give_up(state, key, &record, &plan.record).await?;
    if plan.record.is_settled() && !record.is_settled() {
        policy_history::prune(state, key, &plan.record).await?;
    }
    let record = before;
    if plan.record != record {
        write_record(state, key, value, &plan.record).await?;
        tell_of(state, value, &record, &plan.record);
    }
    write_replicas(state, &plan).await?;
    if plan.again {
        return Err(PassError::Again);
    }
    write_standings(state, key, &plan.standings).await?;
    let mut governance = state.ocm.governance.write();
    if let Some(at) = plan.recheck_at
        && governance.set_timer(key, Some(at))
    {
        state.ocm.policies.add_at(key.clone(), 1, at);
    }
    Ok((plan, known))
}

/// Whether what is sent in the place of a root needs sets that nobody knew it needs: they may have changed after they were
/// read, and nobody would have said so.
fn needs_others(state: &State, root: &Policy, key: &Key, sent: Option<&Policy>) -> bool {
    // A revision has no namespace of its own.
    let sent = sent.map(|sent| Policy {
        metadata: root.metadata.clone(),
        ..sent.clone()
    });
    state.ocm.governance.write().put_sent(key, sent.as_ref())
}

/// What is known of each cluster, as the server last told it.
fn known(state: &State, root: &Key, selection: &Selection) -> BTreeMap<String, Known> {
    let replicas = state.ocm.governance.read().replicas(root);
    let fleet = state.ocm.fleet.read();
    let name = replica_name(&root.namespace, &root.name);
    let of = |cluster: &str| {
        let key = Key::new(cluster, &name);
        Known {
            replica: current(state, &key, replicas.get(cluster).cloned()),
            reach: fleet.cluster(cluster).map_or(Reach::Since(None), reach),
        }
    };
    let clusters = selection.groups.clusters();
    clusters
        .map(|(cluster, _)| (cluster.to_owned(), of(cluster)))
        .collect()
}

/// A replica as the server last told it. What was read before is not read again.
fn current(state: &State, key: &Key, before: Option<Arc<Policy>>) -> Option<Arc<Policy>> {
    let cached = state.ocm.caches.policies.get(key)?;
    before
        .filter(|replica| replica.metadata.resource_version == cached.resource_version)
        .or_else(|| state::parse(&cached).map(Arc::new))
}

fn reach(cluster: &ManagedCluster) -> Reach {
    match Condition::find(&cluster.status.conditions, "ManagedClusterConditionAvailable") {
        Some(available) if available.is_true() => Reach::Since(available.last_transition_time.parse().ok()),
        Some(_) => Reach::Lost,
        None => Reach::Since(None),
    }
}

async fn write_record(
    state: &State,
    key: &Key,
    value: &Value,
    record: &RolloutRecord,
) -> Result<(), PassError> {
    let mut value = value.clone();
    // Strings and numbers always encode.
    let text = serde_json::to_string(record).unwrap_or_default();
    value["metadata"]["annotations"][keys::ROLLOUT] = Value::String(text);
    let body = serde_json::to_vec(&value).unwrap_or_default();
    let what = "failed to write how far the rollout of a policy is";
    writes::replace(state, &state.ocm.caches.policies, key, Part::Main, body, what).await
}

async fn write_replicas(state: &State, plan: &RootPlan) -> Result<(), PassError> {
    let cache = &state.ocm.caches.policies;
    let write = |replica: &Policy| {
        let key = Key::new(&replica.metadata.namespace, &replica.metadata.name);
        let replica = replica.clone();
        async move {
            if replica.metadata.uid.is_empty() {
                let what = "failed to make a replica of a policy";
                return writes::create(state, cache, &key, &replica, what).await;
            }
            let body = encode(&Resource::policies(), &replica);
            let what = "failed to write a replica of a policy";
            writes::replace(state, cache, &key, Part::Main, body, what).await
        }
    };
    all(futures::stream::iter(plan.writes.iter().map(write))
        .buffer_unordered(REPLICAS_AT_ONCE)
        .collect()
        .await)
}

/// Tells every replica how far it is.
async fn write_standings(state: &State, root: &Key, standings: &[Standing]) -> Result<(), PassError> {
    let name = replica_name(&root.namespace, &root.name);
    let replicas = state.ocm.governance.read().replicas(root);
    let cache = &state.ocm.caches.policies;
    let resource = Resource::policies();
    let write = |standing: &Standing| {
        let key = Key::new(&standing.cluster, &name);
        let before = replicas.get(&standing.cluster).cloned();
        let told = current(state, &key, before).and_then(|replica| {
            let before = replica.status.clone().unwrap_or_default();
            let mut status = before.clone();
            standing.put(&mut status);
            (status != before).then(|| encode_status(&resource, &replica.metadata, &status))
        });
        async move {
            let Some(body) = told else { return Ok(()) };
            let what = "failed to tell a replica of a policy how far it is";
            writes::replace(state, cache, &key, Part::Status, body, what).await
        }
    };
    all(futures::stream::iter(standings.iter().map(write))
        .buffer_unordered(REPLICAS_AT_ONCE)
        .collect()
        .await)
}

/// All of them, or the first that failed: the others were done all the same.
fn all(results: Vec<Result<(), PassError>>) -> Result<(), PassError> {
    results.into_iter().collect()
}

async fn write_status(
    state: &State,
    key: &Key,
    root: &Policy,
    status: PolicyStatus,
) -> Result<(), PassError> {
    if root.status.as_ref() == Some(&status) || root.status.is_none() && status == PolicyStatus::default() {
        return Ok(());
    }
    let cache = &state.ocm.caches.policies;
    // The record may have been written meanwhile.
    let Some(current) = cache.get(key).and_then(|cached| state::parse::<Policy>(&cached)) else {
        return Ok(());
    };
    let resource = Resource::policies();
    let body = encode_status(&resource, &current.metadata, &status);
    let what = "failed to write the status of a policy";
    replace_status(state, cache, &resource, key, body, what).await?;
    Ok(())
}

/// Tells what is new of a rollout.
fn tell_of(state: &State, root: &Value, before: &RolloutRecord, record: &RolloutRecord) {
    let target = EventTarget::of_value(root);
    if record.revision != before.revision {
        let message = format!("Revision {} starts", record.revision);
        state.events.notice(&target, "RolloutStarted", &message);
    }
    if let Some(command) = record
        .command
        .as_ref()
        .filter(|_| record.command != before.command)
    {
        state.events.notice(&target, "RolloutCommand", &command.told());
    }
    if let Some(breach) = record.breach.as_ref().filter(|_| record.breach != before.breach) {
        let message = format!("Revision {} stops: {breach}", record.revision);
        state.events.warn(&target, "RolloutStopped", &message);
    }
    if let Some(back) = record.back.as_ref().filter(|_| record.back != before.back) {
        let to = back.to.as_ref().map_or_else(
            || "clusters stay as they are".to_owned(),
            |to| format!("clusters go to revision {}", to.revision),
        );
        let message = format!("Revision {} is given up, and {to}: {}", back.from, back.why);
        state.events.warn(&target, "RollingBack", &message);
    }
    if record.is_settled() && !before.is_settled() {
        let message = format!("Revision {} is everywhere", record.revision);
        state.events.notice(&target, "RolloutSucceeded", &message);
    }
}

/// Tells what is newly wrong with a root.
fn announce(state: &State, value: &Value, root: &Policy, status: &PolicyStatus) {
    let before = root.status.as_ref().map(|status| status.conditions.as_slice());
    for condition in &status.conditions {
        let old = Condition::find(before.unwrap_or_default(), &condition.kind);
        if old.is_none_or(|old| old.message != condition.message) && condition.reason != "NotBound" {
            let target = EventTarget::of_value(value);
            state.events.warn(&target, &condition.reason, &condition.message);
        }
    }
}
