//! What is said of many clusters, in words that fit together into one object: who answers decides how long an answer is, and a
//! store takes objects of one and a half MiB.

use std::collections::BTreeMap;

use lockgate_api::binding::AggregatedStatusItem;
use lockgate_engine::observe::NOT_YET;

/// The longest text that is kept of why one cluster does not have what it should, in bytes.
pub(super) const MESSAGE: usize = 1024;
/// How long what is said of all clusters may be together in a binding. A text may take six times as much as JSON.
const TOGETHER: usize = 64 * 1024;
/// How many clusters a message names.
const NAMES: usize = 5;

/// The beginning of a text.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// How long what is said of each of so many clusters may be.
pub(super) fn limit_of_each(clusters: usize) -> usize {
    MESSAGE.min(TOGETHER / clusters.max(1))
}

/// What is wrong with some clusters, each named.
pub(super) fn of_clusters(failures: &BTreeMap<String, String>) -> Option<String> {
    let named = failures.iter().take(NAMES);
    let named: Vec<String> = named.map(|(cluster, why)| format!("{cluster}: {why}")).collect();
    let more = match failures.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!failures.is_empty()).then(|| format!("{}{more}", named.join("; ")))
}

/// Cuts what a binding says of its clusters until it can be stored. The Works say the whole. That something is on its way is said
/// in one short sentence, which is told from failures by its words: it stays as it is.
pub(super) fn fit(items: &mut [AggregatedStatusItem]) {
    let own_words = |item: &&mut AggregatedStatusItem| {
        let said = &item.applied_message;
        !said.is_empty() && said != NOT_YET
    };
    let mut told: Vec<_> = items.iter_mut().filter(own_words).collect();
    let together: usize = told.iter().map(|item| item.applied_message.len()).sum();
    if together <= TOGETHER {
        return;
    }
    let each = limit_of_each(told.len());
    for item in &mut told {
        let length = cut(&item.applied_message, each).len();
        item.applied_message.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("über", 1), "");
        assert_eq!(cut("über", 2), "ü");
        assert_eq!(cut("über", 9), "über");
    }

    #[test]
    fn some_clusters_are_named_and_the_others_counted() {
        let failures = |count: usize| (0..count).map(|n| (format!("m{n}"), "no".to_owned())).collect();
        assert_eq!(of_clusters(&failures(0)), None);
        assert_eq!(of_clusters(&failures(2)).as_deref(), Some("m0: no; m1: no"));
        let all = of_clusters(&failures(9)).unwrap();
        assert_eq!(all, "m0: no; m1: no; m2: no; m3: no; m4: no; and 4 more");
    }

    #[test]
    fn what_is_said_of_all_clusters_fits() {
        let item = |length: usize| AggregatedStatusItem {
            applied_message: "x".repeat(length),
            ..AggregatedStatusItem::default()
        };
        let mut few: Vec<_> = (0..64).map(|_| item(MESSAGE)).collect();
        let before = few.clone();
        fit(&mut few);
        assert_eq!(few, before);
        let mut many: Vec<_> = (0..5000).map(|n| item(n % 2 * MESSAGE)).collect();
        fit(&mut many);
        let lengths = many.iter().map(|item| item.applied_message.len());
        assert!(lengths.clone().sum::<usize>() <= TOGETHER);
        assert_eq!(lengths.filter(|length| *length > 0).count(), 2500);
    }

    #[test]
    fn what_is_on_its_way_is_not_cut_until_it_looks_like_a_failure() {
        let item = |message: &str| AggregatedStatusItem {
            applied_message: message.to_owned(),
            ..AggregatedStatusItem::default()
        };
        let mut items = vec![item(NOT_YET); 5000];
        fit(&mut items);
        assert!(items.iter().all(|item| item.applied_message == NOT_YET));
        items.extend(vec![item(&"x".repeat(MESSAGE)); 100]);
        fit(&mut items);
        assert!(items[..5000].iter().all(|item| item.applied_message == NOT_YET));
        assert!(
            items[5000..]
                .iter()
                .all(|item| item.applied_message.len() == TOGETHER / 100)
        );
    }
}
