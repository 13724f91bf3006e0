//! Which of the clusters that fit are chosen.
//!
//! Without spread constraints all are, and so they are for static weights, which say themselves who gets what. Else the
//! groups are chosen first (provider, then region, then zone), one cluster of each chosen group is taken, and the rest is
//! filled up with the best that are left; where the best of each field do not go together, or have no room together, any that do. What
//! always holds: a choice keeps every minimum and every maximum, or there is none; and it does not depend on the order of anything but
//! names.

mod alike;
mod exact;
mod groups;
mod overflow;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use lockgate_api::placement::SpreadConstraint;
use lockgate_api::{Cluster, Placement};

use self::groups::{Limits, narrow};
use super::divide::ignores_spread;
use super::filter::Fit;
use crate::selector::affinity::Field;

/// The clusters that are chosen, by name, and those that are left.
type Choice<'a> = (Vec<Fit<'a>>, Vec<Fit<'a>>);

/// What the choice is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    /// The replicas.
    pub(super) replicas: i64,
    /// Whether the clusters must have room for them together.
    pub(super) dynamic: bool,
    /// Whether what is there already counts for less: a rebalance was asked for.
    pub(super) fresh: bool,
}

/// The outermost first: what is chosen among providers limits what can be chosen among regions.
const NESTED: [Field; 3] = [Field::Provider, Field::Region, Field::Zone];

/// Why there is no choice.
#[derive(Debug)]
pub(super) struct Short {
    /// For the condition.
    pub(super) message: String,
    /// Whether room is what is missing, and not clusters or groups of them.
    pub(super) of_room: bool,
}

impl Short {
    fn of_groups(message: String) -> Self {
        Self {
            message,
            of_room: false,
        }
    }
}

/// The groups of a cluster that a placement spreads over, for people; empty if it spreads over clusters alone.
pub(super) fn groups_of(cluster: &Cluster, placement: &Placement) -> String {
    let fields = NESTED.into_iter().filter(|field| {
        let mut constraints = placement.spread_constraints.iter();
        constraints.any(|c| Field::parse(&c.spread_by_field) == Some(*field))
    });
    let told = fields.map(|field| format!("{} {}", field.name(), field.of(cluster).join(" and ")));
    told.collect::<Vec<_>>().join(", ")
}

/// Chooses clusters, or says why that is not possible.
pub(super) fn choose<'a>(
    mut fits: Vec<Fit<'a>>,
    placement: &Placement,
    want: Want,
) -> Result<Choice<'a>, Short> {
    let constraints = &placement.spread_constraints;
    if constraints.is_empty() || ignores_spread(placement) {
        return Ok((fits, Vec::new()));
    }
    let by_label = constraints.iter().find(|c| !c.spread_by_label.is_empty());
    if let Some(constraint) = by_label {
        let label = &constraint.spread_by_label;
        return Err(Short::of_groups(format!(
            "spreading by the label {label} is not supported: use spreadByField"
        )));
    }
    let is_cluster = |c: &&SpreadConstraint| matches!(c.spread_by_field.as_str(), "" | "cluster");
    let by_cluster = constraints
        .iter()
        .find(is_cluster)
        .map_or(Limits::NONE, Limits::of);
    if let Some(constraint) = constraints.iter().find(|c| Limits::of(c).min > Limits::of(c).max) {
        let limits = Limits::of(constraint);
        return Err(Short::of_groups(format!(
            "a spread constraint asks for at least {} and at most {} groups: raise maxGroups",
            limits.min, limits.max
        )));
    }
    if fits.len() < by_cluster.min {
        return Err(Short::of_groups(format!(
            "the number of feasible clusters is less than spreadConstraint.MinGroups: {} wanted, {} fit",
            by_cluster.min,
            fits.len()
        )));
    }
    fits.sort_by_key(rank);
    let fields: Vec<(Field, Limits)> = NESTED
        .into_iter()
        .filter_map(|field| {
            let constraint = constraints
                .iter()
                .find(|c| Field::parse(&c.spread_by_field) == Some(field))?;
            Some((field, Limits::of(constraint)))
        })
        .collect();
    let mut choice = if fields.is_empty() {
        let (chosen, spare) = fits.split_at(by_cluster.max.min(fits.len()));
        Chosen {
            chosen: chosen.to_vec(),
            spare: spare.to_vec(),
            ..Chosen::default()
        }
    } else {
        one_after_the_other(fits.clone(), &fields, by_cluster, want)
            .or_else(|why| at_all(&fits, &fields, by_cluster, None).ok_or(why))
            .map_err(Short::of_groups)?
    };
    if want.dynamic {
        make_room(&mut choice, want.replicas);
        if room(&choice.chosen) < want.replicas {
            let most = by_cluster.max.min(fits.len());
            if fields.is_empty() {
                return Err(Short {
                    message: format!(
                        "no enough resource when selecting {} clusters: they have room for {} of {} replicas",
                        choice.chosen.len(),
                        room(&choice.chosen),
                        want.replicas
                    ),
                    of_room: true,
                });
            } else if most_room(&fits, most) >= want.replicas
                && let Some(other) = at_all(&fits, &fields, by_cluster, Some(want.replicas))
            {
                choice = other;
            }
            // Else those who give out the replicas say what is missing.
        }
    }
    let Chosen {
        mut chosen,
        spare,
        mut left,
        ..
    } = choice;
    left.extend(spare);
    chosen.sort_by_key(|fit| &fit.cluster.metadata.name);
    Ok((chosen, left))
}

/// The place of a cluster among those that fit, the best first. Those that have the template already come first, so that nothing
/// moves without need.
fn rank<'a>(fit: &Fit<'a>) -> (usize, bool, Reverse<i64>, &'a str) {
    let name = fit.cluster.metadata.name.as_str();
    (fit.tier, !fit.present, Reverse(fit.capacity()), name)
}

/// The groups that were chosen, by field.
type Values = Vec<(Field, Vec<String>)>;

/// A choice, before room is looked at.
#[derive(Default)]
struct Chosen<'a> {
    chosen: Vec<Fit<'a>>,
    /// Clusters of the same groups, which might be taken in their place.
    spare: Vec<Fit<'a>>,
    /// Those of other groups.
    left: Vec<Fit<'a>>,
    values: Values,
}

impl<'a> Chosen<'a> {
    /// Takes as many of the spare ones as there may be, the best first.
    fn fill(mut self, by_cluster: Limits) -> Self {
        let more = by_cluster.max.saturating_sub(self.chosen.len());
        let rest = self.spare.split_off(more.min(self.spare.len()));
        self.chosen.append(&mut self.spare);
        self.spare = rest;
        self
    }
}

/// The best groups of one field after the other; then one cluster of each chosen group, and then the best that are left.
fn one_after_the_other<'a>(
    fits: Vec<Fit<'a>>,
    fields: &[(Field, Limits)],
    by_cluster: Limits,
    want: Want,
) -> Result<Chosen<'a>, String> {
    let mut kept = fits;
    let mut left = Vec::new();
    let mut values: Values = Vec::new();
    for (index, (field, limits)) in fields.iter().enumerate() {
        let earlier: Vec<(Field, usize)> = values.iter().map(|(field, all)| (*field, all.len())).collect();
        let later = &fields[index + 1..];
        let narrowed = narrow(kept, (*field, *limits), by_cluster, &earlier, later, want)?;
        kept = narrowed.kept;
        left.extend(narrowed.left);
        values.push((*field, narrowed.values));
    }
    let mut chosen: Vec<Fit<'a>> = Vec::new();
    for (field, values) in &values {
        for value in values {
            let has = |fit: &Fit<'_>| field.of(fit.cluster).contains(value);
            if chosen.iter().any(has) {
                continue;
            }
            // A later field may have left none of a group; then the groups cannot all be had.
            match kept.iter().position(has) {
                Some(at) => chosen.push(kept.remove(at)),
                None => return Err(cannot_be_met(fields, by_cluster)),
            }
        }
    }
    if chosen.len() > by_cluster.max || chosen.len() + kept.len() < by_cluster.min {
        return Err(cannot_be_met(fields, by_cluster));
    }
    let chosen = Chosen {
        chosen,
        spare: kept,
        left,
        values,
    };
    Ok(chosen.fill(by_cluster))
}

/// Any clusters that keep all limits together, and have so much room if that is asked for; and then the best that are left of their
/// groups. What is overflowed to is looked at where there are none without.
fn at_all<'a>(
    fits: &[Fit<'a>],
    fields: &[(Field, Limits)],
    by_cluster: Limits,
    room: Option<i64>,
) -> Option<Chosen<'a>> {
    let ends_a_tier = |end: &usize| {
        let tier = |index: usize| fits.get(index).map(|fit| fit.tier);
        tier(*end) != tier(end - 1)
    };
    let ends: Vec<usize> = (1..=fits.len()).filter(ends_a_tier).collect();
    // None takes the time of the others, of which the last may be the only one that can find anything.
    let share = ends.len();
    let found: BTreeSet<usize> = (ends.into_iter())
        .find_map(|end| exact::search(&fits[..end], fields, by_cluster, room, share))?
        .into_iter()
        .collect();
    let mut choice = Chosen {
        chosen: found.iter().map(|index| fits[*index]).collect(),
        ..Chosen::default()
    };
    for (field, _) in fields {
        let values = choice.chosen.iter().flat_map(|fit| field.of(fit.cluster));
        let values: BTreeSet<&String> = values.collect();
        choice
            .values
            .push((*field, values.into_iter().cloned().collect()));
    }
    for (index, fit) in fits.iter().copied().enumerate() {
        let is_inside = |(field, values): &(Field, Vec<String>)| {
            let mut own = field.of(fit.cluster).iter();
            own.all(|value| values.contains(value))
        };
        if found.contains(&index) {
            continue;
        } else if choice.values.iter().all(is_inside) {
            choice.spare.push(fit);
        } else {
            choice.left.push(fit);
        }
    }
    Some(choice.fill(by_cluster))
}

fn room(fits: &[Fit<'_>]) -> i64 {
    fits.iter().map(Fit::capacity).fold(0, i64::saturating_add)
}

/// The most room that so many clusters have together.
fn most_room(fits: &[Fit<'_>], count: usize) -> i64 {
    let mut rooms: Vec<i64> = fits.iter().map(Fit::capacity).collect();
    rooms.sort_unstable_by_key(|room| Reverse(*room));
    rooms.into_iter().take(count).fold(0, i64::saturating_add)
}

/// If the chosen clusters have not enough room together, the poorest make way for richer ones; for those of a later tier where that
/// is not enough. Every group that was chosen keeps a cluster.
fn make_room(choice: &mut Chosen<'_>, replicas: i64) {
    let tiers: BTreeSet<usize> = choice.spare.iter().map(|fit| fit.tier).collect();
    for tier in tiers {
        make_room_up_to(choice, replicas, tier);
    }
}

/// Makes room with clusters of this tier and those before it.
fn make_room_up_to(choice: &mut Chosen<'_>, replicas: i64, tier: usize) {
    let Chosen {
        chosen,
        spare,
        values,
        ..
    } = choice;
    // The last first, and before them those that have nothing to give.
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|at| (chosen[*at].capacity() > 0, Reverse(rank(&chosen[*at]))));
    for at in order {
        if room(chosen) >= replicas || spare.is_empty() {
            return;
        }
        let has = |fit: &Fit<'_>, field: &Field, value: &String| field.of(fit.cluster).contains(value);
        // The groups of which this is the only one.
        let alone: Vec<(&Field, &String)> = values
            .iter()
            .flat_map(|(field, values)| values.iter().map(move |value| (field, value)))
            .filter(|(field, value)| {
                if !has(&chosen[at], field, value) {
                    return false;
                }
                let mut others = chosen.iter().enumerate().filter(|(other, _)| *other != at);
                !others.any(|(_, fit)| has(fit, field, value))
            })
            .collect();
        let keeps = |fit: &Fit<'_>| alone.iter().all(|(field, value)| has(fit, field, value));
        let may_come = spare.iter_mut().filter(|fit| fit.tier <= tier && keeps(fit));
        let richest = may_come.max_by(|a, b| {
            let by_name = b.cluster.metadata.name.cmp(&a.cluster.metadata.name);
            a.capacity().cmp(&b.capacity()).then(by_name)
        });
        if let Some(richest) = richest
            && richest.capacity() > chosen[at].capacity()
        {
            std::mem::swap(richest, &mut chosen[at]);
        }
    }
}

fn cannot_be_met(fields: &[(Field, Limits)], by_cluster: Limits) -> String {
    let mut parts: Vec<String> = fields
        .iter()
        .map(|(field, limits)| format!("{}: {limits}", field.name()))
        .collect();
    parts.push(format!("cluster: {by_cluster}"));
    format!(
        "the spread constraints cannot be met together ({}): relax one of them",
        parts.join(", ")
    )
}
