//! Where scripts run: beside the tasks of the runtime, and few at once. One that takes as long as it may keeps no thread from
//! those that serve, renew the lease and walk other templates.

use std::thread;

use lockgate_engine::interpret::Runner;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs scripts, so many at once that a processor is left for everybody else.
#[derive(Debug)]
pub(crate) struct Scripts {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Default for Scripts {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            free: Mutex::new(processors.saturating_sub(1).max(1)),
            freed: Condvar::new(),
        }
    }
}

/// Gives a place back, also when a script makes a panic.
struct Place<'a>(&'a Scripts);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

impl Scripts {
    fn place(&self) -> Place<'_> {
        let mut free = self.free.lock();
        self.freed.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        Place(self)
    }
}

impl Runner for Scripts {
    fn run(&self, work: &mut dyn FnMut()) {
        let mut in_its_place = || {
            let _place = self.place();
            work();
        };
        let is_shared =
            Handle::try_current().is_ok_and(|here| here.runtime_flavor() == RuntimeFlavor::MultiThread);
        if is_shared {
            block_in_place(in_its_place);
        } else {
            in_its_place();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    /// As many scripts as there are workers wait for something that another task does.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn scripts_keep_no_worker_from_others() {
        let scripts = Arc::new(Scripts::default());
        let done = Arc::new(AtomicBool::new(false));
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let (scripts, done) = (scripts.clone(), done.clone());
                tokio::spawn(async move {
                    scripts.run(&mut || {
                        while !done.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(1));
                        }
                    });
                })
            })
            .collect();
        let other = done.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            other.store(true, Ordering::Relaxed);
        });
        let all = futures::future::join_all(waiting);
        let ended = tokio::time::timeout(Duration::from_secs(30), all).await;
        assert!(ended.is_ok_and(|all| all.iter().all(Result::is_ok)));
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_runs_them_on_the_spot() {
        let mut ran = 0;
        Scripts::default().run(&mut || ran += 1);
        assert_eq!(ran, 1);
    }
}
