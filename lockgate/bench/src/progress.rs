//! Progress on standard error: a bar on a terminal, else a line now and then. Short work says nothing.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that is done sooner than this is not spoken of.
const SHORT: Duration = Duration::from_secs(2);
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// One piece of work that takes a while. Clones speak of the same one.
#[derive(Clone)]
pub struct Progress(Arc<Inner>);

struct Inner {
    label: String,
    total: u64,
    done: AtomicU64,
    begun: Instant,
    /// Milliseconds since `begun` at which the next line is due.
    next_line: AtomicU64,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines,
}

impl Progress {
    /// Work in `total` steps.
    pub fn start(label: impl Into<String>, total: usize) -> Self {
        let (label, total) = (label.into(), total as u64);
        let shown = if std::io::stderr().is_terminal() {
            Shown::Bar(bar(&label, total))
        } else {
            Shown::Lines
        };
        let next_line = AtomicU64::new(SHORT.as_millis() as u64);
        Self(Arc::new(Inner {
            label,
            total,
            done: AtomicU64::new(0),
            begun: Instant::now(),
            next_line,
            shown,
        }))
    }

    /// So many steps more are done.
    pub fn advance(&self, steps: u64) {
        let inner = &self.0;
        let done = inner.done.fetch_add(steps, Ordering::Relaxed) + steps;
        let elapsed = inner.begun.elapsed();
        let now = elapsed.as_millis() as u64;
        let due = inner.next_line.load(Ordering::Relaxed);
        if now < due {
            return;
        }
        let later = match inner.shown {
            Shown::Bar(_) => 100,
            Shown::Lines => BETWEEN_LINES.as_millis() as u64,
        };
        // Only one of several workers speaks.
        if inner
            .next_line
            .compare_exchange(due, now + later, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        match &inner.shown {
            Shown::Bar(bar) => {
                if bar.is_hidden() {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                bar.set_position(done);
            }
            Shown::Lines => say(&format!(
                "{}: {done} of {} after {} s",
                inner.label,
                inner.total,
                elapsed.as_secs()
            )),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// Hidden until the work has proved to be long.
fn bar(label: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.set_prefix(label.to_owned());
    bar
}

/// A line for the person who waits; a closed pipe is no reason to fail.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
