//! Kinds of clusters: those that are in the same groups are alike. What a set of groups has is told by its kinds, of which there
//! are few, without a look at every cluster.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::super::filter::Fit;
use crate::selector::affinity::Field;

/// How many groups of another field there must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    Exactly(usize),
    AtLeast(usize),
}

/// What ends the groups of a field in the line of a cluster; no group has this place.
const END: usize = usize::MAX;

/// The clusters that fit, by kinds.
pub(super) struct Kinds {
    all: Vec<Alike>,
    /// For each group the kinds of which it is the first group.
    by_group: Vec<Vec<usize>>,
    /// The kinds that are in no group.
    outside: Vec<usize>,
    /// For each other field how many groups it has, and how many there must be.
    others: Vec<(usize, Demand)>,
}

/// Clusters that are in the same groups.
struct Alike {
    /// Their groups, in order.
    own: Vec<usize>,
    /// Their groups of the other fields.
    others: Vec<Vec<usize>>,
    /// What they have room for, the richest first.
    rooms: Vec<i64>,
    /// The place of the richest among those that fit.
    richest: usize,
}

impl Kinds {
    /// The kinds of these clusters. `groups` are the groups of the field, and the sets that are asked about name them by
    /// their places.
    pub(super) fn of<'g>(
        fits: &[Fit<'_>],
        field: Field,
        groups: impl Iterator<Item = &'g str>,
        others: &[(Field, Demand)],
    ) -> Self {
        let groups: HashMap<&str, usize> = groups.enumerate().map(|(place, value)| (value, place)).collect();
        let mut values: Vec<HashMap<&str, usize>> = vec![HashMap::new(); others.len()];
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        // The groups of one cluster, one field after the other, with an end to each. It is kept for new kinds only.
        let mut line: Vec<usize> = Vec::new();
        let mut kinds = Self {
            all: Vec::new(),
            by_group: vec![Vec::new(); groups.len()],
            outside: Vec::new(),
            others: others.iter().map(|(_, demand)| (0, *demand)).collect(),
        };
        for (place, fit) in fits.iter().enumerate() {
            line.clear();
            let own = field.each(fit.cluster);
            put_part(&mut line, own.filter_map(|value| groups.get(value).copied()));
            for ((field, _), values) in others.iter().zip(&mut values) {
                let of_field = field.each(fit.cluster).map(|value| {
                    let next = values.len();
                    *values.entry(value).or_insert(next)
                });
                put_part(&mut line, of_field);
            }
            let at = match known.get(line.as_slice()) {
                Some(at) => *at,
                None => {
                    let at = kinds.add(&line, place);
                    known.insert(line.clone(), at);
                    at
                }
            };
            kinds.all[at].put(fit.capacity(), place);
        }
        for kind in &mut kinds.all {
            kind.rooms.sort_unstable_by_key(|room| Reverse(*room));
        }
        for ((size, _), values) in kinds.others.iter_mut().zip(&values) {
            *size = values.len();
        }
        kinds
    }

    fn add(&mut self, line: &[usize], place: usize) -> usize {
        let at = self.all.len();
        let mut parts = line.split(|group| *group == END).map(<[usize]>::to_vec);
        let own = parts.next().unwrap_or_default();
        match own.first() {
            Some(group) => self.by_group[*group].push(at),
            None => self.outside.push(at),
        }
        self.all.push(Alike {
            own,
            others: parts.take(self.others.len()).collect(),
            rooms: Vec::new(),
            richest: place,
        });
        at
    }

    /// The kinds that are in groups of a set, and in no others.
    fn inside<'k>(&'k self, set: &'k [usize]) -> impl Iterator<Item = &'k Alike> {
        let beginning = set.iter().flat_map(|group| &self.by_group[*group]);
        beginning
            .chain(&self.outside)
            .map(|kind| &self.all[*kind])
            .filter(|kind| kind.own.iter().all(|group| set.binary_search(group).is_ok()))
    }

    /// Whether the clusters of these groups are as many as there must be, in each of the groups, and in as many groups of the
    /// other fields as there must be. `set` is sorted.
    pub(super) fn suffice(&self, set: &[usize], clusters: usize) -> bool {
        let mut count = 0;
        let mut covered = Marks::new(set.len());
        let mut others: Vec<Marks> = self.others.iter().map(|(size, _)| Marks::new(*size)).collect();
        for kind in self.inside(set) {
            count += kind.rooms.len();
            covered.put(kind.own.iter().filter_map(|group| set.binary_search(group).ok()));
            for (marks, values) in others.iter_mut().zip(&kind.others) {
                marks.put(values.iter().copied());
            }
        }
        count >= clusters
            && covered.count == set.len()
            && (others.iter().zip(&self.others)).all(|(marks, (_, demand))| match demand {
                Demand::Exactly(wanted) => marks.count == *wanted,
                Demand::AtLeast(wanted) => marks.count >= *wanted,
            })
    }

    /// The room of so many clusters of these groups, one of each group at least: a cluster may be in several groups and has
    /// its room once. `set` is sorted.
    pub(super) fn room(&self, set: &[usize], clusters: usize) -> i64 {
        let mut kinds: Vec<&Alike> = self.inside(set).collect();
        kinds.sort_unstable_by_key(|kind| (Reverse(kind.rooms.first().copied()), kind.richest));
        let mut covered = Marks::new(set.len());
        let (mut room, mut count) = (0_i64, 0);
        let mut rest = Vec::new();
        for kind in kinds {
            let before = covered.count;
            covered.put(kind.own.iter().filter_map(|group| set.binary_search(group).ok()));
            let mut rooms = kind.rooms.iter().copied();
            if covered.count > before {
                room = room.saturating_add(rooms.next().unwrap_or(0));
                count += 1;
            }
            rest.extend(rooms.take(clusters));
        }
        room.saturating_add(richest(rest, clusters.saturating_sub(count)))
    }
}

/// Adds the groups of one field to the line of a cluster, in order.
fn put_part(line: &mut Vec<usize>, groups: impl Iterator<Item = usize>) {
    let begun = line.len();
    line.extend(groups);
    line[begun..].sort_unstable();
    line.push(END);
}

impl Alike {
    fn put(&mut self, room: i64, place: usize) {
        if self.rooms.first().is_some_and(|known| room > *known) {
            // The richest is kept at the front, and the rest is sorted at the end.
            self.rooms.insert(0, room);
            self.richest = place;
        } else {
            self.rooms.push(room);
        }
    }
}

/// What the richest of these have room for, as many as are asked for.
pub(super) fn richest(mut rooms: Vec<i64>, count: usize) -> i64 {
    if count < rooms.len() {
        rooms.select_nth_unstable_by_key(count, |room| Reverse(*room));
        rooms.truncate(count);
    }
    rooms.into_iter().fold(0, i64::saturating_add)
}

/// Which of some things were seen, and how many.
struct Marks {
    seen: Vec<bool>,
    count: usize,
}

impl Marks {
    fn new(size: usize) -> Self {
        Self {
            seen: vec![false; size],
            count: 0,
        }
    }

    fn put(&mut self, places: impl Iterator<Item = usize>) {
        for place in places {
            if !std::mem::replace(&mut self.seen[place], true) {
                self.count += 1;
            }
        }
    }
}
