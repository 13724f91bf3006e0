//! How writes flow to a disk that takes its time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::disk::Disk;
use super::open_disk;
use crate::testing::{block_on, count_up, delete, put, show};
use crate::{Expect, From, WriteError};

#[test]
fn nobody_sees_a_write_before_it_is_durable() {
    block_on(async {
        let disk = Disk::default();
        let store = open_disk(&disk).unwrap();
        let first = put(&store, "/a", Expect::Absent, "1").await.unwrap();
        let mut watch = store.watch("/", From::Now, 10).unwrap();

        disk.hold();
        let mut winner = pin!(put(&store, "/a", Expect::Revision(first), "2"));
        let mut loser = pin!(put(&store, "/a", Expect::Revision(first), "3"));
        let mut absent = pin!(put(&store, "/a", Expect::Absent, "4"));
        let done = poll_fn(|context| {
            let done = [
                winner.as_mut().poll(context).is_ready(),
                loser.as_mut().poll(context).is_ready(),
                absent.as_mut().poll(context).is_ready(),
            ];
            Poll::Ready(done)
        });
        assert_eq!(
            done.await,
            [false; 3],
            "the loser waits too: it could not see what was in its way"
        );
        assert_eq!(show(&store.get("/a").unwrap()), "/a=1@2");
        assert_eq!(store.revision(), first);
        assert!(watch.try_next().is_none());

        disk.release();
        let (winner, loser, absent) = tokio::join!(winner, loser, absent);
        assert_eq!(winner.unwrap(), first + 1);
        for error in [loser.unwrap_err(), absent.unwrap_err()] {
            let WriteError::Conflict(Some(current)) = error else {
                panic!("{error}")
            };
            assert_eq!(show(&current), "/a=2@3");
        }
        assert_eq!(store.revision(), first + 1);
        store.clone().close().await;
    });
}

#[test]
fn writes_build_on_accepted_writes() {
    block_on(async {
        let disk = Disk::default();
        let store = open_disk(&disk).unwrap();
        put(&store, "/first", Expect::Any, "").await.unwrap();
        disk.hold();
        let (a, b, c, d, ()) = tokio::join!(
            biased;
            put(&store, "/a", Expect::Absent, "1"),
            delete(&store, "/a", Expect::Any),
            put(&store, "/a", Expect::Absent, "2"),
            put(&store, "/a", Expect::Any, "3"),
            async { disk.release() },
        );
        assert_eq!([a.unwrap(), b.unwrap(), c.unwrap(), d.unwrap()], [3, 4, 5, 6]);
        let entry = store.get("/a").unwrap();
        assert_eq!((show(&entry).as_str(), entry.created), ("/a=3@6", 5));
        assert!(store.handle.shared.intake.lock().unpublished.is_empty());
        store.close().await;
    });
}

#[test]
fn what_waits_together_is_synced_together() {
    block_on(async {
        let disk = Disk::default();
        let store = open_disk(&disk).unwrap();
        put(&store, "/first", Expect::Any, "").await.unwrap();
        let before = disk.syncs();
        disk.hold();
        let writes: Vec<_> = (0..200)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move {
                    put(&store, &format!("/{number}"), Expect::Absent, "x")
                        .await
                        .unwrap()
                })
            })
            .collect();
        // Every task has entered its write when this one runs again.
        tokio::task::yield_now().await;
        disk.release();
        let mut revisions = Vec::new();
        for write in writes {
            revisions.push(write.await.unwrap());
        }
        assert_eq!(revisions, (3..203).collect::<Vec<u64>>());
        assert!(
            disk.syncs() - before <= 6,
            "{} syncs for 200 writes",
            disk.syncs() - before
        );
        store.close().await;
    });
}

#[test]
fn more_writes_than_revisions_are_reserved_just_wait() {
    block_on(async {
        let disk = Disk::default();
        let store = open_disk(&disk).unwrap();
        put(&store, "/first", Expect::Any, "").await.unwrap();
        disk.hold();
        let count = crate::intake::RESERVE as usize + 500;
        let writes: Vec<_> = (0..count)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move {
                    put(&store, &format!("/{}", number % 50), Expect::Any, "x")
                        .await
                        .unwrap()
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(store.handle.shared.intake.lock().batch.len() <= crate::intake::RESERVE as usize);
        disk.release();
        let mut revisions = Vec::new();
        for write in writes {
            revisions.push(write.await.unwrap());
        }
        revisions.sort_unstable();
        revisions.dedup();
        assert_eq!(revisions.len(), count);
        store.close().await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_is_lost_on_the_way_to_the_disk() {
    let store = open_disk(&Disk::default()).unwrap();
    let (sum, _) = count_up(&store, 12, 15).await;
    assert_eq!(sum, 180);
    store.close().await;
}
