//! A durable store on a disk that breaks: what was acknowledged is there afterwards, and nothing is there in part.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::{Dice, Disk};
use super::open_disk;
use crate::journal::{Journal, Loaded};
use crate::testing::{Text, block_on, show};
use crate::{Change, Expect, From, Range, Store, WriteError};

/// What the writers of all runs were given and told.
#[derive(Default)]
struct Ledger {
    /// By revision: the key and what it held after that write.
    accepted: BTreeMap<u64, (String, Option<String>)>,
    /// The newest revision that was given.
    given: u64,
    acknowledged: u64,
}

impl Ledger {
    fn state_at(&self, revision: u64) -> Vec<String> {
        let mut state = BTreeMap::new();
        for (key, value) in self.accepted.range(..=revision).map(|(_, write)| write) {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        state
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }
}

async fn write(
    store: &Store<Text>,
    ledger: &Arc<Mutex<Ledger>>,
    key: String,
    dice: u64,
) -> Result<(), WriteError<Text>> {
    let (log, logged_key) = (ledger.clone(), key.clone());
    let remove = dice.is_multiple_of(4);
    let size = dice % 700;
    let make = move |revision: u64| {
        let text = format!("{revision}{}", " ".repeat(size as usize));
        let after = (!remove).then(|| text.clone());
        let mut log = log.lock();
        assert!(revision > log.given, "revision {revision} after {}", log.given);
        log.given = revision;
        log.accepted.insert(revision, (logged_key, after));
        Text::new(text)
    };
    let change = if remove {
        Change::delete(make)
    } else {
        Change::put(make)
    };
    let written = match store.write(&key, Expect::Any, change).await {
        Ok(written) => written,
        // There was nothing to delete.
        Err(WriteError::Conflict(None)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut ledger = ledger.lock();
    ledger.acknowledged = ledger.acknowledged.max(written.revision);
    Ok(())
}

/// Writes in groups of four until something fails, or for some rounds; says whether it failed.
async fn work(store: &Store<Text>, ledger: &Arc<Mutex<Ledger>>, dice: &mut Dice, rounds: usize) -> bool {
    for _ in 0..rounds {
        let mut keys = || (format!("/k/{}", dice.below(9)), dice.below(10_000));
        let ((a, x), (b, y), (c, z), (d, u)) = (keys(), keys(), keys(), keys());
        let results = tokio::join!(
            write(store, ledger, a, x),
            write(store, ledger, b, y),
            write(store, ledger, c, z),
            write(store, ledger, d, u)
        );
        for result in [results.0, results.1, results.2, results.3] {
            match result {
                Ok(()) => {}
                Err(WriteError::Io(_)) => return true,
                Err(other) => panic!("{other}"),
            }
        }
    }
    false
}

/// Opens what a crash left and compares it with what was promised; returns the newest write that survived.
fn check(disk: &Disk, ledger: &Ledger, case: &str) -> u64 {
    let (journal, loaded): (Journal, Loaded<Text>) =
        Journal::open_backend(disk.clone(), 1 << 20).unwrap_or_else(|problem| panic!("{case}: {problem}"));
    assert!(
        loaded.last_write >= ledger.acknowledged,
        "{case}: an acknowledged write is lost"
    );
    assert!(
        loaded.revision >= ledger.given,
        "{case}: revision {} would be given again",
        ledger.given
    );
    let found: Vec<String> = loaded
        .entries
        .iter()
        .map(|entry| format!("{}={}", entry.0.key, entry.0.value.as_str()))
        .collect();
    assert_eq!(found, ledger.state_at(loaded.last_write), "{case}");
    journal.close(None);
    loaded.last_write
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_acknowledged() {
    let mut point = 0;
    loop {
        point += 1;
        let mut dice = Dice(0x5eed + point);
        let disk = Disk::default();
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let failed = block_on(async {
            let store = open_disk(&disk).unwrap();
            disk.break_after(point);
            let failed = work(&store, &ledger, &mut dice, 8).await;
            if !failed {
                store.close().await;
            }
            failed
        });
        for _ in 0..3 {
            let after = disk.after_crash(&mut dice);
            check(&after, &ledger.lock(), &format!("crash at operation {point}"));
        }
        // The last runs break while the file is closed, or not at all.
        if !failed && disk.operations() < point {
            break;
        }
    }
    assert!(point > 30, "only {point} operations were tried");
}

#[test]
fn crash_after_crash_loses_nothing_either() {
    for seed in 1..=12 {
        let mut dice = Dice(seed * 7919);
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let mut disk = Disk::default();
        block_on(open_disk(&disk).unwrap().close());
        for generation in 0..12 {
            let case = format!("seed {seed}, generation {generation}");
            // Also while it repairs what the crash before left.
            disk.break_after(1 + dice.below(60));
            block_on(async {
                match open_disk(&disk) {
                    Ok(store) => {
                        work(&store, &ledger, &mut dice, 6).await;
                    }
                    Err(problem) => assert!(problem.to_string().contains("broke"), "{case}: {problem}"),
                }
            });
            disk = disk.after_crash(&mut dice);
            let mut ledger = ledger.lock();
            let survived = check(&disk.after_crash(&mut Dice(1)), &ledger, &case);
            ledger.accepted.retain(|revision, _| *revision <= survived);
        }
    }
}

#[test]
fn when_the_disk_breaks_writes_fail_and_reads_go_on() {
    for point in [1, 2, 5, 9, 14, 20] {
        block_on(async {
            let disk = Disk::default();
            let ledger = Arc::new(Mutex::new(Ledger::default()));
            let store = open_disk(&disk).unwrap();
            let mut watch = store.watch("", From::Now, 1000).unwrap();
            disk.break_after(point);
            assert!(work(&store, &ledger, &mut Dice(point), 100).await);
            for expect in [Expect::Any, Expect::Absent] {
                let error = write(&store, &ledger, "/k/new".into(), 1).await.unwrap_err();
                assert!(matches!(error, WriteError::Io(_)), "{error}");
                assert!(error.to_string().contains("takes no more writes"), "{error}");
                let error = store
                    .write("/k/0", expect, Change::put(|_| Text::new("x")))
                    .await
                    .unwrap_err();
                assert!(matches!(error, WriteError::Io(_)), "{error}");
            }
            let page = store.range(Range::default()).unwrap();
            let found: Vec<String> = page
                .entries
                .iter()
                .map(|entry| show(entry).split('@').next().unwrap().to_owned())
                .collect();
            let (seen, expected) = {
                let ledger = ledger.lock();
                (ledger.acknowledged.max(1), ledger.state_at(ledger.acknowledged))
            };
            assert_eq!(found, expected, "readers see what was acknowledged");
            assert_eq!(store.revision(), seen);
            while let Some(next) = watch.try_next() {
                let crate::Next::Event(event) = next else {
                    panic!("the watch goes on")
                };
                assert!(event.revision <= seen);
            }
            store.close().await;
            assert!(matches!(watch.next().await, crate::Next::Closed));
        });
    }
}
