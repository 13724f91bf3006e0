//! Deletes what a collection holds, many objects at once and a page at a time: they share their way to the disk, and whoever else
//! needs the controllers has its turn in between.

use futures::StreamExt;
use machinery_store::Range;

use crate::object::Stored;
use crate::ops::WriteOptions;
use crate::ops::delete::{DeleteOptions, delete};
use crate::resource::Resource;
use crate::server::Inner;
use crate::status::ApiError;

/// How many objects are looked at in one step, and how many may go in one turn.
const PAGE: usize = 512;
/// How many are on the way to the disk at once.
pub(super) const AT_ONCE: usize = 64;

/// A turn of deletions.
#[derive(Default)]
pub(super) struct Sweep {
    deleted: usize,
    /// What is still there, each object for a reason of its own.
    pub(super) left: Vec<Stored>,
    /// Why some of it is: refusals, in no particular order.
    pub(super) failures: Vec<ApiError>,
}

impl Sweep {
    /// Whether the turn is over before everything was looked at.
    pub(super) fn is_over(&self) -> bool {
        self.deleted >= PAGE
    }

    /// Deletes the objects of `resource` in `namespace`, or in all, until the turn is over. One that cannot be deleted holds up
    /// none of the others.
    pub(super) async fn collection(
        &mut self,
        server: &Inner,
        (resource, namespace): (&Resource, &str),
        wanted: &DeleteOptions,
        options: &WriteOptions,
    ) {
        let prefix = resource.collection(namespace);
        let mut after: Option<String> = None;
        while !self.is_over() {
            let range = Range {
                prefix: &prefix,
                after: after.as_deref(),
                limit: PAGE,
                at: None,
            };
            let Ok(page) = server.store.range(range) else {
                return;
            };
            let deletions: Vec<_> = page
                .entries
                .iter()
                .map(|entry| let_go(server, resource, entry, wanted, options))
                .collect();
            let mut deletions = futures::stream::iter(deletions).buffer_unordered(AT_ONCE);
            while let Some((deleted, failure)) = deletions.next().await {
                self.deleted += deleted;
                self.failures.extend(failure);
            }
            let present = page
                .entries
                .iter()
                .filter_map(|entry| server.store.get(&entry.key));
            self.left.extend(present);
            match page.entries.last() {
                Some(last) if page.remaining > 0 => after = Some(last.key.to_string()),
                _ => return,
            }
        }
    }
}

/// Deletes one object, unless it is going already and waits for others. Says whether that was news, or why it did not happen.
async fn let_go(
    server: &Inner,
    resource: &Resource,
    entry: &Stored,
    wanted: &DeleteOptions,
    options: &WriteOptions,
) -> (usize, Option<ApiError>) {
    let links = entry.value.links();
    let is_going = links.deletion_timestamp.is_some();
    if is_going && !links.finalizers.is_empty() {
        return (0, None);
    }
    let (namespace, name) = resource.split_key(&entry.key);
    match delete(server, resource, namespace, name, wanted, options).await {
        Ok(_) => (usize::from(!is_going), None),
        Err(error) if error.is_not_found() => (0, None),
        Err(error) => (0, Some(error)),
    }
}
