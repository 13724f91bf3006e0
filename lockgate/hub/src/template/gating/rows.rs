//! What the gate is told of every cluster: what it is to get, what its Work says, and how it is.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::{Binding, Cluster, Condition, OverridePolicy, Work, keys};
use lockgate_engine::gate::grouping::Selected;
use lockgate_engine::gate::groups::{Agreed, Groups};
use lockgate_engine::gate::run::{self, Member, Reach, Seen, Told};
use lockgate_engine::gate::{self, FollowError, Followed, Release};
use lockgate_engine::interpret::Operation;
use lockgate_engine::observe;
use lockgate_engine::render::{self, RenderInput};
use machinery_value::hash::ValueHash;
use serde_json::Value;

use super::referrers::{Referrer, is_due, is_early};
use crate::cache::Cached;
use crate::head::Head;
use crate::ocm;
use crate::state;
use crate::template::revisions::Stored;
use crate::template::works::Share;
use crate::template::{PassError, Walk, binding_id, derived_id, owning};

/// What is sent: the template as it is, or as it was.
pub(in crate::template) struct Plan<'a> {
    pub(in crate::template) template: &'a Value,
    pub(in crate::template) content: ValueHash,
    pub(in crate::template) overrides: &'a [Arc<OverridePolicy>],
    pub(in crate::template) conflict_resolution: &'a str,
}

/// What is known of one cluster that is to have a copy.
pub(super) struct Row {
    pub(super) cluster: String,
    pub(super) wanted: String,
    pub(super) kept: Option<(i64, String)>,
    grows: bool,
    pub(super) told: Option<Told>,
    seen: Seen,
    pub(super) suspended: bool,
    resumed: bool,
    /// Whether its Work was held back before its member got what it says.
    unsent: bool,
    reach: Reach,
    due: bool,
    /// Whether only others want it there.
    for_others: bool,
    pub(super) share: Share,
}

impl Row {
    /// Whether its member was told what it is to get.
    pub(super) fn is_there(&self) -> bool {
        !self.unsent && self.told.as_ref().is_some_and(|told| told.digest == self.wanted)
    }

    pub(super) fn member(&self) -> Member<'_> {
        Member {
            cluster: &self.cluster,
            wanted: &self.wanted,
            kept: self.kept.as_ref().map(|(_, digest)| digest.as_str()),
            grows: self.grows,
            told: self.told.as_ref(),
            seen: self.seen,
            suspended: self.suspended,
            resumed: self.resumed,
            unsent: self.unsent,
            reach: self.reach,
            due: self.due,
            unmade: None,
        }
    }
}

impl Walk<'_> {
    /// What is known of every cluster that is to have a copy, by name.
    pub(super) fn rows(
        &self,
        binding: &Binding,
        plan: &Plan<'_>,
        referrers: &[Referrer],
    ) -> Result<Vec<Row>, PassError> {
        let own: HashSet<&str> = binding
            .spec
            .clusters
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        let holders = self.holders(binding)?;
        let holds = holders.of(binding);
        let judged = self.interpreter.as_ref();
        let judged = judged.is_some_and(|interpreter| interpreter.script(Operation::Health).is_some());
        let mut rows: Vec<Row> = self
            .shares(binding, plan.template)
            .into_iter()
            .map(|share| {
                let cluster = &share.cluster.metadata.name;
                let (cached, head) = owning::work_on(self.state, self.id, cluster).unzip();
                let head: Option<Head> = head.filter(|head| !head.work.metadata.deleting());
                let unsent = head.as_ref().is_some_and(|head| is_unsent(&head.work));
                let has = match (&cached, share.replicas) {
                    (Some(cached), Some(_)) if head.is_some() => self.given(cached),
                    _ => None,
                };
                let digest = |input: &RenderInput<'_>| render::inputs_digest_with(&plan.content, input);
                let input = self.input(binding, &share, plan, "");
                let wanted = digest(&input);
                let gets = has
                    .and_then(|_| render::replicas_after_overrides(&input, |manifest| self.count(manifest)));
                let fewer = has.zip(gets).filter(|(has, gets)| has > gets);
                let for_others = !own.contains(cluster.as_str());
                let waits = for_others && is_early(referrers, cluster);
                // The older mark counts, though it is not ours to write.
                let suspended = gate::release(&holds, cluster) != Release::Send || waits;
                let was = head.as_ref().and_then(|head| head.work.spec.suspend_dispatching);
                Row {
                    cluster: cluster.clone(),
                    kept: fewer.map(|(has, _)| (has, digest(&input.keeping(has)))),
                    grows: match &head {
                        None => true,
                        // What was not sent says nothing of what is there; but whoever was sent something has a copy.
                        Some(head) if unsent => head.work.status.last_applied.is_none(),
                        Some(_) => has.zip(gets).is_some_and(|(has, gets)| has < gets),
                    },
                    wanted,
                    told: head.as_ref().map(|head| Told::of(&head.work.metadata)),
                    seen: head
                        .as_ref()
                        .map_or(Seen::Unknown, |head| run::seen(&head.work, judged)),
                    suspended,
                    unsent,
                    resumed: was == Some(true) && !suspended,
                    reach: reach(&share.cluster),
                    due: false,
                    for_others,
                    share,
                }
            })
            .collect();
        rows.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        Ok(rows)
    }

    /// Lets go with them what others need that were told already: a first copy, or what has changed before they were told.
    pub(super) fn mark_due(&self, rows: &mut [Row], referrers: &[Referrer], begun: Option<Timestamp>) {
        for row in rows.iter_mut().filter(|row| row.for_others && !row.is_there()) {
            row.due = match (&row.told, begun) {
                (None, _) => is_due(self.state, referrers, &row.cluster, None),
                (Some(_), Some(_)) => is_due(self.state, referrers, &row.cluster, begun),
                (Some(_), None) => false,
            };
        }
    }

    /// The strategy with its groups; none while a placement writes what it has decided, which brings us here again.
    pub(super) fn groups(
        &self,
        followed: Result<Followed, FollowError>,
        rows: &[Row],
    ) -> Result<Option<(Followed, Groups)>, FollowError> {
        let followed = followed?;
        let decided = match followed.placement() {
            None => None,
            Some((namespace, name)) => match ocm::decided(self.state, namespace, name) {
                Agreed::Writing => return Ok(None),
                Agreed::Nobody => None,
                Agreed::Groups(groups) => Some(groups),
            },
        };
        let fleet = self.state.ocm.fleet.read();
        // Everybody is in a group, also a cluster that has just left.
        let selected = rows.iter().map(|row| Selected {
            name: row.cluster.clone(),
            labels: self
                .state
                .cluster(&row.cluster)
                .map(|cluster| cluster.metadata.labels.clone())
                .unwrap_or_default(),
            claims: fleet.claims(&row.cluster).cloned().unwrap_or_default(),
        });
        let groups = followed.groups(selected, decided.as_ref())?;
        Ok(Some((followed, groups)))
    }

    /// The replicas that a manifest asks for, if it counts them.
    pub(in crate::template) fn count(&self, manifest: &Value) -> Option<i64> {
        let told = self
            .interpreter
            .as_ref()
            .and_then(|interpreter| interpreter.replicas(manifest));
        match told {
            Some(told) => told.ok().map(|workload| workload.replicas),
            None => render::workload(manifest).map(|workload| workload.replicas),
        }
    }

    /// The replicas that a Work gives its member.
    fn given(&self, cached: &Cached) -> Option<i64> {
        let work: Work = state::parse(cached)?;
        self.count(work.spec.workload.manifests.first()?)
    }

    /// What one cluster's manifest is rendered from.
    pub(in crate::template) fn input<'a>(
        &'a self,
        binding: &'a Binding,
        share: &'a Share,
        plan: &'a Plan<'_>,
        work_id: &'a str,
    ) -> RenderInput<'a> {
        RenderInput {
            template: plan.template,
            binding,
            binding_id: binding_id(binding, self.id),
            work_id,
            cluster: &share.cluster,
            replicas: share.replicas,
            keeps: false,
            completions: share.completions,
            reviser: self
                .interpreter
                .as_ref()
                .and_then(|interpreter| interpreter.script(Operation::Revise)),
            overrides: plan.overrides,
            conflict_resolution: plan.conflict_resolution,
        }
    }
}

/// What is sent.
pub(in crate::template) fn plan<'a>(
    template: &'a Value,
    content: ValueHash,
    overrides: &'a [Arc<OverridePolicy>],
    binding: &'a Binding,
    stored: Option<&'a Stored>,
) -> Plan<'a> {
    match stored {
        Some(stored) => Plan {
            template: &stored.revision.template,
            content: stored.content,
            overrides: &stored.overrides,
            conflict_resolution: &stored.revision.conflict_resolution,
        },
        None => Plan {
            template,
            content,
            overrides,
            conflict_resolution: &binding.spec.conflict_resolution,
        },
    }
}

/// Whether a Work is held back, and its member has not got what it says. One that was refused or failed was sent.
pub(in crate::template) fn is_unsent(work: &Work) -> bool {
    work.spec.suspend_dispatching == Some(true)
        && !observe::is_applied(work)
        && Told::of(&work.metadata).failed_since.is_none()
}

fn reach(cluster: &Cluster) -> Reach {
    match Condition::find(&cluster.status.conditions, "Ready") {
        Some(ready) if ready.is_true() => Reach::Since(ready.last_transition_time.parse().ok()),
        Some(_) => Reach::Lost,
        None => Reach::Since(None),
    }
}

/// The id of a cluster's Work.
pub(in crate::template) fn work_id(known: Option<&Work>, binding: &str, cluster: &str) -> String {
    known
        .and_then(|work| work.metadata.label(keys::WORK_ID))
        .map_or_else(|| derived_id(binding, cluster), str::to_owned)
}
