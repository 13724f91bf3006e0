//! How replicas would be given out by tier: a group of clusters is full before what it overflows to gets any.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::filter::Fit;
use super::Want;
use super::groups::Limits;
use crate::selector::affinity::Field;

/// How good a set of groups is by tiers: how much stays where it is, what goes to the first tier and to each that follows, and how
/// few groups do; the greatest is the best.
pub(super) type Spill = (i64, Vec<i64>, Reverse<usize>);

/// What there is by tier, if there is more than one.
pub(super) struct Overflow {
    /// By the first of the groups that clusters are in.
    kinds: Vec<Vec<Alike>>,
    /// How many tiers there are.
    tiers: usize,
    /// How many clusters there may be.
    most: usize,
    /// How many replicas are to be given out.
    wanted: i64,
    /// More than this no set stays where it is, and puts where it belongs.
    bound: (i64, Vec<i64>),
}

/// Clusters that are in the same groups.
struct Alike {
    /// The places of their groups, in order.
    own: Vec<usize>,
    count: usize,
    /// What they have together, tier by tier.
    sums: Vec<Tier>,
    /// As many of each tier as may be chosen, of the best and of the richest, the best first; none where all may be.
    best: Vec<One>,
}

impl Alike {
    /// Leaves out who is never chosen: of each tier no more than `most` are, the first of them or, where these have no room, the
    /// richest.
    fn keep_best(&mut self, most: usize) {
        if self.best.len() <= most {
            return;
        }
        let mut kept = HashSet::new();
        let mut keep = |sorted: &[One]| {
            let mut of_tier = vec![0; self.sums.len()];
            for one in sorted {
                of_tier[one.tier] += 1;
                if of_tier[one.tier] <= most {
                    kept.insert(one.place);
                }
            }
        };
        keep(&self.best);
        let mut richest = self.best.clone();
        richest.sort_by_key(|one| Reverse(one.capacity));
        keep(&richest);
        self.best.retain(|one| kept.contains(&one.place));
    }
}

/// What clusters of one tier have. Where nobody asks for room each has room for one, itself.
#[derive(Clone, Copy, Default)]
struct Tier {
    clusters: usize,
    capacity: i64,
    previous: i64,
}

impl Tier {
    fn add(&mut self, (capacity, previous): (i64, i64)) {
        self.clusters += 1;
        self.capacity = self.capacity.saturating_add(capacity);
        self.previous = self.previous.saturating_add(previous);
    }
}

/// One cluster.
#[derive(Clone, Copy)]
struct One {
    /// Among those that fit, the best first.
    place: usize,
    tier: usize,
    capacity: i64,
    previous: i64,
}

impl Overflow {
    /// None if all clusters are of one tier: then nothing overflows. `fits` are sorted, the first tier first; `places` are those of
    /// the groups, of which at most so many are chosen.
    pub(super) fn of(
        fits: &[Fit<'_>],
        field: Field,
        places: &HashMap<&str, usize>,
        most_groups: usize,
        by_cluster: Limits,
        want: Want,
    ) -> Option<Self> {
        let (first, last) = (fits.first()?.tier, fits.last()?.tier);
        if first == last {
            return None;
        }
        let tiers = last - first + 1;
        let most = by_cluster.max;
        let mut kinds: Vec<BTreeMap<Vec<usize>, Alike>> = Vec::new();
        kinds.resize_with(places.len(), BTreeMap::new);
        let mut previous = 0_i64;
        for (place, fit) in fits.iter().enumerate() {
            let own = field.each(fit.cluster);
            let mut own: Vec<usize> = own.filter_map(|value| places.get(value).copied()).collect();
            own.sort_unstable();
            let (room, there) = match want.dynamic {
                true => (fit.capacity(), fit.previous),
                false => (1, i64::from(fit.present)),
            };
            let there = if want.fresh { 0 } else { there };
            previous = previous.saturating_add(there);
            // Who is in no group does not fit.
            let Some(of_group) = own.first().map(|group| &mut kinds[*group]) else {
                continue;
            };
            let kind = of_group.entry(own).or_insert_with_key(|own| Alike {
                own: own.clone(),
                count: 0,
                sums: vec![Tier::default(); tiers],
                best: Vec::new(),
            });
            let tier = fit.tier - first;
            if most < fits.len() {
                kind.best.push(One {
                    place,
                    tier,
                    capacity: room,
                    previous: there,
                });
            }
            kind.count += 1;
            kind.sums[tier].add((room, there));
        }
        for kind in kinds.iter_mut().flat_map(BTreeMap::values_mut) {
            kind.keep_best(most);
        }
        let wanted = match want.dynamic {
            true => want.replicas.max(0),
            false => i64::try_from(most).unwrap_or(i64::MAX),
        };
        let mut overflow = Self {
            kinds: kinds
                .into_iter()
                .map(|kinds| kinds.into_values().collect())
                .collect(),
            tiers,
            most,
            wanted,
            bound: (previous.min(wanted), Vec::new()),
        };
        overflow.bound.1 = overflow.at_best(most_groups);
        Some(overflow)
    }

    /// No set of so many groups puts more where it belongs, tier by tier: that would be the richest of them all, and of each tier the
    /// richest clusters.
    fn at_best(&self, most_groups: usize) -> Vec<i64> {
        let (mut left, mut remaining) = (self.most, self.wanted);
        let all = || self.kinds.iter().flatten();
        let one = |tier: usize| {
            let of_group = |kinds: &Vec<Alike>| {
                let rooms = kinds.iter().map(|kind| kind.sums[tier].capacity);
                rooms.fold(0, i64::saturating_add)
            };
            let mut groups: Vec<i64> = self.kinds.iter().map(of_group).collect();
            groups.sort_unstable_by_key(|room| Reverse(*room));
            let mut room = groups.into_iter().take(most_groups).fold(0, i64::saturating_add);
            let ones = all().flat_map(|kind| kind.best.iter().filter(|one| one.tier == tier));
            let mut rooms: Vec<i64> = ones.map(|one| one.capacity).filter(|room| *room > 0).collect();
            if all().any(|kind| !kind.best.is_empty()) {
                rooms.sort_unstable_by_key(|room| Reverse(*room));
                rooms.truncate(left);
                left -= rooms.len();
                room = room.min(rooms.into_iter().fold(0, i64::saturating_add));
            }
            let part = remaining.min(room);
            remaining -= part;
            part
        };
        (0..self.tiers).map(one).collect()
    }

    /// How many clusters have to be looked at to fill these groups.
    pub(super) fn looks(&self, set: &[usize]) -> usize {
        let of_group = |group: &usize| self.kinds[*group].iter().map(|kind| 1 + kind.best.len());
        set.iter().flat_map(of_group).sum()
    }

    /// What would be given out to the clusters of these groups, as it is done in the end: what is there stays, or is taken from the
    /// last tier first. `set` is sorted.
    pub(super) fn spill(&self, set: &[usize]) -> Spill {
        let tiers = self.chosen(set);
        let previous = tiers.iter().map(|tier| tier.previous);
        let previous = previous.fold(0, i64::saturating_add);
        let is_more = previous < self.wanted;
        let mut remaining = if is_more {
            self.wanted - previous
        } else {
            self.wanted
        };
        let given = tiers.iter().map(|tier| {
            let (there, room) = match is_more {
                true => (tier.previous, tier.capacity.saturating_sub(tier.previous)),
                false => (0, tier.previous),
            };
            let part = remaining.min(room);
            remaining -= part;
            there.saturating_add(part)
        });
        (previous.min(self.wanted), given.collect(), Reverse(set.len()))
    }

    /// What the clusters have that would be chosen of these groups: one of each, and then the best. Where these have no room together,
    /// the richest; at most so many have to make way for them.
    fn chosen(&self, set: &[usize]) -> Vec<Tier> {
        let inside = |kind: &&Alike| kind.own.iter().all(|group| set.binary_search(group).is_ok());
        let kinds = set.iter().flat_map(|group| &self.kinds[*group]).filter(inside);
        let mut tiers = vec![Tier::default(); self.tiers];
        if kinds.clone().map(|kind| kind.count).sum::<usize>() <= self.most {
            for kind in kinds {
                for (sum, tier) in tiers.iter_mut().zip(&kind.sums) {
                    sum.capacity = sum.capacity.saturating_add(tier.capacity);
                    sum.previous = sum.previous.saturating_add(tier.previous);
                }
            }
            return tiers;
        }
        let kinds: Vec<&Alike> = kinds.collect();
        let by_place = |one: &One| (Reverse(0), one.place);
        let by_room = |one: &One| (Reverse(one.capacity), one.place);
        self.fill(set, &kinds, by_place, &mut tiers);
        let room = tiers.iter().map(|tier| tier.capacity);
        if room.fold(0, i64::saturating_add) < self.wanted {
            tiers.fill(Tier::default());
            self.fill(set, &kinds, by_room, &mut tiers);
        }
        tiers
    }

    /// One cluster of each group, and then the first in this order.
    fn fill(
        &self,
        set: &[usize],
        kinds: &[&Alike],
        order: impl Fn(&One) -> (Reverse<i64>, usize),
        tiers: &mut [Tier],
    ) {
        let first = |kind: &&Alike| kind.best.iter().min_by_key(|one| order(one)).copied();
        let firsts: Vec<Option<One>> = kinds.iter().map(first).collect();
        let mut covered = vec![false; set.len()];
        let mut taken: Vec<usize> = Vec::with_capacity(set.len());
        let mut put = |one: &One| tiers[one.tier].add((one.capacity, one.previous));
        for (at, group) in set.iter().enumerate() {
            if covered[at] {
                continue;
            }
            let has = kinds
                .iter()
                .zip(&firsts)
                .filter(|(kind, _)| kind.own.contains(group));
            let best = has.filter_map(|(kind, one)| Some((kind, (*one)?)));
            let Some((kind, one)) = best.min_by_key(|(_, one)| order(one)) else {
                continue;
            };
            for own in &kind.own {
                if let Ok(at) = set.binary_search(own) {
                    covered[at] = true;
                }
            }
            taken.push(one.place);
            put(&one);
        }
        taken.sort_unstable();
        let left = self.most.saturating_sub(taken.len());
        let rest = kinds.iter().flat_map(|kind| &kind.best);
        let mut rest: Vec<&One> = rest
            .filter(|one| taken.binary_search(&one.place).is_err())
            .collect();
        if left < rest.len() {
            rest.select_nth_unstable_by_key(left, |one| order(one));
            rest.truncate(left);
        }
        rest.into_iter().for_each(put);
    }

    /// Whether no other set is better by tiers.
    pub(super) fn is_best(&self, (stays, given, _): &Spill) -> bool {
        (stays, given) >= (&self.bound.0, &self.bound.1)
    }
}
