//! The figures of one queue. Queues of one name share them.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// What is counted of a queue.
#[derive(Clone, Debug)]
pub(crate) struct QueueFigures {
    pub(super) depth: Gauge,
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
}

impl QueueFigures {
    /// Something is ready.
    pub(crate) fn added(&self) {
        self.depth.inc();
        self.adds.inc();
    }

    /// Something that was ready for so long is in hand.
    pub(crate) fn taken(&self, waited: Duration) {
        self.depth.dec();
        self.waited.observe(waited.as_secs_f64());
    }

    /// Something was in hand for so long; `again` if it failed and comes again.
    pub(crate) fn done(&self, worked: Duration, again: bool) {
        self.worked.observe(worked.as_secs_f64());
        if again {
            self.retries.inc();
        }
    }

    /// So many that were ready will never be in hand.
    pub(crate) fn forgotten(&self, ready: usize) {
        self.depth.dec_by(i64::try_from(ready).unwrap_or(i64::MAX));
    }
}
