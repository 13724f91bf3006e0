//! Our own writes. The watch may tell of one before its answer is here, and it would look like the work of somebody else, so
//! that everybody who wrote would look again at what he wrote. So what the watch brings of an object waits for the answer to
//! the write of it that is under way, for a moment.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Cache, Cached, Item, Key};
use crate::link::{DeleteOptions, Deleted, Link, LinkError};

/// Nothing waits longer for an answer. A server tells of a write and answers it at about the same time.
const PATIENCE: Duration = Duration::from_millis(20);

/// The writes that are under way, by what they write.
#[derive(Default)]
pub(super) struct Writes {
    under_way: Mutex<HashMap<Key, usize>>,
    answered: Notify,
}

impl Writes {
    fn begin(&self, key: &Key) -> Writing<'_> {
        *self.under_way.lock().entry(key.clone()).or_insert(0) += 1;
        Writing {
            writes: self,
            key: key.clone(),
        }
    }
}

/// A write that is under way.
struct Writing<'a> {
    writes: &'a Writes,
    key: Key,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut under_way = self.writes.under_way.lock();
        if let Some(count) = under_way.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.key);
            }
        }
        drop(under_way);
        self.writes.answered.notify_waiters();
    }
}

impl Cache {
    /// Creates an object, and takes in the answer.
    pub(crate) async fn create(&self, link: &Link, key: &Key, body: Vec<u8>) -> Result<Bytes, LinkError> {
        let path = self.resource.collection(&key.namespace);
        let (answer, _writing) = link.create_noting(&path, body, || self.writes.begin(key)).await?;
        self.remember(&answer);
        Ok(answer)
    }

    /// Replaces an object or, by another path, its status, and takes in the answer.
    pub(crate) async fn replace(
        &self,
        link: &Link,
        key: &Key,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, LinkError> {
        let (answer, _writing) = link.replace_noting(path, body, || self.writes.begin(key)).await?;
        self.remember(&answer);
        Ok(answer)
    }

    /// Deletes exactly the object that was seen, and takes in that it is gone or going.
    pub(crate) async fn delete(&self, link: &Link, seen: &Cached) -> Result<(), LinkError> {
        let options = DeleteOptions {
            uid: Some(seen.uid.clone()),
            resource_version: Some(seen.resource_version.clone()),
            propagation: None,
        };
        let key = &seen.key;
        let path = self.resource.object(&key.namespace, &key.name);
        let (answer, _writing) = link
            .delete_noting(&path, &options, || self.writes.begin(key))
            .await?;
        match answer {
            Deleted::Going(answer) => self.remember(&answer),
            Deleted::Gone => self.forget(key, &seen.uid),
        }
        Ok(())
    }

    /// Takes in the answer to a write. What cannot be read comes by the watch.
    pub(crate) fn remember(&self, answer: &[u8]) {
        if let Err(error) = self.learn(answer) {
            tracing::warn!(%error, "the answer to a write cannot be read");
        }
    }

    /// Waits until nothing is under way that could be what the watch tells here.
    pub(crate) async fn await_answers(&self, item: &Item<'_>) {
        if self.writes.under_way.lock().is_empty() {
            return;
        }
        let key = Key::new(&item.namespace, &item.name);
        let answers = async {
            loop {
                let answered = self.writes.answered.notified();
                if !self.writes.under_way.lock().contains_key(&key) {
                    return;
                }
                answered.await;
            }
        };
        // Late or not, it is told.
        let _ = tokio::time::timeout(PATIENCE, answers).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;
    use crate::resource::Resource;

    const WORK: &str =
        r#"{"metadata":{"name":"web","namespace":"karmada-es-m1","uid":"u","resourceVersion":"7"}}"#;

    async fn waited(cache: &Cache) -> Duration {
        let begun = Instant::now();
        cache.await_answers(&Item::parse(WORK).unwrap()).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_writes_is_told_at_once() {
        let cache = Cache::detached(&Resource::works());
        assert_eq!(waited(&cache).await, Duration::ZERO);
        let _other = cache.writes.begin(&Key::new("karmada-es-m2", "web"));
        assert_eq!(waited(&cache).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_being_written_waits_for_the_last_answer() {
        let cache = Arc::new(Cache::detached(&Resource::works()));
        for answered in [3, 8] {
            let cache = cache.clone();
            tokio::spawn(async move {
                let _writing = cache.writes.begin(&Key::new("karmada-es-m1", "web"));
                tokio::time::sleep(Duration::from_millis(answered)).await;
            });
        }
        tokio::task::yield_now().await;
        assert_eq!(waited(&cache).await, Duration::from_millis(8));
        assert_eq!(waited(&cache).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_is_not_waited_for() {
        let cache = Cache::detached(&Resource::works());
        let _writing = cache.writes.begin(&Key::new("karmada-es-m1", "web"));
        assert_eq!(waited(&cache).await, PATIENCE);
    }
}
