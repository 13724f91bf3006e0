//! A decision in words, for conditions and events: what failed, and for every cluster why, and what would help. Clusters that
//! fail in the same way are told together, so that a thousand of them fit into a sentence.

use std::collections::BTreeSet;

use super::{Placed, Rejection, Verdict};

/// How many clusters of one reason are named.
const NAMED: usize = 8;
/// How many reasons are told.
const REASONS: usize = 12;

const BETWEEN_NAMES: &str = ", ";
const AFTER_NAMES: &str = ": ";
const BETWEEN_REASONS: &str = "; ";
const AND: &str = " and ";
const MORE: &str = " more";

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
    Some(format!("{message} ({})", told.join(BETWEEN_REASONS)))
}

fn tell((rejection, names): &(&Rejection, Vec<&str>)) -> String {
    let mut list = names[..names.len().min(NAMED)].join(BETWEEN_NAMES);
    if names.len() > NAMED {
        list.push_str(&format!("{AND}{}{MORE}", names.len() - NAMED));
    }
    let Rejection { message, help, .. } = rejection;
    if help.is_empty() {
        format!("{list}{AFTER_NAMES}{message}")
    } else {
        format!("{list}{AFTER_NAMES}{message} - {help}")
    }
}

/// Whether an explanation says something else than one before it. How many replicas there is room for changes with every pod
/// that comes or goes, and is no news; which clusters fail, and what, is.
pub fn is_news(before: &str, now: &str) -> bool {
    if before == now {
        return false;
    }
    let cut = is_cut(before) || is_cut(now);
    gist(before, cut) != gist(now, cut)
}

/// Whether it leaves clusters out, so that those which it names are not all.
fn is_cut(text: &str) -> bool {
    text.contains(&format!("{MORE}{AFTER_NAMES}"))
}

/// What an explanation says of which cluster, without numbers; of none in particular where some are left out.
fn gist(text: &str, cut: bool) -> BTreeSet<(String, String)> {
    let (message, reasons) = text.split_once(" (").unwrap_or((text, ""));
    let mut gist = BTreeSet::from([(String::new(), words(message))]);
    for reason in reasons.split(BETWEEN_REASONS).filter(|reason| !reason.is_empty()) {
        let (names, why) = reason.split_once(AFTER_NAMES).unwrap_or(("", reason));
        let why = words(why.trim_end_matches(')'));
        if cut {
            gist.insert((String::new(), why));
        } else {
            let names = names.split(BETWEEN_NAMES);
            gist.extend(names.map(|name| (name.to_owned(), why.clone())));
        }
    }
    gist
}

/// The words of a text that stay the same when a number changes.
fn words(text: &str) -> String {
    let number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '/');
    let words = text.split_whitespace().filter(|word| !number(word));
    let words = words.filter(|word| !matches!(*word, "is" | "are"));
    let words: Vec<&str> = words
        .map(|word| match word.strip_prefix("replicas") {
            Some(_) => "replica",
            None => word.trim_end_matches(','),
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_alone_are_no_news() {
        let before = "Clusters available replicas 48 are not enough to schedule: 60 replicas are to be placed. \
            (m1, m2, m3: it has room for 16 replicas, and then runs out of cpu - free resources there)";
        let room = |m1: &str, others: &str| {
            format!(
                "Clusters available replicas 47 are not enough to schedule: 60 replicas are to be placed. \
                 (m2, m3: it has room for {others}, and then runs out of cpu - free resources there; \
                 m1: it has room for {m1}, and then runs out of cpu - free resources there)"
            )
        };
        assert!(!is_news(before, before));
        assert!(!is_news(before, &room("15 replicas", "16 replicas")));
        assert!(!is_news(
            &room("1 replica", "0 replicas"),
            &room("2 replicas", "1 replica")
        ));
        for (old, new) in [
            ("cpu", "pods"),
            ("m1", "m4"),
            (", m3", ""),
            ("not enough", "too few"),
        ] {
            assert!(is_news(before, &before.replace(old, new)), "{old}");
        }
        assert!(is_news(
            "0/3 clusters are available: 3 cluster(s) had untolerated taint {a:NoSchedule}.",
            before
        ));
    }

    #[test]
    fn of_many_clusters_the_reasons_count() {
        let many = |first: usize| {
            let names: Vec<String> = (first..first + NAMED).map(|at| format!("m{at}")).collect();
            format!(
                "no. ({} and 12 more: it has room for 3 replicas)",
                names.join(BETWEEN_NAMES)
            )
        };
        assert!(!is_news(&many(1), &many(2)));
        assert!(is_news(&many(1), &many(1).replace("room", "a taint")));
    }
}
