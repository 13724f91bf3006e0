//! Which of the clusters that fit are chosen.
//!
//! Without spread constraints all are, and so they are for static weights, which say themselves who gets what. Else the
//! groups are chosen first (provider, then region, then zone), one cluster of each chosen group is taken, and the rest is
//! filled up with the best that are left. What always holds: a choice keeps every minimum and every maximum, or there is
//! none; and it does not depend on the order of anything but names.

mod groups;

use std::cmp::Reverse;

use lockgate_api::Placement;
use lockgate_api::placement::SpreadConstraint;

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

/// Chooses clusters, or says why that is not possible.
pub(super) fn choose<'a>(
    mut fits: Vec<Fit<'a>>,
    placement: &Placement,
    want: Want,
) -> Result<Choice<'a>, String> {
    let constraints = &placement.spread_constraints;
    if constraints.is_empty() || ignores_spread(placement) {
        return Ok((fits, Vec::new()));
    }
    let by_label = constraints.iter().find(|c| !c.spread_by_label.is_empty());
    if let Some(constraint) = by_label {
        let label = &constraint.spread_by_label;
        return Err(format!(
            "spreading by the label {label} is not supported: use spreadByField"
        ));
    }
    let is_cluster = |c: &&SpreadConstraint| matches!(c.spread_by_field.as_str(), "" | "cluster");
    let by_cluster = constraints
        .iter()
        .find(is_cluster)
        .map_or(Limits::NONE, Limits::of);
    if let Some(constraint) = constraints.iter().find(|c| Limits::of(c).min > Limits::of(c).max) {
        let limits = Limits::of(constraint);
        return Err(format!(
            "a spread constraint asks for at least {} and at most {} groups: raise maxGroups",
            limits.min, limits.max
        ));
    }
    if fits.len() < by_cluster.min {
        return Err(format!(
            "the number of feasible clusters is less than spreadConstraint.MinGroups: {} wanted, {} fit",
            by_cluster.min,
            fits.len()
        ));
    }
    // Those that have the template already come first, so that nothing moves without need.
    fits.sort_by_key(|fit| {
        (
            fit.tier,
            !fit.present,
            Reverse(fit.capacity()),
            &fit.cluster.metadata.name,
        )
    });
    let fields: Vec<(Field, Limits)> = NESTED
        .into_iter()
        .filter_map(|field| {
            let constraint = constraints
                .iter()
                .find(|c| Field::parse(&c.spread_by_field) == Some(field))?;
            Some((field, Limits::of(constraint)))
        })
        .collect();
    let (mut chosen, mut left) = if fields.is_empty() {
        let limit = by_cluster.max.min(fits.len());
        let left = fits.split_off(limit);
        (fits, left)
    } else {
        by_groups(fits, &fields, by_cluster, want)?
    };
    if want.dynamic && fields.is_empty() {
        make_room(&mut chosen, &mut left, want.replicas)?;
    }
    chosen.sort_by_key(|fit| &fit.cluster.metadata.name);
    Ok((chosen, left))
}

/// One cluster of each chosen group, and then the best that are left.
fn by_groups<'a>(
    fits: Vec<Fit<'a>>,
    fields: &[(Field, Limits)],
    by_cluster: Limits,
    want: Want,
) -> Result<Choice<'a>, String> {
    let mut kept = fits;
    let mut left = Vec::new();
    let mut wanted: Vec<(Field, Vec<String>)> = Vec::new();
    for (index, (field, limits)) in fields.iter().enumerate() {
        let earlier: Vec<(Field, usize)> = wanted.iter().map(|(field, all)| (*field, all.len())).collect();
        let later = &fields[index + 1..];
        let narrowed = narrow(kept, (*field, *limits), by_cluster, &earlier, later, want)?;
        kept = narrowed.kept;
        left.extend(narrowed.left);
        wanted.push((*field, narrowed.values));
    }
    let mut chosen: Vec<Fit<'a>> = Vec::new();
    for (field, values) in &wanted {
        for value in values {
            let has = |fit: &Fit<'_>| field.of(fit.cluster).contains(&value.as_str());
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
    if chosen.len() > by_cluster.max {
        return Err(cannot_be_met(fields, by_cluster));
    }
    let more = (by_cluster.max - chosen.len()).min(kept.len());
    left.extend(kept.split_off(more));
    chosen.extend(kept);
    if chosen.len() < by_cluster.min {
        return Err(cannot_be_met(fields, by_cluster));
    }
    Ok((chosen, left))
}

/// If the chosen clusters have not enough room together, the poorest make way for richer ones, the last first.
fn make_room<'a>(chosen: &mut [Fit<'a>], left: &mut [Fit<'a>], replicas: i64) -> Result<(), String> {
    let room = |fits: &[Fit<'_>]| fits.iter().map(Fit::capacity).fold(0, i64::saturating_add);
    for at in (0..chosen.len()).rev() {
        if room(chosen) >= replicas {
            return Ok(());
        }
        let richest = left.iter_mut().max_by(|a, b| {
            let by_name = b.cluster.metadata.name.cmp(&a.cluster.metadata.name);
            a.capacity().cmp(&b.capacity()).then(by_name)
        });
        if let Some(richest) = richest
            && richest.capacity() > chosen[at].capacity()
        {
            std::mem::swap(richest, &mut chosen[at]);
        }
    }
    if room(chosen) >= replicas {
        return Ok(());
    }
    Err(format!(
        "no enough resource when selecting {} clusters: they have room for {} of {replicas} replicas",
        chosen.len(),
        room(chosen)
    ))
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
