//! Fights over one object, field by field: who corrects three fields once each fights with nobody, who corrects one field three
//! times does. That the object was deleted counts by itself, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::Corrections;

/// So many fields of an object are told apart; all others count as one.
const FIELDS: usize = 8;
/// So much of a path is kept; fields whose paths begin with the same count as one.
const PATH: usize = 128;
/// The name of those for which there was no room.
const OTHERS: &str = "";

/// The corrections of one object, by what was corrected. What is merged for lack of room looks like a fight too early, never too
/// late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fights {
    deletions: Corrections,
    fields: BTreeMap<String, Corrections>,
}

/// Somebody changes back what is corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fight {
    /// Which field; empty if there were too many to tell.
    pub field: String,
    /// How long to leave the object alone.
    pub backoff: Duration,
}

impl Fights {
    /// Records that the object was made again now. Answers how long not to make it again; none while this is no fight.
    pub fn made_again(&mut self, now: Timestamp) -> Option<Duration> {
        self.deletions.record(now)
    }

    /// Records that these fields were corrected now. Answers the fight over one of them that has gone on for longest, if any.
    pub fn corrected(&mut self, paths: &[String], now: Timestamp) -> Option<Fight> {
        self.fields.retain(|_, corrections| corrections.counts(now));
        let mut recorded = BTreeSet::new();
        let mut longest: Option<Fight> = None;
        for path in paths {
            let name = self.name_of(path);
            if !recorded.insert(name) {
                continue;
            }
            let Some(backoff) = self.fields.entry(name.to_owned()).or_default().record(now) else {
                continue;
            };
            if longest.as_ref().is_none_or(|fight| fight.backoff < backoff) {
                let field = if name == OTHERS { OTHERS } else { path };
                longest = Some(Fight {
                    field: field.to_owned(),
                    backoff,
                });
            }
        }
        longest
    }

    /// Whether a correction of a field now may be one of a fight.
    pub fn may_fight(&self, now: Timestamp) -> bool {
        self.fields
            .values()
            .any(|corrections| corrections.would_fight(now))
    }

    /// Until when the object is left as somebody changed it, if it is: a write would correct what is fought over with all else.
    pub fn left_changed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let fields = self.fields.values();
        fields
            .filter_map(|corrections| corrections.paused_until(now))
            .max()
    }

    /// Until when the object is not made again, if it is not.
    pub fn left_deleted_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.deletions.paused_until(now)
    }

    /// When all fights are over if nobody goes on with them; none if there are none.
    pub fn peace(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.fields.values().chain([&self.deletions]);
        all.filter_map(|corrections| corrections.peace(now)).max()
    }

    /// The name under which a field is counted. Who was one of the others stays so until they are forgotten.
    fn name_of<'a>(&self, path: &'a str) -> &'a str {
        let name = &path[..path.floor_char_boundary(PATH)];
        let has_room = self.fields.len() < FIELDS && !self.fields.contains_key(OTHERS);
        if has_room || self.fields.contains_key(name) {
            name
        } else {
            OTHERS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// What comes of corrections, each a second and paths with spaces between; `-` is a deletion.
    fn fights(corrections: &[(i64, &str)]) -> Vec<String> {
        let mut fights = Fights::default();
        let told = |(second, paths): &(i64, &str)| {
            let paths: Vec<String> = paths.split(' ').map(str::to_owned).collect();
            if paths == ["-"] {
                let pause = fights.made_again(at(*second));
                return pause.map_or(String::new(), |pause| format!("deleted {}", pause.as_secs()));
            }
            let may_fight = fights.may_fight(at(*second));
            let fight = fights.corrected(&paths, at(*second));
            assert!(may_fight || fight.is_none(), "{fight:?} came as a surprise");
            fight.map_or(String::new(), |fight| {
                format!("{} {}", fight.field, fight.backoff.as_secs())
            })
        };
        corrections.iter().map(told).collect()
    }

    /// A name, corrections and when each was made, and the fights that these are.
    type Row = (&'static str, &'static [(i64, &'static str)], &'static str);

    #[test]
    fn what_is_a_fight() {
        let table: &[Row] = &[
            ("one field", &[(0, "a"), (1, "a"), (2, "a")], "a 15"),
            ("three fields", &[(0, "a"), (1, "b"), (2, "c")], ""),
            ("one of several", &[(0, "a b"), (1, "c b"), (2, "d b")], "b 15"),
            (
                "several times in one correction",
                &[(0, "a a a a"), (1, "a a")],
                "",
            ),
            (
                "a field and deletions",
                &[(0, "a"), (1, "-"), (2, "a"), (3, "-")],
                "",
            ),
            (
                "deletions",
                &[(0, "-"), (1, "a"), (2, "-"), (3, "-")],
                "deleted 15",
            ),
            ("too slow", &[(0, "a"), (500, "b"), (601, "a"), (1000, "a")], ""),
            (
                "the older fight",
                &[(0, "b"), (1, "b"), (2, "b"), (20, "a"), (60, "a"), (100, "a b")],
                "b 30",
            ),
        ];
        for (what, corrections, last) in table {
            assert_eq!(fights(corrections).last().unwrap(), last, "{what}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_counts_as_one() {
        let all = "a b c d e f g h";
        // Of two more fields nobody can tell which of them is fought over.
        assert_eq!(fights(&[(0, all), (1, "i"), (2, "j"), (3, "i")])[3], " 15");
        assert_eq!(fights(&[(0, all), (1, "i"), (2, "a"), (3, "i"), (4, "b")])[4], "");
        assert_eq!(
            fights(&[(0, all), (1, "i"), (2, "i"), (3, "a"), (4, "a")])[4],
            "a 15"
        );
        assert_eq!(fights(&[(0, all), (500, "i"), (550, "i"), (620, "i")])[3], " 15");
        // There is room again.
        assert_eq!(fights(&[(0, all), (601, "i"), (602, "j"), (603, "k")])[3], "");
        let long = |end: &str| "x".repeat(PATH) + end;
        let (one, other) = (long("1"), long("ä"));
        let merged = fights(&[(0, &one), (1, &other), (2, &one)]);
        assert_eq!(merged[2], format!("{one} 15"), "it is named in full");
        let mut bounded = Fights::default();
        for number in 0..100 {
            bounded.corrected(&[format!("{number}{one}")], at(number));
        }
        assert!(bounded.fields.len() <= FIELDS + 1, "{}", bounded.fields.len());
        assert!(bounded.fields.keys().all(|name| name.len() <= PATH));
    }

    #[test]
    fn a_fight_over_a_field_leaves_deletions_alone_and_the_other_way_round() {
        let mut over_a_field = Fights::default();
        let mut over_itself = Fights::default();
        for second in 0..3 {
            over_a_field.corrected(&["a".to_owned()], at(second));
            over_itself.made_again(at(second));
        }
        let until = Some(at(2 + 15));
        assert_eq!(over_a_field.left_changed_until(at(3)), until);
        assert_eq!(over_a_field.left_deleted_until(at(3)), None);
        assert_eq!(over_itself.left_changed_until(at(3)), None);
        assert_eq!(over_itself.left_deleted_until(at(3)), until);
        for fights in [over_a_field, over_itself] {
            assert_eq!(fights.left_changed_until(at(17)), None);
            assert_eq!(fights.left_deleted_until(at(17)), None);
            assert_eq!(fights.peace(at(17)), Some(at(2 + 15 + 600)));
            assert_eq!(fights.peace(at(700)), None);
        }
    }
}
