//! The postings of one kind and namespace, by what selectors ask for beyond that.
//!
//! A posting by labels is kept under one of its requirements, the one that is rarest when it is put in: templates that
//! do not have that label never look at it. One that only excludes is kept under what it excludes: templates that have
//! that label never look at it. Every list is in match order.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::PropagationPolicy;
use machinery_value::labels::{LabelSelector, Operator};
use serde_json::{Map, Value};

use crate::selector::{BY_KIND, BY_LABELS, BY_NAME};

/// Where a policy stands in match order among those of its kind: less is better.
pub(super) type Rank<'a> = (Reverse<i32>, Reverse<u8>, &'a str);

/// A policy, posted for one of its selectors.
#[derive(Clone, Debug)]
pub(super) struct Posting {
    /// The policy.
    pub(super) policy: Arc<PropagationPolicy>,
    /// The labels that must match.
    pub(super) labels: Option<Arc<LabelSelector>>,
}

impl Posting {
    /// Where the policy stands if its selector matches this closely.
    pub(super) fn rank(&self, by: u8) -> Rank<'_> {
        let priority = self.policy.spec.priority.unwrap_or(0);
        (Reverse(priority), Reverse(by), &self.policy.metadata.name)
    }

    /// Whether a template's labels match; everything else matches by where the posting is.
    pub(super) fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.labels
            .as_ref()
            .is_none_or(|selector| selector.matches_labels(labels))
    }
}

/// Under what a selector is posted.
#[derive(Clone, Debug)]
pub(super) enum Anchor {
    /// The template's name.
    Name(String),
    /// A label with any of these values.
    Values(String, Vec<String>),
    /// A label.
    Key(String),
    /// A label that may not have any of these values; without values, that may not be there.
    Without(String, Vec<String>),
    /// No label at all.
    Unanchored,
    /// Everything.
    All,
}

/// Lists of postings. Empty lists are not kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    names: BTreeMap<String, Vec<Posting>>,
    values: BTreeMap<String, BTreeMap<String, Vec<Posting>>>,
    keys: BTreeMap<String, Vec<Posting>>,
    without: BTreeMap<String, BTreeMap<Vec<String>, Vec<Posting>>>,
    unanchored: Vec<Posting>,
    all: Vec<Posting>,
}

impl Slots {
    /// Whether nothing is posted.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
            && self.values.is_empty()
            && self.keys.is_empty()
            && self.without.is_empty()
            && self.unanchored.is_empty()
            && self.all.is_empty()
    }

    /// Posts a selector with this name, which may be empty.
    pub(super) fn insert(&mut self, name: &str, posting: Posting) -> Anchor {
        let anchor = match &posting.labels {
            _ if !name.is_empty() => Anchor::Name(name.to_owned()),
            None => Anchor::All,
            Some(labels) => self.rarest(labels),
        };
        match &anchor {
            Anchor::Name(name) => put(self.names.entry(name.clone()).or_default(), posting),
            Anchor::Values(key, values) => {
                let by_value = self.values.entry(key.clone()).or_default();
                for value in values {
                    put(by_value.entry(value.clone()).or_default(), posting.clone());
                }
            }
            Anchor::Key(key) => put(self.keys.entry(key.clone()).or_default(), posting),
            Anchor::Without(key, values) => {
                let by_values = self.without.entry(key.clone()).or_default();
                put(by_values.entry(values.clone()).or_default(), posting);
            }
            Anchor::Unanchored => put(&mut self.unanchored, posting),
            Anchor::All => put(&mut self.all, posting),
        }
        anchor
    }

    /// Takes a policy out of the list that an anchor names.
    pub(super) fn remove(&mut self, anchor: &Anchor, policy: &Arc<PropagationPolicy>) {
        match anchor {
            Anchor::Name(name) => take_under(&mut self.names, name, policy),
            Anchor::Values(key, values) => {
                if let Some(by_value) = self.values.get_mut(key) {
                    for value in values {
                        take_under(by_value, value, policy);
                    }
                    if by_value.is_empty() {
                        self.values.remove(key);
                    }
                }
            }
            Anchor::Key(key) => take_under(&mut self.keys, key, policy),
            Anchor::Without(key, values) => {
                if let Some(by_values) = self.without.get_mut(key) {
                    take_under(by_values, values, policy);
                    if by_values.is_empty() {
                        self.without.remove(key);
                    }
                }
            }
            Anchor::Unanchored => take(&mut self.unanchored, policy),
            Anchor::All => take(&mut self.all, policy),
        }
    }

    /// The postings that name a template.
    pub(super) fn named(&self, name: &str) -> &[Posting] {
        self.names.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The lists that may concern a template, each with how closely its selectors match.
    pub(super) fn lists<'a>(
        &'a self,
        name: &str,
        labels: Option<&Map<String, Value>>,
    ) -> Vec<(u8, &'a [Posting])> {
        let mut lists = vec![
            (BY_NAME, self.named(name)),
            (BY_LABELS, self.unanchored.as_slice()),
            (BY_KIND, self.all.as_slice()),
        ];
        for (key, by_values) in &self.without {
            let value = labels.and_then(|labels| labels.get(key)?.as_str());
            let excludes = |values: &[String]| {
                value.is_some_and(|value| values.is_empty() || values.iter().any(|other| other == value))
            };
            let open = by_values.iter().filter(|(values, _)| !excludes(values));
            lists.extend(open.map(|(_, postings)| (BY_LABELS, postings.as_slice())));
        }
        if self.values.is_empty() && self.keys.is_empty() {
            return lists;
        }
        for (key, value) in labels.into_iter().flatten() {
            let Some(value) = value.as_str() else { continue };
            let by_value = self.values.get(key).and_then(|values| values.get(value));
            let found = by_value.into_iter().chain(self.keys.get(key));
            lists.extend(found.map(|postings| (BY_LABELS, postings.as_slice())));
        }
        lists
    }

    /// The requirement of a selector that the fewest others are posted under.
    fn rarest(&self, labels: &LabelSelector) -> Anchor {
        let length = |key: &str, value: &String| {
            let by_value = self.values.get(key).and_then(|values| values.get(value));
            by_value.map_or(0, Vec::len)
        };
        let anchors = labels.requirements().unwrap_or_default().iter();
        let anchors = anchors.filter_map(|requirement| {
            let key = requirement.key();
            match requirement.operator() {
                Operator::Equals | Operator::DoubleEquals | Operator::In => {
                    let values = distinct(requirement.values());
                    let weight = values.iter().map(|value| length(key, value) + 1).sum::<usize>();
                    Some((weight, Anchor::Values(key.to_owned(), values)))
                }
                Operator::Exists | Operator::GreaterThan | Operator::LessThan => {
                    let weight = self.keys.get(key).map_or(0, Vec::len) + 1;
                    // Any value will do, so that more templates have it than a label with its value.
                    Some((weight.saturating_mul(4), Anchor::Key(key.to_owned())))
                }
                Operator::NotEquals | Operator::NotIn | Operator::DoesNotExist => None,
            }
        });
        anchors
            .min_by_key(|(weight, _)| *weight)
            .map_or_else(|| excluded(labels), |(_, anchor)| anchor)
    }
}

/// What a selector that asks for no label excludes first.
fn excluded(labels: &LabelSelector) -> Anchor {
    let requirement = labels.requirements().and_then(<[_]>::first);
    requirement.map_or(Anchor::Unanchored, |requirement| {
        Anchor::Without(requirement.key().to_owned(), distinct(requirement.values()))
    })
}

fn distinct(values: &[String]) -> Vec<String> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.dedup();
    values
}

/// Puts a posting where it belongs in match order.
fn put(list: &mut Vec<Posting>, posting: Posting) {
    // How closely selectors match is the same in a whole list.
    let at = list.partition_point(|other| other.rank(0) <= posting.rank(0));
    list.insert(at, posting);
}

fn take(list: &mut Vec<Posting>, policy: &Arc<PropagationPolicy>) {
    list.retain(|posting| !Arc::ptr_eq(&posting.policy, policy));
}

fn take_under<K, Q>(lists: &mut BTreeMap<K, Vec<Posting>>, key: &Q, policy: &Arc<PropagationPolicy>)
where
    K: Ord + Borrow<Q>,
    Q: Ord + ?Sized,
{
    if let Some(list) = lists.get_mut(key) {
        take(list, policy);
        if list.is_empty() {
            lists.remove(key);
        }
    }
}
