//! The store's recovery from a file that something has happened to.

use std::fs;
use std::sync::OnceLock;

use bytes::Bytes;
use machinery_store::{Change, Expect, Options, Range, Record, Store};

use super::{hold, way};
use crate::{Outcome, Target};

/// How many objects the file holds.
const OBJECTS: usize = 40;

pub(super) const TARGETS: &[Target] = &[Target {
    name: "store-recovery",
    about: "damage to a store's file: pairs of a place and what is written there, or where the file ends",
    seeds: || {
        vec![
            b"\x00\x00\x10\x00\xff".to_vec(),
            b"\x00\x20\x40\x00\x00\x00\x00\x80\x00\x01".to_vec(),
            b"\x7f\x00\x00\x00\x7f".to_vec(),
        ]
    },
    run: recover,
}];

struct Text(Bytes);

impl Record for Text {
    fn bytes(&self) -> &Bytes {
        &self.0
    }

    fn decode(bytes: Bytes) -> Result<Self, String> {
        Ok(Self(bytes))
    }
}

fn value(object: usize, round: usize) -> String {
    format!("value {round} of {object} {}", "x".repeat(object * 13))
}

/// A store that was closed in good order. Half of its objects were written twice.
fn good() -> Result<&'static [u8], String> {
    static GOOD: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let made = GOOD.get_or_init(|| {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = dir.path().join("store");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let store: Store<Text> =
                Store::open(&path, Options::default()).map_err(|error| error.to_string())?;
            for (round, step) in [(0, 1), (1, 2)] {
                for object in (0..OBJECTS).step_by(step) {
                    let change = Change::put(move |_| Text(value(object, round).into()));
                    store
                        .write(&format!("/o/{object:03}"), Expect::Any, change)
                        .await
                        .map_err(|error| error.to_string())?;
                }
            }
            store.close().await;
            Ok::<(), String>(())
        })?;
        fs::read(&path).map_err(|error| error.to_string())
    });
    made.as_deref().map_err(Clone::clone)
}

/// Five bytes each: a place, whose top bit says that the file ends there, and a byte to write.
fn damaged(good: &[u8], input: &[u8]) -> Vec<u8> {
    let mut file = good.to_vec();
    for edit in input.chunks_exact(5) {
        let place = u32::from_be_bytes([edit[0] & 0x7f, edit[1], edit[2], edit[3]]) as usize;
        if edit[0] & 0x80 != 0 {
            file.truncate(place % (file.len() + 1));
        } else if !file.is_empty() {
            // Most of the file is empty; its beginning holds what the rest is found by.
            let reach = if place.is_multiple_of(2) {
                file.len()
            } else {
                file.len().min(64 << 10)
            };
            file[place / 2 % reach] = edit[4];
        }
    }
    file
}

fn recover(input: &[u8]) -> Outcome {
    let good = good()?;
    let file = damaged(good, input);
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = dir.path().join("store");
    fs::write(&path, &file).map_err(|error| error.to_string())?;
    match Store::<Text>::open(&path, Options::default()) {
        Err(error) => {
            let left = fs::read(&path).map_err(|error| error.to_string())?;
            if let Some(place) = (0..left.len().max(file.len())).find(|at| left.get(*at) != file.get(*at)) {
                return Err(format!(
                    "{error}; but it was changed at byte {place} of {}",
                    file.len()
                ));
            }
            Ok(way(&error.to_string().replace(&path.display().to_string(), "")))
        }
        Ok(store) => {
            let found = check(&store)?;
            // An empty file is a new store; any other that opens holds every object, in one of its two states.
            hold(
                file.is_empty() || found == OBJECTS,
                "objects are missing, and nobody was told",
            )?;
            Ok(found as u64)
        }
    }
}

fn check(store: &Store<Text>) -> Result<usize, String> {
    let page = store
        .range(Range {
            prefix: "/o/",
            after: None,
            limit: 0,
            at: None,
        })
        .map_err(|error| error.to_string())?;
    for entry in &page.entries {
        let object: usize = entry
            .key
            .trim_start_matches("/o/")
            .parse()
            .map_err(|_| "a key that was never written")?;
        let text = String::from_utf8_lossy(entry.value.bytes());
        hold(
            (0..2).any(|round| text == value(object, round)),
            "a value that was never written",
        )?;
    }
    Ok(page.entries.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undamaged_file_opens() {
        assert_eq!(recover(b""), Ok(OBJECTS as u64));
    }
}
