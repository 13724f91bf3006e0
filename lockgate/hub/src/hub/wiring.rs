//! Connects what is followed with the state, which is made from it.

use std::sync::{Arc, OnceLock, Weak};

use crate::cache::{Cache, Cached, Change};
use crate::link::Link;
use crate::resource::Resource;
use crate::state::State;
use crate::watch::{Following, follow};

/// Where changes are told. Clones tell the same state.
#[derive(Clone, Default)]
pub(crate) struct Wiring(Arc<OnceLock<Weak<State>>>);

impl Wiring {
    /// Follows a resource of the hub; what is told before the state is there is read later.
    pub(super) fn follow(
        &self,
        followed: &mut Vec<Following>,
        link: &Link,
        resource: Resource,
        told: fn(&State, &Change),
    ) -> Arc<Cache> {
        let following = self.begin(link, &resource, told);
        let cache = following.cache.clone();
        followed.push(following);
        cache
    }

    /// Follows a resource of the hub from now on.
    pub(crate) fn begin(&self, link: &Link, resource: &Resource, told: fn(&State, &Change)) -> Following {
        let wiring = self.clone();
        follow(link, resource, "", None, move |change| {
            if let Some(state) = wiring.state() {
                told(&state, change);
            }
        })
    }

    /// The state that changes are told to, while it is there.
    pub(crate) fn state(&self) -> Option<Arc<State>> {
        self.0.get().and_then(Weak::upgrade)
    }

    /// From here on changes are told to this state.
    pub(super) fn connect(&self, state: &Arc<State>) {
        let _ = self.0.set(Arc::downgrade(state));
    }
}

/// Tells of an object, and again for as long as it is told of by its watch at the same time: the newest is told last, as what
/// became of the one before, so that nothing is left of that.
pub(super) fn tell_newest(cache: &Cache, first: Arc<Cached>, told: &dyn Fn(&Change)) {
    let mut change = Change {
        old: None,
        new: Some(first),
        own: false,
    };
    while let Some(now) = change.new.clone() {
        told(&change);
        let newest = cache.get(&now.key);
        if newest
            .as_ref()
            .is_some_and(|newest| newest.resource_version == now.resource_version)
        {
            return;
        }
        change.old = Some(now);
        change.new = newest;
    }
    told(&change);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::cache::Key;

    #[test]
    fn what_changes_while_it_is_told_is_told_as_that() {
        let cache = Cache::detached(&Resource::resource_bindings());
        let key = Key::new("shop", "web-deployment");
        let learn = |version: usize| {
            let body = format!(
                r#"{{"metadata":{{"name":"web-deployment","namespace":"shop","uid":"u","resourceVersion":"{version}"}}}}"#
            );
            cache.learn(body.as_bytes()).unwrap();
        };
        learn(1);
        let told = RefCell::new(Vec::new());
        tell_newest(&cache, cache.get(&key).unwrap(), &|change| {
            let version = |cached: &Option<Arc<Cached>>| cached.as_ref().map(|cached| cached.version());
            told.borrow_mut()
                .push((version(&change.old), version(&change.new)));
            match told.borrow().len() {
                1 => learn(2),
                2 => cache.forget(&key, "u"),
                _ => {}
            }
        });
        assert_eq!(
            *told.borrow(),
            [(None, Some(1)), (Some(1), Some(2)), (Some(2), None)]
        );
    }
}
