//! What is said of clusters that no group which was tried includes, where a placement has several groups: they may be in one
//! that was not tried, and then it would not help to add them to another.

use lockgate_api::{Cluster, Placement};

use super::filter::{self, Group};
use super::{PlaceInput, Rejection, RejectionReason, Rejections};

/// How many groups are told of one cluster.
const TOLD: usize = 4;

/// Says it. The groups from the first number on were tried, up to the second, which was taken; to the last, if none was.
pub(super) fn tell(
    input: &PlaceInput<'_>,
    placement: &Placement,
    groups: &[Group<'_>],
    (start, taken): (usize, Option<usize>),
    rejections: &mut Rejections,
) {
    if groups.len() < 2 {
        return;
    }
    let (skipped, _) = groups.split_at(start);
    let later = taken.map_or(&[][..], |taken| &groups[taken + 1..]);
    let present = filter::Present::new(input.spec);
    // Where other workloads are matters only to those that are looked at.
    let mut neighbours = None;
    let all = input.clusters.iter().zip(&mut rejections.0).enumerate();
    for (index, (cluster, rejection)) in all {
        let Some(rejection) = rejection else { continue };
        if rejection.reason != RejectionReason::ClusterAffinity {
            continue;
        }
        if let Some(group) = skipped.iter().find(|group| group.includes(cluster)) {
            let neighbours =
                neighbours.get_or_insert_with(|| input.neighbours.map(|all| all.reachable(input)));
            let asked = PlaceInput {
                neighbours: neighbours.as_ref(),
                ..*input
            };
            let fits = filter::check(&asked, placement, group, &present, (index, cluster));
            before(rejection, group, fits.err());
        } else if let Some(group) = later.iter().find(|group| group.includes(cluster)) {
            rejection.message = format!("it is in the group {}, and one before that fits", name(group));
            rejection.help = "put its group first, and ask for a rebalance with a WorkloadRebalancer";
        } else {
            (rejection.message, rejection.help) = in_none(groups, cluster);
        }
    }
}

/// A cluster of a group that comes before the one in use, and what else keeps it out.
fn before(rejection: &mut Rejection, group: &Group<'_>, refusal: Option<filter::Refusal>) {
    let why = format!(
        "it is in the group {}, which comes before the one in use",
        name(group)
    );
    (rejection.message, rejection.help) = match refusal {
        None => (why, "ask for a rebalance with a WorkloadRebalancer"),
        Some(refusal) => (
            format!("{why}, and {}", refusal.message),
            "mend that, and ask for a rebalance with a WorkloadRebalancer",
        ),
    };
}

/// A cluster that is in no group: groups that lack it for the same reason are told together.
fn in_none(groups: &[Group<'_>], cluster: &Cluster) -> (String, &'static str) {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    let mut first_help = "";
    for (at, group) in groups.iter().take(TOLD).enumerate() {
        let (why, help) = group.lacks(cluster);
        // Who is in any of the groups is placed, so that what helps with the first is enough.
        if at == 0 {
            first_help = help;
        }
        match told.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name(group)),
            None => told.push((why, vec![name(group)])),
        }
    }
    let told: Vec<String> = told
        .into_iter()
        .map(|(why, names)| format!("{}: {why}", names.join(", ")))
        .collect();
    let more = match groups.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message = format!(
        "no group of the placement includes it ({}{more})",
        told.join(", and ")
    );
    (message, first_help)
}

fn name(group: &Group<'_>) -> String {
    format!("{:?}", group.name.unwrap_or_default())
}
