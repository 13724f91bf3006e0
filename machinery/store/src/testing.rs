//! What the tests of this crate share.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Change, Entry, Event, Expect, Next, Page, Record, Store, Watch, WriteError};

/// A value that is text. Text that starts with `!` cannot be read back.
pub(crate) struct Text(Bytes);

impl Text {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(Bytes::from(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap()
    }
}

impl Record for Text {
    fn bytes(&self) -> &Bytes {
        &self.0
    }

    fn decode(bytes: Bytes) -> Result<Self, String> {
        if bytes.starts_with(b"!") {
            return Err("it starts with an exclamation mark".into());
        }
        Ok(Self(bytes))
    }
}

pub(crate) async fn put(
    store: &Store<Text>,
    key: &str,
    expect: Expect,
    text: &str,
) -> Result<u64, WriteError<Text>> {
    let text = text.to_owned();
    store
        .write(key, expect, Change::put(|_| Text::new(text)))
        .await
        .map(|written| written.revision)
}

pub(crate) async fn delete(store: &Store<Text>, key: &str, expect: Expect) -> Result<u64, WriteError<Text>> {
    let change = Change::delete(|revision| Text::new(format!("gone at {revision}")));
    store
        .write(key, expect, change)
        .await
        .map(|written| written.revision)
}

/// An entry as `key=value@revision`.
pub(crate) fn show(entry: &Entry<Text>) -> String {
    format!("{}={}@{}", entry.key, entry.value.as_str(), entry.revision)
}

pub(crate) fn show_page(page: &Page<Text>) -> String {
    page.entries
        .iter()
        .map(|entry| show(entry))
        .collect::<Vec<_>>()
        .join(" ")
}

/// An event as `+entry` or `-entry`, and what it replaced.
pub(crate) fn show_event(event: &Event<Text>) -> String {
    let sign = match event.kind {
        crate::Kind::Put => '+',
        crate::Kind::Delete => '-',
    };
    let was = event
        .previous
        .as_ref()
        .map_or(String::new(), |entry| format!(" was {}", show(entry)));
    format!("{sign}{}{was}", show(&event.entry))
}

/// Everything that a watch has now; its end as a word.
pub(crate) fn drain(watch: &mut Watch<Text>) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(next) = watch.try_next() {
        match next {
            Next::Event(event) => seen.push(show_event(&event)),
            end => {
                seen.push(format!("{end:?}"));
                break;
            }
        }
    }
    seen
}

/// Runs a future on a small runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Many tasks add one to a few counters, each from what it read; returns the counters' sum and the writes tried.
pub(crate) async fn count_up(store: &Store<Text>, tasks: usize, rounds: usize) -> (usize, usize) {
    let tries = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let (store, tries) = (store.clone(), tries.clone());
            tokio::spawn(async move {
                for round in 0..rounds {
                    let key = format!("/counters/{}", (task + round) % 3);
                    loop {
                        tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let current = store.get(&key);
                        let (expect, count) = current.map_or((Expect::Absent, 0), |entry| {
                            (
                                Expect::Revision(entry.revision),
                                entry.value.as_str().parse::<usize>().unwrap(),
                            )
                        });
                        match put(&store, &key, expect, &(count + 1).to_string()).await {
                            Ok(_) => break,
                            Err(WriteError::Conflict(now)) => {
                                let seen = match expect {
                                    Expect::Revision(revision) => revision,
                                    _ => 0,
                                };
                                assert!(
                                    now.unwrap().revision > seen,
                                    "the conflict shows what was in the way"
                                );
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in running {
        task.await.unwrap();
    }
    let (page, _) = store.list_and_watch("/counters/", 1);
    let sum = page
        .entries
        .iter()
        .map(|entry| entry.value.as_str().parse::<usize>().unwrap())
        .sum();
    (sum, tries.load(std::sync::atomic::Ordering::Relaxed))
}
