//! The figures: several runs of each, side by side, against what they should be.

use serde::Serialize;

use crate::machine::Machine;
use crate::servers::Side;

/// Everything that was found out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) command: String,
    pub(crate) machine: Machine,
    /// What was measured, and what to know about it.
    pub(crate) notes: Vec<String>,
    pub(crate) figures: Vec<Figure>,
}

/// What a figure is of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Label {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) goal: Option<Goal>,
}

/// In what it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "1/s")]
    PerSecond,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "MB")]
    Megabytes,
    /// CPU time for each second of the run.
    #[serde(rename = "cores")]
    Cores,
    #[serde(rename = "")]
    Count,
}

/// What it should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Goal {
    TimesReal(f64),
    Below(f64),
}

/// One line of the report.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    #[serde(flatten)]
    pub(crate) label: Label,
    #[serde(serialize_with = "spread")]
    pub(crate) embedded: Vec<f64>,
    #[serde(serialize_with = "spread")]
    pub(crate) real: Vec<f64>,
}

/// Several runs in three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) runs: usize,
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Verdict {
    Pass,
    Miss,
    /// There is nothing to compare with.
    Unknown,
}

impl Spread {
    pub(crate) fn of(runs: &[f64]) -> Option<Self> {
        let mut sorted = runs.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self {
            median: (low + high) / 2.0,
            least,
            most,
            runs: sorted.len(),
        })
    }
}

impl Label {
    pub(crate) fn new(section: impl Into<String>, name: impl Into<String>, unit: Unit) -> Self {
        Self {
            section: section.into(),
            name: name.into(),
            unit,
            goal: None,
        }
    }

    pub(crate) fn goal(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }
}

impl Report {
    /// Adds one run to the figure of that label.
    pub(crate) fn record(&mut self, side: Side, label: Label, value: f64) {
        let index = match self.figures.iter().position(|figure| figure.label == label) {
            Some(index) => index,
            None => {
                self.figures.push(Figure {
                    label,
                    embedded: Vec::new(),
                    real: Vec::new(),
                });
                self.figures.len() - 1
            }
        };
        let figure = &mut self.figures[index];
        match side {
            Side::Embedded => figure.embedded.push(value),
            Side::Real => figure.real.push(value),
        }
    }
}

impl Figure {
    /// How many times the real server's value ours is.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (ours, theirs) = (Spread::of(&self.embedded)?, Spread::of(&self.real)?);
        (theirs.median > 0.0).then(|| ours.median / theirs.median)
    }

    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let met = match self.label.goal? {
            Goal::TimesReal(times) => self.ratio().map(|ratio| ratio >= times),
            Goal::Below(limit) => Spread::of(&self.embedded).map(|ours| ours.median < limit),
        };
        Some(met.map_or(
            Verdict::Unknown,
            |met| if met { Verdict::Pass } else { Verdict::Miss },
        ))
    }
}

fn spread<S: serde::Serializer>(runs: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    Spread::of(runs).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(goal: Goal, embedded: &[f64], real: &[f64]) -> Figure {
        let label = Label::new("s", "n", Unit::PerSecond).goal(goal);
        Figure {
            label,
            embedded: embedded.to_vec(),
            real: real.to_vec(),
        }
    }

    #[test]
    fn spreads_are_medians_and_ranges() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(
            Spread::of(&[3.0, 1.0, 2.0]),
            Some(Spread {
                median: 2.0,
                least: 1.0,
                most: 3.0,
                runs: 3
            })
        );
        assert_eq!(
            Spread::of(&[4.0, 1.0]),
            Some(Spread {
                median: 2.5,
                least: 1.0,
                most: 4.0,
                runs: 2
            })
        );
    }

    #[test]
    fn goals_are_judged_by_medians() {
        for (goal, embedded, real, expected) in [
            (
                Goal::TimesReal(5.0),
                &[10.0, 50.0, 60.0][..],
                &[10.0][..],
                Verdict::Pass,
            ),
            (Goal::TimesReal(5.0), &[49.0], &[10.0], Verdict::Miss),
            (Goal::TimesReal(5.0), &[49.0], &[], Verdict::Unknown),
            (Goal::Below(40.0), &[39.9], &[], Verdict::Pass),
            (Goal::Below(40.0), &[40.0], &[10.0], Verdict::Miss),
            (Goal::Below(40.0), &[], &[10.0], Verdict::Unknown),
        ] {
            assert_eq!(
                figure(goal, embedded, real).verdict(),
                Some(expected),
                "{goal:?} {embedded:?} {real:?}"
            );
        }
    }
}
