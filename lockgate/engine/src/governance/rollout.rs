//! What every replica of a root policy is now, and what is known of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::ocm::policy::{
    ClusterCompliance, ENFORCE_PREVIOUS, INFORM, PolicySpec, PolicyStatus, WHILE_WAITING,
};
use lockgate_api::ocm::{Policy, PolicySet};
use lockgate_api::rollout_policy::{RolloutRun, RunCluster, RunGroup};

use super::replica::{self, NAME_LENGTH, is_inform, only_informs, replica_name};
use super::revision::{Mark, seen, told};
use super::selection::Selection;
use crate::gate::Followed;
use crate::gate::record::{Good, Request, RolloutRecord};
use crate::gate::revision::revision_digest;
use crate::gate::rules::{Order, Rules};
use crate::gate::run::{self, Act, Member, Phase, Reach, RunInput, Seen, Step, Told};
use crate::gate::standing::Status;
use crate::observe::stamp;

/// Of more clusters, those that are done are not shown: a status has to fit into an object.
const MOST_SHOWN: usize = 2000;

/// How a root is followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Manner {
    /// Who goes when.
    pub rules: Rules,
    /// Whether clusters that wait keep what they have, and do not inform about what comes.
    pub keeps_previous: bool,
    /// Whether a strategy is asked for in which clusters take turns, also where there is nothing to take turns for: what
    /// bindings say of single clusters is ignored then.
    pub ignores_overrides: bool,
}

impl Manner {
    /// How a root is followed; else what is wrong with it: a reason, and a sentence.
    pub fn read(root: &Policy) -> Result<Self, (&'static str, String)> {
        let name = replica_name(&root.metadata.namespace, &root.metadata.name);
        if name.len() > NAME_LENGTH {
            let message = format!(
                "metadata.name: its replicas would be called {name}, which has {} characters, and may have {NAME_LENGTH}",
                name.len()
            );
            return Err(("NameTooLong", message));
        }
        let keeps_previous = match root.metadata.annotation(WHILE_WAITING) {
            None | Some("" | INFORM) => false,
            Some(ENFORCE_PREVIOUS) => true,
            Some(other) => {
                let message = format!(
                    "metadata.annotations[{WHILE_WAITING}]: {other:?} is not known: write {INFORM} or {ENFORCE_PREVIOUS}"
                );
                return Err(("WhileWaitingUnknown", message));
            }
        };
        let strategy = root.spec.rollout_strategy.clone().unwrap_or_default();
        let mut rules = Rules::read(&strategy.one_at_a_time_unless_said())
            .map_err(|error| ("StrategyInvalid", format!("spec.rolloutStrategy.{error}")))?;
        let ignores_overrides = rules.order != Order::All;
        if is_inform(&root.spec.remediation_action) {
            // There is nothing to take turns for.
            rules = Rules {
                deadline: rules.deadline,
                ..Rules::all_at_once()
            };
        }
        Ok(Self {
            rules,
            keeps_previous,
            ignores_overrides,
        })
    }

    /// Whether clusters take turns.
    pub fn takes_turns(&self) -> bool {
        self.rules.order != Order::All
    }
}

/// What is known of a cluster.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its replica.
    pub replica: Option<Arc<Policy>>,
    /// Whether it can be reached.
    pub reach: Reach,
}

/// What decides about the replicas of a root.
pub struct RootInput<'a> {
    /// The root.
    pub root: &'a Policy,
    /// How it is followed.
    pub manner: &'a Manner,
    /// Its clusters.
    pub selection: &'a Selection,
    /// A set of its namespace.
    pub set: &'a dyn Fn(&str, &str) -> Option<&'a PolicySet>,
    /// What is known of each cluster of the selection.
    pub known: &'a BTreeMap<String, Known>,
    /// How far it is.
    pub record: &'a RolloutRecord,
    /// What an operator asks for that was not seen before.
    pub request: Option<Request>,
    /// The revision that this asks for, if it names one that is kept.
    pub chosen: Option<Good>,
    /// What is sent in the place of the root, if the record says that what it says was given up.
    pub sent: Option<&'a Policy>,
    /// The time.
    pub now: Timestamp,
}

/// How far one cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub cluster: String,
    /// How far.
    pub status: Status,
    /// Whether it has succeeded and still soaks.
    pub soaks: bool,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Since when it is not compliant after its release.
    pub failed_since: Option<Timestamp>,
}

impl Standing {
    /// It, as the root tells it; how compliant the cluster is it does not know.
    pub(super) fn told(&self) -> ClusterCompliance {
        ClusterCompliance {
            clustername: self.cluster.clone(),
            clusternamespace: self.cluster.clone(),
            rollout_status: self.status.name().to_owned(),
            rollout_status_transition_time: self.since.map(|at| at.to_string()),
            ..ClusterCompliance::default()
        }
    }

    /// Makes the status of a replica say it; the member's part stays.
    pub fn put(&self, status: &mut PolicyStatus) {
        self.status.name().clone_into(&mut status.rollout_status);
        status.rollout_status_transition_time = self.since.map(|at| at.to_string());
        status.rollout_failed_since = self.failed_since.map(|at| at.to_string());
    }
}

/// What happens to a root now.
#[derive(Clone, Debug, PartialEq)]
pub struct RootPlan {
    /// How far it is from now on; written before any replica.
    pub record: RolloutRecord,
    /// The replicas that are made or written, without a status.
    pub writes: Vec<Policy>,
    /// Whether the root is looked at again before anything is told: these writes are only the first part, or somebody was
    /// released by them.
    pub again: bool,
    /// How far every cluster is, by name; told when all is written.
    pub standings: Vec<Standing>,
    /// Where the rollout is.
    pub phase: Phase,
    /// Whether too many failed.
    pub breach: bool,
    /// As people see it.
    pub view: RolloutRun,
    /// When to look again.
    pub recheck_at: Option<Timestamp>,
    /// Which contents clusters are to have.
    pub wanted: [String; 2],
}

/// One cluster of a root.
struct Row<'a> {
    cluster: &'a str,
    replica: Option<&'a Policy>,
    /// What it is to hold in the end.
    wanted: &'a Content,
    /// What a rollout released it to. Who only waits was told nothing, also where it waits with what it is to hold in the end.
    told: Option<Told>,
    seen: Seen,
    reach: Reach,
    /// Whether it has the content that is wanted, with whichever action.
    prepared: bool,
}

/// What a replica holds.
struct Content {
    spec: PolicySpec,
    digest: String,
}

impl Content {
    fn new(spec: PolicySpec) -> Self {
        Self {
            digest: replica::digest(&spec),
            spec,
        }
    }
}

/// What somebody wants of a root, in one word. What was given up is not sent again until this changes.
pub fn intent<'s>(root: &Policy, set: &dyn Fn(&str, &str) -> Option<&'s PolicySet>) -> String {
    replica::digest(&replica::spec(root, &root.spec.remediation_action, set))
}

/// Which contents clusters are to have while what a root says is sent: its own, and that of clusters whose binding enforces.
pub fn wanted<'s>(root: &Policy, set: &dyn Fn(&str, &str) -> Option<&'s PolicySet>) -> [String; 2] {
    let action = &root.spec.remediation_action;
    [action, replica::enforced(action)].map(|action| replica::digest(&replica::spec(root, action, set)))
}

/// The root with what is sent in its place.
fn sent(root: &Policy, sent: Option<&Policy>) -> Policy {
    let mut root = Policy {
        status: None,
        ..root.clone()
    };
    if let Some(sent) = sent {
        let spec = sent.spec.clone();
        root.spec.remediation_action = spec.remediation_action;
        root.spec.policy_templates = spec.policy_templates;
        root.spec.dependencies = spec.dependencies;
        root.spec.hub_template_options = spec.hub_template_options;
    }
    root
}

/// What happens to a root now.
pub fn plan(input: &RootInput<'_>) -> RootPlan {
    // Marks have whole microseconds, and are compared with times.
    let now = Timestamp::from_microsecond(input.now.as_microsecond()).unwrap_or(input.now);
    let root = &sent(input.root, input.sent);
    let action = &root.spec.remediation_action;
    let own = Content::new(replica::spec(root, action, input.set));
    let enforced = Content::new(replica::spec(root, replica::enforced(action), input.set));
    let waiting = Content::new(replica::spec(root, INFORM, input.set));
    let informs_first = input.manner.takes_turns() && !input.manner.keeps_previous;
    let rows: Vec<Row<'_>> = input
        .selection
        .groups
        .clusters()
        .map(|(cluster, _)| {
            let wanted = if input.selection.enforced.contains(cluster) {
                &enforced
            } else {
                &own
            };
            row(input, cluster, wanted, &waiting)
        })
        .collect();
    let intent = intent(input.root, input.set);
    let mut record = begin(input, &rows, &intent, now);
    if let Some(request) = input.request.clone() {
        record.obey(request, &intent, input.chosen.clone(), now);
    }
    // Another revision is to be sent from now on: the next look begins with it.
    let turns = record.back != input.record.back && record.back.is_some();
    let stays = record.back.as_ref().is_some_and(|back| back.to.is_none());
    let is_held = turns || stays || record.paused.is_some();
    let unprepared = informs_first && !is_held && rows.iter().any(|row| !row.prepared);
    let again = turns || unprepared;
    let members: Vec<Member<'_>> = rows.iter().map(|row| row.member(informs_first)).collect();
    let before = record.clone();
    let run_input = RunInput {
        record: &before,
        back: before.back.as_ref(),
        followed: &Followed::by(input.manner.rules.clone()),
        groups: &input.selection.groups,
        members: &members,
        leaving: &[],
        now,
    };
    let run = run::run(&run_input);
    if !again {
        record.conclude(&run, &intent, false, now);
    }
    let mut view = run.view(
        &run_input,
        &format!("Policy {}/{}", root.metadata.namespace, root.metadata.name),
    );
    if let Some(back) = before.back.as_ref().filter(|_| stays) {
        view.message = format!(
            "revision {} was given up, and clusters stay as they are until the policy changes: {}",
            back.from, back.why
        );
    }
    let (mut writes, mut standings) = (Vec::new(), Vec::new());
    // What is said of a cluster that was just released holds from the next look on.
    let mut releases = false;
    for (row, step) in rows.iter().zip(&run.steps) {
        let released = matches!(step.act, Act::Release(_)) && !again;
        releases |= released;
        let next = if released {
            let mark = Mark {
                revision: record.revision,
                digest: row.wanted.digest.clone(),
                at: step.marks.and_then(|marks| marks.released_at).unwrap_or(now),
            };
            Some((row.wanted.spec.clone(), mark))
        } else {
            rests(row, step, input.manner, &waiting, is_held, now)
        };
        let mark = next.as_ref().map(|(_, mark)| mark.clone());
        if let Some((spec, mark)) = next {
            let metadata = replica::metadata(root, row.cluster, &mark, row.replica.map(|old| &old.metadata));
            if row
                .replica
                .is_none_or(|old| old.metadata != metadata || old.spec != spec)
            {
                writes.push(Policy {
                    metadata,
                    spec,
                    status: None,
                });
            }
        }
        standings.push(standing(row, step, mark.as_ref(), record.begun, now));
    }
    view.groups = groups(input, &standings, &run.steps);
    RootPlan {
        view,
        phase: run.phase,
        breach: run.breach.is_some(),
        recheck_at: run.recheck_at,
        record,
        writes,
        again: again || releases,
        standings,
        wanted: [own.digest.clone(), enforced.digest.clone()],
    }
}

fn row<'a>(input: &'a RootInput<'_>, cluster: &'a str, wanted: &'a Content, waiting: &Content) -> Row<'a> {
    let known = input.known.get(cluster);
    let replica = known
        .and_then(|known| known.replica.as_deref())
        .filter(|replica| !replica.metadata.deleting());
    let told = replica.map(told);
    let has = |digest: &str| told.as_ref().is_some_and(|told| told.digest == digest);
    let prepared = has(&wanted.digest) || has(&waiting.digest);
    Row {
        cluster,
        replica,
        prepared,
        seen: replica.map_or(Seen::Unknown, |replica| seen(replica, only_informs(&wanted.spec))),
        reach: known.map_or(Reach::Since(None), |known| known.reach),
        told: told.filter(|told| told.revision > 0),
        wanted,
    }
}

impl Row<'_> {
    fn member(&self, informs_first: bool) -> Member<'_> {
        Member {
            cluster: self.cluster,
            wanted: &self.wanted.digest,
            kept: None,
            grows: false,
            // Who is to inform about something new first is no longer under way with anything.
            told: self.told.as_ref().filter(|_| self.prepared || !informs_first),
            seen: self.seen,
            suspended: false,
            resumed: false,
            unsent: false,
            reach: self.reach,
            due: false,
            unmade: None,
        }
    }
}

/// Every cluster in its group, as people see it; also when all is done, if they are not too many.
fn groups(input: &RootInput<'_>, standings: &[Standing], steps: &[Step<'_>]) -> Vec<RunGroup> {
    let find = |cluster: &String| -> Option<RunCluster> {
        let at = standings
            .binary_search_by(|standing| standing.cluster.cmp(cluster))
            .ok()?;
        let (standing, step) = (standings.get(at)?, steps.get(at)?);
        let is_done = standing.status == Status::Succeeded && !standing.soaks;
        (!is_done || standings.len() <= MOST_SHOWN).then(|| RunCluster {
            name: cluster.clone(),
            state: standing.status.name().to_owned(),
            // The same words whether the rollout ends now or was over before.
            reason: if is_done {
                "done".to_owned()
            } else {
                step.reason.clone()
            },
            since: standing.since.map(stamp),
            until: step.until.map(stamp),
            revision: 0,
        })
    };
    let groups = input.selection.groups.iter().map(|group| {
        let clusters = group.clusters.iter().filter_map(find).collect();
        RunGroup::of(group.index.into(), &group.name, clusters)
    });
    groups.collect()
}

/// The record, with another revision if some cluster is to get something else than before. A record that somebody lost goes on
/// after the revisions that replicas know.
fn begin(input: &RootInput<'_>, rows: &[Row<'_>], intent: &str, now: Timestamp) -> RolloutRecord {
    let mut record = input.record.clone();
    if record.back(intent).is_none() {
        record.back = None;
    }
    if record.revision == 0 {
        let known = rows.iter().filter_map(|row| row.told.as_ref());
        record.revision = known.map(|told| told.revision).max().unwrap_or(0);
    }
    let has_wanted = |row: &Row<'_>| {
        row.told
            .as_ref()
            .is_some_and(|told| told.digest == row.wanted.digest)
    };
    if record.is_settled() && !rows.iter().all(has_wanted) {
        // It was everywhere and is not any more: it goes there again as if it were new.
        record.digest.clear();
    }
    let wanted = rows.iter().map(|row| (row.cluster, row.wanted.digest.as_str()));
    if record.begin(&revision_digest(wanted), false) {
        record.begun = Some(now);
    }
    record
}

/// What a replica is that is not released now; none if none is made.
fn rests(
    row: &Row<'_>,
    step: &Step<'_>,
    manner: &Manner,
    waiting: &Content,
    is_held: bool,
    now: Timestamp,
) -> Option<(PolicySpec, Mark)> {
    let present = row
        .replica
        .and_then(|replica| Some((replica, Mark::of(replica)?)));
    if let Some((_, mark)) = &present
        && matches!(step.act, Act::Stay(_))
        && mark.digest == row.wanted.digest
    {
        return Some((row.wanted.spec.clone(), mark.clone()));
    }
    match present {
        Some((_, mark)) if mark.revision == 0 && mark.digest == waiting.digest => {
            Some((waiting.spec.clone(), mark))
        }
        // What is held, or waits with what it had, keeps its content; its metadata follows the root. Who never had anything
        // has nothing to keep, and informs about what comes.
        Some((replica, mark))
            if is_held || manner.keeps_previous && mark.revision > 0 || !manner.takes_turns() =>
        {
            Some((replica.spec.clone(), mark))
        }
        None if is_held || !manner.takes_turns() => None,
        _ => Some((
            waiting.spec.clone(),
            Mark {
                revision: 0,
                digest: waiting.digest.clone(),
                at: now,
            },
        )),
    }
}

/// How far a cluster is, since when. What is stored stays as long as it is so.
fn standing(
    row: &Row<'_>,
    step: &Step<'_>,
    mark: Option<&Mark>,
    revision_begun: Option<Timestamp>,
    now: Timestamp,
) -> Standing {
    let status = match step.status {
        // It was done before this revision, and is shown as it is.
        Status::Skip => match row.seen {
            Seen::Well | Seen::Applied => Status::Succeeded,
            Seen::Bad => Status::Failed,
            Seen::Unknown | Seen::UnderWay => Status::Progressing,
        },
        Status::Overtaken => Status::ToApply,
        other => other,
    };
    let stored = row.replica.and_then(|replica| replica.status.as_ref());
    let begun = mark.map_or(now, |mark| mark.at);
    let kept = |text: Option<&String>| -> Option<Timestamp> {
        text.and_then(|text| text.parse().ok())
            .filter(|at: &Timestamp| *at >= begun)
    };
    let same = stored
        .filter(|stored| stored.rollout_status == status.name())
        .and_then(|stored| kept(stored.rollout_status_transition_time.as_ref()));
    let marks = step.marks.unwrap_or_default();
    let since = match status {
        // Since it was told.
        Status::Progressing => same.unwrap_or(begun),
        Status::ToApply => match mark {
            // Since it was told to wait.
            Some(mark) if mark.revision == 0 => same.unwrap_or(begun),
            // Who keeps what it had was told nothing, and waits for each revision anew.
            _ => same.filter(|at| Some(*at) >= revision_begun).unwrap_or(now),
        },
        Status::Succeeded => marks.healthy_since.or(same).unwrap_or(now),
        Status::Failed => marks.failed_since.or(same).unwrap_or(now),
        _ => same.unwrap_or(now),
    };
    let failed_since = match status {
        Status::Failed => Some(since),
        Status::TimeOut => marks.failed_since,
        _ => None,
    };
    Standing {
        cluster: row.cluster.to_owned(),
        status,
        soaks: status == Status::Succeeded && step.until.is_some(),
        since: Some(since),
        failed_since,
    }
}
