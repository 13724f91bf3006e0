//! A choice that keeps every limit, where choosing one field after the other found none, or none with enough room: what is best
//! for the first field may leave too little for the next.
//!
//! Clusters that are in the same groups are alike, so that only kinds of clusters are tried, and only those that add a group
//! which counts: all others are taken together, at the end. If there is a choice it is found, unless there are more to try than
//! [`MOST_TRIES`] or more to look at than [`MOST_LOOKS`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::filter::Fit;
use super::groups::Limits;
use crate::selector::affinity::Field;

/// How many kinds of clusters are tried.
const MOST_TRIES: usize = 20_000;
/// How many are looked at for that.
const MOST_LOOKS: usize = 1_000_000;

/// Clusters that are in the same groups.
struct Alike<'a> {
    /// Their groups, by field.
    values: Vec<Vec<&'a str>>,
    /// Their places among those that fit, the best first; where room counts, that with the most.
    fits: Vec<usize>,
}

struct Search<'s, 'a> {
    kinds: &'s [Alike<'a>],
    limits: Vec<Limits>,
    /// By field: whether there are more groups than may be chosen.
    is_bounded: Vec<bool>,
    by_cluster: Limits,
    /// The room that the chosen ones must have together, if that counts, and the room of each.
    room: Option<(i64, Vec<i64>)>,
    /// How many of each kind are taken: one of those that were tried, until the end.
    taken: Vec<usize>,
    /// Kinds that are not tried any more.
    closed: Vec<bool>,
    tries: usize,
    looks: usize,
    /// How many there may be.
    most: (usize, usize),
}

/// What follows from the kinds that are taken.
enum Found {
    /// Every limit is kept.
    All,
    /// One of these kinds has to be taken, too; the best first.
    OneOf(Vec<usize>),
}

/// The kinds of which one has to be taken.
struct Step {
    kinds: Vec<usize>,
    /// How many of them were tried; the last of these is taken.
    tried: usize,
}

/// The places of clusters that keep all limits together, and have so much room if that is asked for, if there are any. `fits` are
/// sorted, the best first. It is one of so many searches that share what may be tried.
pub(super) fn search(
    fits: &[Fit<'_>],
    fields: &[(Field, Limits)],
    by_cluster: Limits,
    room: Option<i64>,
    share: usize,
) -> Option<Vec<usize>> {
    let mut alike: BTreeMap<Vec<Vec<&str>>, Vec<usize>> = BTreeMap::new();
    for (index, fit) in fits.iter().enumerate() {
        let values = fields.iter().map(|(field, _)| {
            let mut values: Vec<&str> = field.each(fit.cluster).collect();
            values.sort_unstable();
            values
        });
        alike.entry(values.collect()).or_default().push(index);
    }
    let room = room.map(|wanted| (wanted, fits.iter().map(Fit::capacity).collect::<Vec<i64>>()));
    let mut kinds: Vec<Alike<'_>> = alike
        .into_iter()
        .map(|(values, fits)| Alike { values, fits })
        .collect();
    if let Some((_, rooms)) = &room {
        for kind in &mut kinds {
            // The sort is stable: of those with the same room the best comes first.
            kind.fits.sort_by_key(|fit| Reverse(rooms[*fit]));
        }
    }
    // The best cluster of a kind stands for it.
    kinds.sort_by_key(|kind| kind.fits.first().copied());
    let mut is_bounded = Vec::with_capacity(fields.len());
    for (at, (_, limits)) in fields.iter().enumerate() {
        let all: BTreeSet<&str> = kinds
            .iter()
            .flat_map(|kind| kind.values[at].iter().copied())
            .collect();
        if all.len() < limits.min {
            return None;
        }
        is_bounded.push(all.len() > limits.max);
    }
    let mut search = Search {
        limits: fields.iter().map(|(_, limits)| *limits).collect(),
        is_bounded,
        by_cluster,
        room,
        taken: vec![0; kinds.len()],
        closed: vec![false; kinds.len()],
        tries: 0,
        looks: 0,
        most: (MOST_TRIES / share.max(1), MOST_LOOKS / share.max(1)),
        kinds: &kinds,
    };
    if !search.run() {
        return None;
    }
    let taken = kinds.iter().zip(&search.taken);
    Some(
        taken
            .flat_map(|(kind, count)| kind.fits[..*count].iter().copied())
            .collect(),
    )
}

impl<'a> Search<'_, 'a> {
    /// Takes kinds until every minimum is kept; no maximum is ever broken. The steps are on a list and not on the stack: there
    /// may be as many as there are groups.
    fn run(&mut self) -> bool {
        let mut steps: Vec<Step> = Vec::new();
        loop {
            match self.look() {
                Found::All => return true,
                Found::OneOf(kinds) => steps.push(Step { kinds, tried: 0 }),
            }
            while !self.take_next(&mut steps) {
                if steps.is_empty() {
                    return false;
                }
            }
        }
    }

    /// Takes the next kind of the last step in the place of the one before; ends the step if there is none.
    fn take_next(&mut self, steps: &mut Vec<Step>) -> bool {
        let Some(step) = steps.last_mut() else {
            return false;
        };
        if let Some(last) = step.tried.checked_sub(1) {
            // Nothing with this kind does, so the others are tried without.
            let kind = step.kinds[last];
            self.taken[kind] -= 1;
            self.closed[kind] = true;
        }
        if step.tried < step.kinds.len() && self.tries < self.most.0 && self.looks < self.most.1 {
            self.tries += 1;
            self.taken[step.kinds[step.tried]] += 1;
            step.tried += 1;
            return true;
        }
        for kind in &step.kinds[..step.tried] {
            self.closed[*kind] = false;
        }
        steps.pop();
        false
    }

    /// What follows from what is taken. If only clusters are missing, they are taken from the kinds that add no group which
    /// counts.
    fn look(&mut self) -> Found {
        self.looks += self.kinds.len();
        let count: usize = self.taken.iter().sum();
        let chosen: Vec<BTreeSet<&'a str>> = (0..self.limits.len()).map(|field| self.values(field)).collect();
        let lacks = |field: &usize| chosen[*field].len() < self.limits[*field].min;
        let adds = |kind: &Alike<'_>, field: usize| {
            let new = kind.values[field]
                .iter()
                .filter(|value| !chosen[field].contains(*value));
            new.count()
        };
        let is_free = |kind: &Alike<'_>| {
            (0..chosen.len()).all(|field| !self.is_bounded[field] || adds(kind, field) == 0)
        };
        let open = (0..chosen.len()).find(lacks);
        if open.is_none() {
            let free: Vec<usize> = (0..self.kinds.len())
                .filter(|index| is_free(&self.kinds[*index]))
                .collect();
            let left = free.iter().map(|index| self.left(*index));
            if count + left.sum::<usize>() >= self.by_cluster.min {
                let most = self.more(&free, self.by_cluster.max.saturating_sub(count));
                let Some((wanted, rooms)) = &self.room else {
                    let least = self.by_cluster.min.saturating_sub(count);
                    self.take(most.into_iter().take(least));
                    return Found::All;
                };
                let taken = self.kinds.iter().zip(&self.taken);
                let taken = taken.flat_map(|(kind, count)| &kind.fits[..*count]);
                let all = taken.chain(most.iter().map(|(fit, _)| fit));
                if all.map(|fit| rooms[*fit]).fold(0, i64::saturating_add) >= *wanted {
                    self.take(most.into_iter());
                    return Found::All;
                }
            }
        }
        if count >= self.by_cluster.max {
            return Found::OneOf(Vec::new());
        }
        // Those that help most of the fields come first.
        let mut order: Vec<(usize, usize)> = Vec::new();
        for (index, kind) in self.kinds.iter().enumerate() {
            let keeps = |field: usize| chosen[field].len() + adds(kind, field) <= self.limits[field].max;
            let helps = || open.map_or_else(|| !is_free(kind), |field| adds(kind, field) > 0);
            if !self.closed[index] && helps() && (0..chosen.len()).all(keeps) {
                let fields = (0..chosen.len()).filter(lacks);
                let helped = fields.filter(|field| adds(kind, *field) > 0).count();
                order.push((helped, index));
            }
        }
        order.sort_by_key(|(helped, index)| (Reverse(*helped), *index));
        Found::OneOf(order.into_iter().map(|(_, index)| index).collect())
    }

    /// How many clusters of a kind are not taken.
    fn left(&self, kind: usize) -> usize {
        self.kinds[kind].fits.len() - self.taken[kind]
    }

    /// So many more clusters of these kinds, with their kinds: the best, or those with the most room.
    fn more(&self, kinds: &[usize], count: usize) -> Vec<(usize, usize)> {
        let more = kinds.iter().flat_map(|kind| {
            let fits = self.kinds[*kind].fits[self.taken[*kind]..].iter();
            fits.map(|fit| (*fit, *kind))
        });
        let mut more: Vec<(usize, usize)> = more.collect();
        let room = |fit: usize| self.room.as_ref().map_or(0, |(_, rooms)| rooms[fit]);
        more.sort_unstable_by_key(|(fit, _)| (Reverse(room(*fit)), *fit));
        more.truncate(count);
        more
    }

    fn take(&mut self, more: impl Iterator<Item = (usize, usize)>) {
        for (_, kind) in more {
            self.taken[kind] += 1;
        }
    }

    /// The groups that are chosen, by one field.
    fn values(&self, field: usize) -> BTreeSet<&'a str> {
        let taken = self
            .kinds
            .iter()
            .zip(&self.taken)
            .filter(|(_, count)| **count > 0);
        taken
            .flat_map(|(kind, _)| kind.values[field].iter().copied())
            .collect()
    }
}
