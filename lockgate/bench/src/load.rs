//! A closed loop: so many workers, each of which asks again once it was answered.
//!
//! The throughput is what the server and the client manage together at that concurrency; the latency is the one under
//! that load, waiting included.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::progress::Progress;

/// What a loop did.
pub(crate) struct Outcome<T> {
    pub(crate) wall: Duration,
    pub(crate) latencies: Latencies,
    /// What each operation returned, in the order of their numbers.
    pub(crate) results: Vec<T>,
}

impl<T> Outcome<T> {
    pub(crate) fn per_second(&self) -> f64 {
        per_second(self.results.len(), self.wall)
    }
}

/// How many things a second that is.
pub(crate) fn per_second(count: usize, wall: Duration) -> f64 {
    count as f64 / wall.as_secs_f64().max(1e-9)
}

/// Does the operations `0..count`, `concurrency` at a time; each is told its worker and its number. The first failure ends it.
pub(crate) async fn drive<T, F, Fut>(
    count: usize,
    concurrency: usize,
    progress: &Progress,
    operation: F,
) -> Result<Outcome<T>, BenchError>
where
    T: Send + 'static,
    F: Fn(usize, usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, BenchError>> + Send,
{
    let (next, operation) = (Arc::new(AtomicUsize::new(0)), Arc::new(operation));
    let mut workers = JoinSet::new();
    let begun = Instant::now();
    for worker in 0..concurrency.min(count) {
        let (next, operation, progress) = (next.clone(), operation.clone(), progress.clone());
        workers.spawn(async move {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(done);
                }
                let asked = Instant::now();
                let result = operation(worker, number).await?;
                done.push((number, asked.elapsed(), result));
                progress.advance(1);
            }
        });
    }
    let mut done = Vec::with_capacity(count);
    while let Some(worker) = workers.join_next().await {
        done.extend(worker.map_err(|e| BenchError::wrong(format!("a worker broke off: {e}")))??);
    }
    let wall = begun.elapsed();
    done.sort_unstable_by_key(|(number, _, _)| *number);
    let latencies = Latencies::new(done.iter().map(|(_, latency, _)| *latency).collect());
    Ok(Outcome {
        wall,
        latencies,
        results: done.into_iter().map(|(_, _, result)| result).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_is_done_once_and_in_bounds() {
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        let outcome = drive(100, 7, &Progress::start("test", 100), move |worker, number| {
            let (under_way, most) = (under_way.clone(), most.clone());
            async move {
                assert!(worker < 7);
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                under_way.fetch_sub(1, Ordering::SeqCst);
                Ok(number)
            }
        })
        .await
        .unwrap();
        assert_eq!(outcome.results, (0..100).collect::<Vec<_>>());
        assert_eq!(seen.load(Ordering::SeqCst), 7);
    }

    #[tokio::test]
    async fn one_failure_fails_the_loop() {
        let progress = Progress::start("test", 10);
        let outcome = drive(10, 2, &progress, |_, number| async move {
            if number == 5 {
                Err(BenchError::wrong("five"))
            } else {
                Ok(())
            }
        });
        assert!(outcome.await.is_err());
    }
}
