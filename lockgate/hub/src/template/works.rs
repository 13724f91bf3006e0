//! Render and gate in a template's pass: one Work for each cluster, and the removal of those that are no longer wanted.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use lockgate_api::work::Workload;
use lockgate_api::{Binding, Cluster, Work, keys, names};
use lockgate_engine::failover;
use lockgate_engine::gate::record::Refused;
use lockgate_engine::gate::run::{Act, Target};
use lockgate_engine::gate::{self, Holds, Motion, Removal};
use lockgate_engine::observe;
use lockgate_engine::place;
use lockgate_engine::render::{self, RenderError, Rendered};
use machinery_value::hash::canonical_hash;
use serde_json::Value;

use super::gating::{self, Gate, GateStep, Plan, Unmade, plan};
use super::holding::{Suspended, wake_dependents};
use super::refusals;
use super::writes::{delete_work, write_work};
use super::{PassError, REPORT_AFTER, Walk, binding_id, is_namespace, owning};
use crate::cache::{Cached, Key};
use crate::events::EventTarget;
use crate::head::{Head, head};
use crate::namespaces;
use crate::rollouts;
use crate::state::{self, State};

/// How many Works of one template are written at once.
const WORKS_AT_ONCE: usize = 16;

/// What one cluster is to get.
pub(super) struct Share {
    pub(super) cluster: Arc<Cluster>,
    pub(super) replicas: Option<i64>,
    pub(super) completions: Option<i64>,
}

/// A Work that must be written.
struct WorkChange {
    /// The Work; none once there is nothing to write.
    work: Option<Work>,
    /// Whether it was suspended and is not any more, or the other way round.
    turned: bool,
    /// The replicas that it gave its member before, and those that it gives now; of workloads that were there.
    replicas: Option<(i64, i64)>,
}

impl WorkChange {
    /// What becomes of the replicas, if they change.
    fn motion(&self) -> Option<Motion> {
        let (has, gets) = self.replicas?;
        match has.cmp(&gets) {
            Ordering::Greater => Some(Motion::Fewer),
            Ordering::Less => Some(Motion::More),
            Ordering::Equal => None,
        }
    }
}

impl Walk<'_> {
    /// Brings every Work to what the binding says, then removes what is no longer wanted.
    pub(super) async fn send(&mut self) -> Result<(), PassError> {
        let gate = self.gate().await?;
        let Some(binding) = self.binding.take() else {
            return Ok(());
        };
        let result = self.send_works(&binding, &gate).await;
        self.binding = Some(binding);
        self.state.reports.add_soon(self.id.clone(), 1, REPORT_AFTER);
        result
    }

    async fn send_works(&self, binding: &Binding, gate: &Gate) -> Result<(), PassError> {
        let purging = self.purge(binding).await?;
        let overrides = self.state.overrides.read().list();
        let before = self
            .state
            .verdicts
            .lock()
            .get(self.id)
            .cloned()
            .unwrap_or_default();
        let (content, _) = self.content(binding);
        let plan = plan(
            &self.template,
            content,
            &overrides,
            binding,
            gate.stored.as_deref(),
        );
        let mut shares = self.shares(binding, plan.template);
        if purging {
            // What must be gone first is not gone: nothing new comes.
            shares.retain(|share| self.has_work(&share.cluster.metadata.name));
        }
        let holders = self.holders(binding)?;
        let holds = holders.of(binding);
        let mut turned = false;
        // What the gate could not make is not tried here.
        let mut unmade = gate.unmade.clone();
        let mut changes: Vec<(&Share, WorkChange)> = Vec::new();
        for share in &shares {
            let step = gate.step(&share.cluster.metadata.name);
            match self.work(binding, share, &plan, step.as_ref(), &holds) {
                Ok(Some(change)) => {
                    turned |= change.turned;
                    changes.push((share, change));
                }
                Ok(None) => {}
                Err(error) => drop(unmade.insert(share.cluster.metadata.name.clone(), Unmade::new(&error))),
            }
        }
        for (cluster, why) in &unmade {
            // What was told is not told again.
            if before.unrendered.get(cluster) != Some(&why.message) {
                for target in [
                    EventTarget::of_value(&self.template),
                    self.binding_target(binding),
                ] {
                    self.state.events.warn(&target, why.reason, &why.message);
                }
            }
        }
        if purging && !gate.is_open() {
            // Nobody gets more in the place of what must be gone first, not even in turn.
            changes.retain(|(_, change)| change.motion() != Some(Motion::More));
        }
        let mut keeping = Vec::new();
        let moves =
            || gate::divides(&binding.spec) || render::may_set_replicas(plan.template, plan.overrides);
        let waits = match gate.is_open() {
            false => None,
            // What must be gone first is not gone: nobody gets more in its place.
            true if purging => Some(Motion::More),
            // Fewer replicas are a removal: they come when those who get more have them.
            true => (self.fewer_wait(&shares, &changes) && moves()).then_some(Motion::Fewer),
        };
        for (share, change) in changes.iter_mut().filter(|_| waits.is_some()) {
            let Some((has, _)) = change.replicas.filter(|_| change.motion() == waits) else {
                continue;
            };
            let step = GateStep::keeping(has);
            if let Ok(kept) = self.work(binding, share, &plan, Some(&step), &holds) {
                if !purging {
                    keeping.push((share.cluster.metadata.name.clone(), has));
                }
                change.work = kept.and_then(|kept| kept.work);
            }
        }
        // Before anything is written: what is told meanwhile must not say that all is rendered.
        if let Some(verdict) = self.state.verdicts.lock().get_mut(self.id) {
            let messages = unmade.into_iter().map(|(cluster, why)| (cluster, why.message));
            verdict.unrendered = messages.collect();
            verdict.keeping = keeping;
            for (share, _) in changes.iter().filter(|(_, change)| change.work.is_some()) {
                // What was refused counts as refused until it is taken.
                let cluster = &share.cluster.metadata.name;
                if let Some(why) = before.unrendered.get(cluster) {
                    verdict.unrendered.insert(cluster.clone(), why.clone());
                }
            }
        }
        let writes = changes
            .iter()
            .filter_map(|(share, change)| Some((share, change.work.as_ref()?)));
        let writes = writes.map(|(share, work)| async move {
            let result = write_work(self.state, work).await;
            self.note_written(&share.cluster.metadata.name, work, &result);
            result
        });
        let results = at_most(writes.collect()).await;
        if turned || gate.releases() {
            wake_dependents(self.state, binding);
        }
        if gate.removes() {
            self.remove_unwanted(binding).await?;
        }
        // A cluster that fails delays itself only; the pass comes again for it.
        results.into_iter().collect()
    }

    /// Keeps in mind whether the hub takes a cluster's Work: one that it refuses leaves the member as it is, and is told like one
    /// that cannot be made.
    fn note_written(&self, cluster: &str, work: &Work, result: &Result<(), PassError>) {
        let mut verdicts = self.state.verdicts.lock();
        let Some(verdict) = verdicts.get_mut(self.id) else {
            return;
        };
        if let Some(why) = refusals::of_work(result) {
            verdict.unrendered.insert(cluster.to_owned(), why.clone());
            if refusals::is_of_content(result) {
                let digest = work.metadata.annotation(keys::RENDERED_FROM);
                let digest = digest.unwrap_or_default().to_owned();
                verdict
                    .refused
                    .insert(cluster.to_owned(), Refused { digest, why });
            }
        } else if result.is_ok() {
            verdict.unrendered.remove(cluster);
            verdict.refused.remove(cluster);
        }
    }

    /// Whether those who are to have fewer replicas keep them until others have theirs.
    fn fewer_wait(&self, shares: &[Share], changes: &[(&Share, WorkChange)]) -> bool {
        let is_fewer = |(_, change): &(&Share, WorkChange)| change.motion() == Some(Motion::Fewer);
        if !changes.iter().any(is_fewer) {
            return false;
        }
        gate::fewer_wait(shares.iter().map(|share| {
            let change = changes.iter().find(|(other, _)| std::ptr::eq(*other, share));
            let motion = change.and_then(|(_, change)| change.motion());
            motion.unwrap_or_else(|| Motion::Still {
                lacks: lacks(self.state, self.id, true, &share.cluster.metadata.name),
            })
        }))
    }

    /// Whether a cluster has its Work already.
    pub(super) fn has_work(&self, cluster: &str) -> bool {
        owning::work_on(self.state, self.id, cluster).is_some()
    }

    /// The Work that has the name of this template's on a cluster; an error if it is another template's.
    pub(super) fn named_work(
        &self,
        cluster: &str,
    ) -> Result<(Option<Arc<Cached>>, Option<Head>), RenderError> {
        let work = owning::work_name(self.id);
        let key = Key::new(&names::execution_namespace(cluster), &work);
        let cached = self.state.caches.works.get(&key);
        let known = cached.as_ref().and_then(|cached| head(cached));
        match owning::taken_by(self.state, self.id, &key, known.as_ref()) {
            None => Ok((cached, known)),
            Some(owner) => {
                let owner = owner.to_string();
                Err(RenderError::NameTaken { work, owner })
            }
        }
    }

    /// What each cluster is to get.
    pub(super) fn shares(&self, binding: &Binding, template: &Value) -> Vec<Share> {
        let spec = &binding.spec;
        let is_workload = place::is_workload(spec);
        let completions = render::completions(spec, template);
        let mut shares = Vec::new();
        let mut seen = BTreeSet::new();
        let frozen = super::is_frozen(binding);
        if frozen {
            // What nobody owns stays as it is; only others move it.
            seen.extend(spec.clusters.iter().map(|target| &target.name));
        }
        let own = spec
            .clusters
            .iter()
            .map(|target| (&target.name, Some(target.replicas)));
        let required = spec
            .required_by
            .iter()
            .flat_map(|snapshot| snapshot.clusters.iter().map(|target| (&target.name, None)));
        for (name, replicas) in own.chain(required) {
            if !seen.insert(name) {
                continue;
            }
            if let Some(cluster) = self
                .state
                .cluster(name)
                .filter(|cluster| !cluster.metadata.deleting())
            {
                shares.push(Share {
                    cluster,
                    replicas: replicas.filter(|_| is_workload),
                    completions: completions.get(name).copied(),
                });
            }
        }
        shares
    }

    /// The Work of one cluster as it should be, if it is not so.
    fn work(
        &self,
        binding: &Binding,
        share: &Share,
        plan: &Plan<'_>,
        step: Option<&GateStep>,
        holds: &Holds<'_>,
    ) -> Result<Option<WorkChange>, RenderError> {
        let cluster = &share.cluster.metadata.name;
        let (cached, known) = self.named_work(cluster)?;
        let known = known.map(|head| head.work);
        if known.as_ref().is_some_and(|work| work.metadata.deleting()) {
            // It goes first, without touching the member, and is made again then.
            return Ok(None);
        }
        let held = step.is_some_and(|step| step.act == Act::Hold);
        if held && known.is_none() {
            // Its turn has not come.
            return Ok(None);
        }
        let work_id = gating::work_id(known.as_ref(), binding_id(binding, self.id), cluster);
        let kept = step
            .filter(|step| matches!(step.act, Act::Release(Target::Kept) | Act::Stay(Target::Kept)))
            .and_then(|step| step.kept);
        let input = self.input(binding, share, plan, &work_id);
        let input = kept.map_or(input, |has| input.keeping(has));
        let mut suspended = Suspended::on(holds, cluster);
        if held && known.as_ref().is_some_and(gating::is_unsent) && !suspended.is {
            // Nobody else holds it back any more; it goes when its turn comes.
            suspended = Suspended::until_its_turn();
        }
        let was_suspended = known.as_ref().and_then(|work| work.spec.suspend_dispatching);
        let turned = was_suspended.unwrap_or(false) != suspended.is;
        let preserve = Some(binding.spec.preserve_resources_on_deletion.unwrap_or(false));
        // What is held keeps what it has.
        let rendered = held
            || known
                .as_ref()
                .and_then(|work| work.metadata.annotation(keys::RENDERED_FROM))
                .is_some_and(|digest| digest == render::inputs_digest_with(&plan.content, &input));
        if let Some(known) = &known
            && rendered
            && !self.render
            && known.spec.suspend_dispatching.is_some()
            && suspended.is_said_by(known)
            && known.spec.preserve_resources_on_deletion == preserve
            && step.is_none_or(|step| step.is_said_by(known))
        {
            return Ok(None);
        }
        let old: Option<Work> = cached.as_ref().and_then(|cached| state::parse(cached));
        let mut work = old.clone().unwrap_or_default();
        suspended.put(&mut work);
        work.spec.preserve_resources_on_deletion = preserve;
        match step {
            Some(step) => step.put(&mut work),
            // Nobody said in which order it goes.
            None if !rendered => gating::unmark(&mut work),
            None => {}
        }
        if !rendered || self.render && !held {
            let mut rendered = render::render(&input)?;
            rendered.digest = render::inputs_digest_with(&plan.content, &input);
            // What another control plane rendered the same way stays as it is.
            let same = old.as_ref().is_some_and(|old| {
                old.metadata.annotation(keys::RENDERED_FROM).is_none()
                    && old.spec.workload.manifests.first() == Some(&rendered.manifest)
            });
            if !same {
                put_rendered(&mut work, rendered, cluster);
            }
        }
        let given = |work: &Work| self.count(work.spec.workload.manifests.first()?);
        Ok((old.as_ref() != Some(&work)).then(|| WorkChange {
            replicas: old
                .as_ref()
                .filter(|_| !rendered)
                .and_then(given)
                .zip(given(&work)),
            work: Some(work),
            turned,
        }))
    }

    /// Removes the Works of clusters that are no longer wanted, when every wanted cluster has its copy.
    async fn remove_unwanted(&self, binding: &Binding) -> Result<(), PassError> {
        let unwanted: Vec<Key> = unwanted(self.state, self.id, binding);
        if !unwanted.is_empty() && is_namespace(self.id) && namespaces::is_sent(self.state, &self.template) {
            // It goes everywhere by itself, and stays where the placement leaves it.
            self.state.namespaces.add(self.id.name.clone(), 1);
            return Ok(());
        }
        if unwanted.is_empty() || removal(self.state, self.id, binding) != Removal::Remove {
            return Ok(());
        }
        let deletions = unwanted.iter().map(|key| delete_work(self.state, key));
        at_most(deletions.collect()).await.into_iter().collect()
    }
}

/// Makes a Work hold what was rendered for its cluster.
pub(crate) fn put_rendered(work: &mut Work, rendered: Rendered, cluster: &str) {
    let hash = render::manifest_hash(&rendered.manifest);
    work.spec.workload = Workload {
        manifests: vec![rendered.manifest],
    };
    let metadata = &mut work.metadata;
    metadata.name = rendered.work_name;
    metadata.namespace = names::execution_namespace(cluster);
    owning::unmark(metadata);
    metadata.labels.extend(rendered.labels);
    metadata.annotations.remove(keys::APPLIED_OVERRIDES);
    metadata.annotations.remove(keys::APPLIED_CLUSTER_OVERRIDES);
    metadata.annotations.extend(rendered.annotations);
    metadata
        .annotations
        .insert(keys::RENDERED_FROM.to_owned(), rendered.digest);
    metadata.annotations.insert(keys::RENDERED.to_owned(), hash);
    if !metadata.finalizers.iter().any(|f| f == keys::WORK_FINALIZER) {
        metadata.finalizers.push(keys::WORK_FINALIZER.to_owned());
    }
    // A binding's Work is nobody else's.
    metadata.owner_references.clear();
}

/// Awaits requests, some of them at once.
async fn at_most<F: Future<Output = Result<(), PassError>>>(requests: Vec<F>) -> Vec<Result<(), PassError>> {
    futures::stream::iter(requests)
        .buffer_unordered(WORKS_AT_ONCE)
        .collect()
        .await
}

/// The clusters that a binding goes to.
pub(crate) fn targets(binding: &Binding) -> BTreeSet<&str> {
    let required = binding
        .spec
        .required_by
        .iter()
        .flat_map(|snapshot| snapshot.clusters.iter().map(|target| target.name.as_str()));
    placed(binding).into_iter().chain(required).collect()
}

/// The clusters where its own policy places a binding, and those that it is leaving gracefully.
pub(crate) fn placed(binding: &Binding) -> BTreeSet<&str> {
    let spec = &binding.spec;
    let own = spec.clusters.iter().map(|target| target.name.as_str());
    let leaving = spec
        .graceful_eviction_tasks
        .iter()
        .filter(|task| !failover::is_direct(task))
        .map(|task| task.from_cluster.as_str());
    own.chain(leaving).collect()
}

/// The Works of a binding in clusters that it does not go to, and that are not on their way out.
pub(crate) fn unwanted(state: &State, id: &lockgate_engine::TemplateId, binding: &Binding) -> Vec<Key> {
    left(state, id, binding, false)
}

/// The Works of a binding in clusters that it does not go to; those on their way out, too, if they count.
pub(super) fn left(
    state: &State,
    id: &lockgate_engine::TemplateId,
    binding: &Binding,
    deleting: bool,
) -> Vec<Key> {
    let targets = targets(binding);
    state
        .works_named(&owning::work_name(id))
        .into_iter()
        .filter(|cached| {
            let cluster = names::cluster_of(&cached.key.namespace).unwrap_or_default();
            !targets.contains(cluster)
                && head(cached).is_some_and(|head| {
                    (deleting || !head.work.metadata.deleting()) && owning::is_own(state, &head, id)
                })
        })
        .map(|cached| cached.key.clone())
        .collect()
}

/// The clusters that a binding goes to and that have no copy, or not the replicas that others are to lose.
fn missing(state: &State, id: &lockgate_engine::TemplateId, binding: &Binding) -> BTreeSet<String> {
    lacking(state, id, binding, gate::divides(&binding.spec))
}

/// The same where replicas move from one cluster to another, whoever says how many each has.
pub(super) fn short_of_replicas(
    state: &State,
    id: &lockgate_engine::TemplateId,
    binding: &Binding,
) -> BTreeSet<String> {
    lacking(state, id, binding, true)
}

fn lacking(
    state: &State,
    id: &lockgate_engine::TemplateId,
    binding: &Binding,
    moves: bool,
) -> BTreeSet<String> {
    let wanted = gate::wanted(&binding.spec);
    let is_there = |cluster: &&str| state.cluster(cluster).is_some();
    // Nobody waits for a copy in a cluster that is gone while there are others. Replicas that it was to have are nowhere.
    let all = moves || !wanted.iter().any(is_there);
    wanted
        .into_iter()
        .filter(|cluster| (all || is_there(cluster)) && lacks(state, id, moves, cluster))
        .map(str::to_owned)
        .collect()
}

fn lacks(state: &State, id: &lockgate_engine::TemplateId, moves: bool, cluster: &str) -> bool {
    let own = owning::work_on(state, id, cluster);
    // Most are there, which can be told without their manifests.
    if own
        .as_ref()
        .is_some_and(|(_, head)| observe::is_applied(&head.work))
    {
        return false;
    }
    let work: Option<Work> = own.and_then(|(cached, _)| state::parse(&cached));
    gate::lacks(moves, work.as_ref())
}

/// Whether the Works of clusters that a binding does not go to may be removed.
pub(crate) fn removal(state: &State, id: &lockgate_engine::TemplateId, binding: &Binding) -> Removal {
    match gate::removal(&binding.spec, &missing(state, id, binding), state.gates) {
        Removal::Hold => Removal::Hold,
        Removal::WaitFor(_) if gating::breaks_first(state, id) => Removal::Remove,
        removal => match rollouts::keeps(state, id, binding) {
            // Everybody has a copy, and not everybody the new one.
            Some(waiting) if removal == Removal::Remove => Removal::WaitFor(waiting),
            _ => removal,
        },
    }
}

/// The id of a Work: the same whenever it is made again.
pub fn derived_id(binding: &str, cluster: &str) -> String {
    let hash = canonical_hash(&serde_json::Value::String(format!("{binding}/{cluster}")));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}
