//! What is known of the last time that a binding was placed.
//!
//! The group of clusters in use and the rebalance that was last followed are an annotation of the binding, in the write that
//! changes its clusters: a status that is written later may be lost on the way, and then a group would be left, or a
//! rebalance done, twice. What another control plane placed has no such annotation; then the status counts.

use jiff::Timestamp;
use lockgate_api::{Binding, Placement, keys};
use serde::{Deserialize, Serialize};

/// What is known of the last time that a binding was placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastPlaced {
    /// The placement; `None` if there is none, or none that can be read.
    pub placement: Option<Placement>,
    /// The group of clusters in use; empty if there is none.
    pub affinity: String,
    /// When it was.
    pub at: Option<Timestamp>,
    /// The rebalance that was last followed.
    pub rebalanced: Option<Timestamp>,
}

/// The annotation.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Mark {
    #[serde(skip_serializing_if = "String::is_empty")]
    affinity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rebalanced: Option<String>,
}

impl LastPlaced {
    /// What a binding tells.
    pub fn of(binding: &Binding) -> Self {
        let placement = binding.metadata.annotation(keys::APPLIED_PLACEMENT);
        let mark = binding.metadata.annotation(keys::PLACED);
        let mark: Option<Mark> = mark.and_then(|text| serde_json::from_str(text).ok());
        let status = &binding.status;
        let time = |text: &str| text.parse::<Timestamp>().ok();
        Self {
            placement: placement.and_then(|text| serde_json::from_str(text).ok()),
            affinity: match &mark {
                Some(mark) => mark.affinity.clone(),
                None => status.scheduler_observed_affinity_name.clone(),
            },
            at: status.last_scheduled_time.as_deref().and_then(time),
            rebalanced: mark.and_then(|mark| mark.rebalanced).as_deref().and_then(time),
        }
    }

    /// Makes a binding say that it was placed, in this group of clusters if it has groups. A binding without groups that
    /// was never rebalanced says no more than its placement.
    pub fn put(binding: &mut Binding, affinity: Option<&str>) {
        let placement = binding.spec.placement.clone().unwrap_or_default();
        // A placement is made of strings, numbers and lists, and always encodes.
        let text = serde_json::to_string(&placement).unwrap_or_default();
        let annotations = &mut binding.metadata.annotations;
        annotations.insert(keys::APPLIED_PLACEMENT.to_owned(), text);
        let mark = Mark {
            affinity: affinity.unwrap_or_default().to_owned(),
            rebalanced: binding.spec.reschedule_triggered_at.clone(),
        };
        if mark == Mark::default() {
            annotations.remove(keys::PLACED);
        } else {
            let text = serde_json::to_string(&mark).unwrap_or_default();
            annotations.insert(keys::PLACED.to_owned(), text);
        }
    }
}

impl LastPlaced {
    /// Makes a binding that was never rebalanced say so: what is asked of it from now on counts, in whichever second.
    pub fn expect_rebalance(binding: &mut Binding) {
        let last = Self::of(binding);
        if last.rebalanced.is_some() {
            return;
        }
        let mark = Mark {
            affinity: last.affinity,
            rebalanced: Some(Timestamp::UNIX_EPOCH.to_string()),
        };
        let text = serde_json::to_string(&mark).unwrap_or_default();
        let annotations = &mut binding.metadata.annotations;
        annotations.insert(keys::PLACED.to_owned(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebalance_that_is_expected_keeps_the_group() {
        let mut binding = Binding::default();
        LastPlaced::put(&mut binding, Some("primary"));
        LastPlaced::expect_rebalance(&mut binding);
        let last = LastPlaced::of(&binding);
        assert_eq!(
            (last.affinity.as_str(), last.rebalanced),
            ("primary", Some(Timestamp::UNIX_EPOCH))
        );
        binding.spec.reschedule_triggered_at = Some("2026-01-01T00:00:00Z".into());
        LastPlaced::put(&mut binding, Some("primary"));
        LastPlaced::expect_rebalance(&mut binding);
        assert_eq!(
            LastPlaced::of(&binding).rebalanced,
            "2026-01-01T00:00:00Z".parse().ok()
        );
    }

    #[test]
    fn what_is_put_is_read_again() {
        let mut binding = Binding::default();
        binding.status.scheduler_observed_affinity_name = "of another".into();
        assert_eq!(LastPlaced::of(&binding).affinity, "of another");
        LastPlaced::put(&mut binding, None);
        assert_eq!(binding.metadata.annotation(keys::PLACED), None);
        binding.spec.reschedule_triggered_at = Some("2026-01-01T00:00:00Z".into());
        LastPlaced::put(&mut binding, Some("primary"));
        let last = LastPlaced::of(&binding);
        assert_eq!(last.affinity, "primary");
        assert_eq!(last.rebalanced, "2026-01-01T00:00:00Z".parse().ok());
        assert_eq!(last.placement, Some(Placement::default()));
        // What cannot be read says nothing.
        binding
            .metadata
            .annotations
            .insert(keys::PLACED.into(), "{".into());
        assert_eq!(LastPlaced::of(&binding).affinity, "of another");
    }
}
