//! Stores in files: what is kept, and what is refused.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::disk::Dice;
use crate::journal::{META, OBJECTS, Problem};
use crate::testing::{Text, block_on, delete, drain, put, show_page};
use crate::{Expect, From, OpenError, Options, Range, ReadError, Store};

fn open(path: &Path) -> Result<Store<Text>, OpenError> {
    Store::open(path, Options::default())
}

fn content(store: &Store<Text>) -> String {
    show_page(&store.range(Range::default()).unwrap())
}

/// A closed store with a few entries; returns its content.
fn filled(path: &Path, entries: usize) -> String {
    block_on(async {
        let store = open(path).unwrap();
        for number in 0..entries {
            put(
                &store,
                &format!("/things/{number:04}"),
                Expect::Absent,
                &"v".repeat(number % 300),
            )
            .await
            .unwrap();
        }
        let content = content(&store);
        store.close().await;
        content
    })
}

#[test]
fn a_store_comes_back_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    block_on(async {
        let store = open(&path).unwrap();
        assert_eq!(store.revision(), 1);
        put(&store, "/a", Expect::Absent, "1").await.unwrap();
        put(&store, "/b", Expect::Absent, "1").await.unwrap();
        put(&store, "/a", Expect::Any, "2").await.unwrap();
        delete(&store, "/b", Expect::Any).await.unwrap();
        store.close().await;

        let store = open(&path).unwrap();
        assert_eq!((content(&store).as_str(), store.revision()), ("/a=2@4", 5));
        assert_eq!(store.get("/a").unwrap().created, 2);
        let old = store.watch("/", From::After(4), 1);
        assert_eq!(
            old.err(),
            Some(ReadError::Compacted {
                requested: 4,
                oldest: 5,
                current: 5
            })
        );
        let mut watch = store.watch("/", From::After(5), 10).unwrap();
        assert_eq!(put(&store, "/c", Expect::Absent, "1").await.unwrap(), 6);
        assert_eq!(drain(&mut watch), ["+/c=1@6"]);
        store.close().await;
    });
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        1,
        "no draft is left behind"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn many_rows_come_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    let written = filled(&path, 2500);
    let store = open(&path).unwrap();
    assert_eq!(content(&store), written);
    block_on(store.close());
}

#[test]
fn a_file_has_one_store_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    let store = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    block_on(store.close());
    block_on(open(&path).unwrap().close());
}

#[test]
fn what_is_not_a_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    for text in ["hello, this is a letter", "re", "redb", "\0\0\0\0\0\0\0\0\0\0\0"] {
        fs::write(&path, text).unwrap();
        let error = open(&path).unwrap_err();
        assert!(matches!(error, OpenError::NotAStore { .. }), "{text:?}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");

    let path = directory.path().join("other");
    let other = TableDefinition::<&str, &str>::new("recipes");
    let db = Database::create(&path).unwrap();
    let write = db.begin_write().unwrap();
    write.open_table(other).unwrap().insert("cake", "eggs").unwrap();
    write.commit().unwrap();
    drop(db);
    let error = open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
    let db = Database::open(&path).unwrap();
    let recipe = db
        .begin_read()
        .unwrap()
        .open_table(other)
        .unwrap()
        .get("cake")
        .unwrap()
        .unwrap()
        .value()
        .to_owned();
    assert_eq!(recipe, "eggs");

    let error = open(&directory.path().join("no/such/directory")).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

/// Changes the tables of a closed store behind its back.
fn tamper(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let db = Database::open(path).unwrap();
    let write = db.begin_write().unwrap();
    change(&write);
    write.commit().unwrap();
}

#[test]
fn every_kind_of_tampering_is_named() {
    type Tampering = fn(&redb::WriteTransaction);
    let key: &[u8] = b"/things/0007";
    assert_eq!(key.len(), 12);
    // (what was done, what the error says)
    let table: [(Tampering, &str); 7] = [
        (
            |write| {
                let mut objects = write.open_table(OBJECTS).unwrap();
                let key: &[u8] = b"/things/0007";
                let mut row = objects.get(key).unwrap().unwrap().value().to_vec();
                *row.last_mut().unwrap() ^= 1;
                objects.insert(key, row.as_slice()).unwrap();
            },
            r#"damaged at key "/things/0007" (it does not match its checksum)"#,
        ),
        (
            |write| {
                let mut objects = write.open_table(OBJECTS).unwrap();
                let row = objects
                    .get(b"/things/0007".as_slice())
                    .unwrap()
                    .unwrap()
                    .value()
                    .to_vec();
                objects
                    .insert(b"/things/0008".as_slice(), row.as_slice())
                    .unwrap();
            },
            r#"damaged at key "/things/0008""#,
        ),
        (
            |write| {
                write
                    .open_table(OBJECTS)
                    .unwrap()
                    .insert(b"/x".as_slice(), b"short".as_slice())
                    .unwrap();
            },
            r#"damaged at key "/x" (it ends too early)"#,
        ),
        (
            |write| {
                write
                    .open_table(OBJECTS)
                    .unwrap()
                    .remove(b"/things/0007".as_slice())
                    .unwrap();
            },
            "it holds 19 records where 20 were written",
        ),
        (
            |write| {
                let mut meta = write.open_table(META).unwrap();
                meta.insert(b"format".as_slice(), 2u32.to_le_bytes().as_slice())
                    .unwrap();
            },
            "has store format 2, and this version reads up to 1",
        ),
        (
            |write| {
                let mut meta = write.open_table(META).unwrap();
                let mut cell = meta.get(b"summary".as_slice()).unwrap().unwrap().value().to_vec();
                cell[0] ^= 1;
                meta.insert(b"summary".as_slice(), cell.as_slice()).unwrap();
            },
            "its summary does not match its checksum",
        ),
        (
            |write| {
                write.delete_table(OBJECTS).unwrap();
            },
            "is damaged",
        ),
    ];
    for (tampering, says) in table {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.store");
        filled(&path, 20);
        tamper(&path, tampering);
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(error.contains("a.store"), "{error}");
    }
}

#[test]
fn a_value_that_its_owner_cannot_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    block_on(async {
        let store = open(&path).unwrap();
        put(&store, "/bad", Expect::Any, "!").await.unwrap();
        store.close().await;
    });
    let error = open(&path).unwrap_err();
    assert!(
        matches!(&error, OpenError::UnreadableValue { key, .. } if key == "/bad"),
        "{error}"
    );
}

#[test]
fn a_flipped_byte_is_refused_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    let written = filled(&path, 300);
    let sound = fs::read(&path).unwrap();
    let used: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    let mut dice = Dice(42);
    let mut refused = 0;
    // Every byte of the header, and many of the rest, mostly where something is.
    let header = 0..400;
    let anywhere = (0..60)
        .map(|_| dice.below(sound.len() as u64) as usize)
        .collect::<Vec<_>>();
    let in_use = (0..240)
        .map(|_| used[dice.below(used.len() as u64) as usize])
        .collect::<Vec<_>>();
    for at in header.chain(anywhere).chain(in_use) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        match open(&path) {
            Ok(store) => {
                assert_eq!(content(&store), written, "byte {at}");
                block_on(store.close());
            }
            Err(OpenError::Damaged { .. } | OpenError::DamagedRecord { .. }) => refused += 1,
            Err(
                OpenError::NotAStore { .. } | OpenError::EngineFormat { .. } | OpenError::NewerFormat { .. },
            ) => {}
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
    assert!(refused > 100, "only {refused} were noticed");
}

#[test]
fn a_file_that_was_cut_short_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    filled(&path, 300);
    let sound = fs::read(&path).unwrap();
    for kept in [9, 100, 4096, sound.len() / 2, sound.len() - 1] {
        fs::write(&path, &sound[..kept]).unwrap();
        let error = open(&path).unwrap_err();
        assert!(
            matches!(error, OpenError::Damaged { .. } | OpenError::DamagedRecord { .. }),
            "{kept}: {error}"
        );
    }
}

#[test]
fn a_large_file_with_little_in_it_is_made_smaller() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    block_on(async {
        let store = open(&path).unwrap();
        let large = "x".repeat(1 << 20);
        for number in 0..48 {
            put(&store, &format!("/{number:02}"), Expect::Absent, &large)
                .await
                .unwrap();
        }
        for number in 0..46 {
            delete(&store, &format!("/{number:02}"), Expect::Any)
                .await
                .unwrap();
        }
        store.close().await;
        let before = fs::metadata(&path).unwrap().len();
        assert!(before > 32 << 20, "{before}");
        let store = open(&path).unwrap();
        assert_eq!(store.range(Range::default()).unwrap().entries.len(), 2);
        put(&store, "/small", Expect::Absent, "x").await.unwrap();
        store.close().await;
        let after = fs::metadata(&path).unwrap().len();
        assert!(after < before / 4, "{before} to {after}");
        assert_eq!(
            open(&path)
                .unwrap()
                .range(Range::default())
                .unwrap()
                .entries
                .len(),
            3
        );
    });
}

#[test]
fn what_the_system_refuses_has_its_own_error() {
    use std::io::{Error, ErrorKind};
    type Is = fn(&Problem) -> bool;
    let table: [(ErrorKind, Is); 6] = [
        (ErrorKind::PermissionDenied, |problem| {
            matches!(problem, Problem::PermissionDenied(_))
        }),
        (ErrorKind::ReadOnlyFilesystem, |problem| {
            matches!(problem, Problem::PermissionDenied(_))
        }),
        (ErrorKind::StorageFull, |problem| {
            matches!(problem, Problem::NoSpace(_))
        }),
        (ErrorKind::QuotaExceeded, |problem| {
            matches!(problem, Problem::NoSpace(_))
        }),
        (ErrorKind::UnexpectedEof, |problem| {
            matches!(problem, Problem::Damaged(_))
        }),
        (ErrorKind::Interrupted, |problem| {
            matches!(problem, Problem::Io(_))
        }),
    ];
    for (kind, is) in table {
        let problem = Problem::from(redb::DatabaseError::from(redb::StorageError::from(Error::from(
            kind,
        ))));
        assert!(is(&problem), "{kind:?} became {problem:?}");
        let text = problem.at(Path::new("/data/hub.store")).to_string();
        assert!(text.contains("/data/hub.store"), "{text}");
    }
}

/// The name of the variable that makes this test binary a writer that waits to be killed.
const VICTIM: &str = "MACHINERY_STORE_VICTIM";

#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else {
        return;
    };
    block_on(async {
        let store = open(path.as_ref()).unwrap();
        for number in 0.. {
            let revision = put(
                &store,
                &format!("/{:02}", number % 40),
                Expect::Any,
                &number.to_string(),
            )
            .await
            .unwrap();
            println!("\nacknowledged {revision} {number}");
        }
    });
}

#[test]
fn a_killed_process_leaves_every_acknowledged_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.store");
    let mut newest = 1;
    for life in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "journal::tests::files::victim", "--nocapture"])
            .env(VICTIM, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        for line in lines {
            let line = line.unwrap();
            let Some(numbers) = line.strip_prefix("acknowledged ") else {
                continue;
            };
            let (revision, number) = numbers.split_once(' ').unwrap();
            acknowledged.push((revision.parse::<u64>().unwrap(), number.parse::<u64>().unwrap()));
            if acknowledged.len() == 60 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acknowledged.len() >= 60);
        assert!(
            acknowledged[0].0 > newest,
            "life {life}: a revision was given again"
        );
        block_on(async {
            let store = open(&path).unwrap();
            for (revision, number) in acknowledged.iter().rev().take(40) {
                let entry = store.get(&format!("/{:02}", number % 40)).unwrap();
                assert!(entry.revision >= *revision, "life {life}");
                let found: u64 = entry.value.as_str().parse().unwrap();
                // At most the write that was on its way is newer.
                assert!(
                    found >= *number && found <= acknowledged.last().unwrap().1 + 1,
                    "life {life}"
                );
            }
            newest = store.revision();
            store.close().await;
        });
    }
}
