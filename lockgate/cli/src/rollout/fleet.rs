//! The clusters of a simulation, and what becomes of each. Everything follows from the arguments: the same ones give the
//! same fleet and the same fates, and a cluster's own fate does not depend on how many others there are.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use lockgate_api::placement::LabelSelector;
use lockgate_api::rollout::{IntOrString, parse_duration};
use lockgate_engine::gate::grouping::{NamedGroup, Selected, cut};
use lockgate_engine::gate::groups::{GroupKey, Groups};
use lockgate_engine::gate::rules::Rules;
use lockgate_engine::gate::simulate::Fate;

/// The label by which clusters get into their groups.
const GROUP: &str = "group";

/// A group by name, with how many clusters it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedSize {
    pub(crate) name: String,
    pub(crate) size: usize,
}

impl FromStr for NamedSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = text.split_once('=').ok_or("it is not NAME=N, such as canary=2")?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        if !(2..=63).contains(&name.len())
            || !name.chars().all(allowed)
            || !edge(name.chars().next())
            || !edge(name.chars().last())
        {
            return Err(format!(
                "{name:?} is not the name of a group: 2 to 63 letters, digits, -, _ and ., the first and last a letter or digit"
            ));
        }
        let size = size.parse().ok().filter(|size| *size > 0);
        Ok(Self {
            name: name.to_owned(),
            size: size.ok_or("a group has at least one cluster, such as canary=2")?,
        })
    }
}

/// Between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probability(f64);

impl Probability {
    pub(crate) fn is_possible(self) -> bool {
        self.0 > 0.0
    }
}

impl FromStr for Probability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, whole) = match text.strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (text, 1.0),
        };
        let value = number.parse::<f64>().ok().map(|value| value / whole);
        value
            .filter(|value| (0.0..=1.0).contains(value))
            .map(Self)
            .ok_or_else(|| "it is not between 0 and 1, or 0% and 100%".to_owned())
    }
}

/// How long a cluster takes: at least, and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Takes {
    least: Duration,
    most: Duration,
}

impl FromStr for Takes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = |text: &str| parse_duration(text).map_err(|error| error.to_string());
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let (least, most) = (duration(least)?, duration(most)?);
        if least > most {
            return Err(format!(
                "{text:?} ends before it begins: write the shorter one first"
            ));
        }
        Ok(Self { least, most })
    }
}

/// The clusters of a simulation.
pub(crate) struct Fleet<'a> {
    pub(crate) clusters: u32,
    pub(crate) named: &'a [NamedSize],
    pub(crate) size: Option<&'a IntOrString>,
}

impl Fleet<'_> {
    /// The clusters in their decision groups: those of named groups come first by name.
    pub(crate) fn groups(&self) -> Result<Groups, String> {
        let wanted: usize = self.named.iter().map(|group| group.size).sum();
        if wanted > self.clusters as usize {
            return Err(format!(
                "--groups has {wanted} clusters and --clusters only {}: raise that, or make groups smaller",
                self.clusters
            ));
        }
        let mut names = self
            .named
            .iter()
            .flat_map(|group| std::iter::repeat_n(&group.name, group.size));
        // Figures of one width, so that the order of names is that of numbers.
        let width = self.clusters.to_string().len();
        let selected: Vec<Selected> = (1..=self.clusters)
            .map(|number| Selected {
                name: format!("cluster-{number:0width$}"),
                labels: names
                    .next()
                    .map(|name| (GROUP.to_owned(), name.clone()))
                    .into_iter()
                    .collect(),
                claims: BTreeMap::new(),
            })
            .collect();
        let named: Vec<NamedGroup> = self
            .named
            .iter()
            .map(|group| NamedGroup {
                name: group.name.clone(),
                labels: Some(LabelSelector {
                    match_labels: [(GROUP.to_owned(), group.name.clone())].into(),
                    ..LabelSelector::default()
                }),
                claims: None,
            })
            .collect();
        cut(&selected, &named, self.size).map_err(|error| error.to_string())
    }
}

/// Which mandatory groups of a strategy are not there.
pub(crate) fn unknown_groups(groups: &Groups, rules: &Rules) -> Vec<String> {
    let unknown = |key: &&GroupKey| !groups.named_by(std::slice::from_ref(*key)).contains(&true);
    let words = |key: &GroupKey| {
        let name = match key {
            GroupKey::Name(name) => format!("{name:?}"),
            GroupKey::Index(index) => index.to_string(),
        };
        format!("there is no group {name}, and nothing goes before the others because of it")
    };
    rules.mandatory.iter().filter(unknown).map(words).collect()
}

/// What decides the fate of every cluster.
pub(crate) struct Fates {
    pub(crate) fail_rate: Probability,
    pub(crate) takes: Takes,
    pub(crate) seed: u64,
}

impl Fates {
    pub(crate) fn draw(&self, groups: &Groups) -> BTreeMap<String, Fate> {
        let fate = |cluster: &str| {
            let mut dice = Dice::new(self.seed, cluster);
            let succeeds = dice.roll() >= self.fail_rate.0;
            let Takes { least, most } = self.takes;
            // To the second, where there is one to choose, for people to read.
            let drawn = least + (most - least).mul_f64(dice.roll());
            let takes = match Duration::from_secs(drawn.as_secs()) {
                whole if whole >= least => whole,
                _ => least,
            };
            Fate { takes, succeeds }
        };
        let clusters = groups.clusters();
        clusters
            .map(|(cluster, _)| (cluster.to_owned(), fate(cluster)))
            .collect()
    }
}

/// SplitMix64, begun from a seed and a name.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, name: &str) -> Self {
        // FNV-1a spreads the name over all bits.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(seed);
        dice.0 = dice.next() ^ hash;
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, and less than 1.
    fn roll(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
