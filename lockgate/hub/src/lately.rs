//! What was read lately. Within a moment several passes look at one object, and to read it takes longer than what most of them
//! do with it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::cache::Cached;
use crate::state;

/// How many are kept: enough for what is in hand at a time, and little beside all that are in memory packed.
const KEPT: usize = 128;
/// How much text they may have together. Read, an object takes several times as much.
const TEXT: usize = 1 << 20;

/// The objects of one type that were read last, the newest first, each with the version that it was read from.
pub(crate) struct Lately<T> {
    read: Mutex<Read<T>>,
}

struct Read<T> {
    objects: VecDeque<(Arc<Cached>, Arc<T>)>,
    text: usize,
}

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Self {
            read: Mutex::new(Read {
                objects: VecDeque::new(),
                text: 0,
            }),
        }
    }
}

impl<T: DeserializeOwned> Lately<T> {
    /// An object as its type, like [`state::parse`].
    pub(crate) fn parse(&self, cached: &Arc<Cached>) -> Option<Arc<T>> {
        if let Some(known) = self.read.lock().find(cached) {
            return Some(known);
        }
        let object: Arc<T> = Arc::new(state::parse(cached)?);
        let over = self.read.lock().put(cached, &object);
        // Outside the lock: it may be the last to hold them.
        drop(over);
        Some(object)
    }
}

impl<T> Read<T> {
    fn find(&self, cached: &Arc<Cached>) -> Option<Arc<T>> {
        let mut known = self.objects.iter();
        known
            .find(|(from, _)| Arc::ptr_eq(from, cached))
            .map(|(_, object)| object.clone())
    }

    /// Puts one in, and gives those for which there is no room any more.
    fn put(&mut self, cached: &Arc<Cached>, object: &Arc<T>) -> Vec<(Arc<Cached>, Arc<T>)> {
        self.objects.push_front((cached.clone(), object.clone()));
        self.text += cached.size();
        let mut over = Vec::new();
        while self.objects.len() > KEPT || self.text > TEXT && self.objects.len() > 1 {
            let Some(oldest) = self.objects.pop_back() else {
                break;
            };
            self.text -= oldest.0.size();
            over.push(oldest);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use lockgate_api::Binding;

    use super::*;
    use crate::cache::{Cache, Key};
    use crate::resource::Resource;

    fn put(cache: &Cache, name: &str, version: usize, replicas: usize) -> Arc<Cached> {
        let body = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"{name}","resourceVersion":"{version}"}},
            "spec":{{"resource":{{"apiVersion":"v1","kind":"ConfigMap"}},"replicas":{replicas}}}}}"#
        );
        cache.learn(body.as_bytes()).unwrap();
        cache.get(&Key::new("n", name)).unwrap()
    }

    #[test]
    fn one_version_is_read_once_and_the_next_again() {
        let (cache, lately) = (
            Cache::detached(&Resource::resource_bindings()),
            Lately::<Binding>::default(),
        );
        let old = put(&cache, "a", 1, 1);
        let read = lately.parse(&old).unwrap();
        assert!(Arc::ptr_eq(&read, &lately.parse(&old).unwrap()));
        let new = put(&cache, "a", 2, 2);
        assert_eq!(lately.parse(&new).unwrap().spec.replicas, 2);
        assert_eq!(lately.parse(&old).unwrap().spec.replicas, 1);
    }

    #[test]
    fn what_was_read_long_ago_is_let_go() {
        let (cache, lately) = (
            Cache::detached(&Resource::resource_bindings()),
            Lately::<Binding>::default(),
        );
        let first = put(&cache, "first", 1, 1);
        let read = Arc::downgrade(&lately.parse(&first).unwrap());
        for number in 0..KEPT {
            assert!(read.upgrade().is_some(), "{number}");
            lately
                .parse(&put(&cache, &format!("b{number}"), number + 2, 1))
                .unwrap();
        }
        assert!(read.upgrade().is_none());
        assert_eq!(lately.read.lock().objects.len(), KEPT);
    }

    #[test]
    fn large_ones_are_few() {
        let (cache, lately) = (
            Cache::detached(&Resource::resource_bindings()),
            Lately::<Binding>::default(),
        );
        let cluster = format!(r#"{{"name":"{}","replicas":1}}"#, "m".repeat(1000));
        let clusters = vec![cluster; 300].join(",");
        for number in 1..9 {
            let body = format!(
                r#"{{"metadata":{{"name":"b{number}","namespace":"n","uid":"b{number}","resourceVersion":"{number}"}},
                "spec":{{"resource":{{"apiVersion":"v1","kind":"ConfigMap"}},"clusters":[{clusters}]}}}}"#
            );
            cache.learn(body.as_bytes()).unwrap();
            lately
                .parse(&cache.get(&Key::new("n", &format!("b{number}"))).unwrap())
                .unwrap();
        }
        let read = lately.read.lock();
        assert_eq!(read.objects.len(), 3);
        let sizes = read.objects.iter().map(|(from, _)| from.size());
        assert_eq!(read.text, sizes.sum::<usize>());
    }
}
