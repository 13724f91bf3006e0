//! What readers see: the current entries in key order, and the history that leads to them.
//!
//! Owned by the store behind a lock. It changes only by applying published events, in revision order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::entry::{ByKey, Entry, Event, Kind, Page, Range, Record};
use crate::error::ReadError;
use crate::history::History;

pub(crate) struct State<V> {
    entries: BTreeSet<ByKey<V>>,
    revision: u64,
    history: History<V>,
}

impl<V: Record> State<V> {
    pub(crate) fn new(entries: BTreeSet<ByKey<V>>, revision: u64, history: History<V>) -> Self {
        Self {
            entries,
            revision,
            history,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Entry<V>>> {
        self.entries.get(key).map(|entry| &entry.0)
    }

    pub(crate) fn apply(&mut self, event: &Arc<Event<V>>) {
        match event.kind {
            Kind::Put => {
                self.entries.replace(ByKey(event.entry.clone()));
            }
            Kind::Delete => {
                self.entries.remove(&*event.entry.key);
            }
        }
        self.revision = event.revision;
        self.history.push(event.clone());
    }

    pub(crate) fn trim(&mut self, revision: u64) {
        self.history.trim(revision.min(self.revision));
    }

    /// The events after `revision` whose key starts with `prefix`, oldest first.
    pub(crate) fn events(
        &self,
        prefix: &str,
        revision: u64,
    ) -> Result<impl Iterator<Item = &Arc<Event<V>>>, ReadError> {
        self.check_known(revision)?;
        Ok(self
            .history
            .after(revision)
            .filter(move |event| event.entry.key.starts_with(prefix)))
    }

    pub(crate) fn range(&self, query: &Range<'_>) -> Result<Page<V>, ReadError> {
        let revision = query.at.unwrap_or(self.revision);
        self.check_known(revision)?;
        let end = end_of_prefix(query.prefix);
        let start = match query.after {
            Some(after) if after >= query.prefix => Bound::Excluded(after),
            _ => Bound::Included(query.prefix),
        };
        let empty = match (start, &end) {
            (Bound::Excluded(start), Some(end)) => start >= end.as_str(),
            _ => false,
        };
        if empty {
            return Ok(Page {
                entries: Vec::new(),
                revision,
                remaining: 0,
            });
        }
        let bounds = (start, end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        let current = self.entries.range::<str, _>(bounds).map(|entry| &entry.0);

        // The first event after the revision says what its key held then.
        let mut then: BTreeMap<&str, Option<&Arc<Entry<V>>>> = BTreeMap::new();
        for event in self.history.after(revision) {
            let key: &str = &event.entry.key;
            if key.starts_with(query.prefix) && query.after.is_none_or(|after| key > after) {
                then.entry(key).or_insert(event.previous.as_ref());
            }
        }
        Ok(if then.is_empty() {
            page(current, query.limit, revision)
        } else {
            page(overlaid(current, then), query.limit, revision)
        })
    }

    /// The current entries of a prefix.
    pub(crate) fn list(&self, prefix: &str) -> Page<V> {
        let end = end_of_prefix(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self
            .entries
            .range::<str, _>((Bound::Included(prefix), end))
            .map(|entry| &entry.0);
        page(entries, 0, self.revision)
    }

    fn check_known(&self, requested: u64) -> Result<(), ReadError> {
        let (oldest, current) = (self.history.floor(), self.revision);
        if requested > current {
            return Err(ReadError::Future { requested, current });
        }
        if requested < oldest {
            return Err(ReadError::Compacted {
                requested,
                oldest,
                current,
            });
        }
        Ok(())
    }
}

fn page<'a, V: Record>(
    mut entries: impl Iterator<Item = &'a Arc<Entry<V>>>,
    limit: usize,
    revision: u64,
) -> Page<V> {
    if limit == 0 {
        return Page {
            entries: entries.cloned().collect(),
            revision,
            remaining: 0,
        };
    }
    let taken = entries.by_ref().take(limit).cloned().collect();
    Page {
        entries: taken,
        revision,
        remaining: entries.count(),
    }
}

/// Two sequences in key order as one; where both have a key, `over` decides.
fn overlaid<'a, V>(
    under: impl Iterator<Item = &'a Arc<Entry<V>>>,
    over: BTreeMap<&'a str, Option<&'a Arc<Entry<V>>>>,
) -> impl Iterator<Item = &'a Arc<Entry<V>>>
where
    V: 'a,
{
    let mut under = under.peekable();
    let mut over = over.into_iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let Some((key, _)) = over.peek() else {
                return under.next();
            };
            if let Some(entry) = under.next_if(|entry| &*entry.key < *key) {
                return Some(entry);
            }
            under.next_if(|entry| &*entry.key == *key);
            if let Some((_, Some(entry))) = over.next() {
                return Some(entry);
            }
        }
    })
}

/// The least string that is greater than every string with this prefix; none if there is no such string.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // A range of `char`s steps over the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::end_of_prefix;

    #[test]
    fn the_end_of_a_prefix_is_the_next_string_of_its_length() {
        for (prefix, end) in [
            ("", None),
            ("/", Some("0")),
            ("/apps/", Some("/apps0")),
            ("a\u{7f}", Some("a\u{80}")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}\u{10ffff}", None),
        ] {
            assert_eq!(end_of_prefix(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
