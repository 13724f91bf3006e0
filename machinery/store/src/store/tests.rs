//! How a store in memory behaves.

use crate::testing::{Text, block_on, count_up, delete, drain, put, show, show_page};
use crate::{Change, Expect, From, Next, Options, Range, ReadError, Store, WriteError};

mod model;

#[test]
fn expectations_decide() {
    // (what exists, expectation, put or delete, accepted)
    let table = [
        (false, Expect::Absent, "put", true),
        (false, Expect::Any, "put", true),
        (false, Expect::Revision(2), "put", false),
        (false, Expect::Absent, "delete", false),
        (false, Expect::Any, "delete", false),
        (false, Expect::Revision(2), "delete", false),
        (true, Expect::Absent, "put", false),
        (true, Expect::Any, "put", true),
        (true, Expect::Revision(2), "put", true),
        (true, Expect::Revision(1), "put", false),
        (true, Expect::Absent, "delete", false),
        (true, Expect::Any, "delete", true),
        (true, Expect::Revision(2), "delete", true),
        (true, Expect::Revision(3), "delete", false),
    ];
    for (exists, expect, what, accepted) in table {
        block_on(async {
            let store = Store::memory();
            if exists {
                assert_eq!(put(&store, "/a", Expect::Absent, "old").await.unwrap(), 2);
            }
            let result = match what {
                "put" => put(&store, "/a", expect, "new").await,
                _ => delete(&store, "/a", expect).await,
            };
            let case = format!("exists {exists}, {expect:?}, {what}");
            match result {
                Ok(revision) => {
                    assert!(accepted, "{case}");
                    assert_eq!(store.revision(), revision, "{case}");
                    assert_eq!(store.get("/a").is_some(), what == "put", "{case}");
                }
                Err(WriteError::Conflict(current)) => {
                    assert!(!accepted, "{case}");
                    assert_eq!(current.map(|entry| entry.revision), exists.then_some(2), "{case}");
                    assert_eq!(
                        store.get("/a").map(|entry| show(&entry)),
                        exists.then(|| "/a=old@2".into()),
                        "{case}"
                    );
                }
                Err(other) => panic!("{case}: {other}"),
            }
        });
    }
}

#[test]
fn a_key_that_comes_back_is_created_anew() {
    block_on(async {
        let store = Store::memory();
        put(&store, "/a", Expect::Absent, "1").await.unwrap();
        put(&store, "/a", Expect::Any, "2").await.unwrap();
        assert_eq!(store.get("/a").unwrap().created, 2);
        let gone = store
            .write("/a", Expect::Any, Change::delete(|_| Text::new("last")))
            .await
            .unwrap();
        assert_eq!(
            (gone.entry.created, gone.revision, gone.entry.value.as_str()),
            (2, 4, "last")
        );
        assert_eq!(show(&gone.previous.unwrap()), "/a=2@3");
        put(&store, "/a", Expect::Absent, "3").await.unwrap();
        assert_eq!(store.get("/a").unwrap().created, 5);
    });
}

#[test]
fn pages_follow_each_other() {
    block_on(async {
        let store = Store::memory();
        for key in ["/a/1", "/a/2", "/a/3", "/a0", "/b/1"] {
            put(&store, key, Expect::Absent, "x").await.unwrap();
        }
        type Case = (
            &'static str,
            Option<&'static str>,
            usize,
            &'static [&'static str],
            usize,
        );
        // (prefix, after, limit, keys, remaining)
        let table: [Case; 11] = [
            ("", None, 0, &["/a/1", "/a/2", "/a/3", "/a0", "/b/1"], 0),
            ("/a/", None, 0, &["/a/1", "/a/2", "/a/3"], 0),
            ("/a/", None, 2, &["/a/1", "/a/2"], 1),
            ("/a/", Some("/a/2"), 2, &["/a/3"], 0),
            ("/a/", Some("/a/25"), 1, &["/a/3"], 0),
            ("/a/", Some("/a/3"), 0, &[], 0),
            ("/a", Some("/a/3"), 0, &["/a0"], 0),
            ("/a/", Some("/a0"), 0, &[], 0),
            ("/a/", Some("/zzz"), 5, &[], 0),
            ("/a/", Some(""), 1, &["/a/1"], 2),
            ("/c", None, 3, &[], 0),
        ];
        for (prefix, after, limit, keys, remaining) in table {
            let page = store
                .range(Range {
                    prefix,
                    after,
                    limit,
                    at: None,
                })
                .unwrap();
            let found: Vec<&str> = page.entries.iter().map(|entry| &*entry.key).collect();
            assert_eq!(
                (&*found, page.remaining),
                (keys, remaining),
                "{prefix:?} after {after:?} limit {limit}"
            );
        }
    });
}

#[test]
fn a_page_can_be_read_as_of_an_older_revision() {
    block_on(async {
        let store = Store::memory();
        put(&store, "/a", Expect::Any, "1").await.unwrap();
        put(&store, "/b", Expect::Any, "1").await.unwrap();
        put(&store, "/a", Expect::Any, "2").await.unwrap();
        delete(&store, "/b", Expect::Any).await.unwrap();
        put(&store, "/c", Expect::Any, "1").await.unwrap();
        for (at, expected) in [
            (0, ""),
            (1, ""),
            (2, "/a=1@2"),
            (3, "/a=1@2 /b=1@3"),
            (4, "/a=2@4 /b=1@3"),
            (5, "/a=2@4"),
            (6, "/a=2@4 /c=1@6"),
        ] {
            let page = store
                .range(Range {
                    at: Some(at),
                    ..Range::default()
                })
                .unwrap();
            assert_eq!((show_page(&page).as_str(), page.revision), (expected, at));
        }
        let future = store.range(Range {
            at: Some(7),
            ..Range::default()
        });
        assert_eq!(
            future.err(),
            Some(ReadError::Future {
                requested: 7,
                current: 6
            })
        );
        store.compact(4);
        let old = store.range(Range {
            at: Some(3),
            ..Range::default()
        });
        assert_eq!(
            old.err(),
            Some(ReadError::Compacted {
                requested: 3,
                oldest: 4,
                current: 6
            })
        );
        assert_eq!(
            show_page(
                &store
                    .range(Range {
                        at: Some(4),
                        ..Range::default()
                    })
                    .unwrap()
            ),
            "/a=2@4 /b=1@3"
        );
        assert!(store.watch("/", From::After(3), 1).is_err());
        assert_eq!(drain(&mut store.watch("/", From::After(4), 1).unwrap()).len(), 2);
    });
}

#[test]
fn history_is_bounded_by_count_and_by_bytes() {
    // (events, bytes, size of a value, how far back the history may reach after 50 writes to one key)
    for (history_events, history_bytes, size, most) in [
        (10, usize::MAX, 10, 10),
        (1000, 10_000, 900, 10),
        (1000, 0, 10, 0),
        (0, usize::MAX, 10, 0),
    ] {
        block_on(async {
            let store = Store::memory_with(&Options {
                history_events,
                history_bytes,
                ..Options::default()
            });
            for _ in 0..50 {
                put(&store, "/a", Expect::Any, &"x".repeat(size)).await.unwrap();
            }
            let known = (0..=store.revision())
                .rev()
                .take_while(|at| store.watch("/", From::After(*at), 1).is_ok());
            let reach = known.count() - 1;
            assert!(
                reach <= most && reach >= most.saturating_sub(1),
                "{history_events} {history_bytes}: {reach}"
            );
            assert_eq!(store.range(Range::default()).unwrap().entries.len(), 1);
        });
    }
}

#[test]
fn a_watch_gets_the_events_of_its_prefix_and_no_others() {
    let keys = [
        "/apps/deployments/a/x",
        "/apps/deployments/ab/x",
        "/apps/daemonsets/a/x",
        "/pods/a/x",
        "odd",
        "/",
    ];
    for prefix in [
        "",
        "/",
        "/apps/",
        "/apps",
        "/apps/d",
        "/apps/deployments/",
        "/apps/deployments/a",
        "/apps/deployments/a/",
    ]
    .into_iter()
    .chain(keys)
    {
        block_on(async {
            let store = Store::memory();
            let mut watch = store.watch(prefix, From::Now, 10).unwrap();
            for key in keys {
                put(&store, key, Expect::Any, "1").await.unwrap();
            }
            let expected: Vec<&str> = keys.into_iter().filter(|key| key.starts_with(prefix)).collect();
            let seen = drain(&mut watch);
            let replayed = drain(&mut store.watch(prefix, From::After(1), 1).unwrap());
            assert_eq!(seen, replayed, "{prefix:?}");
            let seen: Vec<&str> = seen
                .iter()
                .map(|event| event[1..].split('=').next().unwrap())
                .collect();
            assert_eq!(seen, expected, "{prefix:?}");
            assert_eq!(watch.progress(), store.revision());
            drop(watch);
            assert!(store.handle.shared.has_no_watches(), "{prefix:?}");
        });
    }
}

#[test]
fn a_slow_watch_is_told_and_nobody_else_notices() {
    block_on(async {
        let store = Store::memory();
        let mut slow = store.watch("/a/", From::Now, 2).unwrap();
        let mut other = store.watch("/", From::Now, 10).unwrap();
        for text in ["1", "2", "3", "4"] {
            put(&store, "/a/x", Expect::Any, text).await.unwrap();
        }
        assert_eq!(
            drain(&mut slow),
            ["+/a/x=1@2", "+/a/x=2@3 was /a/x=1@2", "Lagged"]
        );
        assert!(matches!(slow.next().await, Next::Lagged), "it stays over");
        assert_eq!(slow.progress(), 3);
        assert_eq!(drain(&mut other).len(), 4);
    });
}

#[test]
fn progress_counts_only_what_was_returned() {
    block_on(async {
        let store = Store::memory();
        put(&store, "/a", Expect::Any, "1").await.unwrap();
        put(&store, "/b", Expect::Any, "1").await.unwrap();
        let mut watch = store.watch("/a", From::After(1), 10).unwrap();
        assert_eq!(watch.progress(), 1);
        assert!(matches!(watch.next().await, Next::Event(_)));
        assert_eq!(watch.progress(), 3, "what happened elsewhere counts");
        put(&store, "/b", Expect::Any, "2").await.unwrap();
        assert_eq!(watch.progress(), 4);
        put(&store, "/a", Expect::Any, "2").await.unwrap();
        put(&store, "/b", Expect::Any, "3").await.unwrap();
        assert!(watch.progress() < 5);
        assert!(matches!(watch.next().await, Next::Event(_)));
        assert_eq!(watch.progress(), 6);
        drop(store);
        assert!(matches!(watch.next().await, Next::Closed));
        assert_eq!(watch.progress(), 5);
    });
}

#[test]
fn a_closed_store_can_be_read_only() {
    block_on(async {
        let store = Store::memory();
        put(&store, "/a", Expect::Any, "1").await.unwrap();
        let mut early = store.watch("/", From::After(1), 10).unwrap();
        store.clone().close().await;
        assert_eq!(drain(&mut early), ["+/a=1@2", "Closed"]);
        assert!(matches!(
            put(&store, "/a", Expect::Any, "2").await,
            Err(WriteError::Closed)
        ));
        assert_eq!(show(&store.get("/a").unwrap()), "/a=1@2");
        let mut late = store.watch("/", From::Now, 10).unwrap();
        assert!(matches!(late.next().await, Next::Closed));
    });
}

#[test]
fn what_is_too_large_is_refused() {
    block_on(async {
        let store = Store::memory();
        let long_key = "k".repeat(crate::MAX_KEY_BYTES + 1);
        let error = put(&store, &long_key, Expect::Any, "").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the key has 4097 bytes, more than the 4096 that the store keeps"
        );
        let error = put(&store, "/a", Expect::Any, &"v".repeat(crate::MAX_VALUE_BYTES + 1))
            .await
            .unwrap_err();
        assert!(
            matches!(error, WriteError::TooLarge { what: "value", .. }),
            "{error}"
        );
        assert!(store.get("/a").is_none());
        put(&store, "/a", Expect::Absent, "1").await.unwrap();
    });
}

#[test]
fn a_closure_that_panics_uses_up_its_revision_and_nothing_else() {
    let store = Store::<Text>::memory();
    let other = store.clone();
    let panicked = std::thread::spawn(move || {
        block_on(other.write("/a", Expect::Any, Change::put(|_| panic!("on purpose")))).map(drop)
    });
    assert!(panicked.join().is_err());
    assert_eq!(store.revision(), 1);
    assert_eq!(block_on(put(&store, "/a", Expect::Absent, "1")).unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_is_lost() {
    let store = Store::memory();
    let mut watch = store.watch("/counters/", From::Now, 10_000).unwrap();
    let (sum, tries) = count_up(&store, 16, 100).await;
    assert_eq!(sum, 1600);
    assert!(tries >= 1600);
    assert_eq!(drain(&mut watch).len(), 1600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_watch_that_starts_among_writes_misses_and_repeats_nothing() {
    let store = Store::memory();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for number in 0..2000u64 {
                put(&store, "/x", Expect::Any, &number.to_string()).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let watchers: Vec<_> = (0..8)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let (mut watch, mut last) = if number % 2 == 0 {
                    let (page, watch) = store.list_and_watch("/x", 10_000);
                    (watch, page.revision)
                } else {
                    let revision = store.revision();
                    tokio::task::yield_now().await;
                    (
                        store.watch("/x", From::After(revision), 10_000).unwrap(),
                        revision,
                    )
                };
                while last < 2001 {
                    let Next::Event(event) = watch.next().await else {
                        panic!("over at {last}")
                    };
                    assert_eq!(event.revision, last + 1);
                    last = event.revision;
                }
            })
        })
        .collect();
    writer.await.unwrap();
    for watcher in watchers {
        watcher.await.unwrap();
    }
}

#[test]
fn an_empty_store_is_tiny() {
    assert!(
        size_of::<super::Shared<Text>>() < 600,
        "{}",
        size_of::<super::Shared<Text>>()
    );
}
