//! How long statuses may be: a Work carries one beside its manifest, a binding those of all its clusters, and a store takes
//! objects of one and a half MiB.

use lockgate_api::{Binding, BindingStatus};
use machinery_value::encode::encoded_len;
use serde_json::Value;

use super::OBSERVED;

/// The longest status that is kept of a member's object, in bytes as JSON.
pub const STATUS_BYTES: usize = 512 * 1024;
/// How long the statuses of all clusters may be together in a binding.
const TOGETHER: usize = 1024 * 1024;
/// How long a binding may be with them. What a server notes beside it takes the rest.
const WHOLE: usize = 1280 * 1024;
/// How many clusters a message names.
const NAMES: usize = 5;

/// Leaves statuses out of what a binding says of its clusters until it can be stored, the longest first. Answers what is
/// missing, in words.
pub fn fit(binding: &Binding, status: &mut BindingStatus) -> Option<String> {
    let items = status.aggregated_status.iter_mut().enumerate();
    let mut found: Vec<(usize, usize, Value)> = items
        .filter_map(|(at, item)| {
            item.status
                .take()
                .map(|status| (encoded_len(&status), at, status))
        })
        .collect();
    let conditions = std::mem::take(&mut status.conditions);
    // What is said of this counts for nothing, or it would change what is to be said.
    let others: Vec<_> = conditions.iter().filter(|known| known.kind != OBSERVED).collect();
    let parts = [
        encoded_len(&binding.metadata),
        encoded_len(&binding.spec),
        encoded_len(status),
        encoded_len(&others),
    ];
    status.conditions = conditions;
    let rest: usize = parts.into_iter().sum();
    let limit = TOGETHER.min(WHOLE.saturating_sub(rest));
    let all: usize = found.iter().map(|(bytes, ..)| bytes).sum();
    found.sort_unstable_by_key(|(bytes, at, _)| (std::cmp::Reverse(*bytes), *at));
    let mut left = all;
    let mut without = Vec::new();
    for (bytes, at, value) in found {
        let item = &mut status.aggregated_status[at];
        if left <= limit {
            item.status = Some(value);
        } else {
            left -= bytes;
            without.push(item.cluster_name.clone());
        }
    }
    let (named, more) = without.split_at(without.len().min(NAMES));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!without.is_empty()).then(|| {
        format!(
            "the statuses of all clusters have {all} bytes together, of which a binding carries at most {limit}; in their \
             Works alone are those of {}{more}",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use lockgate_api::Condition;
    use lockgate_api::binding::AggregatedStatusItem;
    use serde_json::json;

    use super::*;

    /// What is left out of a binding with an annotation of this length, and that it is said again once it is said.
    fn fit(items: &mut Vec<AggregatedStatusItem>, annotation: usize) -> Option<String> {
        let mut binding = Binding::default();
        let text = "x".repeat(annotation);
        binding.metadata.annotations.insert("a".to_owned(), text);
        let mut status = BindingStatus {
            aggregated_status: std::mem::take(items),
            ..BindingStatus::default()
        };
        let mut again = status.clone();
        let said = super::fit(&binding, &mut status);
        again.conditions.extend(said.clone().map(|message| Condition {
            kind: OBSERVED.to_owned(),
            message,
            ..Condition::default()
        }));
        assert_eq!(super::fit(&binding, &mut again), said);
        assert_eq!(again.aggregated_status, status.aggregated_status);
        *items = status.aggregated_status;
        said
    }

    #[test]
    fn a_binding_carries_what_it_can() {
        let item = |cluster: &str, length: usize| AggregatedStatusItem {
            cluster_name: cluster.to_owned(),
            status: Some(json!("x".repeat(length - 2))),
            ..AggregatedStatusItem::default()
        };
        let kept = |items: &[AggregatedStatusItem]| -> Vec<bool> {
            items.iter().map(|item| item.status.is_some()).collect()
        };
        let mut items = vec![item("a", TOGETHER / 2), item("b", TOGETHER / 2)];
        assert_eq!(fit(&mut items, 0), None);
        assert_eq!(kept(&items), [true, true]);
        items.push(item("c", 3));
        items.push(AggregatedStatusItem::default());
        assert_eq!(
            fit(&mut items, 0).unwrap(),
            "the statuses of all clusters have 1048579 bytes together, of which a binding carries at most 1048576; in their \
             Works alone are those of a"
        );
        assert_eq!(kept(&items), [false, true, true, false]);
        let mut many: Vec<_> = (0..30).map(|n| item(&format!("m{n:02}"), 100_000)).collect();
        let said = fit(&mut many, 0).unwrap();
        assert!(
            said.ends_with("those of m00, m01, m02, m03, m04 and 15 more"),
            "{said}"
        );
        assert_eq!(kept(&many).iter().filter(|kept| **kept).count(), 10);
    }

    #[test]
    fn what_else_a_binding_says_counts() {
        let items = || -> Vec<AggregatedStatusItem> {
            let item = |n: usize| AggregatedStatusItem {
                cluster_name: format!("m{n}"),
                status: Some(json!("x".repeat(TOGETHER / 4 - 2))),
                applied_message: "\n".repeat(n * 1024),
                ..AggregatedStatusItem::default()
            };
            (0..4).map(item).collect()
        };
        let left = |items: &[AggregatedStatusItem]| items.iter().filter(|item| item.status.is_some()).count();
        let mut few = items();
        assert_eq!(fit(&mut few, 0), None);
        // Whatever is written: as JSON each of these characters has two.
        let room = WHOLE - TOGETHER - 12 * 1024;
        for (annotation, kept) in [(room - 1024, 4), (room, 3), (TOGETHER, 0)] {
            let mut items = items();
            assert_eq!(fit(&mut items, annotation).is_none(), kept == 4, "{annotation}");
            assert_eq!(left(&items), kept, "{annotation}");
        }
    }
}
