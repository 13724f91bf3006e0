//! Connects what is followed with the state, which is made from it.

use std::sync::{Arc, OnceLock, Weak};

use crate::cache::{Cache, Change};
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
