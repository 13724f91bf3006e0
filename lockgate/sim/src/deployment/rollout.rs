//! How large each set of a Deployment should be now.

use serde_json::Value;

use super::{DESIRED, MAXIMUM, rolling_share};
use crate::object::{annotation, int, replicas, text};

fn is_recreate(deployment: &Value) -> bool {
    deployment["spec"]["strategy"]["type"] == "Recreate"
}

fn size(set: &Value) -> i64 {
    int(&set["spec"]["replicas"])
}

fn available(set: &Value) -> i64 {
    int(&set["status"]["availableReplicas"])
}

/// How many Pods there may be too many, and how many may be missing.
pub(crate) fn limits(deployment: &Value) -> (i64, i64) {
    if is_recreate(deployment) {
        return (0, 0);
    }
    let surge = rolling_share(deployment, "maxSurge", true);
    let unavailable = rolling_share(deployment, "maxUnavailable", false);
    // With neither, nothing could move.
    let unavailable = if surge == 0 && unavailable == 0 {
        1
    } else {
        unavailable
    };
    (surge, unavailable.min(replicas(deployment)))
}

/// Whether the set of a new template may be made: at once, or, to recreate, when the old Pods are gone.
pub(super) fn may_start(deployment: &Value, old: &[&Value]) -> bool {
    !is_recreate(deployment)
        || old
            .iter()
            .all(|set| size(set) == 0 && int(&set["status"]["replicas"]) == 0)
}

/// The size with which the set of a new template begins.
pub(super) fn first_size(deployment: &Value, old: &[&Value]) -> i64 {
    let (surge, _) = limits(deployment);
    let wanted = replicas(deployment);
    let present: i64 = old.iter().map(|set| size(set)).sum();
    (wanted + surge - present).clamp(0, wanted)
}

/// The sizes of the new set (if there is one) and of the old ones, which come oldest first.
pub(super) fn plan(deployment: &Value, new: Option<&Value>, old: &[&Value], paused: bool) -> Vec<i64> {
    let sets: Vec<&Value> = new.into_iter().chain(old.iter().copied()).collect();
    if paused || was_scaled(deployment, &sets) {
        return scale(deployment, new, &sets);
    }
    let present = || sets.iter().map(|set| size(set)).collect::<Vec<i64>>();
    let Some(new) = new else {
        return if is_recreate(deployment) {
            vec![0; sets.len()]
        } else {
            present()
        };
    };
    if is_recreate(deployment) {
        let gone = old
            .iter()
            .all(|set| size(set) == 0 && int(&set["status"]["replicas"]) == 0);
        let mut sizes = vec![0; sets.len()];
        sizes[0] = if gone { replicas(deployment) } else { size(new) };
        return sizes;
    }
    let mut sizes = present();
    sizes[0] = grown(deployment, new, &sizes);
    shrink(deployment, new, old, &mut sizes);
    sizes
}

/// Whether the Deployment was scaled since its sets were last sized.
fn was_scaled(deployment: &Value, sets: &[&Value]) -> bool {
    let wanted = replicas(deployment);
    sets.iter()
        .filter(|set| size(set) > 0)
        .filter_map(|set| annotation(set, DESIRED)?.parse::<i64>().ok())
        .any(|desired| desired != wanted)
}

/// The size of the new set, as far as the surge allows it to grow.
fn grown(deployment: &Value, new: &Value, sizes: &[i64]) -> i64 {
    let wanted = replicas(deployment);
    let now = size(new);
    if now >= wanted {
        return wanted;
    }
    let (surge, _) = limits(deployment);
    let room = (wanted + surge - sizes.iter().sum::<i64>()).max(0);
    now + room.min(wanted - now)
}

/// Takes Pods from the old sets, broken ones first, without going below what must be available.
fn shrink(deployment: &Value, new: &Value, old: &[&Value], sizes: &mut [i64]) {
    let (_, unavailable) = limits(deployment);
    let minimum = replicas(deployment) - unavailable;
    let total: i64 = size(new) + old.iter().map(|set| size(set)).sum::<i64>();
    let missing_new = (size(new) - available(new)).max(0);
    let mut room = total - minimum - missing_new;
    if room <= 0 {
        return;
    }
    let mut broken_taken = 0;
    for (set, size) in old.iter().zip(sizes[1..].iter_mut()) {
        let take = (*size - available(set)).clamp(0, room);
        *size -= take;
        room -= take;
        broken_taken += take;
    }
    let all_available: i64 = available(new) + old.iter().map(|set| available(set)).sum::<i64>();
    let mut spare = (all_available - minimum)
        .min(total - broken_taken - minimum - missing_new)
        .max(0);
    for size in &mut sizes[1..] {
        let take = (*size).min(spare);
        *size -= take;
        spare -= take;
    }
}

/// The sizes after scaling: the one active set takes all; in the middle of a rollout each takes its share.
fn scale(deployment: &Value, new: Option<&Value>, sets: &[&Value]) -> Vec<i64> {
    let wanted = replicas(deployment);
    let mut sizes: Vec<i64> = sets.iter().map(|set| size(set)).collect();
    let active: Vec<usize> = (0..sets.len()).filter(|i| sizes[*i] > 0).collect();
    if active.len() <= 1 {
        // With no active set the newest one is meant: the new one, or else the last of the old.
        let only = active.first().copied().or(if new.is_some() {
            Some(0)
        } else {
            sets.len().checked_sub(1)
        });
        if let Some(only) = only {
            sizes[only] = wanted;
        }
        return sizes;
    }
    if new.is_some_and(|new| is_saturated(new, wanted)) {
        sizes[1..].fill(0);
        return sizes;
    }
    if is_recreate(deployment) {
        return sizes;
    }
    proportional(deployment, sets, &active, &mut sizes);
    sizes
}

fn is_saturated(new: &Value, wanted: i64) -> bool {
    let desired = annotation(new, DESIRED).and_then(|text| text.parse::<i64>().ok());
    size(new) == wanted && desired == Some(wanted) && available(new) == wanted
}

fn proportional(deployment: &Value, sets: &[&Value], active: &[usize], sizes: &mut [i64]) {
    let wanted = replicas(deployment);
    let (surge, _) = limits(deployment);
    let allowed = if wanted > 0 { wanted + surge } else { 0 };
    let to_add = allowed - active.iter().map(|i| sizes[*i]).sum::<i64>();
    let mut order = active.to_vec();
    // The largest first; among equals the newest when growing, the oldest when shrinking.
    let born = |i: usize| text(&sets[i]["metadata"]["creationTimestamp"]);
    order.sort_by(|a, b| {
        let by_age = if to_add > 0 {
            born(*b).cmp(born(*a))
        } else {
            born(*a).cmp(born(*b))
        };
        sizes[*b].cmp(&sizes[*a]).then(by_age)
    });
    let mut added = 0;
    for i in &order {
        let maximum = annotation(sets[*i], MAXIMUM).and_then(|text| text.parse::<i64>().ok());
        let maximum = maximum
            .unwrap_or_else(|| int(&deployment["status"]["replicas"]))
            .max(1);
        let share = if wanted == 0 {
            0
        } else {
            (sizes[*i] * allowed + maximum / 2) / maximum
        };
        let change = share - sizes[*i];
        let rest = to_add - added;
        let change = if to_add > 0 {
            change.clamp(0, rest)
        } else {
            change.clamp(rest, 0)
        };
        sizes[*i] = (sizes[*i] + change).max(0);
        added += change;
    }
    if let Some(first) = order.first() {
        sizes[*first] = (sizes[*first] + to_add - added).max(0);
    }
}
