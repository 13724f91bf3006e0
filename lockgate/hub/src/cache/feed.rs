//! What the watch tells a cache.

use super::{Cache, Change, Item, News, State, version};
use crate::link::LinkError;

/// The watch waits while more than this is untold.
const MAX_UNTOLD: usize = 4096;

impl Cache {
    /// A list is about to be asked for.
    pub(crate) fn list_begins(&self) {
        self.state.write().list_begins();
    }

    /// The list's first page came, and says how new the list is.
    pub(crate) fn list_is_at(&self, resource_version: &str) {
        self.state.write().list_is_at(version(resource_version));
    }

    /// An object of the list that began last.
    pub(crate) fn list_item(&self, text: &str) -> Result<(), LinkError> {
        let item = Item::parse(text)?;
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        self.update(|state| state.list_item(id, &item.uid, rank, |key| self.cached(&item, key)));
        Ok(())
    }

    /// The list is complete: what it did not hold is gone.
    pub(crate) fn list_ends(&self, resource_version: &str) {
        {
            let mut state = self.state.write();
            let gone = state.list_ends(version(resource_version));
            self.outbox.push(gone.into_iter().map(News::Change));
            self.outbox.push([News::Seen(state.streamed()), News::Synced]);
        }
        self.outbox.tell();
    }

    /// An object of the watch was created or changed.
    pub(crate) fn watch_item(&self, item: &Item<'_>) {
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        let terminating = item.lifetime.terminating();
        self.step(rank, |state| {
            state.watch_item(id, &item.uid, rank, terminating, |key| self.cached(item, key))
        });
    }

    /// An object of the watch was deleted.
    pub(crate) fn watch_deleted(&self, item: &Item<'_>) {
        let id = (&*item.namespace, &*item.name);
        let rank = version(&item.resource_version);
        self.step(rank, |state| state.watch_deleted(id, &item.uid, rank));
    }

    /// The watch says that nothing else happened up to here. False when the server's history went back in time.
    pub(crate) fn watch_bookmark(&self, text: &str) -> Result<bool, LinkError> {
        let rank = version(&Item::parse(text)?.resource_version);
        if rank < self.streamed() {
            return Ok(false);
        }
        self.step(rank, |_| None);
        Ok(true)
    }

    /// Where a watch goes on.
    pub(crate) fn streamed(&self) -> u64 {
        self.state.read().streamed()
    }

    /// Waits while too much is untold, because somebody else tells it more slowly than the watch brings it.
    pub(crate) async fn breathe(&self) {
        while self.outbox.len() > MAX_UNTOLD {
            tokio::task::yield_now().await;
        }
        tokio::task::consume_budget().await;
    }

    pub(crate) fn set_trouble(&self, trouble: Option<LinkError>) {
        self.trouble.send_replace(trouble);
    }

    /// Nobody wants to be told any more.
    pub(crate) fn hush(&self) {
        self.outbox.hush();
    }

    fn step(&self, rank: u64, f: impl FnOnce(&mut State) -> Option<Change>) {
        {
            let mut state = self.state.write();
            let change = f(&mut state);
            state.stream_to(rank);
            let seen = News::Seen(state.streamed());
            self.outbox
                .push(change.map(News::Change).into_iter().chain([seen]));
        }
        self.outbox.tell();
    }
}
