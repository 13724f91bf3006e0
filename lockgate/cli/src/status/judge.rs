//! How a template is in one cluster, and how a binding is as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::policy::Suspension;
use lockgate_api::{Binding, Cluster, Condition, PropagationPolicy, RolloutPolicy, keys, names};
use lockgate_engine::dependencies::is_attached;
use lockgate_engine::gate::{Holds, ReleaseInput, is_about, suspended_by};
use lockgate_engine::pending::left_unplaced;

use crate::status::objects::{Known, Objects};
use crate::status::report::State;

/// How a template is in one cluster, and why. `trouble` is what is wrong with the cluster.
pub(crate) fn place(
    trouble: Option<String>,
    known: Option<&Known<'_>>,
    replicas: Option<(i64, i64)>,
) -> (State, String) {
    let Some(known) = known else {
        return (
            State::Waiting,
            trouble.unwrap_or_else(|| "nothing is written for it yet".into()),
        );
    };
    if known.deleting {
        return (State::Leaving, "it is being removed".into());
    }
    if known.suspended {
        let by = match known.suspended_by {
            "" => String::new(),
            by => format!(" ({by})"),
        };
        let kept = match known.applied {
            Some(true) => "; the member keeps what it has",
            _ => "",
        };
        return (State::Suspended, format!("dispatching is suspended{by}{kept}"));
    }
    if known.applied == Some(false) {
        return (State::Failing, known.message.to_owned());
    }
    if let Some(trouble) = trouble {
        let last = match known.health {
            "" | "Unknown" => String::new(),
            health => format!("; it was {health} when last seen"),
        };
        return (State::Unknown, format!("{trouble}{last}"));
    }
    if known.applied.is_none() {
        return (State::Waiting, "it is not sent yet".into());
    }
    if !known.current {
        return (State::Waiting, "its newest content is not sent yet".into());
    }
    if !known.disputed.is_empty() {
        return (State::Failing, format!("{}, and it is corrected", known.disputed));
    }
    match (known.health, replicas) {
        ("Healthy", _) => (State::Healthy, String::new()),
        ("Unhealthy", Some((wanted, ready))) if ready < wanted => {
            (State::NotReady, format!("{ready} of {wanted} replicas are ready"))
        }
        ("Unhealthy", _) => (State::Unhealthy, "the member says so".into()),
        ("", _) => (State::Waiting, "the member has not said yet how it is".into()),
        _ => (State::Unknown, "the member does not say how it is".into()),
    }
}

/// What is wrong with a cluster, if something is.
pub(crate) fn trouble(cluster: Option<&Cluster>) -> Option<String> {
    let Some(cluster) = cluster else {
        return Some("there is no such cluster".into());
    };
    match Condition::find(&cluster.status.conditions, "Ready") {
        Some(ready) if ready.is_true() => None,
        Some(ready) if ready.message.is_empty() => {
            Some(format!("the cluster is not ready ({})", ready.reason))
        }
        Some(ready) => Some(format!("the cluster is not ready: {}", ready.message)),
        None => Some("the cluster has not been reached yet".into()),
    }
}

/// A binding as a whole.
pub(crate) struct Whole {
    pub(crate) state: State,
    /// The clusters that it should be in, and how it is there.
    pub(crate) places: BTreeMap<String, (State, String)>,
    /// Why it is as it is, if no single cluster says so.
    pub(crate) reason: String,
    pub(crate) applied: usize,
}

/// What is known of a template in a cluster of which its binding says nothing yet.
const UNSUMMED: Known<'static> = Known {
    applied: None,
    message: "",
    current: true,
    disputed: "",
    suspended: false,
    suspended_by: "",
    deleting: false,
    health: "",
    status: None,
};

/// How a binding is, by its own summary; where that says nothing yet, by the refusals of Works, if they were read.
pub(crate) fn binding(binding: &Binding, objects: &Objects) -> Whole {
    let summary: BTreeMap<&str, _> = binding
        .status
        .aggregated_status
        .iter()
        .map(|item| (item.cluster_name.as_str(), item))
        .collect();
    let mut places = BTreeMap::new();
    let mut applied = 0;
    let rollouts = rollouts(binding, objects);
    let holds = Holds::of(&ReleaseInput {
        spec: &binding.spec,
        rollouts: &rollouts,
        referrers: &[],
    });
    for (name, wanted) in targets(binding) {
        let held = held(binding, &holds, &name, objects);
        let known = match summary.get(name.as_str()) {
            Some(item) => Some(Known::from_summary(item, held.as_deref())),
            None if held.is_some() => Some(Known {
                suspended: true,
                suspended_by: held.as_deref().unwrap_or_default(),
                ..UNSUMMED
            }),
            // The summary comes a little later than what it sums up.
            None => refused(binding, &name, objects).map(|why| Known {
                applied: Some(false),
                message: why,
                ..UNSUMMED
            }),
        };
        applied += usize::from(known.is_some_and(|known| known.applied == Some(true) && known.current));
        let ready = known
            .and_then(|known| known.status)
            .map(|status| crate::status::objects::ready(&binding.spec.resource.kind, status));
        places.insert(
            name.clone(),
            place(objects.trouble(&name), known.as_ref(), wanted.zip(ready)),
        );
    }
    let worst = places.values().map(|(state, _)| *state).min();
    let (state, reason) = whole(binding, worst);
    Whole {
        state,
        places,
        reason,
        applied,
    }
}

/// The rollout policies about a binding's template, as far as its name tells: its labels are not looked at.
fn rollouts(binding: &Binding, objects: &Objects) -> Vec<Arc<RolloutPolicy>> {
    if objects.rollouts.is_empty() {
        return Vec::new();
    }
    let resource = &binding.spec.resource;
    let template = serde_json::json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"namespace": resource.namespace, "name": resource.name},
    });
    let about = objects
        .rollouts
        .iter()
        .filter(|policy| is_about(policy, &template));
    about.cloned().map(Arc::new).collect()
}

/// Who holds a binding back from a cluster beside its policy, if anybody does: by its Work if that was read, else by the
/// policies.
fn held(binding: &Binding, holds: &Holds<'_>, cluster: &str, objects: &Objects) -> Option<String> {
    if let Some(by) = objects.held.get(&work_key(binding, cluster)) {
        return Some(by.clone());
    }
    let held = holds.on(cluster);
    (!held.is_empty()).then(|| suspended_by(&held))
}

/// Why a member refused what a binding sends it, by its Work.
fn refused<'a>(binding: &Binding, cluster: &str, objects: &'a Objects) -> Option<&'a str> {
    let refusals = &objects.refused;
    refusals.get(&work_key(binding, cluster)).map(String::as_str)
}

/// A binding's Work for a cluster, by cluster and name.
fn work_key(binding: &Binding, cluster: &str) -> (String, String) {
    let resource = &binding.spec.resource;
    let name = names::work_name(&resource.kind, &resource.namespace, &resource.name);
    (cluster.to_owned(), name)
}

/// The state of a binding whose worst place is that.
pub(crate) fn whole(binding: &Binding, worst: Option<State>) -> (State, String) {
    let alone = is_attached(binding);
    if alone && binding.spec.required_by.is_empty() {
        return (
            State::NotPropagated,
            "nothing needs it any more, and no policy matches".to_owned(),
        );
    }
    let scheduled = Condition::find(&binding.status.conditions, "Scheduled");
    let mut candidates = vec![];
    if let Some(scheduled) = scheduled.filter(|condition| condition.status == "False") {
        candidates.push((State::NotPlaced, scheduled.message.clone()));
    }
    if let Some(reserved) = reserved(binding) {
        candidates.push((State::Frozen, reserved.to_owned()));
    } else if frozen(binding) {
        candidates.push((
            State::Frozen,
            "no policy claims it; what is there stays as it is".to_owned(),
        ));
    }
    match worst {
        Some(worst) if alone => candidates.push((worst, needed_by(binding))),
        Some(worst) => candidates.push((worst, String::new())),
        None if scheduled.is_none() => {
            let elsewhere = left_unplaced(&binding.spec);
            candidates.push((
                State::Waiting,
                elsewhere.unwrap_or_else(|| "it is not placed yet".to_owned()),
            ));
        }
        None => candidates.push((State::Healthy, String::new())),
    }
    // The list is never empty: the match above adds one.
    candidates
        .into_iter()
        .min_by_key(|(state, _)| *state)
        .unwrap_or((State::Unknown, String::new()))
}

/// Who needs what no policy places.
fn needed_by(binding: &Binding) -> String {
    const SHOWN: usize = 5;
    let names: Vec<String> = binding
        .spec
        .required_by
        .iter()
        .take(SHOWN)
        .map(|by| format!("{}/{}", by.namespace, by.name))
        .collect();
    let more = match binding.spec.required_by.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("no policy places it; it follows {}{more}", names.join(", "))
}

/// Why nothing of a binding is sent, if it is in the namespace of a cluster.
pub(crate) fn reserved(binding: &Binding) -> Option<&str> {
    let condition = Condition::find(&binding.status.conditions, "Propagated")?;
    (!condition.is_true()).then_some(condition.message.as_str())
}

/// Whether nobody stands behind a binding, so that it stays as it is.
pub(crate) fn frozen(binding: &Binding) -> bool {
    let labels = [keys::PP_ID, keys::CPP_ID];
    let claimed = labels
        .iter()
        .any(|key| binding.metadata.label(key).is_some_and(|id| !id.is_empty()));
    !claimed && binding.spec.required_by.is_empty()
}

/// The clusters that a binding goes to, with the replicas of each for what has some.
pub(crate) fn targets(binding: &Binding) -> BTreeMap<String, Option<i64>> {
    let spec = &binding.spec;
    let required = spec.required_by.iter().flat_map(|by| &by.clusters);
    let mut targets: BTreeMap<String, Option<i64>> =
        required.map(|cluster| (cluster.name.clone(), None)).collect();
    for cluster in &spec.clusters {
        targets.insert(
            cluster.name.clone(),
            (spec.replicas > 0).then_some(cluster.replicas),
        );
    }
    targets
}

/// The fields in which a policy says something else than what was activated.
pub(crate) fn pending(policy: &PropagationPolicy, binding: &Binding) -> Vec<&'static str> {
    let (wanted, active) = (&policy.spec, &binding.spec);
    let or = |text: &str, default: &str| {
        if text.is_empty() {
            default.to_owned()
        } else {
            text.to_owned()
        }
    };
    let differs = [
        ("placement", Some(&wanted.placement) != active.placement.as_ref()),
        (
            "suspension",
            suspended(wanted.suspension.as_ref()) != suspended(active.suspension.as_ref()),
        ),
        (
            "conflictResolution",
            or(&wanted.conflict_resolution, "Abort") != or(&active.conflict_resolution, "Abort"),
        ),
        ("propagateDeps", wanted.propagates_deps() != active.propagate_deps),
        (
            "preserveResourcesOnDeletion",
            wanted.preserve_resources_on_deletion.unwrap_or(false)
                != active.preserve_resources_on_deletion.unwrap_or(false),
        ),
        ("failover", wanted.failover != active.failover),
    ];
    differs
        .into_iter()
        .filter_map(|(field, differs)| differs.then_some(field))
        .collect()
}

/// A suspension in one spelling: everywhere, or in these clusters.
fn suspended(suspension: Option<&Suspension>) -> (bool, Vec<&str>) {
    let Some(s) = suspension else {
        return (false, Vec::new());
    };
    let lists = [&s.dispatching_on_clusters, &s.suspend_dispatching_on_clusters];
    let mut clusters: Vec<&str> = lists
        .into_iter()
        .flatten()
        .flat_map(|list| list.cluster_names.iter().map(String::as_str))
        .collect();
    clusters.sort_unstable();
    (
        s.dispatching == Some(true) || s.suspend_dispatching == Some(true),
        clusters,
    )
}
