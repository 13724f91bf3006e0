//! A decision in words, for conditions and events: what failed, and for every cluster why, and what would help. Clusters that
//! fail in the same way are told together, so that a thousand of them fit into a sentence.

use super::{Placed, Rejection, Verdict};

/// How many clusters of one reason are named.
const NAMED: usize = 8;
/// How many reasons are told.
const REASONS: usize = 12;

/// What failed, with the reasons of every cluster; `None` if nothing did.
pub fn explain(placed: &Placed) -> Option<String> {
    let (Verdict::NoClusterFit { message, .. } | Verdict::Unschedulable { message }) = &placed.verdict else {
        return None;
    };
    let mut groups: Vec<(&Rejection, Vec<&str>)> = Vec::new();
    for rejection in &placed.rejected {
        let same = |(first, _): &&mut (&Rejection, Vec<&str>)| {
            first.message == rejection.message && first.help == rejection.help
        };
        match groups.iter_mut().find(same) {
            Some((_, names)) => names.push(&rejection.cluster),
            None => groups.push((rejection, vec![&rejection.cluster])),
        }
    }
    if groups.is_empty() {
        return Some(message.clone());
    }
    // What concerns most clusters comes first; the order of names decides between equals.
    groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let more = groups.len().saturating_sub(REASONS);
    let mut told: Vec<String> = groups.iter().take(REASONS).map(tell).collect();
    if more > 0 {
        told.push(format!("and {more} other reasons"));
    }
    Some(format!("{message} ({})", told.join("; ")))
}

fn tell((rejection, names): &(&Rejection, Vec<&str>)) -> String {
    let mut list = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED {
        list.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    let Rejection { message, help, .. } = rejection;
    if help.is_empty() {
        format!("{list}: {message}")
    } else {
        format!("{list}: {message} - {help}")
    }
}
