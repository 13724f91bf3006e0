//! A choice that keeps every limit, where choosing one field after the other found none: what is best for the first field
//! may leave too little for the next.
//!
//! Clusters that are in the same groups are alike, so that only kinds of clusters are tried. If there is a choice it is found,
//! unless there are more to try than [`MOST_LOOKS`].

use std::collections::{BTreeMap, BTreeSet};

use super::super::filter::Fit;
use super::groups::Limits;
use crate::selector::affinity::Field;

/// How many kinds of clusters are looked at.
const MOST_LOOKS: usize = 20_000;

/// Clusters that are in the same groups.
struct Alike<'a> {
    /// Their groups, by field.
    values: Vec<Vec<&'a str>>,
    /// Their places among those that fit, the best first.
    fits: Vec<usize>,
}

struct Search<'s, 'a> {
    kinds: &'s [Alike<'a>],
    limits: Vec<Limits>,
    by_cluster: Limits,
    /// How many of each kind are taken.
    taken: Vec<usize>,
    /// Kinds that are not tried any more.
    closed: Vec<bool>,
    looks: usize,
}

/// The places of clusters that keep all limits together, if there are any. `fits` are sorted, the best first.
pub(super) fn search(fits: &[Fit<'_>], fields: &[(Field, Limits)], by_cluster: Limits) -> Option<Vec<usize>> {
    let mut alike: BTreeMap<Vec<Vec<&str>>, Vec<usize>> = BTreeMap::new();
    for (index, fit) in fits.iter().enumerate() {
        let values = fields.iter().map(|(field, _)| {
            let values: BTreeSet<&str> = field.of(fit.cluster).into_iter().collect();
            values.into_iter().collect()
        });
        alike.entry(values.collect()).or_default().push(index);
    }
    let mut kinds: Vec<Alike<'_>> = alike
        .into_iter()
        .map(|(values, fits)| Alike { values, fits })
        .collect();
    // The best cluster of a kind stands for it.
    kinds.sort_by_key(|kind| kind.fits.first().copied());
    for (at, (_, limits)) in fields.iter().enumerate() {
        let all: BTreeSet<&str> = kinds
            .iter()
            .flat_map(|kind| kind.values[at].iter().copied())
            .collect();
        if all.len() < limits.min {
            return None;
        }
    }
    let mut search = Search {
        limits: fields.iter().map(|(_, limits)| *limits).collect(),
        by_cluster,
        taken: vec![0; kinds.len()],
        closed: vec![false; kinds.len()],
        looks: 0,
        kinds: &kinds,
    };
    if !search.extend() {
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
    /// Takes more clusters until every minimum is kept; no maximum is ever broken.
    fn extend(&mut self) -> bool {
        let count: usize = self.taken.iter().sum();
        let chosen: Vec<BTreeSet<&'a str>> = (0..self.limits.len()).map(|field| self.values(field)).collect();
        let open = (0..self.limits.len()).find(|field| chosen[*field].len() < self.limits[*field].min);
        if open.is_none() && count >= self.by_cluster.min {
            return true;
        }
        if count >= self.by_cluster.max {
            return false;
        }
        let adds = |kind: &Alike<'_>, field: usize| {
            let new = kind.values[field]
                .iter()
                .filter(|value| !chosen[field].contains(*value));
            new.count()
        };
        // Those that help most of the fields come first.
        let mut order: Vec<(usize, usize)> = Vec::new();
        for (index, kind) in self.kinds.iter().enumerate() {
            self.looks += 1;
            let keeps = |field: usize| chosen[field].len() + adds(kind, field) <= self.limits[field].max;
            let helps = open.is_none_or(|field| adds(kind, field) > 0);
            let is_there = self.taken[index] < kind.fits.len();
            if is_there && !self.closed[index] && helps && (0..chosen.len()).all(keeps) {
                let fields = (0..chosen.len())
                    .filter(|field| chosen[*field].len() < self.limits[*field].min && adds(kind, *field) > 0);
                order.push((fields.count(), index));
            }
        }
        order.sort_by_key(|(helped, index)| (std::cmp::Reverse(*helped), *index));
        let mut tried = Vec::new();
        let mut found = false;
        for (_, index) in order {
            if self.looks > MOST_LOOKS {
                break;
            }
            self.taken[index] += 1;
            if self.extend() {
                found = true;
                break;
            }
            self.taken[index] -= 1;
            // Nothing with one more of this kind does, so the others are tried without.
            self.closed[index] = true;
            tried.push(index);
        }
        for index in tried {
            self.closed[index] = false;
        }
        found
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
