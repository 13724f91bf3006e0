//! Which of the clusters that fit are chosen.
//!
//! Without spread constraints all are, and so they are for static weights, which say themselves who gets what.

use lockgate_api::Placement;

use super::divide::ignores_spread;
use super::filter::Fit;

/// The clusters that are chosen, by name, and those that are left.
type Choice<'a> = (Vec<Fit<'a>>, Vec<Fit<'a>>);

/// Chooses clusters, or says why that is not possible.
pub(super) fn choose<'a>(mut fits: Vec<Fit<'a>>, placement: &Placement) -> Result<Choice<'a>, String> {
    let constraints = &placement.spread_constraints;
    if constraints.is_empty() || ignores_spread(placement) {
        return Ok((fits, Vec::new()));
    }
    if let Some(constraint) = constraints
        .iter()
        .find(|constraint| !constraint.spread_by_label.is_empty())
    {
        let label = &constraint.spread_by_label;
        return Err(format!(
            "spreading by the label {label} is not supported: use spreadByField"
        ));
    }
    if constraints
        .iter()
        .any(|constraint| constraint.spread_by_field == "region")
    {
        return Err("spreading by region is not supported yet: spread by cluster alone".to_owned());
    }
    let by_cluster = constraints
        .iter()
        .find(|constraint| matches!(constraint.spread_by_field.as_str(), "" | "cluster"))
        .ok_or("just support cluster and region spread constraint")?;
    let count = |groups: Option<i64>| usize::try_from(groups.unwrap_or(0)).unwrap_or(0);
    if fits.len() < count(by_cluster.min_groups) {
        return Err("the number of feasible clusters is less than spreadConstraint.MinGroups".to_owned());
    }
    // No maximum means no limit. Those that have the template already come first, so that nothing moves without need.
    let limit = match count(by_cluster.max_groups) {
        0 => fits.len(),
        limit => limit.min(fits.len()),
    };
    fits.sort_by_key(|fit| (fit.tier, !fit.present, &fit.cluster.metadata.name));
    let left = fits.split_off(limit);
    fits.sort_by_key(|fit| &fit.cluster.metadata.name);
    Ok((fits, left))
}
