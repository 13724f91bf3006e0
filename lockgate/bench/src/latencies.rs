//! Latencies, exactly: every sample is kept, as a run has thousands of them and not billions.

use std::time::Duration;

/// Samples of one measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    sorted: Vec<Duration>,
}

impl Latencies {
    pub(crate) fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self { sorted: samples }
    }

    /// The smallest sample that at least this share of all samples does not exceed, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (self.sorted.len() as f64 * share).ceil() as usize;
        let sample = self.sorted.get(rank.saturating_sub(1)).or(self.sorted.last());
        sample.map_or(0.0, |d| d.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let of = |count: u64| Latencies::new((1..=count).rev().map(Duration::from_millis).collect());
        for (count, share, expected) in [
            (1, 0.5, 1.0),
            (2, 0.5, 1.0),
            (3, 0.5, 2.0),
            (100, 0.5, 50.0),
            (100, 0.99, 99.0),
            (100, 1.0, 100.0),
            (10, 0.99, 10.0),
        ] {
            let found = of(count).quantile(share);
            assert!((found - expected).abs() < 1e-9, "{share} of {count}: {found}");
        }
        assert_eq!(Latencies::default().quantile(0.5), 0.0);
    }
}
