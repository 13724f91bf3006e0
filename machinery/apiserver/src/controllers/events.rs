//! Events live for an hour after their last change.

use std::collections::BTreeSet;

use jiff::Timestamp;
use machinery_store::Expect;

use crate::controllers::resource_of;
use crate::meta;
use crate::object::Stored;
use crate::ops::remove;
use crate::server::Inner;

/// How long an event is kept, in seconds.
const KEPT: i64 = 3600;

/// When which event goes, the first to go first.
#[derive(Debug, Default)]
pub(super) struct Expiries(BTreeSet<(i64, String, u64)>);

impl Expiries {
    /// Takes note of an event's write.
    pub(super) fn note(&mut self, server: &Inner, entry: &Stored) {
        let now = server.now().as_second();
        // What was found at the start is as old as it says; what was written just now is new.
        let age_known = entry.value.edition() == 0;
        let written = if age_known {
            let content = entry.value.content();
            let stamps = [
                meta::text(&content, "creationTimestamp"),
                content["lastTimestamp"].as_str().unwrap_or(""),
                content["series"]["lastObservedTime"].as_str().unwrap_or(""),
            ];
            stamps
                .iter()
                .filter_map(|s| s.parse::<Timestamp>().ok())
                .map(Timestamp::as_second)
                .max()
                .unwrap_or(now)
        } else {
            now
        };
        self.0
            .insert((written + KEPT, entry.key.to_string(), entry.revision));
    }

    /// Removes what is due and was not written again since.
    pub(super) async fn sweep(&mut self, server: &Inner) {
        let now = server.now().as_second();
        while self.0.first().is_some_and(|(due, _, _)| *due <= now) {
            let Some((_, key, revision)) = self.0.pop_first() else {
                return;
            };
            if let (Some(stored), Some(resource)) = (server.store.get(&key), resource_of(server, &key))
                && stored.revision == revision
            {
                let last = resource.content(&stored.value);
                // A lost race means that somebody wrote it again: it is noted anew.
                let _ = remove(server, &resource, &key, Expect::Revision(revision), last).await;
            }
        }
    }
}
