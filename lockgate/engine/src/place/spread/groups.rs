//! Which groups of clusters are chosen: regions, or zones, or providers.
//!
//! Sets of groups are tried in an order that does not depend on the order of clusters; one that suffices is not made larger.
//! Of all that suffice the best is taken. The number of sets is bounded: where there are too many to try, the best groups
//! are taken one after the other. Where replicas are shared by room, sets that have enough of it come before all others. Where
//! there are clusters that are overflowed to, a set is made larger as long as fewer replicas go to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::RangeInclusive;

use lockgate_api::placement::SpreadConstraint;

use super::super::filter::Fit;
use super::Want;
use super::alike::{Demand, Kinds, richest};
use super::overflow::{Overflow, Spill};
use crate::selector::affinity::Field;

/// How many sets of groups are looked at.
const MOST_SETS: usize = 2000;
/// How many, where each takes a look at every cluster.
const MOST_SETS_IN_DETAIL: usize = 200;
/// How many clusters are looked at where sets are filled tier by tier.
const MOST_CLUSTERS: usize = 20_000;
/// How many prefixes of an order are looked at one by one; then by steps of a part of them.
const EVERY_PREFIX: usize = 4;
/// What a replica counts against the score of a cluster.
const REPLICA: i64 = 1000;
/// The score of a cluster that has the template already.
const PRESENT: i64 = 100;

/// How many groups are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) min: usize,
    /// No maximum is the largest number.
    pub(super) max: usize,
}

impl Limits {
    /// One at least, for nothing is spread over nothing.
    pub(super) const NONE: Self = Self {
        min: 1,
        max: usize::MAX,
    };

    /// What a constraint asks for. No maximum means no limit, and so does one that says nothing.
    pub(super) fn of(constraint: &SpreadConstraint) -> Self {
        let count = |groups: Option<i64>| usize::try_from(groups.unwrap_or(0)).unwrap_or(0);
        Self {
            min: count(constraint.min_groups).max(1),
            max: match count(constraint.max_groups) {
                0 => usize::MAX,
                max => max,
            },
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            usize::MAX => write!(f, "at least {}", self.min),
            max => write!(f, "{} to {max}", self.min),
        }
    }
}

/// What is left after one field was looked at.
pub(super) struct Narrowed<'a> {
    /// The clusters of the chosen groups, the best first.
    pub(super) kept: Vec<Fit<'a>>,
    /// The others.
    pub(super) left: Vec<Fit<'a>>,
    /// The chosen groups.
    pub(super) values: Vec<String>,
}

struct Group {
    value: String,
    /// The first tier of which it has a cluster.
    tier: usize,
    clusters: usize,
    present: usize,
    score: i64,
    /// For how many replicas it has room.
    room: i64,
    /// What its richest clusters have room for, as many as may be chosen.
    richest: Vec<i64>,
}

/// Chooses groups by one field. `fits` are sorted, the best first; `earlier` says how many groups of each field were chosen
/// already, which must all be kept, and `later` are the fields that are looked at after this one.
pub(super) fn narrow<'a>(
    fits: Vec<Fit<'a>>,
    (field, limits): (Field, Limits),
    by_cluster: Limits,
    earlier: &[(Field, usize)],
    later: &[(Field, Limits)],
    want: Want,
) -> Result<Narrowed<'a>, String> {
    let groups = groups(&fits, field, limits, by_cluster, want);
    let name = field.name();
    if groups.len() < limits.min {
        let mut values: Vec<&str> = groups.iter().map(|group| group.value.as_str()).collect();
        values.sort_unstable();
        return Err(format!(
            "the number of feasible {name} is less than spreadConstraint.MinGroups: {} wanted, {} fit ({})",
            limits.min,
            groups.len(),
            values.join(", ")
        ));
    }
    let exactly = |(field, chosen): &(Field, usize)| (*field, Demand::Exactly(*chosen));
    let at_least = |(field, limits): &(Field, Limits)| (*field, Demand::AtLeast(limits.min));
    let others: Vec<(Field, Demand)> = earlier
        .iter()
        .map(exactly)
        .chain(later.iter().map(at_least))
        .collect();
    // Where a cluster is in one group, and no other field is looked at, counts say everything.
    let is_plain = others.is_empty() && field != Field::Zone;
    let values = || groups.iter().map(|group| group.value.as_str());
    let most = most(field, limits, by_cluster);
    let places: HashMap<&str, usize> = values()
        .enumerate()
        .map(|(place, value)| (value, place))
        .collect();
    let search = Search {
        kinds: (!is_plain).then(|| Kinds::of(&fits, field, values(), &others)),
        overflow: Overflow::of(&fits, field, &places, most, by_cluster, want),
        most,
        field,
        groups: &groups,
        limits,
        by_cluster,
        want,
    };
    let found = search.all();
    let Some(best) = search.best(&found) else {
        return Err(format!(
            "no {name}s with enough clusters: {name}: {limits}, cluster: {by_cluster}; relax one of the spread constraints"
        ));
    };
    let values: Vec<String> = best.iter().map(|index| groups[*index].value.clone()).collect();
    let (kept, left) = fits.into_iter().partition(|fit| {
        let mut own = field.of(fit.cluster).iter();
        own.all(|value| values.contains(value))
    });
    Ok(Narrowed { kept, left, values })
}

/// How many groups there may be. A cluster stands for one, except of zones.
fn most(field: Field, limits: Limits, by_cluster: Limits) -> usize {
    match field {
        Field::Zone => limits.max,
        _ => limits.max.min(by_cluster.max).max(limits.min),
    }
}

/// The set that is the best by tiers among those of so many groups. Each takes a look at its clusters, so that of many not all are
/// looked at: steps grow with the sets, and of those between the last two steps the smallest is taken that is as good.
fn fullest(counts: RangeInclusive<usize>, set_of: impl Fn(usize) -> Option<Found>) -> Option<Found> {
    let most = *counts.end();
    let mut best: Option<Found> = None;
    let (mut before, mut last) = (*counts.start(), None);
    let mut next = Some(*counts.start()).filter(|count| *count <= most);
    while let Some(count) = next {
        if let Some(found) = set_of(count)
            && best.as_ref().is_none_or(|best| found.spill > best.spill)
        {
            before = last.map_or(count, |last| last + 1);
            best = Some(found);
        }
        last = Some(count);
        let step = if count < EVERY_PREFIX {
            1
        } else {
            count / EVERY_PREFIX
        };
        next = (count < most).then(|| (count + step).min(most));
    }
    let mut best = best?;
    while before < best.set.len() {
        let middle = before.midpoint(best.set.len() - 1);
        match set_of(middle) {
            Some(found) if found.spill > best.spill => best = found,
            _ => before = middle + 1,
        }
    }
    Some(best)
}

/// The groups: those of the first tier first, then the smallest.
fn groups(fits: &[Fit<'_>], field: Field, limits: Limits, by_cluster: Limits, want: Want) -> Vec<Group> {
    let mut members: BTreeMap<&str, Vec<&Fit<'_>>> = BTreeMap::new();
    for fit in fits {
        for value in field.each(fit.cluster) {
            members.entry(value).or_default().push(fit);
        }
    }
    let mut groups: Vec<Group> = members
        .into_iter()
        .map(|(value, members)| Group {
            value: value.to_owned(),
            tier: members.iter().map(|fit| fit.tier).min().unwrap_or(0),
            clusters: members.len(),
            present: members.iter().filter(|fit| fit.present).count(),
            score: score(&members, limits, by_cluster, want),
            room: members
                .iter()
                .map(|fit| fit.capacity())
                .fold(0, i64::saturating_add),
            richest: rooms(&members, by_cluster, want),
        })
        .collect();
    // By name already, which a stable sort keeps.
    groups.sort_by_key(|group| (group.tier, group.clusters, -group.score));
    groups
}

/// What the richest clusters of a group have room for; nothing where nobody asks.
fn rooms(members: &[&Fit<'_>], by_cluster: Limits, want: Want) -> Vec<i64> {
    if !want.dynamic || by_cluster.max == usize::MAX {
        return Vec::new();
    }
    let mut rooms: Vec<i64> = members.iter().map(|fit| fit.capacity()).collect();
    rooms.sort_unstable_by_key(|room| Reverse(*room));
    rooms.truncate(by_cluster.max);
    rooms
}

/// What a group is worth: the replicas that it can take, and then how much of it has the template already.
fn score(members: &[&Fit<'_>], limits: Limits, by_cluster: Limits, want: Want) -> i64 {
    let mean = |fits: &[&Fit<'_>]| {
        let present = fits.iter().filter(|fit| fit.present).count() as i64;
        PRESENT * present / (fits.len() as i64).max(1)
    };
    if !want.dynamic {
        // Every cluster gets all of it, whatever it has room for.
        return REPLICA
            .saturating_mul(members.len() as i64)
            .saturating_add(mean(members));
    }
    let groups = (limits.min as i64).max(1);
    let target = want.replicas.max(0).saturating_add(groups - 1) / groups;
    let few = by_cluster.min.max(limits.min);
    let (mut capacity, mut count) = (0_i64, 0);
    for fit in members {
        capacity = capacity.saturating_add(fit.capacity());
        count += 1;
        if count >= few && capacity >= target {
            break;
        }
    }
    if capacity >= target {
        REPLICA
            .saturating_mul(target)
            .saturating_add(mean(&members[..count]))
    } else {
        REPLICA.saturating_mul(capacity).saturating_add(mean(members))
    }
}

struct Search<'s> {
    /// What clusters there are; none where counts say everything.
    kinds: Option<Kinds>,
    /// What there is by tier, if there is more than one.
    overflow: Option<Overflow>,
    /// How many groups there may be.
    most: usize,
    field: Field,
    groups: &'s [Group],
    limits: Limits,
    by_cluster: Limits,
    want: Want,
}

/// How much may still be looked at.
struct Left {
    sets: usize,
    clusters: usize,
}

/// A set of groups that suffices: their places, in order.
struct Found {
    set: Vec<usize>,
    /// Whether they have room for all replicas.
    has_room: bool,
    /// How they use what is overflowed to; none where nothing is.
    spill: Option<Spill>,
}

impl Search<'_> {
    /// The sets of groups that suffice, in the order in which they were found.
    fn all(&self) -> Vec<Found> {
        let mut left = Left {
            sets: match &self.kinds {
                Some(_) => MOST_SETS_IN_DETAIL,
                None => MOST_SETS,
            },
            clusters: MOST_CLUSTERS,
        };
        let mut found = Vec::new();
        let complete = self.descend(&mut Vec::new(), 0, &mut found, &mut left);
        if !complete {
            found.extend(self.greedy());
        }
        if !found.iter().any(|one| one.has_room) {
            for one in &mut found {
                one.spill = self.spill(&one.set);
            }
        }
        found
    }

    fn descend(&self, set: &mut Vec<usize>, from: usize, found: &mut Vec<Found>, left: &mut Left) -> bool {
        let clusters = self.overflow.as_ref().map_or(0, |overflow| overflow.looks(set));
        if left.sets == 0 || left.clusters < clusters {
            return false;
        }
        left.sets -= 1;
        left.clusters -= clusters;
        if set.len() >= self.limits.min && self.suffices(set) {
            let one = self.found(set.clone());
            let is_best = match (&self.overflow, &one.spill) {
                (Some(overflow), Some(spill)) => !self.want.dynamic || overflow.is_best(spill),
                _ => true,
            };
            let is_enough = one.has_room && is_best;
            found.push(one);
            // Where they have not enough room, further groups may have; of the first tier, too.
            if is_enough {
                return true;
            }
        }
        if set.len() >= self.most {
            return true;
        }
        for index in from..self.groups.len() {
            set.push(index);
            let complete = self.descend(set, index + 1, found, left);
            set.pop();
            if !complete {
                return false;
            }
        }
        true
    }

    /// How replicas go to the tiers is worked out where there is room for them; else it counts only if there is none anywhere.
    fn found(&self, set: Vec<usize>) -> Found {
        let has_room = self.has_room(&set);
        Found {
            has_room,
            spill: has_room.then(|| self.spill(&set)).flatten(),
            set,
        }
    }

    fn spill(&self, set: &[usize]) -> Option<Spill> {
        self.overflow.as_ref().map(|overflow| overflow.spill(set))
    }

    /// The best groups, one after the other, until they suffice: those of the first tier and where it is first, unless only others
    /// have the room.
    fn greedy(&self) -> Option<Found> {
        let ordered = |(by_tier, by_present): (bool, bool)| {
            let mut order: Vec<usize> = (0..self.groups.len()).collect();
            order.sort_by_key(|index| {
                let group = &self.groups[*index];
                (
                    if by_tier { group.tier } else { 0 },
                    Reverse(if by_present { group.present } else { 0 }),
                    -group.score,
                    Reverse(group.clusters),
                    &group.value,
                )
            });
            order
        };
        let first = |order: &[usize], roomy: bool| {
            let most = self.most.min(order.len());
            let prefix = |count: usize| {
                let mut set = order[..count].to_vec();
                set.sort_unstable();
                let mut found = self.suffices(&set).then(|| self.found(set))?;
                if !roomy {
                    found.spill = self.spill(&found.set);
                }
                (!roomy || found.has_room).then_some(found)
            };
            match self.overflow {
                Some(_) => fullest(self.limits.min..=most, prefix),
                None => (self.limits.min..=most).find_map(prefix),
            }
        };
        // Without an overflow the tier makes no difference.
        let ways = [(true, true), (true, false), (false, true), (false, false)];
        let ways = if self.overflow.is_some() {
            &ways
        } else {
            &ways[..2]
        };
        ways.iter()
            .find_map(|way| first(&ordered(*way), true))
            .or_else(|| first(&ordered((true, true)), false))
    }

    /// Whether as many clusters of these groups as may be chosen, one of each at least, have room for all replicas.
    fn has_room(&self, set: &[usize]) -> bool {
        if !self.want.dynamic {
            return true;
        }
        let room = match &self.kinds {
            // A cluster may be in several zones.
            Some(kinds) if self.field == Field::Zone => kinds.room(set, self.by_cluster.max),
            _ => self.room_of_groups(set),
        };
        room >= self.want.replicas
    }

    /// The room of groups none of which shares a cluster with another.
    fn room_of_groups(&self, set: &[usize]) -> i64 {
        let groups = || set.iter().map(|index| &self.groups[*index]);
        let clusters: usize = groups().map(|group| group.clusters).sum();
        if clusters <= self.by_cluster.max {
            return groups().map(|group| group.room).fold(0, i64::saturating_add);
        }
        let firsts = groups().filter_map(|group| group.richest.first().copied());
        let rest = groups().flat_map(|group| group.richest.iter().skip(1).copied());
        let more = richest(rest.collect(), self.by_cluster.max.saturating_sub(set.len()));
        firsts.fold(more, i64::saturating_add)
    }

    /// Whether these groups have enough clusters, all groups that were chosen by other fields, and enough of those that are
    /// looked at later.
    fn suffices(&self, set: &[usize]) -> bool {
        match &self.kinds {
            Some(kinds) => kinds.suffice(set, self.by_cluster.min),
            None => {
                let clusters: usize = set.iter().map(|index| self.groups[*index].clusters).sum();
                clusters >= self.by_cluster.min
            }
        }
    }

    /// The best of the sets: what has room for all replicas, then the best by tiers, then what moves least, then the highest score,
    /// then the most clusters, then the first. If some of its best groups suffice alone, those.
    fn best<'f>(&self, found: &'f [Found]) -> Option<&'f Vec<usize>> {
        let fresh = self.want.fresh;
        let sum = |set: &[usize], of: &dyn Fn(&Group) -> i64| {
            set.iter()
                .map(|index| of(&self.groups[*index]))
                .fold(0, i64::saturating_add)
        };
        let present = |set: &[usize]| match fresh {
            true => 0,
            false => sum(set, &|group| group.present as i64),
        };
        let worth = |found: &'f Found| {
            let score = sum(&found.set, &|group| group.score);
            let clusters = sum(&found.set, &|group| group.clusters as i64);
            let spill = found.spill.as_ref();
            (found.has_room, spill, present(&found.set), score, clusters)
        };
        let mut best = None;
        for one in found {
            let worth = worth(one);
            if best.as_ref().is_none_or(|(known, _)| worth > *known) {
                best = Some((worth, one));
            }
        }
        let (_, winner) = best?;
        let mut by_score = winner.set.clone();
        by_score.sort_by_key(|index| (-self.groups[*index].score, &self.groups[*index].value));
        let prefix = (1..by_score.len()).find_map(|count| {
            let mut prefix = by_score[..count].to_vec();
            prefix.sort_unstable();
            let same = found.iter().find(|one| one.set == prefix)?;
            let keeps = same.has_room == winner.has_room && present(&same.set) == present(&winner.set);
            (keeps && same.spill >= winner.spill).then_some(&same.set)
        });
        Some(prefix.unwrap_or(&winner.set))
    }
}
