//! How long statuses may be: a Work carries one beside its manifest, a binding those of all its clusters, and a store takes
//! objects of one and a half MiB.

use std::io;

use lockgate_api::binding::AggregatedStatusItem;
use serde_json::Value;

/// The longest status that is kept of a member's object, in bytes as JSON.
pub const STATUS_BYTES: usize = 512 * 1024;
/// How long the statuses of all clusters may be together in a binding.
const TOGETHER: usize = 1024 * 1024;
/// How many clusters a message names.
const NAMES: usize = 5;

/// Counts what is written.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many bytes a value has as JSON.
pub(crate) fn length(value: &Value) -> usize {
    let mut counter = Counter(0);
    // A value is always written, and a counter takes all.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Leaves statuses out of what a binding says of its clusters until it can be stored, the longest first. Answers what is
/// missing, in words.
pub fn fit(items: &mut [AggregatedStatusItem]) -> Option<String> {
    let length_of = |item: &AggregatedStatusItem| item.status.as_ref().map_or(0, length);
    let mut lengths: Vec<(usize, usize)> = items.iter().map(length_of).zip(0..).collect();
    let all: usize = lengths.iter().map(|(bytes, _)| bytes).sum();
    let mut left = all;
    lengths.sort_by_key(|(bytes, at)| (std::cmp::Reverse(*bytes), *at));
    let mut without = Vec::new();
    for (bytes, at) in lengths {
        if left <= TOGETHER {
            break;
        }
        left -= bytes;
        items[at].status = None;
        without.push(items[at].cluster_name.as_str());
    }
    let (named, more) = without.split_at(without.len().min(NAMES));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!without.is_empty()).then(|| {
        format!(
            "the statuses of all clusters have {all} bytes together, of which a binding carries at most {TOGETHER}; in their \
             Works alone are those of {}{more}",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths_are_those_of_what_is_written() {
        for value in [json!(null), json!({"a": [1, 2.5, "ä\"\n"], "b": {}})] {
            assert_eq!(length(&value), value.to_string().len());
        }
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
        assert_eq!(fit(&mut items), None);
        assert_eq!(kept(&items), [true, true]);
        items.push(item("c", 3));
        items.push(AggregatedStatusItem::default());
        assert_eq!(
            fit(&mut items).unwrap(),
            "the statuses of all clusters have 1048579 bytes together, of which a binding carries at most 1048576; in their \
             Works alone are those of a"
        );
        assert_eq!(kept(&items), [false, true, true, false]);
        let mut many: Vec<_> = (0..30).map(|n| item(&format!("m{n:02}"), 100_000)).collect();
        let said = fit(&mut many).unwrap();
        assert!(
            said.ends_with("those of m00, m01, m02, m03, m04 and 15 more"),
            "{said}"
        );
        assert_eq!(kept(&many).iter().filter(|kept| **kept).count(), 10);
    }
}
